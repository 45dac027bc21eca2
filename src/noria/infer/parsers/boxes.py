"""Small steps shared by the decoders: clipping, filtering, packing. All boxes in network pixels."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from noria.meta.detections import Detections, FloatArray, IntArray
from noria.meta.layers import DetectionParams

__all__ = [
    "NOT_EMPTY",
    "class_numbers",
    "clipped_corners",
    "column_thresholds",
    "first_threshold",
    "pack",
    "sigmoid",
]


NOT_EMPTY = float(np.finfo(np.float32).smallest_subnormal)
"""`smallest` that drops boxes without area and nothing else."""


def clipped_corners(
    x1: FloatArray,
    y1: FloatArray,
    x2: FloatArray,
    y2: FloatArray,
    right: float,
    bottom: float,
    scores: npt.NDArray[Any],
    class_ids: npt.NDArray[Any],
    *,
    smallest: float = 1.0,
) -> Detections:
    """Corners clipped to [0, right] x [0, bottom]; boxes narrower or lower than `smallest` go.

    Args:
        x1, y1, x2, y2: (N,) float32, pixels.
        scores, class_ids: (N,).
        smallest: pixels; sizes below it are dropped, equality stays.
    """
    boxes = np.empty((len(x1), 4), np.float32)
    left, top, width, height = boxes.T
    # minimum/maximum without np.clip: half the time on a thousand boxes.
    np.maximum(np.minimum(x1, np.float32(right)), np.float32(0), out=left)
    np.maximum(np.minimum(y1, np.float32(bottom)), np.float32(0), out=top)
    np.maximum(np.minimum(x2, np.float32(right)), np.float32(0), out=width)
    np.maximum(np.minimum(y2, np.float32(bottom)), np.float32(0), out=height)
    boxes[:, 2:] -= boxes[:, :2]
    keep = (width >= smallest) & (height >= smallest)
    return _finite(boxes, scores, class_ids, keep)


def pack(
    left: npt.NDArray[Any],
    top: npt.NDArray[Any],
    width: npt.NDArray[Any],
    height: npt.NDArray[Any],
    scores: npt.NDArray[Any],
    class_ids: npt.NDArray[Any],
    keep: npt.NDArray[np.bool_] | None = None,
) -> Detections:
    """Boxes from four columns; rows outside `keep` and rows that are not finite are left out."""
    boxes = np.empty((len(left), 4), np.float32)
    boxes[:, 0], boxes[:, 1], boxes[:, 2], boxes[:, 3] = left, top, width, height
    if keep is None:
        keep = np.ones(len(boxes), np.bool_)
    return _finite(boxes, scores, class_ids, keep)


def _finite(
    boxes: FloatArray,
    scores: npt.NDArray[Any],
    class_ids: npt.NDArray[Any],
    keep: npt.NDArray[np.bool_],
) -> Detections:
    if not np.isfinite(boxes).all():
        keep = keep & np.isfinite(boxes).all(axis=1)
    if not keep.all():
        boxes, scores, class_ids = boxes[keep], scores[keep], class_ids[keep]
    return Detections(boxes, scores, class_ids)


def class_numbers(values: npt.NDArray[Any]) -> IntArray:
    """(N,) class ids given as numbers, cut to integers; what is no number becomes -1."""
    if values.dtype.kind in "iu":
        values = np.clip(values, -1, 2**31 - 1)
        return np.asarray(values, np.int32)
    inside = np.abs(values) < 2**31  # false for NaN
    return np.where(inside, values, -1).astype(np.int32)


def first_threshold(params: DetectionParams) -> float:
    """The threshold of class 0, which several heads use for every class."""
    return float(params.per_class_threshold[0]) if len(params.per_class_threshold) else np.inf


def column_thresholds(params: DetectionParams, class_ids: npt.NDArray[Any]) -> FloatArray:
    """(N,) the threshold of each class id; infinite for ids outside the configured range."""
    known = params.per_class_threshold[: params.num_classes]
    table = np.append(np.asarray(known, np.float32), np.float32(np.inf))
    inside = (class_ids >= 0) & (class_ids < len(known))
    return table[np.where(inside, class_ids, len(known))]


def sigmoid(x: npt.NDArray[Any]) -> FloatArray:
    """1 / (1 + exp(-x)) in float32, without overflow warnings."""
    with np.errstate(over="ignore"):
        result = 1 / (1 + np.exp(-x.astype(np.float32, copy=False)))
    return np.asarray(result, np.float32)
