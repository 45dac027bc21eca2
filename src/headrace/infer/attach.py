"""From network space to the frame: mapping, size and ROI filters, metadata.

One native call does the objects of a batch in the order of spec B.6
(`native/src/cluster/attach.cpp`). Positions and sizes are float32, only the division by the scale
ratio is float64:

1. map from network to frame pixels; in tensor-input mode add the region's origin;
2. in tensor-input mode, cut at the region's edges. 9.1 shortens a box by what sticks out, down to
   0; 6.2 shortens it on the right and bottom, also below 0, and on the left and top moves the edge;
3. 9.1: a negative left or top becomes 0, the size stays;
4. drop classes of `filter-out-class-ids`, then boxes outside `detected-min-*`, `detected-max-*`;
5. without `crop-objects-to-roi-boundary` drop boxes above `roi-top-offset`, then boxes that reach
   below the frame's height less `roi-bottom-offset`; with it, cut them there (moving the top
   without shortening) and at the frame's right edge;
6. add the parent's position: until here a child is relative to its parent.

The profile `modern` cuts a box at the frame's edges in place of step 3, and drops one that is
wholly outside; in step 5 an offset of 0 tests nothing, and cutting at the top shortens the box.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import IntEnum
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from headrace._core import _native
from headrace._core.errors import ConfigError
from headrace._core.plain_record import PlainRecord
from headrace.config.enums import Generation
from headrace.infer.parsers.labels import Labels
from headrace.meta import ClassStyle, Detections, FrameMeta, Space, mask_border_colors
from headrace.meta.detections import FloatArray, IntArray

if TYPE_CHECKING:
    from headrace.config import ClassAttrs, ModelConfig
    from headrace.infer.geometry import Rect, ScaleTransform

GENERATIONS = ("6.2", "9.1")
UINT32 = 1 << 32
DEGREES_PER_RADIAN = np.float32(57.2957795)


EDGE = "edge"
"""Name of the test that no key asks for: the frame's own edge."""


class DropReason(IntEnum):
    """Which test dropped an object; `key` is the config key it belongs to."""

    KEPT = 0
    FILTER_OUT_CLASS_IDS = 1
    DETECTED_MIN_W = 2
    DETECTED_MIN_H = 3
    DETECTED_MAX_W = 4
    DETECTED_MAX_H = 5
    ROI_TOP_OFFSET = 6
    ROI_BOTTOM_OFFSET = 7
    FRAME_BOTTOM = 8
    FRAME_TOP = 9
    OUTSIDE = 10

    @property
    def key(self) -> str:
        """The config key: `detected-min-w`."""
        return _EDGE_KEYS.get(self.name) or self.name.lower().replace("_", "-")

    @property
    def edge(self) -> bool:
        """Whether it is the frame's own edge: no key asks for it."""
        return self.name in _EDGE_KEYS

    @property
    def test(self) -> str:
        """Name of the test: the config key, or `edge`."""
        return EDGE if self.edge else self.key


_AT_EDGES = int(DropReason.FRAME_BOTTOM)  # NumPy takes ten microseconds to understand an enum


_EDGE_KEYS = {
    "FRAME_BOTTOM": "roi-bottom-offset",
    "FRAME_TOP": "roi-top-offset",
    "OUTSIDE": "profile",
}


class AttachParams(PlainRecord, frozen=True):
    """Filters of each of C classes as the native call takes them.

    Attributes:
        filters: (C, 6) float32: detected-min-w, -min-h, -max-w, -max-h (0: none), roi-top-offset in
            frame pixels; 1 for a class of filter-out-class-ids. Compared as floats, as the original
            compares these integers.
        roi_bottom: (C,) uint32, roi-bottom-offset in frame pixels.
        crop: `crop-objects-to-roi-boundary`.
    """

    filters: FloatArray
    roi_bottom: npt.NDArray[np.uint32]
    crop: bool = False

    @classmethod
    def from_attrs(
        cls,
        per_class: Sequence[ClassAttrs],
        *,
        filter_out_class_ids: Sequence[int] = (),
        crop: bool = False,
    ) -> AttachParams:
        """Filters for classes 0 to `len(per_class) - 1`."""
        filters = [
            (
                a.detected_min_w,
                a.detected_min_h,
                a.detected_max_w,
                a.detected_max_h,
                a.roi_top_offset,
                i in filter_out_class_ids,
            )
            for i, a in enumerate(per_class)
        ]
        return cls(
            np.array(filters, np.float32).reshape(-1, 6),
            np.array([a.roi_bottom_offset % UINT32 for a in per_class], np.uint32),
            crop,
        )


