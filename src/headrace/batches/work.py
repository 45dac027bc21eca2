"""The work of one process: models are opened once, units run through them one after the other."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from math import lcm
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from headrace._core.errors import HeadraceError, MediaError
from headrace._core.files import hash_file, os_errors
from headrace._core.heap import trim_heap
from headrace._core.text import quoted
from headrace.batches.columns import Columns, constants_of
from headrace.batches.folder import SUFFIXES
from headrace.batches.inputs import shown
from headrace.batches.remote import fetched
from headrace.batches.storage import StorageError, storage_error
from headrace.batches.tables import TABLES
from headrace.batches.units import BatchUnit, UnitResult
from headrace.config.pipeline_spec import PipelineSpec, SinkSpec, SourceSpec
from headrace.engine.device import choose_device
from headrace.infer.loaded_model import Model
from headrace.infer.record import Record
from headrace.infer.run_options import RunOptions
from headrace.infer.trial.refusal import FRAMES, tried_refusal
from headrace.media import Source, open_source
from headrace.media.frame_choice import frames_of_many
from headrace.media.names import IMAGE_SUFFIXES, VIDEO_SUFFIXES
from headrace.media.sinks.base import Sink
from headrace.media.sinks.table import ArrowSink, FrameArrowSink, FrameParquetSink, ParquetSink
from headrace.media.sources.video_span import SpanDoubtError, VideoSpanSource
from headrace.media.sources.video_structure import VideoSpan, video_seconds, video_structure
from headrace.pipeline.assembly import Assembling, open_model
from headrace.pipeline.pipeline import Pipeline
from headrace.pipeline.report import without_results
from headrace.pipeline.source_opening import gpu_of
from headrace.pipeline.stage_order import numbered

if TYPE_CHECKING:
    from headrace._core.findings import Finding
    from headrace.config import ModelConfig
    from headrace.infer.batch import Batch
    from headrace.infer.inferencer import Inferencer
    from headrace.pipeline.report import RunReport

_MOST_TEXTS = 5
_PASSING = frozenset(
    (errno.EIO, errno.ESTALE, errno.ETIMEDOUT, errno.EMFILE, errno.ENFILE, errno.ENOMEM)
)
_LONG_S = 0.5  # of a unit that is worth milliseconds for its memory
_LONGEST_S, _SHORTEST_S = 60.0, 5.0  # of spans whose length nobody has given
UNITS_EACH = 16
"""For each core: the last of them keep the others waiting for a few per cent at most."""
_SAMPLE = 8


@dataclass(frozen=True, slots=True)
class Work:
    """The pipeline that every worker of a batch opens.

    Attributes:
        spec: models and tracker; sources and outputs are those of each unit.
        options: how models run; `threads` are those of one worker.
        kinds: outputs of each unit, of `folder.SUFFIXES`.
        split_s: length of the spans of videos in seconds; None splits none.
        multiple: of which the first frames of spans are.
        cpus: processor cores of one worker; None leaves that to the system.
        facts: metadata of the tables.
        columns: of the user's manifests: they stand behind the own ones in the tables.
        judged_after: frames that a worker has seen when it judges what its models find.
    """

    spec: PipelineSpec
    options: RunOptions
    kinds: tuple[str, ...] = tuple(TABLES)
    split_s: float | None = None
    multiple: int = 1
    cpus: int | None = None
    facts: Mapping[str, str] = field(default_factory=dict)
    columns: Columns = ()
    judged_after: int = FRAMES


def split_obstacle(work: Work, configs: Sequence[ModelConfig]) -> str | None:
    """Why videos of a batch cannot be split, or None if they can."""
    if work.spec.tracker is not None:
        return "a tracker follows objects from frame to frame"
    if work.options.limit is not None:
        return "--limit counts the frames of whole videos"
    if others := [kind for kind in work.kinds if kind not in TABLES]:
        return f"each input has one file of its own for {' and '.join(others)}"
    for cfg in configs:
        if cfg.interval:
            return f"interval={cfg.interval} counts the frames of whole videos ({cfg.path.name})"
    return None


def batch_multiple(configs: Sequence[ModelConfig]) -> int:
    """The multiple that keeps every batch of a split video as it is unsplit."""
    return lcm(*(max(1, cfg.batch_size) for cfg in configs))


def span_seconds(names: Sequence[str], cores: int) -> float:
    """Length of the spans of long videos where no option gives it.

    A minute; less where all inputs together are so short that cores would wait long for the last.

    Args:
        names: the inputs; of very many the first `UNITS_EACH` for each core are enough.
        cores: that share them.
    """
    if len(names) >= UNITS_EACH * cores:
        return _LONGEST_S
    sample = names[:: max(1, len(names) // _SAMPLE)]
    seconds = [video_seconds(Path(n)) for n in sample if n.lower().endswith(tuple(VIDEO_SUFFIXES))]
    whole = sum(seconds) * len(names) / len(sample)
    return min(_LONGEST_S, max(_SHORTEST_S, whole / (UNITS_EACH * cores)))


def video_spans(work: Work, path: Path, name: str) -> tuple[list[VideoSpan], str]:
    """The spans of a long video, and why it has none.

    Args:
        work: how long spans are.
        path: the video, or any other input.
        name: as the user gave it: videos elsewhere stay whole.

    Returns:
        The spans, more than one or none; a reason if it is long and has none.

    Raises:
        MediaError: it cannot be opened.
    """
    if work.split_s is None or path.suffix.lower() not in VIDEO_SUFFIXES or shown(name) != name:
        return [], ""
    seconds = 0.0 if "://" in name else video_seconds(path)
    if seconds < 2 * work.split_s:
        return [], ""
    video = video_structure(path, name)
    spans = video.spans(max(1, round(video.frames * work.split_s / seconds)), work.multiple)
    if len(spans) > 1:
        return spans, ""
    return [], video.doubt or "it has no second place to cut at"


class _UnitPipeline(Pipeline):
    """The pipeline of one unit: the worker judges its models, on the frames of many units."""

    def _conclude(self) -> None:
        pass


class Worker:
    """Opens the models of a batch, and runs units through them.

    Args:
        work: the pipeline.
        parts: folder for results that wait for their commit; None hands them back as bytes.
        names: inputs whose frames show what ends the refusal of a model.

    Attributes:
        notices: of configs and models.

    Raises:
        HeadraceError: a model cannot be opened.
    """

    def __init__(self, work: Work, parts: Path | None, names: Sequence[str] = ()) -> None:
        self._work = work
        self._parts = parts
        self._names = names
        self.notices: list[Finding] = []
        self._told: set[Finding] = set()
        self._unjudged = work.judged_after
        self._models: list[Inferencer] = []
        self._open()

    def _open(self) -> None:
        spec = self._work.spec
        where = str(spec.path) if spec.path.exists() else None
        configs, notices = numbered(spec.load_models(), where)
        try:
            for cfg in configs:
                try:
                    self._models.append(open_model(cfg, self._work.options))
                except HeadraceError as error:
                    raise self._tried(error, cfg) from error.__cause__
        except BaseException:
            self.close()
            raise
        notices = [*spec.notices, *notices]
        notices += [n for part in (*configs, *self._models) for n in part.notices]
        self.notices = list(dict.fromkeys(notices))
        self._told.update(self.notices)

    def _tried(self, error: HeadraceError, cfg: ModelConfig) -> HeadraceError:
        """Add the results of its advice on frames of the inputs to the refusal of a model."""
        options = self._work.options
        device = choose_device(options.device, cfg.gpu_id)
        load = partial(Model.load, options=options, record=Record(), device=device)
        files = [name.removeprefix("file://") for name in self._names]
        frames = frames_of_many([path for path in files if "://" not in path], FRAMES)
        return tried_refusal(error, cfg, frames, options, load, self._models)

    @property
    def models(self) -> list[Inferencer]:
        """The opened models, in their order."""
        return list(self._models)

    def close(self) -> None:
        """Close the models."""
        while self._models:
            self._models.pop().close()

    def do(self, unit: BatchUnit) -> UnitResult:
        """Run one unit; its result holds any error.

        Raises:
            HeadraceError: the models cannot be opened again after a failure.
        """
        if not self._models:
            self._open()
        started = perf_counter()
        result = UnitResult(unit, "done")
        try:
            self._fill(unit, result)
        except SpanDoubtError as error:
            result.outcome, result.error = "doubtful", f"{error:brief}"
        except StorageError as error:
            result.outcome, result.error = "storage", f"{error:brief}"
        except MediaError as error:  # a file that is broken is so the next time, too
            result.outcome, result.error = "failed", str(error)
            refused = isinstance(error.__cause__, (FileNotFoundError, PermissionError))
            unanswered = "://" in unit.input and not result.sha256 and not refused
            result.final = not unanswered and not _may_pass(error)
        except Exception as error:  # also a defect of headrace or a library: the run goes on
            kind = "" if isinstance(error, HeadraceError) else f"{type(error).__name__}: "
            result.outcome, result.error = "failed", f"{kind}{error}"
            self._models_anew()
        result.error = result.error.replace(unit.input, shown(unit.input))
        result.seconds = perf_counter() - started
        if result.seconds > _LONG_S:
            trim_heap()
        return result

    def _models_anew(self) -> None:
        """Open the models again: one that gave up on a library shall try it with the next unit."""
        self.close()
        self._open()

    def _fill(self, unit: BatchUnit, result: UnitResult) -> None:
        with self._at_hand(unit) as (path, size, digest), _named(path, unit):
            result.size_bytes, result.sha256 = size, digest
            warnings: list[str] = []
            if unit.span is None and not unit.whole:
                spans, doubt = video_spans(self._work, path, unit.input)
                if doubt:
                    warnings.append(f"not split: {doubt}")
                if spans:
                    result.outcome, result.spans = "split", tuple(spans)
                    return
            with self._folder() as folder:
                self._run(unit, path, folder, result, warnings)
        result.warnings = tuple(warnings[:_MOST_TEXTS])

    @contextmanager
    def _at_hand(self, unit: BatchUnit) -> Iterator[tuple[Path, int, str]]:
        """A local file of the input, its size in bytes and SHA-256."""
        if "://" in unit.input and not unit.input.startswith("file://"):
            with fetched(unit.input) as local_file:
                yield local_file
            return
        path = Path(unit.input.removeprefix("file://"))
        if unit.sha256:
            yield path, unit.size_bytes, unit.sha256
            return
        if path.exists() and not path.is_file():  # a pipe would be waited for without an end
            raise MediaError("is no file", where=shown(unit.input), expected="a video or image")
        with os_errors(MediaError, "cannot be read", shown(unit.input)):
            size, digest = hash_file(path)
        yield path, size, digest

    @contextmanager
    def _folder(self) -> Iterator[Path]:
        if self._parts is None:
            with tempfile.TemporaryDirectory(prefix="headrace-") as folder:
                yield Path(folder)
            return
        if not self._parts.is_dir():
            raise storage_error(FileNotFoundError(2, ""), self._parts)
        yield self._parts

    def _source(self, unit: BatchUnit, path: Path) -> Source:
        name = shown(unit.input)
        decoding: dict[str, Any] = {"threads": self._work.cpus, "gpu": gpu_of(self._models)}
        if unit.span is not None:
            source: Source = VideoSpanSource(path, name, unit.span, **decoding)
        else:
            source = open_source(str(path), **decoding)
        source.name = name
        return source

    def _run(
        self, unit: BatchUnit, path: Path, folder: Path, result: UnitResult, warnings: list[str]
    ) -> None:
        """Run the pipeline over one unit.

        Raises:
            HeadraceError: it fails; nothing of its results is left.
        """
        name = f"{unit.id}-{os.getpid()}"
        files = {k: folder / f"{name}-{k}{SUFFIXES[k]}" for k in self._work.kinds}
        others = {kind: file for kind, file in files.items() if kind not in TABLES}
        sinks = tuple(SinkSpec(kind=kind, path=file) for kind, file in others.items())
        source = self._source(unit, path)
        uri = quoted(source.name, limit=None)  # for messages: the source is open
        spec = self._work.spec.changed(sources=(SourceSpec(uri=uri),), sinks=sinks)
        try:
            assembly = Assembling(
                spec=spec,
                options=self._work.options,
                stages=[*self._models, _renaming(source.name)],
                opened={0: source},
                sinks=[self._table(k, f, unit) for k, f in files.items() if k in TABLES],
                kind=_UnitPipeline,
            ).assemble()
            try:
                report = assembly.pipeline.run()
            finally:
                assembly.close()
            self._judge(report)
            for file in files.values():
                _to_disk(file)
        except (MediaError, OSError) as error:
            self._remove(files)
            raise _of_storage(error, folder) or error from error
        except BaseException:
            self._remove(files)
            raise
        finally:
            source.close()
        result.frames = report.frames
        result.objects = sum(report.objects.values())
        of_models = {n for model in self._models for n in model.notices}
        rest = [n for n in report.notices if n.level == "warning" and n not in of_models]
        result.notices = self._news(report.frames) + self._first_ones(rest)
        warnings += [f"{n:brief}" for n in rest]
        if self._parts is None:
            result.files = {kind: file.read_bytes() for kind, file in files.items()}
        else:
            result.files = dict(files)

    def _news(self, frames: int) -> tuple[Finding, ...]:
        """Return the new warnings of the models, which are judged when they have seen enough."""
        if 0 < self._unjudged <= frames:
            for model in self._models:
                model.conclude()
        self._unjudged = max(0, self._unjudged - frames)
        warnings = [n for m in self._models for n in m.notices if n.level == "warning"]
        news = tuple(n for n in dict.fromkeys(warnings) if n not in self._told)
        self._told.update(news)
        return news

    def _first_ones(self, warnings: Iterable[Finding]) -> tuple[Finding, ...]:
        """Return the first of each code: each file's own stand in the manifest."""
        news = {n.code: n for n in reversed(list(warnings))}
        known = {n.code for n in self._told}
        firsts = tuple(n for code, n in news.items() if code not in known)
        self._told.update(firsts)
        return firsts

    def _table(self, kind: str, file: Path, unit: BatchUnit) -> Sink:
        """A sink of rows: for images Arrow, which takes a tenth of the time and is packed later."""
        photo = Path(unit.input.split("?")[0]).suffix.lower() in IMAGE_SUFFIXES
        objects, frames = (ArrowSink, FrameArrowSink) if photo else (ParquetSink, FrameParquetSink)
        constants = constants_of(self._work.columns, unit.values)
        sink = objects if kind == "parquet" else frames
        return sink(str(file), file, metadata=self._work.facts, constants=constants)

    def _remove(self, files: dict[str, Path]) -> None:
        for file in files.values():
            with suppress(OSError):
                file.unlink(missing_ok=True)

    def _judge(self, report: RunReport) -> None:
        """Refuse results that a failing parser or plugin has left out.

        Raises:
            HeadraceError: there are such.
        """
        error = without_results(report)
        lost = []
        for model in report.models:
            crashed = sum(model.results.get(key, 0) for key in ("crashed", "no_memory"))
            if model.failed:
                lost.append(f"{model.failed} of {model.inferred} outputs of {model.name} could "
                            "not be parsed")  # fmt: skip
            if crashed:
                lost.append(f"{crashed} items of {model.name} were lost")
        if error is None and not lost:
            return
        why = [str(n) for m in self._models for n in m.notices if n.level == "warning"]
        text = f"{error:brief}" if error is not None else "; ".join(lost)
        kind = HeadraceError if error is None else type(error)
        raise kind(text, fix=list(dict.fromkeys(why))[-_MOST_TEXTS:])


