"""How many processes a run on a GPU takes: short runs of its own sources and outputs, compared."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

from headrace._core.findings import Finding
from headrace._core.gpu.mps import driver_is_there
from headrace._core.plain_record import PlainRecord
from headrace._core.text import counted
from headrace.config.paths import is_live
from headrace.engine.machine import usable_cores
from headrace.media.sinks.opening import split_spec
from headrace.pipeline.shared_outputs import SharedOutputs
from headrace.pipeline.shares import SharedRun, SpecMaker

if TYPE_CHECKING:
    from headrace.config import PipelineSpec
    from headrace.infer.run_options import RunOptions

_MOST = 16  # processes for each GPU
_FIRST = 4  # for each GPU: most runs need no fewer
_STREAMS_OF_ONE = 16  # that a process takes where nothing is measured
_SOURCES = 32  # of a trial: they fill the video unit
_SETTLE_S, _WINDOW_S = 0.5, 2.0  # once all sources have given a frame
_PATIENCE_S = 15.0  # with those that give none
_STOP_S = 5.0
_SENT = ("messages", "publish")  # kinds that write no files
_WORTH = 1.03  # more processes take more memory: they have to be so many times as fast


class ShortRun(PlainRecord, frozen=True):
    """A short run.

    Attributes:
        rate: frames a second.
        whole: False if the sources ended before it was over.
        on_gpu: False if no model ran on a GPU.
    """

    rate: float
    whole: bool = True
    on_gpu: bool = True


class ProcessCount(PlainRecord, frozen=True):
    """The choice, and the notice with its reason."""

    processes: int
    notice: Finding


def choose_processes(
    make_spec: SpecMaker,
    options: RunOptions,
    on_stage: Callable[[str], object] = lambda _: None,
    measure: Callable[[int], ShortRun] | None = None,
) -> ProcessCount:
    """Choose how many processes share the sources of a run.

    Four for each GPU are tried, then twice as many while that is faster, else half as many while
    that is as fast. Outputs of a trial go into a folder beside the run's, and are removed;
    nothing is sent to servers and brokers. Live sources are not opened for a trial.

    Args:
        make_spec, options: of the run, see `SharedRun`.
        on_stage: called with each step of the work.
        measure: a trial with so many processes; None measures.

    Raises:
        HeadraceError: as `SharedRun`.
    """
    spec = make_spec()
    SharedOutputs.of(spec)
    sources, gpus = spec.opened_sources, options.device.split(",")
    most = min(len(sources), max(usable_cores(), len(gpus)))
    if options.device == "cpu" or not driver_is_there():
        return _chosen(1, "the CPU computes, and an engine takes all its cores")
    if any(is_live(s.uri) if s.live is None else s.live for s in sources):
        count = min(most, _FIRST * len(gpus), -(-len(sources) // _STREAMS_OF_ONE))
        return _chosen(max(count, len(gpus)), "nothing was measured: sources are live")
    counts = [n * len(gpus) for n in (1, 2, 4, 8, _MOST) if n * len(gpus) <= most]
    if len(counts) < 2:
        return _chosen(max(1, most), f"there is no choice with {counted(len(sources), 'source')}")
    begin = perf_counter()
    trials: dict[int, ShortRun] = {}

    def rate(count: int) -> float:
        if count not in trials:
            on_stage(f"measuring {counted(count, 'process')}")
            trials[count] = (measure or partial(_trial, make_spec, options))(count)
        return trials[count].rate

    at = counts.index(_FIRST * len(gpus)) if _FIRST * len(gpus) in counts else len(counts) - 1
    rate(counts[at])
    only = trials[counts[at]]
    if not only.on_gpu:
        return _chosen(1, "the CPU computes, and an engine takes all its cores")
    if only.whole:
        first = at
        while at + 1 < len(counts) and rate(counts[at + 1]) > _WORTH * rate(counts[at]):
            at += 1
        while at == first and at and _WORTH * rate(counts[at - 1]) >= rate(counts[at]):
            at = first = at - 1
    rates = {str(count): round(trials[count].rate) for count in sorted(trials)}
    shown = ", ".join(f"{rate:,} with {count}" for count, rate in rates.items())
    seconds = perf_counter() - begin
    return _chosen(counts[at], f"{shown} frames/s, measured in {seconds:.0f} s", rates)


def _chosen(count: int, why: str, rates: dict[str, int] | None = None) -> ProcessCount:
    data = {"processes": count, "why": why, "rates": rates or {}}
    return ProcessCount(
        count, Finding("processes-chosen", "info", "processes: {processes}; {why}", None, data)
    )


def _trial(make_spec: SpecMaker, options: RunOptions, processes: int) -> ShortRun:
    """Run so many processes for a few seconds."""
    spec = make_spec()
    beside, sources = _folder_of(spec), min(_SOURCES, len(spec.opened_sources))
    marks: list[tuple[float, int]] = []

    def at(frames: int) -> None:
        now = perf_counter()
        if shared.begun < sources and now < begin + _PATIENCE_S:
            return
        if not marks or now < marks[0][0] + _SETTLE_S + _WINDOW_S:
            marks.append((now, frames))
        elif not shared.stopped:
            shared.stop(_STOP_S)

    with tempfile.TemporaryDirectory(prefix=".headrace-", dir=beside) as folder:
        shared = SharedRun(partial(trial_spec, make_spec, folder), options, processes, on_frames=at)
        shared.begin()
        begin = perf_counter()
        report = shared.run()
    on_gpu = any(model.device.startswith("cuda") for model in report.models)
    settled = [mark for mark in marks if mark[0] >= marks[0][0] + _SETTLE_S]
    if not shared.stopped or len(settled) < 2:
        return ShortRun(report.frames / (perf_counter() - begin), False, on_gpu)
    (first, before), (last, after) = settled[0], settled[-1]
    return ShortRun((after - before) / (last - first), True, on_gpu)


def trial_spec(make_spec: SpecMaker, folder: str) -> PipelineSpec:
    """The pipeline of a trial: some of the sources, its files in a folder, nothing sent."""
    spec = make_spec()
    sources, sinks = spec.opened_sources[:_SOURCES], []
    for number, sink in enumerate(spec.sinks):
        index = None if sink.text is None else spec.source_index(sink)
        if sink.text is None or (index or 0) >= len(sources):
            continue
        kind, path = split_spec(sink.text)
        if kind not in _SENT:
            parts = (part for part in path.parts if part not in ("/", ".."))
            sinks.append(sink.changed(kind=kind, path=Path(folder, str(number), *parts)))
    return spec.changed(
        sources=sources, sinks=tuple(sinks), consumers=(), errors_to=None, rest=None, append=False,
        rates_interval_s=0.0,
    )  # fmt: skip


def _folder_of(spec: PipelineSpec) -> str | None:
    """The folder of the first output: a trial writes on the same disk."""
    for sink in spec.sinks:
        kind, path = ("", Path()) if sink.text is None else split_spec(sink.text)
        if not kind or kind in _SENT:
            continue
        above = path.absolute().parents
        there = next((p for p in above if p.is_dir() and os.access(p, os.W_OK)), None)
        if there is not None and "{" not in str(there):
            return str(there)
    return None
