"""Freed memory goes back to the system."""

from __future__ import annotations

import ctypes
import subprocess
import sys

import pytest

from headrace._core import heap
from headrace._core.heap import HeapTrims, trim_heap
from tests.memory import resident

glibc_alone = pytest.mark.skipif(
    not hasattr(ctypes.CDLL(None), "malloc_trim"), reason="another C library than glibc"
)


@glibc_alone
def test_freed_memory_goes_back_to_the_system() -> None:
    blocks = [bytearray(size) for _ in range(600) for size in (100_000, 2000)]
    full = resident()
    del blocks[::2]  # between others that stay: the heap cannot shrink at its end
    trim_heap()
    assert full - resident() > 30 << 20


def test_a_loop_trims_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    now, trimmed = [100.0], list[float]()
    monkeypatch.setattr(heap, "monotonic", lambda: now[0])
    monkeypatch.setattr(heap, "trim_heap", lambda: trimmed.append(now[0]))
    trims = HeapTrims()
    for now[0] in (100.1, 129.9, 130.0, 130.1, 159.9, 161.0):
        trims.step()
    assert trimmed == [130.0, 161.0]


HEAPS = """
import ctypes, re, sys, threading
from headrace._core.heap import share_heaps
if sys.argv[1:]:
    share_heaps()
blocks, barrier = [], threading.Barrier(17)
malloc = ctypes.CDLL(None).malloc
malloc.restype = ctypes.c_void_p
def work():
    blocks.append(malloc(ctypes.c_size_t(5000)))
    barrier.wait()
for _ in range(16):
    threading.Thread(target=work).start()
barrier.wait()
print(len({block >> 26 for block in blocks}))
"""


@glibc_alone
def test_threads_share_few_heaps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MALLOC_ARENA_MAX", raising=False)
    counts = [
        int(subprocess.run([sys.executable, "-c", HEAPS, *more], capture_output=True).stdout)
        for more in ([], ["shared"])
    ]
    assert counts[1] < counts[0]
