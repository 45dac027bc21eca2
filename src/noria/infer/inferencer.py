"""One `nvinfer`: choose what to infer on, scale, infer, parse, attach."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import Lock
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from noria._core.errors import EngineError
from noria._core.notices import Notice
from noria.config.enums import NetworkType, ProcessMode
from noria.engine.machine import usable_cores
from noria.infer.attach import Generation
from noria.infer.batch import Batch, frame_meta
from noria.infer.dump import TensorFiles
from noria.infer.gather import frame_runs, object_runs
from noria.infer.items import Items
from noria.infer.model import LoadOptions, Model
from noria.infer.parser_choice import Choice
from noria.infer.pending import (
    Arrays,
    Pending,
    RawOutput,
    Run,
    abandon,
    attach_tensors,
    failed,
    lost_batch,
)
from noria.infer.postprocess.classifier import ClassifierPostprocessor, attach_cached
from noria.infer.record import Record, StageTimes
from noria.infer.scale import scale
from noria.infer.selection import Selector
from noria.infer.tensor_input import tensor_chunks
from noria.media.frame import Frame
from noria.media.pixel_format import PixelFormat
from noria.meta import FrameMeta, NetworkInfo
from noria.meta.detections import FloatArray

if TYPE_CHECKING:
    from noria.config import ModelConfig
    from noria.custom.guard import GuardMode
    from noria.engine.session import Session
    from noria.infer.update import ModelUpdater

_ASYNC_BATCHES = 3  # images waiting for an asynchronous classifier. Source: spec E.3


class Inferencer:
    """Runs one config on batches: any network type, on frames or on objects found before.

    `begin` chooses, and hands work to `streams` threads of the engine; `complete` waits and
    attaches the results. Each is called in the order of the batches, by one thread at a time;
    `begin` of later batches may run before `complete` of earlier ones. `process` is both.

    Attributes:
        streams: runs of the engine at the same time.
        interval: buffers skipped between two inferred ones (primary mode); may be changed.
        on_raw_output: called with each run's outputs before results are attached; by a thread of
            the engine for an asynchronous classifier, else by the one that calls `complete`.
    """

    def __init__(
        self,
        model: Model,
        record: Record,
        *,
        options: LoadOptions | None = None,
        streams: int = 1,
        name: str | None = None,
    ) -> None:
        self.streams = streams
        self.interval = model.config.interval
        self.on_raw_output: Callable[[RawOutput], None] | None = None
        self._model = model
        self._record = record
        self._options = options or LoadOptions()
        self._name = name
        self._files = TensorFiles(model.config, model.network)
        self._workers: ThreadPoolExecutor | None = None
        self._raw_lock = Lock()
        self._buffers = 0
        self._last_buffer = -1
        self._discard = model.config.stabilize_buffer_count
        self._discarding: int | None = None
        self._unfinished: deque[Future[Arrays | None]] = deque()  # of an asynchronous classifier
        self._next: Model | None = None
        self._updater: ModelUpdater | None = None
        self._in_flight: Counter[int] = Counter()  # batches between begin and complete, per model
        self._replaced: list[Model] = []

    @classmethod
    def from_config(
        cls,
        config: ModelConfig | str | Path,
        *,
        threads: int | None = None,
        streams: int | None = 1,
        abi: str | None = None,
        rebuild: bool = False,
        generation: Generation = "9.1",
        guard: GuardMode | None = None,
        unique_id: int | None = None,
        name: str | None = None,
    ) -> Inferencer:
        """Build or load the engine of a config and get everything ready.

        Args:
            config: a loaded config, or the path of an INI or YAML nvinfer config.
            threads: CPU threads of the engine; None is one per core.
            streams: batches that run at once, sharing the threads. Two batches on one thread each
                finish sooner than one after the other on two. None is what the engine was tuned
                for, unless `threads` is given; else one per thread, at most 4.
            abi: box layout of a C++ parser, `auto`, `24` or `28` bytes; None takes the config's.
            rebuild: build the engine even if a valid one is saved.
            generation: `9.1` or `6.2`, whose rules apply where they differ.
            guard: whether a user's library runs in a worker process; None takes the config's.
            unique_id: stands in for `gie-unique-id`, as the element's property does.
            name: of the stage in reports; the config file's by default.

        Raises:
            ConfigError, ModelError, EngineError, CustomLibraryError: whatever is wrong, before
                the first frame.
        """
        from noria.config import ModelConfig

        cfg = config if isinstance(config, ModelConfig) else ModelConfig.load(config)
        if unique_id is not None:
            cfg = cfg.with_overrides(gie_unique_id=unique_id)
        if streams is not None and streams > 1:
            threads = max(1, (threads or usable_cores()) // streams)
        options = LoadOptions(threads, abi, rebuild, generation, streams, guard)
        record = Record()
        model = Model.load(cfg, options, record)
        if streams is None:
            opened = model.session.options
            streams = opened.streams
            options = replace(options, threads=opened.threads, streams=streams)
        try:
            return cls(model, record, options=options, streams=streams, name=name)
        except BaseException:
            model.close()
            raise

    @property
    def config(self) -> ModelConfig:
        """The model configuration."""
        return self._model.config

    @property
    def name(self) -> str:
        """What reports call this stage."""
        return self._name or self.config.path.name

    @property
    def network(self) -> NetworkInfo:
        """Size of the network input in pixels."""
        return self._model.network

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of a detector's classes."""
        return tuple(self._model.labels.detector)

    @property
    def parser(self) -> Choice[Any] | None:
        """Where the parser comes from; None for network-type 100."""
        return self._model.parser

    @property
    def engine_path(self) -> Path | None:
        """The saved engine that runs; None if it could not be saved."""
        return self._model.engine_path

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
        return self._model.session

    @property
    def results(self) -> Mapping[str, int]:
        """How many came out of each step, see `Record`."""
        return self._record.results

    @property
    def failed_items(self) -> int:
        """Those among them whose outputs could not be parsed."""
        return self._record.failed_items

    @property
    def notices(self) -> list[Notice]:
        """Everything decided so far, the custom library's and its parser's decisions included."""
        return [*self._model.all_notices(), *self._record.notices]

    def process(self, frames: Batch | Sequence[Frame]) -> list[FrameMeta]:
        """One batch from start to end; plain frames are one buffer. Source: spec D.1, D.2.

        Returns:
            The frames' metadata, which is the batch's. Frames that `stabilize-buffer-count`
            discards are not among them.
        """
        following = self._last_buffer + 1
        batch = frames if isinstance(frames, Batch) else Batch.of(frames, buffer=following)
        self.complete(self.begin(batch))
        for source_id in batch.ended:
            self.end_of_stream(source_id)
        return batch.metas

    def __call__(
        self,
        picture: Frame | npt.NDArray[Any] | str | Path,
        meta: FrameMeta | None = None,
        *,
        format: PixelFormat | str = PixelFormat.BGR,
    ) -> FrameMeta:
        """One picture from start to end; `interval` and `stabilize-buffer-count` skip nothing.

            meta = detector(picture)
            reader(picture, meta)  # a secondary model, on what was found

        Args:
            picture: a `Frame`, an array (h, w, 3) uint8, or (h, w) for gray, or the path of an
                image or video, of which the first frame is taken.
            meta: what is known of it already; results are added to it.
            format: of an array: `bgr` as OpenCV has it, `rgb` or `gray`.

        Raises:
            MediaError: it is no picture.
            EngineError: the engine failed; or the model works on objects and there is no `meta`.
        """
        from noria.media import as_frame

        if meta is None and self.secondary and not self.config.input_tensor_from_meta:
            raise EngineError(
                "this model works on objects that another one found (process-mode=2)",
                where=str(self.config.path),
                fix="meta = detector(picture); model(picture, meta)",
            )
        frame = as_frame(picture, format)
        meta = frame_meta(frame) if meta is None else meta
        self.complete(self._begin(Batch([frame], [meta], [0]), lambda _: [True]))
        return meta

    def begin(self, batch: Batch) -> Pending:
        """Choose what to infer on and hand it to the engine's threads, without waiting for them.

        Raises:
            EngineError: tensors of the caller do not fit; an asynchronous run failed.
        """
        return self._begin(batch, self._turns)

    def _begin(self, batch: Batch, choose: Callable[[Batch], list[bool]]) -> Pending:
        if self._next is not None:
            self._exchange()
        model = self._model
        pending = Pending(batch, model)
        with self._record.lock:
            self._in_flight[id(model)] += 1
        start = perf_counter()
        try:
            turns = choose(batch)
            if model.preprocessor is None:
                self._begin_tensors(pending)
            elif model.selector is not None:
                self._begin_objects(pending, model.selector)
            else:
                for items in frame_runs(batch, turns, model.config.batch_size):
                    self._submit(pending, items)
        except BaseException:
            pending.cancel()
            self._release(model)
            raise
        self._record.times.select_s += perf_counter() - start
        return pending

    def complete(self, pending: Pending) -> None:
        """Wait for the engine, parse, and attach the results to the batch's metadata.

        Raises:
            EngineError: the engine failed; nothing more of this batch is attached.
        """
        model = pending.model
        waiting = deque(() if self._asynchronous(model) else pending.runs)
        try:
            while waiting:
                self._complete_run(waiting.popleft(), model)
            start = perf_counter()
            for _, meta, selection in pending.cached:
                assert model.selector is not None
                attach_cached(model.selector, meta, selection)
            self._record.times.attach_s += perf_counter() - start
        finally:
            for run in waiting:  # an earlier one failed
                run.future.cancel()
                abandon(run.items, model)
            self._release(model)

    def end_of_stream(self, source_id: int) -> None:
        """A source has ended: forget what is known of its objects. Source: spec D.3."""
        if self._model.selector is not None:
            self._model.selector.end_of_stream(source_id)

    def restart(self) -> None:
        """A new stream begins: the next buffer is inferred, and no object is known.

        Source: spec D.1, D.3.
        """
        self._buffers = 0
        if self._model.selector is not None:
            self._model.selector.clear()

    @property
    def load_options(self) -> LoadOptions:
        """How the model was loaded; the models that replace it are loaded alike."""
        return self._options

    @property
    def record(self) -> Record:
        """Times, counts and notices; shared by the models that replace each other."""
        return self._record

    def warn(self, text: str, where: str | None = None) -> None:
        """Add a warning to the notices, once."""
        self._record.warn(text, where)

    def replace(self, model: Model) -> None:
        """Change to another model before the next batch; batches on their way keep the old one.

        Raises:
            EngineError: another one is waiting already. Source: spec D.8.
        """
        if self._next is not None:
            raise EngineError("Trying to update model too frequently", where=str(model.config.path))
        self._next = model

    def update_model(
        self,
        *,
        config: str | Path | None = None,
        engine: str | Path | None = None,
        on_updated: Callable[[int, Path], None] | None = None,
    ) -> ModelUpdater:
        """Load another model beside the running one; it takes over between two batches.

        Args:
            config, engine: one of both: the new config, or an engine for the running config.
            on_updated: called with (status, path) when it is loaded; 0 is success. After a
                failure the old model keeps running, with a warning among the notices.

        Returns:
            The updater; its `wait()` waits for the loading.

        Raises:
            ConfigError: an update is under way already, or not exactly one file is given.
        """
        from noria.infer.update import ModelUpdater

        if self._updater is None:
            self._updater = ModelUpdater(self)
        self._updater.update(config=config, engine=engine, on_updated=on_updated)
        return self._updater

    def close(self) -> None:
        """Release the engine; runs under way finish first."""
        if self._workers is not None:
            self._workers.shutdown(cancel_futures=True)
            self._workers = None
        self._files.close()
        for model in (*self._replaced, self._model, self._next):
            if model is not None:
                model.close()

    def __enter__(self) -> Inferencer:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __repr__(self) -> str:
        net = self.network
        parser = "no parser" if self.parser is None else f"parser {self.parser.source}"
        return (
            f"Inferencer({self.config.path.name}, {net.width}x{net.height}x{net.channels}, "
            f"batch {self.config.batch_size}, {parser})"
        )

    def _repr_html_(self) -> str:
        """What goes in and out, the parser, and what was decided, for notebooks."""
        from noria.infer.notebook import inferencer_html

        return inferencer_html(self)

    def _turns(self, batch: Batch) -> list[bool]:
        """Whether each frame's buffer is inferred; discards the first buffers if asked to.

        The first buffer is inferred, then every (interval+1)-th. Source: spec D.1.
        """
        turns = [False] * len(batch)
        discarded: list[int] = []
        for number, places in batch.by_buffer():
            if number < self._last_buffer:  # another run has begun
                self._buffers, self._discard = 0, self.config.stabilize_buffer_count
            self._last_buffer = number
            if self._discard or number == self._discarding:
                if number != self._discarding:
                    self._discard -= 1
                    self._discarding = number
                discarded += places
                continue
            turn = self._buffers % (self.interval + 1) == 0
            self._buffers += 1
            for place in places:
                turns[place] = turn
        if discarded:
            batch.drop(discarded)
            turns = [turn for i, turn in enumerate(turns) if i not in discarded]
        return turns

    def _begin_objects(self, pending: Pending, selector: Selector) -> None:
        size = pending.model.config.batch_size
        for items in object_runs(pending.batch, selector, size):
            if self._asynchronous(pending.model):
                # what is known now, before these are inferred again
                for _, meta, selection in items.cached:
                    attach_cached(selector, meta, selection)
                items.cached = []
            if len(items):
                self._submit(pending, items)
            else:
                pending.cached = items.cached

    def _begin_tensors(self, pending: Pending) -> None:
        model = pending.model
        chunks = tensor_chunks(
            pending.batch,
            component_id=model.config.component_id,
            inputs=model.session.inputs,
            batch_size=model.config.batch_size,
            record=self._record,
        )
        for chunk in chunks:
            self._submit(pending, chunk.items, chunk.inputs)

    def _submit(self, pending: Pending, items: Items, inputs: Arrays | None = None) -> None:
        if self._workers is None:
            self._workers = ThreadPoolExecutor(self.streams, thread_name_prefix="noria-engine")
        model = pending.model
        first = None
        if self._files.replaces_input and model.preprocessor is not None:
            first = self._files.replacement(model.preprocessor.shape)
        run = Run(items, Future())
        run.future = self._workers.submit(self._execute, model, run, inputs, first)
        pending.runs.append(run)
        if self._asynchronous(model):
            self._unfinished.append(run.future)
            while len(self._unfinished) > _ASYNC_BATCHES or (
                self._unfinished and self._unfinished[0].done()
            ):
                self._unfinished.popleft().result()

    @staticmethod
    def _asynchronous(model: Model) -> bool:
        """Results go to the history only. Source: spec D.4."""
        return model.config.classifier_async_mode and model.selector is not None and (
            model.config.network_type is NetworkType.CLASSIFIER
        )  # fmt: skip

    def _execute(
        self,
        model: Model,
        run: Run,
        inputs: Arrays | None,
        first: FloatArray | None,
    ) -> Arrays | None:
        t0 = perf_counter()
        if inputs is None:
            tensor = self._scaled(run.items, model)
            if first is not None:
                tensor[0] = first
            inputs = model.feeds(tensor)
            if self._files.needs_input:
                run.inputs = {model.input_name: tensor}
        elif self._files.needs_input:
            run.inputs = inputs
        t1 = perf_counter()
        try:
            outputs = model.session.run(inputs)
        except (EngineError, MemoryError) as error:
            lost_batch(error, len(run.items), self._record, str(model.config.path))
            return None
        t2 = perf_counter()
        with self._record.lock:
            self.times.preprocess_s += t1 - t0
            self.times.infer_s += t2 - t1
            self._record.inferred_items += len(run.items)
        post = model.postprocessor
        if self._asynchronous(model) and isinstance(post, ClassifierPostprocessor):
            self._raw(run, outputs, model)
            post.remember(post.results(outputs, run.items), run.items)
        return outputs

    def _scaled(self, items: Items, model: Model) -> FloatArray:
        """The network input of a run.

        Raises:
            EngineError: there is no memory for it.
        """
        try:
            return scale(items, model, self._record)
        except EngineError as error:
            raise failed("queue input batch for", error) from error

    def _complete_run(self, run: Run, model: Model) -> None:
        try:
            outputs = run.future.result()
        except BaseException:
            abandon(run.items, model)
            raise
        if outputs is None:
            abandon(run.items, model)
            return
        items = run.items
        self._raw(run, outputs, model)
        if model.postprocessor is not None:
            model.postprocessor.attach(outputs, items)
        if model.config.output_tensor_meta:
            attach_tensors(outputs, items, model)

    def _raw(self, run: Run, outputs: Arrays, model: Model) -> None:
        """What the debugging keys and the callback want, before anything is parsed."""
        if not self._files.active and self.on_raw_output is None:
            return
        with self._raw_lock:
            if self._files.active:
                self._files.replace_outputs(outputs)
                self._files.write(run.inputs, outputs)
            if self.on_raw_output is not None:
                component, items = model.config.component_id, run.items
                self.on_raw_output(
                    RawOutput(component, model.network, outputs, items.metas, items.objects)
                )

    def _exchange(self) -> None:
        """Take the waiting model; runs of the old one finish with it."""
        while self._unfinished:
            self._unfinished.popleft().result()
        model, self._next = self._next, None
        assert model is not None
        old, self._model = self._model, model
        self._files.close()
        self._files = TensorFiles(model.config, model.network)
        self._record.notices += [n for n in old.all_notices() if n.level == "warning"]
        self._replaced.append(old)
        self._close_replaced()

    def _release(self, model: Model) -> None:
        with self._record.lock:
            self._in_flight[id(model)] -= 1
        if self._replaced:
            self._close_replaced()

    def _close_replaced(self) -> None:
        """Release models that no batch uses any more."""
        with self._record.lock:
            done = [m for m in self._replaced if not self._in_flight[id(m)]]
            self._replaced = [m for m in self._replaced if self._in_flight[id(m)]]
        for model in done:
            model.close()
