"""Runs of the engine in threads: from items to the outputs, which nothing has parsed yet."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Lock
from time import perf_counter
from typing import TYPE_CHECKING

from noria._core.errors import EngineError
from noria.infer.dump import TensorFiles
from noria.infer.pending import Arrays, RawOutput, Run, failed, lost_batch
from noria.infer.scale import scale

if TYPE_CHECKING:
    from noria.infer.items import Items
    from noria.infer.model import Model
    from noria.infer.record import Record
    from noria.meta.detections import FloatArray

_ASYNC_BATCHES = 3  # images waiting for an asynchronous classifier. Source: spec E.3


class EngineRuns:
    """Scales and runs the engine, `streams` batches at once.

    Args:
        model: the first; `change` follows an exchange.
        record: times and counts.
        streams: threads, each for one run at a time.

    Attributes:
        on_raw_output: see `Inferencer`.
    """

    def __init__(self, model: Model, record: Record, streams: int) -> None:
        self.on_raw_output: Callable[[RawOutput], None] | None = None
        self._record = record
        self._streams = streams
        self._files = TensorFiles(model.config, model.network)
        self._raw_lock = Lock()
        self._unfinished: deque[Future[Arrays | None]] = deque()  # of an asynchronous classifier
        self._workers: ThreadPoolExecutor | None = None

    def submit(self, model: Model, items: Items, inputs: Arrays | None = None) -> Run:
        """Start a run.

        Args:
            model: whose engine runs.
            items: what is inferred on.
            inputs: tensors of the caller; None scales the items.

        Raises:
            EngineError: an earlier run of an asynchronous classifier failed.
        """
        if self._workers is None:
            self._workers = ThreadPoolExecutor(self._streams, thread_name_prefix="noria-engine")
        first = None
        if self._files.replaces_input and model.preprocessor is not None:
            first = self._files.replacement(model.preprocessor.shape)
        run = Run(items, Future())
        run.future = self._workers.submit(self._execute, model, run, inputs, first)
        return run

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

    def close(self) -> None:
        """End the threads; runs under way finish first."""
        if self._workers is not None:
            self._workers.shutdown(cancel_futures=True)
            self._workers = None
        self._files.close()

    def show_raw(self, run: Run, outputs: Arrays, model: Model) -> None:
        """Serve the debugging keys and the callback, before anything is parsed."""
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

    def _execute(
        self, model: Model, run: Run, inputs: Arrays | None, first: FloatArray | None
    ) -> Arrays | None:
        """Run once, in a thread; None if the batch was lost."""
        record = self._record
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
            lost_batch(error, len(run.items), record, str(model.config.path))
            return None
        t2 = perf_counter()
        with record.lock:
            record.times.preprocess_s += t1 - t0
            record.times.infer_s += t2 - t1
            record.inferred_items += len(run.items)
        if model.asynchronous is not None:
            self.show_raw(run, outputs, model)
            model.asynchronous.remember_outputs(outputs, run.items)
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
