"""The objects of a frame: parallel arrays, with cheap views for reading and changing one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol, TypeVar, cast, overload

import numpy as np
import numpy.typing as npt

from headrace._core.plain_record import PlainRecord
from headrace._core.types import Array
from headrace.meta.analytics import ObjectAnalytics
from headrace.meta.detections import Detections, FloatArray, IntArray, Space
from headrace.meta.figures import Rgba
from headrace.meta.results import (
    UNTRACKED_OBJECT_ID,
    ClassifierMeta,
    SegmentationMeta,
    TensorOutput,
)
from headrace.meta.skeletons import Bones

R = TypeVar("R", covariant=True)
T = TypeVar("T")
MAX_LABEL_BYTES = 127  # obj_label is a 128-byte field in the original
MAX_PIXEL = 2**31
BELOW_ONE = np.nextafter(np.float32(1), np.float32(0))
NO_MASK: FloatArray = np.empty((0, 0), np.float32)
NO_KEYPOINTS: FloatArray = np.empty((0, 3), np.float32)
_NO_INTS: IntArray = np.empty(0, np.int32)
_NO_FLOATS: FloatArray = np.empty(0, np.float32)
_NO_RECTS: FloatArray = np.empty((0, 4), np.float32)
_NO_IDS: npt.NDArray[np.uint64] = np.empty(0, np.uint64)

_COLUMNS = (
    "rects",
    "class_ids",
    "confidences",
    "component_ids",
    "object_ids",
    "angles",
    "border_colors",
    "tracker_confidences",
    "detector_rects",
)
_SPARSE = ("classifiers", "texts", "segmentations", "tensors", "analytics", "reids", "user")


class ClassStyle(PlainRecord, frozen=True):
    """How objects of one class are drawn. Colours are r, g, b, a in 0..1. Source: spec B.7.

    Attributes:
        bones: pairs of keypoints that a line joins; None takes the usual ones of their number.
    """

    border_color: Rgba = (1.0, 0.0, 0.0, 1.0)
    bg_color: Rgba | None = None
    border_width: int = 3
    font: str = "Serif"
    font_size: int = 11
    font_color: Rgba = (1.0, 1.0, 1.0, 1.0)
    text_bg_color: Rgba | None = (0.0, 0.0, 0.0, 1.0)
    bones: Bones | None = None


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


def _zeros(count: int) -> FloatArray:
    return np.zeros(count, np.float32)


def _filled(count: int, value: int, dtype: type[object]) -> Array:
    column = np.empty(count, dtype)  # `np.full` takes three times as long
    column.fill(value)
    return column


def _no_colors(count: int) -> FloatArray:
    return np.full((count, 4), np.nan, np.float32)


class Objects:
    """The objects of one frame as parallel arrays, in attach order.

    Attributes:
        rects: (N, 4) float32 left, top, width, height in frame pixels.
        class_ids: (N,) int32.
        confidences: (N,) float32.
        component_ids: (N,) int32, the `gie-unique-id` that made the object.
        object_ids: (N,) uint64, tracking id or `UNTRACKED_OBJECT_ID`.
        parents: (N,) int32, the object in whose crop this one was found, or -1.
        angles: (N,) float32 degrees, or None.
        masks: N float32 arrays (h, w), relative to the detected box, empty for an object without
            one; None if no object has one.
        keypoints: N float32 arrays (K, 3) of x, y in frame pixels and score, empty for an object
            without any; None if no object has any.
        border_colors: (N, 4) float32 r, g, b, a that replace the class's where not NaN, or None.
        tracker_confidences: (N,) float32, or None without a tracker.
        detector_rects: (N, 4) float32, the boxes before a tracker changed them, or None.
        mask_thresholds: per component id, mask values above it are foreground.
        labels: full label of each class id of each component (component id -> names).
        styles: per component id, the style of each class id.
        classifiers: what classifiers said, for objects that have it (index -> in order).
        texts: display text of objects whose text is not just their label (index -> text).
        segmentations, tensors: results of models that ran on the object (index -> in order).
        analytics: rules that it fulfils, for objects that fulfil any (index -> which).
        reids: vectors (D,) float32 of a ReID model, of objects that it saw (index -> vector).
        user: anything the application attaches (index -> in order).
    """

    __slots__ = (
        "analytics",
        "angles",
        "border_colors",
        "class_ids",
        "classifiers",
        "component_ids",
        "confidences",
        "detector_rects",
        "keypoints",
        "labels",
        "mask_thresholds",
        "masks",
        "object_ids",
        "parents",
        "rects",
        "reids",
        "segmentations",
        "styles",
        "tensors",
        "texts",
        "tracker_confidences",
        "user",
    )

    def __init__(self) -> None:
        self.rects: FloatArray = _NO_RECTS
        self.class_ids: IntArray = _NO_INTS
        self.confidences: FloatArray = _NO_FLOATS
        self.component_ids: IntArray = _NO_INTS
        self.object_ids: npt.NDArray[np.uint64] = _NO_IDS
        self.parents: IntArray = _NO_INTS
        self.angles: FloatArray | None = None
        self.masks: list[FloatArray] | None = None
        self.keypoints: list[FloatArray] | None = None
        self.border_colors: FloatArray | None = None
        self.tracker_confidences: FloatArray | None = None
        self.detector_rects: FloatArray | None = None
        self.mask_thresholds: dict[int, float] = {}
        self.labels: dict[int, Sequence[str]] = {}
        self.styles: dict[int, Mapping[int, ClassStyle]] = {}
        self.classifiers: dict[int, list[ClassifierMeta]] = {}
        self.texts: dict[int, str] = {}
        self.segmentations: dict[int, list[SegmentationMeta]] = {}
        self.tensors: dict[int, list[TensorOutput]] = {}
        self.analytics: dict[int, ObjectAnalytics] = {}
        self.reids: dict[int, FloatArray] = {}
        self.user: dict[int, list[Any]] = {}

    def append(
        self,
        detections: Detections,
        component_id: int,
        *,
        labels: Sequence[str] = (),
        styles: Mapping[int, ClassStyle] | None = None,
        border_colors: FloatArray | None = None,
        mask_threshold: float = 0.0,
        parent: int = -1,
    ) -> None:
        """Add frame-space detections as untracked objects of `component_id`.

        Args:
            detections: N boxes in frame space, angles in degrees.
            component_id: the `gie-unique-id` of the model.
            labels, styles: names and looks of its classes.
            border_colors: (N, 4) float32 r, g, b, a instead of the class's; NaN keeps it.
            mask_threshold: mask values above it are foreground.
            parent: index of the object in whose crop they were found, or -1.
        """
        if detections.space is not Space.FRAME:
            raise ValueError(f"objects live in frame space, not {detections.space} space")
        n = len(detections)
        self.labels[component_id] = labels
        self.styles[component_id] = styles or {}
        if not n:
            return
        old_n = len(self.rects)
        first = not old_n

        def join(old: Any, new: Any) -> Any:
            return new if first else np.concatenate((old, new))

        def join_optional(old: Any, new: Any, blank: Callable[[int], Any]) -> Any:
            if old is None and new is None:
                return None
            return np.concatenate(
                (blank(old_n) if old is None else old, blank(n) if new is None else new)
            )

        if detections.angles is not None or self.angles is not None:
            self.angles = join_optional(self.angles, detections.angles, _zeros)
        if border_colors is not None or self.border_colors is not None:
            self.border_colors = join_optional(self.border_colors, border_colors, _no_colors)
        if self.tracker_confidences is not None:
            self.tracker_confidences = join_optional(self.tracker_confidences, None, _zeros)
        if self.detector_rects is not None:
            self.detector_rects = join(self.detector_rects, detections.boxes)
        if detections.masks is not None or self.masks is not None:
            if detections.masks is not None:
                self.mask_thresholds[component_id] = mask_threshold
            self.masks = [
                *([NO_MASK] * old_n if self.masks is None else self.masks),
                *([NO_MASK] * n if detections.masks is None else detections.masks),
            ]
        if detections.keypoints is not None or self.keypoints is not None:
            self.keypoints = [
                *([NO_KEYPOINTS] * old_n if self.keypoints is None else self.keypoints),
                *([NO_KEYPOINTS] * n if detections.keypoints is None else detections.keypoints),
            ]
        self.rects = join(self.rects, detections.boxes)
        self.class_ids = join(self.class_ids, detections.class_ids)
        self.confidences = join(self.confidences, detections.scores)
        self.component_ids = join(self.component_ids, _filled(n, component_id, np.int32))
        self.object_ids = join(self.object_ids, _filled(n, UNTRACKED_OBJECT_ID, np.uint64))
        self.parents = join(self.parents, _filled(n, parent, np.int32))

    def add(
        self,
        left: float,
        top: float,
        width: float,
        height: float,
        *,
        class_id: int | None = None,
        confidence: float = 1.0,
        label: str = "",
        component_id: int = 0,
        parent: ObjectMeta | None = None,
    ) -> ObjectMeta:
        """Add one object by hand, untracked.

        Args:
            left, top, width, height: in frame pixels.
            class_id: its class; None is the class that is called `label`, a new one if none is, or
                0 without a label.
            label: name of the class, for this frame.
            component_id: whose object it is: the `gie-unique-id` of a model, so that trackers and
                secondary models take it for one of its objects; 0 is nobody's.
            parent: the object it is a part of.

        Raises:
            ValueError: the class has another name already, or the parent is of another frame.
        """
        if parent is not None and parent._objects is not self:
            raise ValueError("the parent is an object of another frame")
        names = self.labels.get(component_id, ())
        if class_id is None:
            class_id = 0
            if label:
                class_id = names.index(label) if label in names else len(names)
        if label:
            names = _named(names, class_id, label)
        box = Detections(
            np.array([[left, top, width, height]], np.float32),
            np.array([confidence], np.float32),
            np.array([class_id], np.int32),
            space=Space.FRAME,
        )
        self.append(
            box,
            component_id,
            labels=names,
            styles=self.styles.get(component_id),
            mask_threshold=self.mask_thresholds.get(component_id, 0.0),
            parent=-1 if parent is None else parent.index,
        )
        return ObjectMeta(self, len(self) - 1)

    def keep(self, index: Array | Callable[[ObjectMeta], bool]) -> None:
        """Keep only some objects, in their order.

        Children of a removed object have no parent afterwards. Views made before are void.

        Args:
            index: rising integers, a boolean mask, or a function that is asked for each object.
        """
        if callable(index):
            index = np.array([bool(index(obj)) for obj in self], np.bool_)
        kept = np.arange(len(self))[index]
        new_index = np.full(len(self) + 1, -1, np.int32)  # the last is for parent -1
        new_index[kept] = np.arange(len(kept), dtype=np.int32)
        for name in _COLUMNS:
            column = getattr(self, name)
            if column is not None:
                setattr(self, name, column[kept])
        if self.masks is not None:
            self.masks = [self.masks[i] for i in kept.tolist()]
        if self.keypoints is not None:
            self.keypoints = [self.keypoints[i] for i in kept.tolist()]
        self.parents = new_index[self.parents[kept]]
        for name in _SPARSE:
            old = getattr(self, name)
            if old:
                moved = ((int(new_index[i]), value) for i, value in old.items())
                setattr(self, name, {i: value for i, value in moved if i >= 0})

    def add_classifier(self, index: int, meta: ClassifierMeta) -> None:
        """Attach a classification to object `index` and append its text. Source: spec C.3."""
        self.classifiers.setdefault(index, []).append(meta)
        text = self.texts.get(index)
        if text is None:
            text = self.label(index)
        self.texts[index] = f"{text} {meta.text}" if text else meta.text

    def add_classifiers(
        self, indices: Sequence[int], metas: Sequence[ClassifierMeta | None]
    ) -> None:
        """`add_classifier` for many objects at once; None adds nothing."""
        names = self.labels
        by_object, texts = self.classifiers, self.texts
        components = self.component_ids[indices].tolist()
        for index, meta, component, class_id in zip(
            indices, metas, components, self.class_ids[indices].tolist(), strict=True
        ):
            if meta is None:
                continue
            if index in by_object:
                by_object[index].append(meta)
            else:
                by_object[index] = [meta]
            text = texts.get(index)
            if text is None:
                own = names.get(component, ())
                text = own[class_id] if 0 <= class_id < len(own) else ""
            texts[index] = f"{text} {meta.text}" if text else meta.text

    def label(self, index: int) -> str:
        """The full label of object `index`, empty if its class has no name."""
        names = self.labels.get(int(self.component_ids[index]), ())
        class_id = int(self.class_ids[index])
        return names[class_id] if 0 <= class_id < len(names) else ""

    def display_text(self, index: int) -> str:
        """Text drawn beside object `index`: its label and the texts of classifiers, or nothing."""
        text = self.texts.get(index)
        return self.label(index) if text is None else text

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
        from headrace.meta.notebook import objects_line

        return f"Objects({objects_line(self)})"


def _named(names: Sequence[str], class_id: int, label: str) -> Sequence[str]:
    """`names` with that of one class; the sequence itself is not changed."""
    if class_id < 0:
        raise ValueError(f"class {class_id} cannot have a name")
    known = names[class_id] if class_id < len(names) else ""
    if known and known != label:
        raise ValueError(f"class {class_id} is {known!r}, it cannot be {label!r} too")
    if known:
        return names
    longer = [*names, *[""] * (class_id + 1 - len(names))]
    longer[class_id] = label
    return longer


class _Reading(Protocol[R]):
    """An attribute of a view that is read."""

    def __get__(self, view: ObjectMeta, owner: type) -> R: ...


class _Column(_Reading[T], Protocol[T]):
    """One that is read and written."""

    def __set__(self, view: ObjectMeta, value: T) -> None: ...


def _column(
    name: str, kind: type[T], text: str, part: int | None = None, *, fixed: bool = False
) -> _Column[T]:
    """Make an attribute of one number in an array of `Objects`.

    Args:
        name: of the array.
        kind: type of the value.
        text: its docstring.
        part: index within a row; None: the array has one number for each object.
        fixed: True if it cannot be set.
    """
    get: Callable[[ObjectMeta], Any]
    if part is None:

        def get(view: ObjectMeta) -> Any:
            return getattr(view._objects, name).item(view.index)
    else:

        def get(view: ObjectMeta) -> Any:
            return getattr(view._objects, name).item(view.index, part)

    def put(view: ObjectMeta, value: object) -> None:
        getattr(view._objects, name)[view.index if part is None else (view.index, part)] = value

    get.__annotations__["return"] = kind
    return cast(_Column[T], property(get, None if fixed else put, doc=text))


def _results(name: str, text: str) -> _Reading[Any]:
    """Make an attribute of the results of an object in a dict of `Objects`, empty without any."""
    return cast(
        _Reading[object],
        property(lambda view: getattr(view._objects, name).get(view.index, ()), doc=text),
    )


class ObjectMeta:
    """A view on one object: reads and writes the arrays of its frame.

    Two views are equal if they show the same object of the same frame.
    """

    __slots__ = ("_objects", "index")

    def __init__(self, objects: Objects, index: int) -> None:
        self._objects = objects
        self.index = index

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ObjectMeta):
            return NotImplemented
        return self._objects is other._objects and self.index == other.index

    def __hash__(self) -> int:
        return hash((id(self._objects), self.index))

    def __repr__(self) -> str:
        name = self.display_text or f"class {self.class_id}"
        tracked = "" if self.object_id == UNTRACKED_OBJECT_ID else f" id {self.object_id}"
        return (
            f"ObjectMeta({name.strip()!r} {self.confidence:.2f}{tracked}, {self.width:.0f}x"
            f"{self.height:.0f} at {self.left:.0f},{self.top:.0f})"
        )

    left = _column("rects", float, "Left edge in frame pixels.", 0)
    top = _column("rects", float, "Top edge in frame pixels.", 1)
    width = _column("rects", float, "Width in frame pixels.", 2)
    height = _column("rects", float, "Height in frame pixels.", 3)
    class_id = _column("class_ids", int, "Number of its class.")
    confidence = _column("confidences", float, "Confidence of the detector.")
    component_id: _Reading[int] = _column(
        "component_ids", int, "`gie-unique-id` of the model that found it.", fixed=True
    )
    object_id = _column("object_ids", int, "Tracking id; `UNTRACKED_OBJECT_ID` without one.")
    classifiers: _Reading[Sequence[ClassifierMeta]] = _results(
        "classifiers", "Results of classifiers on this object, in the order they ran."
    )
    segmentations: _Reading[Sequence[SegmentationMeta]] = _results(
        "segmentations", "Class maps of this object's crop."
    )
    tensors: _Reading[Sequence[TensorOutput]] = _results(
        "tensors",
        "Raw outputs of models on its crop, mask fields of pose parsers too, if asked for.",
    )

    @property
    def rect(self) -> tuple[float, float, float, float]:
        """left, top, width, height in frame pixels."""
        return self.left, self.top, self.width, self.height

    @rect.setter
    def rect(self, value: Sequence[float]) -> None:
        self._objects.rects[self.index] = value

    @property
    def track_id(self) -> int | None:
        """`object_id`, or None for an object that is not tracked."""
        return None if self.object_id == UNTRACKED_OBJECT_ID else self.object_id

    @property
    def display_text(self) -> str | None:
        """The full label and the texts of classifiers; None if there is none."""
        return self._objects.display_text(self.index) or None

    @display_text.setter
    def display_text(self, value: str | None) -> None:
        self._objects.texts[self.index] = value or ""

    @property
    def parent(self) -> ObjectMeta | None:
        """The object with the crop that this one was found in."""
        index = int(self._objects.parents[self.index])
        return None if index < 0 else ObjectMeta(self._objects, index)

    @property
    def children(self) -> list[ObjectMeta]:
        """The objects found in this one's crop."""
        indices = np.flatnonzero(self._objects.parents == self.index)
        return [ObjectMeta(self._objects, i) for i in indices.tolist()]

    @property
    def reid(self) -> FloatArray | None:
        """The vector (D,) of a ReID model, or None."""
        return self._objects.reids.get(self.index)

    @property
    def user(self) -> list[Any]:
        """Anything the application attaches to this object."""
        return self._objects.user.setdefault(self.index, [])

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
    def keypoints(self) -> FloatArray | None:
        """(K, 3) float32 x, y in frame pixels and score of each point, or None."""
        points = self._objects.keypoints
        return points[self.index] if points is not None and len(points[self.index]) else None

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
