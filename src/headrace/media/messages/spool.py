"""A queue on disk: messages stay until a broker has acknowledged them, also over a crash."""

from __future__ import annotations

import contextlib
import os
import struct
import threading
import zlib
from collections.abc import Sequence
from pathlib import Path

from headrace._core.errors import MediaError
from headrace._core.files import os_errors, sha256_of, try_lock

_HEADER = struct.Struct("<II")  # length, CRC-32 of the message
_CURSOR = struct.Struct("<QQI")  # segment, offset, CRC-32 of both
REFUSED, REFUSED_BEFORE = "refused.jsonl", "refused.1.jsonl"
REFUSED_BYTES = 16 << 20
SEGMENT_BYTES = 4 << 20
LIMIT_BYTES = 256 << 20


class Spool:
    """Appends messages to segments and reads them in order.

    Safe for one writing and one reading thread. Each run begins a segment of its own, so a record
    that a crash cut off is never followed by another.

    Args:
        folder: made if it is missing.
        limit_bytes: beyond it the oldest segment goes.
        segment_bytes: a segment of this size is followed by a new one.
        refused_bytes: of a file of refused messages; it and the one before it are kept.

    Attributes:
        dropped_bytes: bytes of messages that went unsent because of the limit or a damaged record.
        dropped_refused_bytes: bytes of refused messages that were deleted.

    Raises:
        MediaError: the folder cannot be used, or another run uses it.
    """

    def __init__(
        self,
        folder: Path,
        *,
        limit_bytes: int = LIMIT_BYTES,
        segment_bytes: int = SEGMENT_BYTES,
        refused_bytes: int = REFUSED_BYTES,
    ) -> None:
        self.folder = folder
        self.dropped_bytes = self.dropped_refused_bytes = 0
        self._limit, self._segment_bytes = limit_bytes, segment_bytes
        self._refused_limit = refused_bytes
        self._guard = threading.Lock()
        with os_errors(MediaError, "cannot be used", folder):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._cursor_fd = os.open(folder / "cursor", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            try_lock(self._cursor_fd)
        except BlockingIOError as error:
            os.close(self._cursor_fd)
            raise MediaError(
                "another run uses this spool", where=str(folder), fix="give each run its spool=DIR"
            ) from error
        self._sizes = {int(p.stem): p.stat().st_size for p in sorted(folder.glob("*.seg"))}
        first = min(self._sizes, default=0)
        self._read = max(self._saved_cursor(), (first, 0))
        self._next = self._read
        self._begin(max(self._sizes, default=self._read[0]) + 1)
        self._old = self._last  # segments below it are of an earlier run

    def append(self, message: bytes) -> None:
        """Add a message.

        Raises:
            OSError: as the system says; the message is not in the queue then.
        """
        record = _HEADER.pack(len(message), zlib.crc32(message)) + message
        with self._guard:
            size = self._sizes[self._last]
            if size >= self._segment_bytes:
                os.close(self._fd)
                self._begin(self._last + 1)
                size = 0
            view = memoryview(record)
            try:
                while view:
                    view = view[os.write(self._fd, view) :]
            except OSError:
                os.ftruncate(self._fd, size)
                raise
            self._sizes[self._last] = size + len(record)
            while sum(self._sizes.values()) > self._limit and len(self._sizes) > 1:
                self._drop_oldest()

    def peek(self, count: int = 64) -> list[tuple[bytes, bool]]:
        """The oldest messages, at most `count`, each with True if an earlier run made it."""
        batch: list[tuple[bytes, bool]] = []
        with self._guard:
            segment, offset = self._read
            while len(batch) < count and segment <= self._last:
                size = self._sizes.get(segment, 0)
                if offset >= size:
                    if segment == self._last:
                        break
                    segment, offset = segment + 1, 0
                    continue
                records, offset = self._records(segment, offset, size, count - len(batch))
                batch += [(r, segment < self._old) for r in records]
            self._next = (segment, offset)
        return batch

    def ack(self) -> None:
        """Forget the messages that the last `peek` returned."""
        with self._guard:
            if self._next <= self._read:  # the limit has taken them meanwhile
                return
            self._read = self._next
            for segment in [s for s in self._sizes if s < self._read[0]]:
                self._remove(segment)
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
        with path.open("ab") as file:
            file.write(b"".join(message + b"\n" for message in messages))
            full = file.tell() >= self._refused_limit
        if full:
            with contextlib.suppress(FileNotFoundError):
                self.dropped_refused_bytes += before.stat().st_size
            os.replace(path, before)

    @property
    def waiting_bytes(self) -> int:
        """Bytes on disk that are not acknowledged."""
        with self._guard:
            segment, offset = self._read
            return sum(self._sizes.values()) - (offset if segment in self._sizes else 0)

    def close(self) -> None:
        """Close the files; messages that wait stay for the next run."""
        with self._guard:
            os.close(self._fd)
            if not self._sizes[self._last]:
                self._remove(self._last)
            os.close(self._cursor_fd)

    def _records(self, segment: int, offset: int, size: int, count: int) -> tuple[list[bytes], int]:
        records: list[bytes] = []
        with self._path(segment).open("rb") as file:
            file.seek(offset)
            while len(records) < count and offset < size:
                header = file.read(_HEADER.size)
                length, crc = _HEADER.unpack(header) if len(header) == _HEADER.size else (size, 0)
                end = offset + _HEADER.size + length
                message = file.read(length) if end <= size else b""
                if end > size or zlib.crc32(message) != crc:
                    self.dropped_bytes += size - offset  # cut off by a crash, or damaged
                    return records, size
                records.append(message)
                offset = end
        return records, offset

    def _drop_oldest(self) -> None:
        oldest = min(self._sizes)
        done = self._read[1] if self._read[0] == oldest else 0
        self.dropped_bytes += self._sizes[oldest] - done
        self._remove(oldest)
        self._read = max(self._read, (min(self._sizes), 0))
        self._save_cursor()

    def _begin(self, segment: int) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND
        self._fd = os.open(self._path(segment), flags, 0o600)
        self._last = segment
        self._sizes[segment] = 0

    def _remove(self, segment: int) -> None:
        self._path(segment).unlink(missing_ok=True)
        del self._sizes[segment]

    def _path(self, segment: int) -> Path:
        return self.folder / f"{segment:016d}.seg"

    def _saved_cursor(self) -> tuple[int, int]:
        data = os.pread(self._cursor_fd, _CURSOR.size, 0)
        if len(data) == _CURSOR.size:
            segment, offset, crc = _CURSOR.unpack(data)
            if zlib.crc32(data[:16]) == crc:
                return segment, offset
        return 0, 0  # torn: everything on disk is sent again

    def _save_cursor(self) -> None:
        body = struct.pack("<QQ", *self._read)
        os.pwrite(self._cursor_fd, body + struct.pack("<I", zlib.crc32(body)), 0)


def spool_folder(name: str) -> Path:
    """The spool of an output: the same in every run of this user.

    Args:
        name: of the output, without secrets.
    """
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "headrace" / "spool" / sha256_of(name.encode())[:16]
