"""COCO's mean average precision of boxes, and the share of boxes that two models agree on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

IOU_THRESHOLDS: Array = 0.5 + 0.05 * np.arange(10, dtype=np.float64)
_RECALLS = np.linspace(0, 1, 101)
_MOST_PER_PICTURE = 100


@dataclass(frozen=True, slots=True)
class Truth:
    """True objects of a picture.

    Attributes:
        boxes: (N, 4) left, top, width, height in frame pixels.
        class_ids: (N,).
        crowd: (N,) bool; a crowd need not be found, and may be found several times.
    """

    boxes: Array
    class_ids: npt.NDArray[np.int64]
    crowd: npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Scored:
    """Objects that a model found in a picture: boxes as in `Truth`, with their confidences (N,)."""

    boxes: Array
    class_ids: npt.NDArray[np.int64]
    scores: Array


def overlaps(found: Array, true: Array, crowd: npt.NDArray[np.bool_] | None = None) -> Array:
    """(N, M) intersection over union; over a crowd's boxes, over the area of the found box."""
    low = np.maximum(found[:, None, :2], true[None, :, :2])
    high = np.minimum(
        found[:, None, :2] + found[:, None, 2:], true[None, :, :2] + true[None, :, 2:]
    )
    inter = np.maximum(high - low, 0).prod(axis=2)
    area = found[:, 2:].prod(axis=1)[:, None]
    union = area + true[:, 2:].prod(axis=1)[None] - inter
    if crowd is not None:
        union = np.where(crowd[None], area, union)
    return np.asarray(inter / np.maximum(union, 1e-12))


def average_precision(
    truths: Sequence[Truth], found: Sequence[Scored], thresholds: Array = IOU_THRESHOLDS
) -> float:
    """Mean over classes that occur and IoU thresholds, 0 to 1; NaN if nothing is true.

    Source: the COCO evaluation (101 recall points, at most 100 boxes of a class in a picture).
    """
    classes = sorted({int(c) for t in truths for c in t.class_ids[~t.crowd]})
    values = [_of_class(c, truths, found, thresholds) for c in classes]
    return float(np.mean(values)) if values else float("nan")


def _of_class(
    class_id: int, truths: Sequence[Truth], found: Sequence[Scored], thresholds: Array
) -> Array:
    """(T,) average precision of one class."""
    scores, hits, ignored, wanted = [], [], [], 0
    for true, seen in zip(truths, found, strict=True):
        mine = true.class_ids == class_id
        order = np.argsort(-seen.scores[seen.class_ids == class_id], kind="stable")
        order = np.flatnonzero(seen.class_ids == class_id)[order][:_MOST_PER_PICTURE]
        wanted += int((~true.crowd[mine]).sum())
        hit, ignore = _match(seen.boxes[order], true.boxes[mine], true.crowd[mine], thresholds)
        scores.append(seen.scores[order])
        hits.append(hit)
        ignored.append(ignore)
    by_score = np.argsort(-np.concatenate(scores), kind="stable")
    hit, ignore = np.concatenate(hits, axis=1), np.concatenate(ignored, axis=1)
    hit, ignore = hit[:, by_score], ignore[:, by_score]
    values = np.zeros(len(thresholds))
    for t in range(len(thresholds)):
        counts = hit[t][~ignore[t]]
        right = np.cumsum(counts)
        if not right.size:
            continue
        precision = right / np.arange(1, right.size + 1)
        precision = np.maximum.accumulate(precision[::-1])[::-1]
        place = np.searchsorted(right / wanted, _RECALLS, side="left")
        reached = place < right.size
        values[t] = precision[place[reached]].sum() / len(_RECALLS)
    return values


def _match(
    found: Array, true: Array, crowd: npt.NDArray[np.bool_], thresholds: Array
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """(T, N) which found boxes, best first, take a true one; which only lie in a crowd."""
    hit = np.zeros((len(thresholds), len(found)), bool)
    ignore = np.zeros_like(hit)
    if not len(true) or not len(found):
        return hit, ignore
    iou = overlaps(found, true, crowd)
    for t, threshold in enumerate(thresholds):
        free = ~crowd
        for i in range(len(found)):
            open_to = np.where(free, iou[i], -1.0)
            best = len(true) - 1 - int(np.argmax(open_to[::-1]))  # of equals the last, as COCO
            if open_to[best] >= min(threshold, 1 - 1e-10):
                hit[t, i], free[best] = True, False
            elif crowd.any() and iou[i][crowd].max() >= min(threshold, 1 - 1e-10):
                ignore[t, i] = True
    return hit, ignore


def agreement(
    reference: Sequence[Scored], other: Sequence[Scored], *, score: float = 0.5, iou: float = 0.8
) -> float:
    """Share of the reference's boxes of at least `score` that the other has, too; NaN if none.

    A box is there if the other found one of the same class that overlaps it by `iou`.
    """
    there, total = 0, 0
    for mine, theirs in zip(reference, other, strict=True):
        sure = mine.scores >= score
        same = mine.class_ids[sure][:, None] == theirs.class_ids[None]
        near = overlaps(mine.boxes[sure], theirs.boxes) >= iou
        there += int((same & near).any(axis=1).sum())
        total += int(sure.sum())
    return there / total if total else float("nan")
