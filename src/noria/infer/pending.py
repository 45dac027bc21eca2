"""Batches on their way through the engine, and records of their raw outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

import numpy.typing as npt

from noria._core.errors import EngineError
from noria.infer.batch import Batch
from noria.infer.items import Items, layers_of
from noria.infer.model import Model
from noria.infer.postprocess.classifier import attach_cached
from noria.infer.record import Record
from noria.infer.selection import Selection
from noria.meta import FrameMeta, NetworkInfo, TensorOutput

Arrays = dict[str, npt.NDArray[Any]]


@dataclass(frozen=True, slots=True)
class RawOutput:
    """Argument of the raw output callback for each run of the engine. Source: spec C.5.

    Attributes:
        component_id: `gie-unique-id` of the model.
        network: size of its input.
        outputs: name -> (N, ...) array, binding order.
        metas: the frame of each of the N items.
        objects: the object of each item, or None for whole frames.
    """

    component_id: int
    network: NetworkInfo
    outputs: Mapping[str, npt.NDArray[Any]]
    metas: Sequence[FrameMeta]
    objects: Sequence[int] | None


@dataclass(slots=True)
class Run:
    """One run of the engine: its items, and the future of its outputs."""

    items: Items
    future: Future[Arrays | None]
    inputs: Arrays = field(default_factory=dict)


@dataclass(slots=True)
class Pending:
    """A batch on its way through the engine."""

    batch: Batch
    model: Model
    runs: list[Run] = field(default_factory=list)
    cached: list[tuple[int, FrameMeta, Selection]] = field(default_factory=list)

    def cancel(self) -> None:
        """Give up the runs that have not started yet."""
        for run in self.runs:
            run.future.cancel()


def attach_tensors(outputs: Arrays, items: Items, model: Model) -> None:
    """One record per item after all other results. Source: spec C.4."""
    cfg = model.config
    for i, meta in enumerate(items.metas):
        result = TensorOutput(
            cfg.component_id,
            layers_of(outputs, i),
            model.network,
            cfg.maintain_aspect_ratio,
            cfg.symmetric_padding,
            i,
            outputs,
        )
        shown = items.object_of(i)
        if items.rois is not None:
            roi = items.rois[i]
            roi.tensors.append(result)
            meta.user.append(roi)
            if shown >= 0:
                meta.objects.user.setdefault(shown, []).append(roi)
        elif shown >= 0:
            meta.objects.tensors.setdefault(shown, []).append(result)
        else:
            meta.tensors.append(result)


def failed(step: str, error: EngineError) -> EngineError:
    """The error of one step ("dequeue output from"), which begins as the original's does."""
    return EngineError(
        f"Failed to {step} inferencing: {error.found}",
        where=error.where,
        expected=error.expected,
        fix=error.fix,
    )


def lost_batch(error: EngineError | MemoryError, items: int, record: Record, where: str) -> None:
    """Count a batch that is dropped, the run going on, and say so.

    The original drops one whose output memory cannot grow (source: spec D.6); so is one whose
    plugin ended its worker process.

    Raises:
        EngineError: after this one the run cannot go on.
    """
    from noria.custom.guard.crash import PluginDiedError

    if isinstance(error, MemoryError):
        text = f"there was no memory for the outputs of a batch of {items}: it has no results"
    elif isinstance(error, PluginDiedError):
        text = f"{error}\n  its batch has no results"
    else:
        raise failed("dequeue output from", error) from error
    with record.lock:
        record.results["no_memory" if isinstance(error, MemoryError) else "crashed"] += items
        record.warn(text, where)


def abandon(items: Items, model: Model) -> None:
    """Give up the results of a run: its objects keep their earlier ones."""
    if model.selector is None:
        return
    for selection, first, count in items.parts:
        model.selector.abandon(selection, first, count)
    for _, meta, selection in items.cached:
        attach_cached(model.selector, meta, selection)
