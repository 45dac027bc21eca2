"""EfficientNMS_TRT and its relatives. Source: standard-plugins spec 3.1 to 3.3."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from headrace._core.types import Array
from headrace.plugins.standard.fields import integer, number
from headrace.plugins.standard.layer import (
    Extent,
    Interface,
    ScalarCount,
    Shape,
    StandardLayer,
    smaller,
)
from headrace.plugins.standard.maths.nms import Kept, efficient_nms

_FIX = "boxes are [batch, boxes, 1, 4] or [batch, boxes, classes, 4], or without the 1"


def _boxes_and_scores(
    layer: StandardLayer, inputs: Sequence[Shape]
) -> tuple[Extent, Extent, Extent]:
    """Batch, boxes and classes of boxes [B,N,4], [B,N,1,4] or [B,N,C,4], scores [B,N,C(,1)]."""
    boxes = layer.rank(inputs, 0, 3, 4, fix=_FIX)
    scores = layer.rank(inputs, 1, 3, 4, fix="scores are [batch, boxes, classes]")
    batch, count, classes = scores[:3]
    layer.agree(boxes[-1], 4, "numbers of a box")
    layer.agree(boxes[0], batch, "images of boxes and of scores")
    layer.agree(boxes[1], count, "boxes, and rows of scores")
    if len(scores) == 4:
        layer.agree(scores[3], 1, "the last axis of the scores")
    if len(boxes) == 4 and boxes[2] != 1:
        layer.agree(boxes[2], classes, "box sets and classes")
    layer.countable(count, classes)
    return batch, count, classes


def _heads(inputs: Sequence[Array]) -> tuple[Array, Array]:
    boxes, scores = inputs[:2]
    if boxes.ndim == 3:
        boxes = boxes[:, :, None]
    return boxes, scores.reshape(scores.shape[:3])


class EfficientNMS(StandardLayer):
    """The best boxes of each image: number, corners, scores, classes. Zeros fill the rest."""

    name = "EfficientNMS_TRT"
    interface = "Dyn"
    native = True
    fields = (
        number("score_threshold", low=0),
        number("iou_threshold", above=0),
        integer("max_output_boxes", above=0),
        integer("background_class"),
        integer("score_activation", one_of=(0, 1)),
        integer("box_coding", one_of=(0, 1)),
        integer("class_agnostic", 0, one_of=(0, 1)),
    )
    inputs = (2, 3)
    outputs = 4
    integer_outputs = frozenset((0, 3))

    def shapes(self, inputs: Sequence[Shape]) -> list[Shape]:
        batch, count, _ = _boxes_and_scores(self, inputs)
        if len(inputs) == 3:
            anchors = self.rank(inputs, 2, 3)
            if anchors[0] != 1:
                self.agree(anchors[0], batch, "images of anchors and of boxes")
            self.agree(anchors[1], count, "anchors and boxes")
            self.agree(anchors[2], 4, "numbers of an anchor")
        keep = self.given.max_output_boxes
        return [(batch, 1), (batch, keep, 4), (batch, keep), (batch, keep)]

    def compute(self, inputs: Sequence[Array]) -> Sequence[Array]:
        g = self.given
        kept = efficient_nms(
            *_heads(inputs),
            inputs[2] if len(inputs) == 3 else None,
            keep=g.max_output_boxes,
            score_threshold=g.score_threshold,
            iou_threshold=g.iou_threshold,
            background=g.background_class,
            sigmoid=bool(g.score_activation),
            centres=bool(g.box_coding),
            agnostic=bool(g.class_agnostic),
        )
        return _four(kept)


def _four(kept: Kept) -> Sequence[Array]:
    return kept.count[:, None], kept.boxes, kept.scores, kept.classes


class EfficientNMSONNX(StandardLayer):
    """Rows (image, class, box) as of ONNX's NonMaxSuppression, as many at every run.

    The last one is repeated; all are -1 when there are none. Scores are [B, N, C], as the original
    reads them.
    """

    name = "EfficientNMS_ONNX_TRT"
    interface = "Dyn"
    native = True
    fields = (
        number("score_threshold", low=0),
        number("iou_threshold", above=0),
        integer("max_output_boxes_per_class", above=0),
        integer("center_point_box", one_of=(0, 1)),
    )
    inputs = (2, 2)
    integer_outputs = frozenset((0,))

    def shapes(self, inputs: Sequence[Shape]) -> list[Shape]:
        batch, _, _ = _boxes_and_scores(self, inputs)
        return [(batch * self.given.max_output_boxes_per_class, 3)]

    def compute(self, inputs: Sequence[Array]) -> Sequence[Array]:
        g = self.given
        keep = g.max_output_boxes_per_class
        kept = efficient_nms(
            *_heads(inputs),
            keep=keep,
            score_threshold=g.score_threshold,
            iou_threshold=g.iou_threshold,
            centres=bool(g.center_point_box),
            per_class=keep,
        )
        filled = ~kept.padding
        images = np.broadcast_to(np.arange(len(kept.count))[:, None], filled.shape)
        selected = np.stack([images[filled], kept.classes[filled], kept.rows[filled]], axis=1)
        rows = np.full((len(kept.count) * keep, 3), -1, np.int32)
        if len(selected):
            rows[: len(selected)] = selected
            rows[len(selected) :] = selected[-1]
        return [rows]


class EfficientNMSExplicit(StandardLayer):
    """TensorFlow's CombinedNonMaxSuppression: a limit for each class and one for all."""

    name = "EfficientNMS_Explicit_TF_TRT"
    interface: ClassVar[Interface] = "Dyn"
    native = True
    fields = (
        integer("max_output_size_per_class"),
        integer("max_total_size", above=0),
        number("iou_threshold", above=0),
        number("score_threshold", low=0),
        integer("pad_per_class"),
        integer("clip_boxes"),
    )
    inputs = (2, 2)
    outputs = 4
    integer_outputs = frozenset((0, 3))

    def _keep(self, classes: Extent) -> Extent:
        g = self.given
        if g.pad_per_class and g.max_output_size_per_class > 0:
            return smaller(g.max_total_size, classes * g.max_output_size_per_class)
        return int(g.max_total_size)

    def shapes(self, inputs: Sequence[Shape]) -> list[Shape]:
        batch, _, classes = _boxes_and_scores(self, inputs)
        keep = self._keep(classes)
        return [(batch, 1), (batch, keep, 4), (batch, keep), (batch, keep)]

    def compute(self, inputs: Sequence[Array]) -> Sequence[Array]:
        g = self.given
        boxes, scores = _heads(inputs)
        keep = self._keep(scores.shape[2])
        assert isinstance(keep, int)
        kept = efficient_nms(
            boxes,
            scores,
            keep=keep,
            score_threshold=g.score_threshold,
            iou_threshold=g.iou_threshold,
            per_class=max(g.max_output_size_per_class, 0),
            clip=bool(g.clip_boxes),
        )
        return _four(kept)


class EfficientNMSImplicit(ScalarCount, EfficientNMSExplicit):
    """The same without a batch axis in its shapes: the number is a scalar of each image."""

    name = "EfficientNMS_Implicit_TF_TRT"
    interface = "IOExt"
