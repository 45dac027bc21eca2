"""Files that are written whole or not at all, by one writer at a time, and nothing left behind."""

from __future__ import annotations

import errno
import glob
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

LOCK_TIMEOUT_S = 600.0

# Neither a link nor a pipe in the place of the lock is followed or waited for.
_LOCK_FLAGS = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


def os_reason(error: BaseException | str) -> str:
    """The reason that the system gives for an `OSError`; the text of any other error."""
    return str(getattr(error, "strerror", None) or error)


def lock_path(target: Path) -> Path:
    """The lock file of `target`: empty, and removed by its last holder."""
    return target.with_name(target.name + ".lock")


@contextmanager
def locked(
    target: Path,
    timeout_s: float = LOCK_TIMEOUT_S,
    on_wait: Callable[[], object] | None = None,
) -> Iterator[bool]:
    """Hold the right to write `target`; yield True if it is held.

    Calls `on_wait` before it waits for another process. It is not held where no process can write,
    where the file system knows no locks, or after `timeout_s` of waiting. Then at worst two
    processes do the same work: writing stays atomic.
    """
    if not target.parent.is_dir():  # filelock would make the folder
        yield False
        return
    import filelock

    path = lock_path(target)
    try:  # some folders let nothing be made; filelock takes that for a race, and tries again
        os.close(os.open(path, _LOCK_FLAGS, 0o644))
    except OSError:
        yield False
        return
    lock = filelock.FileLock(path, timeout=timeout_s)
    try:
        try:
            lock.acquire(timeout=0)
        except filelock.Timeout:
            if on_wait is not None:
                on_wait()
            lock.acquire()
    except (OSError, NotImplementedError, RuntimeError):  # filelock.Timeout is an OSError
        yield False
        return
    try:
        _remove_leftovers(target)
        yield True
    finally:
        # Removed while held: whoever waits for this inode finds it nameless and tries anew.
        with suppress(OSError):
            path.unlink()
        lock.release()


def _remove_leftovers(target: Path) -> None:
    """Remove the files of a killed writer. The caller holds the lock: no writer is alive."""
    for name in glob.glob(f".{glob.escape(target.name)}.*.tmp", root_dir=target.parent):
        with suppress(OSError):
            (target.parent / name).unlink()


def write_atomically(target: Path, chunks: Iterable[bytes | memoryview]) -> None:
    """Write `chunks` as `target`, replacing it; readers see the old file or the whole new one.

    The mode is the usual one for new files (umask). Data is on the disk before the name changes.
    A device, pipe or folder is refused: the rename would take its place, /dev/null's for everyone.

    Raises:
        OSError: nothing was changed, and nothing left behind.
    """
    with suppress(FileNotFoundError):
        if not stat.S_ISREG(target.stat().st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file")
    temporary = target.with_name(f".{target.name}.{os.urandom(6).hex()}.tmp")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        with open(descriptor, "wb") as file:
            for chunk in chunks:
                file.write(chunk)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise
    with suppress(OSError):  # some file systems cannot sync folders; the rename is done anyway
        folder = os.open(target.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
