"""Plugin nodes as operators of an ONNX Runtime session."""

from __future__ import annotations

from onnx import TensorProto

from noria._core.errors import EngineError
from noria._native import OrtCall, OrtOperators
from noria.engine.plugin_graph.plugins_in_runtime import DOMAIN, PluginCalls, WholeGraph

_TYPES = {
    getattr(TensorProto, name)
    for name in ("FLOAT", "FLOAT16", "DOUBLE", "BOOL", "INT8", "INT16", "INT32", "INT64",
                 "UINT8", "UINT16", "UINT32", "UINT64")
}  # fmt: skip


def operators_for(graph: WholeGraph, calls: PluginCalls) -> OrtOperators:
    """Operators that `calls` computes.

    Raises:
        EngineError: a value is of a type that is not passed on.
    """
    operators = []
    for node in graph.nodes:
        if not {*node.input_types, *node.output_types} <= _TYPES:
            raise EngineError(f"plugin {node.plugin.spec.layer!r} takes or gives an unusual type")
        operators.append((node.op, list(node.input_types), list(node.output_types), node.hands_on))

    def compute(index: int, call: OrtCall) -> bool:
        return calls.call(index, call.number, call.inputs(), call.output)

    return OrtOperators(compute, DOMAIN, operators)
