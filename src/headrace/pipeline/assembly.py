"""From a pipeline file or a command line to a `Pipeline` that is ready to run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace._core.errors import (
    ConfigError,
    EngineError,
    HeadraceError,
    MediaError,
    ParserError,
    PluginError,
)
from headrace._core.findings import Finding
from headrace._core.notices import notices_on_errors
from headrace.config import ModelConfig
from headrace.config.enums import NetworkType, ProcessMode
from headrace.config.origin import OVERRIDE
from headrace.engine.device import Device, check_device_name, choose_device, lanes_of_one
from headrace.infer.inferencer import Inferencer
from headrace.infer.run_options import RunOptions
from headrace.media import (
    check_sinks,
    expand_sink_path,
    open_sink,
)
from headrace.media.sinks.naming import has_placeholder
from headrace.media.sources.base import FailedSource
from headrace.pipeline.decoder_memory import DecoderMemory
from headrace.pipeline.outlet import Route
from headrace.pipeline.pipeline import Pipeline, check_limit
from headrace.pipeline.segment import segments_of
from headrace.pipeline.source_opening import decoding_device, devices_of, open_listed
from headrace.pipeline.stage import is_stage, is_tracker

if TYPE_CHECKING:
    from headrace.config.pipeline_spec import PipelineSpec, TilerSpec
    from headrace.media import Frame, Sink, Source
    from headrace.media.draw import Tiler
    from headrace.meta import FrameMeta
    from headrace.pipeline.analytics import AnalyticsRules
    from headrace.pipeline.report import RunReport
    from headrace.pipeline.track import Tracker


@dataclass(slots=True)
class Assembly:
    """Everything of a run that has to be closed or reported.

    Attributes:
        pipeline: ready to run.
        inferencers: in the order they run.
        notices: what was decided so far.
    """

    pipeline: Pipeline
    inferencers: list[Any]
    notices: list[Finding] = field(default_factory=list)

    def close(self) -> None:
        """Release the engines, and everything else if it has not run."""
        self.pipeline.close()


def assemble(
    spec: PipelineSpec,
    options: RunOptions | None = None,
    *,
    stages: Sequence[Any] | None = None,
    rules: AnalyticsRules | None = None,
    opened: Mapping[int, Source] | None = None,
    share: tuple[int, int] = (0, 1),
    sinks: Sequence[Sink | Route] = (),
    painter: Any = None,
    on_stage: Callable[[str], None] = lambda _: None,
    on_ready: Callable[[list[Finding]], None] = lambda _: None,
    on_result: Callable[[FrameMeta], None] | None = None,
    kind: type[Pipeline] = Pipeline,
) -> Assembly:
    """Open sources, load models and tracker, open sinks, in this order.

    Outputs are checked by name before anything is opened, and created last, when nothing else can
    fail. The tracker comes behind the last primary model.

    Args:
        spec: the pipeline.
        options: how it runs.
        stages: what runs instead of the models of `spec`, in order: configs, opened models,
            trackers, probes.
        rules: what is counted instead of the rules of `spec.analytics`.
        opened: sources that stand for those of `spec`, by place; closed by the pipeline.
        share: (place, number) takes every `number`-th source only, from `place` on; the others are
            those of other processes.
        sinks: more outputs, opened already.
        painter: draws instead of what `spec.osd` says.
        on_stage: called with each step that begins, in words.
        on_ready: called with everything decided, before an output is created; may raise to refuse.
        on_result: called with each frame's metadata, in order.
        kind: what to make.

    Raises:
        HeadraceError: whatever is wrong, with nothing left open or half-written; with the notices
            that `on_ready` was not called with.
    """
    options, opened = options or RunOptions(), opened or {}
    where = str(spec.path) if spec.path.exists() else None
    items, notices = numbered(spec.load_models() if stages is None else stages, where)
    configs = [item for item in items if isinstance(item, ModelConfig)]
    inputs = _inputs(spec, configs)
    notices = [*spec.notices, *notices]
    untold = [*notices, *(n for cfg in configs for n in cfg.notices)]
    with notices_on_errors(untold), ExitStack() as undo:
        check_sinks([s.text for s in spec.sinks if s.text], inputs)
        check_limit(options.limit)
        segments_of([item for item in items if not isinstance(item, ModelConfig)])  # may refuse
        check_device_name(options.device)
        computing = list(_opened_on(items, options.device))
        devices = [choose_device(options.device, cfg.gpu_id) for cfg in configs]
        told = [n for device in devices for n in device.notices]
        notices += told
        untold += told
        devices = [replace(device, notices=()) for device in devices]  # told once
        on_stage("opening source")
        sources: list[Source] = []
        several = spec.keep_open or len(spec.opened_sources) > 1
        memory = DecoderMemory(len(spec.opened_sources))
        for number, source_spec in list(enumerate(spec.opened_sources))[share[0] :: share[1]]:
            if number in opened:
                sources.append(opened[number])
                sources[-1].source_id = number
            else:
                decoder = decoding_device(source_spec, options.device, [*computing, *devices])
                notices += decoder.notices
                untold += decoder.notices
                opening = open_listed(source_spec, number, several, memory, decoder.gpu)
                sources.append(undo.enter_context(opening))
        alone = not spec.keep_open and share[1] == 1
        if alone and all(isinstance(s, FailedSource) for s in sources):
            next(sources[0])  # raises
        own: list[Any] = []
        for place, item in enumerate(items):
            if isinstance(item, ModelConfig):
                on_stage(f"loading or building engine: {item.path.name}")
                live = spec.keep_open or any(s.live for s in sources)
                device = devices[configs.index(item)]
                items[place] = undo.enter_context(open_model(item, options, device, live=live))
                own.append(items[place])
                untold += items[place].notices
        inferencers = [item for item in items if is_stage(item)]
        tracker = tracker_of(spec)
        if tracker is not None:
            own.append(tracker)
            items.insert(after_primaries(items), tracker)
        counting = _analytics(spec, rules)
        if counting is not None:
            items.insert(behind_tracker(items), counting)
        for part in (*items, *sources):
            notices += getattr(part, "notices", ())
        notices = list(dict.fromkeys(notices))
        untold.clear()
        on_ready(notices)
        engines = [path for i in inferencers if (path := getattr(i, "engine_path", None))]
        routes = _routes(spec, sources, [*inputs, *engines], undo)
        tiler = _tiler(spec.tiler) if several and any(r.tiled for r in routes) else None
        shown = [r.sink for r in routes] + [s.sink if isinstance(s, Route) else s for s in sinks]
        if painter is None and any(sink.needs_pixels for sink in shown):
            painter = _painter(spec, options)
        pipeline = kind(
            sources,
            items,
            [*routes, *sinks],
            painter=painter,
            limit=options.limit,
            on_result=on_result,
            batch_timeout_s=spec.batch_timeout_s,
            batch_size=spec.batch_size,
            tiler=tiler,
            owned=own,
            notices=notices,
            keep_open=spec.keep_open,
        )
        undo.pop_all()
    return Assembly(pipeline, inferencers, notices)


def _opened_on(items: Sequence[Any], asked: str) -> Iterator[Device]:
    """Where the opened models among `items` compute.

    Raises:
        ConfigError: another device was asked for.
    """
    for item, device in devices_of(items):
        if asked not in ("auto", device.name, device.name.partition(":")[0]):
            name = getattr(item, "name", item)
            raise ConfigError(
                f"device={asked!r}: {name} computes on {device.name} already",
                fix=f"open it with device={asked!r}, or leave device out",
            )
        yield device


def without_results(report: RunReport) -> HeadraceError | None:
    """The error of a run in which a model had no results at all.

    Either none of its outputs could be parsed, or every batch was lost.
    """
    for model in report.models:
        if model.inferred and model.failed == model.inferred:
            one = model.inferred == 1
            what = "the only output" if one else f"none of the {model.inferred} outputs"
            return ParserError(
                f"{what} of {model.name} could {'not ' * one}be parsed",
                fix="the warning above says why; headrace show CONFIG lists what the model outputs",
            )
        crashed, starved = (model.results.get(k, 0) for k in ("crashed", "no_memory"))
        if crashed + starved and not model.inferred:
            kind, why = (
                (PluginError, "a plugin failed in each batch")
                if crashed
                else (EngineError, "there was no memory for the outputs of any batch")
            )
            return kind(
                f"none of the {crashed + starved} item(s) of {model.name} was inferred: {why}",
                fix="the warning above says more",
            )
    return None


def after_primaries(items: Sequence[Any]) -> int:
    """Where a tracker belongs: behind the last primary model, a config or an opened one."""
    places = [
        i
        for i, item in enumerate(items, 1)
        if (isinstance(item, ModelConfig) and item.process_mode is ProcessMode.PRIMARY)
        or (is_stage(item) and not getattr(item, "secondary", False))
    ]
    return places[-1] if places else 0


def behind_tracker(items: Sequence[Any]) -> int:
    """Where analytics belong: behind the last tracker, or else where one would stand."""
    trackers = [i for i, item in enumerate(items, 1) if is_tracker(item) and not is_stage(item)]
    return max([after_primaries(items), *trackers])


def numbered(stages: Sequence[Any], where: str | None) -> tuple[list[Any], list[Finding]]:
    """The stages, each config with an id of its own as far as the files leave that open.

    Args:
        stages: configs, opened models, trackers and probes, in order.
        where: the pipeline file, for the notices; None without one.
    """
    items, notices = _bare_in_order(stages), []
    named: dict[int, list[str]] = {}
    for item in items:
        cfg = item if isinstance(item, ModelConfig) else getattr(item, "config", None)
        if isinstance(cfg, ModelConfig):
            fixed = cfg.gie_unique_id if cfg is item else cfg.component_id
            if fixed is not None and not _is_bare(item, "gie_unique_id"):
                named.setdefault(fixed, []).append(cfg.path.name)
    free = (i for i in range(1, 1000) if i not in named)
    for place, cfg in enumerate(items):
        if _is_bare(cfg, "gie_unique_id"):
            items[place] = cfg.with_overrides(gie_unique_id=next(free))
        elif isinstance(cfg, ModelConfig) and cfg.gie_unique_id is None:
            number = next(free)
            items[place] = cfg.with_overrides(gie_unique_id=number)
            text = f"gie-unique-id is absent: {number} is used"
            notices.append(Finding("unique-id-absent", "info", text, str(cfg.path)))
    for number, names in named.items():
        if len(names) > 1:
            text = f"gie-unique-id={number} in {' and '.join(names)}: their results cannot be told"
            notices.append(Finding("unique-id-twice", "warning", f"{text} apart", where))
    notices += idle_models(items)
    return items, notices


def _is_bare(item: Any, field: str) -> bool:
    """Whether an item is a bare model's config that leaves a field to the pipeline."""
    return isinstance(item, ModelConfig) and item.origin(field).kind == "model"


