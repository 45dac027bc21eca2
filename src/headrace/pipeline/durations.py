"""`Durations`: how long something took, counted in buckets."""

from __future__ import annotations

import threading
from bisect import bisect_left

BOUNDS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)


class Durations:
    """Durations in buckets of rising length, as Prometheus takes them.

    Any thread may add to it and read it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts = [0] * (len(BOUNDS_S) + 1)
        self._sum_s = 0.0

    def add(self, seconds: float) -> None:
        """Count one duration."""
        bucket = bisect_left(BOUNDS_S, seconds)
        with self._lock:
            self._counts[bucket] += 1
            self._sum_s += seconds

    def read(self) -> tuple[list[tuple[float, int]], float]:
        """The buckets so far, and the sum of all durations in seconds.

        Returns:
            Upper bounds in seconds, each with the number of durations up to it; the last bound is
            infinite, and its number is that of all.
        """
        with self._lock:
            counts, sum_s = list(self._counts), self._sum_s
        buckets, total = [], 0
        for bound, number in zip((*BOUNDS_S, float("inf")), counts, strict=True):
            total += number
            buckets.append((bound, total))
        return buckets, sum_s
