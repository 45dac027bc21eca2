"""Units that need no model, and an executor that runs them in this process."""

from __future__ import annotations

import ctypes
import os
import signal
import threading
import time
from collections import Counter, deque
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from headrace.batches.units import BatchUnit, UnitResult
from headrace.meta import FrameMeta
from headrace.meta.frame_table import frames_to_arrow
from headrace.meta.table import arrow_schema


def table_of(name: str, rows: int) -> pa.Table:
    """Rows of an input that depend on its name alone."""
    schema = arrow_schema()
    columns = {
        field.name: pa.array([_value(field, name, i) for i in range(rows)], field.type)
        for field in schema
    }
    return pa.Table.from_pydict(columns, schema=schema)


def frames_of(name: str) -> bytes:
    """The table of an input's only frame."""
    sink = pa.BufferOutputStream()
    pq.write_table(frames_to_arrow([FrameMeta(name, 0, 0, 0, 64, 48)]), sink)
    return bytes(sink.getvalue().to_pybytes())


def _value(field: pa.Field, name: str, row: int) -> object:
    if field.name == "source":
        return name
    if pa.types.is_string(field.type):
        return "a"
    if pa.types.is_list(field.type):
        return []
    return row


class FakeWorker:
    """Writes a table for each unit; names say what else happens.

    `fail…` fails always, `flaky…` at the first attempt, `kill…` ends the process, `slow…` takes
    100 ms, `full…` finds the disk full, `hang…` never ends.
    """

    def __init__(self, parts: Path | None, kill: bool = True) -> None:
        self.parts = parts
        self.kill = kill
        self.calls: Counter[str] = Counter()
        pq.write_table(table_of("", 1), pa.BufferOutputStream())  # opens all of pyarrow

    def do(self, unit: BatchUnit) -> UnitResult:
        self.calls[unit.input] += 1
        name = Path(unit.input).name
        if name.startswith("fail") or (name.startswith("flaky") and self.calls[unit.input] == 1):
            return UnitResult(unit, "failed", error=f"{unit.input}: is broken")
        if name.startswith("kill") and self.kill:
            os.kill(os.getpid(), signal.SIGKILL)
        if name.startswith("full"):
            return UnitResult(unit, "storage", error="the disk is full")
        if name.startswith("hang"):
            time.sleep(600)
        if name.startswith("slow"):
            time.sleep(0.1)
        rows = len(name) % 4
        table = table_of(unit.input, rows)
        if self.parts is None:
            sink = pa.BufferOutputStream()
            pq.write_table(table, sink)
            content: Path | bytes = sink.getvalue().to_pybytes()
        else:
            content = self.parts / f"{unit.id}-{os.getpid()}.parquet"
            pq.write_table(table, content)
        files = {"parquet": content, "frames": frames_of(unit.input)}
        return UnitResult(unit, "done", "00", 1, 10, rows, 0.001, files=files)


def worker_stopped_once(parts: Path) -> FakeWorker:
    """Make a worker; the first process that does is stopped (SIGSTOP) while it opens."""
    flag = parts.parent / "stopped"
    if not flag.exists():
        flag.touch()
        os.kill(os.getpid(), signal.SIGSTOP)
    return FakeWorker(parts)


class HereExecutor:
    """Runs units in this process, one for each `collect`, the last submitted first."""

    workers = 1
    spared_losses = 0

    def __init__(self, do: Callable[[BatchUnit], UnitResult], slots: int = 3) -> None:
        self.slots = slots
        self.do = do
        self.waiting: deque[BatchUnit] = deque()
        self.most = 0

    def submit(self, unit: BatchUnit) -> None:
        self.waiting.append(unit)
        self.most = max(self.most, len(self.waiting))

    def collect(self, timeout_s: float) -> list[UnitResult]:
        return [self.do(self.waiting.pop())]

    def close(self) -> None:
        self.waiting.clear()


class HeapCounter:
    """Counts as frames the heaps that 16 threads of its process allocate from."""

    def do(self, unit: BatchUnit) -> UnitResult:
        malloc = ctypes.CDLL(None).malloc
        malloc.restype = ctypes.c_void_p
        heaps, barrier = set(), threading.Barrier(16)

        def allocate() -> None:
            heaps.add(malloc(ctypes.c_size_t(5000)) >> 26)
            barrier.wait()

        threads = [threading.Thread(target=allocate) for _ in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return UnitResult(unit, "done", frames=len(heaps))
