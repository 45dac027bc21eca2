"""Two-stage detectors: Proposal, RPROI, ProposalLayer, MultilevelProposeROI; Mask R-CNN heads.

The heads are GenerateDetection (TAO) and DetectionLayer (Matterport). Rows that nothing fills are
zeros. Source: standard-plugins spec 4.1, 4.3, 4.5, 4.6.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from headrace._core.types import Array
from headrace.plugins.standard.fields import Field, floats, integer, integers, number
from headrace.plugins.standard.layer import Interface, Shape, StandardLayer, product
from headrace.plugins.standard.maths.boxes import (
    centred_anchors,
    decode_pixels,
    decode_unit,
    descending,
)
from headrace.plugins.standard.maths.nms import PlusOne, greedy_nms
from headrace.plugins.standard.maths.sampling import max_pool_regions

MIN_SCORE = np.float32(0.01)
"""Below this the Mask R-CNN plugins take a row for empty, with any threshold."""


def _best(
    boxes: Array, scores: Array, top: int, keep: int, threshold: float, plus_one: PlusOne
) -> Array:
    """Rows of the best `top` boxes that no better one suppresses, at most `keep`."""
    order = descending(scores, top)
    kept = greedy_nms(boxes[order], iou_threshold=threshold, keep=keep, plus_one=plus_one)
    return order[kept]


def _corners(deltas: Array, size: Array, centre_x: Array, centre_y: Array) -> Array:
    """(A * H * W, 4): the corners of anchors that are moved and stretched.

    Args:
        deltas: (A * 4, H, W): shifts and logarithms of stretches.
        size: (2, A, 1, 1): width and height of each anchor.
        centre_x, centre_y: of the columns and of the rows.
    """
    dx, dy, dw, dh = deltas.reshape(size.shape[1], 4, *deltas.shape[1:]).transpose(1, 0, 2, 3)
    x = centre_x[None, None, :] + dx * size[0]
    y = centre_y[None, :, None] + dy * size[1]
    w, h = np.exp(dw) * size[0] / 2, np.exp(dh) * size[1] / 2
    return np.stack([x - w, y - h, x + w, y + h], axis=-1).reshape(-1, 4)


class ProposalDynamic(StandardLayer):
    """Proposals of TAO's Faster R-CNN: y1, x1, y2, x2 in 0..1."""

    name = "ProposalDynamic"
    interface: ClassVar[Interface] = "Dyn"
    native = True
    fields = (
        integer("input_height", above=1),
        integer("input_width", above=1),
        integer("rpn_stride", above=0),
        number("roi_min_size", low=0),
        number("nms_iou_threshold", above=0),
        integer("pre_nms_top_n", above=0),
        integer("post_nms_top_n", above=0),
        floats("anchor_sizes", above=0),
        floats("anchor_ratios", above=0),
    )
    inputs = (2, 2)

    def check(self) -> None:
        if not self.given.anchor_sizes or not self.given.anchor_ratios:
            raise self.error("anchor_sizes or anchor_ratios is empty", expected="one or more")

    @property
    def _anchors(self) -> Array:
        """(A, 2): width and height; ratios change first."""
        pairs = [
            (size * math.sqrt(ratio), size / math.sqrt(ratio))
            for size in self.given.anchor_sizes
            for ratio in self.given.anchor_ratios
        ]
        return np.array(pairs, np.float32)

    def shapes(self, inputs: Sequence[Shape]) -> list[Shape]:
        scores, deltas = self.rank(inputs, 0, 4), self.rank(inputs, 1, 4)
        count = len(self._anchors)
        self.agree(scores[1], count, "channels of scores, and anchors")
        self.agree(deltas[1], 4 * count, "channels of deltas, and 4 of each anchor")
        for i in (0, 2, 3):
            self.agree(scores[i], deltas[i], f"axis {i} of scores and of deltas")
        return [(scores[0], self.given.post_nms_top_n, 4, 1)]

    def compute(self, inputs: Sequence[Array]) -> Sequence[Array]:
        scores, deltas = inputs
        g = self.given
        batch, count, height, width = scores.shape
        size = self._anchors.T.reshape(2, count, 1, 1)  # x, y
        centre_x = (np.arange(width, dtype=np.float32) + np.float32(0.5)) * g.rpn_stride
        centre_y = (np.arange(height, dtype=np.float32) + np.float32(0.5)) * g.rpn_stride
        limits = np.array([g.input_width - 1, g.input_height - 1] * 2, np.float32)
        out = np.zeros((batch, g.post_nms_top_n, 4), np.float32)
        for b in range(batch):
            boxes = _corners(deltas[b], size, centre_x, centre_y)
            boxes = np.clip(boxes, 0, limits).astype(np.float32)
            own = scores[b].ravel().astype(np.float32)
            extents = boxes[:, 2:] - boxes[:, :2]
            good = (extents > np.float32(g.roi_min_size)).all(axis=1)
            own = np.where(good, own, np.nan)  # no candidate
            rows = _best(
                boxes,
                own,
                g.pre_nms_top_n,
                g.post_nms_top_n,
                g.nms_iou_threshold,
                PlusOne.AREAS_AND_OVERLAP,
            )
            out[b, : len(rows)] = (boxes[rows] / limits)[:, [1, 0, 3, 2]]
        return [out[..., None]]


