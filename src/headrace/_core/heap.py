"""The heap of the C library: memory that it keeps goes back to the system."""

from __future__ import annotations

import ctypes
import sys


def trim_heap() -> None:
    """Give freed memory back to the system, in 1 to 2 ms.

    glibc keeps it in the heaps of threads, also of those that are over: a service whose videos come
    and go held half as much again, one whose models were changed a quarter. Other C libraries give
    it back themselves.
    """
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(ctypes.c_size_t(0))
