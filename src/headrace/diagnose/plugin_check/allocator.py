"""The C library's allocator: memory that is filled when it is taken and given back, and counted.

glibc alone has both; elsewhere nothing is filled, and no leak is found.
"""

from __future__ import annotations

import ctypes
import gc
from functools import cache
from typing import Any

_PERTURB = -6  # M_PERTURB of malloc.h
_STEP, _CACHED, _EACH = 16, 1040, 32
"""Sizes of small objects, and how many blocks of each are filled."""


class _Info(ctypes.Structure):
    _fields_ = [
        (name, ctypes.c_size_t)
        for name in ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks",
                     "uordblks", "fordblks", "keepcost")
    ]  # fmt: skip


@cache
def _libc() -> Any:
    library = ctypes.CDLL(None)
    if hasattr(library, "mallinfo2"):
        library.mallinfo2.restype = _Info
    return library


def perturb(byte: int) -> None:
    """Fill memory with bytes of that value when it is given back, with others when it is taken."""
    library = _libc()
    if not hasattr(library, "mallopt"):
        return
    library.mallopt(_PERTURB, byte)
    if not byte:
        return
    library.malloc.restype = ctypes.c_void_p
    library.free.argtypes = [ctypes.c_void_p]
    for size in range(_STEP, _CACHED, _STEP):  # free blocks that are at hand are not filled
        blocks = [library.malloc(size) for _ in range(_EACH)]
        for block in blocks:
            ctypes.memset(block, byte, size)
        for block in blocks:
            library.free(block)


def bytes_in_use() -> int | None:
    """Bytes that were taken and not given back; None where nothing counts them."""
    library = _libc()
    if not hasattr(library, "mallinfo2"):
        return None
    gc.collect()
    info = library.mallinfo2()
    return int(info.uordblks + info.hblkhd)
