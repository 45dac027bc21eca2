"""Detections: returned by parsers, passed on by clustering; how far their boxes overlap."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import numpy as np
import numpy.typing as npt

from headrace._core.array_fault import array_fault
from headrace._core.errors import DetectionsError
from headrace._core.lazy import import_extra
from headrace._core.types import Array

FloatArray = npt.NDArray[np.float32]
IntArray = npt.NDArray[np.int32]


class Space(StrEnum):
    """The coordinate space of boxes: pixels of the network input, of a crop, or of the frame."""

    NETWORK = "network"
    ROI = "roi"
    FRAME = "frame"


def _array(value: object, dtype: type[np.generic], shape: tuple[int | None, ...], name: str) -> Any:
    array: Any = value
    as_it_is = (
        type(value) is np.ndarray
        and value.dtype == dtype
        and value.ndim == len(shape)
        and value.flags.c_contiguous
    )
    if not as_it_is:
        array = _converted(value, dtype, shape, name)
    if array.ndim != len(shape) or any(
        s is not None and s != d for s, d in zip(shape, array.shape, strict=True)
    ):
        raise DetectionsError(
            f"{name} has shape {array.shape}",
            where=f"Detections.{name}",
            expected=f"{np.dtype(dtype).name} of shape {_shape_text(shape)}",
        )
    return array


def _converted(
    value: object, dtype: type[np.generic], shape: tuple[int | None, ...], name: str
) -> Any:
    try:
        array = np.asarray(value)
        if array.size == 0 and array.ndim < len(shape):
            array = array.reshape(tuple(s or 0 for s in shape))
        if dtype is np.int32 and array.dtype == np.int64:  # as NumPy counts and `argmax` do
            narrow = array.astype(np.int32)
            if (narrow == array).all():
                return narrow
        _require_numbers(array, dtype)
        with np.errstate(over="ignore"):  # beyond float32 is infinite, which is judged later
            return np.ascontiguousarray(array, dtype=dtype)
    except (TypeError, ValueError, OverflowError) as error:
        fault = str(error) if isinstance(error, _NoNumbersError) else array_fault(value)
        raise DetectionsError(
            f"{name} is not an array of numbers: {fault}",
            where=f"Detections.{name}",
            expected=f"{np.dtype(dtype).name} of shape {_shape_text(shape)}",
        ) from error


class _NoNumbersError(ValueError):
    """The values of an array are not the numbers that it is for."""


def _require_numbers(array: Array, dtype: type[np.generic]) -> None:
    """Refuse an array without numbers, or with one that would silently become another."""
    if array.dtype.kind not in "fiub":
        raise _NoNumbersError(f"dtype {array.dtype} is not numeric")
    if dtype is not np.int32 or array.dtype == dtype or not array.size:
        return
    limits = np.iinfo(np.int32)
    low, high = array.min(), array.max()
    if not (low >= limits.min and high <= limits.max):  # also NaN
        raise _NoNumbersError(f"{high if low >= limits.min else low} is not a 32-bit integer")


def _shape_text(shape: tuple[int | None, ...]) -> str:
    return (
        "("
        + ", ".join("N" if s is None else str(s) for s in shape)
        + ("," * (len(shape) == 1))
        + ")"
    )


@dataclass(eq=False, slots=True)
class Detections:
    """N boxes with scores and classes; arrays are checked and converted at construction.

    Attributes:
        boxes: (N, 4) float32, left, top, width, height in pixels of `space`.
        scores: (N,) float32.
        class_ids: (N,) int32.
        masks: N float32 arrays (h, w), box-relative, or None.
        angles: (N,) float32, radians, or None.
        space: the coordinate space of `boxes` and `keypoints`; parsers return `Space.NETWORK`.
        keypoints: (N, K, 3) float32, x, y in pixels of `space` and score of each point, or None.
        raw_masks: N flat float32 arrays, as a C++ parser left them in the `mask` field that was
            read as `keypoints`, empty for an object without any; None of all other parsers.

    Raises:
        DetectionsError: an array has the wrong rank, length or kind. Values (NaN, class range) are
            judged where user code hands them over, see `headrace.custom`.
    """

    boxes: FloatArray
    scores: FloatArray
    class_ids: IntArray
    masks: list[FloatArray] | None = None
    angles: FloatArray | None = None
    space: Space = Space.NETWORK
    keypoints: FloatArray | None = None
    raw_masks: list[FloatArray] | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        self.boxes = _array(self.boxes, np.float32, (None, 4), "boxes")
        n = len(self.boxes)
        self.scores = _array(self.scores, np.float32, (n,), "scores")
        self.class_ids = _array(self.class_ids, np.int32, (n,), "class_ids")
        if self.angles is not None:
            self.angles = _array(self.angles, np.float32, (n,), "angles")
        if self.keypoints is not None:
            self.keypoints = _array(self.keypoints, np.float32, (n, None, 3), "keypoints")
        if self.masks is not None:
            self.masks = [
                _array(m, np.float32, (None, None), f"masks[{i}]") for i, m in enumerate(self.masks)
            ]
            if len(self.masks) != n:
                raise DetectionsError(
                    f"{len(self.masks)} masks for {n} boxes",
                    where="Detections.masks",
                    expected=f"{n} masks",
                )

    @classmethod
    def empty(cls, space: Space = Space.NETWORK) -> Detections:
        """No detections."""
        return cls(
            np.empty((0, 4), np.float32),
            np.empty(0, np.float32),
            np.empty(0, np.int32),
            space=space,
        )

    @classmethod
    def unchecked(
        cls,
        boxes: FloatArray,
        scores: FloatArray,
        class_ids: IntArray,
        *,
        masks: list[FloatArray] | None = None,
        angles: FloatArray | None = None,
        space: Space = Space.NETWORK,
        keypoints: FloatArray | None = None,
        raw_masks: list[FloatArray] | None = None,
    ) -> Detections:
        """From arrays that are known to be of the right type and shape, without looking."""
        self = object.__new__(cls)
        self.boxes, self.scores, self.class_ids = boxes, scores, class_ids
        self.masks, self.angles, self.space = masks, angles, space
        self.keypoints, self.raw_masks = keypoints, raw_masks
        return self

    @classmethod
    def from_xyxy(
        cls,
        corners: npt.ArrayLike,
        scores: npt.ArrayLike,
        class_ids: npt.ArrayLike,
        *,
        space: Space = Space.NETWORK,
    ) -> Detections:
        """From (N, 4) left, top, right, bottom corners."""
        boxes = _array(corners, np.float32, (None, 4), "boxes").copy()
        boxes[:, 2:] -= boxes[:, :2]
        return cls(boxes, scores, class_ids, space=space)  # type: ignore[arg-type]

    def __len__(self) -> int:
        return len(self.boxes)

    def __repr__(self) -> str:
        classes = np.unique(self.class_ids).tolist()
        parts = [f"{len(self)} boxes in {self.space} space", f"classes {classes}"]
        if len(self):
            parts.append(f"scores {self.scores.min():.2f} to {self.scores.max():.2f}")
        if self.masks is not None:
            parts.append(f"{sum(bool(m.size) for m in self.masks)} masks")
        parts += ["angles"] if self.angles is not None else []
        if self.keypoints is not None:
            parts.append(f"{self.keypoints.shape[1]} keypoints each")
        return f"Detections({', '.join(parts)})"

    def select(self, index: Array) -> Detections:
        """The detections at `index` (integers or a boolean mask), in that order."""
        masks, raw = self.masks, self.raw_masks
        if masks is not None or raw is not None:
            chosen = np.arange(len(self))[index].tolist()
            masks = None if masks is None else [masks[i] for i in chosen]
            raw = None if raw is None else [raw[i] for i in chosen]
        return Detections.unchecked(
            self.boxes[index],
            self.scores[index],
            self.class_ids[index],
            masks=masks,
            angles=None if self.angles is None else self.angles[index],
            space=self.space,
            keypoints=None if self.keypoints is None else self.keypoints[index],
            raw_masks=raw,
        )

    def rows(self, start: int, end: int) -> Detections:
        """The detections from row `start` up to `end`, as views."""
        masks, angles, points, raw = self.masks, self.angles, self.keypoints, self.raw_masks
        return Detections.unchecked(
            self.boxes[start:end],
            self.scores[start:end],
            self.class_ids[start:end],
            masks=None if masks is None else masks[start:end],
            angles=None if angles is None else angles[start:end],
            space=self.space,
            keypoints=None if points is None else points[start:end],
            raw_masks=None if raw is None else raw[start:end],
        )

    def to_supervision(self) -> Any:
        """The same boxes as `supervision.Detections` (xyxy), for its annotators and trackers.

        Raises:
            MissingExtraError: the extra `supervision` is not installed.
        """
        supervision = import_extra("supervision", "supervision")
        corners = self.boxes.copy()
        corners[:, 2:] += corners[:, :2]
        return supervision.Detections(
            xyxy=corners, confidence=self.scores, class_id=self.class_ids.astype(int)
        )


@dataclass(frozen=True, slots=True, eq=False)
class BatchDetections:
    """Boxes of N items, item after item.

    Attributes:
        boxes: those of every item.
        starts: (N + 1,) int32, the first row of each item, and the end of the last.
    """

    boxes: Detections
    starts: IntArray

    @classmethod
    def of(cls, boxes: Detections) -> BatchDetections:
        """Those of one item."""
        return cls(boxes, np.array([0, len(boxes)], np.int32))


def joined(parts: Sequence[BatchDetections]) -> BatchDetections | None:
    """Detections of items, in network space, at once; None where one of several has shapes."""
    if len(parts) == 1:
        return parts[0]
    shapes = ("masks", "angles", "keypoints", "raw_masks")
    if any(getattr(part.boxes, shape) is not None for part in parts for shape in shapes):
        return None
    starts = [0]
    for part in parts:
        starts += [starts[-1] + end for end in part.starts[1:].tolist()]
    boxes, scores, class_ids = (
        np.concatenate([getattr(part.boxes, column) for part in parts])
        for column in ("boxes", "scores", "class_ids")
    )
    whole = Detections.unchecked(boxes, scores, class_ids)
    return BatchDetections(whole, np.array(starts, np.int32))


def overlaps(boxes: Array, others: Array, crowd: npt.NDArray[np.bool_] | None = None) -> Array:
    """(N, M) intersection over union in the boxes' own precision; 0 where there is no area.

    Args:
        boxes: (N, 4) left, top, width, height.
        others: (M, 4) of them.
        crowd: (M,) True for those that share a box by the area of the box alone.
    """
    low = np.maximum(boxes[:, None, :2], others[None, :, :2])
    high = np.minimum((boxes[:, :2] + boxes[:, 2:])[:, None], (others[:, :2] + others[:, 2:])[None])
    common = np.maximum(high - low, 0).prod(axis=2)
    area = boxes[:, 2:].prod(axis=1)[:, None]
    union = area + others[:, 2:].prod(axis=1)[None] - common
    if crowd is not None:
        union = np.where(crowd[None], area, union)
    shares: Array = np.divide(common, union, out=np.zeros_like(common), where=union > 0)
    return shares
