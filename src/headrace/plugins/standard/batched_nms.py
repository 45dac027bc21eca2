"""BatchedNMS and NMS (SSD DetectionOutput). Source: standard-plugins spec 3.4, 3.5."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from headrace._core.types import Array
from headrace.plugins.standard.fields import integer, integers, number
from headrace.plugins.standard.layer import (
    Interface,
    ScalarCount,
    Shape,
    StandardLayer,
    product,
)
from headrace.plugins.standard.maths.boxes import CODES, decode
from headrace.plugins.standard.maths.nms import Kept, PlusOne, batched_nms

_MAX_TOP = 4096


class BatchedNMSDynamic(StandardLayer):
    """Each class on its own, then the best of all.

    Classes come out as numbers of the scores' type; -1 and zeros fill the rows that are left.
    """

    name = "BatchedNMSDynamic_TRT"
    interface: ClassVar[Interface] = "Dyn"
    native = True
    fields = (
        integer("shareLocation"),
        integer("backgroundLabelId"),
        integer("numClasses", above=0),
        integer("topK", above=0, high=_MAX_TOP),
        integer("keepTopK", above=0, high=_MAX_TOP),
        number("scoreThreshold"),
        number("iouThreshold"),
        integer("isNormalized", 1),
        integer("clipBoxes", 1),
        integer("scoreBits", 16),
        integer("caffeSemantics", 1),
    )
    inputs = (2, 2)
    outputs = 4
    integer_outputs = frozenset((0,))

    def check(self) -> None:
        g = self.given
        if g.keepTopK > g.topK:
            raise self.error(f"keepTopK is {g.keepTopK}, topK {g.topK}", expected="keepTopK ≤ topK")

    def shapes(self, inputs: Sequence[Shape]) -> list[Shape]:
        boxes = self.rank(
            inputs,
            0,
            4,
            fix="add an axis to the boxes: [batch, boxes, 1, 4], or [batch, boxes, classes, 4]",
        )
        scores = self.rank(inputs, 1, 3, 4)
        batch, keep = scores[0], self.given.keepTopK
        self.agree(boxes[3], 4, "numbers of a box")
        self.agree(boxes[0], batch, "images of boxes and of scores")
        self.agree(boxes[1], scores[1], "boxes, and rows of scores")
        self.agree(scores[2], self.given.numClasses, "scores of a box, and numClasses")
        self.countable(scores[1], scores[2])
        sets = 1 if self.given.shareLocation else self.given.numClasses
        self.agree(boxes[2], sets, "boxes of a place, and what shareLocation says")
        if len(scores) == 4:
            self.agree(scores[3], 1, "the last axis of the scores")
        return [(batch, 1), (batch, keep, 4), (batch, keep), (batch, keep)]

    def _plus_one(self) -> PlusOne:
        if self.given.isNormalized:
            return PlusOne.NONE
        return PlusOne.AREAS_AND_OVERLAP if self.given.caffeSemantics else PlusOne.AREAS

    def compute(self, inputs: Sequence[Array]) -> Sequence[Array]:
        g = self.given
        boxes, scores = inputs
        kept = batched_nms(
            boxes,
            scores.reshape(scores.shape[:3]),
            keep=g.keepTopK,
            top=g.topK,
            score_threshold=g.scoreThreshold,
            iou_threshold=g.iouThreshold,
            background=g.backgroundLabelId,
            plus_one=self._plus_one(),
            clip=bool(g.clipBoxes),
        )
        classes = np.where(kept.padding, np.float32(-1), kept.classes)
        return [kept.count[:, None], kept.boxes, kept.scores, classes]


class BatchedNMS(ScalarCount, BatchedNMSDynamic):
    """The same without a batch axis in its shapes: the number is a scalar of each image."""

    name = "BatchedNMS_TRT"
    interface = "V2Ext"


class NMSDynamic(StandardLayer):
    """DetectionOutput of SSD: boxes decoded from priors, suppressed class by class, the best kept.

    Rows are image, label, score, xmin, ymin, xmax, ymax, boxes cut to 0..1; label -1 fills the
    rows that are left. The second output holds how many rows count, as the bits of an INT32.
    """

    name = "NMSDynamic_TRT"
    interface: ClassVar[Interface] = "Dyn"
    native = True
    fields = (
        integer("shareLocation"),
        integer("varianceEncodedInTarget"),
        integer("backgroundLabelId"),
        integer("numClasses", above=0),
        integer("topK", above=0),
        integer("keepTopK", above=0),
        number("confidenceThreshold"),
        number("nmsThreshold"),
        integers("inputOrder", length=3, low=0, high=2),
        integer("confSigmoid", 0),
        integer("isNormalized", 1),
        integer("codeType", 3, one_of=tuple(range(len(CODES)))),
        integer("scoreBits", 16),
        integer("isBatchAgnostic", 1),
    )
    inputs = (3, 3)
    outputs = 2
    half = False  # it has no room for the bits of the count

    def check(self) -> None:
        if sorted(self.given.inputOrder) != [0, 1, 2]:
            raise self.error(
                f"inputOrder is {self.given.inputOrder}",
                expected="the places of locations, confidences and priors: 0, 1 and 2 once each",
            )

    def shapes(self, inputs: Sequence[Shape]) -> list[Shape]:
        g = self.given
        for i, shape in enumerate(inputs):
            if len(shape) < 2:
                raise self.error(f"input {i} of {self.name} has {len(shape)} axes",
                                 expected="a batch and more")  # fmt: skip
        locations, scores, priors = (inputs[i] for i in g.inputOrder)
        batch = locations[0]
        self.agree(batch, scores[0], "images of locations and of confidences")
        # an engine that is configured without the batch knows no other
        if not g.isBatchAgnostic:
            self.agree(batch, priors[0], "images of locations and of priors")
        if len(priors) < 3 or (isinstance(priors[1], int) and priors[1] != 2):
            raise self.error(
                f"priors of {len(priors)} axes, {priors[1]} channels",
                expected="[batch, 2, boxes * 4, 1]: boxes, and their variances",
            )
        if priors[0] == 0 and batch != 0:
            raise self.error("there are no priors", expected="those of one image at least")
        count = product(priors[2:]) // 4
        self.agree(product(priors[2:]), count * 4, "numbers of the priors, and 4 of each")
        self.countable(count, g.numClasses)
        sets = 1 if g.shareLocation else g.numClasses
        self.agree(product(locations[1:]), count * 4 * sets, "locations, and those of the priors")
        self.agree(
            product(scores[1:]), count * g.numClasses, "confidences, and those of the priors"
        )
        return [(batch, 1, g.keepTopK, 7), (batch, 1, 1, 1)]

    def compute(self, inputs: Sequence[Array]) -> Sequence[Array]:
        g = self.given
        locations, scores, priors = (inputs[i] for i in g.inputOrder)
        images, count = len(locations), priors[0, 0].size // 4 if len(priors) else 0
        if not images:
            return [np.empty((0, 1, g.keepTopK, 7)), np.empty((0, 1, 1, 1), np.float32)]
        sets = 1 if g.shareLocation else g.numClasses
        pairs = priors.reshape(len(priors), 2, count, 1, 4)
        if g.isBatchAgnostic:
            pairs = pairs[:1]
        boxes = decode(
            locations.reshape(images, count, sets, 4),
            pairs[:, 0],
            None if g.varianceEncodedInTarget else pairs[:, 1],
            CODES[g.codeType],
        )
        scores = scores.reshape(images, count, g.numClasses)
        if g.confSigmoid:
            scores = 1 / (1 + np.exp(-scores))
        kept = batched_nms(
            boxes,
            scores,
            keep=g.keepTopK,
            top=g.topK,
            score_threshold=g.confidenceThreshold,
            iou_threshold=g.nmsThreshold,
            background=g.backgroundLabelId,
            plus_one=PlusOne.NONE if g.isNormalized else PlusOne.AREAS_AND_OVERLAP,
            clip=True,
        )
        return [_rows(kept), kept.count.view(np.float32).reshape(images, 1, 1, 1)]


def _rows(kept: Kept) -> Array:
    rows = np.zeros((*kept.scores.shape, 7), np.float32)
    rows[..., 0] = np.arange(len(rows))[:, None]
    rows[..., 1] = np.where(kept.padding, -1, kept.classes)
    rows[..., 2] = kept.scores
    rows[..., 3:] = kept.boxes
    return rows[:, None]


class NMS(NMSDynamic):
    """The same without a batch axis in its shapes."""

    name = "NMS_TRT"
    interface = "V2Ext"
