"""Runs of the engine in threads: from items to outputs that are not parsed yet."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from threading import Barrier, Lock
from time import perf_counter

from msgspec import field

from headrace._core.errors import EngineError
from headrace._core.plain_record import PlainRecord
from headrace._core.types import Array
from headrace.config import ProcessMode
from headrace.config.enums import ColorFormat
from headrace.infer.attributes import attach_cached
from headrace.infer.batch import Batch
from headrace.infer.gpu.run_size import RunSize
from headrace.infer.items import Items, ItemSteps
from headrace.infer.loaded_model import Model
from headrace.infer.postprocess import DetectorPostprocessor
from headrace.infer.raw.files import TensorFiles
from headrace.infer.record import Record
from headrace.infer.runners import Arrays, Run, RunLimit, RunOrder
from headrace.infer.selection import Selection
from headrace.meta import FrameMeta, NetworkInfo, TensorOutput
from headrace.meta.layers import layers_of


class RawOutput(PlainRecord, frozen=True):
    """Argument of the raw output callback for each run of the engine. Source: spec C.5.

    Attributes:
        component_id: `gie-unique-id` of the model.
        network: size of its input.
        outputs: name -> (N, ...) array, binding order.
        metas: the frame of each of the N items.
        objects: the object of each item, or None for whole frames.
        inputs: the same of the inputs.
    """

    component_id: int
    network: NetworkInfo
    outputs: Mapping[str, Array]
    metas: Sequence[FrameMeta]
    objects: Sequence[int] | None
    inputs: Mapping[str, Array] = field(default_factory=dict)


class Pending(PlainRecord):
    """A batch on its way through the engine."""

    batch: Batch
    model: Model
    runs: list[Run] = field(default_factory=list)
    cached: list[tuple[int, FrameMeta, Selection]] = field(default_factory=list)

    def cancel(self) -> None:
        """Give up the runs that have not started yet."""
        for run in self.runs:
            run.future.cancel()

    def outputs_of(self, run: Run) -> Arrays | None:
        """Wait for the outputs of a run.

        Returns:
            None if the batch was lost: its objects keep their earlier results.
        """
        outputs = None
        try:
            run.future.result()
            outputs = run.outputs
        finally:
            if outputs is None:
                abandon(run.items, self.model)
        return outputs


class RunSteps(PlainRecord, frozen=True):
    """One run of the engine with the decisions on each of its N items.

    Attributes:
        model: the model that ran.
        items: the frames, objects or regions, with their place in the network input.
        inputs: name -> (N, ...) array; the image input at least.
        outputs: name -> (N, ...) array in binding order.
        steps: of each item.
    """

    model: Model
    items: Items
    inputs: Arrays
    outputs: Arrays
    steps: Sequence[ItemSteps]


def attach_tensors(outputs: Arrays, items: Items, model: Model) -> None:
    """One record per item after all other results. Source: spec C.4."""
    cfg = model.config
    for i, meta in enumerate(items.metas):
        result = TensorOutput(
            cfg.component_id,
            layers_of(outputs, i),
            model.network,
            cfg.maintain_aspect_ratio,
            cfg.symmetric_padding,
            i,
            outputs,
            cfg.output_image,
            cfg.model_color_format is ColorFormat.BGR,
        )
        shown = items.object_of(i)
        if items.rois is not None:
            roi = items.rois[i]
            roi.tensors.append(result)
            meta.user.append(roi)
            if shown >= 0:
                meta.objects.user.setdefault(shown, []).append(roi)
        elif shown >= 0:
            meta.objects.tensors.setdefault(shown, []).append(result)
        else:
            meta.tensors.append(result)


def lost_batch(error: EngineError | MemoryError, items: int, record: Record, where: str) -> None:
    """Count a batch that is dropped, the run going on, and say so.

    The original drops one whose output memory cannot grow (source: spec D.6); so is one whose
    plugin ended its worker process.

    Raises:
        EngineError: after this one the run cannot go on.
    """
    from headrace.custom.guard.crash import PluginDiedError

    if isinstance(error, MemoryError):
        text = f"there was no memory for the outputs of a batch of {items}: it has no results"
    elif isinstance(error, PluginDiedError):
        text = f"{error}\n  its batch has no results"
    else:
        text = "Failed to dequeue output from inferencing: "
        raise EngineError(error.finding.changed(prefix=text), code=EngineError.code) from error
    with record.lock:
        record.results["no_memory" if isinstance(error, MemoryError) else "crashed"] += items
        record.warn("batch-lost", text, where)


def abandon(items: Items, model: Model) -> None:
    """Give up the results of a run: its objects keep their earlier ones."""
    if model.selector is None:
        return
    for selection, first, count in items.parts:
        model.selector.abandon(selection, first, count)
    for _, meta, selection in items.cached:
        attach_cached(model.selector, meta, selection)


_ASYNC_BATCHES = 3  # images waiting for an asynchronous classifier. Source: spec E.3


class EngineRuns:
    """Scales and runs the engine, `streams` batches at once.

    Args:
        model: the first; `change` follows an exchange.
        record: times and counts.
        streams: threads, each for one run at a time.

    Attributes:
        on_raw_output: see `Inferencer`.
        on_steps: called with the decisions of each run after its results are attached, but for
            asynchronous classifiers, which attach nothing; None, as at first: none are kept.
    """

    def __init__(self, model: Model, record: Record, streams: int) -> None:
        self.on_raw_output: Callable[[RawOutput], None] | None = None
        self.on_steps: Callable[[RunSteps], None] | None = None
        self._record = record
        self._streams = streams
        self._files = TensorFiles(model.config, model.network)
        self._raw_lock = Lock()
        self._unfinished: deque[Future[None]] = deque()  # of an asynchronous classifier
        self._workers: ThreadPoolExecutor | None = None
        self._first_runs: list[Future[None]] = []
        self._limit = RunLimit()
        self._run_size = RunSize(model.config.batch_size)

    def submit(self, model: Model, runs: Sequence[Run]) -> Sequence[Run]:
        """Start runs, in their order; a single thread makes them with one hand-over.

        Returns:
            The same runs.

        Raises:
            EngineError: a file of inputs is at its end; an earlier run of an asynchronous
                classifier failed.
        """
        watch = model.watch
        for run in runs:
            if self._files.replaces_input and model.preprocessor is not None:
                run.first = self._files.replacement(model.preprocessor.shape)
            run.watched = watch is not None and watch.due()
        apart = self._streams > 1 or model.gpu_scaler is not None
        for some in [[run] for run in runs] if apart or not runs else [runs]:
            future = self._threads().submit(self._execute_all, model, some)
            for run in some:
                run.future = future
            if model.asynchronous is not None:
                self._follow(future)
        return runs

    def shares(self, runs: Iterable[Run], model: Model) -> list[int]:
        """How many runs, one behind the other, are completed at once: none of these is looked at.

        A GPU's next run goes on while the one before it is completed.
        """
        post, cfg, counts = model.postprocessor, model.config, list[int]()
        seen = self.shows_raw or self.on_steps is not None
        seen = seen or cfg.output_tensor_meta or cfg.output_image != "none"
        frames = model.selector is None and model.gpu_scaler is None
        joins = isinstance(post, DetectorPostprocessor) and frames and not seen
        alone = True
        for run in runs:
            if alone or run.watched:
                counts.append(0)
            counts[-1] += 1
            alone = run.watched or not joins
        return counts

    def prepare(self, model: Model, frames: int, *, wait: bool = True) -> None:
        """Make each thread's first run on a GPU, on nothing, and keep the size of runs.

        The runtime plans its kernels in it, for seconds: a live source would lose its frames.

        Args:
            model: whose engine runs; nothing is done for one on the CPU.
            frames: what a buffer will have. How many objects these have nobody knows.
            wait: False comes back at once: runs wait for it, decoders are made meanwhile.
        """
        scaler, cfg = model.gpu_scaler, model.config
        if scaler is None:
            return
        items = cfg.batch_size if cfg.process_mode is ProcessMode.SECONDARY else frames
        size = self._run_size.keep if wait else self._run_size.rows
        rows = model.session.fixed_batch or size(items)
        each = Barrier(self._streams)

        def first() -> None:
            each.wait()  # no thread takes two
            with suppress(EngineError):  # the first real run meets it, and deals with it
                model.session.run(model.feeds(scaler([], rows)))

        self._first_runs = [self._threads().submit(first) for _ in range(self._streams)]
        for future in self._first_runs if wait else ():
            future.result()

    @property
    def planned(self) -> bool:
        """False while `prepare` goes on."""
        return all(future.done() for future in self._first_runs)

    def _threads(self) -> ThreadPoolExecutor:
        if self._workers is None:
            self._workers = ThreadPoolExecutor(self._streams, thread_name_prefix="headrace-engine")
        return self._workers

    def _follow(self, future: Future[None]) -> None:
        """Let runs of an asynchronous classifier finish by themselves; wait if too many do.

        Raises:
            EngineError: an earlier one failed.
        """
        self._unfinished.append(future)
        while len(self._unfinished) > _ASYNC_BATCHES or (
            self._unfinished and self._unfinished[0].done()
        ):
            self._unfinished.popleft().result()

    def finish(self) -> None:
        """Wait for the runs of an asynchronous classifier.

        Raises:
            EngineError: one of them failed.
        """
        while self._unfinished:
            self._unfinished.popleft().result()

    def change(self, model: Model) -> None:
        """Write and read the files of another model's debugging keys from now on."""
        self._files.close()
        self._files = TensorFiles(model.config, model.network)
        self._run_size = RunSize(model.config.batch_size)

    def close(self) -> None:
        """End the threads; runs under way finish first."""
        if self._workers is not None:
            self._workers.shutdown(cancel_futures=True)
            self._workers = None
        self._files.close()

    @property
    def shows_raw(self) -> bool:
        """Whether the debugging keys or the callback see the outputs."""
        return self._files.active or self.on_raw_output is not None

    def show_raw(self, run: Run, outputs: Arrays, model: Model) -> None:
        """Serve the debugging keys and the callback, before anything is parsed."""
        if not self.shows_raw:
            return
        with self._raw_lock:
            if self._files.active:
                self._files.replace_outputs(outputs)
                self._files.write(run.inputs, outputs)
            if self.on_raw_output is not None:
                component, items = model.config.component_id, run.items
                self.on_raw_output(
                    RawOutput(
                        component, model.network, outputs, items.metas, items.objects, run.inputs
                    )
                )

    def new_steps(self, items: Items) -> list[ItemSteps] | None:
        """Empty records of the decisions on each item; None if these are not asked for."""
        return None if self.on_steps is None else [ItemSteps() for _ in range(len(items))]

    def show_steps(
        self, run: Run, outputs: Arrays, steps: list[ItemSteps] | None, model: Model
    ) -> None:
        """Serve `on_steps`, after results are attached."""
        if steps is not None and self.on_steps is not None:
            self.on_steps(RunSteps(model, run.items, run.inputs, outputs, steps))

    @property
    def _shows_inputs(self) -> bool:
        shown = self.on_steps is not None or self.on_raw_output is not None
        return self._files.needs_input or shown

    def _execute_all(self, model: Model, runs: Sequence[Run]) -> None:
        for run in runs:
            run.outputs = self._execute(model, run)

    def _execute(self, model: Model, run: Run) -> Arrays | None:
        """Run once, in a thread; None if the batch was lost."""
        record, shows = self._record, self._shows_inputs
        plain = not self.shows_raw and self.on_steps is None
        order = RunOrder(
            run.given,
            run.first,
            shows,
            shows or run.watched,
            plain,
            self._run_size,
            self._limit,
        )
        t0 = perf_counter()
        infer = model.runner.prepared(run, order)
        t1 = perf_counter()
        try:
            outputs, scaled = infer()
        except (EngineError, MemoryError) as error:
            lost_batch(error, len(run.items), record, str(model.config.path))
            for meta in run.items.metas:
                meta.note_failure(model.config.component_id)
            return None
        t2 = perf_counter()
        t1 = t1 if scaled is None else scaled
        run.seconds = t2 - t1
        with record.lock:
            record.times.preprocess_s += t1 - t0
            record.times.infer_s += t2 - t1
            record.inferred_items += len(run.items)
        if plain:
            outputs = model.runner.parsed(outputs, run.items)
        if model.asynchronous is not None:
            self.show_raw(run, outputs, model)
            model.asynchronous.remember_outputs(outputs, run.items)
        return outputs
