"""Base of all trackers: one state for each source, and objects where no model ran."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from noria._core.notices import Notice
from noria.media.frame import Frame
from noria.meta import (
    UNTRACKED_OBJECT_ID,
    ClassStyle,
    Detections,
    FrameMeta,
    Objects,
    Space,
)
from noria.track.motion import inside, predict
from noria.track.selection import Corners, Found, Index, Selection
from noria.track.tracker import Ids

FloatArray = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Followed:
    """The tracks that objects belong to.

    Attributes:
        ids: (N,) int64, 0 for an object without a track.
        velocities: (N, 4) float64 pixels per frame of left, top, right, bottom.
    """

    ids: Ids
    velocities: Corners


class Follower(Protocol):
    """An algorithm at work on one source."""

    def step(self, found: Found, elapsed: int) -> Followed:
        """Tracks of the objects of a frame, `elapsed` frames after the last call."""
        ...

    def pass_over(self, elapsed: int) -> None:
        """A frame in which nothing was looked for, `elapsed` frames after the last call."""
        ...


@dataclass(slots=True)
class _Shown:
    """The tracked objects of the last frame that a model ran on, in their order there."""

    corners: Corners
    velocities: Corners
    ids: Ids
    class_ids: npt.NDArray[np.int32]
    component_ids: npt.NDArray[np.int32]
    confidences: FloatArray
    angles: FloatArray | None
    border_colors: FloatArray | None
    labels: Mapping[int, Sequence[str]]
    styles: Mapping[int, Mapping[int, ClassStyle]]


@dataclass(slots=True)
class _Source:
    follower: Follower
    frame: int | None = None  # number of the last frame
    shown: _Shown | None = None
    gap: int = 0  # frames since a model ran
    gap_time: int = 0  # the same by the numbers of the frames


class ObjectTracker:
    """Runs one `Follower` for each source and writes its tracks into the metadata.

    Args:
        name: what `open_tracker` calls it.
        new_follower: makes the state of a source.
        selection: which objects are tracked.
        fill_gaps: put the tracked objects, moved on, into frames that no model ran on.
        max_gap: of that many frames in a row at most.
        decay: the tracker's confidence in such an object for each frame, to the power of frames.
        notices: choices made when it was opened.
    """

    def __init__(
        self,
        name: str,
        new_follower: Callable[[], Follower],
        selection: Selection,
        *,
        fill_gaps: bool = True,
        max_gap: int = 30,
        decay: float = 0.95,
        notices: Sequence[Notice] = (),
    ) -> None:
        self.name = name
        self.notices = list(notices)
        self.selection = selection
        self._new_follower = new_follower
        self._fill_gaps = fill_gaps
        self._max_gap = max_gap
        self._decay = decay
        self._sources: dict[int, _Source] = {}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, {len(self._sources)} sources)"

    def update(self, frame: Frame, meta: FrameMeta) -> None:
        """Track the objects of the next frame of its source, see `Tracker.update`."""
        source = self._sources.get(meta.source_id)
        if source is None:
            source = self._sources[meta.source_id] = _Source(self._new_follower())
        elapsed = 1 if source.frame is None else max(1, meta.frame - source.frame)
        source.frame = meta.frame
        found = self.selection(meta.objects)
        if meta.inferred or len(found):
            self._track(source, found, elapsed, meta.objects)
        else:
            self._pass_over(source, elapsed, meta)

    def end_of_stream(self, source_id: int) -> None:
        """Forget the tracks of a source."""
        self._sources.pop(source_id, None)

    def close(self) -> None:
        """Forget everything."""
        self._sources.clear()

    def _track(self, source: _Source, found: Found, elapsed: int, objects: Objects) -> None:
        followed = source.follower.step(found, elapsed)
        tracked = followed.ids > 0
        ids = np.where(tracked, followed.ids, 0).astype(np.uint64)
        ids[~tracked] = UNTRACKED_OBJECT_ID
        objects.object_ids[found.index] = ids
        confidences = _tracker_confidences(objects)
        confidences[found.index] = tracked
        source.gap = source.gap_time = 0
        if self._fill_gaps:
            source.shown = _shown(found, followed, objects)

    def _pass_over(self, source: _Source, elapsed: int, meta: FrameMeta) -> None:
        source.follower.pass_over(elapsed)
        source.gap += 1
        source.gap_time += elapsed
        _tracker_confidences(meta.objects)
        shown = source.shown
        if shown is None or source.gap > self._max_gap:
            source.shown = None
            return
        moved = predict(shown.corners, shown.velocities, source.gap_time)
        corners = inside(moved, meta.width, meta.height)
        visible = (corners[:, 2:] - corners[:, :2] >= 1).all(axis=1)
        confidence = self._decay**source.gap
        for component in np.unique(shown.component_ids[visible]).tolist():
            some = np.flatnonzero(visible & (shown.component_ids == component))
            _append(meta.objects, shown, component, some, corners[some], confidence)


def _tracker_confidences(objects: Objects) -> FloatArray:
    """The column of the objects, made if there is none."""
    if objects.tracker_confidences is None:
        objects.tracker_confidences = np.zeros(len(objects), np.float32)
    return objects.tracker_confidences


def _shown(found: Found, followed: Followed, objects: Objects) -> _Shown:
    """Copies of the values that an object needs to be shown again."""
    rows = np.flatnonzero(followed.ids > 0)
    rows = rows[np.argsort(found.index[rows])]
    index = found.index[rows]
    return _Shown(
        corners=found.corners[rows],
        velocities=followed.velocities[rows],
        ids=followed.ids[rows],
        class_ids=objects.class_ids[index],
        component_ids=objects.component_ids[index],
        confidences=objects.confidences[index],
        angles=None if objects.angles is None else objects.angles[index],
        border_colors=None if objects.border_colors is None else objects.border_colors[index],
        labels=dict(objects.labels),
        styles=dict(objects.styles),
    )


def _append(
    objects: Objects,
    shown: _Shown,
    component: int,
    some: Index,
    corners: Corners,
    confidence: float,
) -> None:
    """Add the tracked objects `some` of one model at their predicted places."""
    first = len(objects)
    rects = np.concatenate((corners[:, :2], corners[:, 2:] - corners[:, :2]), axis=1)
    objects.append(
        Detections.unchecked(
            rects.astype(np.float32),
            shown.confidences[some],
            shown.class_ids[some],
            angles=None if shown.angles is None else shown.angles[some],
            space=Space.FRAME,
        ),
        component,
        labels=shown.labels.get(component, ()),
        styles=shown.styles.get(component),
        border_colors=None if shown.border_colors is None else shown.border_colors[some],
    )
    objects.object_ids[first:] = shown.ids[some].astype(np.uint64)
    _tracker_confidences(objects)[first:] = confidence
