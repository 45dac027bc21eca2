"""Metadata of batches, frames and objects."""

from headrace.meta.analytics import FrameAnalytics, ObjectAnalytics
from headrace.meta.detections import Detections, Space
from headrace.meta.figures import Caption, Figure, Stroke
from headrace.meta.frame_meta import FrameMeta
from headrace.meta.layers import (
    BoxParser,
    Classification,
    ClassifierParams,
    ClassifierParser,
    DetectionParams,
    Layer,
    NetworkInfo,
    Segmentation,
    SegmentationParams,
    SegmentationParser,
)
from headrace.meta.objects import (
    ClassStyle,
    ObjectMeta,
    Objects,
    mask_border_colors,
)
from headrace.meta.results import (
    UNTRACKED_OBJECT_ID,
    ClassifierMeta,
    InputTensor,
    LabelInfo,
    Roi,
    SegmentationMeta,
    TensorOutput,
)
from headrace.meta.track_geometry import TrackGeometry

__all__ = [
    "UNTRACKED_OBJECT_ID",
    "BoxParser",
    "Caption",
    "ClassStyle",
    "Classification",
    "ClassifierMeta",
    "ClassifierParams",
    "ClassifierParser",
    "DetectionParams",
    "Detections",
    "Figure",
    "FrameAnalytics",
    "FrameMeta",
    "InputTensor",
    "LabelInfo",
    "Layer",
    "NetworkInfo",
    "ObjectAnalytics",
    "ObjectMeta",
    "Objects",
    "Roi",
    "Segmentation",
    "SegmentationMeta",
    "SegmentationParams",
    "SegmentationParser",
    "Space",
    "Stroke",
    "TensorOutput",
    "TrackGeometry",
    "mask_border_colors",
]
