"""The load of others: what this process and its children use is not foreign."""

from __future__ import annotations

import io
from typing import Any

import pytest

from headrace.engine.tuning import foreign_load
from headrace.engine.tuning.foreign_load import ForeignLoad


class Clock:
    """A machine of two cores whose counters a test sets, in seconds."""

    def __init__(self) -> None:
        self.now = self.busy = self.own = self.child = 0.0

    def open(self, path: str, **_: Any) -> io.StringIO:
        if path == "/proc/stat":
            ticks = [round(50 * self.busy)] * 2
            rows = [f"cpu{n} {t} 0 0 999 999 0 0 0 77 77" for n, t in enumerate(ticks)]
            other = "cpu7 123456 0 0 0 0 0 0 0 0 0"  # this process may not run there
            return io.StringIO("\n".join(["cpu 1 1 1 1", *rows, other, "intr 5", ""]))
        assert path == "/proc/42/stat"
        before = " ".join(["S", *"0" * 10])
        return io.StringIO(f"42 (a b) c) {before} {round(100 * self.child)} 0 0")


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()

    class Usage:
        ru_stime = 0.0

        @property
        def ru_utime(self) -> float:
            return clock.own / 2  # asked for this process and for its children

    monkeypatch.setattr(foreign_load, "open", clock.open, raising=False)
    monkeypatch.setattr(foreign_load, "monotonic", lambda: clock.now)
    monkeypatch.setattr(foreign_load, "usable_cores", lambda: 2)
    monkeypatch.setattr(foreign_load.os, "sched_getaffinity", lambda _: {0, 1})
    monkeypatch.setattr(foreign_load.os, "sysconf", lambda _: 100)
    monkeypatch.setattr(foreign_load.resource, "getrusage", lambda _: Usage())
    return clock


@pytest.mark.parametrize(
    ("busy", "own", "child", "share"),
    [(10, 10, 0, 0.0), (20, 10, 0, 0.5), (20, 2, 8, 0.5), (20, 0, 0, 1.0), (10, 11, 0, 0.0)],
)
def test_the_share_of_others(
    clock: Clock, busy: float, own: float, child: float, share: float
) -> None:
    clock.busy, clock.own = 100, 50
    load = ForeignLoad()
    clock.now, clock.busy, clock.own, clock.child = 10, 100 + busy, 50 + own, child
    assert load.share(42) == pytest.approx(share)


def test_where_the_system_does_not_tell_there_is_none(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    load = ForeignLoad()
    monkeypatch.setattr(foreign_load, "open", lambda *_, **__: io.StringIO("x"), raising=False)
    clock.now = 5
    assert load.share(42) == 0.0


def test_on_this_machine_it_is_a_share() -> None:
    load = ForeignLoad()
    sum(range(200_000))
    assert 0 <= load.share() <= 1
