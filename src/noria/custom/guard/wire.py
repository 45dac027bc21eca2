"""What application and worker write into the memory that they share.

Three parts: a control page, whose first words `GuardChannel` keeps; an input region, which the
application makes larger; an output region, which the worker does. Both regions only grow: the
kernel refuses to shrink them, so that neither side can take memory from under the other.

Source of the numbers in a request or answer: the words of the control page, see below. The
application believes none of them: lengths are held against the region, counts against limits.
"""

from __future__ import annotations

import fcntl
import mmap
import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from noria import _native

CONTROL_BYTES = 4096
PAGE = mmap.PAGESIZE
GAP = _native.GUARD_GAP
INPUT_BYTES = 1 << 16  # at the start
MAX_RESULT_BYTES = (1 << 30) + (1 << 26)
"""Most bytes of one result: masks of a frame may have 1 GiB, and its boxes come with them."""

_AT = _native.GUARD_WORDS  # their numbers, see `native/src/guard_channel.h`
# Words of a request.
OP, MESSAGE_BYTES, INPUT_SIZE = _AT["OP"], _AT["MESSAGE_BYTES"], _AT["INPUT_SIZE"]
MESSAGE, CALL = _AT["MESSAGE"], _AT["CALL"]
# Words of an answer: whether it is an error, place and length of its JSON in the output region,
# size of that region, and up to 12 numbers of the kind of result, whose arrays begin at 0.
STATUS, SIDE_START, SIDE_BYTES = _AT["STATUS"], _AT["SIDE_START"], _AT["SIDE_BYTES"]
OUTPUT_SIZE, VALUES = _AT["OUTPUT_SIZE"], _AT["VALUES"]
# In an answer: 1 if the library wrote into tensors that it only shares, NOT_SHARED if it
# cannot share them: nothing was called. Places: of the tensors of a call.
WROTE, NOT_SHARED = _AT["WROTE"], 2
PLACES, MAX_PLACES = _native.GUARD_PLACES_AT, _native.GUARD_MAX_PLACES
HAS_ANGLES, HAS_MASKS = _AT["HAS_ANGLES"], _AT["HAS_MASKS"]  # second value of boxes

_MAX_REGION = 1 << 36  # networks come with their weights; much of it may be holes

_SEALS = getattr(fcntl, "F_SEAL_SHRINK", 2) | getattr(fcntl, "F_SEAL_SEAL", 1)


class Nonsense(Exception):
    """An answer that no sound worker gives."""


class OutOfRoom(Exception):
    """A result larger than `MAX_RESULT_BYTES`; says how large."""


def new_memory(name: str, size: int) -> int:
    """A descriptor of `size` bytes of anonymous memory that can be shared and never shrinks."""
    fd = os.memfd_create(f"noria-{name}", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        os.ftruncate(fd, size)
        fcntl.fcntl(fd, getattr(fcntl, "F_ADD_SEALS", 1033), _SEALS)
    except BaseException:
        os.close(fd)
        raise
    return fd


def control_words(fd: int) -> memoryview:
    """The 64-bit words of a control page that requests and answers are written into."""
    return memoryview(mmap.mmap(fd, CONTROL_BYTES)).cast("B")[64:].cast("Q")


def page_ceil(size: int) -> int:
    """`size` in bytes, up to the next whole page."""
    return -(-size // PAGE) * PAGE


class Region:
    """Memory that both sides have mapped. Views of it stay valid when it grows.

    Attributes:
        size: bytes that are mapped here.
    """

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self.size = 0
        self.follow(os.fstat(fd).st_size)

    def follow(self, size: int) -> bool:
        """Map as much as the other side says there is; whether the mapping changed.

        Raises:
            Nonsense: there is not as much.
        """
        if size <= self.size:
            return False
        if size > _MAX_REGION:
            raise Nonsense(f"{size} bytes of memory")
        if size > os.fstat(self.fd).st_size:
            raise Nonsense(f"{size} bytes of memory that are not there")
        self._memory = mmap.mmap(self.fd, size)
        self._bytes: npt.NDArray[np.uint8] = np.frombuffer(self._memory, np.uint8)
        self.address = int(self._bytes.__array_interface__["data"][0])
        self.size = size
        return True

    def ensure(self, size: int) -> bool:
        """Make it at least `size` bytes; whether the mapping changed."""
        if size <= self.size:
            return False
        size = page_ceil(max(size, min(2 * self.size, 1 << 26)))
        if os.fstat(self.fd).st_size < size:
            os.ftruncate(self.fd, size)
        return self.follow(size)

    def put(self, start: int, data: bytes) -> None:
        """Write bytes that fit."""
        self._bytes[start : start + len(data)] = np.frombuffer(data, np.uint8)

    def part(self, start: int) -> tuple[int, int]:
        """Address and bytes of what is from `start` on.

        Raises:
            Nonsense: that is not within the region.
        """
        if not 0 <= start <= self.size:
            raise Nonsense(f"boxes at {start} of {self.size} bytes")
        return self.address + start, self.size - start

    def take(self, start: int, count: int) -> bytes:
        """Copy bytes out.

        Raises:
            Nonsense: they are not within the region.
        """
        return self.view(start, np.dtype(np.uint8), (count,)).tobytes()

    def view(self, start: int, dtype: np.dtype[Any], shape: Sequence[int]) -> npt.NDArray[Any]:
        """An array in the region.

        Raises:
            Nonsense: it is not within the region.
        """
        count = 1
        for n in shape:
            if n < 0 or n > self.size:
                raise Nonsense(f"an array of shape {tuple(shape)}")
            count *= n
        if start < 0 or count * dtype.itemsize > self.size - start:
            raise Nonsense(f"an array of shape {tuple(shape)} at {start} of {self.size} bytes")
        if not count:
            return np.empty(tuple(shape), dtype)
        return np.frombuffer(self._memory, dtype, count, start).reshape(tuple(shape))


class Writer:
    """Puts arrays one after the other into a region that grows, up to `MAX_RESULT_BYTES`."""

    def __init__(self, region: Region, start: int = 0) -> None:
        self.region = region
        self.start = self.end = -(-start // 64) * 64

    def add(self, array: npt.NDArray[Any]) -> int:
        """Where the array stands.

        Raises:
            OutOfRoom: it would be too large.
        """
        start = -(-self.end // 64) * 64
        end = start + array.nbytes
        if end > MAX_RESULT_BYTES:
            raise OutOfRoom(f"a result of more than {MAX_RESULT_BYTES >> 20} MiB")
        self.region.ensure(end)
        if array.nbytes:
            np.copyto(self.region.view(start, array.dtype, array.shape), array)
        self.end = end
        return start
