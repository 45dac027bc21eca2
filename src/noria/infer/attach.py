"""From network space to the frame: mapping, size and ROI filters, metadata.

Everything is done for all objects at once, in the order of spec B.6. Positions and sizes are
float32, only the division by the scale ratio is float64.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from noria.infer.labels import Labels
from noria.meta import ClassStyle, Detections, FrameMeta, Space, mask_border_colors
from noria.meta.detections import FloatArray, IntArray

if TYPE_CHECKING:
    from noria.config import ClassAttrs, ModelConfig
    from noria.infer.geometry import Rect, ScaleTransform

__all__ = ["AttachParams", "AttachResult", "Attacher", "DropReason", "Generation", "clip_to_roi"]

Generation = Literal["6.2", "9.1"]

UINT32 = 1 << 32
DEGREES_PER_RADIAN = np.float32(57.2957795)


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

    @property
    def field(self) -> str:
        """The field of `ClassAttrs` or `ModelConfig` it tests: `detected_min_w`."""
        return self.name.lower()

    @property
    def key(self) -> str:
        """The config key: `detected-min-w`."""
        return self.field.replace("_", "-")


# In the order of the tests: the column of (left, top, width, height) each looks at.
_SIZE_TESTS = {
    DropReason.DETECTED_MIN_W: 2,
    DropReason.DETECTED_MIN_H: 3,
    DropReason.DETECTED_MAX_W: 2,
    DropReason.DETECTED_MAX_H: 3,
}
_MAXIMA = (DropReason.DETECTED_MAX_W, DropReason.DETECTED_MAX_H)


@dataclass(frozen=True, slots=True)
class AttachParams:
    """Filters of each of C classes; None where no class uses one.

    Attributes:
        filtered: (C,) bool, `filter-out-class-ids`.
        sizes: the tests `width < limit` and the like: which drops, the column of (left, top, width,
            height) it reads, and (C,) float32 frame pixels, a missing maximum being infinity.
            Limits are compared as float32, as in the original.
        roi_top: (C,) float32 pixels from the frame's upper edge.
        roi_bottom: (C,) int64 pixels from the frame's lower edge.
        crop: `crop-objects-to-roi-boundary`.
    """

    filtered: npt.NDArray[np.bool_] | None
    sizes: tuple[tuple[DropReason, int, FloatArray], ...]
    roi_top: FloatArray | None
    roi_bottom: npt.NDArray[np.int64] | None
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
        filtered = np.zeros(len(per_class), np.bool_)
        filtered[[i for i in filter_out_class_ids if 0 <= i < len(per_class)]] = True
        sizes = []
        for reason, axis in _SIZE_TESTS.items():
            values = np.array([getattr(a, reason.field) for a in per_class], np.float32)
            if reason in _MAXIMA:
                if not values.any():
                    continue
                values[values == 0] = np.inf
            sizes.append((reason, axis, values))  # a minimum of 0 still drops negative sizes
        roi_top = np.array([a.roi_top_offset for a in per_class], np.float32)
        roi_bottom = np.array([a.roi_bottom_offset for a in per_class], np.int64)
        return cls(
            filtered=filtered if filtered.any() else None,
            sizes=tuple(sizes),
            roi_top=roi_top if roi_top.any() else None,
            roi_bottom=roi_bottom if roi_bottom.any() else None,
            crop=crop,
        )


@dataclass(frozen=True, slots=True)
class AttachResult:
    """What was attached to a frame.

    Attributes:
        detections: M objects in frame space, as appended to `FrameMeta.objects`.
        kept: (M,) int32, their rows in the input.
        dropped: (K,) int32, the other rows.
        reasons: (K,) uint8, `DropReason` of each.
    """

    detections: Detections
    kept: IntArray
    dropped: IntArray
    reasons: npt.NDArray[np.uint8]


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
        self.generation = generation
        self.clip_to_roi = clip_to_roi
        self.styles = {
            i: ClassStyle(border_color=a.border_color, bg_color=a.bg_color)
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
    ) -> AttachResult:
        """Map, filter and append one item's objects; mark the frame as inferred.

        Args:
            detections: N clustered objects in network space; class ids within the config's range.
            transform: how this item was scaled.
            meta: the frame to append to; its width and height bound the ROI tests.
            generation: overrides the attacher's.
            roi: the region the item's tensor was cut from, in frame pixels (tensor-input mode).
            parent: rectangle of the object that was inferred, in frame pixels (secondary mode);
                filters see coordinates relative to it.
        Source: spec B.6, B.7.
        """
        generation = generation or self.generation
        if roi is None:
            rects = transform.to_frame(detections.boxes)
        else:
            rects = transform.to_frame(detections.boxes, roi_left=roi.left, roi_top=roi.top)
            if self.clip_to_roi:
                clip_to_roi(rects, roi, generation)
        reasons = self._filter(rects, detections.class_ids, meta, generation)
        if parent is not None:
            rects[:, 0] += np.float32(parent.left)
            rects[:, 1] += np.float32(parent.top)
        angles = detections.angles
        attached = Detections(
            rects,
            detections.scores,
            detections.class_ids,
            masks=detections.masks if self.output_instance_mask else None,
            angles=None if angles is None else angles * DEGREES_PER_RADIAN,
            space=Space.FRAME,
        )
        kept = np.arange(len(rects), dtype=np.int32)
        dropped = kept[:0]
        if reasons.any():
            dropped = np.flatnonzero(reasons).astype(np.int32)
            kept = np.flatnonzero(reasons == DropReason.KEPT).astype(np.int32)
            attached = attached.select(kept)
        border_colors = None
        if attached.masks is not None and generation != "6.2":
            border_colors = mask_border_colors(attached.masks)
        meta.objects.append(
            attached,
            self.component_id,
            labels=self.labels,
            styles=self.styles,
            border_colors=border_colors,
            mask_threshold=self.mask_threshold,
        )
        meta.inferred = True
        return AttachResult(attached, kept, dropped, reasons[dropped])

    def _filter(
        self, rects: FloatArray, class_ids: IntArray, meta: FrameMeta, generation: Generation
    ) -> npt.NDArray[np.uint8]:
        """Steps 3 to 9 of spec B.6: changes `rects` in place, returns the `DropReason` of each."""
        p = self.params
        if generation != "6.2":
            np.maximum(rects[:, :2], 0, out=rects[:, :2])
        left, top, width, height = rects.T  # views
        line: Any = np.float32(0) if p.roi_top is None else p.roi_top[class_ids]
        limit: Any = np.float32(meta.height)
        if p.roi_bottom is not None:
            # Unsigned in the original: an offset beyond the frame wraps around and never drops.
            limit = ((meta.height - p.roi_bottom[class_ids]) % UINT32).astype(np.float32)
        # From the last test to the first: the first that fails is the one that counts.
        reasons = np.zeros(len(rects), np.uint8)
        if not p.crop:
            reasons[top + height > limit] = DropReason.ROI_BOTTOM_OFFSET
            reasons[top < line] = DropReason.ROI_TOP_OFFSET
        for reason, axis, values in reversed(p.sizes):
            size, bound = rects[:, axis], values[class_ids]
            reasons[size > bound if reason in _MAXIMA else size < bound] = reason
        if p.filtered is not None:
            reasons[p.filtered[class_ids]] = DropReason.FILTER_OUT_CLASS_IDS
        if p.crop:
            if generation == "6.2":
                np.maximum(left, 0, out=left)
            np.maximum(top, line, out=top)
            frame_width = np.float32(meta.width)
            np.copyto(width, frame_width - left, where=left + width >= frame_width)
            np.copyto(height, limit - top, where=top + height > limit)
        return reasons


def clip_to_roi(rects: FloatArray, roi: Rect, generation: Generation) -> None:
    """Cut (N, 4) float32 frame-space rectangles at the edges of `roi`, in place.

    9.1 shortens a box by what sticks out, down to 0. 6.2 shortens it on the right and bottom, also
    below 0, and on the left and top moves the edge without shortening. Source: spec B.6.
    """
    for axis in (0, 1):
        start, size = rects[:, axis], rects[:, axis + 2]
        low = np.float32(roi[axis])
        high = low + np.float32(roi[axis + 2])
        over = start + size > high
        np.copyto(size, high - start, where=over)
        if generation != "6.2":
            np.copyto(size, np.float32(0), where=over & (size < 0))
            under = start < low
            np.copyto(size, np.maximum(size - (low - start), 0), where=under)
        np.maximum(start, low, out=start)
