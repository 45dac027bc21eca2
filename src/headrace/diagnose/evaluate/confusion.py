"""Confusion matrices: of classes, and of boxes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from headrace.diagnose.evaluate.box_matching import Array, Ints, Scored, Truth
from headrace.meta.detections import overlaps

NOTHING = "(nothing)"


@dataclass(frozen=True, slots=True)
class Confusion:
    """How often a class was taken for which.

    Attributes:
        names: N classes; the last one is `(nothing)`: no object, no answer.
        counts: (N, N) true class by found class.
    """

    names: tuple[str, ...]
    counts: Ints

    @property
    def recalls(self) -> Array:
        """(N - 1,) share of each true class that was found as such; NaN where it does not occur."""
        return _shares(np.diagonal(self.counts)[:-1], self.counts.sum(axis=1)[:-1])

    @property
    def precisions(self) -> Array:
        """(N - 1,) share of each found class that is it; NaN where it was not found."""
        return _shares(np.diagonal(self.counts)[:-1], self.counts.sum(axis=0)[:-1])

    @property
    def ious(self) -> Array:
        """(N - 1,) intersection over union of each class; NaN where it does not occur at all."""
        hit = np.diagonal(self.counts)[:-1]
        return _shares(hit, (self.counts.sum(axis=1) + self.counts.sum(axis=0))[:-1] - hit)

    @property
    def right(self) -> float:
        """Share of everything true that was found as it is; NaN if nothing is true."""
        return float(_shares(np.trace(self.counts[:-1, :-1]), self.counts[:-1].sum()))

    def mistakes(self, most: int) -> list[str]:
        """The most frequent mistakes in words, with their counts."""
        wrong = self.counts - np.diag(np.diagonal(self.counts))
        order = np.argsort(-wrong, axis=None, kind="stable")[:most]
        pairs = [(i // len(wrong), i % len(wrong)) for i in order.tolist()]
        return [f"{self._words(a, b)}: {wrong[a, b]:,}" for a, b in pairs if wrong[a, b]]

    def _words(self, true: int, predicted: int) -> str:
        last = len(self.names) - 1
        if true == last:
            return f"{self.names[predicted]} where nothing is"
        if predicted == last:
            return f"{self.names[true]} not found"
        return f"{self.names[true]} taken for {self.names[predicted]}"

    def to_dict(self) -> dict[str, Any]:
        """The same as JSON has it."""
        return {"names": list(self.names), "counts": self.counts.tolist()}


def _shares(part: Any, whole: Any) -> Array:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(np.asarray(whole) > 0, np.divide(part, whole), np.nan))


def mean_of(values: Iterable[float]) -> float:
    """Mean of the known shares; NaN if none is known."""
    known = [value for value in values if not math.isnan(value)]
    return float(np.mean(known)) if known else math.nan


def confusion_of(names: Sequence[str], true: Sequence[int], predicted: Sequence[int]) -> Confusion:
    """Count pairs of classes; -1 is none.

    Args:
        names: of the classes.
        true, predicted: (N,) each.
    """
    size = len(names) + 1
    pairs = np.asarray(true, np.int64) % size * size + np.asarray(predicted, np.int64) % size
    counts = np.bincount(pairs, minlength=size * size).reshape(size, size)
    return Confusion((*names, NOTHING), counts.astype(np.int64))


def box_confusion(
    names: Sequence[str], truths: Sequence[Truth], detections: Sequence[Scored], iou: float = 0.5
) -> Confusion:
    """Count boxes by the true box they cover best, of any class; each is used once.

    A found box without a true one stands in the row `(nothing)`, a true one without a found one in
    that column. Objects that need not be found do not count, nor do boxes on them.
    """
    rows: list[int] = []
    columns: list[int] = []
    for truth, seen in zip(truths, detections, strict=True):
        share = overlaps(seen.boxes, truth.boxes, truth.crowd)
        used, taken = np.zeros(len(seen.boxes), bool), np.zeros(len(truth.boxes), bool)
        i, j = np.nonzero((share >= iou) & ~truth.ignored)
        same = seen.class_ids[i] == truth.class_ids[j]
        # the same class first where two boxes lie on each other: duplicates are no confusion
        for k in np.lexsort((-share[i, j], ~same)).tolist():
            if not used[i[k]] and not taken[j[k]]:
                used[i[k]] = taken[j[k]] = True
                rows.append(int(truth.class_ids[j[k]]))
                columns.append(int(seen.class_ids[i[k]]))
        excused = ((share >= iou) & truth.ignored).any(axis=1)
        false, lost = seen.class_ids[~used & ~excused], truth.class_ids[~taken & ~truth.ignored]
        rows += [-1] * len(false) + lost.tolist()
        columns += false.tolist() + [-1] * len(lost)
    return confusion_of(names, rows, columns)
