"""Whether the files a plan was built from are still the same. By content: files are moved, copied
and touched without changing."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path

from noria.engine.plan_header import FileRecord, ModelRecord
from noria.errors import ModelError
from noria.network.external_data import locate

__all__ = ["fingerprint_files", "what_changed"]


def fingerprint_files(
    model: Path, external: Mapping[str, Path], *, sha256: str | None = None
) -> ModelRecord:
    """Names, sizes and hashes of a model and its external data (location -> file).

    Args:
        sha256: hash of the model file's bytes as they were read, if known.

    Raises:
        ModelError: one of the files cannot be read any more.
    """
    try:
        return ModelRecord(
            name=_text(model.name),
            size_bytes=model.stat().st_size,
            sha256=sha256 or _hash(model),
            external=tuple(
                FileRecord(name=_text(name), size_bytes=path.stat().st_size, sha256=_hash(path))
                for name, path in external.items()
            ),
        )
    except OSError as error:
        raise ModelError(
            f"the model's files cannot be read: {error.strerror}", where=str(error.filename)
        ) from error


def what_changed(record: ModelRecord, model: Path) -> str | None:
    """What differs between `model` with its data and what `record` says; None if nothing.

    Renaming is no change. Sizes are compared first, so that hashing is only done where it decides.
    """
    files: list[tuple[Path, FileRecord, str]] = [(model, record, "model file")]
    for part in record.external:
        try:
            path = locate(part.name, model, where=str(model))
        except ModelError as error:
            return error.found
        files.append((path, part, f"external data {part.name!r}"))
    for path, part, words in files:
        try:
            if not path.is_file():
                return f"{words} is gone"
            if path.stat().st_size != part.size_bytes or _hash(path) != part.sha256:
                return f"{words} changed"
        except OSError as error:
            return f"{words} cannot be read: {error.strerror}"
    return None


def _hash(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _text(name: str) -> str:
    # a file name need not be text; JSON must be
    return os.fsencode(name).decode(errors="replace")
