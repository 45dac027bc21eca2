"""Everything of a batch from its words to its report."""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace._core.errors import HeadraceError
from headrace._core.findings import Finding
from headrace._core.lazy import import_extra
from headrace.batches.bucket import Bucket, results_place
from headrace.batches.driver import BatchProgress, Driver, what_is_left
from headrace.batches.estimate import (
    BatchEstimate,
    estimated,
    memory_of_this_process,
    sample_of,
    timed_units,
)
from headrace.batches.folder import MANIFEST, BatchFolder
from headrace.batches.identity import check_run, identity_of, run_id, write_run
from headrace.batches.inputs import GivenInput, columns_of, expand_inputs, given_inputs
from headrace.batches.manifest import RESERVED, write_manifest
from headrace.batches.placement import Placement, open_and_place
from headrace.batches.processes import ProcessExecutor, open_worker
from headrace.batches.scratch import scratch_folder
from headrace.batches.work import (
    UNITS_EACH,
    Work,
    Worker,
    batch_multiple,
    span_seconds,
    split_obstacle,
    video_spans,
    with_threads,
)
from headrace.config import ModelConfig
from headrace.config.pipeline_spec import PipelineSpec
from headrace.engine.device import choose_device
from headrace.engine.machine import usable_cores
from headrace.infer.trial.refusal import FRAMES
from headrace.pipeline.stage_order import numbered

if TYPE_CHECKING:
    from headrace.batches.executor import Executor


_COUNTS = ("done", "failed", "before", "failed_before", "inputs", "frames", "objects", "retried")


