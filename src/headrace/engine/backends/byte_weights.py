"""Quantised weights that nodes share, copied for ONNX Runtime on CPUs without products of bytes.

There the setting `session.x64quantprecision` makes it store signed bytes as unsigned ones, whose
sums it does not cut off; it renames the weight of each node and refuses a weight that two have.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from headrace.network.graph_builder import fresh

if TYPE_CHECKING:
    from onnx import GraphProto, NodeProto

# Where an operator has its quantised weight, with the zero points beside it.
_WEIGHTS = {
    "QLinearConv": (3, 5),
    "QLinearMatMul": (3, 5),
    "ConvInteger": (1, 3),
    "MatMulInteger": (1, 3),
    "DynamicQuantizeMatMul": (1, 3),
    "MatMulIntegerToFloat": (1, 5),
    "QGemm": (3, 5),
}


def with_own_weights(model: bytes) -> bytes | None:
    """Give each node that takes a quantised weight a copy of its own; None if none is shared."""
    from onnx import ModelProto, TensorProto

    proto = ModelProto()
    proto.ParseFromString(model)
    graph = proto.graph
    weights = {
        t.name: t for t in graph.initializer if t.data_type in (TensorProto.INT8, TensorProto.UINT8)
    }
    if not weights:
        return None
    taken = {n for node in graph.node for n in (*node.input, *node.output)} | set(weights)
    changed = _split_dequantised(graph, weights, taken)
    users: dict[str, list[tuple[NodeProto, int]]] = defaultdict(list)
    for node in graph.node:
        places = (0, 2) if node.op_type == "DequantizeLinear" else _WEIGHTS.get(node.op_type, ())
        for place in places:
            if place < len(node.input) and node.input[place] in weights:
                users[node.input[place]].append((node, place))
    for name, taking in users.items():
        for node, place in taking[1:]:
            copied = graph.initializer.add()
            copied.CopyFrom(weights[name])
            copied.name = node.input[place] = fresh(name, taken)
            changed = True
    return proto.SerializeToString() if changed else None


def _split_dequantised(graph: GraphProto, weights: dict[str, object], taken: set[str]) -> bool:
    """Give each user of a dequantised weight a DequantizeLinear of its own."""
    users: dict[str, list[tuple[NodeProto, int]]] = defaultdict(list)
    for node in graph.node:
        for place, name in enumerate(node.input):
            users[name].append((node, place))
    results = {value.name for value in graph.output}
    nodes = []
    for node in graph.node:
        nodes.append(node)
        if node.op_type != "DequantizeLinear" or node.input[0] not in weights:
            continue
        (output,) = node.output
        for user, place in users[output][0 if output in results else 1 :]:
            copied = type(node)()
            copied.CopyFrom(node)
            copied.output[0] = user.input[place] = fresh(output, taken)
            copied.name = copied.output[0]
            nodes.append(copied)
    if len(nodes) == len(graph.node):
        return False
    kept = [type(node).FromString(node.SerializeToString()) for node in nodes]
    del graph.node[:]
    graph.node.extend(kept)
    return True
