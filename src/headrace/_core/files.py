"""Files: written whole or not at all, locked, hashed, and the reason if the system refuses.

A lock is the kernel's (`flock`): it ends with the process that holds it, however that ends.
`locked` waits for another process, whose work can then be used; `try_lock` refuses at once, where a
second writer is a mistake of the user.
"""

from __future__ import annotations

import atexit
import errno
import fcntl
import glob
import hashlib
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

if TYPE_CHECKING:
    from headrace._core.errors import HeadraceError

LOCK_TIMEOUT_S = 600.0
_POLL_S = 0.05
_TAIL_BYTES = 1 << 16
_LINKS_OF_SYSTEM = ("/dev/", "/proc/")  # as /dev/stdout

# Neither a link nor a pipe in the place of the lock is followed or waited for.
_LOCK_FLAGS = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


def os_reason(error: BaseException | str) -> str:
    """The reason that the system gives for an `OSError`; the text of any other error."""
    return str(getattr(error, "strerror", None) or error)


@contextmanager
def os_errors(
    kind: type[HeadraceError], words: str, where: str | Path | None = None, **more: Any
) -> Iterator[None]:
    """Raise `kind` for an error of the system in the block: `words`, then the reason.

    Args:
        kind: of the error that is raised.
        words: the beginning of its text, as `the table cannot be read`.
        where: the file.
        more: other arguments of `kind`.
    """
    try:
        yield
    except (OSError, ValueError) as error:  # ValueError: a path with a NUL byte
        location = None if where is None else str(where)
        raise kind(f"{words}: {os_reason(error)}", where=location, **more) from error


