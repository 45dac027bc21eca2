"""FP16 on processors without it: each layer in FP32, its results rounded to FP16.

Weights are those of FP16, exactly. A layer's inputs are FP16 values, it multiplies and adds in
FP32, as tensor cores do, and its result is rounded once, to nearest even: beyond 65504 it becomes
infinite, below 2^-25 it becomes 0. That is FP16's arithmetic but for the order of sums, and for
layers that a runtime on a GPU fuses, which round less often.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from headrace.engine.precision.prepare import Proto, captured_names, replace_all
from headrace.network.graph_builder import fresh
from headrace.network.ir import ir

if TYPE_CHECKING:
    from onnx import AttributeProto, GraphProto, NodeProto

# Their results are some of their inputs, or whole numbers: there is nothing to round.
_EXACT = frozenset((
    "Abs", "Ceil", "Clip", "Compress", "Concat", "DepthToSpace", "Dropout", "Expand", "Flatten",
    "Floor", "Gather", "GatherElements", "GatherND", "GlobalMaxPool", "Identity", "Max", "MaxPool",
    "Min", "Neg", "Pad", "ReduceMax", "ReduceMin", "Relu", "Reshape", "Round", "ScatterElements",
    "ScatterND", "Sign", "Slice", "SpaceToDepth", "Split", "Squeeze", "Tile", "TopK", "Transpose",
    "Unsqueeze", "Where",
))  # fmt: skip
# They give the same before a rounding as after it, and runtimes fuse them with the layer before.
ROUNDED_LATER = frozenset(("Relu", "Clip", "MaxPool"))
_TYPES = frozenset(("dtype", "output_dtype", "to"))  # attributes that hold a type
_HALF, _SINGLE = TensorProto.FLOAT16, TensorProto.FLOAT


def round_halves(proto: Proto) -> list[str]:
    """Put the roundings of FP16 into a prepared model in place; its inputs and outputs stay.

    Returns:
        Names of the layers whose results are rounded, or taken from FP16 values. Empty if the model
        has no FP16, or if a graph inside a node uses it: it then stays as it is.
    """
    graph = proto.graph
    values = (*graph.value_info, *graph.input, *graph.output)
    types = {value.name: value.type.tensor_type.elem_type for value in values}
    types.update((tensor.name, tensor.data_type) for tensor in graph.initializer)
    halves = {name for name, kind in types.items() if kind == _HALF}
    if not halves or not halves.isdisjoint(captured_names(graph)):
        return []
    return _Rounding(proto, halves).run()


def is_rounding(node: ir.Node) -> bool:
    """True for a cast to FP16 that is cast back, as `round_halves` writes it."""
    to = node.attributes.get("to") if node.op_type == "Cast" else None
    if to is None or to.as_int() != _HALF:
        return False
    users = [usage.node for usage in node.outputs[0].uses()]
    return bool(users) and all(user.op_type == "Cast" for user in users)


def rounded_layers(graph: GraphProto) -> dict[str, NodeProto]:
    """Map each tensor that holds a rounded result to the layer behind the casts."""
    makers = {name: node for node in graph.node for name in node.output if name}
    layers = {}
    for name, back in makers.items():
        half = makers.get(back.input[0]) if back.op_type == "Cast" else None
        layer = makers.get(half.input[0]) if half is not None and _casts_to_half(half) else None
        if layer is not None:
            layers[name] = layer
    return layers


def half_tensors(graph: GraphProto) -> set[str]:
    """Names of tensors that hold FP16 values, or those that the layer behind rounds."""
    makers = {name: node for node in graph.node for name in node.output if name}
    halves = set(rounded_layers(graph))
    ends = {node.input[0] for node in graph.node if _casts_to_half(node)}
    for node in graph.node:
        if node.op_type in _EXACT and halves & set(node.input):
            halves.update(node.output)
        source = makers.get(node.input[0]) if node.input else None
        later = node.op_type in ROUNDED_LATER and ends & set(node.output)
        if later and source is not None and source.op_type != "Cast":
            halves.add(node.input[0])
    return halves | ends


def _casts_to_half(node: NodeProto) -> bool:
    return node.op_type == "Cast" and node.attribute[0].i == _HALF


class _Rounding:
    def __init__(self, proto: Proto, halves: set[str]) -> None:
        self.graph, self.halves = proto.graph, halves
        self.uses = Counter(name for node in self.graph.node for name in node.input)
        self.outputs = {value.name for value in self.graph.output}
        self.uses.update(self.outputs)
        self.takers = {name: node for node in self.graph.node for name in node.input}
        self.taken = {n for node in self.graph.node for n in (node.name, *node.output)}
        self.taken |= halves | {tensor.name for tensor in self.graph.initializer}
        self.nodes: list[NodeProto] = []
        self.late: set[str] = set()  # tensors that the layer behind rounds
        self.renamed: dict[str, str] = {}

    def run(self) -> list[str]:
        graph = self.graph
        for tensor in graph.initializer:
            if tensor.data_type == _HALF:
                values = numpy_helper.to_array(tensor).astype(np.float32)
                tensor.CopyFrom(numpy_helper.from_array(values, tensor.name))
        for value in graph.input:
            if value.name in self.halves:
                self._cast(value.name, self._renamed(value.name), _SINGLE)
        layers = [node.name for node in graph.node if self._round(node)]
        replace_all(graph.node, self.nodes)
        kept = [value for value in graph.value_info if value.name not in self.halves]
        replace_all(graph.value_info, kept)
        return layers

    def _renamed(self, name: str) -> str:
        new_name = self.renamed[name] = fresh(f"{name}_single", self.taken)
        return new_name

    def _cast(self, source: str, target: str, kind: int) -> None:
        label = fresh(f"{target}_cast", self.taken)
        self.nodes.append(helper.make_node("Cast", [source], [target], label, to=kind))

    def _round(self, node: NodeProto) -> bool:
        """Add one node; True if it is a layer of FP16."""
        halves = [name for name in node.output if name in self.halves]
        own = node.domain not in ("", "ai.onnx")
        late = any(name in self.late for name in node.input)
        if own:
            return self._plugin(node)
        node.input[:] = [self.renamed.get(name, name) for name in node.input]
        if node.op_type == "Cast" and halves:
            return self._round_cast(node)
        for attribute in node.attribute:
            if halves:
                _in_single(attribute)
        after = []
        for index, name in enumerate(node.output):
            if name not in self.halves:
                continue
            if node.op_type in _EXACT and not late and name not in self.outputs:
                continue
            if self._rounds_later(node, name):
                self.late.add(name)
                continue
            node.output[index] = fresh(f"{name}_exact", self.taken)
            after.append((node.output[index], name))
        self.nodes.append(node)
        for exact, name in after:
            half = name if name in self.outputs else fresh(f"{name}_half", self.taken)
            self._cast(exact, half, _HALF)
            if name not in self.outputs:
                self._cast(half, name, _SINGLE)
            elif self.uses[name] > 1:
                self._cast(half, self._renamed(name), _SINGLE)
        return bool(halves)

    def _round_cast(self, node: NodeProto) -> bool:
        """Add a cast to FP16, and one back."""
        name = node.output[0]
        if name not in self.outputs:
            node.output[0] = fresh(f"{name}_half", self.taken)
        self.nodes.append(node)
        if name not in self.outputs:
            self._cast(node.output[0], name, _SINGLE)
        elif self.uses[name] > 1:
            self._cast(name, self._renamed(name), _SINGLE)
        return False

    def _rounds_later(self, node: NodeProto, name: str) -> bool:
        if self.uses[name] != 1 or name in self.outputs:
            return False
        taker = self.takers[name]
        return (
            taker.op_type in ROUNDED_LATER
            and taker.domain in ("", "ai.onnx")
            and taker.input[0] == name
            and taker.output[0] in self.halves
            and not any(taker.output[1:])
        )

    def _plugin(self, node: NodeProto) -> bool:
        """Give an operator of another domain the types that it is made for."""
        for index, name in enumerate(node.input):
            if name in self.halves:
                half = fresh(f"{name}_half", self.taken)
                self._cast(self.renamed.get(name, name), half, _HALF)
                node.input[index] = half
        self.nodes.append(node)
        for index, name in enumerate(node.output):
            if name not in self.halves:
                continue
            if name in self.outputs:
                self._cast(name, self._renamed(name), _SINGLE)
                continue
            node.output[index] = fresh(f"{name}_half", self.taken)
            self._cast(node.output[index], name, _SINGLE)
        return False


def _in_single(attribute: AttributeProto) -> None:
    """Turn an attribute with the type FP16 into one with FP32."""
    if attribute.name in _TYPES and attribute.i == _HALF:
        attribute.i = _SINGLE
    elif attribute.HasField("t") and attribute.t.data_type == _HALF:
        values = numpy_helper.to_array(attribute.t).astype(np.float32)
        attribute.t.CopyFrom(numpy_helper.from_array(values, attribute.t.name))
