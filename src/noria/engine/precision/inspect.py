"""Precision of a graph, by its tensors and Q/DQ pairs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from noria.engine.plan_header import Precision

if TYPE_CHECKING:
    import onnx_ir as ir

    from noria.network.network import Network

_PAIRS = ("QuantizeLinear", "DequantizeLinear")
# Operators that compute on whole numbers by themselves.
_INTEGER = ("QLinearConv", "QLinearMatMul", "ConvInteger", "MatMulInteger")


class LayerPrecision(NamedTuple):
    """One node: name, operator, and `fp32`, `fp16`, `bf16`, `int8` or another type's name."""

    name: str
    operator: str
    precision: str


def graph_precision(network: Network) -> Precision:
    """Find the lowest precision in a network's graph; `best` where INT8 and FP16 meet."""
    from noria.network.ir import ir

    graph = network.model.graph
    types: set[ir.DataType | None] = set()
    for value in graph.initializers.values():
        types.add(value.dtype if value.const_value is None else value.const_value.dtype)
    operators = set()
    for node in graph:
        operators.add(node.op_type)
        if node.op_type != "Cast":  # of an input or output
            types |= {value.dtype for value in node.outputs}
    half = ir.DataType.FLOAT16 in types
    if operators & {"DequantizeLinear", *_INTEGER}:
        return "best" if half else "int8"
    if half:
        return "fp16"
    return "bf16" if ir.DataType.BFLOAT16 in types else "fp32"


def layer_table(proto: Any) -> list[LayerPrecision]:
    """List the layers with their precisions, in the graph's order, without casts and Q/DQ pairs.

    Args:
        proto: an `onnx.ModelProto`.
    """
    from onnx import TensorProto

    from noria.engine.precision.prepare import prepare

    graph = prepare(proto).graph
    words = {TensorProto.FLOAT: "fp32", TensorProto.FLOAT16: "fp16", TensorProto.BFLOAT16: "bf16"}
    types = {t.name: t.data_type for t in graph.initializer}
    for value in (*graph.input, *graph.value_info, *graph.output):
        types[value.name] = value.type.tensor_type.elem_type
    paired = {n for node in graph.node if node.op_type == _PAIRS[1] for n in node.output}
    table = []
    for node in graph.node:
        if node.op_type in (*_PAIRS, "Cast"):
            continue
        kind = types.get(next((n for n in node.output if n), ""), 0)
        word = words.get(kind) or (TensorProto.DataType.Name(kind).lower() if kind else "unknown")
        both = len(node.input) > 1 and all(n in paired for n in node.input[:2])
        if both or node.op_type in _INTEGER:
            word = "int8"
        table.append(LayerPrecision(node.name, node.op_type, word))
    return table
