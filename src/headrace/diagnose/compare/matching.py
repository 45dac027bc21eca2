"""Boxes of one model matched with those of another, and how far they have moved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from headrace._core.json_record import finite
from headrace.diagnose.evaluate.box_matching import Array, Scored, shared

Rows = npt.NDArray[np.int64]

LEAST_IOU = 0.5
"""Boxes that overlap less are no pair."""


@dataclass(frozen=True, slots=True, eq=False)
class BoxPairs:
    """Objects of one frame, A against B.

    Attributes:
        rows: (K, 2) rows of the pairs, of the same class.
        ious: (K,) intersection over union of each pair.
        changed: (M, 2) rows of pairs at one place with another class.
        only_a, only_b: rows without a partner.
    """

    rows: Rows
    ious: Array
    changed: Rows
    only_a: Rows
    only_b: Rows


def pair_boxes(a: Scored, b: Scored, least: float = LEAST_IOU) -> BoxPairs:
    """Pair boxes greedily, the best overlap first, each at most once.

    Pairs of one class go before pairs of two.

    Args:
        a, b: objects in frame pixels.
        least: the lowest IoU of a pair.
    """
    iou = np.nan_to_num(shared(a, b), nan=0.0)
    same = a.class_ids[:, None] == b.class_ids[None]
    rows = _greedy(np.where(same, iou, 0.0), least)
    free = np.where(same, 0.0, iou)
    free[rows[:, 0]] = 0.0
    free[:, rows[:, 1]] = 0.0
    changed = _greedy(free, least)
    used = np.concatenate([rows, changed])
    return BoxPairs(
        rows,
        iou[rows[:, 0], rows[:, 1]],
        changed,
        np.setdiff1d(np.arange(len(a.boxes)), used[:, 0]),
        np.setdiff1d(np.arange(len(b.boxes)), used[:, 1]),
    )


def _greedy(iou: Array, least: float) -> Rows:
    first, second = np.nonzero(iou >= max(least, 1e-9))
    order = np.argsort(-iou[first, second], kind="stable")
    taken_a, taken_b = set[int](), set[int]()
    pairs = []
    for i, j in zip(first[order].tolist(), second[order].tolist(), strict=True):
        if i not in taken_a and j not in taken_b:
            taken_a.add(i)
            taken_b.add(j)
            pairs.append((i, j))
    return np.array(sorted(pairs), np.int64).reshape(-1, 2)


class Spread(NamedTuple):
    """Median, 95th percentile and greatest of absolute differences; NaN of none."""

    median: float
    p95: float
    largest: float

    @classmethod
    def of(cls, values: Array) -> Spread:
        """Sum up absolute values."""
        if not len(values):
            return cls(float("nan"), float("nan"), float("nan"))
        size = np.abs(values)
        high = np.quantile(size, 0.95, method="inverted_cdf")
        return cls(float(np.median(size)), float(high), float(size.max()))


class Tolerance(NamedTuple):
    """Differences that do not count.

    Attributes:
        iou: the lowest IoU of a pair.
        score: the largest difference of its scores.
    """

    iou: float = 0.98
    score: float = 0.01


@dataclass(slots=True, eq=False)
class Drift:
    """Objects of any number of frames, A against B.

    Attributes:
        boxes_a, boxes_b: how many there are.
        only_a, only_b: those without a partner.
        class_changed: pairs at one place with another class.
        label_changed: pairs of one class with another label.
    """

    boxes_a: int = 0
    boxes_b: int = 0
    only_a: int = 0
    only_b: int = 0
    class_changed: int = 0
    label_changed: int = 0
    _ious: list[Array] = field(default_factory=list)
    _scores: list[Array] = field(default_factory=list)

    def add(
        self,
        a: Scored,
        b: Scored,
        labels: tuple[Mapping[int, str], Mapping[int, str]] = ({}, {}),
    ) -> BoxPairs:
        """Count one frame.

        Args:
            a, b: its objects.
            labels: names of the classes on each side.
        """
        pairs = pair_boxes(a, b)
        self.boxes_a += len(a.boxes)
        self.boxes_b += len(b.boxes)
        self.only_a += len(pairs.only_a)
        self.only_b += len(pairs.only_b)
        self.class_changed += len(pairs.changed)
        first, second = a.scores[pairs.rows[:, 0]], b.scores[pairs.rows[:, 1]]
        with np.errstate(invalid="ignore"):
            moved = np.where(np.isnan(first) & np.isnan(second), 0.0, second - first)
        self._ious.append(pairs.ious)
        self._scores.append(np.nan_to_num(moved, nan=np.inf))
        for class_id in a.class_ids[pairs.rows[:, 0]].tolist():
            self.label_changed += labels[0].get(class_id, "") != labels[1].get(class_id, "")
        return pairs

    @property
    def ious(self) -> Array:
        """(K,) of all pairs."""
        return np.concatenate([*self._ious, np.empty(0)])

    @property
    def score_changes(self) -> Array:
        """(K,) score of B less that of A."""
        return np.concatenate([*self._scores, np.empty(0)])

    @property
    def matched(self) -> int:
        """Number of pairs of one class."""
        return sum(map(len, self._ious))

    def beyond(self, tolerance: Tolerance) -> int:
        """Number of objects that differ by more than the tolerance."""
        ious, scores = self.ious, np.abs(self.score_changes)
        moved = int(((ious < tolerance.iou) | (scores > tolerance.score)).sum())
        return moved + self.only_a + self.only_b + self.class_changed + self.label_changed

    def to_dict(self) -> dict[str, Any]:
        """Figures for JSON."""
        ious, scores = self.ious, self.score_changes
        return {
            "boxes_a": self.boxes_a,
            "boxes_b": self.boxes_b,
            "matched": self.matched,
            "only_a": self.only_a,
            "only_b": self.only_b,
            "class_changed": self.class_changed,
            "label_changed": self.label_changed,
            "iou_min": finite(ious.min()) if len(ious) else None,
            "iou_median": finite(np.median(ious)) if len(ious) else None,
            "score_change_median": finite(np.median(scores)) if len(scores) else None,
            "score_drift": {k: finite(v) for k, v in Spread.of(scores)._asdict().items()},
            "iou_loss": {k: finite(v) for k, v in Spread.of(1 - ious)._asdict().items()},
        }
