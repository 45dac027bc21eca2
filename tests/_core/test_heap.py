"""Freed memory goes back to the system."""

from __future__ import annotations

import ctypes

import pytest

from headrace._core.heap import trim_heap
from tests.memory import resident


@pytest.mark.skipif(
    not hasattr(ctypes.CDLL(None), "malloc_trim"), reason="another C library than glibc"
)
def test_freed_memory_goes_back_to_the_system() -> None:
    blocks = [bytearray(size) for _ in range(600) for size in (100_000, 2000)]
    full = resident()
    del blocks[::2]  # between others that stay: the heap cannot shrink at its end
    trim_heap()
    assert full - resident() > 30 << 20
