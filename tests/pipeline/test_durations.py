"""Durations in buckets."""

from __future__ import annotations

import math
from bisect import bisect_left

from hypothesis import given
from hypothesis import strategies as st

from headrace.pipeline.durations import BOUNDS_S, Durations


@given(st.lists(st.floats(0, 100)))
def test_every_duration_is_in_its_buckets(durations: list[float]) -> None:
    histogram = Durations()
    for seconds in durations:
        histogram.add(seconds)
    buckets, sum_s = histogram.read()
    assert [bound for bound, _ in buckets] == [*BOUNDS_S, float("inf")]
    assert all(n == sum(s <= bound for s in durations) for bound, n in buckets)
    told = histogram.to_dict()
    assert (told is None) == (not durations)
    if told is not None:
        ordered = sorted(durations)
        for part, name in ((0.5, "median"), (0.99, "p99")):
            exact = ordered[max(0, math.ceil(part * len(ordered)) - 1)]
            assert _bucket(told[name]) == _bucket(min(exact, BOUNDS_S[-1]))
    assert abs(sum_s - sum(durations)) < 1e-6 * max(1, sum_s)


def _bucket(seconds: float) -> int:
    return bisect_left(BOUNDS_S, seconds)
