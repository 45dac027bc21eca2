"""Blocks of host memory by address, as `cudaMalloc` gives device memory."""

from __future__ import annotations

import ctypes
import threading

__all__ = ["allocate", "copy", "fill", "release", "size_of"]

_blocks: dict[int, ctypes.Array[ctypes.c_char]] = {}
_lock = threading.Lock()


def allocate(size: int) -> int:
    """The address of `size` new bytes, zeros.

    Raises:
        MemoryError: there are not so many.
        ValueError: less than none.
    """
    if size < 0:
        raise ValueError(f"{size} bytes")
    block = (ctypes.c_char * max(1, size))()
    address = ctypes.addressof(block)
    with _lock:
        _blocks[address] = block
    return address


def release(address: int) -> bool:
    """Give a block back; False if it is not one."""
    with _lock:
        return _blocks.pop(int(address), None) is not None


def size_of(address: int) -> int | None:
    """Bytes of a block that begins at `address`; None if none does."""
    block = _blocks.get(int(address))
    return None if block is None else len(block)


def copy(target: int, source: int, size: int) -> None:
    """Copy bytes between addresses.

    Raises:
        ValueError: an address is null; a block of ours is shorter.
    """
    if size <= 0:
        return
    for address, what in ((target, "target"), (source, "source")):
        if not address:
            raise ValueError(f"the {what} of a copy is null")
        known = size_of(address)
        if known is not None and known < size:
            raise ValueError(f"a copy of {size} bytes; the {what} has {known}")
    ctypes.memmove(int(target), int(source), int(size))


def fill(address: int, value: int, size: int) -> None:
    """Set bytes.

    Raises:
        ValueError: the address is null, or a block of ours is shorter.
    """
    if size <= 0:
        return
    known = size_of(address)
    if not address or (known is not None and known < size):
        raise ValueError(f"{size} bytes at {address:#x}, which has {known or 0}")
    ctypes.memset(int(address), value & 255, int(size))
