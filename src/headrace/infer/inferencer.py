"""One `nvinfer`: choose frames or objects, scale, infer, parse, attach."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, TypeAlias, overload

from headrace._core.errors import EngineError, HeadraceError
from headrace._core.findings import Finding
from headrace.config import ModelConfig
from headrace.config.enums import ProcessMode
from headrace.config.overrides import combined
from headrace.engine.device import Device, choose_device
from headrace.engine.machine import usable_cores
from headrace.infer.attributes import attach_cached
from headrace.infer.batch import Batch
from headrace.infer.engine_runs import EngineRuns, Pending, RawOutput, abandon, attach_tensors
from headrace.infer.gather import BufferTurns, frame_runs, object_runs, tensor_chunks
from headrace.infer.history import ModelHistory, ModelVersion
from headrace.infer.image_calls import called_on
from headrace.infer.loaded_model import Model
from headrace.infer.parser_choice import Choice
from headrace.infer.postprocess import DetectorPostprocessor
from headrace.infer.record import Record, StageTimes
from headrace.infer.run_options import RunOptions
from headrace.infer.runners import Arrays, Run
from headrace.infer.selection import Selector
from headrace.infer.update import ModelExchange
from headrace.media.frame import Frame
from headrace.media.pixel_format import PixelFormat
from headrace.meta import FrameMeta, NetworkInfo

if TYPE_CHECKING:
    from headrace._core.types import Array
    from headrace.config.enums import Generation
    from headrace.config.profile import Profile
    from headrace.custom.guard import GuardMode
    from headrace.engine.session import Session
    from headrace.infer.losses import InferenceLosses
    from headrace.infer.run_options import Abi
    from headrace.infer.update import ModelUpdater

LabelledImage: TypeAlias = "Frame | Array | str | Path"


class Inferencer:
    """Runs one config on batches: any network type, on frames or on objects found before.

    `begin` chooses, and hands work to `streams` threads of the engine; `complete` waits and
    attaches the results. Each is called in the order of the batches, by one thread at a time;
    `begin` of later batches may run before `complete` of earlier ones. `process` is both.

    Attributes:
        streams: runs of the engine at the same time.
        interval: buffers skipped between two inferred ones (primary mode); may be changed.
        runs: runs of the engine; its `on_steps` gets the decisions on every item.
        history: versions of the model.
    """

    def __init__(
        self,
        model: Model,
        record: Record,
        *,
        options: RunOptions | None = None,
        streams: int = 1,
        name: str | None = None,
    ) -> None:
        self.streams = streams
        self.interval = model.config.interval
        self._record = record
        self._options = options or RunOptions(streams=1)
        self._name = name or model.config.path.name  # also after an update
        self._models = ModelExchange(model, record)
        self.runs = EngineRuns(model, record, streams)
        self._turns = BufferTurns(model.config.stabilize_buffer_count)
        self._updater: ModelUpdater | None = None
        self.history = ModelHistory(model.config)

    @classmethod
    def from_config(
        cls,
        config: ModelConfig | str | Path,
        *,
        unique_id: int | None = None,
        name: str | None = None,
        threads: int | None = None,
        streams: int | None = 1,
        device: str = "auto",
        abi: Abi | None = None,
        guard: GuardMode | None = None,
        guard_env: str | None = None,
        profile: Profile | None = None,
        generation: Generation | None = None,
        rebuild: bool = False,
        parser: Callable[..., Any] | None = None,
        clip_to_roi: bool = True,
        conf: float | None = None,
        labels: str | PathLike[str] | None = None,
        **keys: Any,
    ) -> Inferencer:
        """Build or load the engine of a config and get everything ready.

            detector = headrace.Inferencer.from_config("pgie.txt", conf=0.4, cluster_mode=2, topk=9)

        Args:
            config: loaded, or the path of an INI or YAML nvinfer config, or of a bare model.
            unique_id, name: stand in for `gie-unique-id`, and for the file's name in reports.
            threads: CPU threads of each engine; None is one per core.
            streams: batches that each engine runs at once, sharing its threads; None is what it was
                tuned for, else one per thread, at most 4, and 1 for live sources.
            device: where engines run and videos are decoded: `auto` takes an NVIDIA GPU that is
                there and that the runtime can use; `cpu`, `cuda`, `cuda:N`.
            abi: bytes per box of a C++ parser, `24` (DeepStream 5 to 8), `28` (9) or `auto`, which
                detects it; None takes each config's `custom-lib-abi`.
            guard: whether custom libraries run in worker processes, so that their crashes are
                survived: `auto` guards C++ libraries that are not trusted yet, `always` guards
                Python files, too, `never` guards none; None takes each config's `custom-lib-guard`.
            guard_env: variables of the environment, separated by commas, for libraries in worker
                processes: `NAME` passes what looks like a credential, `-NAME` holds another one
                back, `*` and `?` stand for letters; None takes each config's
                `custom-lib-guard-env`.
            profile: whose rules apply where the configs' keys leave them open: `nvinfer` for those
                of the original, `modern` for those that models are trained with; None takes each
                config's `profile`.
            generation: whose rules apply where releases of the original differ, `9.1` or `6.2`; a
                config without `gie-unique-id` is refused, as there. None: those of `9.1`, and the
                first free number.
            rebuild: build engines even if valid ones are saved.
            parser: a function `(layers, network, params)` instead of the parser of the only config.
            clip_to_roi: cut objects at the edges of the region that a caller's tensor shows.
            conf: smallest confidence, 0 to 1, of the only config: sets the threshold that decides
                for its network type.
            labels: label file instead of the only config's.
            keys: keys that win over the only config's, with `_` for `-`, of `[class-attrs-all]`
                too; of a class: `**{"class-attrs-2.topk": 5}`. None leaves the config's. Paths are
                relative to the working directory. Of several configs, set them on each:
                `ModelConfig.load(path).with_overrides(conf=0.4)`.

        Raises:
            ConfigError, ModelError, EngineError, CustomLibraryError: whatever is wrong, before
                the first frame.
        """
        run, config_keys = RunOptions.of(cls.from_config, locals())
        over = combined(config_keys)
        if isinstance(config, ModelConfig):
            cfg = over.on(config)
        else:
            cfg = ModelConfig.load(config, over.with_parser(Path(config), run.parser))
        if unique_id is not None:
            cfg = cfg.with_overrides(gie_unique_id=unique_id)
        try:
            return cls.open(cfg, run, choose_device(run.device, cfg.gpu_id), name)
        except HeadraceError as error:
            from headrace.infer.trial.refusal import guessed_refusal

            raise guessed_refusal(error, cfg) from error.__cause__

    @classmethod
    def open(
        cls, cfg: ModelConfig, options: RunOptions, device: Device, name: str | None = None
    ) -> Inferencer:
        """Do the work of `from_config`, with options that are read and a device that is chosen."""
        cfg = options.for_model(cfg)
        threads, streams = options.threads, options.streams
        if streams is not None and streams > 1:
            threads = max(1, (threads or usable_cores()) // streams)
        record = Record()
        model = Model.load(cfg, replace(options, threads=threads), record, device)
        if streams is None:
            streams, threads = model.session.options.streams, model.session.options.threads
        options = replace(options, threads=threads, streams=streams)
        try:
            return cls(model, record, options=options, streams=streams, name=name)
        except BaseException:
            model.close()
            raise

    @property
    def model(self) -> Model:
        """Engine, scaler, parser and labels that run now."""
        return self._models.current

    @property
    def on_raw_output(self) -> Callable[[RawOutput], None] | None:
        """Called with each run's outputs before results are attached, by `complete`'s thread.

        For an asynchronous classifier a thread of the engine calls it.
        """
        return self.runs.on_raw_output

    @on_raw_output.setter
    def on_raw_output(self, callback: Callable[[RawOutput], None] | None) -> None:
        self.runs.on_raw_output = callback

    @property
    def config(self) -> ModelConfig:
        """The model configuration."""
        return self.model.config

    @property
    def name(self) -> str:
        """Name of this stage in reports."""
        return self._name

    @property
    def network(self) -> NetworkInfo:
        """Size of the network input in pixels."""
        return self.model.network

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of a detector's classes."""
        return tuple(self.model.labels.detector)

    @property
    def parser(self) -> Choice | None:
        """Where the parser comes from; None for network-type 100."""
        return self.model.parser

    @property
    def engine_path(self) -> Path | None:
        """The saved engine that runs; None if it could not be saved."""
        return self.model.engine_path

    @property
    def secondary(self) -> bool:
        """It infers on objects found before, not on frames."""
        return self.config.process_mode is ProcessMode.SECONDARY

    @property
    def times(self) -> StageTimes:
        """Seconds per stage."""
        return self._record.times

    @property
    def inferred_items(self) -> int:
        """Frames, objects or regions that went through the engine."""
        return self._record.inferred_items

    @property
    def session(self) -> Session:
        """The engine."""
        return self.model.session

    @property
    def run_rows(self) -> int:
        """Items of a run that costs the same with fewer; 0 where its cost follows the items."""
        return 0 if self.model.gpu_scaler is None else self.config.batch_size

    @property
    def results(self) -> Mapping[str, int]:
        """How many came out of each step, see `Record`."""
        return self._record.results

    @property
    def losses(self) -> InferenceLosses:
        """Boxes and objects left out since the run began, by filter, with reasons if most were."""
        from headrace.infer.losses import losses_of

        return losses_of(self.config, self._record.tally, self._record.notices)

    @property
    def completed_items(self) -> int:
        """Inferred items that are not under way any more: their outputs were read, or failed."""
        if self.model.asynchronous is not None:
            return self._record.inferred_items
        return self._record.completed_items

    @property
    def failed_items(self) -> int:
        """Inferred items with outputs that could not be parsed."""
        return self._record.failed_items

    @property
    def notices(self) -> list[Finding]:
        """Decisions so far, those of library, parser and plausibility watch included."""
        model = self.model  # held through an update
        if model.watch is not None:
            model.watch.judge()
        return self._record.notices_with(model.all_notices())

    def process(self, frames: Batch | Sequence[Frame]) -> list[FrameMeta]:
        """One batch from start to end; plain frames are one buffer. Source: spec D.1, D.2.

        Returns:
            The frames' metadata; frames that `stabilize-buffer-count` discards have none.
        """
        following = self._turns.last_buffer + 1
        batch = frames if isinstance(frames, Batch) else Batch.of(frames, buffer=following)
        self.complete(self.begin(batch))
        for source_id in batch.ended:
            self.end_of_stream(source_id)
        return batch.metas

    @overload
    def __call__(
        self,
        image: LabelledImage,
        meta: FrameMeta | None = None,
        *,
        format: PixelFormat | str = PixelFormat.BGR,
    ) -> FrameMeta: ...

    @overload
    def __call__(
        self,
        image: list[Any] | tuple[Any, ...],
        meta: Sequence[FrameMeta] | None = None,
        *,
        format: PixelFormat | str = PixelFormat.BGR,
    ) -> list[FrameMeta]: ...

    def __call__(
        self,
        image: LabelledImage | list[Any] | tuple[Any, ...],
        meta: FrameMeta | Sequence[FrameMeta] | None = None,
        *,
        format: PixelFormat | str = PixelFormat.BGR,
    ) -> FrameMeta | list[FrameMeta]:
        """Images from start to end; `interval` and `stabilize-buffer-count` skip nothing.

            meta = detector(image)
            reader(image, meta)  # a secondary model, on what was found
            metas = detector(["a.jpg", "b.jpg", image])

        Args:
            image: a `Frame`, an array (h, w, 3) uint8, or (h, w) for gray, or the path of an
                image or video, of which the first frame is taken. A list or tuple of them runs in
                batches of `batch-size`, whatever their sizes; the number of an array's frame is its
                place.
            meta: what is known already, of each image of a list; results are added to it.
            format: of an array: `bgr` as OpenCV has it, `rgb` or `gray`.

        Returns:
            The metadata; of a list a list. It is `meta` where that is given.

        Raises:
            MediaError: one is no image; those of earlier batches have run.
            EngineError: `meta` is no metadata of these images; the engine failed; or the model
                works on objects and there is no `meta`.
        """
        if meta is None and self.secondary and not self.config.input_tensor_from_meta:
            raise EngineError(
                "this model works on objects that another one found (process-mode=2)",
                where=str(self.config.path),
                fix="meta = detector(image); model(image, meta)",
            )
        if isinstance(image, list | tuple):
            return called_on(self, self._run_all, image, meta, format)
        metas = None if meta is None else [meta]
        return called_on(self, self._run_all, [image], metas, format)[0]

    def _run_all(self, batch: Batch) -> None:
        self.complete(self._begin(batch, lambda batch: [True] * len(batch)))

    def begin(self, batch: Batch) -> Pending:
        """Choose items and hand them to the engine's threads, without waiting for them.

        Raises:
            EngineError: tensors of the caller do not fit; an asynchronous run failed.
        """
        return self._begin(batch, self._choose)

    def _begin(self, batch: Batch, choose: Callable[[Batch], list[bool]]) -> Pending:
        if self._models.waiting is not None:
            self.runs.finish()
            self._models.exchange()
            self.runs.change(self.model)
            self.history.change(self._record)
        model = self._models.take()
        pending = Pending(batch, model)
        start, tally, count = perf_counter(), self._record.tally, len(batch)
        tally.frames += count
        try:
            turns = choose(batch)
            tally.discarded += count - len(batch)
            tally.waited += turns.count(False)
            if model.preprocessor is None:
                self._begin_tensors(pending)
            elif model.selector is not None:
                self._begin_objects(pending, model.selector)
            else:
                parts = frame_runs(batch, turns, model.config.batch_size)
                pending.runs += self.runs.submit(model, [Run(items) for items in parts])
        except BaseException:
            pending.cancel()
            self._models.release(model)
            raise
        self._record.times.select_s += perf_counter() - start
        return pending

    def complete(self, pending: Pending) -> None:
        """Wait for the engine, parse, and attach the results to the batch's metadata.

        Raises:
            EngineError: the engine failed; nothing more of this batch is attached.
        """
        model = pending.model
        waiting = deque(() if model.asynchronous is not None else pending.runs)
        try:
            with model.device.entered():
                if len(waiting) > 1 and model.gpu_scaler is None:
                    waiting[-1].future.exception()  # to be woken once, not for each run
                for count in self.runs.shares(waiting, model):
                    runs = [waiting.popleft() for _ in range(count)]
                    done = [(run, pending.outputs_of(run)) for run in runs]
                    self._complete_runs([(r, out) for r, out in done if out is not None], model)
            start = perf_counter()
            for _, meta, selection in pending.cached:
                assert model.selector is not None
                attach_cached(model.selector, meta, selection)
            self._record.times.attach_s += perf_counter() - start
        finally:
            for run in waiting:  # an earlier one failed
                run.future.cancel()
                abandon(run.items, model)
            self._models.release(model)

    def end_of_stream(self, source_id: int) -> None:
        """Forget the objects of a source that has ended. Source: spec D.3."""
        if self.model.selector is not None:
            self.model.selector.end_of_stream(source_id)

    def restart(self, frames: int = 0, *, live: bool = False) -> None:
        """A new stream begins: the next buffer is inferred, no object is known. Spec D.1, D.3.

        A GPU gets ready for `frames` of a buffer now if they are `live`, or its runs are graphs;
        else while the first ones are decoded.
        """
        now = live or bool(self.session.options.graph)
        if frames and (now or not self.secondary):
            self.runs.prepare(self.model, frames, wait=now)
        self._turns.restart()
        self._record.stop.asked = False
        self._record.tally.clear()
        if self.model.selector is not None:
            self.model.selector.clear()

    def hurry(self) -> None:
        """End long work early, until `restart`; for a run that stops. Safe in signal handlers."""
        self._record.stop.asked = True

    @property
    def load_options(self) -> RunOptions:
        """How the model was loaded; the models that replace it are loaded alike."""
        return self._options

    @property
    def record(self) -> Record:
        """Times, counts and notices; shared by the models that replace each other."""
        return self._record

    def conclude(self) -> None:
        """Judge the whole run at its end; the network may run again. Findings join `notices`."""
        model = self.model  # held: an update may let go of it meanwhile
        if (watch := model.watch) is not None:
            watch.judge(final=True)

    def warn(self, code: str, text: str, where: str | None = None) -> None:
        """Add a warning to the notices, once."""
        self._record.warn(code, text, where)

    def replace(self, model: Model) -> None:
        """Change to another model before the next batch; batches on their way keep the old one.

        Raises:
            EngineError: another one is waiting already. Source: spec D.8.
        """
        self._models.propose(model)

    def reopened(self) -> Inferencer:
        """Load the present model anew, beside this one, which may be stuck.

        Raises:
            HeadraceError: it cannot be loaded; this one is left as it is.
        """
        from headrace.infer.update import reopened

        return reopened(self)

    def update_model(
        self,
        *,
        config: str | Path | None = None,
        engine: str | Path | None = None,
        model: str | Path | None = None,
        version: int | ModelVersion | None = None,
        on_updated: Callable[[int, Path], None] | None = None,
    ) -> ModelUpdater:
        """Load another model beside the running one; it takes over between two batches.

        Args:
            config, engine, model, version: one of them: the new config, an engine or a bare model
                for the running config, or a version that ran before, mostly by its number.
            on_updated: called with (status, path) when it is loaded; 0 is success. After a
                failure the old model keeps running, with a warning among the notices.

        Returns:
            The updater; its `wait()` waits for the loading.

        Raises:
            ConfigError: an update is under way already, not exactly one is given, or there was no
                such version.
        """
        from headrace.infer.update import ModelUpdater

        if self._updater is None:
            self._updater = ModelUpdater(self)
        self._updater.update(
            config=config, engine=engine, model=model, version=version, on_updated=on_updated
        )
        return self._updater

    def close(self) -> None:
        """Release the engine; runs under way finish first."""
        self.runs.close()
        self._models.close()

    def __enter__(self) -> Inferencer:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __repr__(self) -> str:
        net, name = self.network, self.config.path.name
        parser = "no parser" if self.parser is None else f"parser {self.parser.source}"
        size = f"{net.width}x{net.height}x{net.channels}, batch {self.config.batch_size}"
        return f"Inferencer({name}, {size}, {parser})"

    def _repr_html_(self) -> str:
        """Inputs, outputs, parser and decisions, for notebooks."""
        from headrace._core.html import facts, notice_list, paragraph

        return paragraph(repr(self)) + facts(self.model.facts()) + notice_list(self.notices)

    def _choose(self, batch: Batch) -> list[bool]:
        return self._turns.choose(batch, self.interval, self.config.stabilize_buffer_count)

    def _begin_objects(self, pending: Pending, selector: Selector) -> None:
        for items in object_runs(pending.batch, selector, pending.model.config.batch_size):
            if pending.model.asynchronous is not None:
                # what is known now, before these are inferred again
                for _, meta, selection in items.cached:
                    attach_cached(selector, meta, selection)
                items.cached = []
            if len(items):
                pending.runs += self.runs.submit(pending.model, [Run(items)])
            else:
                pending.cached = items.cached

    def _begin_tensors(self, pending: Pending) -> None:
        model, tally = pending.model, self._record.tally
        for tensor in pending.batch.tensors:
            mine = model.config.component_id in tensor.target_ids
            tally.tensors += mine
            tally.other_tensors.update(() if mine else tensor.target_ids)
        chunks = tensor_chunks(
            pending.batch,
            component_id=model.config.component_id,
            inputs=model.session.inputs,
            constant=model.extra_inputs,
            batch_size=model.config.batch_size,
            record=self._record,
        )
        for chunk in chunks:
            given = model.filled(chunk.inputs, len(chunk.items))
            pending.runs += self.runs.submit(model, [Run(chunk.items, given)])

    def _complete_runs(self, runs: list[tuple[Run, Arrays]], model: Model) -> None:
        if len(runs) > 1 and isinstance(model.postprocessor, DetectorPostprocessor):
            model.postprocessor.attach_all([(outputs, run.items) for run, outputs in runs])
            self._record.completed_items += sum(len(run.items) for run, _ in runs)
            return
        for run, outputs in runs:
            self._complete_run(run, outputs, model)

    def _complete_run(self, run: Run, outputs: Arrays, model: Model) -> None:
        self.runs.show_raw(run, outputs, model)
        steps = self.runs.new_steps(run.items)
        watch = model.watch if run.watched and run.inputs else None
        if watch is not None:
            watch.look(run.inputs, outputs, run.seconds, run.items)
        if model.postprocessor is not None:
            model.postprocessor.attach(outputs, run.items, steps, watch)
        if watch is not None:
            watch.after_run()
        if model.config.output_tensor_meta or model.config.output_image != "none":
            attach_tensors(outputs, run.items, model)
        elif model.postprocessor is None and not self.runs.shows_raw:
            self._record.outputs_unread(model.config)
        self._record.completed_items += len(run.items)
        self.runs.show_steps(run, outputs, steps, model)
