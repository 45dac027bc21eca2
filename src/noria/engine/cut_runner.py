"""A graph with plugins as a `Runner` like any other: pieces in a runtime, plugins between them.

Arrays pass from one to the next without a copy, unless a plugin works in another type than the
network. Each run has an execution context of its own; they are kept for the next run.
"""

from __future__ import annotations

import threading
import weakref
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from noria.engine.backends import Backend, PluginBackend, Runner, RunOptions
from noria.engine.cut import cut
from noria.engine.plugin_record import PluginRecord, saved_of
from noria.errors import EngineError, PluginError
from noria.network.inference import read_value
from noria.network.tensor_spec import TensorSpec
from noria.plugins.context import ContextPlugin
from noria.plugins.deserialising import deserialising
from noria.plugins.drivers import load_engine_plugin, missing_creators
from noria.plugins.layer import EnginePlugin
from noria.plugins.registry import PluginRegistry

__all__ = ["CutRunner", "load_plugins", "open_cut"]

Array = npt.NDArray[Any]
_OMITTED = np.empty(0, np.float32)


def load_plugins(
    records: Sequence[PluginRecord],
    blobs: Mapping[str, bytes],
    registry: PluginRegistry,
    where: str,
) -> list[EnginePlugin]:
    """The plugin layers of a plan, ready for contexts.

    Raises:
        EngineError: naming all plugins that no creator is registered for; a damaged blob.
        PluginError: a creator or plugin failed; nothing it made is left.
    """
    saved = [saved_of(record, blobs, where) for record in records]
    missing = missing_creators([s.spec for s in saved], registry)
    if missing:
        names = "; ".join(
            f"{t} version {v}" + (f", namespace {n!r}" if n else "") for t, v, n in missing
        )
        raise PluginError(
            f"the plan needs {len(missing)} plugin(s) that are not registered: {names}",
            where=where,
            fix=[
                "load the file that registers them first: custom-lib-path=<plugins.py>, or "
                "get_plugin_registry().load_library(path)",
            ],
        )
    loaded: list[EnginePlugin] = []
    try:
        with deserialising():
            for one in saved:
                loaded.append(load_engine_plugin(one, registry))
        for engine in loaded:
            engine.finish()
    except BaseException:
        for engine in loaded:
            engine.close()
        raise
    return loaded


def open_cut(
    backend: Backend,
    model: bytes,
    options: RunOptions,
    records: Sequence[PluginRecord],
    plugins: Sequence[EnginePlugin],
) -> Runner:
    """Open the pieces of a graph; or the graph as it is, if the backend takes its plugins.

    Args:
        backend: runs the pieces.
        model: the ONNX message with its plugin nodes.
        options: for the pieces.
        records: of the plugin nodes.
        plugins: their layers in the same order; the runner owns them from now on.

    Raises:
        EngineError: the runtime refuses a piece; a plugin failed. The plugins are closed then.
    """
    import onnx

    if isinstance(backend, PluginBackend):
        whole = backend.open_with_plugins(model, options, plugins)
        if whole is not None:
            return whole
    lives = _Lives(plugins)
    pieces: list[Runner] = []
    try:
        proto = onnx.ModelProto.FromString(model)
        parts = cut(proto, {r.node: (r.inputs + r.shape_inputs, r.outputs) for r in records})
        ends = set(parts.outputs)
        by_name = {r.node: i for i, r in enumerate(records)}
        stages = []
        for stage in parts.stages:
            runner = None
            if stage.piece is not None:
                batched = options.batched and stage.piece.batched
                runner = backend.open(stage.piece.model, replace(options, batched=batched))
                pieces.append(runner)
            steps = tuple(_step(by_name[name], records[by_name[name]], ends)
                          for name in stage.plugins)  # fmt: skip
            names = stage.piece.inputs if stage.piece is not None else ()
            # a runtime may have dropped an input that nothing reads
            if runner is not None:
                have = {s.name for s in runner.inputs}
                names = tuple(n for n in names if n in have)
            stages.append(_Stage(runner, names, steps))
        lives.give_back(lives.take())  # what cannot be attached fails now, not in the first run
        return CutRunner(proto, stages, parts.constants, lives)
    except BaseException:
        for piece in pieces:
            piece.close()
        lives.close()
        raise


@dataclass(frozen=True, slots=True)
class _Step:
    """One plugin in a run."""

    index: int
    inputs: tuple[str, ...]
    shape_inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    fresh: tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class _Stage:
    runner: Runner | None
    inputs: tuple[str, ...]
    steps: tuple[_Step, ...]


