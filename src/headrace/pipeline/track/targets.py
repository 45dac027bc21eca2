"""The trackers of the original's files: targets with a life cycle, and as asked, a look.

The rules are in the native core (`native/src/track/targets.cpp`).
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np

from headrace._core import _native
from headrace.infer.preprocess import LAYOUTS, color_matrix
from headrace.media.frame import Frame
from headrace.pipeline.track.selection import Corners, Found
from headrace.pipeline.track.tracker import FloatArray, Ids, Places, TrackIds

Pixels: TypeAlias = "tuple[list[Any], int, tuple[int, int], tuple[float, ...]]"


def pixels_of(frame: Frame) -> Pixels:
    """The planes of a frame as the core reads them; of a GPU's image, a copy on the host."""
    size = (frame.width, frame.height)
    return list(frame.planes), LAYOUTS[frame.format], size, tuple(color_matrix(frame.color))


class TargetFollower:
    """The targets of one source.

    Args:
        values: of the core, see `OriginalTracker`.
        ids: gives out numbers.
    """

    def __init__(self, values: Mapping[str, Any], ids: TrackIds) -> None:
        numbers = {k: v for k, v in values.items() if isinstance(v, bool | int | float)}
        self._targets = _native.Targets(numbers)
        self._sees = bool(values["visual"])
        self._ids = ids
        self._high = secrets.randbelow(2**31 - 1) + 1 << 32 if values["unique"] else 0
        self._corners: Corners = np.empty((0, 4))
        self._confidences: FloatArray = np.empty(0, np.float32)

    @property
    def targets(self) -> _native.Targets:
        """The core; `states()` shows all targets."""
        return self._targets

    def step(self, objects: Found, elapsed: int, frame: Frame, size: tuple[int, int]) -> Ids:
        """Tracks of the objects of a frame."""
        self._targets.step(objects, elapsed, size, self._pixels(frame), None)
        for key in self._targets.fresh().tolist():
            self._targets.name(key, self._high + int(self._ids.take(1)[0]))
        ids = np.empty(len(objects), np.int64)
        self._corners = np.array(objects.corners)
        self._confidences = np.empty(len(objects), np.float32)
        self._targets.results(ids, self._confidences, self._corners)
        return ids

    def reported(self) -> tuple[Corners, FloatArray]:
        """Boxes and confidences of the objects of the last step by the tracker."""
        return self._corners, self._confidences

    def velocities(self) -> Corners:
        """None are needed: `pass_over` gives the places."""
        return np.zeros_like(self._corners)

    def pass_over(self, elapsed: int, frame: Frame, size: tuple[int, int]) -> Places:
        """A frame in which nothing was looked for: the targets that are reported, by their id."""
        self._targets.pass_over(elapsed, size, self._pixels(frame))
        _, ids, states, _, _, corners, confidences = self._targets.states()
        rows = np.flatnonzero((states == _ACTIVE) & (ids > 0))
        rows = rows[np.argsort(ids[rows])]
        return Places(ids[rows], corners[rows], confidences[rows] if self._sees else None)

    def _pixels(self, frame: Frame) -> Pixels | None:
        return pixels_of(frame) if self._sees else None


_ACTIVE = 1
