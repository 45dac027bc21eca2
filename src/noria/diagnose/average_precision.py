"""COCO's mean average precision of boxes and masks, computed by faster-coco-eval."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from noria._core.lazy import import_extra
from noria.diagnose.box_matching import Array, Scored, Truth

IOU_THRESHOLDS: Array = np.linspace(0.5, 0.95, 10)
SIZES = ("all", "small", "medium", "large")
"""Objects of any area; below 32 x 32, from there below 96 x 96, and larger, in square pixels."""

MOST_PER_PICTURE = 100
"""Boxes of a class in a picture that count, the surest ones."""

_NEVER = -1.0  # an area outside every range: the object need not be found, nor may it count


@dataclass(frozen=True, slots=True)
class CocoScores:
    """Precision of every class by IoU, recall and size, as the COCO evaluation has it.

    Attributes:
        thresholds: (T,) IoU.
        precision: (T, 101, K, 4) at the recalls 0, 0.01 … 1; -1 where a class has no object.
        recall: (T, K, 4) reached with 100 boxes of a class in a picture; -1 alike.
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
        found = self.precision[self._place(iou), :, :, 0][0]
        known = found[:, found[0] >= 0] if class_id is None else found[:, [class_id]]
        if not known.size or (known < 0).any():
            return np.full(len(found), np.nan)
        return np.asarray(known.mean(axis=1))

    def _place(self, iou: float | None) -> slice:
        if iou is None:
            return slice(None)
        place = int(np.argmin(abs(self.thresholds - iou)))
        return slice(place, place + 1)


def _mean(values: Array, class_id: int | None) -> float:
    """Mean of (T, R, K) where it is known."""
    chosen = values if class_id is None else values[:, :, class_id]
    known = chosen[chosen > -1]
    return float(known.mean()) if known.size else math.nan


def coco_scores(
    truths: Sequence[Truth],
    found: Sequence[Scored],
    classes: int,
    *,
    thresholds: Array = IOU_THRESHOLDS,
    kind: Literal["bbox", "segm"] = "bbox",
    sizes: Sequence[tuple[int, int]] = (),
) -> CocoScores:
    """Run the COCO evaluation.

    Args:
        truths, found: of each picture; class ids from 0 to `classes` - 1.
        classes: how many there are.
        thresholds: (T,) IoU.
        kind: `segm` compares masks, which every object then has.
        sizes: width and height of each picture in pixels, for masks.

    Raises:
        MissingExtraError: the extra `noria[eval]` is not installed.
    """
    faster = import_extra("faster_coco_eval", "eval")
    annotations = [a for i, one in enumerate(truths, 1) for a in _annotations(i, one, kind)]
    results = [r for i, one in enumerate(found, 1) for r in _results(i, one, sizes)]
    for number, annotation in enumerate(annotations, 1):  # 0 stands for no object
        annotation["id"] = number
    dataset = faster.COCO(
        {
            "images": [
                {"id": i + 1, "width": w, "height": h}
                for i, (w, h) in enumerate(sizes or [(1, 1)] * len(truths))
            ],
            "annotations": annotations,
            "categories": [{"id": k + 1, "name": str(k)} for k in range(classes)],
        }
    )
    evaluation = faster.COCOeval_faster(dataset, dataset.loadRes(results), kind)
    evaluation.params.iouThrs = np.asarray(thresholds, np.float64)
    evaluation.evaluate()
    evaluation.accumulate()
    precision = np.asarray(evaluation.eval["precision"], np.float64)[..., -1]
    recall = np.asarray(evaluation.eval["recall"], np.float64)[..., -1]
    return CocoScores(thresholds, precision, recall)


def average_precision(
    truths: Sequence[Truth], found: Sequence[Scored], thresholds: Array = IOU_THRESHOLDS
) -> float:
    """Mean over classes that occur and IoU thresholds, 0 to 1; NaN if nothing is true.

    Raises:
        MissingExtraError: the extra `noria[eval]` is not installed.
    Source: the COCO evaluation (101 recall points, at most 100 boxes of a class in a picture).
    """
    ids = [*(t.class_ids for t in truths), *(f.class_ids for f in found)]
    count = max((int(one.max(initial=0)) for one in ids), default=0) + 1
    return coco_scores(truths, found, count, thresholds=thresholds).ap()


def _annotations(image: int, truth: Truth, kind: str) -> list[dict[str, Any]]:
    areas = truth.boxes[:, 2:].prod(axis=1) if truth.areas is None else truth.areas
    if truth.difficult is not None:
        areas = np.where(truth.difficult, _NEVER, areas)
    made: list[dict[str, Any]] = [
        {"image_id": image, "category_id": c + 1, "bbox": b, "area": a, "iscrowd": int(crowd)}
        for b, c, a, crowd in zip(
            truth.boxes.tolist(),
            truth.class_ids.tolist(),
            areas.tolist(),
            truth.crowd.tolist(),
            strict=True,
        )
    ]
    if kind == "segm":
        assert truth.masks is not None
        for annotation, mask in zip(made, truth.masks, strict=True):
            annotation["segmentation"] = mask
    return made


def _results(image: int, found: Scored, sizes: Sequence[tuple[int, int]]) -> list[dict[str, Any]]:
    order = np.argsort(-found.scores, kind="stable")
    most = [
        order[found.class_ids[order] == c][:MOST_PER_PICTURE] for c in np.unique(found.class_ids)
    ]
    one = found.select(np.concatenate(most) if most else order)
    made: list[dict[str, Any]] = [
        {"image_id": image, "category_id": c + 1, "bbox": b, "score": s}
        for b, c, s in zip(
            one.boxes.tolist(), one.class_ids.tolist(), one.scores.tolist(), strict=True
        )
    ]
    if one.masks is not None and sizes:
        width, height = sizes[image - 1]
        for result, counts in zip(made, one.masks, strict=True):
            del result["bbox"]  # the area of a result is its mask's then
            result["segmentation"] = {"size": [height, width], "counts": counts}
    return made
