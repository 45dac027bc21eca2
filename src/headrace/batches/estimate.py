"""The cost of a batch before it runs: a few units are timed, the rest follows from their sizes."""

from __future__ import annotations

import os
import resource
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from headrace._core.errors import HeadraceError
from headrace.batches.inputs import shown
from headrace.batches.units import BatchUnit, UnitResult
from headrace.media.names import IMAGE_SUFFIXES

NODES = (1, 2, 4, 8, 16, 32)
_SAMPLE, _OF_VIDEOS = 5, 3  # the second where there are images, too
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


@dataclass(slots=True)
class _Kind:
    """Inputs of one kind, images or others, of which a few are timed."""

    number: int = 0
    size_bytes: int = 0
    chosen: list[str] = field(default_factory=list)
    step: int = 1

    def add(self, name: str) -> None:
        self.number += 1
        self.size_bytes += _size(name)
        if (self.number - 1) % self.step == 0:
            self.chosen.append(name)
            if len(self.chosen) > 2 * _SAMPLE:
                self.chosen, self.step = self.chosen[::2], self.step * 2

    def sample(self, most: int) -> list[str]:
        """At most so many, spread over all."""
        count = min(most, len(self.chosen))
        return [self.chosen[place * len(self.chosen) // count] for place in range(count)]


@dataclass(frozen=True, slots=True)
class TimedInputs:
    """A few inputs of a batch, spread over all of it.

    Attributes:
        names: those to time.
        kinds: (number, bytes where they are known) of all videos, and of all images.
    """

    names: tuple[str, ...]
    kinds: tuple[tuple[int, int], tuple[int, int]]

    @property
    def inputs(self) -> int:
        """How many inputs there are in all."""
        return sum(number for number, _ in self.kinds)


def sample_of(inputs: Iterable[str]) -> TimedInputs:
    """Choose inputs to time, videos and images apart: their costs have nothing in common.

    Memory is that of the sample, however many inputs there are.
    """
    kinds = _Kind(), _Kind()
    for name in inputs:
        kinds[_is_image(name)].add(name)
    videos, images = kinds
    some = videos.sample(_SAMPLE if not images.number else _OF_VIDEOS)
    some += images.sample(_SAMPLE - len(some) if images.number else 1)
    sizes = (videos.number, videos.size_bytes), (images.number, images.size_bytes)
    return TimedInputs(tuple(some), sizes)


def _is_image(name: str) -> bool:
    return Path(name.split("?")[0]).suffix.lower() in IMAGE_SUFFIXES


def _size(name: str) -> int:
    try:
        return os.stat(name).st_size
    except (OSError, ValueError):
        return 0


def estimated(
    results: Sequence[UnitResult],
    written: Sequence[int],
    *,
    sample: TimedInputs,
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
        sample: that the units are of.
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
    scales = _scales(sample, [r for r, _ in good])
    scaled = [(r, w, scales[_is_image(r.unit.input)]) for r, w in good]
    frames = sum(r.frames * scale for r, _, scale in scaled)
    busy = sum(r.seconds * scale for r, _, scale in scaled) * threads
    size_bytes = sum(size for _, size in sample.kinds)
    spreads = [_spread([r for r, _ in good if _is_image(r.unit.input) == image], bool(size_bytes))
               for image in (False, True)]  # fmt: skip
    shares = [sum(r.seconds * scale for r, _, scale in scaled if _is_image(r.unit.input) == image)
              for image in (False, True)]  # fmt: skip
    low, high = (
        sum(s * share for s, share in zip(side, shares, strict=True)) / (sum(shares) or _LEAST_S)
        for side in zip(*spreads, strict=True)
    )
    longest = max(r.seconds for r, _ in good)  # a unit is not shared out
    here = busy / (workers * threads)
    return BatchEstimate(
        inputs=sample.inputs,
        timed=len(good),
        cores=cores,
        workers=workers,
        threads=threads,
        frames=round(frames),
        core_seconds=busy,
        seconds=(here * low, here, here * high),
        nodes=tuple((n, max(here / n, longest)) for n in NODES),
        memory_bytes=memory_bytes * workers,
        read_bytes=size_bytes or round(sum(r.size_bytes * scale for r, _, scale in scaled)),
        written_bytes=round(sum(w * scale for _, w, scale in scaled)),
        core_hours_per_million_frames=busy / 3600 / max(1.0, frames) * 1e6,
        price=None if core_hour_price is None else busy / 3600 * core_hour_price,
    )


def _scales(sample: TimedInputs, good: Sequence[UnitResult]) -> tuple[float, float]:
    """How often a timed video, and a timed image, stands for one of the batch."""
    scales = []
    for image, (number, size_bytes) in enumerate(sample.kinds):
        own = [r for r in good if _is_image(r.unit.input) == bool(image)]
        sizes = sum(r.size_bytes for r in own)
        by_size = size_bytes and sizes
        scales.append(size_bytes / sizes if by_size else number / max(1, len(own)))
    return scales[0], scales[1]


def _spread(results: Sequence[UnitResult], by_size: bool) -> tuple[float, float]:
    """The ends of the middle half of the costs of units, as parts of the median."""
    if not results:
        return 1.0, 1.0
    rates = [r.seconds / max(1, r.size_bytes if by_size else 1) for r in results]
    low, high = _middle_half(rates)
    middle = statistics.median(rates) or _LEAST_S
    return low / middle, high / middle


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
