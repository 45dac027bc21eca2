"""Errors of the place where results go: a disk, a network folder, a bucket."""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Iterator
from pathlib import Path

from headrace._core.errors import HeadraceError, MediaError
from headrace._core.files import os_reason

GO_ON = "what is committed is kept; go on with --resume when this is put right"


class StorageError(HeadraceError):
    """Results cannot be written: the disk is full, read-only, or the folder is gone."""

    exit_code = MediaError.exit_code
    code = "storage-failed"


@contextlib.contextmanager
def storage_errors(path: Path) -> Iterator[None]:
    """Word the system's refusals to write below `path`.

    Raises:
        StorageError: instead of an OSError.
    """
    try:
        yield
    except OSError as error:
        raise storage_error(error, path) from error


def storage_error(error: OSError, path: Path) -> StorageError:
    """The plain words for a refusal of the file system."""
    match error.errno:
        case errno.ENOSPC | errno.EDQUOT:
            problem = "the disk is full"
        case errno.EROFS:
            problem = "the file system is read-only"
        case errno.EACCES | errno.EPERM:
            problem = "the folder may not be written to"
        case errno.ENOENT | errno.ESTALE:
            problem = "the folder, or a part of it, was removed during the run"
        case _:
            problem = f"results cannot be written: {os_reason(error)}"
    return StorageError(problem, where=str(path), fix=GO_ON)
