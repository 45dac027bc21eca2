"""Arguments and results of parsers: output layers, network size, thresholds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import numpy as np
from msgspec import field

from headrace._core.plain_record import PlainRecord
from headrace._core.types import Array, Arrays, DType
from headrace.meta.detections import Detections, FloatArray, IntArray


class Layer(PlainRecord, frozen=True):
    """One output tensor of one batch item.

    `data` has the batch axis removed (a tensor that is only batch has shape (1,)), and is valid
    during the call of the parser only.
    """

    name: str
    data: Array

    @property
    def shape(self) -> tuple[int, ...]:
        """Axes without the batch."""
        return self.data.shape

    @property
    def dtype(self) -> DType:
        """Type of the values."""
        return self.data.dtype

    def __repr__(self) -> str:
        return f"Layer({self.name!r}, {self.dtype}, {'x'.join(map(str, self.shape))})"


def layers_of(outputs: Arrays, index: int) -> dict[str, Layer]:
    """One item's outputs as parsers see them, in binding order."""
    return {
        name: Layer(name, data[index] if data.ndim > 1 else data[index : index + 1])
        for name, data in outputs.items()
    }


class NetworkInfo(PlainRecord, frozen=True):
    """Size of the network input in pixels."""

    width: int
    height: int
    channels: int


class DetectionParams(PlainRecord, frozen=True):
    """The detector settings of the config that a parser may use.

    Attributes:
        num_classes: `num-detected-classes`.
        per_class_threshold: (C,) float32, `pre-cluster-threshold` of each class; boxes with a
            score below it are dropped after the parser, so skipping them early is only faster.
        per_class_post_threshold: (C,) float32, `post-cluster-threshold` of each class.
        labels: names of the classes, possibly fewer than `num_classes`.
    """

    num_classes: int
    per_class_threshold: FloatArray
    per_class_post_threshold: FloatArray = field(default_factory=lambda: np.empty(0, np.float32))
    labels: Sequence[str] = ()

    @property
    def min_threshold(self) -> float:
        """The lowest pre-cluster threshold of any class: below it no box can survive."""
        return float(self.per_class_threshold.min()) if len(self.per_class_threshold) else 0.0


BoxParser = Callable[[Mapping[str, Layer], NetworkInfo, DetectionParams], Detections]
"""A detector parser: (layers in binding order, network, params) -> Detections in network space."""


class ClassifierParams(PlainRecord, frozen=True):
    """The classifier settings of the config that a parser may use.

    Attributes:
        threshold: `classifier-threshold`; a value must be above it.
        labels: the label file: record `attribute`, field `value`.
    """

    threshold: float
    labels: Sequence[Sequence[str]] = ()

    def label(self, attribute: int, value: int) -> str | None:
        """The name of a value of an attribute, or None."""
        names = self.labels[attribute] if 0 <= attribute < len(self.labels) else ()
        return names[value] if 0 <= value < len(names) else None


class Classification(PlainRecord):
    """Result of a classifier parser for one item.

    Attributes:
        attributes: (attribute, value, confidence, label) of each attribute found; a label of None
            is filled from the label file and appended to `text`.
        text: what is appended to the display text; without text, nothing is attached.
    """

    attributes: list[tuple[int, int, float, str | None]] = field(default_factory=list)
    text: str = ""

    def add(self, attribute: int, value: int, confidence: float, label: str | None = None) -> None:
        """Append an attribute."""
        self.attributes.append((attribute, value, confidence, label))


ClassifierParser = Callable[[Mapping[str, Layer], NetworkInfo, ClassifierParams], Classification]
"""A classifier parser: (layers in binding order, network, params) -> Classification."""


class SegmentationParams(PlainRecord, frozen=True):
    """The segmentation settings of the config that a parser may use.

    Attributes:
        num_classes: `num-detected-classes`.
        threshold: `segmentation-threshold`; a probability must be above it.
        order: `segmentation-output-order`, layout of the output.
        labels: names of the classes, possibly fewer.
    """

    num_classes: int
    threshold: float = 0.0
    order: Literal["NCHW", "NHWC"] = "NCHW"
    labels: Sequence[str] = ()


class Segmentation(PlainRecord):
    """Result of a segmentation parser for one item.

    Attributes:
        class_map: (H, W) int32, class of each pixel, -1 for none.
        probabilities: the probabilities behind it in any layout, or None.
    """

    class_map: IntArray
    probabilities: FloatArray | None = None


SegmentationParser = Callable[[Mapping[str, Layer], NetworkInfo, SegmentationParams], Segmentation]
"""A segmentation parser: (layers in binding order, network, params) -> Segmentation."""
