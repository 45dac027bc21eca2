"""Metadata of a frame."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import field

from headrace._core.lazy import import_extra
from headrace._core.plain_record import PlainRecord
from headrace.meta.analytics import FrameAnalytics
from headrace.meta.detections import Detections, Space
from headrace.meta.figures import Figure
from headrace.meta.objects import ObjectMeta, Objects
from headrace.meta.results import SegmentationMeta, TensorOutput


class FrameMeta(PlainRecord):
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
        analytics: counts of regions and lines, if there are rules: `headrace.pipeline.analytics`.
        figures: lines and texts to be drawn.
        user: anything the application attaches.
        wall_ns: when the frame was taken, in nanoseconds since 1970, UTC: of a live source the time
            when it came here, of a file what its head says; None where nothing tells.
        fps: frame rate of the source; None if that is not known.
        live: the source is live.
        failed: component ids of models that should have run on this frame and gave it no results:
            they failed, or did not answer in time.
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
    analytics: FrameAnalytics | None = None
    figures: list[Figure] = field(default_factory=list)
    user: list[Any] = field(default_factory=list)
    wall_ns: int | None = None
    fps: float | None = None
    live: bool = False
    failed: tuple[int, ...] = ()

    def note_failure(self, component_id: int) -> None:
        """Note that a model gave this frame, or an object of it, no results."""
        if component_id not in self.failed:
            self.failed = (*self.failed, component_id)

    def to_detections(self) -> Detections:
        """All objects as one `Detections` in frame space."""
        o = self.objects
        return Detections(o.rects, o.confidences, o.class_ids, space=Space.FRAME)

    def to_supervision(self) -> Any:
        """All objects as `supervision.Detections`, for its annotators, zones and metrics.

        Returns:
            `xyxy` (N, 4) float32 in frame pixels, `confidence`, `class_id`; `tracker_id` if any
            object is tracked, -1 for those that are not; `mask` (N, height, width) bool if any
            object has a mask; `data["class_name"]` the labels.

        Raises:
            MissingExtraError: the extra `supervision` is not installed.
        """
        supervision = import_extra("supervision", "supervision")
        o = self.objects
        corners = o.rects.copy()
        corners[:, 2:] += corners[:, :2]
        ids = o.object_ids.astype(np.int64)  # untracked is all ones, which becomes -1
        masks = None
        if o.masks is not None and any(mask.size for mask in o.masks):
            masks = np.zeros((len(o), self.height, self.width), np.bool_)
            for obj in o:
                mask = self.pixel_mask(obj)
                if mask is not None:
                    masks[obj.index] = mask
        return supervision.Detections(
            xyxy=corners,
            mask=masks,
            confidence=o.confidences.copy(),
            class_id=o.class_ids.astype(int),
            tracker_id=ids if (ids != -1).any() else None,
            data={"class_name": np.array([o.label(i) for i in range(len(o))], dtype=np.str_)},
        )

    def to_supervision_keypoints(self) -> Any:
        """Objects that have keypoints as `supervision.KeyPoints`, for its annotators.

        Returns:
            `xy` (N, K, 2) float32 in frame pixels, `keypoint_confidence` (N, K), `class_id`; K is
            that of the object with the most points, others end with points of confidence 0.

        Raises:
            MissingExtraError: the extra `supervision` is not installed.
        """
        supervision = import_extra("supervision", "supervision")
        o = self.objects
        rows = [i for i, points in enumerate(o.keypoints or ()) if len(points)]
        if o.keypoints is None or not rows:
            return supervision.KeyPoints.empty()
        padded = np.zeros((len(rows), max(len(o.keypoints[i]) for i in rows), 3), np.float32)
        for row, i in enumerate(rows):
            padded[row, : len(o.keypoints[i])] = o.keypoints[i]
        return supervision.KeyPoints(
            xy=padded[..., :2],
            keypoint_confidence=padded[..., 2],
            class_id=o.class_ids[rows].astype(int),
        )

    def pixel_mask(self, obj: ObjectMeta) -> npt.NDArray[np.bool_] | None:
        """Which pixels of the frame an object covers, or None if it has no mask.

        Returns:
            (height, width) bool, False outside the object's box.
        """
        from headrace.meta.masks import object_mask

        placed = object_mask(self.objects, obj.index, self.width, self.height)
        return None if placed is None else placed.full(self.width, self.height)

    def __repr__(self) -> str:
        from headrace.meta.notebook import frame_line

        return f"FrameMeta({frame_line(self)})"

    def _repr_html_(self) -> str:
        """A small table of the objects, for notebooks."""
        from headrace.meta.notebook import frame_html

        return frame_html(self)