def sha256_of(*parts: bytes | memoryview) -> str:
    """The SHA-256 of bytes, one part after the other, in hexadecimal digits."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    return digest.hexdigest()


class FileHash(NamedTuple):
    """The content of a file in short."""

    size_bytes: int
    sha256: str


def state_folder() -> Path:
    """Return the state folder: `$XDG_STATE_HOME/headrace`, or `~/.local/state/headrace`."""
    base = os.environ.get("XDG_STATE_HOME", "")
    root = Path(base) if os.path.isabs(base) else Path.home() / ".local" / "state"
    return root / "headrace"


def hash_file(file: str | Path | BinaryIO) -> FileHash:
    """Size and SHA-256 of a file: a path, or one that is open at its start.

    Raises:
        OSError: it cannot be read.
    """
    if isinstance(file, str | Path):
        with open(file, "rb") as opened:
            return hash_file(opened)
    # BinaryIO lacks readinto in the type stubs; every binary file has it.
    digest = hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]
    return FileHash(file.tell(), digest)


def lock_path(target: Path) -> Path:
    """The lock file of `target`: empty, and removed by its last holder."""
    return target.with_name(target.name + ".lock")


def try_lock(descriptor: int) -> bool:
    """Lock an open file until it is closed; False where the file system knows no locks.

    Raises:
        BlockingIOError: another process, or another descriptor of this one, holds it.
    """
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise
    except OSError:
        return False
    return True


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
    path = lock_path(target)
    lock = _acquired(path, timeout_s, on_wait)
    if lock is None:
        yield False
        return
    remove = partial(_remove_own, path, os.getpid())
    atexit.register(remove)  # a process that a signal ends in a call does not come to `finally`
    try:
        _remove_leftovers(target)
        yield True
    finally:
        atexit.unregister(remove)
        # Removed while held: whoever waits for this inode finds it nameless and tries anew.
        remove()
        fcntl.flock(lock, fcntl.LOCK_UN)  # also for a forked child that has it open
        os.close(lock)


def _remove_own(path: Path, owner: int) -> None:
    """Remove a file, but not in a copy of the process that made it."""
    if os.getpid() == owner:
        with suppress(OSError):
            path.unlink()


def _acquired(path: Path, timeout_s: float, on_wait: Callable[[], object] | None) -> int | None:
    """The locked descriptor of a lock file; None if it cannot be had in time."""
    end = None
    while True:
        try:
            return _locked_file(path)
        except BlockingIOError:
            if end is None:
                end = monotonic() + timeout_s
                if on_wait is not None:
                    on_wait()
            elif monotonic() > end:
                return None
        sleep(_POLL_S)


def _locked_file(path: Path) -> int | None:
    """Open and lock a lock file; None where it cannot be made or locked.

    Raises:
        BlockingIOError: another process holds it, or has just removed it.
    """
    try:
        lock = os.open(path, _LOCK_FLAGS, 0o644)
    except OSError:
        return None
    removed = False
    try:
        if try_lock(lock):
            removed = not os.fstat(lock).st_nlink
            if not removed:
                return lock
    except BaseException:
        os.close(lock)
        raise
    os.close(lock)
    if removed:
        raise BlockingIOError
    return None


def _remove_leftovers(target: Path) -> None:
    """Remove the files of a killed writer. The caller holds the lock: no writer is alive."""
    for name in glob.glob(f".{glob.escape(target.name)}.*.tmp", root_dir=target.parent):
        with suppress(OSError):
            (target.parent / name).unlink()


def cut_torn_line(descriptor: int) -> bytes:
    """Cut the bytes behind the last whole line of a file, and go to its end.

    A process that was killed, or a machine that lost its power, leaves half a line, or zeros where
    the system had not written yet.

    Args:
        descriptor: of the file, open for reading and writing.

    Returns:
        The bytes that were cut, without zeros at their end; empty for a file of whole lines.

    Raises:
        OSError: as the system says.
    """
    end = at = os.lseek(descriptor, 0, os.SEEK_END)
    tail = b""
    while at:
        start = max(0, at - _TAIL_BYTES)
        tail = os.pread(descriptor, at - start, start) + tail
        at = start
        whole = tail.find(b"\0") + 1 or len(tail) + 1  # zeros are no text
        if (last := tail.rfind(b"\n", 0, whole - 1)) >= 0:
            at += last + 1
            tail = tail[last + 1 :]
            break
    if at < end:
        os.ftruncate(descriptor, at)
        os.lseek(descriptor, at, os.SEEK_SET)
    return tail.rstrip(b"\0")


class PartFile:
    """A file that takes the name of its target once it is whole; until then an earlier one stays.

    As a context manager it yields its path, finishes at the end and discards on an error.

    Attributes:
        target: its name at the end; that must be a file or nothing.
        path: its name until then, in the same file system; `NAME.part` beside the target.
    """

    def __init__(self, target: Path, path: Path | None = None) -> None:
        self.target = target
        self.path = path or target.with_name(target.name + ".part")

    def finish(self) -> None:
        """Give it the name of the target.

        Raises:
            OSError: as the system says; FileNotFoundError if it was removed.
        """
        os.replace(self.path, self.target)

    def discard(self) -> None:
        """Remove it, if it is there."""
        with suppress(OSError):
            self.path.unlink()

    def __enter__(self) -> Path:
        if self.path.is_symlink():  # what writes there would follow it
            self.path.unlink()
        return self.path

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self.discard()
            return
        try:
            self.finish()
        except BaseException:
            self.discard()
            raise


def write_atomically(
    target: Path,
    chunks: Iterable[bytes | memoryview],
    *,
    durable: bool = True,
    mode: int = 0o666,
) -> None:
    """Write `chunks` as `target`, replacing it; readers see the old file or the whole new one.

    The mode is `mode` without what the umask takes. With `durable` data is on the disk before the
    name changes; without it nothing is waited for, and a loss of power may take the file.
    A device, pipe or folder is refused: the rename would take its place, /dev/null's for everyone.

    Raises:
        OSError: nothing was changed, and nothing left behind.
    """
    with suppress(FileNotFoundError):
        if not stat.S_ISREG(target.stat().st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file")
    temporary = target.with_name(f".{target.name}.{os.urandom(6).hex()}.tmp")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    with PartFile(target, temporary), open(descriptor, "wb") as file:
        for chunk in chunks:
            file.write(chunk)
        if durable:
            file.flush()
            os.fsync(file.fileno())
    if not durable:
        return
    with suppress(OSError):  # some file systems cannot sync folders; the rename is done anyway
        folder = os.open(target.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def refuse_link(path: Path) -> None:
    """Refuse a link in the place of an output, which may lead to a file of another user.

    Links of the system in /dev and /proc, and links to devices and pipes, empty no file: they are
    followed.

    Raises:
        OSError: ELOOP, with words for the user; or as the system says.
    """
    if not path.is_symlink() or str(path).startswith(_LINKS_OF_SYSTEM):
        return
    with suppress(FileNotFoundError):
        mode = path.stat().st_mode
        if stat.S_ISCHR(mode) or stat.S_ISFIFO(mode):
            return
    target = os.readlink(path)
    raise OSError(errno.ELOOP, f"it is a link to {target!r}: remove it, or name what it leads to")


def write_where_named(path: Path, data: bytes, *, durable: bool = True) -> None:
    """Write a file that a user named: a link is refused, a device or pipe takes the bytes.

    Raises:
        OSError: as the system says; an earlier file stays.
    """
    refuse_link(path)
    if path.exists() and not path.is_file():
        path.write_bytes(data)
        return
    write_atomically(path, [data], durable=durable)
