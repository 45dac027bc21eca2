"""NN Archives of Luxonis: a packed model with the `config.json` that describes it.

Source: the schema of NN Archives (luxonis/luxonis-ml, `nn_archive`): `model.metadata.path` names
the model, the other files are its weights or belong to other programs.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from headrace._core.errors import ModelError
from headrace._core.files import hash_file
from headrace._core.formats.table import BARE_MODELS

if TYPE_CHECKING:
    import tarfile

SUFFIXES = (".tar.xz", ".tar.gz", ".tar", ".nnarchive")
_CONFIG = "config.json"
_LARGEST_CONFIG = 1 << 22  # bytes; names of thousands of classes have 200 kB
_LARGEST = 1 << 33  # bytes unpacked, all files together
_MOST_FILES = 1000
_BEHIND = (".data", ".bin", "_data")
"""Ends of files that a model's weights may lie in."""


def is_bare_model(path: Path) -> bool:
    """Whether a path where a config may stand is a model without one."""
    return path.suffix.lower() in BARE_MODELS or is_nn_archive(path)


def is_nn_archive(path: Path) -> bool:
    """Whether a file is an archive with a model and the `config.json` of it."""
    if not path.name.lower().endswith(SUFFIXES):
        return False
    try:
        status = path.stat()
    except (OSError, ValueError):
        return False
    return _model_in(path, status.st_mtime_ns, status.st_size) is not None


def model_file(path: Path) -> Path:
    """The model that a path stands for: of an NN Archive the one in it.

    Raises:
        ModelError: see `unpacked_model`.
    """
    return unpacked_model(path) if is_nn_archive(path) else path


def unpacked_model(path: Path) -> Path:
    """Unpack the model of an archive into the user's cache folder, once.

    Returns:
        The model file; `config.json` and its weights lie beside it.

    Raises:
        ModelError: the archive cannot be read, lacks the model, or holds more than 8 GiB.
    """
    import tarfile

    where = str(path)
    try:
        status = path.stat()
        model = _model_in(path, status.st_mtime_ns, status.st_size)
        if model is None:
            raise ModelError("the archive has no config.json of a model", where=where)
        folder = cache_folder() / hash_file(path).sha256[:16]
        if not (folder / model).is_file():
            _unpack(path, model, folder)
    except (OSError, EOFError, tarfile.TarError, ValueError) as error:
        raise ModelError(f"the archive cannot be unpacked: {error}", where=where) from error
    return folder / model


def cache_folder() -> Path:
    """`headrace/archives` in the user's cache folder (XDG)."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(base) / "headrace" / "archives"


@lru_cache(maxsize=16)
def _model_in(path: Path, modified_ns: int, size: int) -> str | None:
    """The name of the model that the archive's config names; None: it is no NN Archive."""
    import tarfile

    try:
        with tarfile.open(path) as archive:
            member = next((m for m in _files(archive) if _name(m) == _CONFIG), None)
            if member is None or member.size > _LARGEST_CONFIG:
                return None
            file = archive.extractfile(member)
            content: Any = json.loads(file.read()) if file is not None else None
            name = content["model"]["metadata"]["path"]
    except (OSError, EOFError, tarfile.TarError, ValueError, LookupError, TypeError,
            RecursionError):  # fmt: skip
        return None
    return name if isinstance(name, str) and name == PurePosixPath(name).name != "" else None


def _files(archive: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
    for index, member in enumerate(archive):
        if index >= _MOST_FILES:
            return
        if member.isfile() and "/" not in _name(member):
            yield member


def _name(member: tarfile.TarInfo) -> str:
    return member.name.removeprefix("./")


def _unpack(path: Path, model: str, folder: Path) -> None:
    import shutil
    import tarfile
    import tempfile

    folder.parent.mkdir(parents=True, exist_ok=True)
    left = _LARGEST
    with tempfile.TemporaryDirectory(dir=folder.parent) as name, tarfile.open(path) as archive:
        draft = Path(name) / "archive"
        draft.mkdir()
        for member in _files(archive):
            own = _name(member)
            stem = PurePosixPath(model).stem
            if own not in (model, _CONFIG) and not (own.startswith(stem) and own.endswith(_BEHIND)):
                continue
            left -= member.size
            if left < 0:
                raise ValueError(f"its files have more than {_LARGEST >> 30} GiB")
            source = archive.extractfile(member)
            assert source is not None  # it is a file
            with source, open(draft / own, "xb") as target:
                shutil.copyfileobj(source, target)
        if not (draft / model).is_file():
            raise ValueError(f"{_CONFIG} names {model}, which is not in it")
        try:
            draft.rename(folder)
        except OSError:  # another process was faster, or it is there without the model
            if not (folder / model).is_file():
                raise
