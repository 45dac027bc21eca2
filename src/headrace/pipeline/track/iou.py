"""The `iou` tracker: constant velocity and overlap, nothing else to install.

A track is continued by the object that overlaps its predicted box most. Tracks that have an id
choose first, then those on probation.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from headrace._core import _native
from headrace.media.frame import Frame
from headrace.pipeline.track.selection import Corners, Found
from headrace.pipeline.track.tracker import Ids, TrackIds


def _setting(default: object, help: str, low: float = 0, high: float = 1e9) -> Any:
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


class IouFollower:
    """The tracks of one source."""

    def __init__(self, settings: IouSettings, ids: TrackIds) -> None:
        self._ids = ids
        self._tracks = _native.IouTracks(**asdict(settings))

    def step(self, objects: Found, elapsed: int, frame: Frame, size: tuple[int, int]) -> Ids:
        """Tracks of the objects of a frame."""
        unnamed = self._tracks.step(objects, elapsed)
        first = int(self._ids.take(unnamed)[0]) if unnamed else 0
        ids = np.empty(len(objects), np.int64)
        self._tracks.name(first, ids)
        return ids

    def reported(self) -> None:
        """Boxes stay as the detector has them."""

    def looks(self) -> None:
        """No model looks at objects."""

    def velocities(self) -> Corners:
        """Of the objects of the last step."""
        return self._tracks.velocities()

    def pass_over(self, elapsed: int, frame: Frame, size: tuple[int, int]) -> None:
        """A frame in which nothing was looked for: lost tracks age, the others only move."""
        self._tracks.pass_over(elapsed)
