"""The runs of the engine that a batch needs: frames, or objects found in them. Source: spec D.2."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from noria.infer.batch import Batch
from noria.infer.items import Items
from noria.infer.selection import Selection, Selector
from noria.media.frame import Frame
from noria.meta import FrameMeta
from noria.meta.detections import FloatArray


def frame_runs(batch: Batch, turns: Sequence[bool], size: int) -> Iterator[Items]:
    """Whole frames that are to be inferred now, in order, at most `size` in a run."""
    chosen = [i for i, turn in enumerate(turns) if turn]
    for start in range(0, len(chosen), size):
        places = chosen[start : start + size]
        yield Items([batch.metas[i] for i in places], [batch.frames[i] for i in places])


def object_runs(batch: Batch, selector: Selector, size: int) -> Iterator[Items]:
    """Eligible objects, frame after frame, at most `size` in a run.

    Buffers that the caller put into one batch share runs; the results are those of one buffer after
    the other. The last run may have no items, only frames whose objects keep an earlier result.
    """
    run = _ObjectRun()
    for _, places in batch.by_buffer():
        selector.next_buffer()
        for place in places:
            frame, meta = batch.frames[place], batch.metas[place]
            selection = selector.select(meta)
            if len(selection.cached):
                run.cached.append((len(run), meta, selection))
            first, left = 0, len(selection.infer)
            while left:
                count = min(left, size - len(run))
                chosen = selection.infer[first : first + count].tolist()
                run.add(frame, meta, chosen, (selection, first, count))
                first, left = first + count, left - count
                if len(run) == size:
                    yield run.items()
                    run = _ObjectRun()
    if len(run) or run.cached:
        yield run.items()


class _ObjectRun:
    """Objects of one frame after the other, until the engine's batch is full."""

    def __init__(self) -> None:
        self.cached: list[tuple[int, FrameMeta, Selection]] = []
        self._metas: list[FrameMeta] = []
        self._frames: list[Frame] = []
        self._objects: list[int] = []
        self._rects: list[FloatArray] = []
        self._parts: list[tuple[Selection, int, int]] = []

    def add(
        self, frame: Frame, meta: FrameMeta, objects: list[int], part: tuple[Selection, int, int]
    ) -> None:
        self._metas += [meta] * len(objects)
        self._frames += [frame] * len(objects)
        self._objects += objects
        self._rects.append(meta.objects.rects[objects])
        self._parts.append(part)

    def items(self) -> Items:
        rects = np.concatenate(self._rects) if self._rects else np.empty((0, 4), np.float32)
        return Items(
            self._metas,
            self._frames,
            self._objects,
            rects,
            parts=self._parts,
            cached=self.cached,
        )

    def __len__(self) -> int:
        return len(self._objects)
