"""Settings, types and error texts that the backends of ONNX Runtime share."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace._core.errors import EngineError
from headrace._core.threads import may_bind
from headrace.engine.backends import RunnerOptions
from headrace.engine.backends.onnxruntime_package import import_onnxruntime
from headrace.engine.machine import exact_int8, usable_cores
from headrace.network.tensor_spec import TensorSpec, axis_name

if TYPE_CHECKING:
    import onnxruntime


ort = import_onnxruntime()

_TYPES = {
    "tensor(string)": np.object_,
    "tensor(float)": np.float32,
    "tensor(float16)": np.float16,
    "tensor(double)": np.float64,
    "tensor(int8)": np.int8,
    "tensor(int16)": np.int16,
    "tensor(int32)": np.int32,
    "tensor(int64)": np.int64,
    "tensor(uint8)": np.uint8,
    "tensor(uint16)": np.uint16,
    "tensor(uint32)": np.uint32,
    "tensor(uint64)": np.uint64,
    "tensor(bool)": np.bool_,
}
_OPTIMIZATIONS = {
    "none": ort.GraphOptimizationLevel.ORT_DISABLE_ALL,
    "basic": ort.GraphOptimizationLevel.ORT_ENABLE_BASIC,
    "extended": ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED,
    "all": ort.GraphOptimizationLevel.ORT_ENABLE_ALL,
}
SILENT = 4  # fatal only: what matters arrives as an exception, which headrace words
# Where ONNX Runtime's messages name the node: while running, while loading, no kernel, no schema.
_NODE = (
    r"running (?P<op>\w+) node\. Name:'(?P<node>[^']*)'",
    r"Node ?\((?P<node>[^)]*)\) Op \((?P<op>\w+)\)",
    r"implementation for (?P<op>\w+)\(\d+\) node with name '(?P<node>[^']*)'",
    r"Node:(?P<node>\S*) Output",
)
_UNREGISTERED = r"(\S+\(-?\d+\)) is not a registered function/op"


def session_options(options: RunnerOptions) -> onnxruntime.SessionOptions:
    """Translate `options` to ONNX Runtime's settings."""
    settings = ort.SessionOptions()
    settings.log_severity_level = SILENT
    shared = usable_cores() // options.streams if options.streams > 1 else 0
    every = 0 if may_bind() else usable_cores()  # 0 binds them
    settings.intra_op_num_threads = options.threads or shared or every
    settings.graph_optimization_level = _OPTIMIZATIONS[options.optimization]
    settings.inter_op_num_threads = 1
    settings.execution_mode = ort.ExecutionMode.ORT_SEQUENTIAL
    spin = "1" if options.spinning else "0"
    settings.add_session_config_entry("session.intra_op.allow_spinning", spin)
    return settings


def open_session(
    model: bytes, settings: onnxruntime.SessionOptions, providers: Sequence[Any]
) -> onnxruntime.InferenceSession:
    """Load a model; on a CPU that would cut off sums of products of bytes, so that it does not.

    Raises:
        Exception: the binding's, which share no base of their own.
    """
    if exact_int8():
        return ort.InferenceSession(model, settings, providers=providers)
    settings.add_session_config_entry("session.x64quantprecision", "1")
    try:
        return ort.InferenceSession(model, settings, providers=providers)
    except Exception:
        from headrace.engine.backends.byte_weights import with_own_weights  # reads the model

        own = with_own_weights(model)
        if own is None:
            raise
    return ort.InferenceSession(own, settings, providers=providers)


def spec(arg: onnxruntime.NodeArg) -> TensorSpec:
    """Describe an input or output.

    Raises:
        EngineError: its type is none of NumPy's.
    """
    if arg.type not in _TYPES:
        raise EngineError(
            f"{arg.name!r} is a {arg.type}",
            expected=f"one of {', '.join(sorted(_TYPES))}",
            fix="export the model with float inputs and outputs",
        )
    axes = (axis_name(d) if isinstance(d, str) else d for d in arg.shape)
    return TensorSpec(arg.name, np.dtype(_TYPES[arg.type]), tuple(axes))


def worded(error: Exception, what: str, backend: str = "onnxruntime") -> EngineError:
    """Word an error of `backend`: with the node it is about, without names of its source."""
    text = " ".join(str(error).split())
    text = re.sub(r"^\[ONNXRuntimeError\] : \d+ : (\w+) : ", "", text)
    where = None
    for pattern in _NODE:
        if match := re.search(pattern, text):
            groups = match.groupdict()
            op = groups.get("op")
            where = f"node {groups['node']!r}" + (f" ({op})" if op else "")
            break
    fix = []
    if match := re.search(_UNREGISTERED, text):
        fix.append(f"the model uses {match[1]}, which is a plugin or newer than this runtime")
    text = text.rsplit("Status Message: ", 1)[-1]
    # paths and function names of the runtime's own source are of no use to a reader
    text = re.sub(r"\S*/onnxruntime/\S+ ", "", text)
    return EngineError(f"{backend} {what}: {text[:500]}", where=where, fix=fix)
