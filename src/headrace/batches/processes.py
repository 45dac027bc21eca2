"""Worker processes of this machine: forked from one warm interpreter, one pipe each, no server."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from pathlib import Path
from time import monotonic
from typing import Any, Protocol

from headrace._core.errors import HeadraceError
from headrace._core.heap import share_heaps, trim_heap
from headrace._core.processes import SpawnedProcess
from headrace.batches.executor import AHEAD as UNITS_AHEAD
from headrace.batches.executor import UnitClock, next_worker, room_after
from headrace.batches.units import BatchUnit, UnitResult

_MOST_STARTS = 3  # of a worker that dies before its first result
_END_S = 1.0  # for a worker to end
_OPENING_S = 30.0  # to open the models, where a unit has less
AHEAD = ("headrace.batches.work", "headrace.engine.backends.onnxruntime", "pyarrow.parquet")
"""Modules that the processes of a batch need."""

_HEAPS = 2  # of the threads of a worker: there are many workers


class DoesUnits(Protocol):
    """The object that a worker process makes once and asks again and again."""

    def do(self, unit: BatchUnit) -> UnitResult:
        """Run one unit.

        Raises:
            HeadraceError: no unit can be run any more.
        """
        ...


Opener = Callable[[], DoesUnits]
"""Called in the worker process; it must be a function or partial that can be pickled."""


@dataclass(slots=True)
class _WorkerProcess:
    process: SpawnedProcess
    clock: UnitClock
    queue: list[BatchUnit] = field(default_factory=list)
    opened: bool = False
    useful: bool = False
    room: int = 1
    started_s: float = field(default_factory=monotonic)

    @property
    def pipe(self) -> Connection:
        """The driver's end of the pipe."""
        return self.process.pipe

    def restart_clock(self) -> None:
        """Begin the time of the oldest unit."""
        self.clock.restart(self.opened and bool(self.queue))

    @property
    def is_late(self) -> bool:
        """Whether the models, or the oldest unit, take longer than they may."""
        limit_s = self.clock.limit_s
        if self.opened or limit_s is None:
            return self.clock.is_over
        opening_s = monotonic() - self.started_s
        return opening_s > (limit_s if self.process.stopped else max(limit_s, _OPENING_S))


class ProcessExecutor:
    """Runs units in processes of this machine.

    Args:
        opener: makes the object that does the work, in each process.
        workers: how many processes.
        timeout_s: that one unit may run, and as long may a worker open its models, at least 30 s
            unless somebody stopped it; None is any time.
        scratch: folder for temporary files of the processes, which outlives them; None: the usual.
    """

    spared_losses = 0

    def __init__(
        self,
        opener: Opener,
        workers: int,
        timeout_s: float | None = None,
        *,
        scratch: Path | None = None,
    ) -> None:
        self.workers = workers
        self.slots = workers * UNITS_AHEAD
        self._timeout_s = timeout_s
        self._opener = opener
        self._scratch = scratch
        self._early_deaths = 0
        self._held: deque[BatchUnit] = deque()
        self._processes = [self._started() for _ in range(workers)]

    def _started(self) -> _WorkerProcess:
        process = SpawnedProcess(
            _serve, self._opener, self._scratch, name="headrace-batch", ahead=AHEAD
        )
        return _WorkerProcess(process, UnitClock(self._timeout_s))

    def submit(self, unit: BatchUnit) -> None:
        """Give a unit to the worker that has least to do, or hold it until one has room."""
        self._held.append(unit)
        self._send_held()

    def _send_held(self) -> None:
        while self._held:
            index = next_worker(
                [len(w.queue) for w in self._processes], [w.room for w in self._processes]
            )
            if index is None:
                return
            worker, unit = self._processes[index], self._held.popleft()
            worker.queue.append(unit)
            if len(worker.queue) == 1:
                worker.restart_clock()
            with contextlib.suppress(OSError):  # it is dead: `collect` finds that
                worker.pipe.send(unit)

    def collect(self, timeout_s: float) -> list[UnitResult]:
        """Wait for results, and for workers that die; see `Executor.collect`."""
        ready = wait([w.pipe for w in self._processes], timeout_s)
        results: list[UnitResult] = []
        for index, worker in enumerate(self._processes):
            if worker.pipe not in ready:
                if worker.is_late:
                    results += self._stopped(index)
                continue
            try:
                message = worker.pipe.recv()
            except (EOFError, OSError):
                results += self._buried(index)
                continue
            if isinstance(message, HeadraceError):
                raise message
            if message is None:
                worker.opened = True
            else:
                worker.useful = True
                worker.queue = [unit for unit in worker.queue if unit.id != message.unit.id]
                worker.room = room_after(message)
                results.append(message)
            worker.restart_clock()
        self._send_held()
        return results

    def _stopped(self, index: int) -> list[UnitResult]:
        """End a worker that has been at one unit for too long; the units behind it come back.

        So does that unit, if the worker was still opening the models.
        """
        worker = self._processes[index]
        worker.process.kill()
        if not worker.opened:
            return self._buried(index, "did not open the models in time (--unit-timeout)")
        worker.useful = True
        first, *rest = self._buried(index)
        return [UnitResult(first.unit, "failed", error=worker.clock.error()), *rest]

    def _buried(self, index: int, end: str = "") -> list[UnitResult]:
        """Replace a dead worker; its units come back."""
        worker = self._processes[index]
        worker.pipe.close()
        how = f"its worker process {end or worker.process.end(_END_S)}"
        worker.process.kill()
        if self._scratch is not None:
            shutil.rmtree(self._scratch / str(worker.process.process.pid), ignore_errors=True)
        if not worker.useful:
            self._early_deaths += 1
            if self._early_deaths >= _MOST_STARTS * self.workers:
                raise HeadraceError(
                    f"workers end before their first result: {how}",
                    fix="fewer --workers need less memory; headrace run shows what goes wrong",
                )
        self._processes[index] = self._started()
        return [
            UnitResult(unit, "lost", error=how, begun=worker.opened and number == 0)
            for number, unit in enumerate(worker.queue)
        ]

    def close(self) -> None:
        """End every worker at once."""
        for worker in self._processes:
            worker.process.process.terminate()
        end = monotonic() + _END_S
        for worker in self._processes:
            worker.process.kill(max(0.0, end - monotonic()))
            worker.pipe.close()
        self._processes = []


def open_worker(work: Any, parts: Path | None) -> DoesUnits:
    """Open the models in this process; see `work.Worker`."""
    from headrace.batches.work import Worker

    return Worker(work, parts)


def _serve(pipe: Connection, opener: Opener, scratch: Path | None) -> None:
    """Answer units until the driver is gone, with temporary files in a folder of its own."""
    share_heaps(_HEAPS)
    if scratch is not None:
        own = scratch / str(os.getpid())
        own.mkdir(exist_ok=True)
        tempfile.tempdir = str(own)
    with contextlib.suppress(EOFError, OSError):
        try:
            worker = opener()
            trim_heap()  # what opening took is a twentieth of a worker
            pipe.send(None)  # opened: from now on a unit's time counts
            while True:
                pipe.send(worker.do(pipe.recv()))
        except HeadraceError as error:
            pipe.send(error)
