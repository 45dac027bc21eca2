"""Records of a spool's files: messages with a number, found again behind any damage."""

from __future__ import annotations

import errno
import os
import struct
import zlib
from collections.abc import Iterator
from typing import NamedTuple

MAGIC = b"\xffHR\xfe"  # no text has such bytes
# Magic, length and CRC-32 of the message, its number, then the CRC-32 of all of these.
_HEADER = struct.Struct("<4sIIQI")
_FRONT = struct.Struct("<4sIIQ")
HEADER_BYTES = _HEADER.size
MESSAGE_BYTES = 256 << 20
MOST_NUMBER = 1 << 62
_WINDOW_BYTES = 256 << 10
_MOST_READS = 8  # of a file's bytes, in search of records: a hostile one asks for more


class SpoolRecord(NamedTuple):
    """A message that is intact.

    Attributes:
        number: of the message; each of a spool has the next one.
        start, end: place in the file, in bytes.
    """

    number: int
    start: int
    end: int
    message: bytes


def packed(number: int, message: bytes) -> bytes:
    """The record of a message of at most `MESSAGE_BYTES`."""
    front = _FRONT.pack(MAGIC, len(message), zlib.crc32(message), number)
    return front + struct.pack("<I", zlib.crc32(front)) + message


def records(descriptor: int, start: int, size: int) -> Iterator[SpoolRecord]:
    """Intact records of an open file, in order.

    Between the `end` of one and the `start` of the next lies what is damaged. The search goes on at
    the next magic: a record that was overwritten costs no other.

    Args:
        descriptor: of the file.
        start, size: from where to where, in bytes.

    Raises:
        OSError: as the system says.
    """
    window = _Window(descriptor, size)
    at, read = start, 0
    while at >= 0 and size - at >= HEADER_BYTES:
        magic, length, crc, number, check = _HEADER.unpack(window.read(at, HEADER_BYTES))
        front = window.read(at, _FRONT.size)
        end = at + HEADER_BYTES + length
        whole = magic == MAGIC and check == zlib.crc32(front) and number < MOST_NUMBER
        if whole and end <= size and length <= MESSAGE_BYTES:
            message = window.read(at + HEADER_BYTES, length)
            if zlib.crc32(message) == crc:
                yield SpoolRecord(number, at, end, message)
                at = end
                continue
            read += length
            if read > _MOST_READS * size:
                at = end
                continue
        at = window.find(at + 1)


def damaged_records(descriptor: int, start: int, size: int) -> int:
    """How many records the damaged bytes from `start` to `size` have been, as far as one sees.

    Those that begin, and one more before them, unless these are zeros: a power cut leaves a file
    longer than what was written.
    """
    window, count, at = _Window(descriptor, size), 0, start
    while (found := window.find(at)) >= 0:
        count += 1
        at = found + 1
    first = window.find(start)
    before = start
    while (before := _data_from(descriptor, before, size)) < (size if first < 0 else first):
        part = window.read(before, min(_WINDOW_BYTES, size - before))
        part = part if first < 0 else part[: first - before]
        if not part or part.strip(b"\0"):
            return count + bool(part)
        before += len(part)
    return count


def _data_from(descriptor: int, at: int, size: int) -> int:
    """Return the first byte from `at` on that lies in no hole: files may have endless ones.

    Returns:
        `size` if there is none.
    """
    try:
        return min(os.lseek(descriptor, at, os.SEEK_DATA), size)
    except OSError as error:
        return size if error.errno == errno.ENXIO else at


class _Window:
    """A part of a file in memory, which moves on as it is read."""

    def __init__(self, descriptor: int, size: int) -> None:
        self._descriptor, self._size = descriptor, size
        self._from, self._data = 0, b""

    def read(self, at: int, count: int) -> bytes:
        """The bytes at a place, zeros where the file has become shorter."""
        begin = at - self._from
        if begin < 0 or begin + count > len(self._data):
            wanted = min(max(count, _WINDOW_BYTES), self._size - at)
            data = os.pread(self._descriptor, wanted, at)
            self._from, self._data = at, data + bytes(wanted - len(data))
            begin = 0
        return self._data[begin : begin + count]

    def find(self, at: int) -> int:
        """The place of the next magic; -1 without one."""
        while self._size - at >= len(MAGIC):
            inside = self._from <= at and at + len(MAGIC) <= self._from + len(self._data)
            if not inside:
                at = _data_from(self._descriptor, at, self._size)
                if self._size - at < len(MAGIC):
                    return -1
                self.read(at, min(_WINDOW_BYTES, self._size - at))
            found = self._data.find(MAGIC, at - self._from)
            if found >= 0:
                return self._from + found
            at = self._from + len(self._data) - len(MAGIC) + 1
        return -1
