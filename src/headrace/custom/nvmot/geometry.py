"""Masks and places in space of tracked objects, in memory that a library fills."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from headrace._core.types import Array
from headrace.meta.track_geometry import TrackGeometry

COLUMNS = (1, 2, 2, 12, 16)
"""Widths of visibility, foot in the image and on the ground, box in space, its corners."""
_MOST_POINTS = 1 << 12
_MOST_VALUES = 1 << 24  # of a mask in memory of the library
_VALUES_OF_ALL = 1 << 28  # of all masks: 1 GiB of addresses, of which a worker has 4
_DEFAULT_POINTS = 15
_DEFAULT_TARGETS = 150


@dataclass(frozen=True, slots=True)
class Spaces:
    """Masks and places of N objects, as arrays that travel between processes.

    Attributes:
        places: (N, 33) float32 in the order of `COLUMNS`, NaN for what there is not; or (0, 33).
        counts: (N, 3) int32: points of the hull, width and height of the mask, -1 for nonsense; or
            (0, 3).
        points: (P, 2) int32, the hulls one behind the other.
        values: (V,) float32, the masks one behind the other.
    """

    places: npt.NDArray[np.float32] = field(
        default_factory=lambda: np.zeros((0, sum(COLUMNS)), np.float32)
    )
    counts: npt.NDArray[np.int32] = field(default_factory=lambda: np.zeros((0, 3), np.int32))
    points: npt.NDArray[np.int32] = field(default_factory=lambda: np.zeros((0, 2), np.int32))
    values: npt.NDArray[np.float32] = field(default_factory=lambda: np.zeros(0, np.float32))

    def arrays(self) -> list[Array]:
        """All of them."""
        return [self.places, self.counts, self.points, self.values]


class SpaceBuffers:
    """Memory that a library fills with hulls and masks, kept from frame to frame.

    Args:
        names: fields of NvMOTTrackedObj in its generation.
        query: what the library says about itself.
        room: most objects of a frame.
        size: width and height of images that it gets: the most of a mask, while
            all have room.
    """

    def __init__(
        self, names: tuple[str, ...], query: Mapping[str, Any], room: int, size: tuple[int, int]
    ) -> None:
        def wanted(name: str, key: str) -> bool:
            return name in names and bool(query.get(key))

        self._visibility = wanted("visibility", "outputVisibility")
        self._feet = wanted("ptImgFeet", "outputFootLocation")
        self._boxes = self._feet and "bbox3DWorld" in names
        self._hulls = self._masks = np.empty((0, 0), np.int32)
        if wanted("convexHull", "outputConvexHull"):
            most = int(query.get("maxConvexHullSize", 0)) or _DEFAULT_POINTS
            self._hulls = np.zeros((room, min(most, _MOST_POINTS) * 2), np.int32)
        if "mask" in names:  # nothing says which library has masks; untouched pages cost nothing
            rows = min(room, int(query.get("maxTargetsPerStream", 0)) or _DEFAULT_TARGETS)
            most = min(size[0] * size[1], _VALUES_OF_ALL // rows)
            self._masks = np.empty((rows, most), np.float32)

    @property
    def asked(self) -> bool:
        """The library may give any of it."""
        return bool(self._visibility or self._feet or self._hulls.size or self._masks.size)

    def give(self, tracked: Array) -> None:
        """Name the memory in the objects that a library fills."""
        for memory, name, room, unit in (
            (self._hulls, "convexHull", "numPointsAllocated", 2),
            (self._masks, "mask", "allocatedSize", 1),
        ):
            if memory.size:
                part = tracked[name][: len(memory)]
                rows = np.arange(len(part), dtype=np.uint64) * np.uint64(memory.strides[0])
                part["list" if unit == 2 else "data"] = rows + np.uint64(memory.ctypes.data)
                part[room] = memory.shape[1] // unit

    def read(self, tracked: Array) -> Spaces:
        """Read the masks and places of the objects of a frame."""
        if not self.asked or not len(tracked):
            return Spaces()
        counts = np.zeros((len(tracked), 3), np.int32)
        points, values = [np.zeros((0, 2), np.int32)], [np.zeros(0, np.float32)]
        for row, one in enumerate(tracked):
            if self._hulls.size:
                counts[row, 0] = _hull(one["convexHull"], points, self._hulls.shape[1] // 2)
            if self._masks.size:
                counts[row, 1:] = _mask(one["mask"], values)
        return Spaces(self._places(tracked), counts, np.concatenate(points), np.concatenate(values))

    def _places(self, tracked: Array) -> npt.NDArray[np.float32]:
        blank = [np.full((len(tracked), width), np.nan, np.float32) for width in COLUMNS]
        if self._visibility:
            blank[0] = tracked["visibility"][:, None]
        if self._feet:
            blank[1:3] = tracked["ptImgFeet"], tracked["ptWorldFeet"]
        if self._boxes:
            box = np.ascontiguousarray(tracked["bbox3DWorld"])
            blank[3] = box.view(np.float32).reshape(len(tracked), -1)
            blank[4] = tracked["bbox3DImg"].reshape(len(tracked), -1)
        return np.concatenate(blank, axis=1)


def spaces_of(
    spaces: Spaces, rows: int, scale: Array
) -> tuple[list[npt.NDArray[np.float32]] | None, dict[int, TrackGeometry], bool]:
    """Masks of all rows, None without any; places of rows that have one; whether some are odd.

    Args:
        spaces: as a worker answers.
        rows: of objects.
        scale: pixels of the library for one of the frame, twice x and y.

    Raises:
        ValueError, IndexError: the arrays do not fit.
    """
    counts, each = spaces.counts, np.cumsum(COLUMNS)[:-1]
    if not len(counts):
        return None, {}, False
    if counts.shape != (rows, 3) or spaces.places.shape != (rows, sum(COLUMNS)):
        raise ValueError("arrays of different objects")
    whole = np.maximum(counts, 0)
    hulls = np.split(spaces.points, np.cumsum(whole[:, 0])[:-1])
    areas = whole[:, 1].astype(np.int64) * whole[:, 2]
    flat = np.split(spaces.values, np.cumsum(areas)[:-1])
    masks = [np.nan_to_num(m).reshape(h, w) for m, (_, w, h) in zip(flat, whole, strict=True)]
    places = {}
    for row, (place, hull) in enumerate(zip(spaces.places, hulls, strict=True)):
        seen, foot, ground, box, corners = np.split(place, each)
        one = TrackGeometry(
            None if np.isnan(seen).any() else float(seen[0]),
            None if np.isnan(foot).any() else (foot / scale[:2]).astype(np.float32),
            None if np.isnan(ground).any() else ground,
            (hull / scale[:2]).astype(np.int32) if len(hull) else None,
            None if np.isnan(box).any() else box,
            None if np.isnan(corners).any()
            else (corners.reshape(8, 2) / scale[:2]).astype(np.float32),
        )  # fmt: skip
        if not one.is_empty:
            places[row] = one
    return masks if areas.any() else None, places, bool((counts < 0).any())


def _hull(hull: Any, points: list[Array], most: int) -> int:
    count, pointer = int(hull["numPoints"]), int(hull["list"])
    if not count or not pointer:
        return 0
    if count > most:
        return -1
    memory = (ctypes.c_int32 * (2 * count)).from_address(pointer)
    points.append(np.array(memory, np.int32).reshape(-1, 2))
    return count


def _mask(mask: Any, values: list[Array]) -> tuple[int, int]:
    width, height, pointer = int(mask["width"]), int(mask["height"]), int(mask["data"])
    if not (width and height and pointer):
        return 0, 0
    if width * height > min(int(mask["allocatedSize"]) or _MOST_VALUES, _MOST_VALUES):
        return -1, -1
    memory = (ctypes.c_float * (width * height)).from_address(pointer)
    values.append(np.array(memory, np.float32))
    return width, height
