"""Records of targets outside of a frame: past frames, targets that ended, those in the shadow."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from headrace.custom.nvmot.structures import structure

MISC_KINDS: Mapping[str, str] = {
    "past": "supportPastFrame",
    "terminated": "outputTerminatedTracks",
    "shadow": "outputShadowTracks",
}
"""Kinds of records, and the field of NvMOTQuery that says a library has them."""
_POINTERS = {
    "past": "pPastFrameObjBatch",
    "terminated": "pTerminatedTrackBatch",
    "shadow": "pShadowTrackBatch",
}
_FRAMES = 128  # of one target, where the library names no length

Row = tuple[int, list[float]]


def misc_rows(rows: Sequence[Row]) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.float64]]:
    """(M,) ids, and (M, 10) of each frame of a target.

    They are kind (place in `MISC_KINDS`), class, frame, left, top, width, height, confidence, age
    and state.
    """
    ids = np.array([i for i, _ in rows], np.uint64)
    return ids, np.array([numbers for _, numbers in rows], np.float64).reshape(-1, 10)


class _Batch:
    """Room for one kind: a stream of targets with frames."""

    def __init__(self, generation: str, targets: int, frames: int) -> None:
        def make(name: str, count: int) -> Any:
            return (structure(name, generation) * count)()

        self._frames = make("NvDsTargetMiscDataFrame", targets * frames)
        self._objects = make("NvDsTargetMiscDataObject", targets)
        (self.stream,) = self._streams = make("NvDsTargetMiscDataStream", 1)
        (self.batch,) = self._batches = make("NvDsTargetMiscDataBatch", 1)
        self._targets, self._each = targets, frames

    def clear(self) -> None:
        size = ctypes.sizeof(self._frames._type_)
        for k, target in enumerate(self._objects):
            target.list = ctypes.addressof(self._frames) + k * self._each * size
            target.numObj, target.numAllocated = 0, self._each
        self.stream.list, self.stream.numFilled = ctypes.addressof(self._objects), 0
        self.stream.numAllocated = self._targets
        self.batch.list = ctypes.addressof(self.stream)
        self.batch.numAllocated, self.batch.numFilled = 1, 0

    def rows(self, kind: int) -> list[Row]:
        found: list[Row] = []
        if not self.batch.numFilled:
            return found
        for target in self._objects[: min(self.stream.numFilled, self._targets)]:
            kept = (type(self._frames[0]) * min(target.numObj, self._each)).from_address(
                target.list
            )
            for frame in kept:
                box = frame.tBbox
                found.append(
                    (
                        target.uniqueId,
                        [kind, target.classId, frame.frameNum, box.left, box.top, box.width,
                         box.height, frame.confidence, frame.age,
                         getattr(frame, "trackerState", 0)],
                    )
                )  # fmt: skip
        return found


class MiscBuffers:
    """Memory that a library fills with the records of a frame.

    Args:
        generation: of the library.
        kinds: of `MISC_KINDS` that it has.
        targets: most of one kind.
        history: frames of a target that ended; 0 where the library names no number.
    """

    def __init__(self, generation: str, kinds: Sequence[str], targets: int, history: int) -> None:
        lengths = {"past": _FRAMES, "terminated": min(max(history, 1), 4096), "shadow": 1}
        if history <= 0:
            lengths["terminated"] = _FRAMES
        self._batches = {kind: _Batch(generation, targets, lengths[kind]) for kind in kinds}
        if generation < "6.3":
            self.argument: Any = ctypes.byref(self._batches["past"].batch)
            return
        self._data = structure("NvMOTTrackerMiscData", generation)()
        for kind, batch in self._batches.items():
            setattr(self._data, _POINTERS[kind], ctypes.addressof(batch.batch))
        self.argument = ctypes.byref(self._data)

    def clear(self) -> None:
        """Empty all lists."""
        for batch in self._batches.values():
            batch.clear()

    def rows(self) -> list[Row]:
        """All records of the last call."""
        order = list(MISC_KINDS)
        return [
            row for kind, batch in self._batches.items() for row in batch.rows(order.index(kind))
        ]
