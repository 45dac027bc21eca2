"""Compare the files a plan was built from with those there now.

By content: files are moved, copied and touched without changing.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType

from headrace._core.errors import ModelError
from headrace._core.files import FileHash, hash_file, os_reason
from headrace.engine.plan_header import FileRecord, ModelRecord
from headrace.network.external_data import locate

_SETTLED_NS = 2_000_000_000  # more than the steps of a file system's times


def fingerprint_files(
    model: Path,
    external: Mapping[str, Path],
    *,
    companions: Mapping[str, Path] = MappingProxyType({}),
    recipe: str = "",
    sha256: str | None = None,
) -> ModelRecord:
    """Record names, sizes and hashes of a model and its external data.

    `external` maps locations in the model, and `companions` the keys that name them, to further
    files; `recipe` is text that the network depends on besides.

    Raises:
        ModelError: one of the files cannot be read any more.
    """
    try:
        return ModelRecord(
            name=_text(model.name),
            size_bytes=model.stat().st_size,
            sha256=sha256 or _hash(model).sha256,
            external=_records(external),
            companions=_records(companions),
            recipe=recipe,
        )
    except OSError as error:
        raise ModelError(
            f"the model's files cannot be read: {os_reason(error)}", where=str(error.filename)
        ) from error


def _records(files: Mapping[str, Path]) -> tuple[FileRecord, ...]:
    return tuple(
        FileRecord(name=_text(name), **_hash(path)._asdict()) for name, path in files.items()
    )


def what_changed(
    record: ModelRecord, model: Path, companions: Mapping[str, Path] = MappingProxyType({})
) -> str | None:
    """Name the difference between `model` with its data and `record`; None if there is none.

    Renaming is no change. Sizes are compared first, so that hashing is only done where it decides.
    """
    files: list[tuple[Path, FileRecord, str]] = [(model, record, "model file")]
    for part in record.external:
        try:
            path = locate(part.name, model, where=str(model))
        except ModelError as error:
            return f"{error:brief}"
        files.append((path, part, f"external data {part.name!r}"))
    if {part.name for part in record.companions} != companions.keys():
        return "built from other files"
    files += [(companions[part.name], part, part.name) for part in record.companions]
    for path, part, words in files:
        try:
            if not path.is_file():
                return f"{words} is gone"
            if path.stat().st_size != part.size_bytes or _hash(path).sha256 != part.sha256:
                return f"{words} changed"
        except OSError as error:
            return f"{words} cannot be read: {os_reason(error)}"
    return None


def _hash(path: Path) -> FileHash:
    """Hash a file, once while its state stays: a model's recognition and its engine compare it.

    Of a file that changed just now the next change may leave the state as it is.
    """
    state = path.stat()
    times = (state.st_mtime_ns, state.st_ctime_ns)
    if time.time_ns() - max(times) < _SETTLED_NS:
        return hash_file(path)
    return _hash_of_state(path, (state.st_dev, state.st_ino, state.st_size, *times))


@lru_cache(maxsize=64)
def _hash_of_state(path: Path, state: tuple[int, ...]) -> FileHash:
    return hash_file(path)


def _text(name: str) -> str:
    # a file name need not be text; JSON must be
    return os.fsencode(name).decode(errors="replace")