class Proposal(ProposalDynamic):
    """The same for fixed axes."""

    name = "Proposal"
    interface = "V2Ext"


class RPROI(StandardLayer):
    """Proposals of Caffe's Faster R-CNN, x1, y1, x2, y2 in pixels, and features pooled there."""

    name = "RPROI_TRT"
    interface = "IOExt"
    native = True
    fields = (
        integer("poolingH", above=0),
        integer("poolingW", above=0),
        integer("featureStride", above=0),
        integer("preNmsTop", above=0),
        integer("nmsMaxOut", above=0),
        integer("anchorsRatioCount", above=0),
        integer("anchorsScaleCount", above=0),
        number("iouThreshold", above=0),
        number("minBoxSize", low=0),
        number("spatialScale", above=0),
        floats("anchorsRatios", above=0),
        floats("anchorsScales", above=0),
    )
    inputs = (4, 4)
    outputs = 2

    def check(self) -> None:
        g = self.given
        for values, count, what in (
            (g.anchorsRatios, g.anchorsRatioCount, "anchorsRatios"),
            (g.anchorsScales, g.anchorsScaleCount, "anchorsScales"),
        ):
            if len(values) != count:
                raise self.error(f"{len(values)} {what}", expected=f"{count}, as its count says")

    def _anchors(self) -> Array:
        """(A, 2): width and height, scales change first."""
        g = self.given
        base, sizes = np.float32(g.featureStride), []
        for ratio in g.anchorsRatios:
            width = _round(np.sqrt(base * base / np.float32(ratio)))
            height = _round(width * ratio)
            sizes += [(width * scale, height * scale) for scale in g.anchorsScales]
        return np.array(sizes, np.float32)

    def shapes(self, inputs: Sequence[Shape]) -> list[Shape]:
        g = self.given
        count = g.anchorsRatioCount * g.anchorsScaleCount
        scores, deltas, features = (self.rank(inputs, i, 4) for i in range(3))
        info = inputs[3]
        self.agree(scores[1], 2 * count, "channels of scores, and 2 of each anchor")
        self.agree(deltas[1], 4 * count, "channels of deltas, and 4 of each anchor")
        for i in (0, 2, 3):
            self.agree(scores[i], deltas[i], f"axis {i} of scores and of deltas")
        self.agree(features[0], scores[0], "images of features and of scores")
        if not info:
            raise self.error(f"input 3 of {self.name} is a scalar", expected="[batch, 1, 1, 3]")
        for shape in (features, info):
            self.agree(shape[0], scores[0], "images of the inputs")
        self.agree(product(info[1:]), 3, "numbers about an image (height, width, scale)")
        batch, keep = scores[0], g.nmsMaxOut
        return [(batch, 1, keep, 4), (batch, keep, features[1], g.poolingH, g.poolingW)]

    def compute(self, inputs: Sequence[Array]) -> Sequence[Array]:
        scores, deltas, features, info = inputs
        g = self.given
        batch, _, height, width = scores.shape
        anchors = self._anchors()
        count = len(anchors)
        middle = np.float32((g.featureStride - 1) / 2)
        stride = np.float32(g.featureStride)
        centre_x = middle + np.arange(width, dtype=np.float32) * stride
        centre_y = middle + np.arange(height, dtype=np.float32) * stride
        size = anchors.T.reshape(2, count, 1, 1)
        rois = np.zeros((batch, 1, g.nmsMaxOut, 4), np.float32)
        for b in range(batch):
            image_h, image_w, scale = info[b].ravel()[:3]
            boxes = _corners(deltas[b], size, centre_x, centre_y)
            last = np.array([image_w, image_h] * 2, np.float32) - np.float32(1)
            boxes = np.minimum(np.maximum(boxes, 0), last).astype(np.float32)
            extents = boxes[:, 2:] - boxes[:, :2] + np.float32(1)
            good = (extents >= np.float32(g.minBoxSize) * scale).all(axis=1)
            own = np.where(good, scores[b, count:].ravel(), np.nan)
            rows = _best(
                boxes, own, g.preNmsTop, g.nmsMaxOut, g.iouThreshold, PlusOne.AREAS_AND_OVERLAP
            )
            rois[b, 0, : len(rows)] = boxes[rows]
        images = np.repeat(np.arange(batch), g.nmsMaxOut)
        pooled = max_pool_regions(
            features, images, rois.reshape(-1, 4), (g.poolingH, g.poolingW), g.spatialScale
        )
        return [rois, pooled.reshape(batch, g.nmsMaxOut, *pooled.shape[1:])]


