"""Interleaved timing: ours and the reference take turns, so that noise hits both alike."""

from __future__ import annotations

import os
import statistics
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter, process_time
from typing import NamedTuple

from headrace.engine.device import choose_device
from headrace.errors import HeadraceError

ROOT = Path(__file__).parents[1]


class Row(NamedTuple):
    """One line of the table; `ratio` above 1 means ours is that many times faster."""

    name: str
    ours_ms: float
    reference_ms: float
    ratio: float


def data_dir() -> Path | None:
    """The folder of real models and videos, if there is one."""
    path = Path(os.environ.get("HEADRACE_TEST_DATA", ROOT.parent / "shared" / "data"))
    return path if (path / "models").is_dir() else None


def require_device(name: str, asker: str) -> None:
    """End the process with one sentence if there is no such device to run on.

    Args:
        name: as `--device` takes it.
        asker: the benchmark or the setting that names it, for the sentence.
    """
    try:
        choose_device(name)
    except HeadraceError as error:
        found = error.finding.sentence.removeprefix(f"--device {name}: ")
        expected = error.finding.expectation or "an NVIDIA GPU and onnxruntime-gpu"
        sys.exit(f"{asker}: {found}; expected {expected}")


def compare(
    name: str,
    ours: Callable[[], object],
    reference: Callable[[], object],
    *,
    repeat: int = 15,
    warm_up: int = 2,
) -> Row:
    """Median wall-clock milliseconds of both, called in turns; the ratio is of the medians."""
    for _ in range(warm_up):
        ours()
        reference()
    a, b = [], []
    for _ in range(repeat):
        start = perf_counter()
        ours()
        middle = perf_counter()
        reference()
        end = perf_counter()
        a.append((middle - start) * 1e3)
        b.append((end - middle) * 1e3)
    x, y = statistics.median(a), statistics.median(b)
    return Row(name, x, y, y / x)


def in_turns(
    name: str,
    ours: Callable[[], object],
    reference: Callable[[], object],
    *,
    repeat: int,
    times: int = 1,
) -> Row:
    """`compare` for what differs by less than both vary: each goes first every other time, and ours
    is the reference's median with the median of the differences between neighbours.

    Args:
        times: milliseconds are told for so many calls.
    """
    more, plain = [], []
    for i in range(repeat):
        first, second = (ours, reference) if i % 2 else (reference, ours)
        start = perf_counter()
        first()
        middle = perf_counter()
        second()
        end = perf_counter()
        a, b = middle - start, end - middle
        if i % 2 == 0:
            a, b = b, a
        more.append(a - b)
        plain.append(b)
    least = statistics.median(plain) * 1e3 * times
    found = least + statistics.median(more) * 1e3 * times
    return Row(name, found, least, least / found)


def timed(work: Callable[[], object]) -> tuple[float, float]:
    """Wall-clock and CPU seconds (all threads) of one call."""
    wall, cpu = perf_counter(), process_time()
    work()
    return perf_counter() - wall, process_time() - cpu