def _bare_in_order(stages: Sequence[Any]) -> list[Any]:
    """The stages; bare classifiers behind a model that finds objects work on these."""
    items, finds = list(stages), False
    for place, item in enumerate(items):
        cfg = item if isinstance(item, ModelConfig) else getattr(item, "config", None)
        if not isinstance(cfg, ModelConfig):
            continue
        classifies = cfg.network_type is NetworkType.CLASSIFIER
        if finds and classifies and _is_bare(item, "process_mode"):
            text = "a classifier behind a detector: it works on the objects found (process-mode=2)"
            notice = Finding("classifier-of-objects", "info", text, str(cfg.path))
            mode = {"process_mode": ProcessMode.SECONDARY}
            items[place] = cfg.changed(mode, {"process_mode": OVERRIDE}, [notice])
        finds = finds or cfg.network_type in _FINDS_OBJECTS
    return items


def _inputs(spec: PipelineSpec, configs: Sequence[ModelConfig]) -> list[str | Path]:
    """Everything the run reads: no output may overwrite it."""
    read: list[str | Path] = [spec.path, *(s.uri for s in spec.sources)]
    if spec.tracker is not None and spec.tracker.config is not None:
        read.append(spec.tracker.config)
    if spec.analytics is not None:
        read.append(spec.analytics)
    for cfg in configs:
        read += [cfg.path, *(value for value in cfg.values().values() if isinstance(value, Path))]
    return read


