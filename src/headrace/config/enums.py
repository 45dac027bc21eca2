"""The named values of configuration keys.

Each member's number is what a config file writes; `label` is how people say it. The first sentence
of an enum's docstring, lower-cased, completes "is not ...": it is used in error messages.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Literal

Generation = Literal["6.2", "9.1"]
"""Names a release of the original: Headrace tells the last ones of two lines apart."""


class NamedValue(IntEnum):
    """A numbered choice with a name for people."""

    label: str

    def __new__(cls, value: int, label: str = "") -> NamedValue:
        """Make a member with its name for people."""
        member = int.__new__(cls, value)
        member._value_ = value
        member.label = label
        return member

    def __str__(self) -> str:
        return f"{self.value} ({self.label})"

    @classmethod
    def noun(cls) -> str:
        """Return the noun for one of the choices: `a clustering mode`."""
        sentence = (cls.__doc__ or "a known value.").split(".", 1)[0]
        return sentence[0].lower() + sentence[1:]

    @classmethod
    def choices(cls) -> str:
        """All choices in words: `0 (group rectangles), 1 (DBSCAN), ...`."""
        return ", ".join(str(member) for member in cls)


class ClusterMode(NamedValue):
    """A clustering mode. `cluster-mode`; section 5.6 of the config facts."""

    GROUP_RECTANGLES = 0, "group rectangles"
    DBSCAN = 1, "DBSCAN"
    NMS = 2, "NMS"
    HYBRID = 3, "DBSCAN + NMS"
    NONE = 4, "none"


class ColorFormat(NamedValue):
    """A colour format. `model-color-format`: the channel order that the network expects."""

    RGB = 0, "RGB"
    BGR = 1, "BGR"
    GRAY = 2, "GRAY"


class TensorOrder(NamedValue):
    """A tensor order. `network-input-order`, `segmentation-output-order`."""

    NCHW = 0, "NCHW"
    NHWC = 1, "NHWC"


class UffInputOrder(NamedValue):
    """A UFF input order. `uff-input-order`."""

    NCHW = 0, "NCHW"
    NHWC = 1, "NHWC"
    NC = 2, "NC"


class NetworkType(NamedValue):
    """A network type. `network-type`: the use of the outputs."""

    DETECTOR = 0, "detector"
    CLASSIFIER = 1, "classifier"
    SEGMENTATION = 2, "semantic segmentation"
    INSTANCE_SEGMENTATION = 3, "instance segmentation"
    OTHER = 100, "other, no post-processing"

    @property
    def has_class_attrs(self) -> bool:
        """Whether the `class-attrs-*` groups are read for this type."""
        return self in (NetworkType.DETECTOR, NetworkType.INSTANCE_SEGMENTATION)


PARSER_FIELDS = {
    NetworkType.DETECTOR: "parse_bbox_func_name",
    NetworkType.INSTANCE_SEGMENTATION: "parse_bbox_instance_mask_func_name",
    NetworkType.CLASSIFIER: "parse_classifier_func_name",
    NetworkType.SEGMENTATION: "parse_segmentation_func_name",
}
"""The field of a config with the name of its parser, by the type that it is for."""


class ProcessMode(NamedValue):
    """A process mode. `process-mode`: whole frames, or objects of another model."""

    PRIMARY = 1, "primary, whole frames"
    SECONDARY = 2, "secondary, objects found upstream"


class NetworkMode(NamedValue):
    """A precision. `network-mode`: the number format of the engine."""

    FP32 = 0, "FP32"
    INT8 = 1, "INT8"
    FP16 = 2, "FP16"
    BEST = 3, "BEST, INT8 and FP16"


class ScalingFilter(NamedValue):
    """A scaling filter. `scaling-filter`."""

    NEAREST = 0, "nearest"
    BILINEAR = 1, "bilinear"
    ALGO1 = 2, "algo1, cubic on a GPU"
    ALGO2 = 3, "algo2, super on a GPU"
    ALGO3 = 4, "algo3, Lanczos on a GPU"
    ALGO4 = 5, "algo4, ignored on a GPU"
    DEFAULT = 6, "default, nearest"


class ScalingComputeHw(NamedValue):
    """A scaling unit. `scaling-compute-hw`."""

    DEFAULT = 0, "platform default"
    GPU = 1, "GPU"
    VIC = 2, "VIC, Jetson only"
