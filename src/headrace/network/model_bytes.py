"""The bytes of a model file, or words why they cannot be read."""

from __future__ import annotations

import stat
from pathlib import Path

from headrace._core.errors import ModelError
from headrace._core.files import os_errors
from headrace._core.formats.foreign import foreign_model, looks_like
from headrace._core.formats.sniff import HEAD_BYTES
from headrace._core.formats.table import FORMATS

MAX_FILE_BYTES = 2**31
"""A protobuf message ends at 2 GiB; no weights file of the older formats is longer either."""


def read_model_file(path: Path, what: str, *, max_bytes: int = MAX_FILE_BYTES) -> bytes:
    """Return all bytes of a model file; `what` names its kind for messages.

    One that is missing, not regular, empty or longer than `max_bytes` is refused unread.
    """
    where = str(path)
    with os_errors(ModelError, "the model cannot be read", where, expected=what):
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            kind = "is a folder" if stat.S_ISDIR(status.st_mode) else "is not a regular file"
            raise ModelError(kind, where=where, expected=what)
        if status.st_size > max_bytes:
            raise ModelError(
                f"{status.st_size} bytes are too many",
                where=where,
                expected=f"{what} of at most {max_bytes} bytes",
            )
        data = path.read_bytes()
    if not data:
        raise ModelError("the file is empty", where=where, expected=what)
    return data


def foreign(data: bytes, path: Path, what: str, damage: str) -> ModelError:
    """Return the error for bytes of another kind: the kind they look like, else the damage."""
    error = foreign_model(path, what)
    if error is not None and FORMATS[str(error.data["format"])].model and (
        FORMATS[str(error.data["format"])].name != what
    ):  # fmt: skip
        return error
    words = looks_like(data[:HEAD_BYTES], len(data))
    if words is not None and words != what:
        return ModelError(f"it looks like {words}", where=str(path), expected=what)
    return ModelError(
        f"truncated or damaged: {damage}",
        where=str(path),
        expected=what,
        fix="copy or download it again",
    )
