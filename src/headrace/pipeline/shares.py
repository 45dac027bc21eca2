"""A run in several processes: each takes a share of the sources, one writes lines of all.

One process drives one GPU, and its threads take turns for Python and for the driver: many streams
fill a GPU only from several processes. Lines of one source stay in order.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from multiprocessing.connection import Connection, wait
from time import perf_counter
from typing import TYPE_CHECKING, Any

from headrace._core.errors import HeadraceError, MediaError
from headrace._core.findings import Finding
from headrace._core.gpu.mps import kernels_at_once
from headrace._core.notices import refuse_warnings
from headrace._core.processes import SpawnedProcess
from headrace._core.threads import say_failure, start_thread
from headrace.engine.machine import usable_cores
from headrace.infer.run_options import RunOptions
from headrace.media.sinks.jsonl import JsonLinesSink, standard_output_is
from headrace.media.sinks.lasting import LastingSink
from headrace.media.sinks.opening import open_sink
from headrace.pipeline.assembly import Assembling
from headrace.pipeline.report import ModelReport, RunReport, SourceReport
from headrace.pipeline.shared_outputs import SharedOutputs

if TYPE_CHECKING:
    from headrace.config import PipelineSpec

_CHUNK = 1 << 20  # bytes read from a process at once
_LOOK_S = 0.2
_MORE_S = 1.0  # for a process to end after its stop
_END_S = 10.0
AHEAD = ("headrace.pipeline.assembly", "headrace.engine.backends.onnxruntime")
_IGNORED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)  # the process that writes decides
SpecMaker = Callable[[], "PipelineSpec"]
"""Called in each process; it must be a function or partial that can be pickled."""


@dataclass(slots=True)
class _Share:
    """One process, as the one that writes sees it."""

    process: SpawnedProcess
    lines: Connection
    sources: list[int]
    counts: Any  # frames, and sources that have given one
    rest: bytes = b""
    report: RunReport | None = None
    error: HeadraceError | None = None

    @property
    def talk(self) -> Connection:
        return self.process.pipe

    def how_it_ended(self) -> str:
        return f"its process {self.process.end(_END_S)}"


@dataclass(slots=True)
class SharedRun:
    """Runs a pipeline in several processes.

    Args:
        make_spec: makes the pipeline; its outputs are one of JSON Lines and files of each source.
        options: of each process; `device` may name several GPUs, `cuda:0,cuda:1`: the first
            process takes the first, and so on, in turn.
        processes: how many; at most one for each source is started.
        strict: True makes every warning an error.
        on_notices: called with what is decided, each notice once.
        on_frames: called now and then with the number of frames so far.

    Attributes:
        stopped: True behind `stop`.

    Raises:
        MediaError: the pipeline has another output, or its sources come and go.
    """

    make_spec: SpecMaker
    options: RunOptions
    processes: int
    strict: bool = False
    on_notices: Callable[[list[Finding]], None] = lambda _: None
    on_frames: Callable[[int], None] = lambda _: None
    _shares: list[_Share] = field(default_factory=list)
    _told: dict[Finding, None] = field(default_factory=dict)
    _names: list[str] = field(default_factory=list)
    _sink: JsonLinesSink | LastingSink | None = None
    stopped: bool = False
    _end_by: float = float("inf")
    _gpu: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)

    def begin(self) -> None:
        """Start the processes and wait until each has its engines.

        Raises:
            HeadraceError: one of them refuses, or the output cannot be created; all are ended.
        """
        spec = self.make_spec()
        out = SharedOutputs.of(spec).lines
        self._names = [source.label for source in spec.opened_sources]
        count = min(self.processes, len(self._names))
        try:
            self.options = replace(self.options, sharing=self._on_one_device(count))
            if self.options.device != "cpu" and self.options.sharing > 1:
                self._tell(self._gpu.enter_context(kernels_at_once(self.options.sharing)))
            for index in range(count):
                self._shares.append(self._started(index, count))
            self._wait_until_ready()
            if out is not None:
                sink = open_sink(out, inputs=[s.uri for s in spec.sources], append=spec.append)
                assert isinstance(sink, JsonLinesSink | LastingSink)
                self._sink = sink
        except BaseException:
            self._end_all()
            raise

    def run(self) -> RunReport:
        """Run to the end of all sources, behind `begin`.

        A process that dies fails its sources; the others go on.

        Raises:
            HeadraceError: the output cannot be written, or a warning is an error; all are ended.
                Or every source failed.
        """
        start = perf_counter()
        try:
            self._send("go")
            self._follow()
            if self._sink is not None:
                self._sink.close()
        except BaseException:
            self._end_all()
            if self._sink is not None:
                self._sink.abort("the run was broken off")
            raise
        report = self._merged(perf_counter() - start)
        self._gpu.close()
        return report

    def stop(self, within_s: float | None = None) -> None:
        """End the run early: all files are finished and keep the results up to here.

        Args:
            within_s: how long to wait for calls, see `Pipeline.stop`; a process that is not back a
                second later is killed.
        """
        self.stopped = True
        if within_s is not None:
            self._end_by = min(self._end_by, perf_counter() + within_s + _MORE_S)
        self._send(("stop", within_s))

    @property
    def begun(self) -> int:
        """Sources that have given a frame."""
        return sum(share.counts[1] for share in self._shares)

    def _send(self, word: str | tuple[str, float | None]) -> None:
        for share in self._shares:
            with contextlib.suppress(OSError):  # it is dead: `_heard` finds that
                share.talk.send(word)

    def _on_one_device(self, count: int) -> int:
        """The most of `count` processes that share a device."""
        return -(-count // len(set(self.options.device.split(","))))

    def _started(self, index: int, count: int) -> _Share:
        lines, written = multiprocessing.Pipe(duplex=False)
        counts = multiprocessing.RawArray("q", 2)
        devices = self.options.device.split(",")
        options = replace(self.options, device=devices[index % len(devices)])
        if options.threads is None and options.streams is None:
            # engines on the CPU would take all cores each
            options = replace(options, threads=max(1, usable_cores() // count))
        arguments = (self.make_spec, options, index, count, self.strict, written, counts)
        process = SpawnedProcess(
            _serve, *arguments, name="headrace share", ignored=_IGNORED, ahead=AHEAD
        )
        written.close()
        return _Share(process, lines, list(range(index, len(self._names), count)), counts)

    def _wait_until_ready(self) -> None:
        """Wait until every process has its engines; the first refusal ends them all."""
        waiting = list(self._shares)
        while waiting:
            for talk in wait([share.talk for share in waiting]):
                share = next(s for s in waiting if s.talk is talk)
                message = self._received(share)
                if isinstance(message, HeadraceError):
                    raise message
                if message is None:
                    raise HeadraceError(f"the run could not begin: {share.how_it_ended()}")
                self._tell(message)
                waiting.remove(share)

    def _received(self, share: _Share) -> Any:
        try:
            return share.talk.recv()
        except (EOFError, OSError):
            return None

    def _tell(self, notices: Sequence[Finding]) -> None:
        new = [notice for notice in notices if notice not in self._told]
        self._told.update(dict.fromkeys(new))
        if new:
            self.on_notices(new)

    def _follow(self) -> None:
        """Write lines and collect reports until every process is done."""
        open_pipes: dict[Any, tuple[_Share, bool]] = {}
        for share in self._shares:
            open_pipes[share.talk] = share, False
            open_pipes[share.lines] = share, True
        shown = 0.0
        while open_pipes:
            for pipe in wait(list(open_pipes), _LOOK_S):
                share, is_lines = open_pipes[pipe]
                alive = self._wrote(share) if is_lines else self._heard(share)
                if not alive:
                    del open_pipes[pipe]
            if perf_counter() > self._end_by:
                for share in self._shares:
                    share.process.kill()
            if perf_counter() - shown > _LOOK_S:
                shown = perf_counter()
                self.on_frames(sum(share.counts[0] for share in self._shares))

    def _wrote(self, share: _Share) -> bool:
        """Write the lines of a process, up to its last whole one; return False at the end."""
        try:
            data = os.read(share.lines.fileno(), _CHUNK)
        except OSError:
            data = b""
        whole, end, rest = (share.rest + data).rpartition(b"\n")
        share.rest = rest
        if end and self._sink is not None:
            self._sink.write_lines(whole + end)
        return bool(data)

    def _heard(self, share: _Share) -> bool:
        """Take one message of a process; False when it has ended."""
        message = self._received(share)
        if isinstance(message, RunReport):
            share.report = message
        elif isinstance(message, HeadraceError) and share.report is None:
            raise message
        elif message is not None:
            share.error = message
        return message is not None

    def _end_all(self) -> None:
        for share in self._shares:
            share.process.kill()
        self._gpu.close()

    def _merged(self, seconds: float) -> RunReport:
        """One report of all processes.

        Raises:
            HeadraceError: every source failed.
        """
        errors = [share.error for share in self._shares if share.error is not None]
        if len(errors) == len(self._shares):
            self._end_all()
            raise errors[0]
        names = self._names
        merged = RunReport(names[0] if len(names) == 1 else f"{len(names)} sources")
        merged.seconds = seconds
        for share in self._shares:
            error = share.how_it_ended()
            if share.report is not None:
                _add(merged, share.report)
                continue
            merged.sources += [
                SourceReport(number, names[number], state="failed", error=error)
                for number in share.sources
            ]
            merged.frames += share.counts[0]
            text = f"{len(share.sources)} source(s) ended: {error}; results up to there are kept"
            merged.notices.append(Finding("share-failed", "warning", text))
        merged.sources.sort(key=lambda source: source.source_id)
        merged.interrupted = merged.interrupted or self.stopped
        if self._sink is not None:
            merged.outputs.insert(0, str(self._sink.path))
        merged.outputs = list(dict.fromkeys(merged.outputs))
        merged.notices = list(dict.fromkeys(merged.notices))
        return merged


def _add(merged: RunReport, report: RunReport) -> None:
    """Add the counts of one process."""
    merged.frames += report.frames
    merged.inferred += report.inferred
    merged.failed_frames += report.failed_frames
    merged.dropped_frames += report.dropped_frames
    merged.objects += report.objects
    times = [t for t in (merged.first_result_s, report.first_result_s) if t is not None]
    merged.first_result_s = min(times, default=None)
    merged.stages = _sum(merged.stages, report.stages)
    merged.crossed |= report.crossed
    merged.sources += report.sources
    merged.notices += report.notices
    merged.outputs += [path for path in report.outputs if path != "-"]
    merged.interrupted = merged.interrupted or report.interrupted
    if not merged.models:
        merged.models = report.models
        return
    for model, other in zip(merged.models, report.models, strict=True):
        _add_model(model, other)


def _add_model(model: ModelReport, other: ModelReport) -> None:
    model.inferred += other.inferred
    model.failed += other.failed
    model.seconds = _sum(model.seconds, other.seconds)
    model.results = _sum(model.results, other.results)
    for counts, more in ((model.skipped, other.skipped), (model.dropped, other.dropped)):
        for key, names in more.items():
            counts[key] = _sum(counts.get(key, {}), names)
    model.reasons = list(dict.fromkeys([*model.reasons, *other.reasons]))
    if other.device not in model.device.split(", "):
        model.device = f"{model.device}, {other.device}"


def _sum(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    total = Counter(one)
    total.update(other)
    return dict(total)


def _serve(
    talk: Connection,
    make_spec: SpecMaker,
    options: RunOptions,
    index: int,
    count: int,
    strict: bool,
    lines: Connection,
    counts: Any,
) -> None:
    """Run one share in this process."""
    os.dup2(2, 1)  # prints of users' code do not get among the lines

    begun: set[int] = set()

    def count_frame(meta: Any) -> None:
        counts[0] += 1
        if meta.source_id not in begun:
            begun.add(meta.source_id)
            counts[1] = len(begun)

    def ready(notices: list[Finding]) -> None:
        if strict:
            refuse_warnings(notices)
        talk.send(notices)
        if talk.recv() != "go":
            raise SystemExit(0)

    try:
        spec = make_spec()
        if spec.sinks:
            spec = spec.changed(sinks=SharedOutputs.of(spec).of_a_process)
        with standard_output_is(lines.fileno()):
            assembly = Assembling(
                spec=spec,
                options=options,
                share=(index, count),
                on_ready=ready,
                on_result=count_frame,
            ).assemble()
            _hear_stop(talk, assembly)
            try:
                report = assembly.pipeline.run()
            except MediaError:
                report = assembly.pipeline.report
                if all(source.state == "failed" for source in report.sources):
                    talk.send(report)  # the sources of other processes need not have failed
                raise
            finally:
                assembly.close()
            if strict:
                refuse_warnings(report.notices)
    except HeadraceError as error:
        talk.send(error)
    except (EOFError, OSError):
        os._exit(1)  # the process that writes is gone
    else:
        talk.send(report)


def _hear_stop(talk: Connection, assembly: Any) -> None:
    def deaf(error: Exception) -> None:
        assembly.pipeline.stop()
        say_failure("the thread that hears the stop", error)

    work = partial(_stop_when_told, talk, assembly)
    start_thread(work, name="headrace-share-stop", failed=deaf)


def _stop_when_told(talk: Connection, assembly: Any) -> None:
    with contextlib.suppress(EOFError, OSError):
        while True:
            word, within_s = talk.recv()
            if word == "stop":
                assembly.pipeline.stop(within_s)