class AttachResult(PlainRecord, frozen=True):
    """Objects attached to the frames of N items.

    Attributes:
        detections: M objects in frame space, as appended to `FrameMeta.objects`.
        starts: (N + 1,) int32, the first object of each item, and the end of the last.
        kept: (M,) int32, their rows in the input.
        dropped: (K,) int32, the other rows.
        reasons: (K,) uint8, `DropReason` of each.
        shifted: how many of the attached were moved because they reach beyond the left or top edge
            of the frame by more than half a pixel (9.1).
    """

    detections: Detections
    starts: IntArray
    kept: IntArray
    dropped: IntArray
    reasons: npt.NDArray[np.uint8]
    shifted: int = 0

    @property
    def edge_drops(self) -> int:
        """How many were dropped at the frame's own edges."""
        return int(np.count_nonzero(self.reasons >= _AT_EDGES)) if len(self.reasons) else 0


class Destination(NamedTuple):
    """Where the objects of one item go.

    Attributes:
        transform: how the item was scaled.
        meta: the frame to append to; its width and height bound the ROI tests.
        roi: the region the item's tensor was cut from, in frame pixels (tensor-input mode).
        parent: rectangle of the object that was inferred, in frame pixels (secondary mode); filters
            see coordinates relative to it.
        parent_index: that object's index in the frame, or -1.
    """

    transform: ScaleTransform
    meta: FrameMeta
    roi: Rect | None = None
    parent: Rect | None = None
    parent_index: int = -1


