"""Split a graph at its plugin nodes: pieces that a runtime runs, plugins between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from headrace._core.errors import EngineError
from headrace._core.types import Array
from headrace.network.shapes.protos import model_beside

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto


_RANDOM = {"RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike", "Multinomial",
           "Bernoulli", "Dropout"}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of the graph without plugins; `SplitGraph.model` makes its ONNX message.

    Attributes:
        number: of its section.
        nodes: indices of its nodes in the graph.
        weights: names of its initializers.
        inputs, outputs: names of the values that go in and come out.
        batched: True if only the batch is free, as the first axis of every input that has it.
    """

    number: int
    nodes: tuple[int, ...]
    weights: tuple[str, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    batched: bool


@dataclass(frozen=True, slots=True)
class GraphSection:
    """A piece, if there is one, then plugins that need nothing from later sections."""

    piece: Piece | None
    plugins: tuple[str, ...]


class SplitGraph:
    """Where a graph is split at its plugin nodes. Nothing is copied until `model` is called.

    Made by `split_graph`. Sections and plugins are in the order they run.
    """

    def __init__(
        self, proto: ModelProto, sections: tuple[GraphSection, ...], constants: frozenset[str]
    ) -> None:
        graph = proto.graph
        self.proto, self._constants = proto, constants
        self._weights = {t.name: t for t in graph.initializer}
        self.sections = sections
        self.plugins = tuple(name for section in sections for name in section.plugins)
        self.inputs = tuple(v.name for v in graph.input if v.name not in self._weights)
        self.outputs = tuple(v.name for v in graph.output)

    @property
    def pieces(self) -> tuple[Piece, ...]:
        """The pieces of all sections."""
        return tuple(s.piece for s in self.sections if s.piece is not None)

    def constants(self) -> dict[str, Array]:
        """Read the weights and constants that plugins or the caller take as they are."""
        from onnx import numpy_helper

        tensors = {name: t for name, t in self._weights.items() if name in self._constants}
        for node in self.proto.graph.node:
            if node.op_type == "Constant" and node.output[0] in self._constants:
                tensors[node.output[0]] = _value(node)
        return {
            name: np.asarray(numpy_helper.to_array(tensors[name]), order="C")
            for name in sorted(tensors)
        }

    def model(self, piece: Piece) -> bytes:
        """Write the ONNX message of a piece.

        Raises:
            EngineError: the type of a value that goes in is not known.
        """
        import onnx

        source = self.proto.graph
        infos = _infos(source)
        model = model_beside(self.proto, f"{source.name or 'graph'}_{piece.number}")
        graph = model.graph
        graph.node.extend(source.node[i] for i in piece.nodes)
        graph.initializer.extend(self._weights[name] for name in piece.weights)
        graph.sparse_initializer.extend(source.sparse_initializer)
        for name in piece.inputs:
            info = infos.get(name)
            if info is None or not info.type.tensor_type.elem_type:
                raise EngineError(
                    f"the type of {name!r}, which a plugin stands before, is not known",
                    fix="export the model with shapes and types of its inner values",
                )
            graph.input.append(info)
        for name in piece.outputs:
            graph.output.append(infos.get(name) or onnx.ValueInfoProto(name=name))
        return bytes(model.SerializeToString(deterministic=True))


def split_graph(
    proto: ModelProto, plugins: Mapping[str, tuple[Sequence[str], Sequence[str]]]
) -> SplitGraph:
    """Find where a graph is split at its plugin nodes.

    A node runs as early as it can, so branches that no plugin feeds stay in one piece. Nodes that
    depend on no input are repeated in every piece that needs them, so that the runtime folds them.
    `value_info` has the types of the values at the splits. `plugins`: node name -> names of the
    inputs and of the outputs of the plugin.
    """
    return _Splitter(proto, plugins).run()


def _infos(graph: GraphProto) -> dict[str, ValueInfoProto]:
    return {v.name: v for v in (*graph.value_info, *graph.input, *graph.output)}


def _value(node: NodeProto) -> TensorProto | None:
    """The tensor of a Constant node, if it has one."""
    return next((a.t for a in node.attribute if a.name == "value" and a.HasField("t")), None)


class _Splitter:
    def __init__(
        self, proto: ModelProto, plugins: Mapping[str, tuple[Sequence[str], Sequence[str]]]
    ) -> None:
        self.proto, self.graph, self.plugins = proto, proto.graph, plugins
        self.initializers = {t.name: t for t in self.graph.initializer}
        self.infos = _infos(self.graph)
        self.inputs = [v.name for v in self.graph.input if v.name not in self.initializers]
        self.outputs = [v.name for v in self.graph.output]
        self.reads = [names_read(n) for n in self.graph.node]
        self.level: dict[str, int] = dict.fromkeys(self.inputs, 0)
        self.constant: dict[str, int] = {}  # value -> node that makes it
        self.section_of: list[int] = []

    def run(self) -> SplitGraph:
        self._levels()
        self._sink()
        last = max(self.section_of, default=0)
        uses = self._wanted()
        constants = self._constants()
        sections = []
        for number in range(last + 1):
            members = [i for i, s in enumerate(self.section_of) if s == number]
            names = tuple(self.graph.node[i].name for i in members if self._is_plugin(i))
            plain = [i for i in members if not self._is_plugin(i) and not self._is_constant(i)]
            piece = self._piece(plain, uses, number, constants)
            if piece is not None or names:
                sections.append(GraphSection(piece, names))
        return SplitGraph(self.proto, tuple(sections), constants)

    def _is_plugin(self, index: int) -> bool:
        return self.graph.node[index].name in self.plugins

    def _is_constant(self, index: int) -> bool:
        outputs = self.graph.node[index].output
        return bool(outputs) and outputs[0] in self.constant

    def _levels(self) -> None:
        for index, node in enumerate(self.graph.node):
            reads = [r for r in self.reads[index] if r and r not in self.initializers]
            fixed = all(r in self.constant for r in reads)
            plugin = self._is_plugin(index)
            if fixed and not plugin and node.op_type not in _RANDOM:
                self.section_of.append(-1)
                for name in node.output:
                    self.constant[name] = index
                continue
            section = max((self.level.get(r, 0) for r in reads), default=0)
            self.section_of.append(section)
            for name in node.output:
                self.level[name] = section + plugin

    def _sink(self) -> None:
        """Move nodes behind a split that their inputs pass anyway: their outputs need not then."""
        readers: dict[str, list[int]] = {}
        for index, reads in enumerate(self.reads):
            for name in reads:
                readers.setdefault(name, []).append(index)
        ends = set(self.outputs)
        for index in reversed(range(len(self.section_of))):
            node, section = self.graph.node[index], self.section_of[index]
            if section < 0 or self._is_plugin(index) or node.op_type in _RANDOM:
                continue
            after = [r for o in node.output if o for r in readers.get(o, ())]
            if not after or any(o in ends for o in node.output):
                continue
            if any(self._is_plugin(r) or self.section_of[r] < 0 for r in after):
                continue
            later = min(self.section_of[r] for r in after)
            inputs = [r for r in self.reads[index] if r in self.level]
            passing = all(
                any(r != index and not self._is_plugin(r) and self.section_of[r] >= later
                    for r in readers[name])
                for name in inputs
            )  # fmt: skip
            if later > section and inputs and passing:
                self.section_of[index] = later

    def _wanted(self) -> set[tuple[str, int]]:
        """(value, section that reads it); -1 is the end of the run, -2 a plugin."""
        uses = {(name, -1) for name in self.outputs}
        for index, reads in enumerate(self.reads):
            if self._is_plugin(index):
                uses |= {(r, -2) for r in reads if r}
            elif not self._is_constant(index):
                uses |= {(r, self.section_of[index]) for r in reads if r}
        return uses

    def _piece(
        self, members: list[int], uses: set[tuple[str, int]], number: int, kept: frozenset[str]
    ) -> Piece | None:
        computed = {name for i in members for name in self.graph.node[i].output if name}
        # constants that a plugin or the caller reads come out of the first piece
        loose = set()
        if number == 0:
            loose = {v for v, s in uses if s < 0 and v in self.constant} - kept
        outputs = [
            name
            for i in members
            for name in self.graph.node[i].output
            if name and any((name, s) in uses for s in self._others(number))
        ] + sorted(loose)
        if not outputs:
            return None
        needed = self._closure(members, loose)
        nodes = tuple(sorted({*members, *needed}))
        inside = computed | {n for i in needed for n in self.graph.node[i].output}
        reads = list(dict.fromkeys(r for i in nodes for r in self.reads[i] if r))
        inputs = tuple(r for r in reads if r not in inside and r not in self.initializers)
        weights = tuple(r for r in reads if r in self.initializers)
        return Piece(number, nodes, weights, inputs, tuple(outputs), self._batched(inputs))

    def _batch(self) -> str:
        """Name of the first axis of the first input, if it is free."""
        if not self.inputs:
            return ""
        dims = self.infos[self.inputs[0]].type.tensor_type.shape.dim
        return str(dims[0].dim_param) if len(dims) else ""

    def _others(self, number: int) -> list[int]:
        return sorted({-1, -2, *(s for s in self.section_of if s > number)})

    def _closure(self, members: list[int], loose: set[str]) -> set[int]:
        """Indices of the constant nodes that these nodes need."""
        needed: set[int] = set()
        stack = [r for i in members for r in self.reads[i] if r in self.constant]
        stack += [name for name in loose if name in self.constant]
        while stack:
            index = self.constant[stack.pop()]
            if index not in needed:
                needed.add(index)
                stack += [r for r in self.reads[index] if r in self.constant]
        return needed

    def _batched(self, inputs: Sequence[str]) -> bool:
        batch = self._batch()
        for name in inputs:
            if name not in self.infos:
                return False
            tensor = self.infos[name].type.tensor_type
            if not tensor.HasField("shape"):
                return False
            for axis, dim in enumerate(tensor.shape.dim):
                if not dim.HasField("dim_value") and (axis or dim.dim_param != batch):
                    return False
        return bool(inputs) and bool(batch)

    def _constants(self) -> frozenset[str]:
        """Names of the weights and constants that plugins or the caller read as they are."""
        names = {r for i, reads in enumerate(self.reads) if self._is_plugin(i) for r in reads}
        names |= set(self.outputs)
        return frozenset(
            name for name in names
            if name in self.initializers
            or (
                name in self.constant
                and (node := self.graph.node[self.constant[name]]).op_type == "Constant"
                and _value(node) is not None
            )
        )  # fmt: skip


def names_read(node: NodeProto) -> list[str]:
    """List the values a node reads, with those that its If, Loop or Scan bodies capture."""
    names = list(node.input)
    for attribute in node.attribute:
        graphs = [*attribute.graphs]
        if attribute.HasField("g"):
            graphs.append(attribute.g)
        for graph in graphs:
            inner = {v.name for v in graph.input} | {t.name for t in graph.initializer}
            for child in graph.node:
                names += [r for r in names_read(child) if r not in inner]
                inner |= set(child.output)
            names += [v.name for v in graph.output if v.name not in inner]
    return names
