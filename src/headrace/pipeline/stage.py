"""Stages between sources and sinks: models, trackers, probes."""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable, Mapping, Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any, Protocol, TypeGuard

from headrace._core.errors import HeadraceError
from headrace._core.findings import Finding
from headrace._core.text import error_text
from headrace.infer.batch import Batch

if TYPE_CHECKING:
    from pathlib import Path

    from headrace.config import ModelConfig
    from headrace.engine.session import Session
    from headrace.infer.losses import InferenceLosses
    from headrace.infer.record import StageTimes
    from headrace.pipeline.track import Tracker

Probe = Callable[[Batch], None]


class Stage(Protocol):
    """A model.

    `begin` and `complete` are each called in batch order, by one thread at a time each; `begin` of
    a batch may run before `complete` of the one before.

    Attributes:
        streams: batches that may be on their way at once.
        interval: buffers skipped between two inferred ones; may be changed.
    """

    streams: int
    interval: int

    @property
    def name(self) -> str:
        """Name in reports."""

    @property
    def config(self) -> ModelConfig:
        """The model configuration."""

    @property
    def secondary(self) -> bool:
        """It infers on objects found before, not on frames."""

    @property
    def run_rows(self) -> int:
        """Items of a run that costs the same with fewer; 0 where its cost follows the items."""

    @property
    def session(self) -> Session:
        """The engine."""

    @property
    def engine_path(self) -> Path | None:
        """The saved engine that runs; None if it could not be saved."""

    @property
    def times(self) -> StageTimes:
        """Seconds per kind of work."""

    @property
    def inferred_items(self) -> int:
        """Items that ran."""

    @property
    def completed_items(self) -> int:
        """Items among them that are not under way any more."""

    @property
    def failed_items(self) -> int:
        """Inferred items with outputs that could not be parsed."""

    @property
    def results(self) -> Mapping[str, int]:
        """How many came out of each step."""

    @property
    def losses(self) -> InferenceLosses:
        """Boxes and objects left out since the run began."""

    @property
    def notices(self) -> Sequence[Finding]:
        """Decisions so far."""

    def begin(self, batch: Batch) -> Any:
        """Select, scale and submit; never waits for the engine."""

    def complete(self, pending: object) -> None:
        """Wait for the engine, parse, attach the results to the metadata of the batch."""

    def end_of_stream(self, source_id: int) -> None:
        """Forget the objects of a source."""

    def restart(self, frames: int = 0, *, live: bool = False) -> None:
        """Forget all sources, and get ready for buffers of so many frames."""

    def hurry(self) -> None:
        """End long work early; for a run that stops. Safe in signal handlers."""

    def conclude(self) -> None:
        """Judge the run as a whole: no more frames will come."""


def is_stage(item: object) -> TypeGuard[Stage]:
    """Whether it is a model."""
    return hasattr(item, "begin") and hasattr(item, "complete")


def is_tracker(item: object) -> TypeGuard[Tracker]:
    """Whether it is a tracker."""
    return hasattr(item, "update") and hasattr(item, "end_of_stream")


class Step:
    """A tracker or probe, run where the batch is.

    Attributes:
        kind: what its time is reported as.
        seconds: time spent in it.
        notices: of the tracker or the probe.
    """

    def __init__(
        self, kind: str, work: Probe, tracker: Tracker | None = None, probe: object = None
    ) -> None:
        self.kind = kind
        self.seconds = 0.0
        self._work = work
        self._tracker = tracker
        self._probe = probe

    @property
    def notices(self) -> Sequence[Finding]:
        """Decisions of the tracker, or of a probe that has such, so far."""
        item = self._probe if self._tracker is None else self._tracker
        return getattr(item, "notices", ())

    @property
    def crossings(self) -> Mapping[int, Mapping[str, int]]:
        """Crossings of lines so far, source id -> line -> number; empty if it counts none."""
        return getattr(self._tracker, "totals", {})

    def __call__(self, batch: Batch) -> None:
        """Do the work on a batch, and forget the sources that have ended."""
        start = perf_counter()
        if batch.frames:
            self._work(batch)
        if self._tracker is not None:
            for source_id in batch.ended:
                self._tracker.end_of_stream(source_id)
        self.seconds += perf_counter() - start


def step_of(item: object) -> Step:
    """A tracker or a plain function as a step.

    Raises:
        HeadraceError: it is neither.
    """
    if is_tracker(item):
        return Step(getattr(item, "kind", "track"), _tracked(item), item)
    if callable(item):
        check_plain_function(item, "the probe")
        return Step("probe", _probed(item), probe=item)
    raise HeadraceError(
        f"{item!r} cannot stand between sources and sinks",
        where="Pipeline.stages",
        expected="an Inferencer, a tracker, or a function that takes a Batch",
    )


def check_plain_function(probe: Callable[..., object], what: str) -> None:
    """Refuse coroutine and generator functions: a call does not run their body.

    Args:
        probe: the function.
        what: it is, for the message.

    Raises:
        HeadraceError: it is a coroutine or generator function.
    """
    calls = probe, type(probe).__call__
    if any(inspect.iscoroutinefunction(c) or inspect.isasyncgenfunction(c) for c in calls):
        kind = "coroutine"
    elif any(map(inspect.isgeneratorfunction, calls)):
        kind = "generator"
    else:
        return
    raise HeadraceError(
        f"{what} {_name(probe)} is a {kind} function: calling it does nothing",
        where=_where(probe, None),
        expected="a plain function, without async and yield",
    )


def _tracked(tracker: Tracker) -> Probe:
    def track(batch: Batch) -> None:
        for frame, meta in zip(batch.frames, batch.metas, strict=True):
            tracker.update(frame, meta)

    return track


def user_call(function: Callable[[Any], None], argument: Any, what: str) -> None:
    """Call a function of the program.

    Raises:
        HeadraceError: it raises; with the line in its own file.
    """
    try:
        function(argument)
    except Exception as error:
        raise HeadraceError(
            f"{what} {_name(function)} failed: {error_text(error)}", where=_where(function, error)
        ) from error


def _probed(probe: Probe) -> Probe:
    def run(batch: Batch) -> None:
        user_call(probe, batch, "the probe")
        counts = len(batch.frames), len(batch.metas), len(batch.buffers)
        if len(set(counts)) > 1:
            raise HeadraceError(
                f"the probe {_name(probe)} left {counts[0]} frames, {counts[1]} metas and "
                f"{counts[2]} buffer numbers in the batch",
                where=_where(probe, None),
                expected="as many of each",
            )

    return run


def stage_name(stage: object) -> str:
    """How people call a stage, a tracker or a function in its place."""
    named = "name" if is_stage(stage) or is_tracker(stage) else "__name__"
    return str(getattr(stage, named, None) or type(stage).__name__)


def _name(probe: Callable[..., object]) -> str:
    return str(getattr(probe, "__qualname__", None) or type(probe).__name__)


def _where(probe: Callable[..., object], error: Exception | None) -> str | None:
    """`file:line` in the probe's own file: where it failed, else where it is defined."""
    call = getattr(probe, "func", probe)  # functools.partial
    call = call if hasattr(call, "__code__") or hasattr(call, "__func__") else type(call).__call__
    code = getattr(getattr(call, "__func__", call), "__code__", None)
    trace = traceback.extract_tb(error.__traceback__)[1:] if error else []  # without our own call
    if code is not None:
        lines = [f.lineno for f in trace if f.filename == code.co_filename]
        return f"{code.co_filename}:{lines[-1] if lines else code.co_firstlineno}"
    return f"{trace[0].filename}:{trace[0].lineno}" if trace else None