class Attacher:
    """Attaches one model's objects to frames. Safe to use from any thread.

    Args:
        cfg: the detector's configuration.
        labels: names of the classes; a class without one is attached without text.
        generation: whose rules to follow where they differ.
        clip_to_roi: with an ROI, cut objects at its edges (`clip-object-outside-roi`).
    """

    def __init__(
        self,
        cfg: ModelConfig,
        labels: Labels | Sequence[str] = (),
        *,
        generation: Generation = "9.1",
        clip_to_roi: bool = True,
    ) -> None:
        per_class = cfg.per_class
        self.params = AttachParams.from_attrs(
            per_class,
            filter_out_class_ids=cfg.filter_out_class_ids,
            crop=cfg.crop_objects_to_roi_boundary,
        )
        self.component_id = cfg.component_id
        self.output_instance_mask = cfg.output_instance_mask
        self.mask_threshold = cfg.segmentation_threshold
        self.labels = tuple(labels.detector if isinstance(labels, Labels) else labels)
        self.generation = _known(generation)
        self.clip_to_roi = clip_to_roi
        self.modern = cfg.profile == "modern"
        ends = cfg.keypoint_skeleton
        bones = tuple(zip(ends[::2], ends[1::2], strict=True)) or None
        self.styles = {
            i: ClassStyle(border_color=a.border_color, bg_color=a.bg_color, bones=bones)
            for i, a in enumerate(per_class)
        }

    def __call__(
        self,
        detections: Detections,
        transform: ScaleTransform,
        meta: FrameMeta,
        generation: Generation | None = None,
        *,
        roi: Rect | None = None,
        parent: Rect | None = None,
        parent_index: int = -1,
    ) -> AttachResult:
        """Map, filter and append one item's objects; mark the frame as inferred.

        Args:
            detections: N clustered objects in network space; class ids within the config's range.
            transform, meta, roi, parent, parent_index: of the item, see `Destination`.
            generation: overrides the attacher's.

        Raises:
            ConfigError: the generation is neither 6.2 nor 9.1.
        Source: spec B.6, B.7.
        """
        starts = np.array([0, len(detections)], np.int32)
        destination = Destination(transform, meta, roi, parent, parent_index)
        return self.attach(detections, starts, [destination], generation)

    def attach(
        self,
        detections: Detections,
        starts: IntArray,
        destinations: Sequence[Destination],
        generation: Generation | None = None,
        *,
        tally: npt.NDArray[np.int64] | None = None,
    ) -> AttachResult:
        """Map, filter and append the objects of N items; mark their frames as inferred.

        Args:
            detections: clustered objects in network space, item after item; class ids within the
                config's range. Those of several items have no masks, angles and keypoints.
            starts: (N + 1,) int32, the first of each item, and the end of the last.
            destinations: of each item.
            generation: overrides the attacher's.
            tally: (C + 1, 11) int64, a row for each class, a column for each `DropReason`: the
                numbers of boxes dropped are added to it.

        Raises:
            ConfigError: the generation is neither 6.2 nor 9.1.
        Source: spec B.6, B.7.
        """
        old = _known(generation or self.generation) == "6.2"
        mapped = _native.attach(
            detections.boxes,
            detections.scores,
            detections.class_ids,
            starts,
            self.params.filters,
            self.params.roi_bottom,
            [self._numbers(destination) for destination in destinations],
            tally,
            clip=destinations[0].roi is not None and self.clip_to_roi,
            crop=self.params.crop,
            old=old,
            modern=self.modern,
        )
        first, kept = mapped.starts, mapped.kept
        attached = Detections.unchecked(
            mapped.rects, mapped.scores, mapped.class_ids, space=Space.FRAME
        )
        shapes = detections.masks, detections.angles, detections.keypoints
        if any(shape is not None for shape in shapes):
            self._add_shapes(attached, detections.select(kept), destinations[0])
        border_colors = None
        if attached.masks is not None and not old:
            border_colors = mask_border_colors(attached.masks)
        for destination, (start, end) in zip(destinations, pairwise(first.tolist()), strict=True):
            destination.meta.objects.append(
                attached if len(destinations) == 1 else attached.rows(start, end),
                self.component_id,
                labels=self.labels,
                styles=self.styles,
                border_colors=border_colors,
                mask_threshold=self.mask_threshold,
                parent=destination.parent_index,
            )
            destination.meta.inferred = True
        return AttachResult(attached, first, kept, mapped.dropped, mapped.reasons, mapped.shifted)

    def _add_shapes(self, attached: Detections, rest: Detections, destination: Destination) -> None:
        """Masks, angles and keypoints of boxes, at their places in the frame.

        Args:
            attached: gets them; a box that is turned is not cut.
            rest: the same boxes in network space.
            destination: of all of them.
        """
        masks = rest.masks if self.output_instance_mask else None
        angles = rest.angles
        if self.modern and not (masks is None and angles is None):
            parent = self._parent(destination)
            whole = self.to_frame(
                rest.boxes, destination.transform, roi=destination.roi, parent=parent
            )
            masks = _keep_shapes(whole, attached.boxes, masks, angles)
        attached.masks = masks
        attached.angles = None if angles is None else angles * DEGREES_PER_RADIAN
        attached.keypoints = self._keypoints_to_frame(rest.keypoints, destination)

    def _parent(self, destination: Destination) -> Rect | None:
        return self.parent_rect(destination.transform, destination.parent)

    def _numbers(self, destination: Destination) -> tuple[float, ...]:
        """The place of an item as the native call takes it."""
        transform, meta, roi, parent, _ = destination
        origin = self.parent_rect(transform, parent) or (0, 0)
        # The division is `ScaleTransform.to_frame`, made natively; a test holds them together.
        return (
            transform.offset_x,
            transform.offset_y,
            transform.ratio_x,
            transform.ratio_y,
            *_region(roi),
            *origin[:2],
            meta.width,
            meta.height,
        )

    def _keypoints_to_frame(
        self, keypoints: FloatArray | None, destination: Destination
    ) -> FloatArray | None:
        """Map points of (N, K, 3) as corners of boxes are mapped; a score stays, none is cut."""
        if keypoints is None:
            return None
        boxes = np.zeros((keypoints.shape[0] * keypoints.shape[1], 4), np.float32)
        boxes[:, :2] = keypoints[..., :2].reshape(-1, 2)
        mapped = keypoints.copy()
        parent = self._parent(destination)
        positions = self.to_frame(boxes, destination.transform, roi=destination.roi, parent=parent)[
            :, :2
        ]
        mapped[..., :2] = positions.reshape(*keypoints.shape[:2], 2)
        return mapped

    def to_frame(
        self,
        boxes: FloatArray,
        transform: ScaleTransform,
        *,
        roi: Rect | None = None,
        parent: Rect | None = None,
    ) -> FloatArray:
        """Map boxes to the frame as `__call__` does, and neither cut nor drop any.

        Args:
            boxes: (N, 4) in network space.
            transform, roi, parent: as for `__call__`.

        Returns:
            (N, 4) float32 left, top, width, height in frame pixels.
        """
        whole = transform.to_frame(boxes, *_region(roi)[:2])
        whole[:, :2] += (self.parent_rect(transform, parent) or (0, 0))[:2]
        return whole

    def parent_rect(self, transform: ScaleTransform, parent: Rect | None) -> Rect | None:
        """The rectangle in frame pixels that places of children are relative to, if any.

        That of the object; in the profile `modern` the crop itself: whole pixels inside the frame.
        """
        return transform.src if self.modern and parent is not None else parent


