"""Best class and threshold over whole score tables, in native code."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from noria import _native
from noria.meta.detections import FloatArray, IntArray

_NO_OBJECTNESS = np.empty(0, np.float32)


def best_class(
    scores: FloatArray,
    thresholds: FloatArray,
    *,
    objectness: FloatArray | None = None,
    simd: bool = True,
) -> tuple[IntArray, IntArray, FloatArray]:
    """Candidates with a best class that reaches its threshold.

    The best class is the one with the largest score, the lowest index among equals; NaN never
    wins. A best class without a threshold (index >= len(thresholds)) drops the candidate.

    Args:
        scores: (N, C) float32; a transposed view of a (C, N) tensor costs no copy.
        thresholds: (K,) float32, lowest score of each class; equality passes.
        objectness: (N,) float32, multiplied with the best score before the comparison.
        simd: False takes the portable path (the same result, for tests).

    Returns:
        index (M,) int32 ascending, class (M,) int32, score (M,) float32. The GIL is released.
    """
    table: npt.NDArray[Any] = scores
    if 0 in table.shape or not len(thresholds):
        return np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0, np.float32)
    if table.itemsize not in table.strides or min(table.strides) < 0:
        table = np.ascontiguousarray(table)
    n = len(table)
    index, class_id, score = np.empty(n, np.int32), np.empty(n, np.int32), np.empty(n, np.float32)
    count = _native.best_class(
        table,
        _NO_OBJECTNESS if objectness is None else objectness,
        np.ascontiguousarray(thresholds, np.float32),
        index,
        class_id,
        score,
        simd,
    )
    return index[:count], class_id[:count], score[:count]


def to_float32(values: npt.NDArray[Any]) -> FloatArray:
    """The same numbers as float32, of any shape; float32 itself is not copied."""
    if values.dtype != np.float16:
        return values.astype(np.float32, copy=False)
    half = np.ascontiguousarray(values)
    single = np.empty(half.shape, np.float32)
    # NumPy converts halves in software, ten times slower than the instruction.
    if not _native.half_to_float(half.reshape(-1).view(np.uint16), single.reshape(-1)):
        return half.astype(np.float32)
    return single
