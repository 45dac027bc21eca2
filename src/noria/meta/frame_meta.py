"""What is known about a frame."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from noria.meta.detections import Detections, Space
from noria.meta.objects import Objects
from noria.meta.results import SegmentationMeta, TensorOutput

__all__ = ["FrameMeta"]


@dataclass(slots=True)
class FrameMeta:
    """One frame's metadata.

    Attributes:
        source: name of the source as the user gave it, without credentials.
        source_id: number of the source in the pipeline.
        frame: number of the frame within its source, from 0.
        pts_ns: presentation time in nanoseconds.
        width, height: frame size in pixels; all object rectangles are in this space.
        inferred: a model ran on this frame (even if it found nothing).
        segmentations: class maps of the whole frame.
        tensors: raw outputs of models that ran on the whole frame.
        user: anything the application attaches.
    """

    source: str
    source_id: int
    frame: int
    pts_ns: int
    width: int
    height: int
    inferred: bool = False
    objects: Objects = field(default_factory=Objects)
    segmentations: list[SegmentationMeta] = field(default_factory=list)
    tensors: list[TensorOutput] = field(default_factory=list)
    user: list[Any] = field(default_factory=list)

    def to_detections(self) -> Detections:
        """All objects as one `Detections` in frame space."""
        o = self.objects
        return Detections(o.rects, o.confidences, o.class_ids, space=Space.FRAME)