@contextmanager
def _named(path: Path, unit: BatchUnit) -> Iterator[None]:
    """Give errors the name of the input in place of that of its copy.

    Raises:
        MediaError: what was raised, about the input.
    """
    try:
        yield
    except MediaError as error:
        if type(error) is not MediaError or error.where != str(path):
            raise
        raise MediaError(error.finding, where=shown(unit.input)) from error.__cause__


def _renaming(name: str) -> Callable[[Batch], None]:
    """A probe that gives results the user's name of the source instead of the opened path."""

    def rename(batch: Batch) -> None:
        for meta in batch.metas:
            meta.source = name

    return rename


def _may_pass(error: MediaError) -> bool:
    """True if the system had no answer or no room: another attempt may succeed."""
    return isinstance(error.__cause__, OSError) and error.__cause__.errno in _PASSING


def _to_disk(path: Path) -> None:
    """Bring a file to the disk, so that its name never goes before its content."""
    with suppress(FileNotFoundError), open(path, "rb") as file:  # a video without frames
        os.fsync(file.fileno())


def _of_storage(error: MediaError | OSError, folder: Path) -> StorageError | None:
    """The error of a result that could not be written; None if it is about the input."""
    text = str(folder)
    if isinstance(error, OSError):
        return storage_error(error, folder) if text in str(error.filename) else None
    if error.where is None or text not in error.where:
        return None
    cause: Any = error.__cause__
    if isinstance(cause, OSError):
        return storage_error(cause, folder)
    return StorageError(error.finding, where=str(folder), code=StorageError.code)


def with_threads(work: Work, threads: int) -> Work:
    """The same work for workers of so many cores each; the engines are built already."""
    return replace(
        work, options=replace(work.options, threads=threads, rebuild=False), cpus=threads
    )
