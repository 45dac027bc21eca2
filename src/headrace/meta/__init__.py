"""Metadata of batches, frames and objects. Names resolve on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace._core.lazy import lazy

if TYPE_CHECKING:
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
else:
    __getattr__, __dir__ = lazy(
        __name__,
        {
            ".analytics": "FrameAnalytics ObjectAnalytics",
            ".detections": "Detections Space",
            ".figures": "Caption Figure Stroke",
            ".frame_meta": "FrameMeta",
            ".layers": (
                "BoxParser Classification ClassifierParams ClassifierParser DetectionParams Layer "
                "NetworkInfo Segmentation SegmentationParams SegmentationParser"
            ),
            ".objects": "ClassStyle ObjectMeta Objects mask_border_colors",
            ".results": (
                "UNTRACKED_OBJECT_ID ClassifierMeta InputTensor LabelInfo Roi SegmentationMeta "
                "TensorOutput"
            ),
            ".track_geometry": "TrackGeometry",
        },
    )

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
