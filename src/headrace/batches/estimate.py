"""The cost of a batch before it runs: a few units are timed, the rest follows from their sizes."""

from __future__ import annotations

import os
import resource
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from headrace._core.errors import HeadraceError
from headrace.batches.inputs import shown
from headrace.batches.units import BatchUnit, UnitResult

NODES = (1, 2, 4, 8, 16, 32)
_SAMPLE = 5
_LEAST_S = 0.001


@dataclass(frozen=True, slots=True)
class BatchEstimate:
    """The cost of a batch.

    Attributes:
        inputs: how many there are.
        timed: units that were run for this estimate.
        cores, workers, threads: of this machine.
        frames: expected in all.
        core_seconds: expected, of all units together.
        seconds: on this machine; low and high end of the middle half of the timed units.
        nodes: (number, seconds) on so many machines like this one.
        memory_bytes: of all workers of a machine.
        read_bytes, written_bytes: in all.
        core_hours_per_million_frames: the cost that does not depend on the archive.
        price: of all, in the currency of the core hour; None: that is not known.
    """

    inputs: int
    timed: int
    cores: int
    workers: int
    threads: int
    frames: int
    core_seconds: float
    seconds: tuple[float, float, float]
    nodes: tuple[tuple[int, float], ...]
    memory_bytes: int
    read_bytes: int
    written_bytes: int
    core_hours_per_million_frames: float
    price: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """The estimate as plain data."""
        return asdict(self)


def sample_of(inputs: Iterable[str]) -> tuple[list[str], int, int]:
    """Inputs spread over the whole list, how many there are, and their bytes where known.

    Memory is that of the sample, however many inputs there are.
    """
    chosen: list[str] = []
    step, number, total = 1, 0, 0
    for number, name in enumerate(inputs, 1):
        total += _size(name)
        if (number - 1) % step == 0:
            chosen.append(name)
            if len(chosen) > 2 * _SAMPLE:
                chosen, step = chosen[::2], step * 2
    spread = max(1, len(chosen) // _SAMPLE)
    return chosen[::spread][:_SAMPLE], number, total


def _size(name: str) -> int:
    try:
        return os.stat(name).st_size
    except (OSError, ValueError):
        return 0


def estimated(
    results: Sequence[UnitResult],
    written: Sequence[int],
    *,
    inputs: int,
    size_bytes: int,
    cores: int,
    workers: int,
    threads: int,
    memory_bytes: int,
    core_hour_price: float | None = None,
) -> BatchEstimate:
    """Work the cost of all inputs out from a few.

    Args:
        results: of units that ran alone, one after the other, in one worker.
        written: bytes of the results of each.
        inputs, size_bytes: of the batch; the size is 0 if it is not known.
        cores, workers, threads: of this machine.
        memory_bytes: of one worker.
        core_hour_price: in any currency; None: it is not known.

    Raises:
        HeadraceError: none of them could be run.
    """
    good = [(r, w) for r, w in zip(results, written, strict=True) if r.outcome == "done"]
    if not good:
        texts = [f"{shown(r.unit.input)}: {r.error.partition(chr(10))[0]}" for r in results]
        raise HeadraceError("none of the inputs that were tried could be run", fix=texts)
    sizes = sum(r.size_bytes for r, _ in good)
    scale = size_bytes / sizes if size_bytes and sizes else inputs / len(good)
    frames = sum(r.frames for r, _ in good) * scale
    busy = sum(r.seconds for r, _ in good) * scale * threads
    rates = [r.seconds / max(1, r.size_bytes if size_bytes else 1) for r, _ in good]
    low, high = _middle_half(rates)
    middle = statistics.median(rates) or _LEAST_S
    longest = max(r.seconds for r, _ in good)  # a unit is not shared out
    here = busy / (workers * threads)
    return BatchEstimate(
        inputs=inputs,
        timed=len(good),
        cores=cores,
        workers=workers,
        threads=threads,
        frames=round(frames),
        core_seconds=busy,
        seconds=(here * low / middle, here, here * high / middle),
        nodes=tuple((n, max(here / n, longest)) for n in NODES),
        memory_bytes=memory_bytes * workers,
        read_bytes=size_bytes or round(sizes * scale),
        written_bytes=round(sum(w for _, w in good) * scale),
        core_hours_per_million_frames=busy / 3600 / max(1.0, frames) * 1e6,
        price=None if core_hour_price is None else busy / 3600 * core_hour_price,
    )


def _middle_half(values: Sequence[float]) -> tuple[float, float]:
    if len(values) < 3:
        return min(values), max(values)
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return low, high


def memory_of_this_process() -> int:
    """The most bytes of memory that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def timed_units(worker: Any, names: Sequence[str]) -> tuple[list[UnitResult], list[int]]:
    """Run a few inputs whole, and measure the bytes that each would write."""
    results = [worker.do(BatchUnit(name, whole=True)) for name in names]
    return results, [sum(len(c) for c in r.files.values()) for r in results]
