"""History of tracked objects for a secondary model: frames they were inferred in, results."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from noria.meta import ClassifierMeta

GROWTH = 1.2  # an area more than this times the last one is looked at again
SHELF_LIFE = 150  # frames an entry is kept without its object being seen
_FIRST = 64

BoolArray = npt.NDArray[np.bool_]
DoubleArray = npt.NDArray[np.float64]
IndexArray = npt.NDArray[np.intp]
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
        self._slots: dict[int, int] = {}  # tracking id -> place in the arrays
        self._free: list[int] = []
        self._frames = np.zeros(_FIRST, np.int64)  # of the last submission
        self._limits = np.zeros(_FIRST)  # an area above it is submitted again
        self._accessed = np.zeros(_FIRST, np.int64)  # frame where the object was seen last
        self._entries: Entries = np.empty(_FIRST, np.object_)

    def __len__(self) -> int:
        return len(self._slots)

    def get(self, object_id: int) -> Entry | None:
        """The entry of a tracking id."""
        slot = self._slots.get(object_id)
        return None if slot is None else self._entry(slot)

    def visit(
        self, ids: Sequence[int], wanted: BoolArray, areas: DoubleArray, interval: int, grow: bool
    ) -> tuple[BoolArray, BoolArray, Entries]:
        """Decide which of N different tracked objects of `frame` are submitted, and note it.

        Args:
            ids: N tracking ids, no two the same.
            wanted: (N,) bool, whether the filters let them pass.
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
        submit: BoolArray = wanted & (due | ~had)
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
        places = [self._free.pop() for _ in ids]
        self._slots.update(zip(ids, places, strict=True))
        for place in places:
            self._entries[place] = Entry()
        self._accessed[places] = self.frame
        return places

    def _entry(self, slot: int) -> Entry:
        entry: Entry = self._entries[slot]
        return entry
