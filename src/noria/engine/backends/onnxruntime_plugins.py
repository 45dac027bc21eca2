"""Plugin nodes as operators of an ONNX Runtime session."""

from __future__ import annotations

import onnxruntime as ort
from onnx import TensorProto

from noria import _native
from noria.engine.plugin_graph.plugins_in_runtime import DOMAIN, CallbackGraph, PluginCallbacks

TYPES = frozenset(
    getattr(TensorProto, name)
    for name in ("FLOAT", "FLOAT16", "DOUBLE", "BOOL", "INT8", "INT16", "INT32", "INT64",
                 "UINT8", "UINT16", "UINT32", "UINT64")
)  # fmt: skip
"""ONNX element types that ONNX Runtime passes to operators and back."""


def operators_for(graph: CallbackGraph, calls: PluginCallbacks) -> _native.OrtOperators:
    """Make an operator of each plugin node, computed by `calls`."""
    operators = [
        (node.op, list(node.input_types), list(node.output_types), node.passes_run_id)
        for node in graph.nodes
    ]

    def compute(index: int, call: _native.OrtCall) -> bool:
        return calls.call(index, call.run_id, call.inputs(), call.output)

    return _native.OrtOperators(compute, DOMAIN, operators)


def register(operators: _native.OrtOperators, settings: ort.SessionOptions) -> None:
    """Register operators with the options of one session.

    Args:
        operators: of `operators_for`.
        settings: of the session.

    Raises:
        Exception: the runtime takes no operators; the binding's exception types share no base.
    """
    # the library is noria itself; the runtime does not say for which session it asks
    operators.register_with(lambda: settings.register_custom_ops_library(_native.__file__))


def try_register() -> None:
    """Register no operators at all, to see whether the runtime takes them.

    Raises:
        Exception: it does not.
    """
    register(_native.OrtOperators(lambda index, call: False, DOMAIN, []), ort.SessionOptions())
