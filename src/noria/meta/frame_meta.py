"""What is known about a frame: array-backed objects, with cheap views for reading one by one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, overload

import numpy as np

from noria.meta.detections import Detections, FloatArray, IntArray, Space

__all__ = ["UNTRACKED_OBJECT_ID", "ClassStyle", "FrameMeta", "ObjectMeta", "Objects"]

UNTRACKED_OBJECT_ID = 0xFFFFFFFFFFFFFFFF
MAX_LABEL_BYTES = 127  # obj_label is a 128-byte field in the original

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


class Objects:
    """The objects of one frame as parallel arrays, in attach order.

    Attributes:
        rects: (N, 4) float32 left, top, width, height in frame pixels.
        class_ids: (N,) int32.
        confidences: (N,) float32.
        component_ids: (N,) int32, the `gie-unique-id` that made the object.
        object_ids: (N,) uint64, tracking id or `UNTRACKED_OBJECT_ID`.
        angles: (N,) float32 degrees, or None.
        labels: full label of each class id of each component (component id -> names).
        styles: per component id, the style of each class id.
    """

    __slots__ = (
        "angles",
        "class_ids",
        "component_ids",
        "confidences",
        "labels",
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
        self.labels: dict[int, Sequence[str]] = {}
        self.styles: dict[int, Mapping[int, ClassStyle]] = {}

    def append(
        self,
        detections: Detections,
        component_id: int,
        *,
        labels: Sequence[str] = (),
        styles: Mapping[int, ClassStyle] | None = None,
    ) -> None:
        """Add frame-space detections as untracked objects of `component_id`."""
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
            old_angles = self.angles if self.angles is not None else np.zeros(old_n, np.float32)
            new_angles = (
                detections.angles if detections.angles is not None else np.zeros(n, np.float32)
            )
            self.angles = np.concatenate((old_angles, new_angles))
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
        raw = text.encode()
        return (
            text if len(raw) <= MAX_LABEL_BYTES else raw[:MAX_LABEL_BYTES].decode(errors="ignore")
        )

    @property
    def style(self) -> ClassStyle:
        return self._objects.styles.get(self.component_id, {}).get(self.class_id, DEFAULT_STYLE)

    @property
    def text_position(self) -> tuple[int, int]:
        """Where the label is drawn: x, y in frame pixels, never negative. Source: spec B.7."""
        return max(0, int(self.left)), max(0, int(self.top - 10))


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
