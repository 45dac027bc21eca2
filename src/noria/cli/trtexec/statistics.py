"""The numbers of the report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True, slots=True)
class Query:
    """Times of one run, in ms since the measurement began.

    H2D and D2H are the copies of inputs and outputs, compute is the run of the engine, enqueue what
    the host does to start it.
    """

    start_h2d: float
    end_h2d: float
    start_enqueue: float
    end_enqueue: float
    start_compute: float
    end_compute: float
    start_d2h: float
    end_d2h: float

    @property
    def h2d(self) -> float:
        """Seconds of copying inputs."""
        return self.end_h2d - self.start_h2d

    @property
    def enqueue(self) -> float:
        """Seconds of the call that starts the run."""
        return self.end_enqueue - self.start_enqueue

    @property
    def compute(self) -> float:
        """Seconds of computing."""
        return self.end_compute - self.start_compute

    @property
    def d2h(self) -> float:
        """Seconds of copying outputs."""
        return self.end_d2h - self.start_d2h

    @property
    def latency(self) -> float:
        """H2D + compute + D2H. Source: TensorRT facts 6.2."""
        return self.h2d + self.compute + self.d2h


def percentile(values: Sequence[float], percent: str | float) -> float:
    """The greatest value after the greatest floor((100 - percent) % of all) are left out.

    Args:
        values: at least one, in any order.
        percent: 0 to 100.
    """
    ordered = sorted(values)
    left_out = int(len(ordered) * (100 - Fraction(str(percent))) / 100)
    return ordered[max(0, len(ordered) - 1 - left_out)]


def summary(values: Sequence[float], percents: Sequence[str]) -> str:
    """`min = … ms, max = …, mean = …, median = …, percentile(90%) = …`."""
    ordered = sorted(values)
    half = len(ordered) // 2
    odd = len(ordered) % 2
    median = ordered[half] if odd else (ordered[half - 1] + ordered[half]) / 2
    parts = [
        f"min = {ordered[0]:.6g} ms",
        f"max = {ordered[-1]:.6g} ms",
        f"mean = {sum(ordered) / len(ordered):.6g} ms",
        f"median = {median:.6g} ms",
        *(f"percentile({float(p):g}%) = {percentile(ordered, p):.6g} ms" for p in percents),
    ]
    return ", ".join(parts)


def walltime_ms(queries: Sequence[Query]) -> float:
    """From the start of the first run to the end of the last."""
    return max(q.end_d2h for q in queries) - min(q.start_h2d for q in queries)


def throughput(queries: Sequence[Query], batch: int = 1) -> float:
    """Queries per second of wall time; a run of an implicit batch counts as `batch` of them."""
    return len(queries) * batch / walltime_ms(queries) * 1e3


def averages(queries: Sequence[Query], size: int) -> list[tuple[float, float, float]]:
    """Mean compute, latency and enqueue time of each full group of `size` runs, in order."""
    groups = [queries[i : i + size] for i in range(0, len(queries) - size + 1, size)]
    wanted: tuple[Callable[[Query], float], ...] = (
        lambda q: q.compute,
        lambda q: q.latency,
        lambda q: q.enqueue,
    )
    return [
        (*(sum(map(get, group)) / size for get in wanted),)  # type: ignore[misc]
        for group in groups
    ]