def open_model(
    cfg: ModelConfig,
    options: RunOptions,
    device: Device | None = None,
    *,
    live: bool = False,
) -> Inferencer:
    """Open one model as a run does.

    Args:
        cfg: its config, numbered already.
        options: of the run.
        device: where it runs; None chooses by the options.
        live: whether frames come in real time.

    Raises:
        HeadraceError: see `Inferencer.from_config`.
    """
    device = device or choose_device(options.device, cfg.gpu_id)
    streams = options.streams
    if live and streams is None and not device.is_gpu:
        streams = 1
    if device.is_gpu and streams is None and options.sharing > 1:
        streams = lanes_of_one(options.sharing)
    return Inferencer.open(cfg, replace(options, streams=streams), device)


def _analytics(spec: PipelineSpec, rules: AnalyticsRules | None) -> Tracker | None:
    """Open analytics with the given rules, or else those of the spec's file; None without any.

    Raises:
        ConfigError: the file cannot be read.
    """
    if rules is None and spec.analytics is None:
        return None
    from headrace.pipeline.analytics import Analytics, load_rules

    if rules is None and spec.analytics is not None:
        rules = load_rules(spec.analytics)
    return None if rules is None else Analytics(rules)


def tracker_of(spec: PipelineSpec) -> Tracker | None:
    """Open the tracker of a pipeline; None if it names none.

    Raises:
        HeadraceError: see `headrace.pipeline.track.open_tracker`.
    """
    if spec.tracker is None:
        return None
    from headrace.pipeline.track import open_tracker

    return open_tracker(spec.tracker.config or spec.tracker.text, **spec.tracker.options)


