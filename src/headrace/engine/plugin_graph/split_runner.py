"""Run a graph that is split at its plugins: pieces in a runtime, plugins between them.

Arrays pass from one to the next without a copy, unless a plugin works in another type than the
network. Each run has an execution context of its own; they are kept for the next run.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace._core.errors import EngineError
from headrace._core.types import Array
from headrace.engine.backends import Backend, CompilingBackend, Runner, RunnerOptions
from headrace.engine.plugin_graph.context_pool import ContextPool
from headrace.engine.plugin_graph.plugin_record import PluginRecord
from headrace.engine.plugin_graph.split import Piece, SplitGraph
from headrace.network.shapes.protos import read_type
from headrace.network.tensor_spec import TensorSpec

if TYPE_CHECKING:
    from onnx import ModelProto, ValueInfoProto

    from headrace.engine.backends.protocol import DLPackTensor


_OMITTED = np.empty(0, np.float32)


def compile_pieces(
    backend: CompilingBackend, split: SplitGraph, options: RunnerOptions
) -> dict[str, bytes]:
    """Compile each piece between the plugins; the results by names for a plan's blobs.

    Raises:
        EngineError: the runtime refuses a piece.
    """
    return {
        _blob_of(piece): backend.compile(split.model(piece), _options_of(piece, options))
        for piece in split.pieces
    }


def open_pieces(
    backend: Backend,
    split: SplitGraph,
    options: RunnerOptions,
    records: Sequence[PluginRecord],
    pool: ContextPool,
    compiled: Mapping[str, bytes] | None = None,
) -> SplitRunner:
    """Open the pieces of a split graph.

    The runner owns the pool, whose contexts are in the order of `records`, from now on. `compiled`
    has the blobs of `compile_pieces`, if the pieces are compiled already.

    Raises:
        EngineError: the runtime refuses a piece; all pieces are closed then.
    """
    ends = set(split.outputs)
    by_name = {r.node: i for i, r in enumerate(records)}
    sections: list[_OpenSection] = []
    opened: list[Runner] = []
    try:
        for section in split.sections:
            runner: Runner | None = None
            names: tuple[str, ...] = ()
            if section.piece is not None:
                runner = _open_piece(backend, split, section.piece, options, compiled or {})
                opened.append(runner)
                # a runtime may have dropped an input that no node reads
                have = {s.name for s in runner.inputs}
                names = tuple(n for n in section.piece.inputs if n in have)
            steps = tuple(_step(by_name[n], records[by_name[n]], ends) for n in section.plugins)
            sections.append(_OpenSection(runner, names, steps))
        return SplitRunner(split.proto, sections, split.constants(), pool)
    except BaseException:
        for runner in opened:
            runner.close()
        raise


def _open_piece(
    backend: Backend,
    split: SplitGraph,
    piece: Piece,
    options: RunnerOptions,
    compiled: Mapping[str, bytes],
) -> Runner:
    model, own = split.model(piece), _options_of(piece, options)
    ready = compiled.get(_blob_of(piece))
    if ready is not None and isinstance(backend, CompilingBackend):
        return backend.open(model, own, ready)
    return backend.open(model, own)


def _blob_of(piece: Piece) -> str:
    return f"piece {piece.number}"


def _options_of(piece: Piece, options: RunnerOptions) -> RunnerOptions:
    return replace(options, batched=options.batched and piece.batched)


@dataclass(frozen=True, slots=True)
class _Step:
    """One plugin in a run."""

    index: int
    inputs: tuple[str, ...]
    shape_inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    fresh: tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class _OpenSection:
    runner: Runner | None
    inputs: tuple[str, ...]
    steps: tuple[_Step, ...]


def _step(index: int, record: PluginRecord, ends: set[str]) -> _Step:
    fresh = tuple(name in ends for name in record.outputs)
    return _Step(index, record.inputs, record.shape_inputs, record.outputs, fresh)


class SplitRunner:
    """See module. Made by `open_pieces`."""

    device = "cpu"  # plugins compute on the host

    def __init__(
        self,
        proto: ModelProto,
        sections: Sequence[_OpenSection],
        constants: Mapping[str, Array],
        pool: ContextPool,
    ) -> None:
        self._sections, self._constants = sections, dict(constants)
        self.contexts = self._pool = pool
        specs = {
            s.name: s for section in sections if section.runner for s in section.runner.outputs
        }
        weights = {t.name for t in proto.graph.initializer}
        self.inputs = tuple(_spec(v) for v in proto.graph.input if v.name not in weights)
        self.outputs = tuple(specs.get(v.name) or _spec(v) for v in proto.graph.output)
        self._names = [v.name for v in proto.graph.output]
        # plugins end with the runner even if it is not closed
        self._finalizer = weakref.finalize(self, pool.close)

    def run(self, feeds: Mapping[str, DLPackTensor], *, to_host: bool = True) -> list[Array]:
        """See `Runner.run`."""
        values = self.run_all(feeds)
        return [values[name] for name in self._names]

    def run_all(self, feeds: Mapping[str, object]) -> dict[str, Array]:
        """Run, and return every value that passed between pieces and plugins.

        The next run uses some of the memory again.

        Raises:
            EngineError: the runtime or a plugin failed, or the session is closed.
        """
        pool = self._pool
        contexts = pool.take()
        try:
            values: dict[str, Any] = {**self._constants, **feeds}
            for section in self._sections:
                runner = section.runner
                if runner is not None:
                    outputs = runner.run({name: values[name] for name in section.inputs})
                    for spec, array in zip(runner.outputs, outputs, strict=True):
                        values[spec.name] = array
                for step in section.steps:
                    arrays = contexts[step.index].run(
                        [values[n] if n else _OMITTED for n in step.inputs],
                        shape_inputs=[values[n] for n in step.shape_inputs],
                        fresh=step.fresh,
                    )
                    values.update(zip(step.outputs, arrays, strict=True))
            return values
        finally:
            pool.give_back(contexts)

    def close(self) -> None:
        """Release the pieces; plugins end when the runs under way have finished."""
        self._finalizer.detach()
        self._pool.close()
        for section in self._sections:
            if section.runner is not None:
                section.runner.close()


def _spec(value: ValueInfoProto) -> TensorSpec:
    known = read_type(value.type)
    if known is None:
        raise EngineError(f"the type of output {value.name!r} is not known")
    return TensorSpec(value.name, known.dtype, known.axes or ())
