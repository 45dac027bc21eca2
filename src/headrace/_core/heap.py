"""The heap of the C library: memory that it keeps goes back to the system."""

from __future__ import annotations

import ctypes
import os
import sys
from time import monotonic

_ARENA_MAX = -8  # of mallopt, in <malloc.h>
_EVERY_S = 30.0


def share_heaps(most: int | None = None) -> None:
    """Let threads share few heaps, before they start: as many as there are cores, or `most`.

    glibc has 8 for each core, and each keeps the most that its threads ever held: a service grew
    for an hour, as connections, models and decoders that came back were in threads of other heaps;
    a worker of a batch held 5 % more.
    `MALLOC_ARENA_MAX` of the environment wins.
    """
    if sys.platform == "linux" and "MALLOC_ARENA_MAX" not in os.environ:
        mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
        if mallopt is not None:
            mallopt(_ARENA_MAX, most or max(2, len(os.sched_getaffinity(0))))


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


class HeapTrims:
    """Trims the heap now and then, in a loop that has images allocated.

    An image fits no more into the place of one that is gone once a small object lies there: glibc's
    heaps grew by a third in five minutes of a pipeline that held no more images than at first. To
    allocate each image apart instead costs half as much processor time again.
    """

    def __init__(self) -> None:
        self._next_s = monotonic() + _EVERY_S

    def step(self) -> None:
        """Trim if it is time; called for each image or batch."""
        now = monotonic()
        if now >= self._next_s:
            self._next_s = now + _EVERY_S
            trim_heap()
