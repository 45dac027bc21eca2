"""Detections of Mask R-CNN: GenerateDetection (TAO), DetectionLayer (Matterport).

Source: standard-plugins spec 4.5, 4.6.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from noria.plugins.standard.fields import Field, integer, integers, number
from noria.plugins.standard.layer import Array, Extent, Shape, StandardLayer
from noria.plugins.standard.maths.boxes import decode_pixels, decode_unit, descending
from noria.plugins.standard.maths.nms import greedy_nms
from noria.plugins.standard.proposals import MIN_SCORE


class _Detections(StandardLayer):
    """The best class of each region, suppressed class by class.

    Rows are y1, x1, y2, x2, class, score; class -1 and zeros fill the rows that are left.
    """

    interface = "V2Ext"
    native = True
    fields: ClassVar[tuple[Field, ...]] = (
        integer("num_classes", above=1),
        integer("keep_topk", above=0),
        number("score_threshold", low=0),
        number("iou_threshold", above=0),
    )
    inputs = (3, 3)
    first_class = 0

    def shapes(self, inputs: Sequence[Shape]) -> list[Shape]:
        classes = self.given.num_classes
        batch, count, four = self.rank(inputs, 2, 3)
        self.agree(four, 4, "numbers of a region")
        for i, numbers, what in ((0, classes * 4, "deltas"), (1, classes, "scores")):
            shape = inputs[i]
            if len(shape) < 3:
                raise self.error(f"the {what} have {len(shape)} axes",
                                 expected="batch, regions, classes")  # fmt: skip
            self.agree(shape[0], batch, f"pictures of regions and of {what}")
            self.agree(shape[1], count, f"regions, and rows of {what}")
            total: Extent = 1
            for axis in shape[2:]:
                total = axis * total
            self.agree(total, numbers, f"{what} of a region")
        return [(batch, self.given.keep_topk, 6)]

    @abstractmethod
    def decode(self, rois: Array, deltas: Array) -> Array:
        """Boxes (R, 4) of the regions' best classes."""

    def compute(self, inputs: Sequence[Array]) -> Sequence[Array]:
        g = self.given
        rois = inputs[2]
        batch, count = rois.shape[:2]
        deltas = inputs[0].reshape(batch, count, g.num_classes, 4)
        scores = inputs[1].reshape(batch, count, g.num_classes)
        out = np.zeros((batch, g.keep_topk, 6), np.float32)
        out[..., 4] = -1
        if count == 0:
            return [out]
        own = np.where(np.isnan(scores), -np.inf, scores)[..., self.first_class :]
        for b in range(batch):
            labels = own[b].argmax(axis=1) + self.first_class
            best = scores[b, np.arange(count), labels]
            passes = (labels > 0) & (best >= np.float32(g.score_threshold)) & (best > MIN_SCORE)
            order = descending(np.where(passes, best, np.nan))
            labels, best = labels[order], best[order]
            boxes = self.decode(rois[b, order], deltas[b, order, labels])
            kept = greedy_nms(
                boxes, iou_threshold=g.iou_threshold, keep=g.keep_topk, class_ids=labels
            )
            out[b, : len(kept), :4] = boxes[kept]
            out[b, : len(kept), 4] = labels[kept]
            out[b, : len(kept), 5] = best[kept]
        return [out]


class GenerateDetection(_Detections):
    """Boxes in pixels; the background, class 0, is not asked."""

    name = "GenerateDetection_TRT"
    fields = (
        *_Detections.fields,
        integers("image_size", (3, 832, 1344), length=3, above=1),
    )
    first_class = 1

    def decode(self, rois: Array, deltas: Array) -> Array:
        return decode_pixels(rois, deltas, (10, 10, 5, 5), self.given.image_size[1:])


class DetectionLayer(_Detections):
    """Boxes in 0..1; regions of the background, class 0, are dropped."""

    name = "DetectionLayer_TRT"

    def decode(self, rois: Array, deltas: Array) -> Array:
        return decode_unit(rois, deltas)


LAYERS: tuple[type[StandardLayer], ...] = (GenerateDetection, DetectionLayer)
