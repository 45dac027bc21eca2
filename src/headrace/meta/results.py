"""Results of models other than detectors: classifications, class maps, raw tensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import msgspec
import numpy as np

from headrace._core.plain_record import PlainRecord
from headrace._core.types import Array, Arrays
from headrace.meta.detections import FloatArray, IntArray
from headrace.meta.layers import Layer, NetworkInfo

UNTRACKED_OBJECT_ID = 0xFFFFFFFFFFFFFFFF


class LabelInfo(NamedTuple):
    """One attribute that a classifier found.

    Attributes:
        attribute: number of the attribute; the built-in parser counts output layers.
        value: the class that won.
        confidence: its probability.
        label: its name, empty if it has none.
    """

    attribute: int
    value: int
    confidence: float
    label: str = ""


class ClassifierMeta(NamedTuple):
    """Result of one classifier on one object, frame or region. Source: spec C.3.

    Attributes:
        component_id: `gie-unique-id` of the classifier.
        labels: the attributes found, in the order of the parser.
        text: labels in one string as it is appended to the display text ("red sedan ").
        classifier_type: `classifier-type` of the config.
    """

    component_id: int
    labels: tuple[LabelInfo, ...]
    text: str
    classifier_type: str = ""


class SegmentationMeta(PlainRecord, frozen=True):
    """The class of every pixel of one frame, object or region. Source: spec C.2.

    Attributes:
        component_id: `gie-unique-id` of the model.
        num_classes: number of classes.
        class_map: (height, width) int32 in pixels of the network input, -1 where no class wins.
        probabilities: the raw output in the model's own layout, or None if the parser gives none.
        region: left, top, width, height of the `class_map` that the image fills, without padding.
        labels: names of the classes, possibly fewer.
    """

    component_id: int
    num_classes: int
    class_map: IntArray
    probabilities: FloatArray | None = None
    region: tuple[int, int, int, int] | None = None
    labels: Sequence[str] = ()

    def __repr__(self) -> str:
        size = f"{self.width}x{self.height}"
        raw = "" if self.probabilities is None else ", with probabilities"
        return f"SegmentationMeta({size}, {self.num_classes} classes{raw})"

    @property
    def width(self) -> int:
        """Of the class map, in pixels."""
        return int(self.class_map.shape[1])

    @property
    def height(self) -> int:
        """Of the class map, in pixels."""
        return int(self.class_map.shape[0])


@dataclass(frozen=True, slots=True)
class TensorOutput:
    """The raw outputs of one item (`output-tensor-meta`). Source: spec C.4.

    Attributes:
        component_id: `gie-unique-id` of the model.
        layers: name -> this item's output, binding order; a view on the batch's output buffer,
            which lives as long as any of these views.
        network: size of the network input.
        maintain_aspect_ratio, symmetric_padding: how the image was fitted.
        batch_index: this item's index in its inference batch.
        batch: name -> the whole batch's output that `layers` point into.
        shown: what is drawn of it (`output-image`); `bgr` is the order of an image's channels.
    """

    component_id: int
    layers: Mapping[str, Layer]
    network: NetworkInfo
    maintain_aspect_ratio: bool = False
    symmetric_padding: bool = False
    batch_index: int = 0
    batch: Arrays = field(default_factory=dict, repr=False)
    shown: Literal["none", "depth", "image"] = "none"
    bgr: bool = False

    def address(self, name: str) -> int:
        """Host address of this item's data: the batch's plus items before it. Source: spec C.4."""
        return int(self.layers[name].data.__array_interface__["data"][0])

    def __getitem__(self, name: str) -> Array:
        """The array of an output layer.

        Raises:
            KeyError: there is no such output; the message lists those there are.
        """
        try:
            return self.layers[name].data
        except KeyError:
            raise KeyError(f"no output {name!r}; there are {', '.join(self.layers)}") from None


class Roi(PlainRecord):
    """A region with a tensor prepared by the caller, and the results in it.

    Attributes:
        frame_index: which frame of the batch it belongs to.
        left, top, width, height: in frame pixels.
        ratio_x, ratio_y: network pixels per frame pixel.
        offset_left, offset_top: padding before the image, in network pixels.
        object_index: the object of that frame it shows, or None.
        classifiers, segmentations, tensors: results; objects go to the frame.
    """

    frame_index: int
    left: float
    top: float
    width: float
    height: float
    ratio_x: float = 1.0
    ratio_y: float = 1.0
    offset_left: int = 0
    offset_top: int = 0
    object_index: int | None = None
    classifiers: list[ClassifierMeta] = msgspec.field(default_factory=list)
    segmentations: list[SegmentationMeta] = msgspec.field(default_factory=list)
    tensors: list[TensorOutput] = msgspec.field(default_factory=list)


class InputTensor(PlainRecord):
    """A tensor that the caller prepared (`input-tensor-from-meta`). Source: spec A.6.

    Attributes:
        name: the input layer it is for.
        data: (N, ...) one row for each region, in the type of the input layer.
        rois: N regions.
        target_ids: `gie-unique-id`s of the models that shall run it.
        meta_id: tensors of one id are the inputs of one inference.
        maintain_aspect_ratio: copied into the tensor output.
    """

    name: str
    data: Array
    rois: list[Roi]
    target_ids: Sequence[int]
    meta_id: int = 0
    maintain_aspect_ratio: bool = False

    def __post_init__(self) -> None:
        self.data = np.ascontiguousarray(self.data)

    def __repr__(self) -> str:
        shape = "x".join(map(str, self.data.shape))
        ids = ", ".join(map(str, self.target_ids))
        return f"InputTensor({self.name!r}, {self.data.dtype} {shape}, for {ids})"
