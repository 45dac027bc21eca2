"""The tracker `nvmot`: the user's own low-level tracker library, one context for each source."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from headrace._core.errors import ConfigError, CustomLibraryError, HeadraceError
from headrace._core.findings import Finding
from headrace._core.notices import note_once
from headrace.custom.guard.keeper import can_guard
from headrace.custom.guard.options import GuardOptions
from headrace.custom.nvmot.generation import choose
from headrace.custom.nvmot.host import UPDATE, tracker_elf
from headrace.custom.nvmot.source import LibraryTracks, NvmotSettings, NvmotSource
from headrace.custom.nvmot.structures import generation_of
from headrace.media.frame import Frame
from headrace.meta import Detections, FrameMeta, Objects, Space
from headrace.meta.detections import overlaps
from headrace.meta.objects import NO_MASK
from headrace.pipeline.track.selection import Found, Selection
from headrace.pipeline.track.settings_file import text_of
from headrace.pipeline.track.tracker import Ids, TrackIds, column_of_confidences, inside

_SAME = 0.5  # overlap from which on two boxes are one object
_FRONT = 0.5  # values of a library's mask above it are the object
_MODES = ("always", "never")


def _setting(default: object, help: str, low: float = 0, high: float = 1e9) -> Any:
    return field(default=default, metadata={"help": help, "low": low, "high": high})


@dataclass(frozen=True, slots=True)
class UserLibrarySettings:
    """Settings of the tracker `nvmot`."""

    library: str = _setting("", "the library, with the functions NvMOT_*")
    config: str = _setting("", "its own file, handed over as it is")
    tracker_width: int = _setting(960, "width of images and boxes that it gets", 32, 16384)
    tracker_height: int = _setting(544, "their height", 32, 16384)
    generation: str = _setting("auto", "release that it was compiled for, such as 7.0; or auto")
    guard: str = _setting("always", "always: in a worker process; never: in this process")
    timeout_s: float = _setting(10.0, "seconds that a call may take", 0.01, 86400)
    restarts: int = _setting(5, "times that a worker is started again")


class _Source:
    """One source: its context, and its ids as ours."""

    def __init__(self, context: NvmotSource) -> None:
        self.context = context
        self.ids: dict[int, int] = {}  # of the library -> ours
        self.started = 0
        self.boxes: npt.NDArray[np.float32] = np.empty((0, 4), np.float32)  # of the last frame
        self.shown: Ids = np.empty(0, np.int64)
        self.component = 1
        self.labels: Sequence[str] = ()


class UserLibraryTracker:
    """Tracks with a library of the user, see `Tracker`.

    A library that crashes, hangs or fails costs one frame of one source: its objects have no ids
    in that frame, and keep those that they had from the next one on.

    Args:
        settings: of the library.
        selection: which objects it gets.
        ids: gives out numbers.
        give_looks: put its ReID vectors into the metadata.

    Attributes:
        records: of each source, the library's answer about the last frame with past frames and
            the like; ids of records are ours.

    Raises:
        ConfigError: a setting that cannot be.
        CustomLibraryError: the library is missing, is none, or refuses to start.
    """

    name = "nvmot"

    def __init__(
        self,
        settings: UserLibrarySettings,
        selection: Selection,
        ids: TrackIds,
        *,
        give_looks: bool = False,
    ) -> None:
        self.notices: list[Finding] = []
        self.records: dict[int, LibraryTracks] = {}
        self._selection, self._ids, self._give_looks = selection, ids, give_looks
        self._sources: dict[int, _Source] = {}
        self._set = self._opened(settings)
        self._changes: list[str] = []  # shared with the contexts
        self.folder = Path(self._set.config or self._set.path).parent

    def _opened(self, s: UserLibrarySettings) -> NvmotSettings:
        where = f"tracker {self.name}"
        if not s.library:
            raise ConfigError(
                "the tracker nvmot names no library", where=where, expected="library=PATH.so"
            )
        if s.guard not in _MODES:
            raise ConfigError(
                f"guard={s.guard} is not possible", where=where, expected=" or ".join(_MODES)
            )
        options = GuardOptions(timeout_s=s.timeout_s, restarts=s.restarts)
        path = Path(s.library).absolute()
        if s.guard == "always" and (problem := can_guard()):
            text = f"it cannot run in a worker process: {problem}; it runs in this one"
            self.notices.append(Finding("not-guarded", "warning", text, str(path)))
        guarded = s.guard == "always" and not can_guard()
        config = str(Path(s.config).absolute()) if s.config else ""
        made = NvmotSettings(
            path, "", config, s.tracker_width, s.tracker_height, options if guarded else None
        )
        if s.generation == "auto":
            chosen, finding = choose(path, made.payload(), made.options)
            self.notices.append(finding)
        else:
            try:
                chosen = generation_of(s.generation)
            except ValueError:
                raise ConfigError(
                    f"generation={s.generation} is not possible",
                    where=where,
                    expected="auto, or a release such as 6.3",
                ) from None
        return replace(made, generation=chosen)

    def __repr__(self) -> str:
        return f"UserLibraryTracker({str(self._set.path)!r}, {len(self._sources)} sources)"

    def change(self, path: Path) -> Sequence[Finding]:
        """Hand the text of a file over to the library, see `LiveTracker.change`."""
        if UPDATE not in tracker_elf(self._set.path).exported() or self._set.generation < "8.0":
            raise CustomLibraryError(
                "the library takes no changes while it runs",
                where=str(self._set.path),
                expected=f"{UPDATE}, which libraries for 8.0 or newer may have",
            )
        self._changes.append(text_of(path))
        return ()

    def update(self, frame: Frame, meta: FrameMeta) -> None:
        """Track the objects of the next frame of its source, see `Tracker.update`."""
        source = self._sources.get(meta.source_id)
        if source is None:
            context = NvmotSource(self._set, meta.source_id, self._changes)
            source = self._sources[meta.source_id] = _Source(context)
            context.start()  # an error here is one of the whole run
            self._note(context.notices)
        objects = meta.objects
        found = self._selection(objects)
        confidences = column_of_confidences(objects)
        self._note(source.context.follow_changes())
        rows = np.asarray(found.index, np.intp)
        size = (meta.width, meta.height)
        self.records.pop(meta.source_id, None)
        try:
            answer = source.context.track(
                frame, meta.frame, objects.rects[rows], objects.class_ids[rows],
                objects.confidences[rows], inferred=meta.inferred, size=size,
                pts_ns=max(0, meta.pts_ns or 0),
            )  # fmt: skip
        except HeadraceError as error:
            text = "a frame of source {source} goes untracked: {error}"
            data = {"source": meta.source_id, "error": f"{error:brief}"}
            where = str(self._set.path)
            self._note([Finding("tracker-failed", "warning", text, where, data)])
            return
        finally:
            self._note(source.context.notices)
        index = self._index(answer, found)
        ids = self._named(source, answer)
        known = np.array([source.ids[i] for i in answer.record_ids.tolist()], np.uint64)
        self.records[meta.source_id] = replace(answer, record_ids=known)
        self._write(objects, rows, ids, index, answer, confidences, size)
        self._append(source, objects, rows, ids, index, answer, size)
        source.boxes, source.shown = answer.boxes, ids

    def _note(self, findings: Sequence[Finding]) -> None:
        for finding in findings:
            note_once(self.notices, finding)

    def _index(self, answer: LibraryTracks, found: Found) -> npt.NDArray[np.int32]:
        """Objects of the answer among those found: by its pointers, else by overlap."""
        index = answer.index
        if len(index) and len(found) and (index < 0).all():
            index = _pair(overlaps(answer.boxes, _rects(found)), _SAME)
            if (index >= 0).any():
                text = "it leaves associatedObjectIn empty: objects are paired by overlap"
                self._note([Finding("tracker-pairs", "info", text, str(self._set.path))])
        return index

    def _named(self, source: _Source, answer: LibraryTracks) -> Ids:
        """Our ids for the library's. A new worker knows no objects: they keep their ids here."""
        if source.started != source.context.generation:
            source.started, source.ids = source.context.generation, {}
            at = _pair(overlaps(answer.boxes, source.boxes), _SAME)
            for theirs, row in zip(answer.ids.tolist(), at.tolist(), strict=True):
                if row >= 0:
                    source.ids[theirs] = int(source.shown[row])
        every = dict.fromkeys([*answer.ids.tolist(), *answer.record_ids.tolist()])
        new = [i for i in every if i not in source.ids]
        source.ids.update(zip(new, self._ids.take(len(new)).tolist(), strict=True))
        return np.array([source.ids[i] for i in answer.ids.tolist()], np.int64)

    def _write(
        self, objects: Objects, rows: npt.NDArray[np.intp], ids: Ids,
        index: npt.NDArray[np.int32], answer: LibraryTracks,
        confidences: npt.NDArray[np.float32], size: tuple[int, int],
    ) -> None:  # fmt: skip
        """Ids and boxes of objects that a detector found."""
        corners = answer.boxes.astype(np.float64)
        corners[:, 2:] += corners[:, :2]
        shown = inside(corners, *size)
        visible = (shown[:, 2:] - shown[:, :2] > 0).all(axis=1)
        some = np.flatnonzero((index >= 0) & visible)
        at = rows[index[some]]
        objects.object_ids[at] = ids[some].astype(np.uint64)
        confidences[at] = answer.confidences[some]
        if len(some):
            if objects.detector_rects is None:
                objects.detector_rects = objects.rects.copy()
            boxes = np.concatenate((shown[:, :2], shown[:, 2:] - shown[:, :2]), axis=1)
            objects.rects = objects.rects.copy()
            objects.rects[at] = boxes[some].astype(np.float32)
        place_masks(objects, at, answer, some)
        if self._give_looks and len(answer.reids) == len(ids):
            for row in some.tolist():
                objects.reids[int(rows[index[row]])] = answer.reids[row]

    def _append(
        self, source: _Source, objects: Objects, rows: npt.NDArray[np.intp], ids: Ids,
        index: npt.NDArray[np.int32], answer: LibraryTracks, size: tuple[int, int],
    ) -> None:  # fmt: skip
        """Objects that the library follows and no detector found in this frame."""
        if len(rows):
            source.component = int(objects.component_ids[rows[0]])
            source.labels = objects.labels.get(source.component, source.labels)
        corners = answer.boxes.astype(np.float64)
        corners[:, 2:] += corners[:, :2]
        shown = inside(corners, *size)
        some = np.flatnonzero((index < 0) & (shown[:, 2:] - shown[:, :2] > 0).all(axis=1))
        if not len(some):
            return
        first = len(objects)
        boxes = np.concatenate((shown[:, :2], shown[:, 2:] - shown[:, :2]), axis=1)
        objects.append(
            Detections.unchecked(
                boxes[some].astype(np.float32), answer.confidences[some].astype(np.float32),
                answer.class_ids[some].astype(np.int32), space=Space.FRAME,
            ),
            source.component,
            labels=source.labels,
        )  # fmt: skip
        objects.object_ids[first:] = ids[some].astype(np.uint64)
        place_masks(objects, np.arange(first, len(objects)), answer, some)
        column_of_confidences(objects)[first:] = answer.confidences[some]

    def end_of_stream(self, source_id: int) -> None:
        """Remove a source; the library hears of it."""
        source = self._sources.pop(source_id, None)
        if source is not None:
            source.context.close()

    def close(self) -> None:
        """End all contexts."""
        for source_id in list(self._sources):
            self.end_of_stream(source_id)


