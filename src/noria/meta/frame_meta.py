"""What is known about a frame: array-backed objects, with cheap views for reading one by one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, overload

import numpy as np

from noria.meta.detections import Detections, FloatArray, IntArray, Space

__all__ = [
    "UNTRACKED_OBJECT_ID",
    "ClassStyle",
    "FrameMeta",
    "ObjectMeta",
    "Objects",
    "mask_border_colors",
]

UNTRACKED_OBJECT_ID = 0xFFFFFFFFFFFFFFFF
MAX_LABEL_BYTES = 127  # obj_label is a 128-byte field in the original
MAX_PIXEL = 2**31
BELOW_ONE = np.nextafter(np.float32(1), np.float32(0))
NO_MASK: FloatArray = np.empty((0, 0), np.float32)

Rgba = tuple[float, float, float, float]


@dataclass(frozen=True, slots=True)
class ClassStyle:
    """How objects of one class are drawn. Colours are r, g, b, a in 0..1. Source: spec B.7."""

    border_color: Rgba = (1.0, 0.0, 0.0, 1.0)
    bg_color: Rgba | None = None
    border_width: int = 3
    font: str = "Serif"
    font_size: int = 11
    font_color: Rgba = (1.0, 1.0, 1.0, 1.0)
    text_bg_color: Rgba | None = (0.0, 0.0, 0.0, 1.0)


DEFAULT_STYLE = ClassStyle()


def mask_border_colors(masks: Sequence[FloatArray]) -> FloatArray:
    """The border colours of one frame's masked objects: the same sequence in every frame.

    Three draws of the 32-bit Mersenne Twister seeded with 0 for each object that has a mask.

    Args:
        masks: N masks, empty for an object without one.

    Returns:
        (N, 4) float32 r, g, b, a; NaN for objects without a mask.
    Source: spec C.1.
    """
    masked = np.array([m.size > 0 for m in masks], np.bool_)
    count = int(masked.sum())
    draws = np.random.RandomState(0).randint(0, 2**32, size=(count, 3), dtype=np.uint32)
    colors = np.full((len(masks), 4), np.nan, np.float32)
    colors[masked, :3] = np.minimum(draws.astype(np.float32) / np.float32(2**32), BELOW_ONE)
    colors[masked, 3] = 1.0
    return colors


class Objects:
    """The objects of one frame as parallel arrays, in attach order.

    Attributes:
        rects: (N, 4) float32 left, top, width, height in frame pixels.
        class_ids: (N,) int32.
        confidences: (N,) float32.
        component_ids: (N,) int32, the `gie-unique-id` that made the object.
        object_ids: (N,) uint64, tracking id or `UNTRACKED_OBJECT_ID`.
        angles: (N,) float32 degrees, or None.
        masks: N float32 arrays (h, w), relative to the detected box, empty for an object without
            one; None if no object has one.
        border_colors: (N, 4) float32 r, g, b, a that replace the class's where not NaN, or None.
        mask_thresholds: per component id, mask values above it are foreground.
        labels: full label of each class id of each component (component id -> names).
        styles: per component id, the style of each class id.
    """

    __slots__ = (
        "angles",
        "border_colors",
        "class_ids",
        "component_ids",
        "confidences",
        "labels",
        "mask_thresholds",
        "masks",
        "object_ids",
        "rects",
        "styles",
    )

    def __init__(self) -> None:
        self.rects: FloatArray = np.empty((0, 4), np.float32)
        self.class_ids: IntArray = np.empty(0, np.int32)
        self.confidences: FloatArray = np.empty(0, np.float32)
        self.component_ids: IntArray = np.empty(0, np.int32)
        self.object_ids: np.ndarray[Any, np.dtype[np.uint64]] = np.empty(0, np.uint64)
        self.angles: FloatArray | None = None
        self.masks: list[FloatArray] | None = None
        self.border_colors: FloatArray | None = None
        self.mask_thresholds: dict[int, float] = {}
        self.labels: dict[int, Sequence[str]] = {}
        self.styles: dict[int, Mapping[int, ClassStyle]] = {}

    def append(
        self,
        detections: Detections,
        component_id: int,
        *,
        labels: Sequence[str] = (),
        styles: Mapping[int, ClassStyle] | None = None,
        border_colors: FloatArray | None = None,
        mask_threshold: float = 0.0,
    ) -> None:
        """Add frame-space detections as untracked objects of `component_id`.

        Args:
            detections: N boxes in frame space, angles in degrees.
            component_id: the `gie-unique-id` of the model.
            labels, styles: names and looks of its classes.
            border_colors: (N, 4) float32 r, g, b, a instead of the class's; NaN keeps it.
            mask_threshold: mask values above it are foreground.
        """
        if detections.space is not Space.FRAME:
            raise ValueError(f"objects live in frame space, not {detections.space} space")
        n = len(detections)
        self.labels[component_id] = labels
        self.styles[component_id] = styles or {}
        if not n:
            return
        first = not len(self.rects)

        def join(old: Any, new: Any) -> Any:
            return new if first else np.concatenate((old, new))

        old_n = len(self.rects)
        if detections.angles is not None or self.angles is not None:
            self.angles = np.concatenate(
                (
                    np.zeros(old_n, np.float32) if self.angles is None else self.angles,
                    np.zeros(n, np.float32) if detections.angles is None else detections.angles,
                )
            )
        if border_colors is not None or self.border_colors is not None:
            same = np.full((max(old_n, n), 4), np.nan, np.float32)
            self.border_colors = np.concatenate(
                (
                    same[:old_n] if self.border_colors is None else self.border_colors,
                    same[:n] if border_colors is None else border_colors,
                )
            )
        if detections.masks is not None or self.masks is not None:
            if detections.masks is not None:
                self.mask_thresholds[component_id] = mask_threshold
            self.masks = [
                *([NO_MASK] * old_n if self.masks is None else self.masks),
                *([NO_MASK] * n if detections.masks is None else detections.masks),
            ]
        self.rects = join(self.rects, detections.boxes)
        self.class_ids = join(self.class_ids, detections.class_ids)
        self.confidences = join(self.confidences, detections.scores)
        self.component_ids = join(self.component_ids, np.full(n, component_id, np.int32))
        self.object_ids = join(self.object_ids, np.full(n, UNTRACKED_OBJECT_ID, np.uint64))

    def label(self, index: int) -> str:
        """The full label of object `index`, empty if its class has no name."""
        names = self.labels.get(int(self.component_ids[index]), ())
        class_id = int(self.class_ids[index])
        return names[class_id] if 0 <= class_id < len(names) else ""

    def __len__(self) -> int:
        return len(self.rects)

    @overload
    def __getitem__(self, index: int) -> ObjectMeta: ...
    @overload
    def __getitem__(self, index: slice) -> list[ObjectMeta]: ...
    def __getitem__(self, index: int | slice) -> ObjectMeta | list[ObjectMeta]:
        if isinstance(index, slice):
            return [ObjectMeta(self, i) for i in range(*index.indices(len(self)))]
        if not -len(self) <= index < len(self):
            raise IndexError(f"object {index} of {len(self)}")
        return ObjectMeta(self, index % len(self))

    def __iter__(self) -> Iterator[ObjectMeta]:
        return (ObjectMeta(self, i) for i in range(len(self)))

    def __repr__(self) -> str:
        return f"Objects({len(self)})"


@dataclass(frozen=True, slots=True)
class ObjectMeta:
    """A view on one object; reads the arrays of its frame."""

    _objects: Objects = field(repr=False)
    index: int

    @property
    def left(self) -> float:
        return float(self._objects.rects[self.index, 0])

    @property
    def top(self) -> float:
        return float(self._objects.rects[self.index, 1])

    @property
    def width(self) -> float:
        return float(self._objects.rects[self.index, 2])

    @property
    def height(self) -> float:
        return float(self._objects.rects[self.index, 3])

    @property
    def class_id(self) -> int:
        return int(self._objects.class_ids[self.index])

    @property
    def confidence(self) -> float:
        return float(self._objects.confidences[self.index])

    @property
    def component_id(self) -> int:
        return int(self._objects.component_ids[self.index])

    @property
    def object_id(self) -> int:
        return int(self._objects.object_ids[self.index])

    @property
    def display_text(self) -> str | None:
        """The full label; None if there is none."""
        return self._objects.label(self.index) or None

    @property
    def label(self) -> str:
        """The label as `obj_label` holds it: at most 127 bytes of UTF-8."""
        text = self._objects.label(self.index)
        raw = text.encode(errors="replace")
        return (
            text if len(raw) <= MAX_LABEL_BYTES else raw[:MAX_LABEL_BYTES].decode(errors="ignore")
        )

    @property
    def angle(self) -> float:
        """Rotation of the rectangle in degrees."""
        return 0.0 if self._objects.angles is None else float(self._objects.angles[self.index])

    @property
    def mask(self) -> FloatArray | None:
        """(h, w) float32 relative to the detected box, or None."""
        masks = self._objects.masks
        return masks[self.index] if masks is not None and masks[self.index].size else None

    @property
    def style(self) -> ClassStyle:
        """How it is drawn: its class's style, with its own border colour if it has one."""
        o = self._objects
        style = o.styles.get(self.component_id, {}).get(self.class_id, DEFAULT_STYLE)
        if o.border_colors is None or np.isnan(o.border_colors[self.index]).any():
            return style
        r, g, b, a = o.border_colors[self.index].tolist()
        return replace(style, border_color=(r, g, b, a))

    @property
    def text_position(self) -> tuple[int, int]:
        """Where the label is drawn: x, y in frame pixels.

        Truncated, and 0 where that is negative or no number. Source: spec B.7.
        """
        x, y = self.left, self.top - 10
        return int(x) if 0 < x < MAX_PIXEL else 0, int(y) if 0 < y < MAX_PIXEL else 0


@dataclass(slots=True)
class FrameMeta:
    """One frame's metadata.

    Attributes:
        source: name of the source as the user gave it, without credentials.
        source_id: number of the source in the pipeline.
        frame: number of the frame within its source, from 0.
        pts_ns: presentation time in nanoseconds.
        width, height: frame size in pixels; all object rectangles are in this space.
        inferred: a detector ran on this frame (even if it found nothing).
    """

    source: str
    source_id: int
    frame: int
    pts_ns: int
    width: int
    height: int
    inferred: bool = False
    objects: Objects = field(default_factory=Objects)

    def to_detections(self) -> Detections:
        """All objects as one `Detections` in frame space."""
        o = self.objects
        return Detections(o.rects, o.confidences, o.class_ids, space=Space.FRAME)
