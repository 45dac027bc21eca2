"""Executors: where units run. The driver knows nothing else of processes, nodes and networks."""

from __future__ import annotations

from typing import Protocol

from noria.batches.units import BatchUnit, UnitResult


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

        Raises:
            NoriaError: no worker can be kept alive.
        """
        ...

    def close(self) -> None:
        """End every worker at once; units under way are given up."""
        ...
