"""Waits between tries."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace._core.retry import Backoff


def test_waits_double_up_to_the_longest() -> None:
    backoff = Backoff(0.1, 5.0)
    assert [backoff.delay_s(i) for i in range(8)] == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0]
    assert backoff.delay_s(10**9) == 5.0


@given(st.floats(0, 100), st.floats(0, 100), st.integers(0, 2000))
def test_waits_are_random_within_the_limits(first_s: float, max_s: float, attempt: int) -> None:
    policy = Backoff(first_s, max_s, jitter=True)
    assert 0 <= policy.delay_s(attempt) <= policy.longest_s(attempt) <= max_s
    assert policy.longest_s(attempt) <= policy.longest_s(attempt + 1)
    fixed = Backoff(first_s, max_s)
    assert fixed.delay_s(attempt) == policy.longest_s(attempt)


def test_jitter_spreads() -> None:
    waits = {Backoff(1.0, 30.0, jitter=True).delay_s(4) for _ in range(50)}
    assert len(waits) == 50
    assert max(waits) - min(waits) > 4


@pytest.mark.parametrize("bad", [(-1.0, 1.0), (1.0, float("nan"))])
def test_a_wait_that_is_no_time_is_refused(bad: tuple[float, float]) -> None:
    with pytest.raises(ValueError, match="waits cannot be negative"):
        Backoff(*bad)
