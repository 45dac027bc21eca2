"""Time engines side by side: in turns, so that noise hits all alike."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from time import perf_counter

import numpy as np

from headrace._core.errors import EngineError
from headrace.engine.input_shapes import sample_inputs
from headrace.engine.session import Session
from headrace.engine.tuning.worker import measure

PERCENTILES = (50, 90, 95, 99)
_WINDOW_S = 0.3
_AT_LEAST = 3
_WARM_UP_S = 0.3


@dataclass(frozen=True, slots=True)
class BenchResult:
    """The times of one engine.

    Attributes:
        name: as it was given.
        items, streams, threads: batch of a run, runs at once, threads of each (None: every core).
        runs, seconds: how much was measured.
        items_per_s: median over the rounds.
        mean_ms, min_ms, max_ms, percentiles_ms: of single runs; percentile -> milliseconds.
    """

    name: str
    items: int
    streams: int
    threads: int | None
    runs: int
    seconds: float
    items_per_s: float
    mean_ms: float
    min_ms: float
    max_ms: float
    percentiles_ms: dict[int, float]


def bench(
    sessions: Mapping[str, Session],
    *,
    items: int | None = None,
    duration_s: float = 3.0,
    image_range: Mapping[str, tuple[float, float]] | None = None,
    shapes: Mapping[str, Mapping[str, tuple[int, ...]]] | None = None,
    progress: Callable[[int, int, str], None] | None = None,
) -> list[BenchResult]:
    """Time sessions in turns; each runs as many batches at once as it was opened for.

    `shapes` has, by session, the shapes of inputs with free axes. A round takes 0.3 s; `progress`
    is called with the rounds done, the rounds in all, and the engine measured.

    Raises:
        EngineError: a session does not take that batch, or fails.
    """
    runs: dict[str, Callable[[], object]] = {}
    sizes = {}
    for name, session in sessions.items():
        size = items or session.fixed_batch or session.max_batch
        if size > max(session.max_batch, session.fixed_batch or 0):
            raise EngineError(f"a batch of {size}", where=name,
                              expected=f"1 to {session.max_batch} items")  # fmt: skip
        low, high = (image_range or {}).get(name, (0.0, 1.0))
        size = min(size, session.max_batch)
        # as many items as are counted, also where the model fixes the batch and takes several goes
        own = (shapes or {}).get(name, {})
        specs = [
            replace(s, shape=own[s.name])
            if s.name in own
            else replace(s, shape=(size, *s.shape[1:]))
            if s.name in session.batched_inputs
            else s
            for s in session.inputs
        ]
        feeds = sample_inputs(specs, size, low=low, high=high)
        runs[name] = lambda run=session.run, feeds=feeds: run(feeds)  # type: ignore[misc]
        sizes[name] = size
    for name, session in sessions.items():
        until = perf_counter() + _WARM_UP_S
        while True:
            measure(runs[name], streams=session.options.streams, window_s=0, at_least=1)
            if perf_counter() >= until:
                break
    rounds = max(1, round(duration_s / _WINDOW_S))
    times: dict[str, list[float]] = {name: [] for name in sessions}
    rates: dict[str, list[float]] = {name: [] for name in sessions}
    names = list(sessions)
    for number in range(rounds):
        shift = number % len(names)
        for name in names[shift:] + names[:shift]:
            if progress is not None:
                progress(number, rounds, name)
            streams = sessions[name].options.streams
            measured = measure(runs[name], streams=streams, window_s=_WINDOW_S, at_least=_AT_LEAST)
            times[name] += [t for mine in measured for t in mine]
            rates[name].append(sum(len(mine) / sum(mine) for mine in measured) * sizes[name])
    return [_result(name, sessions[name], sizes[name], times[name], rates[name]) for name in names]


def _result(
    name: str, session: Session, items: int, times: list[float], rates: list[float]
) -> BenchResult:
    milliseconds = np.array(times) * 1e3
    return BenchResult(
        name=name,
        items=items,
        streams=session.options.streams,
        threads=session.options.threads,
        runs=len(times),
        seconds=sum(times) / session.options.streams,
        items_per_s=statistics.median(rates),
        mean_ms=float(milliseconds.mean()),
        min_ms=float(milliseconds.min()),
        max_ms=float(milliseconds.max()),
        percentiles_ms={p: float(np.percentile(milliseconds, p)) for p in PERCENTILES},
    )
