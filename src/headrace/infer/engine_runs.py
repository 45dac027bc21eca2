"""Runs of the engine in threads: from items to outputs that are not parsed yet."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from threading import Barrier, Lock
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace._core.errors import DeviceMemoryError, EngineError, GeometryError
from headrace._core.types import Array
from headrace.config import ProcessMode
from headrace.infer.batch import Batch
from headrace.infer.dump import TensorFiles
from headrace.infer.geometry import ScaleTransform
from headrace.infer.gpu.run_size import RunSize
from headrace.infer.items import FramePiece, Items, split_pieces
from headrace.infer.loaded_model import Model
from headrace.infer.parsers.device_tables import DeviceTables
from headrace.infer.postprocess import DetectorPostprocessor, attach_cached
from headrace.infer.record import Record
from headrace.infer.selection import Selection
from headrace.infer.steps import ItemSteps, RunSteps
from headrace.meta import FrameMeta, NetworkInfo, TensorOutput
from headrace.meta.detections import FloatArray
from headrace.meta.layers import layers_of

if TYPE_CHECKING:
    from headrace.infer.gpu.hits import HitFinder

Arrays = dict[str, Array]


@dataclass(frozen=True, slots=True)
class RawOutput:
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


@dataclass(slots=True)
class Run:
    """One run of the engine: its items, and the future of its outputs.

    Attributes:
        inputs: what the engine got, where somebody wants to see it.
        watched: the plausibility watch looks at it.
        seconds: how long the engine took.
    """

    items: Items
    future: Future[Arrays | None]
    inputs: Arrays = field(default_factory=dict)
    watched: bool = False
    seconds: float = 0.0


@dataclass(slots=True)
class Pending:
    """A batch on its way through the engine."""

    batch: Batch
    model: Model
    runs: list[Run] = field(default_factory=list)
    cached: list[tuple[int, FrameMeta, Selection]] = field(default_factory=list)

    def cancel(self) -> None:
        """Give up the runs that have not started yet."""
        for run in self.runs:
            run.future.cancel()


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
        self._unfinished: deque[Future[Arrays | None]] = deque()  # of an asynchronous classifier
        self._workers: ThreadPoolExecutor | None = None
        self._most_at_once: int | None = None  # items that fit the GPU's memory, once it was full
        self._run_size = RunSize(model.config.batch_size)

    def submit(self, model: Model, items: Items, inputs: Arrays | None = None) -> Run:
        """Start a run.

        Args:
            model: whose engine runs.
            items: what is inferred on.
            inputs: tensors of the caller; None scales the items.

        Raises:
            EngineError: an earlier run of an asynchronous classifier failed.
        """
        first = None
        if self._files.replaces_input and model.preprocessor is not None:
            first = self._files.replacement(model.preprocessor.shape)
        run = Run(items, Future())
        run.watched = model.watch is not None and model.watch.due()
        run.future = self._threads().submit(self._execute, model, run, inputs, first)
        return run

    def prepare(self, model: Model, frames: int) -> None:
        """Make each thread's first run on a GPU, on nothing, and keep the size of runs.

        The runtime plans its kernels in it, for seconds: a live source would lose its frames.

        Args:
            model: whose engine runs; nothing is done for one on the CPU.
            frames: what a buffer will have. How many objects these have nobody knows.
        """
        scaler, cfg = model.gpu_scaler, model.config
        if scaler is None:
            return
        items = cfg.batch_size if cfg.process_mode is ProcessMode.SECONDARY else frames
        rows = model.session.fixed_batch or self._run_size.keep(items)
        each = Barrier(self._streams)

        def first() -> None:
            each.wait()  # no thread takes two
            with suppress(EngineError):  # the first real run meets it, and deals with it
                model.session.run(model.feeds(scaler([], rows)))

        for future in [self._threads().submit(first) for _ in range(self._streams)]:
            future.result()

    def _threads(self) -> ThreadPoolExecutor:
        if self._workers is None:
            self._workers = ThreadPoolExecutor(self._streams, thread_name_prefix="headrace-engine")
        return self._workers

    def follow(self, run: Run) -> None:
        """Let a run of an asynchronous classifier finish by itself; wait if too many do.

        Raises:
            EngineError: an earlier one failed.
        """
        self._unfinished.append(run.future)
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

    def _inputs(
        self, model: Model, run: Run, inputs: Arrays | None, first: FloatArray | None
    ) -> Arrays:
        """The engine's inputs on the host, kept in the run where a reader asked for them."""
        if inputs is not None:
            if self._shows_inputs:
                run.inputs = inputs
            return inputs
        tensor = scale(run.items, model, self._record)
        if first is not None:
            tensor[0] = first
        if self._sees_inputs(run):
            run.inputs = {model.input_name: tensor}
        return model.feeds(tensor)

    @property
    def _shows_inputs(self) -> bool:
        shown = self.on_steps is not None or self.on_raw_output is not None
        return self._files.needs_input or shown

    def _sees_inputs(self, run: Run) -> bool:
        return self._shows_inputs or run.watched

    def _on_gpu(
        self,
        model: Model,
        run: Run,
        pieces: list[FramePiece],
        count: int,
        finder: HitFinder | None = None,
    ) -> tuple[Arrays, float]:
        """Scale and infer on the GPU; in more goes where its memory does not do for one.

        Args:
            finder: leaves the outputs of a single go there, as `DeviceTables`.

        Returns:
            The outputs of all items, and when the last of them were scaled.

        Raises:
            EngineError: the GPU failed, or has no memory for a single item.
        """
        assert model.gpu_scaler is not None
        most = model.session.fixed_batch or self._most_at_once
        if most is not None and count > most:
            return self._in_parts(model, run, pieces, most)
        rows = model.session.fixed_batch or self._run_size.rows(count)
        rows = rows if most is None else min(rows, most)
        try:
            tensor = model.gpu_scaler(pieces, rows)
            t1 = perf_counter()
            outputs = model.session.run(model.feeds(tensor), to_host=finder is None)
        except DeviceMemoryError as error:
            if rows == 1 or model.session.fixed_batch:
                raise
            self._most_at_once = -(-rows // 2)
            text = f"the GPU has no memory for {rows} items at once ({error:brief}): "
            text += "runs are smaller from now on"
            with self._record.lock:
                self._record.warn("gpu-memory", text, str(model.config.path))
            return self._in_parts(model, run, pieces, self._most_at_once)
        if self._sees_inputs(run):
            seen = [tensor.numpy()[:count].astype(np.float32)]
            if run.inputs:  # of the parts before this one
                seen.insert(0, run.inputs[model.input_name])
            run.inputs = {model.input_name: np.concatenate(seen)}
        if finder is not None:
            tables: dict[str, Any] = {}
            for name, tensor in outputs.items():
                tables[name] = DeviceTables.of(tensor, finder).rows(count)
            return tables, t1
        return {name: array[:count] for name, array in outputs.items()}, t1

    def _parse_ahead(
        self, post: DetectorPostprocessor, outputs: dict[str, Any], items: Items, model: Model
    ) -> dict[str, Any]:
        """Parse in the engine's thread; on the host from now on if the GPU has no memory for it.

        Returns:
            The outputs, wherever they are now.
        """
        try:
            post.parse_ahead(outputs, items)
        except DeviceMemoryError as error:
            model.gpu_hits = None
            text = f"the GPU has no memory for candidates ({error:brief}): "
            text += "outputs are copied to the host from now on"
            with self._record.lock:
                self._record.warn("gpu-memory", text, str(model.config.path))
            outputs = {name: table.numpy() for name, table in outputs.items()}
            post.parse_ahead(outputs, items)
        return outputs

    def _in_parts(
        self, model: Model, run: Run, pieces: list[FramePiece], most: int
    ) -> tuple[Arrays, float]:
        done: list[Arrays] = []
        t1 = perf_counter()
        for part, count in split_pieces(pieces, most):
            outputs, t1 = self._on_gpu(model, run, part, count)
            done.append(outputs)
        return {name: np.concatenate([o[name] for o in done]) for name in done[0]}, t1

    def _execute(
        self, model: Model, run: Run, inputs: Arrays | None, first: FloatArray | None
    ) -> Arrays | None:
        """Run once, in a thread; None if the batch was lost."""
        record = self._record
        t0 = perf_counter()
        on_gpu = inputs is None and model.gpu_scaler is not None and first is None
        pieces = _pieces(run.items, model, record) if on_gpu else []
        feeds = {} if on_gpu else self._inputs(model, run, inputs, first)
        plain = not self.shows_raw and self.on_steps is None
        whole = plain and not run.watched and all(run.items.valid())
        t1 = perf_counter()
        try:
            if on_gpu:
                finder = model.gpu_hits if whole else None
                outputs, t1 = self._on_gpu(model, run, pieces, len(run.items), finder)
            else:
                outputs = model.session.run(feeds)
        except (EngineError, MemoryError) as error:
            lost_batch(error, len(run.items), record, str(model.config.path))
            return None
        t2 = perf_counter()
        run.seconds = t2 - t1
        with record.lock:
            record.times.preprocess_s += t1 - t0
            record.times.infer_s += t2 - t1
            record.inferred_items += len(run.items)
        post = model.postprocessor
        if model.gpu_scaler is not None and plain and isinstance(post, DetectorPostprocessor):
            with model.device.entered():  # a parser of the user's may compute there
                outputs = self._parse_ahead(post, outputs, run.items, model)
        if model.asynchronous is not None:
            self.show_raw(run, outputs, model)
            model.asynchronous.remember_outputs(outputs, run.items)
        return outputs


def scale(items: Items, model: Model, record: Record) -> FloatArray:
    """The network input of N frames or crops; fills in where each lies in it.

    Returns:
        (N, ...) float32; zeros for an item without area.

    Raises:
        EngineError: there is no memory for it.
    """
    pre = model.preprocessor
    assert pre is not None
    pieces, count = _pieces(items, model, record), len(items)
    try:
        array = np.empty((count, *pre.shape), np.float32)
    except MemoryError as error:
        net = model.network
        raise EngineError(
            f"Failed to queue input batch for inferencing: there is no memory for {count} "
            f"input(s) of {net.width}x{net.height} pixels",
            where=str(model.config.path),
            fix="a smaller infer-dims or batch-size needs less",
        ) from error
    start = 0
    for piece in pieces:
        end = start + len(piece.src)
        if end > start:
            pre.write(piece.frame, piece.src, piece.dst, array[start:end])
        start = end
    return array


def _pieces(items: Items, model: Model, record: Record) -> list[FramePiece]:
    """The pieces of frames that items show, in order; fills in where each lies."""
    pre = model.preprocessor
    assert pre is not None
    pieces: list[FramePiece] = []
    if items.rects is not None:
        for start, end in items.by_frame():
            frame = items.frames[start]
            crops = pre.fitted(items.rects[start:end], frame.width, frame.height)
            items.crops.append(crops)
            pieces.append(FramePiece(frame, crops.src, crops.dst))
        return pieces
    transforms: list[ScaleTransform | None] = []
    for frame in items.frames:
        try:
            placed = pre.place(frame)
        except GeometryError as error:
            record.warn("nothing-inferred", f"{error:brief}: nothing is inferred on such frames")
            pieces.append(FramePiece(frame, _NOTHING, _NOTHING))
            transforms.append(None)
        else:
            pieces.append(FramePiece(frame, placed.src, placed.dst, whole=True))
            transforms.append(placed.transform)
    items.transforms = transforms
    return pieces


_NOTHING = np.zeros((1, 4), np.int32)  # its item is zeros
