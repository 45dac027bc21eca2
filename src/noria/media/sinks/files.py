"""Files that sinks write through the operating system themselves."""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
from pathlib import Path

from noria._core.errors import MediaError


def create(path: Path, name: str) -> int:
    """Open `path` for writing, empty; returns the descriptor.

    The file stays locked as long as it is open, so that two runs never write one file.

    Raises:
        MediaError: it cannot be created, or another run is writing it.
    """
    try:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise MediaError(f"cannot be created: {reason}", where=name) from error
    try:
        if stat.S_ISREG(os.fstat(fd).st_mode):
            # network file systems may not know locks: then there is none
            with contextlib.suppress(OSError):
                _lock(fd, name)
            os.ftruncate(fd, 0)
    except BaseException:
        os.close(fd)
        raise
    return fd


def _lock(fd: int, name: str) -> None:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise MediaError(
            "another run is writing this output",
            where=name,
            fix="wait until it ends, or choose another output",
        ) from error


def write_all(fd: int, data: bytes, *, size: int | None = None) -> None:
    """Write all of `data`, or, if the file's `size` so far is given, none of it.

    Raises:
        OSError: as the system says; EFBIG, ENOSPC and EDQUOT come after a partial write.
    """
    view = memoryview(data)
    try:
        while view:
            view = view[os.write(fd, view) :]
    except OSError:
        if size is not None and len(view) < len(data):
            os.ftruncate(fd, size)
            os.lseek(fd, size, os.SEEK_SET)
        raise


def write_file(path: Path, data: bytes) -> None:
    """Write a small file whole, or not at all.

    Raises:
        OSError: as the system says; a part that was written is removed.
    """
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o666)
    try:
        write_all(fd, data)
    except OSError:
        path.unlink(missing_ok=True)
        raise
    finally:
        os.close(fd)