def place_masks(
    objects: Objects, at: npt.NDArray[np.intp], answer: LibraryTracks, rows: npt.NDArray[np.intp]
) -> None:
    """Put masks and places of rows of the answer to the objects `at`."""
    # the detector's masks have a threshold of their own: values above it stay the same ones
    thresholds, bare = objects.mask_thresholds, objects.masks is None
    for index, row in zip(at.tolist(), rows.tolist(), strict=True):
        if row in answer.places:
            objects.user.setdefault(index, []).append(answer.places[row])
        if answer.masks is None or not answer.masks[row].size:
            continue
        if objects.masks is None:
            objects.masks = [NO_MASK] * len(objects)
        if objects.detector_rects is None:
            objects.detector_rects = objects.rects.copy()
        component = int(objects.component_ids[index])
        threshold = thresholds.setdefault(component, _FRONT if bare else 0.0)
        objects.masks[index] = answer.masks[row] + np.float32(threshold - _FRONT)
        objects.detector_rects[index] = answer.boxes[row]  # the mask lies on this box


def _rects(found: Found) -> npt.NDArray[np.float32]:
    corners = np.asarray(found.corners)
    return np.concatenate((corners[:, :2], corners[:, 2:] - corners[:, :2]), 1).astype(np.float32)


def _pair(table: npt.NDArray[np.float64], least: float) -> npt.NDArray[np.int32]:
    """(rows,) the column of each row, the greatest first, each once; -1 below `least`."""
    columns = np.full(table.shape[0], -1, np.int32)
    taken = np.zeros(table.shape[1], bool)
    for flat in np.argsort(-table, axis=None, kind="stable").tolist():
        row, column = divmod(flat, table.shape[1])
        if table[row, column] < least:
            break
        if columns[row] < 0 and not taken[column]:
            columns[row], taken[column] = column, True
    return columns
