"""`Durations`: how long something took, counted in buckets."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Sequence
from typing import Any

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

    def to_dict(self) -> dict[str, Any] | None:
        """The same as a report has it, in seconds; None without any.

        `median` and `p99` lie in their bucket where its durations would if they were spread evenly.
        """
        buckets, sum_s = self.read()
        count = buckets[-1][1]
        if not count:
            return None
        within = {"inf" if b == float("inf") else f"{b:g}": n for b, n in buckets}
        median, p99 = (round(_quantile(buckets, part * count), 4) for part in (0.5, 0.99))
        mean = round(sum_s / count, 4)
        return {"count": count, "mean": mean, "median": median, "p99": p99, "within": within}

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


def _quantile(buckets: Sequence[tuple[float, int]], rank: float) -> float:
    """The duration of a rank, counted from the shortest."""
    low_s, below = 0.0, 0
    for bound_s, number in buckets[:-1]:
        if number >= rank:
            return low_s + (bound_s - low_s) * (rank - below) / (number - below)
        low_s, below = bound_s, number
    return low_s
