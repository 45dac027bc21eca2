"""A graph cut at its plugin nodes: pieces that go to a runtime whole, plugins between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from noria._core.errors import EngineError

_RANDOM = {"RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike", "Multinomial",
           "Bernoulli", "Dropout"}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of the graph without plugins.

    Attributes:
        model: the ONNX message.
        inputs, outputs: names of the values that go in and come out.
        batched: only the batch is free, and it is the first axis of every input that has it.
    """

    model: bytes
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    batched: bool


@dataclass(frozen=True, slots=True)
class Stage:
    """A piece, if there is one, then plugins that need nothing later."""

    piece: Piece | None
    plugins: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Cut:
    """The stages in the order they run.

    Attributes:
        constants: values that plugins read as they are.
        inputs, outputs: of the whole graph.
    """

    stages: tuple[Stage, ...]
    constants: Mapping[str, npt.NDArray[Any]]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


def cut(proto: Any, plugins: Mapping[str, tuple[Sequence[str], Sequence[str]]]) -> Cut:
    """Cut a graph.

    A node runs as early as it can, so branches that no plugin feeds stay in one piece. What
    depends on no input is repeated in every piece that needs it, so that the runtime can fold it.

    Args:
        proto: the `ModelProto`; `value_info` must tell types of the values at the cuts.
        plugins: node name -> names of the inputs and of the outputs of the plugin.

    Raises:
        EngineError: a value at a cut of unknown type.
    """
    return _Cutter(proto, plugins).run()