@dataclass(slots=True)
class BatchReport:
    """The outcome of a batch.

    Attributes:
        path: the folder of the results, or the URL of their bucket.
        run: id of the run: the part `run=…` of the paths of its tables.
        progress: counts of this run.
        total: outcome -> number of units, of all runs together.
        placement: workers and threads.
        notices: decisions from the opening on.
    """

    path: Path | str
    run: str
    progress: BatchProgress
    total: dict[str, int]
    placement: Placement
    notices: tuple[Finding, ...] = ()

    @property
    def complete(self) -> bool:
        """True if every input has its results."""
        failed = self.total.get("failed", 0) + self.total.get("lost", 0)
        return not failed and not self.progress.interrupted

    def to_dict(self) -> dict[str, Any]:
        """The report as plain data, the `--json` form of `headrace batch`."""
        p = self.progress
        return {
            "folder": str(self.path),
            "run": self.run,
            **{name: getattr(p, name) for name in _COUNTS},
            "seconds": round(p.seconds, 3),
            "fps": round(p.frames / p.seconds, 2) if p.seconds else 0.0,
            "workers": self.placement.workers,
            "threads": self.placement.threads,
            "interrupted": p.interrupted,
            "total": self.total,
            "errors": [{"input": name, "error": text} for name, text in p.errors],
            "notices": [str(n) for n in self.notices],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchOptions:
    """Options of a batch beside its pipeline.

    Attributes:
        workers: processes; None is measured.
        split_s: length of the spans of long videos; 0 splits none, None is chosen.
        resume: go on in a folder that has results.
        retry_failed: run units again that failed in an earlier run.
        retries: how often a failing unit is tried again in this run.
        on: `local`, `ray`, or the address of a Ray cluster as `ray://HOST:PORT`.
        unit_timeout: seconds that one attempt at a unit may take; None is any time.
        max_failed: end the run when more units have failed in it; None: never.
    """

    workers: int | None = None
    split_s: float | None = None
    resume: bool = True
    retry_failed: bool = False
    retries: int = 1
    on: str = "local"
    unit_timeout: float | None = None
    max_failed: int | None = None


@dataclass(slots=True)
class BatchRun:
    """Runs a batch from its words to its report.

    Attributes:
        work: the pipeline.
        inputs: as the user gave them.
        out: folder of the results, or a URL.
        options: how it runs.
        on_stage: called with each step that begins, in words.
        on_ready: called with the notices and the placement, before the first unit; may raise.
        on_notice: called with each notice of the models at work.
    """

    work: Work
    inputs: Sequence[str]
    out: Path | str
    options: BatchOptions
    on_stage: Callable[[str], None] = lambda _: None
    on_ready: Callable[[Sequence[Finding], Placement], None] = lambda _notices, _placement: None
    on_notice: Callable[[Finding], None] = lambda _: None
    notices: list[Finding] = field(default_factory=list)

    def run(self, on_change: Callable[[BatchProgress], None] = lambda _: None) -> BatchReport:
        """Run the batch; see `batch`.

        Raises:
            HeadraceError: as `batch`.
        """
        import_extra("pyarrow", "arrow")
        if self.options.on != "local":
            check_address(self.options.on)
            check_device(self.work.options.device)
        configs, _ = numbered(self.work.spec.load_models(), None, self.work.options.generation)
        with (
            self._joined_cluster(),
            scratch_folder() as scratch,
            results_place(self.out) as (out, bucket),
        ):
            return self._run(configs, out, bucket, scratch, on_change)

    def _run(
        self,
        configs: Sequence[ModelConfig],
        out: Path,
        bucket: Bucket | None,
        scratch: Path,
        on_change: Callable[[BatchProgress], None],
    ) -> BatchReport:
        self.notices += _left_out(self.work.spec)
        columns, renamed = columns_of(self.inputs, RESERVED)
        self.notices += renamed
        self.work = replace(self.work, columns=columns)
        parts = identity_of(self.work, configs)
        check_run(out, parts, resume=self.options.resume, shown=self.out)
        first, names = _begun(given_inputs(self.inputs, columns))
        work = self._split_or_not(configs, first)
        few = len(first) < usable_cores()
        placement = self._placement(work, _units(work, first) if few else len(first), first)
        share = len(first) // max(1, placement.workers)
        work = replace(work, judged_after=min(FRAMES, max(1, share)))
        identity = json.dumps(parts, sort_keys=True)
        work = replace(work, facts={"headrace.run": run_id(parts), "headrace.made-of": identity})
        folder = BatchFolder(out, run_id(parts), bucket)
        try:
            check_run(out, parts, resume=True, shown=self.out)  # another run may have come between
            write_run(out, parts)
            folder.publish("run.json")
            gone = folder.reconcile()
            if gone:
                text = f"{gone} results are gone from the folder: their units run again"
                self.notices.append(Finding("results-gone", "warning", text, folder.where))
            if folder.ledger.outcomes:
                names_left = expand_inputs(self.inputs)
                text = what_is_left(folder.ledger, names_left, self.options.retry_failed)
                self.notices.append(Finding("batch-goes-on", "info", text, folder.where))
            self.on_ready(self.notices, placement)
            executor = self._executor(
                with_threads(work, placement.threads), configs, placement, folder, scratch
            )
            try:
                driver = Driver(
                    folder,
                    executor,
                    retries=self.options.retries,
                    retry_failed=self.options.retry_failed,
                    max_failed=self.options.max_failed,
                    on_change=on_change,
                    on_notice=self.on_notice,
                )
                with _stopped_by_signals(driver):
                    progress = driver.run(names)
            finally:
                executor.close()
                folder.save()
                write_manifest(out)
                folder.publish(MANIFEST)
            self.notices += driver.notices
            total = {k: n for k, n in folder.ledger.counts().items() if k not in ("split", "whole")}
        finally:
            folder.close()
        if bucket is not None and bucket.repeated:
            text = (
                f"{bucket.repeated} calls had to be repeated: the storage was busy or out of reach"
            )
            self.notices.append(Finding("storage-retried", "warning", text, bucket.url))
        path = Path(self.out) if bucket is None else bucket.url
        notices = tuple(dict.fromkeys(self.notices))
        return BatchReport(path, folder.run, progress, total, placement, notices)

    def plan(self, price: float | None = None) -> BatchEstimate:
        """Time a few units in this process, and work the whole out from them; write nothing.

        Args:
            price: of a core hour; None: prices are not worked out.

        Raises:
            HeadraceError: as `batch`; or none of the units could be run.
        """
        import_extra("pyarrow", "arrow")
        sample = sample_of(expand_inputs(self.inputs))
        before = memory_of_this_process()
        placement = self._placement(self.work, sample.inputs, sample.names)
        self.on_ready(self.notices, placement)
        worker = Worker(with_threads(self.work, placement.threads), None)
        try:
            self.on_stage(f"timing {len(sample.names)} of {sample.inputs} inputs")
            results, written = timed_units(worker, sample.names)
        finally:
            worker.close()
        return estimated(
            results,
            written,
            sample=sample,
            cores=usable_cores(),
            workers=placement.workers,
            threads=placement.threads,
            memory_bytes=max(before, memory_of_this_process()),
            core_hour_price=price,
        )

    def _placement(self, work: Work, units: int, names: Sequence[str]) -> Placement:
        """Open the models, which builds engines and refuses wrong ones, and share the cores out."""
        self.on_stage("opening models")
        options = replace(work.options, threads=None)  # those of a worker
        if self.options.on != "local":  # this machine may have no GPU where nodes have
            options = replace(options, device="auto")
        notices, placement = open_and_place(
            replace(work, options=options),
            names,
            self.on_stage,
            cores=usable_cores(),
            workers=self.options.workers,
            threads=work.options.threads,
            units=units,
        )
        self.notices += notices
        return placement

    def _split_or_not(self, configs: Sequence[Any], first: Sequence[str]) -> Work:
        split_s = self.options.split_s
        if split_s == 0:
            return self.work
        obstacle = split_obstacle(self.work, configs)
        if obstacle is not None:
            self.notices.append(
                Finding("videos-whole", "info", f"videos are not split: {obstacle}")
            )
            return self.work
        if split_s is None:
            split_s = span_seconds(first, usable_cores())
        return replace(self.work, split_s=split_s, multiple=batch_multiple(configs))

    def _joined_cluster(self) -> AbstractContextManager[None]:
        """Join a cluster before models are opened: one that does not answer or fit is refused."""
        if self.options.on == "local":
            return nullcontext()
        from headrace.batches.ray_joining import joined_cluster

        cores = max(1, self.work.options.threads or 1)
        gpus, waits = self._device_of_nodes() == "cuda", self.options.workers is not None
        return joined_cluster(self.options.on, cores, gpus, waits=waits)

    def _device_of_nodes(self) -> str:
        device = self.work.options.device
        if device == "auto":  # the same on every node
            device = "cuda" if choose_device().is_gpu else "cpu"
        return device

    def _executor(
        self,
        work: Work,
        configs: Sequence[Any],
        placement: Placement,
        folder: BatchFolder,
        scratch: Path,
    ) -> Executor:
        if self.options.on == "local":
            opener = partial(open_worker, work, folder.parts)
            limit_s = self.options.unit_timeout
            return ProcessExecutor(opener, placement.workers, limit_s, scratch=scratch)
        from headrace.batches.ray_cluster import RayExecutor

        work = replace(work, options=replace(work.options, device=self._device_of_nodes()))
        executor = RayExecutor(
            self.options.on,
            work,
            configs,
            folder.parts,
            placement,
            workers=self.options.workers,
            timeout_s=self.options.unit_timeout,
        )
        self.notices += executor.notices
        for notice in executor.notices:
            self.on_stage(f"{notice:brief}")
        return executor


def _left_out(spec: PipelineSpec) -> list[Finding]:
    """Warn of parts of a pipeline file that a batch has no use for."""
    notices = []
    if any(sink.text for sink in spec.sinks):
        text = "the outputs of the pipeline file are not written: a batch has its own"
        notices.append(Finding("batch-leaves-out", "warning", text, str(spec.path)))
    if any(source.drop_frame_interval or source.loop for source in spec.sources):
        text = "drop-frame-interval and loops of sources are left out: a batch reads files whole"
        notices.append(Finding("batch-leaves-out", "warning", text, str(spec.path)))
    return notices


def check_address(on: str) -> None:
    """Refuse a place to run that is none.

    Raises:
        HeadraceError: it is neither `ray` nor a `ray://` address.
        MissingExtraError: ray is not installed.
    """
    if on != "ray" and not on.startswith("ray://"):
        raise HeadraceError(
            f"{on} is no place to run", where="--on", expected="local, ray or ray://HOST:PORT"
        )
    import_extra("ray", "ray")


def check_device(device: str) -> None:
    """Refuse a device that a batch on Ray cannot have.

    Raises:
        HeadraceError: it is none, or names one GPU of a machine.
    """
    if device not in ("auto", "cpu", "cuda"):
        raise HeadraceError(
            f"{device} is no device for a batch on Ray, which chooses the GPU of each actor",
            where="--device",
            expected="auto, cpu or cuda",
        )


def _begun(inputs: Iterator[GivenInput]) -> tuple[list[str], Iterable[GivenInput]]:
    """Names of the first inputs, so that a wrong word is refused early, and all inputs."""
    first = list(islice(inputs, UNITS_EACH * usable_cores()))
    if not first:
        raise HeadraceError("there is no input", expected="videos or images to run over")
    return [given.name for given in first], chain(first, inputs)


def _units(work: Work, names: Sequence[str]) -> int:
    """Units of a few inputs: spans of long videos count each."""
    units = 0
    for name in names:
        spans: Sequence[Any] = ()
        with suppress(HeadraceError, OSError):  # the unit itself says what is wrong
            spans, _ = video_spans(work, Path(name), name)
        units += max(1, len(spans))
    return units


@contextmanager
def _stopped_by_signals(driver: Driver) -> Iterator[None]:
    """Let Ctrl-C, SIGTERM and hang-up end the run: committed units are kept.

    Signals that are ignored stay ignored; outside the main thread none is touched.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    signals = [n for n in numbers if signal.getsignal(n) is not signal.SIG_IGN]
    previous = {n: signal.signal(n, lambda *_: driver.stop()) for n in signals}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
