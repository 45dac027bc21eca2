"""COCO's mean average precision of boxes and masks, computed by faster-coco-eval."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from headrace._core.lazy import import_extra
from headrace.diagnose.evaluate.box_matching import Array, Scored, Truth

IOU_THRESHOLDS: Array = np.linspace(0.5, 0.95, 10)
SIZES = ("all", "small", "medium", "large")
"""Objects of any area; below 32 x 32, from there below 96 x 96, and larger, in square pixels."""

MOST_PER_IMAGE = 100
"""Boxes of a class in an image that count, the surest ones."""

_NEVER = -1.0  # an area outside every range: the object need not be found, nor may it count


@dataclass(frozen=True, slots=True)
class CocoScores:
    """Precision of every class by IoU, recall and size, as the COCO evaluation has it.

    Attributes:
        thresholds: (T,) IoU.
        precision: (T, 101, K, 4) at the recalls 0, 0.01 … 1; -1 where a class has no object.
        recall: (T, K, 4) reached with 100 boxes of a class in an image; -1 alike.
    """

    thresholds: Array
    precision: Array
    recall: Array

    def ap(self, iou: float | None = None, class_id: int | None = None, size: str = "all") -> float:
        """Average precision, 0 to 1; NaN where there is no object.

        Args:
            iou: one of `thresholds`; None is the mean over all of them.
            class_id: None is the mean over classes that have objects.
            size: one of `SIZES`.
        """
        return _mean(self.precision[self._place(iou), :, :, SIZES.index(size)], class_id)

    def ar(self, class_id: int | None = None, size: str = "all") -> float:
        """Average recall over the IoU thresholds, 0 to 1; NaN where there is no object."""
        return _mean(self.recall[:, None, :, SIZES.index(size)], class_id)

    def curve(self, class_id: int | None = None, iou: float = 0.5) -> Array:
        """(101,) precision by recall of a class, or its mean; NaN where there is no object."""
        precisions = self.precision[self._place(iou), :, :, 0][0]
        known = precisions[:, precisions[0] >= 0] if class_id is None else precisions[:, [class_id]]
        if not known.size or (known < 0).any():
            return np.full(len(precisions), np.nan)
        return np.asarray(known.mean(axis=1))

    def _place(self, iou: float | None) -> slice:
        if iou is None:
            return slice(None)
        index = int(np.argmin(abs(self.thresholds - iou)))
        return slice(index, index + 1)


def _mean(values: Array, class_id: int | None) -> float:
    """Mean of (T, R, K) where it is known."""
    chosen = values if class_id is None else values[:, :, class_id]
    known = chosen[chosen > -1]
    return float(known.mean()) if known.size else math.nan


def coco_scores(
    truths: Sequence[Truth],
    detections: Sequence[Scored],
    classes: int,
    *,
    thresholds: Array = IOU_THRESHOLDS,
    kind: Literal["bbox", "segm"] = "bbox",
    sizes: Sequence[tuple[int, int]] = (),
) -> CocoScores:
    """Run the COCO evaluation.

    Args:
        truths, detections: of each image; class ids from 0 to `classes` - 1.
        classes: how many there are.
        thresholds: (T,) IoU.
        kind: `segm` compares masks, which every object then has.
        sizes: width and height of each image in pixels, for masks.

    Raises:
        MissingExtraError: the extra `eval` is not installed.
    """
    faster = import_extra("faster_coco_eval", "eval")
    rows, results = _annotations(truths, kind), _Results(detections, sizes)
    shape = (len(thresholds), 101, 1, len(SIZES))
    precision, recall = [], []
    for k in range(classes):  # one at a time: a dictionary for each box takes a kilobyte
        annotations, of_class = rows.get(k, []), results.of(k)
        if not annotations:  # without objects nothing is known
            precision.append(np.full(shape, -1.0))
            recall.append(np.full((shape[0], *shape[2:]), -1.0))
            continue
        images = sorted({row["image_id"] for row in (*annotations, *of_class)})
        width_height = {i: sizes[i - 1] if sizes else (1, 1) for i in images}
        dataset = faster.COCO(
            {
                "images": [{"id": i, "width": w, "height": h}
                           for i, (w, h) in width_height.items()],
                "annotations": annotations,
                "categories": [{"id": k + 1, "name": str(k)}],
            }
        )  # fmt: skip
        evaluation = faster.COCOeval_faster(dataset, dataset.loadRes(of_class), kind)
        evaluation.params.iouThrs = np.asarray(thresholds, np.float64)
        evaluation.evaluate()
        evaluation.accumulate()
        precision.append(np.asarray(evaluation.eval["precision"], np.float64)[..., -1])
        recall.append(np.asarray(evaluation.eval["recall"], np.float64)[..., -1])
    return CocoScores(thresholds, np.concatenate(precision, axis=2), np.concatenate(recall, axis=1))


def average_precision(
    truths: Sequence[Truth], detections: Sequence[Scored], thresholds: Array = IOU_THRESHOLDS
) -> float:
    """Mean over classes that occur and IoU thresholds, 0 to 1; NaN if nothing is true.

    Raises:
        MissingExtraError: the extra `eval` is not installed.
    Source: the COCO evaluation (101 recall points, at most 100 boxes of a class in an image).
    """
    ids = [*(t.class_ids for t in truths), *(f.class_ids for f in detections)]
    count = max((int(one.max(initial=0)) for one in ids), default=0) + 1
    return coco_scores(truths, detections, count, thresholds=thresholds).ap()


def _annotations(truths: Sequence[Truth], kind: str) -> dict[int, list[dict[str, Any]]]:
    """The annotations of each class."""
    by_class: dict[int, list[dict[str, object]]] = {}
    number = 0  # is never an id: COCO's evaluation takes it for no object
    for image, truth in enumerate(truths, 1):
        areas = truth.boxes[:, 2:].prod(axis=1) if truth.areas is None else truth.areas
        if truth.difficult is not None:
            areas = np.where(truth.difficult, _NEVER, areas)
        for i, k in enumerate(truth.class_ids.tolist()):
            number += 1
            row: dict[str, Any] = {
                "id": number,
                "image_id": image,
                "category_id": k + 1,
                "bbox": truth.boxes[i].tolist(),
                "area": float(areas[i]),
                "iscrowd": int(truth.crowd[i]),
            }
            if kind == "segm":
                assert truth.masks is not None
                row["segmentation"] = truth.masks[i]
            by_class.setdefault(k, []).append(row)
    return by_class


class _Results:
    """The boxes of each class that count, as COCO's results."""

    def __init__(self, detections: Sequence[Scored], sizes: Sequence[tuple[int, int]]) -> None:
        images = np.repeat(np.arange(len(detections)), [len(f.scores) for f in detections])
        self._ids = np.concatenate([f.class_ids for f in detections] or [np.zeros(0, np.int64)])
        self._scores = np.concatenate([f.scores for f in detections] or [np.zeros(0)])
        self._boxes = np.concatenate([f.boxes for f in detections] or [np.zeros((0, 4))])
        self._masks = [m for f in detections for m in f.masks or ()] if sizes else []
        self._images, self._sizes = images, sizes
        # by class, image and confidence: the place within an image is a count from its start
        order = np.lexsort((-self._scores, images, self._ids))
        groups = np.stack((self._ids[order], images[order]))
        starts = np.flatnonzero(np.r_[True, (groups[:, 1:] != groups[:, :-1]).any(axis=0)])
        rank = np.arange(len(order)) - np.repeat(starts, np.diff(np.r_[starts, len(order)]))
        self._order = order[rank < MOST_PER_IMAGE]

    def of(self, class_id: int) -> list[dict[str, Any]]:
        """A dictionary for each box of a class."""
        rows: list[dict[str, Any]] = []
        for i in self._order[self._ids[self._order] == class_id].tolist():
            image = int(self._images[i])
            row: dict[str, Any] = {"image_id": image + 1, "category_id": class_id + 1}
            row["score"] = float(self._scores[i])
            if self._sizes:  # the area of a result is that of its mask then
                width, height = self._sizes[image]
                row["segmentation"] = {"size": [height, width], "counts": self._masks[i]}
            else:
                row |= {"bbox": self._boxes[i].tolist(), "segmentation": None}
            rows.append(row)
        return rows