class _Cutter:
    def __init__(
        self, proto: Any, plugins: Mapping[str, tuple[Sequence[str], Sequence[str]]]
    ) -> None:
        self.proto, self.graph, self.plugins = proto, proto.graph, plugins
        self.initializers = {t.name: t for t in self.graph.initializer}
        self.infos = {v.name: v for v in (*self.graph.value_info, *self.graph.input,
                                          *self.graph.output)}  # fmt: skip
        self.inputs = [v.name for v in self.graph.input if v.name not in self.initializers]
        self.outputs = [v.name for v in self.graph.output]
        self.reads = [_reads(n) for n in self.graph.node]
        self.level: dict[str, int] = dict.fromkeys(self.inputs, 0)
        self.constant: dict[str, int] = {}  # value -> node that makes it
        self.stage_of: list[int] = []

    def run(self) -> Cut:
        self._levels()
        self._sink()
        last = max(self.stage_of, default=0)
        wanted = self._wanted()
        stages = []
        for number in range(last + 1):
            members = [i for i, s in enumerate(self.stage_of) if s == number]
            names = tuple(self.graph.node[i].name for i in members if self._is_plugin(i))
            plain = [i for i in members if not self._is_plugin(i) and not self._is_constant(i)]
            piece = self._piece(plain, wanted, number)
            if piece is not None or names:
                stages.append(Stage(piece, names))
        return Cut(tuple(stages), self._constants(), tuple(self.inputs), tuple(self.outputs))

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
                self.stage_of.append(-1)
                for name in node.output:
                    self.constant[name] = index
                continue
            stage = max((self.level.get(r, 0) for r in reads), default=0)
            self.stage_of.append(stage)
            for name in node.output:
                self.level[name] = stage + plugin

    def _sink(self) -> None:
        """Let nodes run later whose inputs pass the cut anyway: then their outputs need not."""
        readers: dict[str, list[int]] = {}
        for index, reads in enumerate(self.reads):
            for name in reads:
                readers.setdefault(name, []).append(index)
        ends = set(self.outputs)
        for index in reversed(range(len(self.stage_of))):
            node, stage = self.graph.node[index], self.stage_of[index]
            if stage < 0 or self._is_plugin(index) or node.op_type in _RANDOM:
                continue
            after = [r for o in node.output if o for r in readers.get(o, ())]
            if not after or any(o in ends for o in node.output):
                continue
            if any(self._is_plugin(r) or self.stage_of[r] < 0 for r in after):
                continue
            later = min(self.stage_of[r] for r in after)
            inputs = [r for r in self.reads[index] if r in self.level]
            passing = all(
                any(r != index and not self._is_plugin(r) and self.stage_of[r] >= later
                    for r in readers[name])
                for name in inputs
            )  # fmt: skip
            if later > stage and inputs and passing:
                self.stage_of[index] = later

    def _wanted(self) -> set[tuple[str, int]]:
        """(value, stage that reads it); stage -1 is the end, a plugin reads in its own stage."""
        found = {(name, -1) for name in self.outputs}
        for index, reads in enumerate(self.reads):
            if self._is_plugin(index):
                found |= {(r, -2) for r in reads if r}
            elif not self._is_constant(index):
                found |= {(r, self.stage_of[index]) for r in reads if r}
        return found

    def _piece(self, members: list[int], wanted: set[tuple[str, int]], number: int) -> Piece | None:
        made = {name for i in members for name in self.graph.node[i].output if name}
        # constants that a plugin or the caller reads come out of the first piece
        loose = set()
        if number == 0:
            loose = {v for v, s in wanted if s < 0 and v in self.constant}
            loose -= set(self._constants())
        outputs = [
            name
            for i in members
            for name in self.graph.node[i].output
            if name and any((name, s) in wanted for s in self._others(number))
        ] + sorted(loose)
        if not outputs:
            return None
        needed = self._closure(members, loose)
        nodes = [self.graph.node[i] for i in sorted({*members, *needed})]
        inside = made | {n for i in needed for n in self.graph.node[i].output}
        reads = list(dict.fromkeys(
            r for i in sorted({*members, *needed}) for r in self.reads[i] if r
        ))  # fmt: skip
        inputs = [r for r in reads if r not in inside and r not in self.initializers]
        weights = [self.initializers[r] for r in reads if r in self.initializers]
        model = self._model(nodes, inputs, outputs, weights, number)
        return Piece(model, tuple(inputs), tuple(outputs), self._batched(inputs))

    def _batch(self) -> str:
        """Name of the first axis of the first input, if it is free."""
        if not self.inputs:
            return ""
        dims = self.infos[self.inputs[0]].type.tensor_type.shape.dim
        return str(dims[0].dim_param) if len(dims) else ""

    def _others(self, number: int) -> list[int]:
        stages = {-1, -2, *(s for s in self.stage_of if s > number)}
        return sorted(stages)

    def _closure(self, members: list[int], loose: set[str]) -> set[int]:
        """Constant nodes that these nodes need."""
        needed: set[int] = set()
        stack = [r for i in members for r in self.reads[i] if r in self.constant]
        stack += [name for name in loose if name in self.constant]
        while stack:
            index = self.constant[stack.pop()]
            if index not in needed:
                needed.add(index)
                stack += [r for r in self.reads[index] if r in self.constant]
        return needed

    def _batched(self, inputs: list[str]) -> bool:
        batch = self._batch()
        for name in inputs:
            tensor = self.infos[name].type.tensor_type
            if not tensor.HasField("shape"):
                return False
            for axis, dim in enumerate(tensor.shape.dim):
                if not dim.HasField("dim_value") and (axis or dim.dim_param != batch):
                    return False
        return bool(inputs) and bool(batch)

    def _model(
        self, nodes: Any, inputs: list[str], outputs: list[str], weights: Any, number: int
    ) -> bytes:
        import onnx

        model = onnx.ModelProto()
        model.ir_version = max(self.proto.ir_version, 4)
        model.opset_import.extend(self.proto.opset_import)
        model.functions.extend(self.proto.functions)
        graph = model.graph
        graph.name = f"{self.graph.name or 'graph'}_{number}"
        graph.node.extend(nodes)
        graph.initializer.extend(weights)
        graph.sparse_initializer.extend(self.graph.sparse_initializer)
        for name in inputs:
            info = self.infos.get(name)
            if info is None or not info.type.tensor_type.elem_type:
                raise EngineError(
                    f"the type of {name!r}, which a plugin stands before, is not known",
                    fix="export the model with shapes and types of its inner values",
                )
            graph.input.append(info)
        for name in outputs:
            graph.output.append(self.infos.get(name) or onnx.ValueInfoProto(name=name))
        return bytes(model.SerializeToString(deterministic=True))

    def _constants(self) -> dict[str, npt.NDArray[Any]]:
        """Weights and constants that plugins or the caller read as they are."""
        from onnx import numpy_helper

        wanted = {r for i, reads in enumerate(self.reads) if self._is_plugin(i) for r in reads}
        wanted |= set(self.outputs)
        found = {}
        for name in sorted(wanted):
            if name in self.initializers:
                found[name] = np.ascontiguousarray(numpy_helper.to_array(self.initializers[name]))
            elif name in self.constant:
                node = self.graph.node[self.constant[name]]
                values = [a for a in node.attribute if a.name == "value" and a.HasField("t")]
                if node.op_type == "Constant" and values:
                    found[name] = np.array(numpy_helper.to_array(values[0].t), order="C")
        return found


