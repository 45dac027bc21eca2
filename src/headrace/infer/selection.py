"""Which objects a secondary model infers on, and the results it remembers.

An object is submitted unless, in this order:

1. it comes from another component than `operate-on-gie-id`, or from this very model;
2. it is smaller or larger than `input-object-min-*`, `input-object-max-*` allow;
3. its class is not among `operate-on-class-ids`;
4. there is nothing to crop: less than 2x2 pixels once rounded, or outside the frame;
5. it is tracked, the model saw it before, and it is not time to look again: for classifiers when
   its area grew by more than 20 % or more than `secondary-reinfer-interval` frames passed, for
   detectors after that interval, always if the interval has its default. A frame number that goes
   backwards means it is time. Other networks look at every frame.

A tracked object that a classifier saw before and that is not submitted, for whichever reason, has
the result of last time. Tracking ids are those of one source; component and class play no part.

With `classifier-async-mode` results only go to the memory, every tracked object with an entry has
what the memory holds when its frame is looked at, and untracked objects are left out.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from headrace._core.findings import Finding
from headrace._core.notices import note_once
from headrace._core.plain_record import PlainRecord
from headrace.config.enums import Generation, NetworkType
from headrace.infer.geometry import croppable
from headrace.infer.tally import ObjectTally
from headrace.meta import UNTRACKED_OBJECT_ID, ClassifierMeta, FrameMeta, Objects
from headrace.meta.detections import FloatArray, IntArray

if TYPE_CHECKING:
    from headrace.config import ModelConfig

DEFAULT_INTERVAL = 2147483647
BUFFERS_BETWEEN_CLEANING = 1800  # and as many frames of a source
WARN_EVERY_NS = 5 * 60 * 10**9
_MIN_SIZE: dict[Generation, int] = {"6.2": 16, "9.1": 1}
_NONE: IntArray = np.empty(0, np.int32)
_MAKES_OBJECTS = (NetworkType.DETECTOR, NetworkType.INSTANCE_SEGMENTATION)
GROWTH = 1.2  # an area more than this times the last one is looked at again
SHELF_LIFE = 150  # frames an entry is kept without its object being seen
_FIRST = 64  # objects of a source that there is room for at first

BoolArray = npt.NDArray[np.bool_]
DoubleArray = npt.NDArray[np.float64]
Entries = npt.NDArray[np.object_]


class Entry:
    """One tracked object: the last result and how many inferences are under way.

    Whoever holds an entry may store and read its result, even after the history forgot it.
    """

    __slots__ = ("pending", "result")

    def __init__(self) -> None:
        self.result: ClassifierMeta | None = None
        self.pending = 0


class History:
    """The tracked objects of one source, keyed by tracking id.

    Not safe to use from two threads at once.

    Attributes:
        frame: number of the frame looked at last.
    Source: spec D.3.
    """

    def __init__(self) -> None:
        self.frame = 0
        self._cleaned = 0
        self._slots: dict[int, int] = {}  # tracking id -> index in the arrays
        self._free: list[int] = []
        self._frames = np.zeros(_FIRST, np.int64)  # of the last submission
        self._limits = np.zeros(_FIRST)  # an area above it is submitted again
        self._accessed = np.zeros(_FIRST, np.int64)  # frame where the object was seen last
        self._entries: Entries = np.empty(_FIRST, np.object_)

    def __len__(self) -> int:
        return len(self._slots)

    def visit(
        self, ids: Sequence[int], eligible: BoolArray, areas: DoubleArray, interval: int, grow: bool
    ) -> tuple[BoolArray, BoolArray, Entries]:
        """Decide which of N different tracked objects of `frame` are submitted, and note it.

        Args:
            ids: N tracking ids, no two the same.
            eligible: (N,) bool, whether the filters let them pass.
            areas: (N,) float64 in square pixels.
            interval: submit again when more frames than this have passed.
            grow: submit again when the area grew.

        Returns:
            (N,) whether each is submitted, (N,) whether it had an entry before, (N,) its entry, or
            None where there still is none.
        """
        known = self._slots
        slots = np.array([known.get(i, -1) for i in ids], np.intp)
        had: BoolArray = slots >= 0
        age = self.frame - self._frames[slots]
        due = (age > interval) | (age < 0)
        if grow:
            due |= self._limits[slots] < areas
        submit: BoolArray = eligible & (due | ~had)
        self._accessed[slots[had]] = self.frame
        new = np.flatnonzero(submit & ~had)
        if len(new):
            slots[new] = self._add([ids[i] for i in new.tolist()])
        submitted = slots[submit]
        self._frames[submitted] = self.frame
        self._limits[submitted] = areas[submit] * GROWTH
        entries = self._entries[slots]
        if len(new) < len(ids):
            entries[slots < 0] = None
        return submit, had, entries

    def clean(self, frames: int) -> None:
        """Forget objects not seen lately, if `frames` frames passed since the last time.

        Objects under inference stay.
        """
        if 0 <= self.frame - self._cleaned < frames:
            return
        self._cleaned = self.frame
        slots = np.fromiter(self._slots.values(), np.intp, len(self._slots))
        unseen = self.frame - self._accessed[slots]
        stale = (unseen > SHELF_LIFE) | (unseen < 0)
        for (object_id, slot), old in zip(list(self._slots.items()), stale.tolist(), strict=True):
            if old and not self._entry(slot).pending:
                del self._slots[object_id]
                self._entries[slot] = None
                self._free.append(slot)

    def _add(self, ids: Sequence[int]) -> list[int]:
        """Places for new tracking ids."""
        short = len(ids) - len(self._free)
        if short > 0:
            used = len(self._slots) + len(self._free)
            size = len(self._frames)
            if used + short > size:
                size = max(2 * size, used + short)
                for name in ("_frames", "_limits", "_accessed", "_entries"):
                    column = getattr(self, name)
                    larger = np.empty(size, column.dtype)
                    larger[:used] = column[:used]
                    setattr(self, name, larger)
            self._free += range(used + short - 1, used - 1, -1)
        slots = [self._free.pop() for _ in ids]
        self._slots.update(zip(ids, slots, strict=True))
        for slot in slots:
            self._entries[slot] = Entry()
        self._accessed[slots] = self.frame
        return slots

    def _entry(self, slot: int) -> Entry:
        entry: Entry = self._entries[slot]
        return entry


class Selection(PlainRecord, frozen=True, eq=False):
    """Objects of one frame: which to infer on, which have remembered results.

    It keeps the entries of these objects, so its results can be stored and read after the stream
    ended or the memory was cleared; the memory does not see them then.

    Attributes:
        source_id: the source of the frame.
        infer: int32, indices of the objects to submit, rising.
        cached: int32, indices of the objects that have the result of an earlier inference, rising.
    """

    source_id: int
    infer: IntArray
    cached: IntArray
    _submitted: Sequence[Entry | None] = ()
    _remembered: Sequence[Entry] = ()


class Selector:
    """Selects the objects of a secondary model and keeps its results of tracked objects.

    `next_buffer` and `select` are called in the order of the stream, by one thread at a time.
    Everything else may be called from other threads meanwhile.

    Args:
        cfg: a config with process-mode 2.
        generation: `9.1`, or `6.2` with a minimum size of 16x16 pixels.
        tally: counts the objects that are left out.

    Attributes:
        async_mode: results go only to the memory (`classifier-async-mode` of a classifier).
        notices: what could not be inferred on.
    Source: spec D.3, D.4.
    """

    def __init__(
        self, cfg: ModelConfig, *, generation: Generation = "9.1", tally: ObjectTally | None = None
    ) -> None:
        kind = cfg.network_type
        self.classifies = kind is NetworkType.CLASSIFIER
        self.async_mode = bool(self.classifies and cfg.classifier_async_mode)
        self.notices: list[Finding] = []
        # The original compares unsigned numbers.
        self._interval = cfg.secondary_reinfer_interval & 0xFFFFFFFF
        by_age = kind is NetworkType.DETECTOR and self._interval != DEFAULT_INTERVAL
        self._remembers = self.classifies or by_age
        self._component = cfg.operate_on_gie_id
        # Ids that nobody wrote are all 1: they tell nothing about who made an object.
        self._own = cfg.gie_unique_id if kind in _MAKES_OBJECTS else None
        self._classes = np.array([c for c in cfg.operate_on_class_ids if c >= 0], np.int32)
        self._any_class = not cfg.operate_on_class_ids
        least = _MIN_SIZE[generation]
        self._min = (
            max(least, cfg.input_object_min_width),
            max(least, cfg.input_object_min_height),
        )
        self._max = (cfg.input_object_max_width, cfg.input_object_max_height)
        self._tally = ObjectTally() if tally is None else tally
        for bound, sizes in (("min", self._min), ("max", self._max)):
            for side, size in zip(("width", "height"), sizes, strict=True):
                self._tally.limits[f"input-object-{bound}-{side}"] = size
        self._histories: dict[int, History] = {}
        self._lock = threading.Lock()
        self._buffers = 0
        self._warned_ns: int | None = None
        self._all_cropped = True

    def next_buffer(self) -> None:
        """Count a muxed buffer; now and then forget objects that left.

        After more than 1,800 buffers, in each source that advanced by 1,800 frames or more, those
        not seen for more than 150 frames and not under inference.
        """
        self._buffers += 1
        if self._buffers <= BUFFERS_BETWEEN_CLEANING:
            return
        self._buffers = 0
        with self._lock:
            for history in self._histories.values():
                history.clean(BUFFERS_BETWEEN_CLEANING)

    def select(self, meta: FrameMeta) -> Selection:
        """Choose among the objects of a frame, and note those chosen as submitted.

        In asynchronous mode read the cached results (`cached_many`) before the frame goes on.
        """
        objects = meta.objects
        self._tally.frames += 1
        self._tally.objects += len(objects)
        if not len(objects):
            if self._remembers:
                with self._lock:
                    self._history(meta)
            return Selection(meta.source_id, _NONE, _NONE)
        infer = self._wanted(meta)
        if not self._remembers:
            return Selection(meta.source_id, _indices(infer), _NONE)
        tracked = objects.object_ids != np.uint64(UNTRACKED_OBJECT_ID)
        if self.async_mode:
            if (infer & ~tracked).any():
                self._warn_untracked(meta)
                self._tally.skip(objects, {"tracker": tracked | ~infer})
            infer &= tracked
        cached = np.zeros(len(objects), np.bool_)
        entries = np.full(len(objects), None, np.object_)
        where = np.flatnonzero(tracked)
        ids = objects.object_ids[where].tolist()
        with np.errstate(over="ignore", invalid="ignore"):
            # The sides of objects that can be cropped are finite; others are never submitted.
            areas = (objects.rects[:, 2] * objects.rects[:, 3]).astype(np.float64)
        with self._lock:
            history = self._history(meta)
            for part in _once_each(ids):
                index, part_ids = where, ids
                if part is not None:
                    index, part_ids = where[part], [ids[i] for i in part]
                submit, had, part_entries = history.visit(
                    part_ids, infer[index], areas[index], self._interval, self.classifies
                )
                infer[index] = submit
                cached[index] = had if self.async_mode else had & ~submit
                entries[index] = part_entries
            if not self.classifies:
                return Selection(meta.source_id, _indices(infer), _NONE)
            submitted: list[Entry | None] = entries[infer].tolist()
            for entry in submitted:
                if entry is not None:
                    entry.pending += 1
        return Selection(
            meta.source_id,
            _indices(infer),
            _indices(cached),
            submitted,
            entries[cached].tolist(),
        )

    def store_many(
        self, selection: Selection, results: Iterable[ClassifierMeta | None], first: int = 0
    ) -> None:
        """Remember new results of submitted objects, empty ones (None) too.

        Args:
            selection: what `select` returned.
            results: of the objects `selection.infer[first:]`, in that order; maybe not of all.
            first: index in `selection.infer` of the first result.
        """
        with self._lock:
            for entry, result in zip(selection._submitted[first:], results, strict=False):
                if entry is not None:
                    entry.result = result
                    entry.pending -= 1

    def abandon(self, selection: Selection, first: int = 0, count: int | None = None) -> None:
        """Give up the results of `count` submitted objects: they keep their earlier ones."""
        end = None if count is None else first + count
        with self._lock:
            for entry in selection._submitted[first:end]:
                if entry is not None:
                    entry.pending -= 1

    def cached_many(self, selection: Selection) -> list[ClassifierMeta | None]:
        """Remembered result of each object of `selection.cached`, or None.

        In synchronous mode the results of earlier frames must have been stored.
        """
        return [entry.result for entry in selection._remembered]

    def end_of_stream(self, source_id: int) -> None:
        """Forget the objects of a source. Selections made before stay usable."""
        with self._lock:
            self._histories.pop(source_id, None)

    def clear(self) -> None:
        """Forget all objects: another model takes over."""
        with self._lock:
            self._histories.clear()

    def passes_size(self, rects: FloatArray) -> BoolArray:
        """Which of (N, 4) float32 rectangles are neither too small nor too large; bounds pass."""
        passed: BoolArray = np.logical_and.reduce(list(self._size_tests(rects).values()))
        return passed

    def refusals(self, meta: FrameMeta) -> list[str | None]:
        """The first filter that each of N objects fails, by its key; None for one that passes all.

        The keys are those of `ObjectTally`. Nothing is counted or remembered.
        """
        objects = meta.objects
        tests = self._tests(objects)
        tests["crop"] = croppable(objects.rects, meta.width, meta.height)
        if self.async_mode:
            tests["tracker"] = objects.object_ids != np.uint64(UNTRACKED_OBJECT_ID)
        failed_keys: list[str | None] = [None] * len(objects)
        for key, passes in reversed(tests.items()):
            for index in np.flatnonzero(~passes).tolist():
                failed_keys[index] = key
        return failed_keys

    def _wanted(self, meta: FrameMeta) -> BoolArray:
        """Which objects the filters let pass."""
        objects = meta.objects
        tests = self._tests(objects)
        eligible = np.ones(len(objects), np.bool_)
        for passes in tests.values():
            eligible &= passes
        possible = croppable(objects.rects, meta.width, meta.height)
        if self._all_cropped and (eligible & ~possible).any():
            self._all_cropped = False
            self._tell_uncroppable(objects, int(np.flatnonzero(eligible & ~possible)[0]), meta)
        eligible &= possible
        if not eligible.all():
            self._tally.skip(objects, tests | {"crop": possible})
        return eligible

    def _tests(self, objects: Objects) -> dict[str, BoolArray]:
        """Which of N objects each filter lets pass, by its key, the most telling one first."""
        tests: dict[str, BoolArray] = {}
        if self._component > -1:
            tests["operate-on-gie-id"] = objects.component_ids == self._component
        if self._own is not None:
            tests["gie-unique-id"] = objects.component_ids != self._own
        if not self._any_class:
            tests["operate-on-class-ids"] = np.isin(objects.class_ids, self._classes)
        return tests | self._size_tests(objects.rects)

    def _size_tests(self, rects: FloatArray) -> dict[str, BoolArray]:
        tests: dict[str, BoolArray] = {}
        sides = zip(("width", "height"), rects.T[2:], self._min, self._max, strict=True)
        for name, size, least, most in sides:
            tests[f"input-object-min-{name}"] = size >= least
            if most:
                tests[f"input-object-max-{name}"] = size <= most
        return tests

    def _history(self, meta: FrameMeta) -> History:
        """The history of the frame's source, at that frame."""
        history = self._histories.get(meta.source_id)
        if history is None:
            history = self._histories[meta.source_id] = History()
        history.frame = meta.frame
        return history

    def _tell_uncroppable(self, objects: Objects, index: int, meta: FrameMeta) -> None:
        left, top, width, height = objects.rects[index].tolist()
        text = f"an object of {width:g}x{height:g} pixels at {left:g},{top:g} leaves nothing to"
        text += f" crop from frame {meta.frame} of {meta.source}: nothing is inferred on such"
        note_once(self.notices, Finding("object-too-small", "warning", f"{text} objects"))

    def _warn_untracked(self, meta: FrameMeta) -> None:
        """At most once in 5 minutes of stream time. Source: spec D.4."""
        if self._warned_ns is None or meta.pts_ns - self._warned_ns >= WARN_EVERY_NS:
            self._warned_ns = meta.pts_ns
            text = "classifier-async-mode ignores objects without a tracking id, as in frame"
            text += f" {meta.frame} of {meta.source}; a tracker before this model gives ids, to new"
            text += " objects after some frames"
            note_once(self.notices, Finding("async-without-tracker", "warning", text))


def _indices(mask: BoolArray) -> IntArray:
    return np.flatnonzero(mask).astype(np.int32)


def _once_each(ids: list[int]) -> list[list[int] | None]:
    """Parts, in order, in which no id comes twice: places in `ids`, or None for all of them."""
    if len(set(ids)) == len(ids):
        return [None]
    times: dict[int, int] = {}
    parts: list[list[int] | None] = []
    for index, object_id in enumerate(ids):
        n = times[object_id] = times.get(object_id, -1) + 1
        if n == len(parts):
            parts.append([])
        part = parts[n]
        assert part is not None
        part.append(index)
    return parts
