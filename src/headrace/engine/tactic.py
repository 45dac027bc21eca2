"""Tactics: the ways of running one model on one machine that differ in nothing but speed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Literal, get_args

from headrace._core.errors import EngineError
from headrace._core.plain_record import PlainRecord
from headrace.engine.backends import (
    BACKENDS,
    DEFAULT_BACKEND,
    GPU_RUNTIMES,
    Optimization,
    RunnerOptions,
)
from headrace.engine.device import LANES
from headrace.engine.machine import cpu_flags

Objective = Literal["throughput", "latency"]
"""The goal: items per second with as many runs at once as it takes, or the time of one
run that is alone."""

MAX_COUNT = 1024
_RANGES = {
    "threads": range(1, MAX_COUNT + 1),
    "streams": range(1, MAX_COUNT + 1),
    "spinning": range(2),
    "graph": range(2),
    "amx": range(2),
}
_MAX_STREAMS = 16
_WITH_GRAPHS = "onnxruntime-cuda"
_WITH_TILES = "openvino"
HALVES: Mapping[str, Literal["fp16", "bf16"]] = MappingProxyType(
    {"fp16": "fp16", "best": "fp16", "bf16": "bf16"}
)
"""Precision of a plan -> half precision in its graph."""


class Tactic(PlainRecord, frozen=True):
    """One way of running a model. None leaves threads and streams to the caller.

    As text: the runtime, then what differs from its defaults, `onnxruntime:threads=1,streams=2`.
    """

    runtime: str = DEFAULT_BACKEND
    threads: int | None = None
    streams: int | None = None
    optimization: Optimization = "all"
    spinning: bool = False
    graph: bool = False
    amx: bool = True

    def run_options(self, max_batch: int | None = None, precision: str = "fp32") -> RunnerOptions:
        """Make the options to open the runtime with, for a graph of `precision`."""
        return RunnerOptions(
            threads=self.threads,
            streams=self.streams or 1,
            spinning=self.spinning,
            optimization=self.optimization,
            max_batch=max_batch,
            half=HALVES.get(precision),
            graph=self.graph,
            amx=self.amx,
        )

    def __str__(self) -> str:
        values = [f"{k}={v}" for k in ("threads", "streams") if (v := getattr(self, k)) is not None]
        if self.optimization != "all":
            values.append(f"optimization={self.optimization}")
        if self.spinning:
            values.append("spinning=1")
        if self.graph:
            values.append("graph=1")
        if not self.amx:
            values.append("amx=0")
        return f"{self.runtime}:{','.join(values)}" if values else self.runtime

    @classmethod
    def parse(cls, text: str) -> Tactic:
        """The tactic that `str` wrote, or a user.

        Raises:
            EngineError: an unknown runtime or key, a value out of range, or a CUDA graph where
                there is none.
        """
        from headrace._core.named_settings import split_settings

        runtime, settings = split_settings(text)
        if runtime not in BACKENDS:
            raise EngineError(
                f"tactic {text!r}: no runtime is called {runtime!r}",
                expected=f"one of {', '.join(sorted(BACKENDS))}",
            )
        counts: dict[str, int] = {}
        optimization: Optimization = "all"
        for key, value in settings.items():
            if key == "optimization" and value in get_args(Optimization):
                optimization = value  # type: ignore[assignment]
            elif value.isdecimal() and int(value) in _RANGES.get(key, ()):
                counts[key] = int(value)
            else:
                raise EngineError(
                    f"tactic {text!r}: {key}={value}",
                    expected=f"threads=1…{MAX_COUNT}, streams=1…{MAX_COUNT}, "
                    f"optimization={'|'.join(get_args(Optimization))}, spinning=0|1, graph=0|1, "
                    "amx=0|1",
                )
        if counts.get("graph"):
            streams = counts.setdefault("streams", 1)
            if runtime != _WITH_GRAPHS or streams > 1:
                raise EngineError(
                    f"tactic {text!r}: graph=1 on {runtime} with streams={streams}",
                    expected=f"{_WITH_GRAPHS} with streams=1: a CUDA graph is one run at a time",
                    fix=f"write {_WITH_GRAPHS}:streams=1,graph=1, or leave graph=1 out",
                )
        if "amx" in counts and runtime != _WITH_TILES:
            raise EngineError(
                f"tactic {text!r}: amx={counts['amx']} on {runtime}",
                expected=f"{_WITH_TILES}: the other runtimes choose by themselves",
            )
        return cls(
            runtime,
            counts.get("threads"),
            counts.get("streams"),
            optimization,
            bool(counts.get("spinning")),
            bool(counts.get("graph")),
            bool(counts.get("amx", 1)),
        )


def candidates(runtimes: Sequence[str], cores: int, objective: Objective) -> list[Tactic]:
    """List the tactics to try, the default first, then by promise.

    The default is soon ready, so that there is a result; then what runs on a GPU has its turn.
    ONNX Runtime's `all` chooses other memory layouts than `extended`: that pair is the choice of
    layout. Idle threads that wait busily are tried for latency only: beside decoding they cost
    more than they give. A CUDA graph is one run at a time.
    """
    cores = min(cores, MAX_COUNT)  # `Tactic.parse` takes no more threads
    order = {DEFAULT_BACKEND: 0} | dict.fromkeys(GPU_RUNTIMES, 1)
    runtimes = sorted(dict.fromkeys(runtimes), key=lambda name: order.get(name, 2))
    shares = {runtime: _shares(runtime, cores, objective) for runtime in runtimes}
    rounds = [
        [Tactic(runtime, *some[n]) for runtime, some in shares.items() if n < len(some)]
        for n in range(max(map(len, shares.values()), default=0))
    ]
    graphs = [Tactic(name, cores, 1, graph=True) for name in runtimes if name == _WITH_GRAPHS]
    rounds.insert(1 if objective == "latency" else len(rounds), graphs)
    if DEFAULT_BACKEND in runtimes:
        some = shares[DEFAULT_BACKEND]
        rounds.append([Tactic(DEFAULT_BACKEND, *s, optimization="extended") for s in some])
        if objective == "latency":
            busy = [share for share in some if share[0] > 1]
            rounds.append([Tactic(DEFAULT_BACKEND, *s, spinning=True) for s in busy])
    if _WITH_TILES in runtimes and _may_leave_tiles():
        rounds.append([Tactic(_WITH_TILES, *s, amx=False) for s in shares[_WITH_TILES]])
    return [tactic for some in rounds for tactic in some]


def with_and_without_tiles(runtimes: Sequence[str]) -> list[Tactic]:
    """List the ways to compute INT8 in with all threads; small layers lose by the tiles of AMX."""
    tactics = [Tactic(name) for name in runtimes]
    if _WITH_TILES in runtimes and _may_leave_tiles():
        tactics.append(Tactic(_WITH_TILES, amx=False))
    return tactics


def _may_leave_tiles() -> bool:
    """Return whether the processor has AMX, and OpenVINO can be kept from it: older ones cannot."""
    from importlib.metadata import PackageNotFoundError, version  # late: 50 modules

    try:
        numbers = version(_WITH_TILES).split(".")[:2]
    except PackageNotFoundError:
        return False
    return "amx_int8" in cpu_flags() and [int(n) for n in numbers] >= [2026, 4]


def _shares(runtime: str, cores: int, objective: Objective) -> list[tuple[int, int]]:
    """Threads of a run, and runs at a time, the default first.

    Few on a GPU: its kernels need no threads, and each pair takes seconds to get ready.
    """
    if runtime in GPU_RUNTIMES:
        lanes = [1] if objective == "latency" else [LANES, 2, 1]
        return [(max(1, cores // n), n) for n in lanes]
    if objective == "latency":
        return sorted({(cores, 1), (max(1, cores // 2), 1), (1, 1)}, reverse=True)
    counts = {1 << n for n in range(cores.bit_length())} | {cores}
    kept = sorted(n for n in counts if n <= min(cores, _MAX_STREAMS))
    return [(cores // n, n) for n in reversed(kept)]
