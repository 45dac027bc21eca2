"""Suppression as the standard plugins do it. The loops are native (`native/src/plugins/nms*.cpp`).

A box with a NaN neither suppresses nor is suppressed; a NaN score is no candidate. Among equal
scores the lower index (box, then class) goes first; a GPU's order of ties is not reproducible.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from headrace._core import _native
from headrace._core.types import Array

FloatArray = npt.NDArray[np.float32]
IntArray = npt.NDArray[np.int32]

MAX_CANDIDATES = 5000
"""EfficientNMS looks at no more than this many scores of an image, the best."""

_NO_LOGIT = -32768.0  # what the original takes for the logit of 0


class PlusOne(IntEnum):
    """Where an edge of a box counts as a pixel; the numbers are those of `plugins/nms.h`."""

    NONE = 0
    AREAS = 1
    AREAS_AND_OVERLAP = 2


@dataclass(frozen=True, slots=True)
class Kept:
    """The surviving boxes of B images, in K rows each, the best first, zeros from `count` on.

    Attributes:
        count: (B,) int32.
        boxes: (B, K, 4) float32.
        scores: (B, K) float32.
        classes: (B, K) int32.
        rows: (B, K) int32, the input box of each.
    """

    count: IntArray
    boxes: FloatArray
    scores: FloatArray
    classes: IntArray
    rows: IntArray

    @classmethod
    def empty(cls, images: int, keep: int) -> Kept:
        """Room for `keep` rows of each of `images`."""
        return cls(
            np.zeros(images, np.int32),
            np.zeros((images, keep, 4), np.float32),
            np.zeros((images, keep), np.float32),
            np.zeros((images, keep), np.int32),
            np.zeros((images, keep), np.int32),
        )

    @property
    def arrays(self) -> tuple[Array, ...]:
        """All arrays, in the order in which native code fills them."""
        return self.count, self.boxes, self.scores, self.classes, self.rows

    @property
    def padding(self) -> npt.NDArray[np.bool_]:
        """(B, K), true for the rows that nothing fills."""
        unfilled: npt.NDArray[np.bool_] = np.arange(self.scores.shape[1]) >= self.count[
            :, None
        ].astype(np.int64)
        return unfilled


def efficient_nms(
    boxes: Array,
    scores: Array,
    anchors: Array | None = None,
    *,
    keep: int,
    score_threshold: float,
    iou_threshold: float,
    background: int = -1,
    sigmoid: bool = False,
    centres: bool = False,
    agnostic: bool = False,
    per_class: int = 0,
    clip: bool = False,
) -> Kept:
    """EfficientNMS: the best 5,000 scores of all classes in one list, suppressed greedily.

    Args:
        boxes: (B, N, 1 or C, 4) float: corners, in either axis order, or centre and size.
        scores: (B, N, C) float.
        anchors: (1 or B, N, 4) that the boxes are relative to, in the same coding.
        keep: K, rows of the output.
        score_threshold: scores at or above are candidates.
        iou_threshold: an overlap at or above suppresses.
        background: class to ignore, -1 for none.
        sigmoid: the scores are logits; the threshold is not.
        centres: boxes are centre and size; corners come out.
        agnostic: boxes of different classes suppress each other.
        per_class: rows that one class fills at most, 0 for no limit.
        clip: boxes are cut to 0..1 in the output.

    Source: standard-plugins spec 3.1 to 3.3.
    """
    if sigmoid:
        score_threshold = _logit(score_threshold)
    kept = Kept.empty(len(boxes), keep)
    _native.efficient_nms(
        _dense(boxes),
        _dense(scores),
        None if anchors is None else _dense(anchors),
        score_threshold,
        iou_threshold,
        per_class,
        background,
        sigmoid,
        centres,
        agnostic,
        clip,
        *kept.arrays,
    )
    return kept


def batched_nms(
    boxes: Array,
    scores: Array,
    *,
    keep: int,
    top: int,
    score_threshold: float,
    iou_threshold: float,
    background: int = -1,
    plus_one: PlusOne = PlusOne.NONE,
    clip: bool = False,
) -> Kept:
    """BatchedNMS: each class on its own, then the best of all.

    Args:
        boxes: (B, N, 1 or C, 4) float, corners.
        scores: (B, N, C) float; above `score_threshold` is a candidate.
        keep: K, rows of the output.
        top: candidates of one class, the best.
        score_threshold: candidates have a score above it.
        iou_threshold: an overlap above suppresses.
        background: class to skip; -1 for none.
        plus_one: where edges count as a pixel.
        clip: True cuts the boxes to 0..1.

    Source: standard-plugins spec 3.4.
    """
    kept = Kept.empty(len(boxes), keep)
    _native.batched_nms(
        _dense(boxes),
        _dense(scores),
        score_threshold,
        iou_threshold,
        background,
        top,
        int(plus_one),
        clip,
        *kept.arrays,
    )
    return kept


def greedy_nms(
    boxes: Array,
    *,
    iou_threshold: float,
    keep: int | None = None,
    class_ids: Array | None = None,
    plus_one: PlusOne = PlusOne.NONE,
) -> npt.NDArray[np.int32]:
    """Rows of `boxes` (N, 4), best first, that no better box overlaps by more than the threshold.

    Args:
        boxes: (N, 4), corners, the best first.
        iou_threshold: an overlap above suppresses.
        keep: stop at this many.
        class_ids: (N,); only boxes of one class suppress each other.
        plus_one: where edges count as a pixel.
    """
    rows = np.empty(len(boxes) if keep is None else min(keep, len(boxes)), np.int32)
    classes = None if class_ids is None else np.ascontiguousarray(class_ids, np.int32)
    count = _native.greedy_nms(_dense(boxes), classes, iou_threshold, False, int(plus_one), rows)
    return rows[:count]


def _logit(p: float) -> float:
    if p <= 0:
        return _NO_LOGIT
    return math.log(p / (1 - p)) if p < 1 else math.inf


def _dense(array: Array) -> FloatArray:
    return np.ascontiguousarray(array, np.float32)