def _painter(spec: PipelineSpec, options: RunOptions) -> Any:
    if not spec.osd.show:
        return _Undrawn()
    from headrace.media.draw import Painter

    return Painter.from_spec(spec.osd, palette=options.palette)


def _tiler(spec: TilerSpec | None) -> Tiler:
    from headrace.media.draw import Tiler

    return Tiler() if spec is None else Tiler(spec.rows, spec.columns, spec.width, spec.height)


class _Undrawn:
    """Pictures as they come."""

    def draw(self, frame: Frame, meta: FrameMeta) -> Frame:
        return frame


def _routes(
    spec: PipelineSpec, sources: Sequence[Source], taken: Sequence[str | Path], undo: ExitStack
) -> list[Route]:
    """Open the sinks; each is finished early if a later one cannot be opened."""
    routes: list[Route] = []
    inputs = list(taken)
    fps = next((s.fps for s in sources if s.fps), None)
    several = spec.keep_open or len(sources) > 1

    def add(text: str, only: int | None, rate: float | None) -> Sink:
        files = [file for source in sources for file in getattr(source, "files", ())]
        images = [file for file in files if text.endswith(file.name)]
        sink = open_sink(
            text, inputs=[*inputs, *images], fps=rate, sources=sources if only is None else ()
        )
        undo.callback(_abort, sink)
        inputs.append(sink.path)
        tiled = several and only is None and sink.needs_pixels
        if spec.tiler is None and sink.kind != "video":
            tiled = False  # folders of pictures hold those of every source
        routes.append(Route(sink, only, tiled))
        return sink

    for sink_spec in spec.sinks:
        text = sink_spec.text
        if text is None:
            continue
        only = None
        if sink_spec.source is not None:
            only = spec.source_index(sink_spec)
        if has_placeholder(text):
            if spec.keep_open:
                raise MediaError(
                    "this is one output for each source, and sources come and go",
                    where=str(sink_spec.origin("path").where or text),
                    fix="one output for all: a name without {source} and {id}",
                )
            for source in sources if only is None else [sources[only]]:
                expanded = expand_sink_path(text, source, sources)
                add(expanded, source.source_id, source.fps)
        else:
            add(text, only, fps if only is None else sources[only].fps)
    return routes


