"""The runs of the engine that a batch needs: frames, objects found in them, or prepared tensors.

Source: spec A.6, D.1, D.2.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence

import numpy as np

from headrace._core.errors import EngineError
from headrace._core.plain_record import PlainRecord
from headrace._core.types import Array
from headrace.infer.batch import Batch
from headrace.infer.items import Items, roi_transform
from headrace.infer.record import Record
from headrace.infer.selection import Selection, Selector
from headrace.media.frame import Frame
from headrace.meta import FrameMeta, InputTensor
from headrace.meta.detections import FloatArray
from headrace.network.tensor_spec import TensorSpec


def frame_runs(batch: Batch, turns: Sequence[bool], size: int) -> Iterator[Items]:
    """Whole frames that are to be inferred now, in order, at most `size` in a run."""
    chosen = [i for i, turn in enumerate(turns) if turn]
    for start in range(0, len(chosen), size):
        indices = chosen[start : start + size]
        yield Items([batch.metas[i] for i in indices], [batch.frames[i] for i in indices])


def object_runs(batch: Batch, selector: Selector, size: int) -> Iterator[Items]:
    """Eligible objects, frame after frame, at most `size` in a run.

    Buffers that the caller put into one batch share runs; the results are those of one buffer after
    the other. The last run may have no items, only frames whose objects keep an earlier result.
    """
    run = _ObjectRun()
    for _, indices in batch.by_buffer():
        selector.next_buffer()
        for index in indices:
            frame, meta = batch.frames[index], batch.metas[index]
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


class BufferTurns:
    """Counts the buffers of a run.

    Args:
        discard: buffers at the begin of a run that are dropped (`stabilize-buffer-count`).

    Attributes:
        last_buffer: number of the latest buffer; -1 before the first.
    """

    def __init__(self, discard: int) -> None:
        self.last_buffer = -1
        self._counted = 0
        self._discard = discard
        self._discarding: int | None = None

    def restart(self) -> None:
        """Let the next buffer be inferred."""
        self._counted = 0

    def choose(self, batch: Batch, interval: int, discard: int) -> list[bool]:
        """Whether each frame's buffer is inferred; frames to be discarded leave the batch.

        The first buffer is inferred, then every (interval+1)-th.

        Args:
            batch: frames of whole buffers.
            interval: buffers skipped between two inferred ones.
            discard: as for the constructor, for a run that begins in this batch.
        """
        turns = [False] * len(batch)
        discarded: list[int] = []
        for number, indices in batch.by_buffer():
            if number < self.last_buffer:  # another run has begun
                self._counted, self._discard = 0, discard
            self.last_buffer = number
            if self._discard or number == self._discarding:
                if number != self._discarding:
                    self._discard -= 1
                    self._discarding = number
                discarded += indices
                continue
            turn = self._counted % (interval + 1) == 0
            self._counted += 1
            for index in indices:
                turns[index] = turn
        if discarded:
            batch.drop(discarded)
            turns = [turn for i, turn in enumerate(turns) if i not in discarded]
        return turns


class TensorChunk(PlainRecord):
    """One run of the engine: its items, its inputs, and where they start in the tensor."""

    items: Items
    inputs: dict[str, Array]
    start: int


def tensor_chunks(
    batch: Batch,
    *,
    component_id: int,
    inputs: Sequence[TensorSpec],
    constant: Container[str],
    batch_size: int,
    record: Record,
) -> Iterator[TensorChunk]:
    """The runs that a batch's tensors ask for.

    A tensor is used when it is for this component and its name is that of an input; others of this
    component are reported. Tensors of one id are the inputs of one inference; the regions are those
    of the first. More regions than `batch_size` are cut.

    Raises:
        EngineError: tensors of one inference differ in their number of rows, or rows and regions
            do; an input that is not `constant` has no tensor.
    """
    groups: dict[int, dict[str, InputTensor]] = {}
    names = [spec.name for spec in inputs]
    for tensor in batch.tensors:
        if component_id not in tensor.target_ids:
            continue
        if tensor.name not in names:
            record.warn(
                "tensor-name",
                f"a tensor for component {component_id} is called {tensor.name!r}; the model's"
                f" inputs are {', '.join(names)}: it is not used",
            )
            continue
        groups.setdefault(tensor.meta_id, {}).setdefault(tensor.name, tensor)
    for meta_id, tensors in groups.items():
        first = next(iter(tensors.values()))
        where = f"input tensors with id {meta_id}"
        rows = {name: len(t.data) if t.data.ndim else 0 for name, t in tensors.items()}
        if len(set(rows.values())) > 1:
            row_counts = ", ".join(f"{name} has {count}" for name, count in rows.items())
            raise EngineError(
                f"rows differ: {row_counts}", where=where, expected="as many rows each"
            )
        count = rows[first.name]
        if count != len(first.rois):
            raise EngineError(
                f"{count} rows for {len(first.rois)} regions",
                where=where,
                expected="one row for each region",
            )
        missing = [name for name in names if name not in tensors and name not in constant]
        if missing:
            raise EngineError(
                f"no tensor for input {', '.join(missing)}",
                where=where,
                expected="a tensor for each input",
            )
        for roi in first.rois:
            if not 0 <= roi.frame_index < len(batch.metas):
                raise EngineError(
                    f"a region is in frame {roi.frame_index} of a batch of {len(batch.metas)}",
                    where=where,
                )
        for start in range(0, count, batch_size):
            rois = first.rois[start : start + batch_size]
            items = Items(
                [batch.metas[roi.frame_index] for roi in rois],
                objects=[-1 if r.object_index is None else r.object_index for r in rois],
                rois=rois,
                transforms=[roi_transform(roi) for roi in rois],
            )
            chunk = {name: t.data[start : start + len(rois)] for name, t in tensors.items()}
            yield TensorChunk(items, chunk, start)
