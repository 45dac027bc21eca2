"""Workers and threads of a batch, by a short measurement of the first model's engine."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

from headrace.engine import Plan
from headrace.engine.input_shapes import sample_inputs
from headrace.engine.tuning.worker import measure
from headrace.infer.inferencer import Inferencer

_WARM_UP_S, _WINDOW_S = 0.1, 0.4
_MOST_BYTES = 2**30  # of engines that a measurement opens at once


@dataclass(frozen=True, slots=True)
class Placement:
    """How a machine's cores are shared out.

    Attributes:
        workers: processes.
        threads: of the engine in each.
        items_per_s: measured rate of the first model, of all workers together; None if it was
            not measured.
    """

    workers: int
    threads: int
    items_per_s: float | None = None


def placed(
    models: Sequence[Inferencer],
    *,
    cores: int,
    workers: int | None = None,
    threads: int | None = None,
    units: int,
) -> Placement:
    """Choose workers and threads.

    Args:
        models: opened; the first is measured.
        cores: of the machine.
        workers, threads: given by the user; one alone fixes the other.
        units: how many there are at least; workers beyond them would have nothing to do.
    """
    if workers is not None or threads is not None:
        workers = workers or max(1, cores // (threads or 1))
        return Placement(workers, threads or max(1, cores // workers))
    most = min(cores, max(1, units))
    layouts = [(n, cores // n) for n in range(most, 0, -1) if n in (most, 1) or cores % n == 0]
    plan = _plan(models)
    if plan is None or len(layouts) == 1:
        return Placement(*layouts[0])
    size = sum(len(chunk) for chunk in plan.to_chunks())
    layouts = [one for one in layouts if one[0] * size < _MOST_BYTES or one[0] == 1][:3] or layouts
    rates = {layout: engine_rate(plan, *layout) for layout in layouts}
    best = max(rates, key=lambda layout: rates[layout])
    return Placement(*best, rates[best])


def _plan(models: Sequence[Inferencer]) -> Plan | None:
    """The engine of the first model; None if it is not saved, or calls plugins of a user."""
    path = models[0].engine_path if models else None
    plan = None if path is None or not path.is_file() else Plan.load(path)
    return None if plan is None or plan.header.plugins else plan


def engine_rate(plan: Plan, workers: int, threads: int, window_s: float = _WINDOW_S) -> float:
    """Items per second of so many sessions that run at the same time, measured for `window_s`."""
    with ExitStack() as opened:
        sessions = [
            opened.enter_context(plan.open_session(threads=threads, streams=1))
            for _ in range(workers)
        ]
        size = sessions[0].fixed_batch or sessions[0].max_batch
        specs = [
            replace(s, shape=(size, *s.shape[1:])) if s.name in sessions[0].batched_inputs else s
            for s in sessions[0].inputs
        ]
        feeds: Any = sample_inputs(specs, size, low=0.0, high=1.0)
        mine, numbers = threading.local(), count()

        def run() -> None:
            if not hasattr(mine, "session"):
                mine.session = sessions[next(numbers) % workers]
            mine.session.run(feeds)

        measure(run, streams=workers, window_s=_WARM_UP_S, at_least=1)
        times = measure(run, streams=workers, window_s=window_s, at_least=2)
    return sum(len(one) / sum(one) for one in times) * size