def _reads(node: Any) -> list[str]:
    """Names a node reads, those that the bodies of If, Loop and Scan capture included."""
    names = list(node.input)
    for attribute in node.attribute:
        graphs = [*attribute.graphs]
        if attribute.HasField("g"):
            graphs.append(attribute.g)
        for graph in graphs:
            inner = {v.name for v in graph.input} | {t.name for t in graph.initializer}
            for child in graph.node:
                names += [r for r in _reads(child) if r not in inner]
                inner |= set(child.output)
            names += [v.name for v in graph.output if v.name not in inner]
    return names


def without_plugins(
    proto: Any,
    plugins: Mapping[str, tuple[Sequence[str], Sequence[str]]],
    feeds: Mapping[str, npt.NDArray[Any]],
) -> tuple[bytes, list[str]]:
    """The graph with its plugin nodes taken out: what they gave goes in, what they took comes out.
    All the runtime's work in one model, to be timed.

    Args:
        proto: the `ModelProto`.
        plugins: see `cut`.
        feeds: arrays for the graph's inputs and all that plugins give; their shapes are fixed.

    Returns:
        The ONNX message, and the names of its inputs.
    """
    import onnx

    model = onnx.ModelProto()
    model.CopyFrom(proto)
    graph = model.graph
    infos = {v.name: v for v in (*graph.value_info, *graph.output)}
    kept = [n for n in graph.node if n.name not in plugins]
    made = {name for n in kept for name in n.output}
    used = {r for n in kept for r in _reads(n)}
    given = {o for _, outs in plugins.values() for o in outs if o}
    inputs = [v.name for v in graph.input if v.name in feeds and v.name in used]
    inputs += sorted(given & used)
    ends = [v.name for v in graph.output if v.name not in given]
    copies = [onnx.ValueInfoProto.FromString(infos[n].SerializeToString()) for n in ends]
    for value in copies:
        value.type.tensor_type.ClearField("shape")
    for name, (reads, _) in plugins.items():
        for index, read in enumerate(reads):
            if read in made:  # under a name that no rewriting of the graph changes
                end = f"{name}:{index}"
                kept.append(onnx.helper.make_node("Identity", [read], [end], name=f"{end}/end"))
                copies.append(onnx.ValueInfoProto(name=end))
    for part in (graph.node, graph.output, graph.input, graph.value_info):
        del part[:]
    graph.node.extend(kept)
    graph.output.extend(copies)
    for name in inputs:
        kind = onnx.helper.np_dtype_to_tensor_dtype(feeds[name].dtype)
        shape = list(feeds[name].shape)
        graph.input.append(onnx.helper.make_tensor_value_info(name, kind, shape))
    return bytes(model.SerializeToString(deterministic=True)), inputs


def upstream(
    proto: Any, names: Sequence[str], feeds: Mapping[str, npt.NDArray[Any]]
) -> tuple[bytes, list[str]]:
    """The part of a graph that makes `names`, beginning at the values that `feeds` has.

    Returns:
        The ONNX message, and the names of the values that go in.
    """
    import onnx

    nodes = list(proto.graph.node)
    producer = {o: i for i, n in enumerate(nodes) for o in n.output if o}
    initializers = {t.name: t for t in proto.graph.initializer}
    needed: set[int] = set()
    inputs: dict[str, None] = {}
    weights: dict[str, None] = {}
    stack = list(names)
    while stack:
        name = stack.pop()
        if name in initializers:
            weights[name] = None
        elif name in feeds:
            inputs[name] = None
        elif name in producer and producer[name] not in needed:
            needed.add(producer[name])
            stack += [r for r in _reads(nodes[producer[name]]) if r]
    model = onnx.ModelProto()
    model.ir_version = max(proto.ir_version, 4)
    model.opset_import.extend(proto.opset_import)
    model.functions.extend(proto.functions)
    graph = model.graph
    graph.name = "upstream"
    graph.node.extend(nodes[i] for i in sorted(needed))
    graph.initializer.extend(initializers[n] for n in weights)
    for name in inputs:
        kind = onnx.helper.np_dtype_to_tensor_dtype(feeds[name].dtype)
        shape = list(feeds[name].shape)
        graph.input.append(onnx.helper.make_tensor_value_info(name, kind, shape))
    for name in names:
        graph.output.add().name = name
    return bytes(model.SerializeToString()), list(inputs)
