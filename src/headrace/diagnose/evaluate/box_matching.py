"""True and found boxes of an image, and which of them are the same objects."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Any

import numpy as np
import numpy.typing as npt

from headrace._core import _native
from headrace.meta.detections import overlaps

Array = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Truth:
    """True objects of an image.

    Attributes:
        boxes: (N, 4) left, top, width, height in frame pixels.
        class_ids: (N,).
        crowd: (N,) bool; a crowd need not be found, and may be found several times.
        difficult: (N,) bool; such an object need not be found; None if there is none.
        areas: (N,) square pixels, which decide the size of an object; None takes the boxes'.
        masks: N segmentations as COCO has them (polygons, or run lengths); None if none is known.
    """

    boxes: Array
    class_ids: Ints
    crowd: Bools
    difficult: Bools | None = None
    areas: Array | None = None
    masks: tuple[Any, ...] | None = None

    @property
    def ignored(self) -> Bools:
        """(N,) bool; objects that need not be found."""
        return self.crowd if self.difficult is None else self.crowd | self.difficult

    def select(self, kept: Bools) -> Truth:
        """Those of the given places."""
        return Truth(
            self.boxes[kept],
            self.class_ids[kept],
            self.crowd[kept],
            None if self.difficult is None else self.difficult[kept],
            None if self.areas is None else self.areas[kept],
            None if self.masks is None else tuple(compress(self.masks, kept.tolist())),
        )


@dataclass(frozen=True, slots=True)
class Scored:
    """Objects that a model found in an image.

    Attributes:
        boxes, class_ids: as those of `Truth`.
        scores: (N,) confidences.
        masks: N run lengths (`rle_encode`) of the whole image; None if there are none.
        angles: (N,) degrees, clockwise, by which the boxes are turned; None if all are upright.
    """

    boxes: Array
    class_ids: Ints
    scores: Array
    masks: tuple[str, ...] | None = None
    angles: npt.NDArray[np.floating] | None = None

    @classmethod
    def of(
        cls,
        boxes: npt.ArrayLike,
        class_ids: npt.ArrayLike,
        scores: npt.ArrayLike,
        masks: tuple[str, ...] | None = None,
        angles: npt.NDArray[np.floating] | None = None,
    ) -> Scored:
        """Take objects in other types: of a model, or in lists."""
        rects = np.asarray(boxes, np.float64).reshape(-1, 4)
        ids = np.asarray(class_ids, np.int64)
        return cls(rects, ids, np.asarray(scores, np.float64), masks, angles)

    def select(self, kept: Ints | Bools) -> Scored:
        """Those of the given places, in that order."""
        masks = self.masks
        if masks is not None:
            masks = tuple(masks[i] for i in np.arange(len(masks))[kept].tolist())
        angles = None if self.angles is None else self.angles[kept]
        return Scored(self.boxes[kept], self.class_ids[kept], self.scores[kept], masks, angles)


@dataclass(frozen=True, slots=True)
class Matches:
    """Pairs of found and true boxes of an image.

    Attributes:
        hit: (N,) bool; the found box is a true object's.
        ignored: (N,) bool; the found box counts neither as right nor as wrong.
        missed: (M,) bool; the true object had to be found, and was not.
    """

    hit: Bools
    ignored: Bools
    missed: Bools

    @property
    def false(self) -> Bools:
        """(N,) bool; the found box is no object."""
        return ~(self.hit | self.ignored)


def shared(a: Scored, b: Scored) -> Array:
    """(N, M) intersection over union of objects, of their turned rectangles where they have angles.

    Upright boxes are in float64, turned ones are rounded to float32 first.
    """
    if a.angles is None and b.angles is None:
        return overlaps(a.boxes, b.boxes)

    def radians(side: Scored) -> npt.NDArray[np.float32]:
        degrees = np.zeros(len(side.boxes)) if side.angles is None else side.angles
        return np.radians(degrees).astype(np.float32)

    ious = np.empty((len(a.boxes), len(b.boxes)))
    _native.rotated_iou(
        a.boxes.astype(np.float32), radians(a), b.boxes.astype(np.float32), radians(b), ious
    )
    return ious


def match_boxes(truth: Truth, detections: Scored, iou: float = 0.5) -> Matches:
    """Pair boxes of one class, the surest found box first, each with the true one it covers best.

    A box without such a partner may take an object that need not be found; it is ignored then.
    Source: the COCO evaluation.
    """
    n, m = len(detections.boxes), len(truth.boxes)
    hit, ignored = np.zeros(n, np.bool_), np.zeros(n, np.bool_)
    optional = truth.ignored
    free = np.ones(m, np.bool_)
    if n and m:
        share = overlaps(detections.boxes, truth.boxes, truth.crowd)
        share = np.where(detections.class_ids[:, None] == truth.class_ids[None], share, -1.0)
        bound = min(iou, 1 - 1e-10)
        near: Bools = np.any(share >= bound, axis=1)
        order = np.argsort(-detections.scores, kind="stable")
        for i in order[near[order]].tolist():
            for eligible in (~optional, optional):
                open_to = np.where(free & eligible, share[i], -1.0)
                best = m - 1 - int(np.argmax(open_to[::-1]))  # of equals the last, as COCO
                if open_to[best] >= bound:
                    hit[i], ignored[i] = not optional[best], optional[best]
                    free[best] = truth.crowd[best]
                    break
    return Matches(hit, ignored, free & ~optional)


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
        near = shared(mine.select(sure), theirs) >= iou
        there += int((same & near).any(axis=1).sum())
        total += int(sure.sum())
    return there / total if total else float("nan")
