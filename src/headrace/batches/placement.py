"""Workers and threads of a batch, by a short measurement of the first model's engine."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import count
from multiprocessing.connection import Connection
from typing import Any

from headrace._core.errors import HeadraceError
from headrace._core.findings import Finding
from headrace._core.processes import SpawnedProcess
from headrace.batches.processes import AHEAD
from headrace.batches.work import Work, Worker
from headrace.engine import Plan
from headrace.engine.input_shapes import sample_inputs
from headrace.engine.tuning.worker import measure
from headrace.infer.inferencer import Inferencer

_WARM_UP_S, _WINDOW_S = 0.1, 0.4
_MOST_BYTES = 2**30  # of engines that a measurement opens at once
_END_S = 10.0  # for a process to close the models


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


def open_and_place(
    work: Work, names: Sequence[str], on_stage: Callable[[str], None], **shared: Any
) -> tuple[list[Finding], Placement]:
    """Open the models in a process of its own, and share the cores out, see `placed`.

    This process needs no memory for models and runtimes that way, and opens no GPU.

    Args:
        work: its engines are built where they are not there.
        names: inputs whose frames show what ends the refusal of a model.
        on_stage: called with what is done, in words.
        shared: arguments of `placed` beside the models.

    Returns:
        The notices of the models, and the placement.

    Raises:
        HeadraceError: a model is refused.
    """
    name = "headrace-batch-placement"
    process = SpawnedProcess(_open_and_place, work, tuple(names), shared, name=name, ahead=AHEAD)
    wait_s = 0.0
    try:
        while isinstance(message := process.pipe.recv(), str):
            on_stage(message)
        wait_s = _END_S
    except (EOFError, OSError):
        how = process.end(_END_S)
        raise HeadraceError(f"the models cannot be opened: the process for it {how}") from None
    finally:
        process.kill(wait_s)
        process.pipe.close()
    if isinstance(message, HeadraceError):
        raise message
    notices, placement = message
    return notices, placement


def _open_and_place(
    pipe: Connection, work: Work, names: Sequence[str], shared: dict[str, Any]
) -> None:
    try:
        worker = Worker(work, None, names)
        try:
            pipe.send("measuring workers and threads")
            pipe.send((worker.notices, placed(worker.models, **shared)))
        finally:
            worker.close()
    except HeadraceError as error:
        pipe.send(error)


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
