"""A queue on disk: messages stay until a broker has acknowledged them, also over a crash."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
import struct
import threading
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from headrace._core.errors import MediaError
from headrace._core.files import os_errors, sha256_of, state_folder, try_lock
from headrace.media.messages.records import (
    HEADER_BYTES,
    MESSAGE_BYTES,
    damaged_records,
    packed,
    records,
)

_CURSOR = struct.Struct("<8sQQ?I")  # magic, `_Cursor`, CRC-32 of these
_CURSOR_MAGIC = b"\xffHRspool"
_CURSOR_COPIES = 2  # one that is damaged costs nothing
_CURSOR_NAME = "cursor"
_SEGMENT = re.compile(r"\d{1,20}\.seg")
_MOST_LOST = 1 << 24  # more numbers are not missing: they are those of another spool
_BATCH_BYTES = 1 << 20
REFUSED, REFUSED_BEFORE = "refused.jsonl", "refused.1.jsonl"
REFUSED_BYTES = 16 << 20
SEGMENT_BYTES = 4 << 20
LIMIT_BYTES = 256 << 20
_OWN = os.O_CLOEXEC | os.O_NOFOLLOW  # what lies in a spool is nobody else's


@dataclass(slots=True)
class _Segment:
    """A file of records.

    Attributes:
        first: number of its first message.
    """

    path: Path
    size: int
    first: int


class _Cursor(NamedTuple):
    """Numbers that a run leaves to the next one.

    Attributes:
        number: of the oldest message that waits.
        end: number of the next message; 0 if the run did not come to its end.
        made: True if a spool has made the folder.
    """

    number: int
    end: int
    made: bool


class _Place(NamedTuple):
    """Where reading goes on: number of the next message, its file and place there."""

    number: int
    segment: int
    offset: int


class Spool:
    """Appends messages to segments and reads them in order.

    Safe for one writing and one reading thread. Each message has a number: what is read twice, or
    damaged, is known by it. Each run begins a segment of its own.

    Args:
        folder: made if it is missing; one that a spool has made is removed at the end if nothing
            waits in it.
        ours: remove it even if it was there before.
        limit_bytes: beyond it the oldest segment goes.
        segment_bytes: a segment of this size is followed by a new one.
        refused_bytes: of a file of refused messages; it and the one before it are kept.

    Attributes:
        lost: messages that went unsent because of the limit, or because they were damaged.
        dropped_bytes: bytes of segments that went because of the limit.
        damaged_bytes: bytes passed over that are no intact message.
        dropped_refused_bytes: bytes of refused messages that were deleted.
        foreign: names of what lies in the folder and is none of its files; it stays there.

    Raises:
        MediaError: the folder cannot be used, or another run uses it.
    """

    def __init__(
        self,
        folder: Path,
        *,
        ours: bool = False,
        limit_bytes: int = LIMIT_BYTES,
        segment_bytes: int = SEGMENT_BYTES,
        refused_bytes: int = REFUSED_BYTES,
    ) -> None:
        self.folder = folder
        self.lost = self.dropped_bytes = self.damaged_bytes = self.dropped_refused_bytes = 0
        self.foreign: list[str] = []
        self._limit, self._segment_bytes = limit_bytes, segment_bytes
        self._refused_limit = refused_bytes
        self._guard = threading.Lock()
        self._closed, self._made = False, ours
        self._segments: list[_Segment] = []
        self._number = 0  # of the next message
        self._read = self._next = _Place(0, 0, 0)
        self._passed = self._skipped = 0  # of the last batch: messages, damaged bytes
        with os_errors(MediaError, "cannot be used", folder):
            self._cursor_fd = self._open_cursor()
        try:
            with os_errors(MediaError, "cannot be used", folder):
                self._take_over()
                self._fd = self._begin()
        except BaseException:
            os.close(self._cursor_fd)
            raise
        self._old = self._number  # messages below it are of an earlier run

    def append(self, message: bytes) -> None:
        """Add a message.

        Raises:
            OSError: as the system says; the message is not in the queue then.
            ValueError: it is longer than `MESSAGE_BYTES`.
        """
        if len(message) > MESSAGE_BYTES:
            raise ValueError(f"a message of {len(message)} bytes is too long for the spool")
        with self._guard:
            self._require_open()
            self._restore()
            segment = self._segments[-1]
            if segment.size >= self._segment_bytes:
                before = self._fd
                self._fd = self._begin()
                os.close(before)
                segment = self._segments[-1]
            view = memoryview(packed(self._number, message))
            try:
                while view:
                    view = view[os.write(self._fd, view) :]
            except OSError:
                with contextlib.suppress(OSError):  # else the reader passes over it
                    os.ftruncate(self._fd, segment.size)
                segment.size = os.fstat(self._fd).st_size
                raise
            segment.size += HEADER_BYTES + len(message)
            self._number += 1
            while sum(s.size for s in self._segments) > self._limit and len(self._segments) > 1:
                self._drop_oldest()

    def peek(self, count: int = 64) -> list[tuple[bytes, bool]]:
        """The oldest messages, at most `count`, each with True if an earlier run made it.

        Raises:
            OSError: as the system says.
        """
        batch: list[tuple[bytes, bool]] = []
        with self._guard:
            self._require_open()
            number, at, offset = self._read
            self._passed = self._skipped = room = 0
            while at < len(self._segments):
                segment = self._segments[at]
                with self._opened(at) as descriptor:
                    if descriptor is not None:
                        for record in records(descriptor, offset, segment.size):
                            self._skipped += record.start - offset
                            offset = record.end
                            if record.number < number:
                                continue  # a copy of what was read
                            batch.append((record.message, record.number < self._old))
                            number = record.number + 1
                            room += len(record.message)
                            if len(batch) == count or room >= _BATCH_BYTES:
                                break
                if len(batch) == count or room >= _BATCH_BYTES:
                    break
                self._skipped += segment.size - offset if descriptor is not None else 0
                offset = segment.size
                if at + 1 == len(self._segments):
                    number = max(number, self._number)
                    break
                at, offset = at + 1, 0
            self._next = _Place(number, at, offset)
            self._passed = len(batch)
            if not batch:
                self._move_on()
        return batch

    def ack(self) -> None:
        """Forget the messages that the last `peek` returned.

        Raises:
            OSError: that cannot be written down; they are forgotten all the same.
        """
        with self._guard:
            self._require_open()
            if self._next <= self._read:  # the limit has taken them meanwhile
                return
            self._move_on()
            self._restore()
            self._save_cursor()

    def set_aside(self, messages: Sequence[bytes]) -> None:
        """Append refused messages to `refused.jsonl` of the folder, a line each.

        A file that is full is kept as `refused.1.jsonl`, in the place of the one before.

        Raises:
            OSError: as the system says.
        """
        if not messages:
            return
        path, before = self.folder / REFUSED, self.folder / REFUSED_BEFORE
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | _OWN
        with os.fdopen(os.open(path, flags, 0o600), "ab") as file:
            size = file.tell()
            try:
                file.write(b"".join(message + b"\n" for message in messages))
                file.flush()
            except OSError:
                os.ftruncate(file.fileno(), size)
                raise
            full = file.tell() >= self._refused_limit
        if full:
            with contextlib.suppress(FileNotFoundError):
                self.dropped_refused_bytes += before.stat().st_size
            os.replace(path, before)

    @property
    def waiting(self) -> int:
        """Messages that are not acknowledged."""
        return self._number - self._read.number

    def close(self) -> None:
        """Close the files; messages that wait stay for the next run.

        A folder in which nothing waits is removed.
        """
        with self._guard:
            if self._closed:
                return
            self._closed = True
            with contextlib.suppress(OSError):  # without it the next run counts what it finds
                self._save_cursor(self._number)
            if not self.waiting:
                for segment in self._segments:
                    self._remove(segment)
                with contextlib.suppress(OSError):
                    if not {REFUSED, REFUSED_BEFORE} & set(os.listdir(self.folder)):
                        os.unlink(self.folder / _CURSOR_NAME)
                        if self._made:
                            self.folder.rmdir()
            elif not self._segments[-1].size:
                self._remove(self._segments[-1])
            os.close(self._fd)
            os.close(self._cursor_fd)

    def _require_open(self) -> None:
        if self._closed:
            raise OSError(errno.EBADF, "the spool is closed")

    def _take_over(self) -> None:
        """Find segments of earlier runs, and the place to go on reading."""
        saved = self._saved_cursor()
        self._made = self._made or (saved is not None and saved.made)
        spans = [(path, size, *_span(path, size)) for path, size in self._files()]
        numbers = [first for _, _, first, _, _ in spans if first is not None]
        if saved and numbers and abs(saved.number - max(numbers)) > _MOST_LOST:
            saved = None  # it is of another spool, whose numbers are altogether others
        near = saved.number if saved else min(numbers, default=None)
        end = saved.end if saved else 0
        for path, size, first, newest, damaged in spans:
            if first is None:  # no message is intact: its name is the number of the first
                first, newest = int(path.stem), int(path.stem) - 1
                if not size or near is None or abs(first - near) > _MOST_LOST:
                    self.damaged_bytes += size
                    self.lost += damaged if near is None else 0
                    path.unlink(missing_ok=True)
                    continue
            self._segments.append(_Segment(path, size, first))
            clean = saved is not None and saved.end > newest
            end = max(end, newest + 1 + (0 if clean else damaged))
        self._segments.sort(key=lambda segment: segment.first)
        self._number = end or (near if near is not None else secrets.randbits(48) + 1)
        oldest = self._segments[0].first if self._segments else self._number
        number = oldest if saved is None else saved.number
        self._number = max(self._number, number)
        self._read = self._next = _Place(number, 0, 0)
        self._save_cursor()

    def _files(self) -> list[tuple[Path, int]]:
        """Segments with their sizes, by name; other names are noted."""
        files: list[tuple[Path, int]] = []
        with os.scandir(self.folder) as entries:
            for entry in entries:
                own = entry.is_file(follow_symlinks=False)
                if own and _SEGMENT.fullmatch(entry.name):
                    files.append((Path(entry), entry.stat(follow_symlinks=False).st_size))
                elif not own or entry.name not in (_CURSOR_NAME, REFUSED, REFUSED_BEFORE):
                    self.foreign.append(entry.name)
        self.foreign.sort()
        return sorted(files, key=lambda file: int(file[0].stem))

    @contextlib.contextmanager
    def _opened(self, at: int) -> Iterator[int | None]:
        """The descriptor of a segment; None of one that was removed."""
        if at == len(self._segments) - 1:
            yield self._fd
            return
        with contextlib.ExitStack() as files:
            try:
                descriptor = files.enter_context(_reading(self._segments[at].path))
            except FileNotFoundError:
                descriptor = None
            yield descriptor

    def _move_on(self) -> None:
        """Let reading go on behind the last batch, and count missing messages."""
        missing = self._next.number - self._read.number - self._passed
        self.lost += missing if missing < _MOST_LOST else 0
        self.damaged_bytes += self._skipped
        done = self._segments[: self._next.segment]
        del self._segments[: len(done)]
        self._read = self._next = _Place(self._next.number, 0, self._next.offset)
        self._passed = self._skipped = 0
        for segment in done:
            self._remove(segment)

    def _drop_oldest(self) -> None:
        segment = self._segments.pop(0)
        number = max(self._read.number, self._segments[0].first)
        done = self._read.offset if self._read.segment == 0 else 0
        self.dropped_bytes += segment.size - done
        self.lost += number - self._read.number
        self._read = self._next = _Place(number, 0, 0)
        self._passed = self._skipped = 0
        self._remove(segment)
        with contextlib.suppress(OSError):  # the numbers tell it as well
            self._save_cursor()

    def _restore(self) -> None:
        """Make removed files again: the folder, the cursor, the newest segment.

        Raises:
            OSError: as the system says.
        """
        if not os.fstat(self._cursor_fd).st_nlink:
            cursor = self._open_cursor()
            os.close(self._cursor_fd)
            self._cursor_fd = cursor
            self._save_cursor()
        if not os.fstat(self._fd).st_nlink:
            segment = self._segments.pop()
            try:
                copy = self._begin()
            except OSError:
                self._segments.append(segment)
                raise
            self._segments[-1].first = segment.first
            at = 0
            while part := os.pread(self._fd, 1 << 20, at):
                at += os.write(copy, part)
            self._segments[-1].size = at
            os.close(self._fd)
            self._fd = copy

    def _begin(self) -> int:
        """Begin a segment; the descriptor that it is written to."""
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND | _OWN
        name = self._number
        while True:
            path = self.folder / f"{name:020d}.seg"
            try:
                descriptor = os.open(path, flags, 0o600)
            except FileExistsError:
                name += 1
                continue
            self._segments.append(_Segment(path, 0, self._number))
            return descriptor

    def _remove(self, segment: _Segment) -> None:
        with contextlib.suppress(OSError):  # its messages have numbers that are known to be done
            segment.path.unlink()

    def _open_cursor(self) -> int:
        """Make the folder and lock its cursor.

        Raises:
            MediaError: another run uses it.
            OSError: as the system says.
        """
        while True:
            if not self.folder.is_dir():
                self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
                self._made = True
            flags = os.O_RDWR | os.O_CREAT | _OWN
            descriptor = os.open(self.folder / _CURSOR_NAME, flags, 0o600)
            try:
                try_lock(descriptor)
            except BlockingIOError as error:
                os.close(descriptor)
                raise MediaError(
                    "another run uses this spool", where=str(self.folder),
                    fix="give each run its spool=DIR",
                ) from error  # fmt: skip
            if os.fstat(descriptor).st_nlink:
                return descriptor
            os.close(descriptor)  # the run before removed it meanwhile

    def _saved_cursor(self) -> _Cursor | None:
        """The cursor of the run before; None if no copy of it is intact."""
        data = os.pread(self._cursor_fd, _CURSOR_COPIES * _CURSOR.size, 0)
        for at in range(0, len(data) - _CURSOR.size + 1, _CURSOR.size):
            magic, number, end, made, crc = _CURSOR.unpack_from(data, at)
            if magic == _CURSOR_MAGIC and zlib.crc32(data[at : at + _CURSOR.size - 4]) == crc:
                return _Cursor(number, end, made)
        return None

    def _save_cursor(self, end: int = 0) -> None:
        body = _CURSOR.pack(_CURSOR_MAGIC, self._read.number, end, self._made, 0)[:-4]
        copy = body + struct.pack("<I", zlib.crc32(body))
        os.pwrite(self._cursor_fd, copy * _CURSOR_COPIES, 0)


@contextlib.contextmanager
def _reading(path: Path) -> Iterator[int]:
    descriptor = os.open(path, os.O_RDONLY | _OWN)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _span(path: Path, size: int) -> tuple[int | None, int, int]:
    """The first number in a segment, the highest, and how many records are damaged behind it.

    The first is None if no record is intact.
    """
    first, highest, end = None, -1, 0
    with _reading(path) as descriptor:
        for record in records(descriptor, 0, size):
            first = record.number if first is None else min(first, record.number)
            highest, end = max(highest, record.number), record.end
        return first, highest, damaged_records(descriptor, end, size)


def spool_folder(name: str) -> Path:
    """The spool of an output: the same in every run of this user.

    Args:
        name: of the output, without secrets.
    """
    return state_folder() / "spool" / sha256_of(name.encode())[:16]
