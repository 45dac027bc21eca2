"""Parts of files as memory, which the system reads on demand and takes back."""

from __future__ import annotations

import mmap
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from headrace._core.threads import say_failure, start_thread

_EVERY_S = 0.02


class _FileMap(mmap.mmap):
    """Memory with its content in a file, so that dropped pages are read again."""


def mapped(descriptor: int, start: int, count: int) -> memoryview:
    """Bytes `start` to `start + count` of a file, to read only; they take no memory of their own.

    Raises:
        OSError, ValueError: the file cannot be mapped.
    """
    whole = _FileMap(descriptor, 0, access=mmap.ACCESS_READ)
    return memoryview(whole)[start : start + count]


def give_back(view: memoryview) -> None:
    """Drop the pages of a mapped file; the system reads them again on demand.

    Without an effect for any other memory.
    """
    if isinstance(view.obj, _FileMap) and hasattr(mmap, "MADV_DONTNEED"):
        view.obj.madvise(mmap.MADV_DONTNEED)


@contextmanager
def read_once(view: memoryview) -> Iterator[None]:
    """Drop the pages of a mapped file every few milliseconds, while a runtime copies them."""
    if not isinstance(view.obj, _FileMap):
        yield
        return
    over = threading.Event()

    def work() -> None:
        while not over.wait(_EVERY_S):
            give_back(view)

    name = "headrace-give-back"  # where it fails, the pages stay in memory for a while
    thread = start_thread(work, name=name, failed=lambda error: say_failure(name, error))
    try:
        yield
    finally:
        over.set()
        thread.join()
        give_back(view)
