"""Precision, recall and F1 at a threshold, and the threshold with the best F1."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from headrace._core.json_record import finite
from headrace.diagnose.evaluate.box_matching import Array, Bools, Ints, Matches, Scored, Truth


@dataclass(frozen=True, slots=True)
class OperatingPoint:
    """Boxes above a threshold, paired with true ones at an IoU of 0.5.

    Attributes:
        threshold: least confidence; None where classes have thresholds of their own.
        right: found boxes that are objects.
        false: found boxes that are none.
        missed: objects that were not found.
    """

    threshold: float | None
    right: int
    false: int
    missed: int

    @property
    def precision(self) -> float:
        """Share of the found boxes that is right; NaN if none was found."""
        positives = self.right + self.false
        return self.right / positives if positives else math.nan

    @property
    def recall(self) -> float:
        """Share of the objects that was found; NaN if there are none."""
        true = self.right + self.missed
        return self.right / true if true else math.nan

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall; NaN if nothing is true or found."""
        both = 2 * self.right + self.false + self.missed
        return 2 * self.right / both if both else math.nan

    def to_dict(self) -> dict[str, Any]:
        """The same as JSON has it; null for unknown shares."""
        return {
            "threshold": self.threshold,
            "precision": finite(self.precision, 6),
            "recall": finite(self.recall, 6),
            "f1": finite(self.f1, 6),
            "right": self.right,
            "false": self.false,
            "missed": self.missed,
        }


def points_at(
    truths: Sequence[Truth],
    detections: Sequence[Scored],
    matches: Sequence[Matches],
    thresholds: Sequence[float | None],
) -> list[OperatingPoint]:
    """Count each class; `detections` are the boxes that its threshold left."""
    size = len(thresholds)

    def count(ids: list[Ints]) -> Ints:
        joined = np.concatenate(ids) if ids else np.zeros(0, np.int64)
        return np.bincount(joined, minlength=size).astype(np.int64)

    right = count([f.class_ids[m.hit] for f, m in zip(detections, matches, strict=True)])
    false = count([f.class_ids[m.false] for f, m in zip(detections, matches, strict=True)])
    missed = count([t.class_ids[m.missed] for t, m in zip(truths, matches, strict=True)])
    return [
        OperatingPoint(t, int(right[k]), int(false[k]), int(missed[k]))
        for k, t in enumerate(thresholds)
    ]


def best_points(
    truths: Sequence[Truth], detections: Sequence[Scored], matches: Sequence[Matches], classes: int
) -> list[OperatingPoint | None]:
    """The threshold with the best F1 of each class; None without objects.

    It lies in the middle between the last box that it keeps and the first that it drops. Pairs are
    made from the surest box on, so those above any threshold are a beginning of them.
    """
    scores, ids, hits, counted = _joined(detections, matches)
    expected = np.zeros(classes, np.int64)
    for truth in truths:
        expected += np.bincount(truth.class_ids[~truth.ignored], minlength=classes)
    best: list[OperatingPoint | None] = []
    for k in range(classes):
        mine = np.flatnonzero((ids == k) & counted)
        order = mine[np.argsort(-scores[mine], kind="stable")]
        if not expected[k]:
            best.append(None)
            continue
        right = np.cumsum(hits[order])
        if not right.size or not right[-1]:
            best.append(OperatingPoint(None, 0, 0, int(expected[k])))
            continue
        number = np.arange(1, len(order) + 1)
        f1 = 2 * right / (number + expected[k])
        # equal scores stand or fall together
        f1[:-1][scores[order][:-1] == scores[order][1:]] = -1
        last_kept = int(np.argmax(f1))
        dropped = float(scores[order[last_kept + 1]]) if last_kept + 1 < len(order) else 0.0
        threshold = (float(scores[order[last_kept]]) + dropped) / 2
        hit = int(right[last_kept])
        best.append(OperatingPoint(threshold, hit, last_kept + 1 - hit, int(expected[k]) - hit))
    return best


def _joined(
    detections: Sequence[Scored], matches: Sequence[Matches]
) -> tuple[Array, Array, Bools, Bools]:
    def join(parts: list[Any]) -> Any:
        return np.concatenate(parts) if parts else np.zeros(0)

    return (
        join([f.scores for f in detections]),
        join([f.class_ids for f in detections]),
        join([m.hit for m in matches]).astype(np.bool_),
        ~join([m.ignored for m in matches]).astype(np.bool_),
    )


def total(points: Sequence[OperatingPoint]) -> OperatingPoint:
    """All classes together."""
    thresholds = {p.threshold for p in points}
    return OperatingPoint(
        thresholds.pop() if len(thresholds) == 1 else None,
        sum(p.right for p in points),
        sum(p.false for p in points),
        sum(p.missed for p in points),
    )
