"""Back-off, notices of losses, and times over several connections."""

from __future__ import annotations

import itertools
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace._core.findings import Finding
from headrace.media import ReconnectPolicy
from headrace.media.sources.decoded import Timeline
from headrace.media.sources.reconnect import MAX_TOLD, Losses

MS = Fraction(1, 1000)


def test_the_defaults_are_those_documented() -> None:
    policy = ReconnectPolicy()
    assert [policy.longest_s(i) for i in range(7)] == [1, 2, 4, 8, 16, 30, 30]
    assert policy.attempts is None
    assert policy.longest_s(10**9) == 30


@pytest.mark.parametrize("bad", [{"first_s": -1}, {"max_s": float("nan")}, {"attempts": -1}])
def test_nonsense_is_refused(bad: dict[str, float]) -> None:
    with pytest.raises(ValueError):
        ReconnectPolicy(**bad)  # type: ignore[arg-type]


def test_notices_of_losses_are_bounded() -> None:
    other = Finding("guard", "info", "something else")
    notices = [other]
    losses = Losses(notices, "cam")
    losses.lost("end", 7)
    assert "lost at frame 7 (end), and is not back yet" in notices[1].sentence
    losses.lost("refused", 7)  # still the same loss
    notices.append(other)
    losses.back()
    assert len(notices) == 3
    assert notices[1].sentence == "the connection was lost at frame 7 (end), back after 0.0 s"
    for i in range(100):
        losses.lost("end", 8 + i)
        losses.back()
    assert len(notices) == 2 + MAX_TOLD + 1
    assert notices[-1].sentence == "and lost 81 more times, away 0.0 s in all"


def test_one_that_never_was_there_does_not_come_back() -> None:
    notices = list[Finding]()
    losses = Losses(notices, "cam")
    for end in (losses.back, losses.stopped):
        losses.lost("refused", 0)
        losses.tried("no route")
        away = "there was no connection (refused), and it is not there yet (last try: no route)"
        assert notices[-1].sentence == away
        end()
    losses.lost("refused", 0)  # behind the end nothing is told: a thread may still try
    losses.tried("no route")
    assert [notice.sentence for notice in notices] == [
        "there was no connection (refused), it came after 0.0 s and 1 attempt in vain",
        "there was no connection (refused), it was not there after 0.0 s and 1 attempt in vain "
        "(last try: no route)",
    ]


@given(st.lists(st.one_of(st.none(), st.integers(-(10**6), 10**6)), max_size=30), st.data())
def test_times_always_rise(pts: list[int | None], data: st.DataObject) -> None:
    line = Timeline(40_000_000)
    times = []
    for value in pts:
        if data.draw(st.booleans()):
            line.away()
        times.append(line.next_ns(value, MS))
    assert all(b > a for a, b in itertools.pairwise(times))


def test_rising_times_are_kept_and_others_shifted() -> None:
    line = Timeline(40_000_000)
    given_ms = [5, 25, 100, 0, 10, 30, None, 70]
    times = [line.next_ns(value, MS) // 1_000_000 for value in given_ms]
    assert times == [5, 25, 100, 140, 150, 170, 210, 250]
    assert line.shifted
    assert line.missing
