"""A plugin layer that a worker computes, with the face of any other `EnginePlugin`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace._core.errors import HeadraceError, PluginError
from headrace._core.types import Array
from headrace.custom.guard.keeper import is_ending
from headrace.custom.guard.repro import FatalCall
from headrace.engine.plugin_graph.plugin_saving import saved_of, spec_of
from headrace.infer.model.guarded_cases import PluginArgs
from headrace.plugins.calls import print_failure
from headrace.plugins.context import ContextPlugin
from headrace.plugins.layer import EnginePlugin, SavedPlugin
from headrace.plugins.prepared import Prepared

if TYPE_CHECKING:
    from headrace.engine.plugin_graph.plugin_record import PluginRecord
    from headrace.infer.model.guarded_engines import GuardedEngines
    from headrace.infer.model.guarded_worker import EnginesWorker


class _Loaded:
    """The layer in one worker. One that is started again loads it again.

    `number` is the layer's there, if it was built there.
    """

    def __init__(self, layer: GuardedLayer, worker: EnginesWorker, number: int = 0) -> None:
        self.worker = worker
        self._layer = layer
        self._number = number
        self._generation = worker.process.generation

    def number(self) -> int:
        """Return its number in the worker, where it is loaded if need be.

        Raises:
            PluginError: it cannot be loaded there.
        """
        worker, layer = self.worker, self._layer
        with worker.process.lock:
            if not self._number or not worker.is_current(self._generation):
                answer, _ = worker.ask(
                    "load_layer",
                    {"record": layer.record.to_json().decode(), "where": layer.place},
                    layer.where,
                    [_bytes(b) for b in layer.blobs.values()],
                    plugin=True,
                    starting=not self._number,
                    call=layer.call,
                )
                self._number = answer.layer
                self._generation = worker.process.generation
            return self._number

    def close(self) -> None:
        """End it in the worker."""
        self.end(self._number, self._generation)

    def end(self, number: int, generation: int) -> None:
        """End something in the worker, if that is still the one that has it."""
        if is_ending():  # nobody is there to be asked
            return
        worker, layer = self.worker, self._layer
        with worker.process.lock:
            if not number or not worker.is_current(generation):
                return
            try:
                worker.ask("close", {"number": number}, layer.where, plugin=True, call=layer.call)
            except HeadraceError as error:  # nobody is there to be given it
                print_failure(error, "destroy")


class GuardedLayer(EnginePlugin):
    """A layer in an engine, in the host's worker; and in more of them, for contexts beside others.

    Attributes:
        where: for errors.
        record, blobs, place: what it is loaded from, and where that is.
    """

    remote = True

    def __init__(
        self,
        host: GuardedEngines,
        record: PluginRecord,
        blobs: Mapping[str, bytes],
        place: str,
        number: int = 0,
    ) -> None:
        super().__init__(spec_of(record), [])
        self.where = f"{host.path.name}: {self.spec.where}"
        self.record = record
        self.blobs = {name: blobs[name] for name in record.blobs}
        self.place = place
        self._host = host
        self._loaded: dict[EnginesWorker, _Loaded] = {host: _Loaded(self, host, number)}

    def finish(self) -> None:
        """See `EnginePlugin`."""
        self._loaded[self._host].number()

    def call(
        self, inputs: Sequence[Array] | None = None, shape_inputs: Sequence[Array] = ()
    ) -> FatalCall:
        """Make the case to save if it ends the worker; without `inputs` of loading it."""
        options = self._host.options
        args = PluginArgs(
            self._host.config,
            record=self.record,
            place=self.place,
            inputs=None if inputs is None else len(inputs),
        )
        arrays = {f"data {i}": _bytes(b) for i, b in enumerate(self.blobs.values())}
        arrays |= {f"input {i}": array for i, array in enumerate(inputs or ())}
        arrays |= {f"shape input {i}": array for i, array in enumerate(shape_inputs)}
        limit = options.load_timeout_s if inputs is None else options.timeout_s
        return FatalCall("plugin", self.spec.name, args, limit, arrays)

    def save(self) -> SavedPlugin:
        """See `EnginePlugin`."""
        return saved_of(self.record, self.blobs, self.place)

    def context(self) -> GuardedContext:
        """See `EnginePlugin`."""
        worker = self._host.lend(self.spec.layer)
        try:
            return GuardedContext(self, self._loaded.setdefault(worker, _Loaded(self, worker)))
        except BaseException:
            self.give_back(worker)
            raise

    def give_back(self, worker: EnginesWorker) -> None:
        """A context in that worker is closed."""
        self._host.give_back(self.spec.layer, worker)

    def _free(self) -> None:
        for loaded in self._loaded.values():
            loaded.close()


class GuardedContext(ContextPlugin):
    """A layer in an execution context; its real one is in the worker."""

    def __init__(self, layer: GuardedLayer, loaded: _Loaded) -> None:
        super().__init__(layer.spec, [])
        self._layer = layer
        self._loaded = loaded
        self._number = 0
        self._generation = -1
        self._context()

    def run(
        self,
        inputs: Sequence[Array],
        *,
        shape_inputs: Sequence[Array] = (),
        fresh: Sequence[bool] | None = None,
        into: Callable[[int, tuple[int, ...]], Array | None] | None = None,
    ) -> list[Array]:
        """See `ContextPlugin`. Outputs have memory of their own, or that of `into`.

        Raises:
            PluginDiedError: the worker died.
        """
        layer, worker = self._layer, self._loaded.worker
        with worker.process.lock:
            payload = {
                "context": self._context(),
                "inputs": len(inputs),
                "fresh": None if fresh is None else [False] * len(fresh),
            }
            answer, outputs = worker.ask(
                "call_layer",
                payload,
                layer.where,
                [*inputs, *shape_inputs],
                limit=worker.options.timeout_s,
                plugin=True,
                call=lambda: layer.call(inputs, shape_inputs),
            )
            for notice in answer.notices:
                self.report(notice)
            kinds = [(a.dtype, a.ndim) for a in outputs]
            expected = [
                (d, len(s)) for d, s in zip(self.spec.dtypes, self.spec.shapes, strict=True)
            ]
            if kinds != expected:
                raise PluginError(f"its worker gave outputs of {kinds}", where=layer.where)
            arrays = []
            for index, array in enumerate(outputs):
                target = None if into is None else into(index, array.shape)
                if target is not None:
                    np.copyto(target, array)
                arrays.append(array.copy() if target is None else target)
            return arrays

    def _context(self) -> int:
        layer, worker = self._layer, self._loaded.worker
        with worker.process.lock:
            if not self._number or not worker.is_current(self._generation):
                number = self._loaded.number()
                answer, _ = worker.ask(
                    "open_layer", {"layer": number}, layer.where, plugin=True, call=layer.call
                )
                self._number = answer.context
                self._generation = worker.process.generation
            return self._number

    def _free(self) -> None:
        self._loaded.end(self._number, self._generation)
        self._layer.give_back(self._loaded.worker)

    def _change(self, now: Prepared, *, within: bool) -> None:
        """It is changed in the worker."""

    def _enqueue(self, now: Prepared, inputs: list[int], outputs: list[int], workspace: int) -> Any:
        """It is called in the worker."""


def _bytes(data: bytes) -> Array:
    return np.frombuffer(data, np.uint8)
