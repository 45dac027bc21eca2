"""Trackers of the library `trackers` (Apache-2.0), the extra `tracking`."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from headrace._core.errors import ConfigError
from headrace._core.lazy import as_guest, install_command
from headrace._core.types import Array
from headrace.media.frame import Frame
from headrace.pipeline.track.selection import Corners, Found
from headrace.pipeline.track.settings import Setting
from headrace.pipeline.track.tracker import Ids, TrackIds

LIBRARY_TRACKERS: Mapping[str, str] = {
    "sort": "SORTTracker",
    "bytetrack": "ByteTrackTracker",
    "ocsort": "OCSORTTracker",
    "cbiou": "CBIoUTracker",
    "botsort": "BoTSORTTracker",
}
_LOOKS_AT_FRAMES = {"BoTSORTTracker"}  # camera motion
_GAIN = 0.4  # weight of the newest movement in the velocity of a track


def library_tracker(name: str) -> type[Any]:
    """The library's class."""
    try:
        with as_guest():
            import trackers

        return getattr(trackers, LIBRARY_TRACKERS[name])  # type: ignore[no-any-return]
    except (ImportError, AttributeError) as error:
        raise ConfigError(
            f"the tracker {name} is one of the library trackers, which cannot be used: {error}",
            where="tracker",
            expected="trackers >= 2.6",
            fix=[install_command("tracking"), "or use the tracker iou, which needs nothing"],
        ) from None


def library_settings(kind: type[object]) -> tuple[Setting, ...]:
    """The parameters of a class of the library that are numbers or switches."""
    parameters = inspect.signature(kind.__init__).parameters.values()
    return tuple(
        Setting(p.name, p.default) for p in parameters if isinstance(p.default, bool | int | float)
    )


class _Group:
    """One instance of the library, for the objects that may be one track, and its ids as ours."""

    def __init__(self, tracker: Any) -> None:
        self.tracker = tracker
        self.ids: dict[int, int] = {}

    def names(self, theirs: Array, ids: TrackIds) -> npt.NDArray[np.int64]:
        """Our ids for theirs, 0 for -1, new ones in the order of theirs."""
        known = self.ids
        new = sorted(set(theirs.tolist()) - known.keys() - {-1})
        known.update(zip(new, ids.take(len(new)).tolist(), strict=True))
        named = np.array([known.get(i, 0) for i in theirs.tolist()], np.int64)
        if len(known) > 2 * len(self.tracker.tracks) + 100:
            alive = {t.tracker_id for t in self.tracker.tracks}
            self.ids = {i: our for i, our in known.items() if i in alive}
        return named


class LibraryFollower:
    """The tracks of one source, by a class of the library.

    The library knows nothing of classes and models, so each group of objects has an instance of
    its own. Time is counted in frames, so that a frame without inference, which the
    library never sees, is no miss.
    """

    def __init__(self, kind: type[Any], settings: Mapping[str, Any], ids: TrackIds) -> None:
        self._kind, self._settings, self._ids = kind, dict(settings), ids
        rate = settings.get("frame_rate", inspect.signature(kind).parameters["frame_rate"].default)
        self._frame_s = 1 / rate
        self._groups: dict[int, _Group] = {}
        self._time = 0
        self._velocities = np.empty((0, 4))  # of the objects of the last step
        # the tracks of the last frames: id, box, velocity, time; sorted by id
        self._seen_ids = np.empty(0, np.int64)
        self._seen = np.empty((0, 9))

    def step(self, objects: Found, elapsed: int, frame: Frame, size: tuple[int, int]) -> Ids:
        """Tracks of the objects of a frame."""
        self._time += elapsed
        ids = np.zeros(len(objects), np.int64)
        image = frame.to_bgr() if self._kind.__name__ in _LOOKS_AT_FRAMES else None
        for group in sorted(self._groups.keys() | set(objects.groups.tolist())):
            self._step_group(group, objects, ids, image)
        self._velocities = self._measured(ids, objects.corners)
        return ids

    def reported(self) -> None:
        """Boxes stay as the detector has them."""

    def looks(self) -> None:
        """No model looks at objects."""

    def velocities(self) -> Corners:
        """Of the objects of the last step."""
        return self._velocities

    def pass_over(self, elapsed: int, frame: Frame, size: tuple[int, int]) -> None:
        """A frame in which nothing was looked for."""
        self._time += elapsed

    def _step_group(
        self, number: int, objects: Found, ids: npt.NDArray[np.int64], image: Array | None
    ) -> None:
        import supervision as sv

        group = self._groups.get(number)
        if group is None:
            group = self._groups[number] = _Group(self._kind(**self._settings))
        rows = np.flatnonzero(objects.groups == number)
        scores = objects.scores[rows]
        detections = sv.Detections(
            xyxy=objects.corners[rows],
            # an unknown confidence (group rectangles) must not look like a bad one
            confidence=np.where(scores < 0, np.float32(1), scores),
            class_id=np.zeros(len(rows), int),
            data={"row": rows},
        )
        time_s = self._time * self._frame_s
        result = group.tracker.update(detections, frame=image, timestamp=time_s)
        if len(result):  # in an order of its own, perhaps without some
            named = group.names(np.asarray(result.tracker_id), self._ids)
            ids[np.asarray(result.data["row"])] = named

    def _measured(self, ids: npt.NDArray[np.int64], corners: Corners) -> Corners:
        """Velocities of the objects with an id, from where the same ids were before."""
        velocities = np.zeros((len(ids), 4))
        rows = np.flatnonzero(ids > 0)
        rows = rows[np.argsort(ids[rows])]
        now = ids[rows]
        state = np.empty((len(rows), 9))
        state[:, :4], state[:, 4:8], state[:, 8] = corners[rows], 0, self._time
        if len(self._seen_ids):
            at = np.minimum(np.searchsorted(self._seen_ids, now), len(self._seen_ids) - 1)
            again = self._seen_ids[at] == now
            old = self._seen[at[again]]
            passed = self._time - old[:, 8:]
            moved = (state[again, :4] - old[:, :4]) / passed
            first = ~old[:, 4:8].any(axis=1, keepdims=True)
            gain = np.where(first, 1.0, _GAIN)
            state[again, 4:8] = old[:, 4:8] + gain * (moved - old[:, 4:8])
        velocities[rows] = state[:, 4:8]
        self._remember(now, state)
        return velocities

    def _remember(self, now: npt.NDArray[np.int64], state: Array) -> None:
        recent = ~np.isin(self._seen_ids, now) & (self._time - self._seen[:, 8] < 100)
        ids = np.concatenate((self._seen_ids[recent], now))
        order = np.argsort(ids)
        self._seen_ids = ids[order]
        self._seen = np.concatenate((self._seen[recent], state))[order]