def _step(index: int, record: PluginRecord, ends: set[str]) -> _Step:
    fresh = tuple(name in ends for name in record.outputs)
    return _Step(index, record.inputs, record.shape_inputs, record.outputs, fresh)


class CutRunner:
    """See module. Made by `open_cut`.

    Attributes:
        inputs, outputs: bindings in the model's order.
        device: plugins compute on the host.
    """

    device = "cpu"

    def __init__(
        self,
        proto: Any,
        stages: Sequence[_Stage],
        constants: Mapping[str, Array],
        lives: _Lives,
    ) -> None:
        self._stages, self._constants = stages, dict(constants)
        self._lives = lives
        made = {s.name: s for stage in stages if stage.runner for s in stage.runner.outputs}
        weights = {t.name for t in proto.graph.initializer}
        self.inputs = tuple(_spec(v) for v in proto.graph.input if v.name not in weights)
        self.outputs = tuple(made.get(v.name) or _spec(v) for v in proto.graph.output)
        self._names = [v.name for v in proto.graph.output]
        # plugins end with the runner even if nobody closes it
        self._finalizer = weakref.finalize(self, lives.close)

    def run(self, feeds: Mapping[str, Any], *, to_host: bool = True) -> list[Array]:
        """See `Runner.run`."""
        values = self.run_all(feeds)
        return [values[name] for name in self._names]

    def run_all(self, feeds: Mapping[str, Any]) -> dict[str, Array]:
        """Run, and give every value that passed between pieces and plugins. Some of the memory is
        used again by the next run.

        Raises:
            EngineError: the runtime or a plugin failed, or the session is closed.
        """
        lives = self._lives
        contexts = lives.take()
        try:
            values: dict[str, Any] = {**self._constants, **feeds}
            for stage in self._stages:
                runner = stage.runner
                if runner is not None:
                    given = runner.run({name: values[name] for name in stage.inputs})
                    for spec, array in zip(runner.outputs, given, strict=True):
                        values[spec.name] = array
                for step in stage.steps:
                    arrays = contexts[step.index].run(
                        [values[n] if n else _OMITTED for n in step.inputs],
                        shape_inputs=[values[n] for n in step.shape_inputs],
                        fresh=step.fresh,
                    )
                    values.update(zip(step.outputs, arrays, strict=True))
            return values
        finally:
            lives.give_back(contexts)

    def close(self) -> None:
        """Release the pieces; plugins end when the runs under way have finished."""
        self._finalizer.detach()
        self._lives.close()
        for stage in self._stages:
            if stage.runner is not None:
                stage.runner.close()


class _Lives:
    """The plugins of an open graph and their contexts: one set per run at a time."""

    def __init__(self, plugins: Sequence[EnginePlugin]) -> None:
        self._plugins = list(plugins)
        self._idle: deque[list[ContextPlugin]] = deque()
        self._lock = threading.Lock()
        self._running = 0
        self._closed = False

    def take(self) -> list[ContextPlugin]:
        """A set of contexts; a new one if all are at work."""
        with self._lock:
            if self._closed:
                raise EngineError("the session is closed")
            self._running += 1
            if self._idle:
                return self._idle.pop()
        made: list[ContextPlugin] = []
        try:
            for plugin in self._plugins:
                made.append(plugin.context())
        except BaseException:
            for context in made:
                context.close()
            self._done()
            raise
        return made

    def give_back(self, contexts: list[ContextPlugin]) -> None:
        """The run is over."""
        with self._lock:
            if not self._closed:
                self._idle.append(contexts)
                self._running -= 1
                return
        for context in contexts:
            context.close()
        self._done()

    def _done(self) -> None:
        with self._lock:
            self._running -= 1
            last = self._closed and self._running == 0
        if last:
            self._end()

    def close(self) -> None:
        """End all that is idle now, and the rest when it is."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            idle, self._idle = list(self._idle), deque()
            last = self._running == 0
        for contexts in idle:
            for context in contexts:
                context.close()
        if last:
            self._end()

    def _end(self) -> None:
        for plugin in self._plugins:
            with suppress(PluginError):
                plugin.close()


def _spec(value: Any) -> TensorSpec:
    known = read_value(value)
    if known is None:
        raise EngineError(f"the type of output {value.name!r} is not known")
    shape = known.shape
    return TensorSpec(value.name, known.dtype, () if shape is None else shape)
