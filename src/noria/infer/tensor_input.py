"""Tensors that the caller prepared, cut into engine batches. Source: spec A.6."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from noria._core.errors import EngineError
from noria.infer.batch import Batch
from noria.infer.items import Items, roi_transform
from noria.infer.record import Record
from noria.meta import InputTensor
from noria.network.tensor_spec import TensorSpec


@dataclass(slots=True)
class TensorChunk:
    """One run of the engine: its items, its inputs, and where they start in the tensor."""

    items: Items
    inputs: dict[str, npt.NDArray[Any]]
    start: int


def tensor_chunks(
    batch: Batch,
    *,
    component_id: int,
    inputs: Sequence[TensorSpec],
    batch_size: int,
    record: Record,
) -> Iterator[TensorChunk]:
    """The runs that a batch's tensors ask for.

    A tensor is used when it is for this component and its name is that of an input; others of this
    component are reported. Tensors of one id are the inputs of one inference; the regions are those
    of the first. More regions than `batch_size` are cut.

    Raises:
        EngineError: tensors of one inference differ in their number of rows, or rows and regions
            do; an input has no tensor.
    """
    groups: dict[int, dict[str, InputTensor]] = {}
    names = [spec.name for spec in inputs]
    for tensor in batch.tensors:
        if component_id not in tensor.target_ids:
            continue
        if tensor.name not in names:
            record.warn(
                f"a tensor for component {component_id} is called {tensor.name!r}; the model's"
                f" inputs are {', '.join(names)}: it is not used"
            )
            continue
        groups.setdefault(tensor.meta_id, {}).setdefault(tensor.name, tensor)
    for meta_id, tensors in groups.items():
        first = next(iter(tensors.values()))
        where = f"input tensors with id {meta_id}"
        rows = {name: len(t.data) if t.data.ndim else 0 for name, t in tensors.items()}
        if len(set(rows.values())) > 1:
            found = ", ".join(f"{name} has {count}" for name, count in rows.items())
            raise EngineError(f"rows differ: {found}", where=where, expected="as many rows each")
        count = rows[first.name]
        if count != len(first.rois):
            raise EngineError(
                f"{count} rows for {len(first.rois)} regions",
                where=where,
                expected="one row for each region",
            )
        missing = [name for name in names if name not in tensors]
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