def _round(x: float) -> float:
    return math.floor(x + 0.5)  # as in C: halves away from 0


class ProposalLayer(StandardLayer):
    """Proposals of Matterport's Mask R-CNN: y1, x1, y2, x2 in 0..1."""

    name = "ProposalLayer_TRT"
    interface = "V2Ext"
    native = True
    fields = (
        integer("prenms_topk", above=0, high=1024),
        integer("keep_topk", above=0),
        number("iou_threshold", above=0),
        integers("image_size", (3, 1024, 1024), length=3, above=1),
    )
    inputs = (2, 2)

    def _anchors(self) -> Array:
        _, height, width = self.given.image_size
        last = np.array([height - 1, width - 1] * 2, np.float32)
        levels = []
        for level in range(5):
            stride, scale = 2 ** (level + 2), 2 ** (level + 5)
            sizes = [(scale / math.sqrt(r), scale * math.sqrt(r)) for r in (0.5, 1, 2)]
            boxes = centred_anchors(range(0, height, stride), range(0, width, stride), sizes)
            boxes[..., 2:] -= 1
            levels.append(boxes.reshape(-1, 4) / last)
        return np.concatenate(levels)

    def shapes(self, inputs: Sequence[Shape]) -> list[Shape]:
        scores, deltas = self.rank(inputs, 0, 4), self.rank(inputs, 1, 4)
        _, height, width = self.given.image_size
        count = 3 * sum(-(-height // s) * -(-width // s) for s in (4, 8, 16, 32, 64))
        for shape, numbers, what in ((scores, 2, "scores"), (deltas, 4, "deltas")):
            self.agree(shape[1], count, f"{what}, and the anchors of image_size")
            self.agree(shape[2], numbers, f"numbers of each of the {what}")
            self.agree(shape[3], 1, f"the last axis of the {what}")
        self.agree(scores[0], deltas[0], "images of scores and of deltas")
        return [(scores[0], self.given.keep_topk, 4)]

    def compute(self, inputs: Sequence[Array]) -> Sequence[Array]:
        scores, deltas = inputs
        g = self.given
        anchors = self._anchors()
        out = np.zeros((len(scores), g.keep_topk, 4), np.float32)
        for b in range(len(scores)):
            own = scores[b, :, 1, 0]
            order = descending(own, g.prenms_topk)
            order = order[own[order] > MIN_SCORE]
            boxes = decode_unit(anchors[order], deltas[b, order, :, 0])
            kept = greedy_nms(boxes, iou_threshold=g.iou_threshold, keep=g.keep_topk)
            out[b, : len(kept)] = boxes[kept]
        return [out]


class MultilevelProposeROI(StandardLayer):
    """Proposals of TAO's Mask R-CNN, level by level, then the best of all.

    Boxes are y1, x1, y2, x2 in pixels.
    """

    name = "MultilevelProposeROI_TRT"
    interface = "V2Ext"
    native = True
    fields = (
        integer("prenms_topk", above=0, high=4096),
        integer("keep_topk", above=0),
        number("fg_threshold"),
        number("iou_threshold", above=0),
        integers("image_size", (3, 832, 1344), length=3, above=1),
    )
    inputs = (10, 10)
    _factors = ((1.0, 1.0), (0.7, 1.4), (1.4, 0.7))  # height, width

    def _places(self, level: int) -> tuple[range, range]:
        stride = 2 ** (level + 2)
        _, height, width = self.given.image_size
        return range(stride // 2, height, stride), range(stride // 2, width, stride)

    def shapes(self, inputs: Sequence[Shape]) -> list[Shape]:
        batch = inputs[0][0]
        for level in range(5):
            rows, columns = self._places(level)
            count = len(rows) * len(columns) * 3
            for i, numbers in ((2 * level, 4), (2 * level + 1, 1)):
                shape = self.rank(inputs, i, 4)
                self.agree(shape[0], batch, "images of the inputs")
                self.agree(shape[1], count, f"input {i}, and the anchors of level {level + 2}")
                self.agree(shape[2], numbers, f"numbers of each row of input {i}")
                self.agree(shape[3], 1, f"the last axis of input {i}")
        return [(batch, self.given.keep_topk, 4)]

    def compute(self, inputs: Sequence[Array]) -> Sequence[Array]:
        g = self.given
        image = g.image_size[1:]
        out = np.zeros((len(inputs[0]), g.keep_topk, 4), np.float32)
        anchors = []
        for level in range(5):
            side = 8 * 2 ** (level + 2)
            sizes = [(side * h, side * w) for h, w in self._factors]
            anchors.append(centred_anchors(*self._places(level), sizes).reshape(-1, 4))
        for b in range(len(out)):
            found_boxes, found_scores = [], []
            for level in range(5):
                deltas, scores = inputs[2 * level][b, :, :, 0], inputs[2 * level + 1][b, :, 0, 0]
                order = descending(scores, g.prenms_topk)
                order = order[scores[order] > np.float32(g.fg_threshold)]
                boxes = decode_pixels(anchors[level][order], deltas[order], (1, 1, 1, 1), image)
                kept = greedy_nms(boxes, iou_threshold=g.iou_threshold, keep=g.keep_topk)
                found_boxes.append(boxes[kept])
                found_scores.append(scores[order[kept]])
            rows = descending(np.concatenate(found_scores), g.keep_topk)
            out[b, : len(rows)] = np.concatenate(found_boxes)[rows]
        return [out]


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
            self.agree(shape[0], batch, f"images of regions and of {what}")
            self.agree(shape[1], count, f"regions, and rows of {what}")
            self.agree(product(shape[2:]), numbers, f"{what} of a region")
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
