"""Time of each layer of an engine, where its runtime can tell."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy.typing as npt

from noria._core.errors import EngineError
from noria.engine.backends import Backend, RunOptions, get_backend
from noria.engine.plan import MODEL_BLOB, WEIGHTS_BLOB, Plan


@runtime_checkable
class ProfilingBackend(Backend, Protocol):
    """A runtime that times layers."""

    def profile(
        self, model: bytes, options: RunOptions, feeds: Mapping[str, Any], runs: int
    ) -> list[tuple[str, list[float]]]:
        """Layers in order, each with its milliseconds of every run."""
        ...


@dataclass(frozen=True, slots=True)
class LayerTime:
    """Milliseconds of one layer: of all runs together, on average, and the median."""

    name: str
    total_ms: float
    mean_ms: float
    median_ms: float
    percent: float


def layer_times(
    plan: Plan, options: RunOptions, feeds: Mapping[str, npt.NDArray[Any]], runs: int
) -> Sequence[LayerTime]:
    """Run `plan` so often and time each layer. Names are those of the layers as the runtime fused
    them.

    Raises:
        EngineError: the runtime does not time layers, or fails.
    """
    backend = get_backend(plan.header.runtime.name)
    if not isinstance(backend, ProfilingBackend):
        raise EngineError(f"{backend.name} does not time single layers")
    if plan.header.plugins:
        raise EngineError("plugins compute between its layers: noria trace-plugins times them")
    if WEIGHTS_BLOB in plan.blobs:
        raise EngineError("layers of models over 2 GiB are not timed")
    rows = backend.profile(plan.blobs[MODEL_BLOB], options, feeds, runs)
    whole = sum(sum(times) for _, times in rows) or 1.0
    return [
        LayerTime(
            name=name,
            total_ms=sum(times),
            mean_ms=sum(times) / runs,
            median_ms=statistics.median(times),
            percent=100 * sum(times) / whole,
        )
        for name, times in rows
    ]
