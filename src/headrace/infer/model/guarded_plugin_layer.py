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


class GuardedLayer(EnginePlugin):
    """A layer in an engine. A worker that is started again loads it again."""

    remote = True

    def __init__(
        self,
        host: GuardedEngines,
        record: PluginRecord,
        blobs: Mapping[str, bytes],
        where: str,
        number: int = 0,
    ) -> None:
        super().__init__(spec_of(record), [])
        self.host = host
        self.where = f"{host.path.name}: {self.spec.where}"
        self._record = record
        self._blobs = {name: blobs[name] for name in record.blobs}
        self._place = where
        self._number = number
        self._generation = host.process.generation

    def finish(self) -> None:
        """See `EnginePlugin`."""
        self.number()

    def number(self) -> int:
        """Return its number in the worker, where it is loaded if need be.

        Raises:
            PluginError: it cannot be loaded there.
        """
        host = self.host
        with host.process.lock:
            if not self._number or not host.is_current(self._generation):
                payload = {"record": self._record.to_json().decode(), "where": self._place}
                answer, _ = host.ask(
                    "load_layer",
                    payload,
                    self.where,
                    [_bytes(b) for b in self._blobs.values()],
                    plugin=True,
                    starting=not self._number,
                    call=self.call,
                )
                self._number = answer.layer
                self._generation = host.process.generation
            return self._number

    def call(
        self, inputs: Sequence[Array] | None = None, shape_inputs: Sequence[Array] = ()
    ) -> FatalCall:
        """Make the case to save if it ends the worker; without `inputs` of loading it."""
        options = self.host.options
        args = PluginArgs(
            self.host.config,
            record=self._record,
            place=self._place,
            inputs=None if inputs is None else len(inputs),
        )
        arrays = {f"data {i}": _bytes(b) for i, b in enumerate(self._blobs.values())}
        arrays |= {f"input {i}": array for i, array in enumerate(inputs or ())}
        arrays |= {f"shape input {i}": array for i, array in enumerate(shape_inputs)}
        limit = options.load_timeout_s if inputs is None else options.timeout_s
        return FatalCall("plugin", self.spec.name, args, limit, arrays)

    def save(self) -> SavedPlugin:
        """See `EnginePlugin`."""
        return saved_of(self._record, self._blobs, self._place)

    def context(self) -> GuardedContext:
        """See `EnginePlugin`."""
        return GuardedContext(self)

    def _free(self) -> None:
        self.host_close(self._number, self._generation)

    def host_close(self, number: int, generation: int) -> None:
        """End something in the worker, if that is still the one that has it."""
        if is_ending():  # nobody is there to be asked
            return
        with self.host.process.lock:
            if not number or not self.host.is_current(generation):
                return
            try:
                self.host.ask("close", {"number": number}, self.where, plugin=True, call=self.call)
            except HeadraceError as error:  # nobody is there to be given it
                print_failure(error, "destroy")


class GuardedContext(ContextPlugin):
    """A layer in an execution context; its real one is in the worker."""

    def __init__(self, layer: GuardedLayer) -> None:
        super().__init__(layer.spec, [])
        self._layer = layer
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
        layer, host = self._layer, self._layer.host
        with host.process.lock:
            payload = {
                "context": self._context(),
                "inputs": len(inputs),
                "fresh": None if fresh is None else [False] * len(fresh),
            }
            answer, outputs = host.ask(
                "call_layer",
                payload,
                layer.where,
                [*inputs, *shape_inputs],
                limit=host.options.timeout_s,
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
        layer = self._layer
        process = layer.host.process
        with process.lock:
            if not self._number or not layer.host.is_current(self._generation):
                number = layer.number()
                answer, _ = layer.host.ask(
                    "open_layer", {"layer": number}, layer.where, plugin=True, call=layer.call
                )
                self._number = answer.context
                self._generation = process.generation
            return self._number

    def _free(self) -> None:
        self._layer.host_close(self._number, self._generation)

    def _change(self, now: Prepared, *, within: bool) -> None:
        """It is changed in the worker."""

    def _enqueue(self, now: Prepared, inputs: list[int], outputs: list[int], workspace: int) -> Any:
        """It is called in the worker."""


def _bytes(data: bytes) -> Array:
    return np.frombuffer(data, np.uint8)
