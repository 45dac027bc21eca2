"""A graph with plugins as a `Runner` like any other: pieces in a runtime, plugins between them.

A runtime that calls plugins itself is given the graph whole, if there would be more than one piece.
Arrays pass from one to the next without a copy, unless a plugin works in another type than the
network. Each run has an execution context of its own; they are kept for the next run.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from noria._core.errors import EngineError, PluginError
from noria._core.notices import Notice, note_once
from noria._core.text import quoted
from noria.engine.backends import (
    Backend,
    CallingBackend,
    CompilingBackend,
    Runner,
    RunOptions,
)
from noria.engine.plugin_graph.context_pool import PluginLives
from noria.engine.plugin_graph.plugin_record import PluginRecord, saved_of
from noria.engine.plugin_graph.plugins_in_runtime import PluginCalls, WholeRunner, whole_graph
from noria.engine.plugin_graph.split import Piece, cut
from noria.network.inference import read_value
from noria.network.tensor_spec import TensorSpec
from noria.plugins.deserialising import deserialising
from noria.plugins.drivers import load_engine_plugin, missing_creators
from noria.plugins.layer import EnginePlugin
from noria.plugins.registry import PluginRegistry

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
            quoted(f"{t} version {v}", limit=None) + (f", namespace {n!r}" if n else "")
            for t, v, n in missing
        )
        raise PluginError(
            f"the plan needs {len(missing)} plugin(s) that are not registered: {names}",
            where=where,
            fix=[
                *(text for key in missing for text in registry.near(*key)),
                "load the file that registers them first, Python or compiled: custom-lib-path in a "
                "config, --plugins of noria exec and trtexec, get_plugin_registry().load_library "
                "in code",
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


def compile_pieces(
    backend: CompilingBackend,
    model: bytes,
    options: RunOptions,
    records: Sequence[PluginRecord],
) -> dict[str, bytes]:
    """What a backend makes of each piece between the plugins, by names for a plan's blobs.

    Raises:
        EngineError: the runtime refuses a piece.
    """
    import onnx

    proto = onnx.ModelProto.FromString(model)
    parts = cut(proto, {r.node: (r.inputs + r.shape_inputs, r.outputs) for r in records})
    return {
        _blob_of(number): backend.compile(stage.piece.model, _options_of(stage.piece, options))
        for number, stage in enumerate(parts.stages)
        if stage.piece is not None
    }


def _blob_of(number: int) -> str:
    return f"piece {number}"


def _options_of(piece: Piece, options: RunOptions) -> RunOptions:
    return replace(options, batched=options.batched and piece.batched)


def open_cut(
    backend: Backend,
    model: bytes,
    options: RunOptions,
    records: Sequence[PluginRecord],
    plugins: Sequence[EnginePlugin],
    notices: list[Notice] | None = None,
    *,
    whole: bool = True,
    compiled: Mapping[str, bytes] | None = None,
) -> Runner:
    """Open the pieces of a graph; or the graph as it is, if the backend calls its plugins.

    Args:
        backend: runs the pieces.
        model: the ONNX message with its plugin nodes.
        options: for the pieces.
        records: of the plugin nodes.
        plugins: their layers in the same order; the runner owns them from now on.
        notices: gets why a graph is cut that might have stayed whole.
        whole: the graph need not be cut.
        compiled: what `compile_pieces` gave.

    Raises:
        EngineError: the runtime refuses a piece; a plugin failed. The plugins are closed then.
    """
    import onnx

    whole = whole and not any(plugin.remote for plugin in plugins)
    lives = PluginLives(plugins)
    pieces: list[Runner] = []
    try:
        proto = onnx.ModelProto.FromString(model)
        nodes = {r.node: (r.inputs + r.shape_inputs, r.outputs) for r in records}
        parts = cut(proto, nodes)
        several = sum(stage.piece is not None for stage in parts.stages) > 1
        if whole and several and isinstance(backend, CallingBackend):
            order = [name for stage in parts.stages for name in stage.plugins]
            del parts  # its models hold all weights once more
            try:
                return _opened_whole(backend, proto, options, records, plugins, order, lives)
            except PluginError:
                raise
            except EngineError as error:
                if notices is not None:
                    text = f"the graph is cut at its plugins: {error.found}"
                    note_once(notices, "info", text, error.where)
            parts = cut(proto, nodes)
        ends = set(parts.outputs)
        by_name = {r.node: i for i, r in enumerate(records)}
        stages = []
        for number, stage in enumerate(parts.stages):
            runner = None
            if stage.piece is not None:
                own = _options_of(stage.piece, options)
                ready = (compiled or {}).get(_blob_of(number))
                if ready is not None and isinstance(backend, CompilingBackend):
                    runner = backend.open(stage.piece.model, own, ready)
                else:
                    runner = backend.open(stage.piece.model, own)
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


def _opened_whole(
    backend: CallingBackend,
    proto: Any,
    options: RunOptions,
    records: Sequence[PluginRecord],
    plugins: Sequence[EnginePlugin],
    order: Sequence[str],
    lives: PluginLives,
) -> Runner:
    graph = whole_graph(proto, records, plugins, order)
    calls = PluginCalls(graph.nodes, lives)
    runner = backend.open_whole(graph, options, calls)
    try:
        lives.give_back(lives.take())  # as below
        return WholeRunner(runner, calls, lives)
    except BaseException:
        runner.close()
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
        lives: PluginLives,
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


def _spec(value: Any) -> TensorSpec:
    known = read_value(value)
    if known is None:
        raise EngineError(f"the type of output {value.name!r} is not known")
    shape = known.shape
    return TensorSpec(value.name, known.dtype, () if shape is None else shape)
