"""Re-association: a track that was lost and a new one are the same object."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from headrace._core import _native
from headrace.pipeline.track.looks import Looks
from headrace.pipeline.track.selection import Corners

Way = npt.NDArray[np.float64]
"""(T, 5) frame, left, top, right, bottom."""


def similarity(look: Looks, gallery: deque[Looks]) -> float:
    """The greatest dot product with a look of a gallery; 0 without any."""
    return float(max((look @ kept for kept in gallery), default=0.0))


@dataclass(slots=True)
class _Lost:
    """A target that was lost: where it would be by now."""

    group: int
    frame: int  # it was found last
    projected: Corners
    direction: npt.NDArray[np.float64]  # pixels per frame of its middle
    gallery: deque[Looks] = field(default_factory=deque)


class WayRejoin:
    """Joins new targets to lost ones by the way they went, and by their looks if there are any.

    Args:
        values: of the core, see `OriginalTracker`.
    Source: section TrajectoryManagement in the manual of Gst-nvtracker; the alignment of two ways
    is not published: here one is shifted against the other, and overlaps are averaged.
    """

    def __init__(self, values: Mapping[str, Any], motion: Mapping[str, float]) -> None:
        self._set = values
        self._motion = dict(motion)
        self._motion["process_scale"] = values["rejoin_process_scale"]
        self._motion["measurement_scale"] = values["rejoin_measurement_scale"]
        self._lost: dict[int, _Lost] = {}

    def lose(self, i: int, group: int, way: Way, age: int, gallery: deque[Looks]) -> None:
        """Note a target that is not found; its way ends where it was found last."""
        if i in self._lost or age < self._set["rejoin_age"] or len(way) < 2:
            return
        way = way[-max(2, self._set["rejoin_prepared"]) :]
        corners = np.ascontiguousarray(way[:, 1:])
        ahead = _native.project_boxes(corners, self._motion, self._set["rejoin_length"])
        if len(ahead):
            self._lost[i] = _Lost(group, int(way[-1, 0]), ahead, _direction(ahead), gallery)

    def keep(self, frame: int, active: set[int]) -> None:
        """Forget those that are found again, and those with a projection that is over."""
        length = self._set["rejoin_length"]
        self._lost = {
            i: lost
            for i, lost in self._lost.items()
            if i not in active and frame - lost.frame <= length
        }

    def match(self, group: int, way: Way, look: Looks | None) -> int | None:
        """The id of the lost target that a new one continues, or None."""
        alike = [i for i, lost in self._lost.items() if lost.group == group]
        scores = [self._score(self._lost[i], way, look) for i in alike]
        best = max(zip(scores, alike, strict=True), default=(_NO, 0))
        if best[0] == _NO:
            return None
        del self._lost[best[1]]
        return best[1]

    def _score(self, lost: _Lost, way: Way, look: Looks | None) -> float:
        """The total of a pair, below every other where it is none."""
        s = self._set
        new = way[:, 1:]
        if len(new) > 1 and not self._moves_alike(lost.direction, _direction(new)):
            return _NO
        tracklet, at = self._aligned(lost, way)
        if tracklet < s["rejoin_tracklet"] or _size_similarity(new[-1], at) < s["rejoin_size"]:
            return _NO
        total = s["rejoin_weight_tracklet"] * tracklet
        if look is not None and lost.gallery:
            alike = similarity(look, lost.gallery)
            if alike < s["rejoin_reid"]:
                return _NO
            total += s["rejoin_weight_reid"] * alike
        return total if total >= s["rejoin_overall"] else _NO

    def _moves_alike(self, a: npt.NDArray[np.float64], b: npt.NDArray[np.float64]) -> bool:
        slow, fast = sorted((float(np.hypot(*a)), float(np.hypot(*b))))
        if fast < _STILL:
            return True
        if slow / fast < self._set["rejoin_speed"]:
            return False
        if slow < _STILL:  # the direction of what stands is noise
            return True
        cosine = float(a @ b) / (slow * fast)
        degrees = float(np.degrees(np.arccos(np.clip(cosine, -1, 1))))
        return degrees <= float(self._set["rejoin_angle"])

    def _aligned(self, lost: _Lost, way: Way) -> tuple[float, Corners]:
        """Mean overlap of the new way with the projected one, at the best shift in time."""
        first = way[:, 0].astype(int) - lost.frame - 1
        reach, best = self._set["rejoin_range"], (0.0, lost.projected[-1])
        for shift in range(-reach, reach + 1):
            at = first + shift
            inside = (at >= 0) & (at < len(lost.projected))
            if not inside.all():
                continue
            there = lost.projected[at]
            mean = float(_overlaps(way[:, 1:], there).mean())
            if mean > best[0]:
                best = (mean, there[-1])
        return best


_STILL = 0.5  # pixels per frame
_NO = float("-inf")


def _direction(corners: Corners) -> npt.NDArray[np.float64]:
    middle = (corners[:, :2] + corners[:, 2:]) / 2
    moved: npt.NDArray[np.float64] = (middle[-1] - middle[0]) / max(1, len(middle) - 1)
    return moved


def _overlaps(a: Corners, b: Corners) -> npt.NDArray[np.float64]:
    """(N,) IoU of boxes with those of the same row."""
    low, high = np.maximum(a[:, :2], b[:, :2]), np.minimum(a[:, 2:], b[:, 2:])
    both = np.clip(high - low, 0, None).prod(axis=1)
    areas = (a[:, 2:] - a[:, :2]).prod(axis=1) + (b[:, 2:] - b[:, :2]).prod(axis=1)
    shares: npt.NDArray[np.float64] = both / np.maximum(areas - both, 1e-9)
    return shares


def _size_similarity(a: Corners, b: Corners) -> float:
    small, large = sorted((float((a[2:] - a[:2]).prod()), float((b[2:] - b[:2]).prod())))
    return small / large if large > 0 else 0.0
