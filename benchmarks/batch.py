"""`headrace batch` against `headrace run` over the same videos, and the cost of many units.

`python -m benchmarks.batch 200000` drives so many units that do nothing, and resumes them.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter

import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

from benchmarks.common import ROOT, Row
from headrace.batches.driver import BatchProgress, Driver
from headrace.batches.folder import BatchFolder
from headrace.batches.identity import write_run
from headrace.batches.inputs import GivenInput
from headrace.batches.manifest import write_manifest
from headrace.batches.units import BatchUnit, UnitResult
from headrace.meta.table import arrow_schema

SCENE = ROOT / "examples" / "conveyor"
VIDEOS, ROUNDS = 48, 3
UNITS = 20_000


def rows() -> Iterator[Row]:
    """Milliseconds for each frame of 48 videos of 10 s, without the opening of models."""
    with tempfile.TemporaryDirectory() as folder:
        videos = Path(folder, "videos")
        videos.mkdir()
        for number in range(VIDEOS):
            (videos / f"{number:02}.mp4").symlink_to(SCENE / "conveyor.mp4")
        times: dict[str, list[float]] = {"batch": [], "run": []}
        for number in range(ROUNDS):
            for kind in ("batch", "run") if number % 2 else ("run", "batch"):
                times[kind].append(_ms_per_frame(kind, videos, Path(folder, f"{kind}{number}")))
        ours, reference = (statistics.median(times[kind]) for kind in ("batch", "run"))
        yield Row(
            f"{VIDEOS} videos of 10 s, against headrace run", ours, reference, reference / ours
        )


def _ms_per_frame(kind: str, videos: Path, out: Path) -> float:
    config = str(SCENE / "config_infer_primary.txt")
    words = ["batch", config, str(videos), "-o", str(out)]
    if kind == "run":
        words = ["run", config, *map(str, sorted(videos.iterdir())), "-o", f"parquet:{out}"]
    done = subprocess.run(
        [sys.executable, "-m", "headrace", *words, "--json"], capture_output=True, check=True
    )
    report = json.loads(done.stdout)
    return 1e3 * float(report["seconds"]) / int(report["frames"])


class NothingExecutor:
    """Hands an empty table back for each unit."""

    workers, slots, spared_losses = 2, 4, 0

    def __init__(self, parts: Path) -> None:
        self._parts = parts
        self._waiting: list[BatchUnit] = []
        template = parts / "template.parquet"
        pq.write_table(arrow_schema().empty_table(), template)
        self._content = template.read_bytes()

    def submit(self, unit: BatchUnit) -> None:
        self._waiting.append(unit)

    def collect(self, timeout_s: float) -> list[UnitResult]:
        unit = self._waiting.pop()
        path = self._parts / f"{unit.id}.parquet"
        path.write_bytes(self._content)
        return [UnitResult(unit, "done", "0" * 64, 1, 10, 0, 0.001, files={"parquet": path})]

    def close(self) -> None:
        self._waiting.clear()


def drive(out: Path, count: int, stop_at: int | None) -> tuple[float, float, list[float]]:
    """Seconds until the first result, seconds in all, and MB of memory at each tenth."""
    started = perf_counter()
    memory: list[float] = []
    first = 0.0
    folder = BatchFolder(out, "run")
    try:
        write_run(out, {"config": "none"})
        folder.reconcile()
        executor = NothingExecutor(folder.parts)

        def changed(at: BatchProgress) -> None:
            nonlocal first
            first = first or perf_counter() - started
            if at.done == stop_at:
                driver.stop()
            if (at.done + at.before) % max(1, count // 10) == 0:
                memory.append(_memory_mb())

        driver = Driver(folder, executor, on_change=changed)
        names = (f"/archive/of/videos/{n % 1000:03}/video_{n:07}.mp4" for n in range(count))
        driver.run(map(GivenInput, names))
        if stop_at is None:
            write_manifest(out)
    finally:
        folder.close()
    return first, perf_counter() - started, memory


def _memory_mb() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def many(count: int) -> None:
    """Print what many units cost: half of them, a stop, and the rest after a resume."""
    table = Table(title=f"{count:,} units that do nothing", title_justify="left")
    for head in ("run", "first result, s", "all, s", "ms per unit", "memory at each tenth, MB"):
        table.add_column(head)
    with tempfile.TemporaryDirectory() as folder:
        for name, stop_at, units in (("first half", count // 2, count // 2),
                                     ("resumed", None, count - count // 2)):  # fmt: skip
            first, seconds, memory = drive(Path(folder, "out"), count, stop_at)
            shown = " ".join(f"{mb:.0f}" for mb in memory)
            each = f"{1e3 * seconds / units:.2f}"
            table.add_row(name, f"{first:.2f}", f"{seconds:.1f}", each, shown)
    Console(width=140).print(table)


if __name__ == "__main__":
    many(int(sys.argv[1]) if len(sys.argv) > 1 else UNITS)
