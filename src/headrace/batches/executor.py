"""Executors: where units run. The driver knows nothing else of processes, nodes and networks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Protocol

from headrace.batches.units import BatchUnit, UnitResult

AHEAD = 2  # units for a worker: one that runs, one that waits
_BRIEF_S = 0.5  # of units that wait at their worker; others wait for the worker that is free first


class Executor(Protocol):
    """Runs units somewhere.

    Attributes:
        slots: units that may be under way at once; bounds the memory of a run.
        workers: processes that work.
        spared_losses: workers that a unit may lose before that counts against it: nodes go for
            reasons of their own.
    """

    slots: int
    workers: int
    spared_losses: int

    def submit(self, unit: BatchUnit) -> None:
        """Begin a unit; called while fewer than `slots` are under way."""
        ...

    def collect(self, timeout_s: float) -> list[UnitResult]:
        """Wait for results, at most so long.

        A unit whose worker is gone comes back `lost`; `begun` is False if it only waited there.
        One that ran longer than the time limit comes back `failed`, its worker replaced.

        Raises:
            HeadraceError: no worker can be kept alive.
        """
        ...

    def close(self) -> None:
        """End every worker at once; units under way are given up."""
        ...


def room_after(result: UnitResult) -> int:
    """Units that a worker may have at once, by the time of its last one."""
    return AHEAD if result.seconds < _BRIEF_S else 1


def next_worker(loads: Sequence[int], rooms: Sequence[int]) -> int | None:
    """The number of the worker with room that has least to do; None if none has room."""
    index = min(range(len(loads)), key=lambda n: (loads[n] >= rooms[n], loads[n]))
    return index if loads[index] < rooms[index] else None


@dataclass(slots=True)
class UnitClock:
    """The time that a worker's oldest unit has run.

    Attributes:
        limit_s: seconds that a unit may run; None is any time.
        since_s: when the oldest unit began; None while the worker opens models or has no unit.
    """

    limit_s: float | None
    since_s: float | None = None

    def restart(self, busy: bool) -> None:
        """Begin anew with the next unit, if the worker has one."""
        self.since_s = monotonic() if busy else None

    @property
    def is_over(self) -> bool:
        """True if the unit has run longer than it may."""
        if self.limit_s is None or self.since_s is None:
            return False
        return monotonic() - self.since_s > self.limit_s

    def error(self) -> str:
        """Text for the user."""
        return f"it ran longer than the limit of {self.limit_s:g} s (--unit-timeout)"
