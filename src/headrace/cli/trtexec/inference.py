"""Running an engine again and again, each step of each run timed."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np

from headrace._core.errors import EngineError
from headrace._core.threads import run_together
from headrace._core.types import Array, Arrays
from headrace.cli.trtexec.options import Options
from headrace.engine.backends import Runner
from headrace.network.tensor_spec import TensorSpec


@dataclass(frozen=True, slots=True)
class Query:
    """Times of one run, in ms since the measurement began.

    H2D and D2H are the copies of inputs and outputs, compute is the run of the engine, enqueue what
    the host does to start it.
    """

    start_h2d: float
    end_h2d: float
    start_enqueue: float
    end_enqueue: float
    start_compute: float
    end_compute: float
    start_d2h: float
    end_d2h: float

    @property
    def h2d(self) -> float:
        """Milliseconds of copying inputs."""
        return self.end_h2d - self.start_h2d

    @property
    def enqueue(self) -> float:
        """Milliseconds of the call that starts the run."""
        return self.end_enqueue - self.start_enqueue

    @property
    def compute(self) -> float:
        """Milliseconds of computing."""
        return self.end_compute - self.start_compute

    @property
    def d2h(self) -> float:
        """Milliseconds of copying outputs."""
        return self.end_d2h - self.start_d2h

    @property
    def latency(self) -> float:
        """H2D + compute + D2H. Source: TensorRT facts 6.2."""
        return self.h2d + self.compute + self.d2h


@dataclass(frozen=True, slots=True)
class Measured:
    """Measurements.

    Attributes:
        warm_up: runs before the measurement, over `warm_up_ms`.
        queries: runs in the order they began.
        outputs: of the last run, by name.
    """

    warm_up: int
    warm_up_ms: float
    queries: list[Query]
    outputs: dict[str, Array]


def input_values(spec: TensorSpec, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """Random values as trtexec makes them.

    Floats are in -1 … 1, integers in -128 … 127, uint8 in 0 … 255, bool is 0 or 1.
    Source: TensorRT facts 6.1.
    """
    kind = spec.dtype.kind
    if kind == "f":
        return (rng.random(shape, np.float32) * 2 - 1).astype(spec.dtype)
    if kind == "b":
        return rng.integers(0, 2, shape).astype(np.bool_)
    low, high = (0, 255) if kind == "u" else (-128, 127)
    return rng.integers(low, high, shape, endpoint=True).astype(spec.dtype)


class _Stream:
    """One stream's buffers, and its loop."""

    def __init__(self, runner: Runner, feeds: Arrays, options: Options) -> None:
        self._runner, self._host, self._options = runner, feeds, options
        self._copies = not options.has("noDataTransfers")
        self._bound = {name: array.copy() for name, array in feeds.items()}
        self.outputs: list[Array] = []
        self.queries: list[Query] = []

    def once(self, origin: float) -> Query:
        """One run."""
        started = perf_counter()
        if self._copies:
            for name, array in self._host.items():
                np.copyto(self._bound[name], array)
        copied = perf_counter()
        feeds = dict(self._bound)
        handed = perf_counter()
        if self._options.sleep_ms:
            time.sleep(self._options.sleep_ms / 1e3)
        computing = perf_counter() if self._options.sleep_ms else handed
        results = self._runner.run(feeds)
        computed = perf_counter()
        if self._copies or not self.outputs:
            self._take(results)
        ended = perf_counter() if self._copies else computed
        moments = (started, copied, copied, handed, computing, computed, computed, ended)
        return Query(*((t - origin) * 1e3 for t in moments))

    def _take(self, results: Any) -> None:
        for i, result in enumerate(results):
            if i == len(self.outputs):
                self.outputs.append(np.empty_like(result))
            if self.outputs[i].shape != result.shape:  # its size depends on the data
                self.outputs[i] = np.empty_like(result)
            np.copyto(self.outputs[i], result)

    def loop(self, origin: float, *, least: int, seconds: float, keep: bool) -> int:
        """Run `least` times and for `seconds`; returns how often."""
        count = 0
        begun = perf_counter()
        while count < least or perf_counter() - begun < seconds:
            query = self.once(origin)
            count += 1
            if keep:
                self.queries.append(query)
            if self._options.idle_ms:
                time.sleep(self._options.idle_ms / 1e3)
        return count


def run_timed(runner: Runner, feeds: Arrays, options: Options) -> Measured:
    """Warm up, then measure, with `options.streams` runs at the same time.

    Raises:
        EngineError: the runtime failed.
    """
    streams = [_Stream(runner, feeds, options) for _ in range(options.streams)]
    warmed = [0] * len(streams)
    times = [0.0]
    together = threading.Barrier(len(streams), action=lambda: times.append(perf_counter()))

    def work(number: int) -> None:
        stream = streams[number]
        stream.once(0.0)  # buffers of the outputs, and whatever the runtime does at first
        together.wait()
        seconds = options.warm_up_ms / 1e3
        warmed[number] = stream.loop(0.0, least=0, seconds=seconds, keep=False)
        together.wait()
        stream.loop(times[-1], least=options.iterations, seconds=options.duration_s, keep=True)

    run_together(work, together, name="headrace-stream")
    queries = sorted((q for s in streams for q in s.queries), key=lambda q: q.start_h2d)
    if not queries:
        raise EngineError("nothing was measured", expected="--iterations or --duration above 0")
    names = [spec.name for spec in runner.outputs]
    outputs = dict(zip(names, streams[0].outputs, strict=True))
    return Measured(sum(warmed), (times[-1] - times[-2]) * 1e3, queries, outputs)
