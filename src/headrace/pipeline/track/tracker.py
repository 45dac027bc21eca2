"""Protocol of trackers, the numbers of tracks, and the base of all trackers of this package.

The base has one state for each source, and puts objects where no model ran.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from time import time_ns
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from headrace._core.errors import ConfigError
from headrace._core.files import locked, write_atomically
from headrace._core.findings import Finding
from headrace._core.types import Array
from headrace.media.frame import Frame
from headrace.meta import ClassStyle, Detections, FrameMeta, Objects, Space
from headrace.pipeline.track.original_live import LiveValues
from headrace.pipeline.track.selection import Corners, Found, Index, Selection
from headrace.pipeline.track.settings_file import read_entries

_BLOCK = 1000  # numbers that a run takes at a time
_ALL_IDS = 1 << 63
_LOCK_S = 5.0


def predict(
    corners: Corners,
    velocities: Corners,
    frames: Array | int,
    rigid: npt.NDArray[np.bool_] | None = None,
) -> Corners:
    """Boxes some frames later.

    Each edge moves at its own speed, so that a box that enters the image grows. A rigid box, or
    one that would turn inside out, keeps its size and moves as its centre does.

    Args:
        corners: (N, 4) left, top, right, bottom.
        velocities: (N, 4) pixels per frame of each edge.
        frames: how many frames later, one number or (N,).
        rigid: (N,) which boxes keep their size, or None.
    """
    step = velocities * np.reshape(frames, (-1, 1))
    moved: Corners = corners + step
    stiff = (moved[:, 2:] - moved[:, :2] < 1).any(axis=1)
    if rigid is not None:
        stiff |= rigid
    if stiff.any():
        shift = (step[stiff, :2] + step[stiff, 2:]) / 2
        moved[stiff] = corners[stiff] + np.concatenate((shift, shift), axis=1)
    return moved


def inside(corners: Corners, width: int, height: int) -> Corners:
    """The part of boxes that lies in an image; a box outside has no area."""
    high = np.array([width, height, width, height], np.float64)
    clipped: Corners = np.minimum(np.maximum(corners, 0.0), high)  # faster than np.clip
    return clipped


Ids = npt.NDArray[np.int64]


class TrackIds:
    """Gives out the numbers of tracks: 1, 2, 3 and so on, each once.

    Trackers of one pipeline may share one, so that no two of them use the same number. Safe to use
    from several threads.

    Args:
        file: keeps the numbers of all runs that name it apart: each takes the next thousand when it
            needs one. Where it cannot be written, numbers are milliseconds since 1970. None: only
            those of this object differ.
    """

    def __init__(self, file: Path | None = None) -> None:
        self._file = file
        self._next, self._end = (1, _ALL_IDS) if file is None else (0, 0)
        self._lock = Lock()

    def take(self, count: int) -> Ids:
        """(count,) int64, numbers never given out before, rising."""
        with self._lock:
            if self._file is not None and self._next + count > self._end:
                self._next = _reserved(self._file, most := max(count, _BLOCK))
                self._end = self._next + most
            first = self._next
            self._next += count
        return np.arange(first, first + count, dtype=np.int64)


def _reserved(file: Path, count: int) -> int:
    """The first of so many numbers that no other run gets."""
    now = time_ns() // 1_000_000
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with locked(file, _LOCK_S) as held:
            first = int(file.read_text()) if file.exists() else 1
            if held and 0 < first < now:
                write_atomically(file, [str(first + count).encode()])
                return first
    except (OSError, ValueError):  # read-only, or damaged
        pass
    return now


@runtime_checkable
class Tracker(Protocol):
    """Gives the same object the same id in every frame of a source.

    Attributes:
        name: what `open_tracker` calls it.
    """

    name: str

    @property
    def notices(self) -> Sequence[Finding]:
        """Choices and ignored settings so far."""

    def update(self, frame: Frame, meta: FrameMeta) -> None:
        """Track the objects of the next frame of its source.

        Sets `meta.objects.object_ids` and `tracker_confidences` in place, and may append objects
        where no model ran (`meta.inferred` is false). A tracker that moves `rects` puts the
        detector's into `detector_rects`. Objects without a track keep `UNTRACKED_OBJECT_ID`.

        Args:
            frame: the image; frames of one source come in order.
            meta: its metadata.
        """

    def end_of_stream(self, source_id: int) -> None:
        """Forget the tracks of a source; their ids are not used again."""

    def close(self) -> None:
        """Forget everything."""


FloatArray = npt.NDArray[np.float32]


class Places(NamedTuple):
    """Where tracks are in a frame that no model ran on.

    Attributes:
        ids: (N,) int64, rising.
        corners: (N, 4) float64 left, top, right, bottom in frame pixels.
        confidences: (N,) float32, or None for those of a gap.
    """

    ids: Ids
    corners: Corners
    confidences: FloatArray | None


@runtime_checkable
class LiveTracker(Tracker, Protocol):
    """A tracker that takes other settings in the middle of a run.

    Attributes:
        folder: that files of changes lie in.
    """

    folder: Path

    def change(self, path: Path) -> Sequence[Finding]:
        """Take the keys of a file of the original, from the next frame of each source on.

        Returns:
            What stays as it is, and why.

        Raises:
            ConfigError: the file cannot be read, a key cannot have a value, or nothing of this
                tracker changes; all is as before then.
            CustomLibraryError: the library of the user takes no changes.
        """


class Follower(Protocol):
    """An algorithm at work on one source. Frames may be looked at; `size` is width, height."""

    def step(self, objects: Found, elapsed: int, frame: Frame, size: tuple[int, int]) -> Ids:
        """Tracks of the objects of a frame, `elapsed` frames after the last call.

        Returns:
            (N,) int64, 0 for an object without a track.
        """

    def reported(self) -> tuple[Corners, FloatArray] | None:
        """Boxes (N, 4) and confidences (N,) of the objects of the last step by the tracker.

        None leaves boxes as the detector has them, and the tracker sure of them.
        """

    def looks(self) -> tuple[npt.NDArray[np.intp], FloatArray] | None:
        """Objects of the last step that a ReID model saw, and its vectors (M, D), if any."""

    def velocities(self) -> Corners:
        """(N, 4) float64 pixels per frame of each edge of the objects of the last step."""

    def pass_over(self, elapsed: int, frame: Frame, size: tuple[int, int]) -> Places | None:
        """A frame in which nothing was looked for, `elapsed` frames after the last call.

        Returns:
            Where the tracks are; None where their boxes just move on by their velocities.
        """


@dataclass(slots=True)
class _Shown:
    """The objects of the last frame that a model ran on, as they are shown again in a gap.

    Columns are copies of the frame's, made for each frame: rows are chosen when a gap comes, and
    velocities asked for.
    """

    found: Found
    ids: Ids
    class_ids: npt.NDArray[np.int32]
    component_ids: npt.NDArray[np.int32]
    confidences: FloatArray
    angles: FloatArray | None
    border_colors: FloatArray | None
    labels: Mapping[int, Sequence[str]]
    styles: Mapping[int, Mapping[int, ClassStyle]]
    velocities: Corners | None = None

    @classmethod
    def of(cls, tracked: Found, ids: Ids, objects: Objects) -> _Shown:
        angles, colors = objects.angles, objects.border_colors
        return cls(
            tracked,
            ids,
            objects.class_ids.copy(),
            objects.component_ids.copy(),
            objects.confidences.copy(),
            None if angles is None else angles.copy(),
            None if colors is None else colors.copy(),
            dict(objects.labels),
            dict(objects.styles),
        )

    @property
    def rows(self) -> npt.NDArray[np.intp]:
        """Tracked objects among those found, in their order in the frame."""
        rows = np.flatnonzero(self.ids > 0)
        return rows[np.argsort(self.found.index[rows])]


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
        give_looks: put the vectors of a ReID model into the metadata.
        notices: choices made when it was opened.
        live: values that its followers share, which may change; None for a tracker without.

    Attributes:
        folder: that files of changes lie in.
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
        give_looks: bool = False,
        notices: Sequence[Finding] = (),
        live: LiveValues | None = None,
        folder: Path = Path(),
    ) -> None:
        self.name = name
        self.folder = folder
        self._live, self._resets = live, 0
        self.notices = list(notices)
        self.selection = selection
        self._new_follower = new_follower
        self._fill_gaps = fill_gaps
        self._max_gap = max_gap
        self._decay = decay
        self._give_looks = give_looks
        self._sources: dict[int, _Source] = {}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, {len(self._sources)} sources)"

    def change(self, path: Path) -> Sequence[Finding]:
        """Take the keys of a file, see `LiveTracker.change`."""
        if self._live is None:
            raise ConfigError(
                f"nothing of the tracker {self.name} changes while it runs",
                where=str(path),
                fix="start it again with other settings",
            )
        return self._live.change(read_entries(path), str(path))

    def update(self, frame: Frame, meta: FrameMeta) -> None:
        """Track the objects of the next frame of its source, see `Tracker.update`."""
        if self._live is not None and self._live.resets != self._resets:
            self._resets = self._live.resets
            self._sources.clear()
        source = self._sources.get(meta.source_id)
        if source is None:
            source = self._sources[meta.source_id] = _Source(self._new_follower())
        elapsed = 1 if source.frame is None else max(1, meta.frame - source.frame)
        source.frame = meta.frame
        tracked = self.selection(meta.objects)
        if meta.inferred or len(tracked):
            self._track(source, tracked, elapsed, frame, meta)
        else:
            self._pass_over(source, elapsed, frame, meta)

    def end_of_stream(self, source_id: int) -> None:
        """Forget the tracks of a source."""
        self._sources.pop(source_id, None)

    def close(self) -> None:
        """Forget everything."""
        self._sources.clear()

    def _track(
        self, source: _Source, tracked: Found, elapsed: int, frame: Frame, meta: FrameMeta
    ) -> None:
        objects = meta.objects
        ids = source.follower.step(tracked, elapsed, frame, (meta.width, meta.height))
        # as the native call takes them, whatever a probe has put there; without one no copies
        objects.object_ids = np.ascontiguousarray(objects.object_ids, np.uint64)
        confidences = np.ascontiguousarray(column_of_confidences(objects), np.float32)
        objects.tracker_confidences = confidences
        tracked.write(ids, objects.object_ids, confidences)
        reported = source.follower.reported()
        if reported is not None:
            _move(objects, tracked, ids, *reported, (meta.width, meta.height))
        looks = source.follower.looks() if self._give_looks else None
        if looks is not None:
            for row, look in zip(looks[0].tolist(), looks[1], strict=True):
                if ids[row] > 0:
                    objects.reids[int(tracked.index[row])] = look
        source.gap = source.gap_time = 0
        if self._fill_gaps:
            source.shown = _Shown.of(tracked, ids, objects)

    def _pass_over(self, source: _Source, elapsed: int, frame: Frame, meta: FrameMeta) -> None:
        shown = source.shown
        if shown is not None and shown.velocities is None:
            shown.velocities = source.follower.velocities()
        places = source.follower.pass_over(elapsed, frame, (meta.width, meta.height))
        source.gap += 1
        source.gap_time += elapsed
        column_of_confidences(meta.objects)
        if shown is None or shown.velocities is None or source.gap > self._max_gap:
            source.shown = None
            return
        rows = shown.rows
        confidences = np.full(len(rows), self._decay**source.gap, np.float32)
        if places is None:
            moved = predict(shown.found.corners[rows], shown.velocities[rows], source.gap_time)
        else:
            rows = rows[np.isin(shown.ids[rows], places.ids)]
            at = np.searchsorted(places.ids, shown.ids[rows])
            moved = places.corners[at]
            if places.confidences is not None:
                confidences = places.confidences[at]
        corners = inside(moved, meta.width, meta.height)
        visible = (corners[:, 2:] - corners[:, :2] >= 1).all(axis=1)
        components = shown.component_ids[shown.found.index[rows]]
        for component in np.unique(components[visible]).tolist():
            some = np.flatnonzero(visible & (components == component))
            _append(meta.objects, shown, component, rows[some], corners[some], confidences[some])


def column_of_confidences(objects: Objects) -> FloatArray:
    """The column of the objects, made if there is none."""
    if objects.tracker_confidences is None:
        objects.tracker_confidences = np.zeros(len(objects), np.float32)
    return objects.tracker_confidences


def _move(
    objects: Objects,
    tracked: Found,
    ids: Ids,
    corners: Corners,
    confidences: FloatArray,
    size: tuple[int, int],
) -> None:
    """Write the tracker's boxes, as far as they lie in the image, beside the detector's."""
    boxes = inside(corners, *size)
    extents = boxes[:, 2:] - boxes[:, :2]
    seen = (ids > 0) & (extents[:, 0] > 0) & (extents[:, 1] > 0)
    index = tracked.index[seen]
    if objects.tracker_confidences is not None:
        objects.tracker_confidences[index] = confidences[seen]
    if objects.detector_rects is None:
        objects.detector_rects = objects.rects.copy()
    boxes[:, 2:] = extents
    rects = objects.rects.copy()
    rects[index] = boxes[seen]
    objects.rects = rects


def _append(
    objects: Objects,
    shown: _Shown,
    component: int,
    rows: Index,
    corners: Corners,
    confidences: FloatArray,
) -> None:
    """Add the objects `rows` of those found, all of one model, at their predicted places."""
    first, some = len(objects), shown.found.index[rows]
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
    objects.object_ids[first:] = shown.ids[rows].astype(np.uint64)
    column_of_confidences(objects)[first:] = confidences