def _abort(sink: Sink) -> None:
    with suppress(Exception):
        sink.abort("the run could not start")


_FINDS_OBJECTS = (NetworkType.DETECTOR, NetworkType.INSTANCE_SEGMENTATION)


def idle_models(stages: Sequence[Any]) -> list[Finding]:
    """A warning for each model that works on objects, or on tensors, that nothing before it makes.

    Args:
        stages: configs, opened models, trackers and probes, in order. What follows a probe, or a
            model without a config, is not judged: that may make objects of any component.
    """
    notices: list[Finding] = []
    makers: dict[int, int] = {}  # component -> its number of classes
    for item in stages:
        cfg = item if isinstance(item, ModelConfig) else getattr(item, "config", None)
        if not isinstance(cfg, ModelConfig):
            if is_tracker(item) and not is_stage(item):
                continue
            return notices
        if cfg.input_tensor_from_meta:
            text = (
                "input-tensor-from-meta=1 without tensors: no function before the model adds them,"
            )
            where = str(cfg.origin("input_tensor_from_meta"))
            text += " so nothing is inferred"
            notices.append(Finding("tensors-from-nowhere", "warning", text, where))
        secondary = cfg.process_mode is ProcessMode.SECONDARY
        makes = cfg.network_type in _FINDS_OBJECTS
        if secondary and not cfg.input_tensor_from_meta:
            wanted = cfg.operate_on_gie_id
            # a detector does not work on what it has found itself
            before = {c: n for c, n in makers.items() if not makes or c != cfg.component_id}
            if not before or (wanted > -1 and wanted not in before):
                key = "process_mode"
                text = "process-mode=2, and no model before it finds objects: nothing is inferred"
                if before:
                    key = "operate_on_gie_id"
                    ids = ", ".join(map(str, sorted(before)))
                    text = f"operate-on-gie-id={wanted}, and no model before it has that"
                    text += f" gie-unique-id and finds objects (those that do: {ids}): nothing"
                    text += " is inferred"
                where = str(cfg.origin(key))
                notices.append(Finding("objects-from-nowhere", "warning", text, where))
            else:
                notices += _unknown_classes(cfg, before)
        if (
            cfg.network_type is NetworkType.CLASSIFIER
            and not secondary
            and makers
            and cfg.origin("process_mode").kind == "default"
        ):
            text = "process-mode is absent: this classifier sees whole frames, not the objects of "
            text += "the model before it, which takes process-mode=2"
            notices.append(Finding("classifier-of-frames", "warning", text, str(cfg.path)))
        # a primary classifier adds an object as large as the frame
        if makes or (cfg.network_type is NetworkType.CLASSIFIER and not secondary):
            known = cfg.num_detected_classes if makes else 0
            makers[cfg.component_id] = max(known, makers.get(cfg.component_id, 0))
    return notices


def _unknown_classes(cfg: ModelConfig, makers: Mapping[int, int]) -> list[Finding]:
    """Warn of `operate-on-class-ids` that no model before the secondary one has.

    Args:
        cfg: of the secondary model.
        makers: component -> number of classes, 0 where that is not known.
    """
    wanted = [c for c in cfg.operate_on_class_ids if c >= 0]
    only = cfg.operate_on_gie_id
    counts = [n for c, n in makers.items() if only < 0 or c == only]
    if not wanted or 0 in counts or min(wanted) < max(counts):
        return []
    ids = ";".join(map(str, wanted))
    text = f"operate-on-class-ids={ids}: the models before it have classes 0 to {max(counts) - 1}:"
    text += " nothing is inferred"
    where = str(cfg.origin("operate_on_class_ids"))
    return [Finding("class-ids-beyond", "warning", text, where)]
