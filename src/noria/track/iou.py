"""The `iou` tracker: constant velocity and overlap, nothing else to install.

A track is continued by the object that overlaps its predicted box most. Tracks that have an id
choose first, then those on probation.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from noria import _native
from noria.track.selection import Corners, Found
from noria.track.tracker import Followed, Ids, TrackIds, predict


def _setting(default: Any, help: str, low: float = 0, high: float = 1e9) -> Any:
    return field(default=default, metadata={"help": help, "low": low, "high": high})


@dataclass(frozen=True, slots=True)
class IouSettings:
    """Settings of the `iou` tracker; lengths of time are in frames."""

    min_iou: float = _setting(0.2, "least overlap (IoU) of an object with a predicted box", 0, 1)
    min_hits: int = _setting(2, "detections of an object before it gets an id", 1)
    max_age: int = _setting(30, "frames without a detection before a track is forgotten")
    max_probation_misses: int = _setting(0, "the same, before it got an id")
    min_confidence: float = _setting(-1.0, "objects below it are not tracked", -1, 1)
    min_new_confidence: float = _setting(-1.0, "objects below it start no track", -1, 1)
    max_new_iou: float = _setting(
        0.7, "an object that overlaps a track by more is a double and starts no track", 0, 1
    )
    max_tracks: int = _setting(0, "most tracks of a source at a time, 0 for any number")
    velocity_gain: float = _setting(
        0.4, "weight of the newest movement in the velocity, 0 predicts no movement", 0, 1
    )


@dataclass(slots=True)
class _Tracks:
    """Parallel arrays, oldest track first.

    corners: (T, 4) box of the last detection; velocity: (T, 4) pixels per frame of its edges;
    since: frames since that detection; missed: of those, frames it was looked for in vain;
    ids: 0 on probation.
    """

    corners: Corners
    velocity: Corners
    groups: npt.NDArray[np.int64]
    ids: Ids
    hits: npt.NDArray[np.int32]
    since: npt.NDArray[np.int32]
    missed: npt.NDArray[np.int32]

    @classmethod
    def started(cls, corners: Corners, groups: npt.NDArray[np.int64]) -> _Tracks:
        n = len(corners)
        return cls(
            corners,
            np.zeros((n, 4)),
            groups,
            np.zeros(n, np.int64),
            np.ones(n, np.int32),
            np.zeros(n, np.int32),
            np.zeros(n, np.int32),
        )

    def keep(self, which: npt.NDArray[np.bool_]) -> None:
        if not which.all():
            for name in self.__slots__:
                setattr(self, name, getattr(self, name)[which])

    def add(self, other: _Tracks) -> None:
        for name in self.__slots__:
            setattr(self, name, np.concatenate((getattr(self, name), getattr(other, name))))

    def __len__(self) -> int:
        return len(self.ids)


class IouFollower:
    """The tracks of one source."""

    def __init__(self, settings: IouSettings, ids: TrackIds) -> None:
        self.settings = settings
        self._ids = ids
        self._tracks = _Tracks.started(np.empty((0, 4)), np.empty(0, np.int64))

    def step(self, found: Found, elapsed: int) -> Followed:
        """Tracks of the objects of a frame."""
        s, tracks, n = self.settings, self._tracks, len(found)
        rows = np.flatnonzero(found.scores >= s.min_confidence)
        corners, groups = found.corners[rows], found.groups[rows]
        tracks.since += elapsed
        boxes = predict(tracks.corners, tracks.velocity, tracks.since, tracks.missed > 0)
        probation = (tracks.ids == 0).astype(np.int32)
        track_of = _native.match_boxes(boxes, tracks.groups, probation, corners, groups, s.min_iou)
        hit = np.flatnonzero(track_of >= 0)
        self._continue(track_of[hit], corners[hit])
        boxes[track_of[hit]] = corners[hit]

        new = self._new(rows, track_of, found, boxes)
        first = len(tracks)
        tracks.add(_Tracks.started(found.corners[new], found.groups[new]))
        track = np.full(n, -1)
        track[rows] = track_of
        track[new] = np.arange(first, len(tracks))

        named = np.flatnonzero((tracks.ids == 0) & (tracks.hits >= s.min_hits))
        tracks.ids[named] = self._ids.take(len(named))
        followed = Followed(
            np.where(track >= 0, np.append(tracks.ids, 0)[track], 0),
            np.append(tracks.velocity, np.zeros((1, 4)), axis=0)[track],
        )
        self._forget()
        return followed

    def pass_over(self, elapsed: int) -> None:
        """A frame in which nothing was looked for: lost tracks age, the others only move."""
        tracks = self._tracks
        tracks.since += elapsed
        tracks.missed[tracks.missed > 0] += 1
        self._forget()

    def _continue(self, track: npt.NDArray[Any], corners: Corners) -> None:
        """Take the detections of tracks over."""
        tracks = self._tracks
        moved = (corners - tracks.corners[track]) / tracks.since[track, None]
        velocity = tracks.velocity[track]
        # the first movement is all that is known
        gain = np.where(tracks.hits[track, None] == 1, 1.0, self.settings.velocity_gain)
        if self.settings.velocity_gain:
            tracks.velocity[track] = velocity + gain * (moved - velocity)
        tracks.corners[track] = corners
        tracks.hits[track] += 1
        tracks.missed += 1
        tracks.missed[track] = 0
        tracks.since[track] = 0

    def _new(
        self, rows: npt.NDArray[Any], track_of: npt.NDArray[Any], found: Found, boxes: Corners
    ) -> npt.NDArray[np.intp]:
        """Rows of `found` that start a track."""
        s, tracks = self.settings, self._tracks
        free: npt.NDArray[np.intp] = rows[track_of < 0]
        free = free[found.scores[free] >= s.min_new_confidence]
        if len(free) and len(tracks) and s.max_new_iou < 1:
            overlap = _native.best_overlap(
                found.corners[free], found.groups[free], boxes, tracks.groups
            )
            free = free[overlap <= s.max_new_iou]
        if s.max_tracks:
            room = max(0, s.max_tracks - len(tracks))
            best = np.argsort(-found.scores[free], kind="stable")[:room]
            free = free[np.sort(best)]
        return free

    def _forget(self) -> None:
        tracks, s = self._tracks, self.settings
        limit = np.where(tracks.ids > 0, s.max_age, s.max_probation_misses)
        tracks.keep(tracks.missed <= limit)
