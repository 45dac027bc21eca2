"""Distribution of a tensor's absolute values, and the value to clip them at."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt

from headrace._core._native import count_magnitudes, measure_magnitudes
from headrace._core.types import Array

BINS = 4096
LEVELS = 128  # of a symmetric byte: 0 to 127
METHODS = ("entropy", "minmax", "percentile")
_STEP = 4  # bins between two clips that are tried

Method = Literal["entropy", "minmax", "percentile"]
Counts = npt.NDArray[np.int64]


@dataclass(slots=True)
class Histogram:
    """Absolute values, zeros apart.

    The range ends at a power of two and doubles by adding pairs of bins, so the result depends
    neither on the order in which values come nor on how they are cut into pieces.

    Attributes:
        counts: (BINS,) values in each of the equal bins from 0 to `top`.
        top: 0 while no value but 0 was seen.
        largest: of the values.
        zeros, odd: how many were 0; how many were infinite or not a number.
    """

    counts: Counts = field(default_factory=lambda: np.zeros(BINS, np.int64))
    top: float = 0.0
    largest: float = 0.0
    zeros: int = 0
    odd: int = 0

    def add(self, values: Array) -> None:
        """Count float values of any shape."""
        flat = np.ascontiguousarray(values.reshape(-1), np.float32)
        largest, zeros, odd = measure_magnitudes(flat)
        self.zeros += zeros
        self.odd += odd
        if largest == 0:
            return
        self.largest = max(self.largest, largest)
        self._reach(largest)
        # a power of two times a float32 is exact: no value lands in a neighbour's bin
        count_magnitudes(flat, BINS / self.top, self.counts)

    def _reach(self, value: float) -> None:
        needed = 2.0 ** (math.frexp(value)[1])  # > value
        # far below this the bins would be narrower than float32 can be scaled to
        needed = max(needed, 2.0**-100)
        if self.top == 0:
            self.top = needed
        while self.top < needed:
            self.counts[: BINS // 2] = self.counts.reshape(-1, 2).sum(axis=1)
            self.counts[BINS // 2 :] = 0
            self.top *= 2

    @property
    def total(self) -> int:
        """Finite values, zeros included."""
        return int(self.counts.sum()) + self.zeros


def clip_at(histogram: Histogram, method: Method, percentile: float = 99.99) -> float:
    """Choose the largest absolute value that INT8 can hold; 0 where all values were 0.

    Args:
        histogram: the values.
        method: `minmax` the largest value seen; `percentile` the one that so many per cent of all
            values do not exceed; `entropy` the one at which the distribution loses least
            information in 128 levels (least Kullback-Leibler divergence).
        percentile: above 0, at most 100.

    Source of entropy: S. Migacz, "8-bit Inference with TensorRT" (GTC 2017), zeros left out
    because every scale holds them exactly.
    """
    if histogram.top == 0 or method == "minmax":
        return histogram.largest
    width = histogram.top / BINS
    if method == "percentile":
        below = np.cumsum(histogram.counts) + histogram.zeros
        index = int(np.searchsorted(below, math.ceil(percentile / 100 * histogram.total)))
        return min((index + 1) * width, histogram.largest)
    return min(_least_divergence(histogram.counts) * width, histogram.largest)


def _least_divergence(counts: Counts) -> int:
    """The number of bins to keep. Sums over bins are differences of running sums."""
    used = int(np.flatnonzero(counts)[-1]) + 1
    if used <= LEVELS:
        return used
    kept = np.arange(LEVELS, used + 1, _STEP)
    if kept[-1] != used:
        kept = np.append(kept, used)
    count = counts[:used].astype(np.float64)
    sums = np.concatenate([[0.0], np.cumsum(count)])
    filled = np.concatenate([[0], np.cumsum(count > 0)])
    entropies = np.concatenate([[0.0], np.cumsum(_x_log_x(count))])
    outside = sums[-1] - sums[kept]
    edges = np.arange(LEVELS + 1)[None, :] * kept[:, None] // LEVELS
    inside = np.diff(sums[edges], axis=1)  # (clips, LEVELS): values of one level
    bins = np.diff(filled[edges], axis=1)
    last = count[kept - 1]
    # clipped values count as the last bin of the truth, and are not there in the levels
    bins[:, -1] += (last == 0) & (outside > 0)
    levels = inside / np.maximum(bins, 1)
    true = inside.copy()
    true[:, -1] += outside
    with np.errstate(divide="ignore"):
        logs = np.log(np.maximum(levels, 1e-4))  # a level with nothing in it, but something clipped
    cross = np.where(true > 0, true * logs, 0).sum(axis=1)
    own = entropies[kept] - _x_log_x(last) + _x_log_x(last + outside)
    all_true, all_levels = sums[-1], np.maximum(sums[kept], 1e-4)
    divergence = (own - cross) / all_true - np.log(all_true) + np.log(all_levels)
    best = len(kept) - 1 - int(np.argmin(divergence[::-1]))  # of equals the widest
    return int(kept[best])


def _x_log_x(x: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return np.where(x > 0, x * np.log(np.maximum(x, 1e-300)), 0.0)