def _known(generation: str) -> str:
    if generation not in GENERATIONS:
        raise ConfigError(
            f"generation {generation!r} is not known",
            expected="9.1, or 6.2 for the rules of releases up to 6.3",
        )
    return generation


def _keep_shapes(
    whole: FloatArray,
    rects: FloatArray,
    masks: list[FloatArray] | None,
    angles: FloatArray | None,
) -> list[FloatArray] | None:
    """Masks of boxes that were cut, cut alike; a box that is turned is left whole.

    Args:
        whole, rects: (N, 4) float32, boxes in frame pixels before and after; `rects` is changed.
        masks: scores relative to `whole`; empty for none.
        angles: of the boxes in radians.
    """
    if angles is not None:
        turned = angles != 0
        rects[turned] = whole[turned]
    if masks is None:
        return None
    kept = list(masks)
    for i in np.flatnonzero((whole != rects).any(1)).tolist():
        if kept[i].size:
            rows = _cut_axis(kept[i], whole[i, 1::2], rects[i, 1::2])
            columns = _cut_axis(rows.T, whole[i, ::2], rects[i, ::2])
            kept[i] = np.ascontiguousarray(columns.T)
    return kept


def _cut_axis(mask: FloatArray, whole: FloatArray, part: FloatArray) -> FloatArray:
    """The rows of a mask that a part of its box covers, interpolated; both are start and size."""
    rows = len(mask)
    share = part[1] / whole[1]
    count = max(1, round(rows * float(share)))
    centres = (part[0] - whole[0]) / whole[1] + (np.arange(count) + 0.5) / count * share
    at = np.clip(centres * rows - 0.5, 0, rows - 1)
    low = np.minimum(at.astype(np.intp), max(0, rows - 2))
    weight = (at - low).astype(np.float32)[:, None]
    cut: FloatArray = mask[low] * (1 - weight) + mask[np.minimum(low + 1, rows - 1)] * weight
    return cut


def _region(roi: Rect | None) -> tuple[float, ...]:
    """Its origin in whole pixels, as mapped positions get it, and the rectangle to clip at."""
    if roi is None:
        return (0, 0, 0, 0, 0, 0)
    return max(0, math.trunc(roi.left)), max(0, math.trunc(roi.top)), *roi
