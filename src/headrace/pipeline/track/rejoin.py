"""Re-association: a track that was lost and a new one are the same object."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from headrace._core import _native
from headrace.media.frame import Frame
from headrace.pipeline.track.looks import LookModel, Looks
from headrace.pipeline.track.selection import Corners, Found
from headrace.pipeline.track.tracker import FloatArray, Follower, Ids, Places

Way = npt.NDArray[np.float64]
"""(T, 5) frame, left, top, right, bottom."""


_YOUNG = 8  # frames


def similarity(look: Looks, gallery: deque[Looks]) -> float:
    """The greatest dot product with a look of a gallery; 0 without any."""
    return float(max((look @ kept for kept in gallery), default=0.0))


@dataclass(slots=True)
class _Known:
    """A track by its id."""

    group: int
    born: int
    last: int
    gallery: deque[Looks]
    looked: int = -(10**9)  # frame of the newest look


class LookFollower:
    """Any tracker, with a ReID model beside it.

    A track that begins takes over the id of the lost one that looks most like it.

    Args:
        inner: the tracker of the source.
        model: makes looks.
        least: similarity (cosine) that is enough.
        gap: frames after which a lost track is forgotten.
        interval: frames between two looks of a track.
        history: most looks kept of a track.
    """

    def __init__(
        self,
        inner: Follower,
        model: LookModel,
        *,
        least: float,
        gap: int,
        interval: int,
        history: int = 20,
    ) -> None:
        self._inner, self._model = inner, model
        self._least, self._gap, self._interval, self._history = least, gap, interval, history
        self._alias: dict[int, int] = {}
        self._known: dict[int, _Known] = {}
        self._frame = 0
        self._new: tuple[npt.NDArray[np.intp], Looks] | None = None

    def step(self, objects: Found, elapsed: int, frame: Frame, size: tuple[int, int]) -> Ids:
        """Tracks of the objects of a frame."""
        self._frame += elapsed
        found = self._inner.step(objects, elapsed, frame, size)
        ids = np.array([self._alias.get(i, i) for i in found.tolist()], np.int64)
        rows = np.array([r for r, i in enumerate(ids.tolist()) if i > 0 and self._due(i)], np.intp)
        looks = self._model(frame, rects_of(objects.corners[rows])) if len(rows) else None
        self._new = None if looks is None else (rows, looks)
        if looks is not None:
            self._rejoin(objects, ids, rows, looks)
            for row, look in zip(rows.tolist(), looks, strict=True):
                self._learn(int(ids[row]), int(objects.groups[row]), look)
        for i in ids[ids > 0].tolist():
            if i in self._known:
                self._known[i].last = self._frame
        self._forget()
        return ids

    def _due(self, i: int) -> bool:
        known = self._known.get(i)
        return known is None or self._young(known) or self._frame - known.looked >= self._interval

    def _young(self, known: _Known) -> bool:
        """A track that may still turn out to be a lost one: at first it is seen in part."""
        return self._frame - known.born < _YOUNG

    def _rejoin(self, objects: Found, ids: Ids, rows: npt.NDArray[np.intp], looks: Looks) -> None:
        """Give new tracks the ids of lost ones, the most alike first."""
        present = set(ids.tolist())
        lost = {i: k for i, k in self._known.items() if i not in present}
        pairs = []
        for at, row in enumerate(rows.tolist()):
            own = self._known.get(int(ids[row]))
            if own is not None and not self._young(own):
                continue
            born = self._frame if own is None else own.born
            for i, known in lost.items():
                if known.group == int(objects.groups[row]) and known.last < born:
                    score = similarity(looks[at], known.gallery)
                    if score >= self._least:
                        pairs.append((-score, row, i))
        taken: set[int] = set()
        rows_done: set[int] = set()
        for _, row, i in sorted(pairs):
            if i in taken or row in rows_done:
                continue
            taken.add(i)
            rows_done.add(row)
            was = int(ids[row])
            self._known.pop(was, None)
            self._alias |= {new: i for new, old in self._alias.items() if old == was}
            self._alias[was] = i
            ids[row] = i

    def _learn(self, i: int, group: int, look: Looks) -> None:
        known = self._known.get(i)
        if known is None:
            known = self._known[i] = _Known(
                group, self._frame, self._frame, deque(maxlen=self._history)
            )
        known.gallery.append(look)
        known.looked = self._frame

    def _forget(self) -> None:
        gone = [i for i, k in self._known.items() if self._frame - k.last > self._gap]
        for i in gone:
            del self._known[i]
        if gone:
            self._alias = {new: i for new, i in self._alias.items() if i in self._known}

    def reported(self) -> tuple[Corners, FloatArray] | None:
        """Boxes of the tracker."""
        return self._inner.reported()

    def looks(self) -> tuple[npt.NDArray[np.intp], Looks] | None:
        """Objects of the last step that were looked at, and their looks."""
        return self._new

    def velocities(self) -> Corners:
        """Of the objects of the last step."""
        return self._inner.velocities()

    def pass_over(self, elapsed: int, frame: Frame, size: tuple[int, int]) -> Places | None:
        """A frame in which nothing was looked for."""
        self._frame += elapsed
        places = self._inner.pass_over(elapsed, frame, size)
        if places is None or not self._alias:
            return places
        ids = np.array([self._alias.get(i, i) for i in places.ids.tolist()], np.int64)
        order = np.argsort(ids)
        confidences = places.confidences
        return Places(
            ids[order], places.corners[order], None if confidences is None else confidences[order]
        )


def rects_of(corners: Corners) -> npt.NDArray[np.float32]:
    """(N, 4) left, top, width, height."""
    return np.concatenate((corners[:, :2], corners[:, 2:] - corners[:, :2]), 1).astype(np.float32)


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
