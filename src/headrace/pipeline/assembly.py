"""From a pipeline file or a command line to a `Pipeline` that is ready to run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from headrace._core.errors import ConfigError, HeadraceError
from headrace._core.files import state_folder
from headrace._core.findings import Finding
from headrace._core.notices import notices_on_errors
from headrace._core.plain_record import PlainRecord
from headrace.config import ModelConfig
from headrace.engine.device import Device, check_device_name, choose_device, lanes_of_one
from headrace.infer.inferencer import Inferencer
from headrace.infer.loaded_model import Model
from headrace.infer.record import Record
from headrace.infer.run_options import RunOptions
from headrace.media import check_sinks
from headrace.media.resizing import FrameSize
from headrace.media.sources.base import FailedSource
from headrace.pipeline.decoder_memory import DecoderMemory
from headrace.pipeline.mux import check_limit
from headrace.pipeline.outlet import Route
from headrace.pipeline.pipeline import Pipeline
from headrace.pipeline.segment import segments_of
from headrace.pipeline.shared_outputs import NamedSource
from headrace.pipeline.sink_opening import lasts, open_routes
from headrace.pipeline.source_opening import (
    decoding_device,
    devices_of,
    open_listed,
    opened_together,
)
from headrace.pipeline.stage import is_stage
from headrace.pipeline.stage_order import after_primaries, behind_tracker, numbered
from headrace.pipeline.turns import never_inferred

if TYPE_CHECKING:
    from headrace.config.pipeline_spec import PipelineSpec, SourceSpec, TilerSpec
    from headrace.infer.batch import Batch
    from headrace.media import Frame, Sink, Source
    from headrace.media.draw import Tiler
    from headrace.media.sinks.naming import HasName
    from headrace.meta import FrameMeta
    from headrace.pipeline.analytics import AnalyticsRules
    from headrace.pipeline.changes import Companion
    from headrace.pipeline.track import Tracker


class Assembly(PlainRecord):
    """Everything of a run that has to be closed or reported.

    Attributes:
        pipeline: ready to run.
        inferencers: in the order they run.
        notices: what was decided so far.
    """

    pipeline: Pipeline
    inferencers: list[Any]
    notices: list[Finding] = msgspec.field(default_factory=list)

    def close(self) -> None:
        """Release the engines, and everything else if it has not run."""
        self.pipeline.close()


@dataclass(kw_only=True)
class Assembling:
    """Opens sources, loads models and tracker, opens sinks: a method each, in this order.

    Outputs are checked by name before anything is opened, and created last, when nothing else can
    fail. The tracker comes behind the last primary model.

    Attributes:
        spec: the pipeline.
        options: how it runs.
        stages: what runs instead of the models of `spec`, in order: configs, opened models,
            trackers, probes.
        rules: what is counted instead of the rules of `spec.analytics`.
        opened: sources that stand for those of `spec`, by index; closed by the pipeline.
        share: (index, number) takes every `number`-th source only, from `index` on; the others are
            those of other processes.
        sinks: more outputs, opened already.
        painter: draws instead of what `spec.osd` says.
        on_stage: called with each step that begins, in words.
        on_ready: called with everything decided, before an output is created; may raise to refuse.
        on_result: called with each frame's metadata, in order.
        write_rates: takes the lines of rates; None prints them.
        kind: what to make.
    """

    spec: PipelineSpec
    options: RunOptions = field(default_factory=RunOptions)
    stages: Sequence[Any] | None = None
    rules: AnalyticsRules | None = None
    opened: Mapping[int, Source] = field(default_factory=dict)
    share: tuple[int, int] = (0, 1)
    sinks: Sequence[Sink | Route] = ()
    painter: Any = None
    on_stage: Callable[[str], None] = lambda _: None
    on_ready: Callable[[list[Finding]], None] = lambda _: None
    on_result: Callable[[FrameMeta], None] | None = None
    write_rates: Callable[[str], None] | None = None
    kind: type[Pipeline] = Pipeline

    def __post_init__(self) -> None:
        self._log = list(self.spec.notices)
        self._ready = False  # `on_ready` has the log
        self._items: list[Any] = []  # configs, until their models are loaded
        self._inputs: list[str | Path] = []
        self._devices: dict[int, Device] = {}  # index of a config -> where its model computes
        self._decoding: list[Device] = []  # those of all models
        self._sources: list[Source] = []
        self._owned: list[Any] = []
        self._undo = ExitStack()

    @property
    def _several(self) -> bool:
        """There may be more than one source."""
        return self.spec.keep_open or len(self.spec.opened_sources) > 1

    def assemble(self) -> Assembly:
        """Make the pipeline; once.

        Raises:
            HeadraceError: whatever is wrong, with nothing left open or half-written; with the
                notices that `on_ready` was not called with.
        """
        self._number_stages()
        with notices_on_errors(self._unread()), self._undo:
            self._check()
            self._choose_devices()
            self._open_sources()
            self._load_models()
            self._add_followers()
            companions = self._companions()
            self._report_decisions()
            pipeline = self._pipeline()
            for companion in companions:
                pipeline.attach(companion)
            self._undo.pop_all()
        return Assembly(pipeline, self._models(), self._log)

    def _unread(self) -> Iterator[Finding]:
        """Yield everything decided so far, for an error, unless `on_ready` was called with it."""
        if not self._ready:
            configs = [item for item in self._items if isinstance(item, ModelConfig)]
            yield from self._log
            for part in (*configs, *self._owned):
                yield from part.notices

    def _models(self) -> list[Any]:
        return [item for item in self._items if is_stage(item)]

    def _number_stages(self) -> None:
        """Give each config an id of its own, and collect every file that is read."""
        where = str(self.spec.path) if self.spec.path.exists() else None
        stages = self.spec.load_models() if self.stages is None else self.stages
        self._items, notices = numbered(stages, where, self.options.generation)
        self._log += notices
        configs = [item for item in self._items if isinstance(item, ModelConfig)]
        self._inputs = _inputs(self.spec, configs)
        if any(model.preprocess for model in self.spec.models):
            self._log = [n for n in self._log if n.code != "tensors-from-nowhere"]
            self._add_preparers()

    def _add_preparers(self) -> None:
        """Put the preparation of tensors right before the models that name one."""
        from headrace.pipeline.preparation.stage import Preparation

        places = [i for i, item in enumerate(self._items) if isinstance(item, ModelConfig)]
        for model, place in reversed(list(zip(self.spec.models, places, strict=False))):
            if model.preprocess is not None:
                preparation = Preparation(model.preprocess, model.preprocess_gie_id)
                self._items.insert(place, preparation)
                self._owned.append(self._undo.enter_context(closing(preparation)))

    def _check(self) -> None:
        """Refuse everything that is wrong by its name or number, before work begins."""
        check_sinks([s.text for s in self.spec.sinks if s.text], self._inputs)
        check_limit(self.options.limit)
        segments_of([item for item in self._items if not isinstance(item, ModelConfig)])
        check_device_name(self.options.device)

    def _choose_devices(self) -> None:
        """Choose where each model computes; a notice about it is logged once, here."""
        asked = self.options.device
        self._decoding = list(_opened_on(self._items, asked))
        for index, item in enumerate(self._items):
            if isinstance(item, ModelConfig):
                device = choose_device(asked, item.gpu_id)
                self._log += device.notices
                self._devices[index] = replace(device, notices=())
        self._decoding += self._devices.values()

    def _named(self) -> Sequence[HasName]:
        """All sources of the run, also those of other processes."""
        if self.share[1] == 1:
            return self._sources
        return [NamedSource(s.label, i) for i, s in enumerate(self.spec.opened_sources)]

    def _open_sources(self) -> None:
        """Open the sources of this share; one that fails beside others fails in its turn."""
        self.on_stage("opening source")
        first, step = self.share
        memory = DecoderMemory(len(self.spec.opened_sources))
        share = list(enumerate(self.spec.opened_sources))[first::step]
        for source in opened_together([self._opening(memory, *each) for each in share]):
            self._sources.append(source)
            if source.source_id not in self.opened:
                self._undo.enter_context(source)
        alone = not self.spec.keep_open and step == 1
        if alone and all(isinstance(source, FailedSource) for source in self._sources):
            next(self._sources[0])  # raises

    def _opening(
        self, memory: DecoderMemory, number: int, spec: SourceSpec
    ) -> Callable[[], Source]:
        """A function that opens a source; one that is open takes its number."""
        if (opened := self.opened.get(number)) is not None:
            opened.source_id = number
            return lambda: opened
        decoder = decoding_device(spec, self.options.device, self._decoding)
        self._log += decoder.notices
        keeps = self.spec.keep_open
        return partial(open_listed, spec, number, self._several, memory, decoder.gpu, retried=keeps)

    def _load_models(self) -> None:
        """Load or build the engine of each config, in order."""
        live = self.spec.keep_open or any(source.live for source in self._sources)
        for index, device in self._devices.items():
            cfg = self._items[index]
            self.on_stage(f"loading or building engine: {cfg.path.name}")
            try:
                opened = open_model(cfg, self.options, device, live=live)
            except HeadraceError as error:
                raise self._tried(error, cfg, device) from error.__cause__
            model = self._undo.enter_context(opened)
            self._items[index] = model
            self._owned.append(model)
        self._dump_outputs()

    def _dump_outputs(self) -> None:
        """Write the outputs of the models that the spec names a folder for."""
        from headrace.infer.raw.files import LayerFiles

        opened = [self._items[index] for index in self._devices]
        for model, spec in zip(opened, self.spec.models, strict=False):
            if spec.raw_output_dir is not None:
                model.on_raw_output = LayerFiles(spec.raw_output_dir)

    def _tried(self, error: HeadraceError, cfg: ModelConfig, device: Device) -> HeadraceError:
        """Add the results of its advice on frames of the source to the refusal of a model."""
        from headrace.infer.trial.refusal import FRAMES, guessed_refusal, tried_refusal
        from headrace.media.frame_choice import frames_of_many

        source = next((s for s in self._sources if not isinstance(s, FailedSource)), None)
        if source is None or source.live:
            return guessed_refusal(error, cfg)
        self.on_stage(f"trying what is recommended: {cfg.path.name}")
        before = [item for item in self._items if isinstance(item, Inferencer)]
        load = partial(Model.load, options=self.options, record=Record(), device=device)
        frames = frames_of_many([source], FRAMES)
        return tried_refusal(error, cfg, frames, self.options, load, before)

    def _add_followers(self) -> None:
        """Put the tracker behind the primary models, and the counting behind the tracker."""
        tracker = tracker_of(self.spec)
        if tracker is not None:
            self._owned.append(tracker)
            self._items.insert(after_primaries(self._items), tracker)
        counting = _analytics(self.spec, self.rules)
        if counting is not None:
            self._items.insert(behind_tracker(self._items), counting)
        if self.spec.rates_interval_s:
            from headrace.pipeline.rate_lines import RateLines

            every = self.spec.rates_interval_s
            rates = RateLines(
                len(self._sources), every, self.write_rates, leave=self.spec.keep_open
            )
            self._items.append(rates)
            self._owned.append(rates)

    def _companions(self) -> list[Companion]:
        """Receivers and senders of messages beside the pipeline, imported where there are any."""
        companions: list[Companion] = []
        if self.spec.consumers:
            from headrace.pipeline.consumer import Consumer

            companions += map(Consumer, self.spec.consumers)
        if self.spec.errors_to is not None:
            from headrace.pipeline.source_errors import SourceErrors

            companions.append(SourceErrors(self.spec.errors_to))
        return companions

    def _report_decisions(self) -> None:
        """Complete the log with the notices of all parts, and pass it on."""
        for part in (*self._items, *self._sources):
            self._log += getattr(part, "notices", ())  # a probe has none
        intervals = [model.interval for model in self._models() if not model.secondary]
        live = any(source.live for source in self._sources)
        size, count = self.spec.batch_size, len(self._sources)
        self._log += never_inferred(count, size, intervals, live=live)
        self._log = list(dict.fromkeys(self._log))
        self._ready = True
        self.on_ready(self._log)

    def _pipeline(self) -> Pipeline:
        """Create the outputs, and the pipeline around everything."""
        spec = self.spec
        engines = [model.engine_path for model in self._models() if model.engine_path]
        inputs = [*self._inputs, *engines]
        routes = open_routes(spec, self._sources, self._named(), inputs, self._undo)
        for route in routes:
            if route.tapped:
                self._items.insert(after_primaries(self._items), _tap(route))
        tiler = _tiler(spec.tiler) if any(route.tiled for route in routes) else None
        shown = [r.sink if isinstance(r, Route) else r for r in (*routes, *self.sinks)]
        painter = self.painter
        if painter is None and any(sink.needs_pixels for sink in shown):
            painter = _painter(spec, self.options)
        return self.kind(
            self._sources,
            self._items,
            [*routes, *self.sinks],
            painter=painter,
            limit=self.options.limit,
            on_result=self.on_result,
            batch_timeout_s=_batch_timeout_s(spec),
            batch_size=spec.batch_size,
            frame_size=_frame_size(spec),
            tiler=tiler,
            owned=self._owned,
            notices=self._log,
            keep_open=spec.keep_open,
            end_when_over=spec.end_when_over,
            sync_wait_s=spec.sync_wait_ms / 1000 if spec.sync_inputs else None,
        )


def _opened_on(items: Sequence[object], asked: str) -> Iterator[Device]:
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


def _inputs(spec: PipelineSpec, configs: Sequence[ModelConfig]) -> list[str | Path]:
    """Everything the run reads: no output may overwrite it."""
    read: list[str | Path] = [spec.path, *(s.uri for s in spec.sources)]
    if spec.tracker is not None and spec.tracker.config is not None:
        read.append(spec.tracker.config)
    if spec.analytics is not None:
        read.append(spec.analytics)
    read += [model.preprocess for model in spec.models if model.preprocess is not None]
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
    from headrace.pipeline.track import TrackIds, open_tracker

    ids = TrackIds(state_folder() / "track-ids") if lasts(spec) else None
    return open_tracker(spec.tracker.config or spec.tracker.text, ids=ids, **spec.tracker.options)


def _painter(spec: PipelineSpec, options: RunOptions) -> Any:
    if not spec.osd.show:
        return _Undrawn()
    from headrace.media.draw import Painter

    return Painter.from_spec(spec.osd, palette=options.palette)


def _tap(route: Route) -> Callable[[Batch], None]:
    """Make a probe that writes the frames of a route."""

    def write(batch: Batch) -> None:
        for frame, meta in batch:
            if route.only_source in (None, meta.source_id):
                route.sink.write(frame, meta)

    return write


def _batch_timeout_s(spec: PipelineSpec) -> float | None:
    default = spec.origin("batch_timeout_ms").kind == "default"
    return None if default else spec.batch_timeout_s


def _frame_size(spec: PipelineSpec) -> FrameSize | None:
    if spec.frame_size is None:
        return None
    width, height = spec.frame_size
    return FrameSize(width, height, spec.frame_padding)


def _tiler(spec: TilerSpec | None) -> Tiler:
    from headrace.media.draw import Tiler

    if spec is None:
        return Tiler()
    return Tiler(spec.rows, spec.columns, spec.width, spec.height, captions=spec.captions)


class _Undrawn:
    """Images as they come."""

    notices: Sequence[Finding] = ()

    def draw(self, frame: Frame, meta: FrameMeta) -> Frame:
        return frame
