"""A whole pipeline in one call, as `headrace run` on the command line."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from os import PathLike, fspath
from os.path import abspath
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace._core.errors import HeadraceError
from headrace._core.findings import Finding
from headrace._core.notices import refuse_warnings, warn_of
from headrace._core.urls import url_name, url_scheme
from headrace.config import ModelConfig, is_pipeline_file, load_pipeline
from headrace.config.overrides import GivenKey, Overrides, distributed
from headrace.config.pipeline_keys import MESSAGE_SCHEMES
from headrace.config.pipeline_spec import (
    ModelSpec,
    PipelineSpec,
    SinkSpec,
    SourceSpec,
    TrackerSpec,
)
from headrace.infer.run_options import RunOptions
from headrace.media import Sink, Source
from headrace.media.names import IMAGE_SUFFIXES
from headrace.media.sinks.opening import split_spec, url_of
from headrace.pipeline.assembly import Assembling
from headrace.pipeline.outlet import Route
from headrace.pipeline.pipeline import Pipeline
from headrace.pipeline.report import without_results
from headrace.pipeline.stage import is_stage, is_tracker
from headrace.pipeline.stage_order import after_primaries

if TYPE_CHECKING:
    from headrace.config.enums import Generation
    from headrace.config.profile import Profile
    from headrace.custom.guard import GuardMode
    from headrace.infer.inferencer import Inferencer
    from headrace.infer.run_options import Abi, Palette
    from headrace.media.draw import Painter
    from headrace.meta import FrameMeta
    from headrace.pipeline.analytics import AnalyticsRules
    from headrace.pipeline.stage import Probe
    from headrace.pipeline.track import Tracker

_WHERE = "open_pipeline"


def pipeline_spec(
    base: PipelineSpec | None = None,
    *,
    configs: Sequence[str | Path] | None = None,
    sources: Sequence[str] = (),
    outputs: Sequence[str] = (),
    tracker: str | None = None,
    analytics: str | PathLike[str] | None = None,
    keep_open: bool = False,
    append: bool = False,
) -> PipelineSpec:
    """A pipeline from words, as a command line has them; each argument replaces that of `base`.

    Args:
        base: None begins with nothing.
        configs: paths of nvinfer configs, in the order in which they run.
        sources: as `open_source` takes them.
        outputs: paths or `kind:path`, as `open_sink` takes them.
        tracker: as `open_tracker` takes it.
        analytics: path of a config file of `nvdsanalytics`.
        keep_open: True for one that goes on without sources.
        append: True empties no output of an earlier run.

    Raises:
        ConfigError: there is no source.
    """
    changes: dict[str, Any] = {}
    if configs is not None:
        changes["models"] = tuple(ModelSpec(config=Path(name)) for name in configs)
    if sources:
        changes["sources"] = tuple(map(SourceSpec.given, sources))
    if outputs:
        changes["sinks"] = tuple(map(_sink_spec, outputs))
    if tracker is not None:
        changes["tracker"] = _tracker_spec(tracker)
    if analytics is not None:
        changes["analytics"] = Path(analytics)
    if keep_open:
        changes["keep_open"] = True
    if append:
        changes["append"] = True
    if base is None:
        return PipelineSpec(**{"sources": (), **changes})
    spec = base.changed(**changes) if changes else base
    written = {_place(sink) for sink in spec.sinks}
    replaced = [sink for sink in base.sinks if sink.text and _place(sink) not in written]
    if not replaced:
        return spec
    text = "{outputs}: not written, the outputs that are given take the place of the file's"
    data = {"outputs": ", ".join(str(sink.text) for sink in replaced)}
    brokers = any(sink.uri and url_scheme(sink.uri) in MESSAGE_SCHEMES for sink in replaced)
    notice = Finding(
        "outputs-replaced",
        "warning" if brokers else "info",
        text,
        str(base.path),
        data,
        remedies=("give each that shall stay as -o, too",),
    )
    return spec.with_notice(notice)


def _place(sink: SinkSpec) -> str:
    """The file or address of an output, without its options."""
    if sink.uri is not None:
        return url_name(sink.uri).partition("?")[0]
    return abspath(str(sink.path).partition("?")[0])


def _sink_spec(text: str) -> SinkSpec:
    kind, path = split_spec(text)
    if (url := url_of(text)) is not None:
        return SinkSpec(kind=kind, uri=url)
    return SinkSpec(kind=kind, path=path)


def _tracker_spec(text: str) -> TrackerSpec:
    if text.endswith((".yml", ".yaml")):
        return TrackerSpec(config=Path(text))
    from headrace._core.named_settings import split_settings

    name, settings = split_settings(text)
    return TrackerSpec(name=name, settings=settings)


def open_pipeline(
    *stages: str | PathLike[str] | PipelineSpec | ModelConfig | Inferencer | Tracker | Probe,
    sources: str | PathLike[str] | int | Source | Sequence[str | PathLike[str] | int | Source] = (),
    tracker: str | PathLike[str] | Tracker | None = None,
    analytics: str | PathLike[str] | AnalyticsRules | None = None,
    outputs: str | PathLike[str] | Sink | Sequence[str | PathLike[str] | Sink | Route] = (),
    append: bool = False,
    on_result: Callable[[FrameMeta], None] | None = None,
    painter: Painter | None = None,
    strict: bool = False,
    threads: int | None = None,
    streams: int | None = None,
    device: str = "auto",
    limit: int | None = None,
    abi: Abi | None = None,
    guard: GuardMode | None = None,
    guard_env: str | None = None,
    profile: Profile | None = None,
    generation: Generation | None = None,
    palette: Palette = "auto",
    rebuild: bool = False,
    parser: Callable[..., Any] | None = None,
    conf: float | None = None,
    labels: str | PathLike[str] | None = None,
    **keys: Any,
) -> Pipeline:
    """Open everything that `headrace run` would, by the same rules, and give the pipeline.

        with headrace.open_pipeline("pgie.txt", sources="video.mp4", tracker="iou") as pipeline:
            for frame, meta in pipeline:
                print(meta)

    The pipeline closes what was opened here when it ends. Warnings, and only they, are shown by
    Python's `warnings` as `HeadraceWarning`: those of the opening now, those of the run at its end;
    `pipeline.notices` has everything. If the opening fails, they are shown before its error, whose
    `notices` has everything until then.

    Args:
        stages: in the order in which they run: paths of nvinfer configs or of bare models
            (`.onnx`), `ModelConfig`s, opened models and trackers, and probes: functions that are
            called with each `Batch`. Or, in the first place, a pipeline file or `PipelineSpec`;
            then only probes may follow.
        sources: video files, images, folders or patterns of images, URLs, cameras (0 is
            /dev/video0), or opened sources such as `ArraySource`. Those of a pipeline file are
            replaced.
        tracker: as `open_tracker` takes it, or an opened one; it works behind the last primary
            model, before the probes that follow there.
        analytics: regions and lines to count at: the path of a config file of `nvdsanalytics`, or
            rules; they work behind the tracker.
        outputs: paths or `kind:path`; `{source}` and `{id}` in them make one for each source.
            Opened sinks are taken too.
        append: True empties no output of an earlier run: it goes on, or takes the next number.
        on_result: called with each frame's metadata, in order, when all stages are done with it.
        painter: draws for the outputs that show pixels; None is what the pipeline file says, or the
            defaults.
        strict: refuse warnings of the opening, before an output is created.
        threads: CPU threads of each engine; None is one per core.
        streams: batches that each engine runs at once, sharing its threads; None is what it was
            tuned for, else one per thread, at most 4, and 1 for live sources.
        device: where engines run and videos are decoded: `auto` takes an NVIDIA GPU that is there
            and that the runtime can use; `cpu`, `cuda`, `cuda:N`.
        limit: frames of each source.
        abi: bytes per box of a C++ parser, `24` (DeepStream 5 to 8), `28` (9) or `auto`, which
            detects it; None takes each config's `custom-lib-abi`.
        guard: whether custom libraries run in worker processes, so that their crashes are survived:
            `auto` guards C++ libraries that are not trusted yet, `always` guards Python files, too,
            `never` guards none; None takes each config's `custom-lib-guard`.
        guard_env: variables of the environment, separated by commas, for libraries in worker
            processes: `NAME` passes what looks like a credential, `-NAME` holds another one back,
            `*` and `?` stand for letters; None takes each config's `custom-lib-guard-env`.
        profile: whose rules apply where the configs' keys leave them open: `nvinfer` for those of
            the original, `modern` for those that models are trained with; None takes each config's
            `profile`.
        generation: whose rules apply where releases of the original differ, `9.1` or `6.2`; a
            config without `gie-unique-id` is refused, as there. None: those of `9.1`, and the first
            free number.
        palette: box colours: `auto` gives each class its own where the config sets none, `config`
            takes exactly the config's; a `painter` has its own.
        rebuild: build engines even if valid ones are saved.
        parser: a function `(layers, network, params)` instead of the parser of the only config.
        conf: smallest confidence, 0 to 1, of the only config: sets the threshold that decides for
            its network type.
        labels: label file instead of the only config's.
        keys: keys that win over the only config's, with `_` for `-`, of `[class-attrs-all]` too; of
            a class: `**{"class-attrs-2.topk": 5}`. None leaves the config's. Paths are relative to
            the working directory. Of several configs, set them on each:
            `ModelConfig.load(path).with_overrides(conf=0.4)`.

    Raises:
        HeadraceError: whatever is wrong, with nothing left open or half-written.
        StrictError: `strict`, and there was a warning.
    """
    try:
        run, settings = RunOptions.of(open_pipeline, locals())
        base, items = _stages(stages, settings, run)
    except HeadraceError as error:
        warn_of(error.notices)
        raise
    inputs = [s if isinstance(s, Source) else fspath(s) for s in _listed(_cameras(sources))]
    outs = _listed(outputs)
    if not inputs and base is None:
        fix = 'sources="video.mp4"; for images in memory sources=headrace.ArraySource(images)'
        raise HeadraceError("there is no source", where=_WHERE, fix=fix)
    if tracker is not None and is_tracker(tracker):
        items.insert(after_primaries(items), tracker)
        named = None
    else:
        named = None if tracker is None else fspath(tracker)  # type: ignore[arg-type]
    path = analytics if isinstance(analytics, str | PathLike) else None
    rules = None if isinstance(analytics, str | PathLike) else analytics
    spec = pipeline_spec(
        base,
        sources=[s.name if isinstance(s, Source) else s for s in inputs],
        outputs=[fspath(out) for out in outs if isinstance(out, (str, PathLike))],
        tracker=named,
        analytics=path,
        append=append,
    )

    def ready(notices: list[Finding]) -> None:
        notices += _images_one_by_one(inputs)
        if strict:
            refuse_warnings(notices)
        warn_of(notices)

    try:
        assembly = Assembling(
            spec=spec,
            options=run,
            stages=items,
            rules=rules,
            opened={i: s for i, s in enumerate(inputs) if isinstance(s, Source)},
            sinks=[out for out in outs if not isinstance(out, (str, PathLike))],
            painter=painter,
            on_ready=ready,
            on_result=on_result,
            kind=_Opened,
        ).assemble()
    except HeadraceError as error:
        warn_of(error.notices)
        raise
    return assembly.pipeline


class _Opened(Pipeline):
    """A pipeline that owns its parts: it shows their warnings at the end."""

    def _finish(self) -> None:
        super()._finish()
        if sys.is_finalizing():
            return
        if self._error is None:
            self._error = without_results(self.report)
        try:
            warn_of([n for n in self.report.notices if n not in self._decided])
        except Warning as warning:  # the filters of `warnings` make errors of them
            self._error = self._error or warning


def _cameras(sources: object) -> Any:
    """Sources with those of numbers as the names of cameras."""
    if isinstance(sources, list | tuple):
        return [_cameras(source) for source in sources]
    number = isinstance(sources, int) and not isinstance(sources, bool)
    return f"camera:{sources}" if number else sources


def _listed(items: object) -> list[Any]:
    """One thing or several as a list; an array is one thing."""
    if isinstance(items, (str, PathLike, Source, Sink, Route)):
        return [items]
    entries = (
        list(items) if isinstance(items, Iterable) and not hasattr(items, "dtype") else [items]
    )
    for item in entries:
        if not isinstance(item, (str, PathLike, Source, Sink, Route)):
            raise HeadraceError(
                f"{type(item).__name__} is neither a source nor an output",
                where=_WHERE,
                expected="a path, a URL, or something opened",
                fix="images in memory: sources=headrace.ArraySource(images)",
            )
    return entries


def _stages(
    stages: Sequence[object], keys: Sequence[GivenKey], run: RunOptions
) -> tuple[PipelineSpec | None, list[Any]]:
    """The pipeline file in the first place, if it is one, and all stages with configs loaded.

    `keys` is set over the only config; the parser of `run` is its parser.
    """
    parser = run.parser
    base: PipelineSpec | None = None
    items: list[object] = []
    for index, stage in enumerate(stages):
        if isinstance(stage, (str, PathLike)):
            path = Path(stage)
            if _is_media(fspath(stage)):
                raise HeadraceError(
                    f"{fspath(stage)} is a source, not a config or a model",
                    where=_WHERE,
                    fix=f"sources={fspath(stage)!r}",
                )
            if index == 0 and path.is_file() and is_pipeline_file(path):
                base = load_pipeline(path, generation=run.generation)
            else:
                items.append(ModelSpec(config=path))
        elif isinstance(stage, PipelineSpec) and index == 0:
            base = stage
        else:
            items.append(stage)
    if parser is not None:
        keys = [*keys, GivenKey(None, Overrides(), ("parser", ""))]
    if base is None:
        return None, _loaded(items, keys, parser)
    if any(isinstance(item, ModelConfig | ModelSpec) or is_stage(item) for item in items):
        raise HeadraceError(
            "a pipeline file names its models itself",
            where=_WHERE,
            expected="nothing but probes behind it",
        )
    return base, [*base.with_models_overridden(keys).load_models(), *items]


def _is_media(name: str) -> bool:
    """Whether a path or URL names images."""
    from mimetypes import guess_type

    kind = guess_type(name)[0] or ""
    images = Path(name).suffix.lower() in IMAGE_SUFFIXES or kind.startswith("video/")
    return images or "://" in name or Path(name).is_dir()


def _loaded(items: Sequence[Any], keys: Sequence[GivenKey], parser: Any) -> list[Any]:
    """Load the configs among the stages, and set the given keys over the one they are for."""
    configs = [item for item in items if isinstance(item, ModelSpec | ModelConfig)]
    names = [c.config.name if isinstance(c, ModelSpec) else c.path.name for c in configs]
    parts = iter(distributed(keys, names))
    loaded = []
    for item in items:
        if isinstance(item, ModelSpec):
            part = next(parts).with_parser(item.config, parser)
            loaded.append(item.overridden(part).load())
        else:
            loaded.append(next(parts).on(item) if isinstance(item, ModelConfig) else item)
    return loaded


def _images_one_by_one(sources: Sequence[str | Source]) -> list[Finding]:
    images = [s for s in sources if isinstance(s, str) and Path(s).suffix.lower() in IMAGE_SUFFIXES]
    if len(images) < 2:
        return []
    text = (
        f"each of {len(images)} images is a source of its own; "
        "a folder or a pattern (photos/*.jpg) makes one source of them"
    )
    return [Finding("sources-many", "warning", text, _WHERE)]
