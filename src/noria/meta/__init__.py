"""What is known about a batch, a frame, an object."""

from noria.meta.detections import Detections, Space
from noria.meta.frame_meta import (
    UNTRACKED_OBJECT_ID,
    ClassStyle,
    FrameMeta,
    ObjectMeta,
    Objects,
    mask_border_colors,
)
from noria.meta.layers import BoxParser, DetectionParams, Layer, NetworkInfo

__all__ = [
    "UNTRACKED_OBJECT_ID",
    "BoxParser",
    "ClassStyle",
    "DetectionParams",
    "Detections",
    "FrameMeta",
    "Layer",
    "NetworkInfo",
    "ObjectMeta",
    "Objects",
    "Space",
    "mask_border_colors",
]
