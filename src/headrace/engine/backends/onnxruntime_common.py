"""Settings, types and error texts that the backends of ONNX Runtime share."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from headrace._core.errors import EngineError
from headrace.engine.backends import RunnerOptions
from headrace.engine.backends.onnxruntime_package import import_onnxruntime
from headrace.engine.machine import usable_cores
from headrace.network.tensor_spec import TensorSpec

if TYPE_CHECKING:
    import onnxruntime


ort = import_onnxruntime()

_TYPES = {
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
    re.compile(r"running (?P<op>\w+) node\. Name:'(?P<node>[^']*)'"),
    re.compile(r"Node ?\((?P<node>[^)]*)\) Op \((?P<op>\w+)\)"),
    re.compile(r"implementation for (?P<op>\w+)\(\d+\) node with name '(?P<node>[^']*)'"),
    re.compile(r"Node:(?P<node>\S*) Output"),
)
_UNREGISTERED = re.compile(r"(\S+\(-?\d+\)) is not a registered function/op")


def session_options(options: RunnerOptions) -> onnxruntime.SessionOptions:
    """Translate `options` to ONNX Runtime's settings."""
    settings = ort.SessionOptions()
    settings.log_severity_level = SILENT
    shared = usable_cores() // options.streams if options.streams > 1 else 0
    settings.intra_op_num_threads = options.threads or shared
    settings.graph_optimization_level = _OPTIMIZATIONS[options.optimization]
    settings.inter_op_num_threads = 1
    settings.execution_mode = ort.ExecutionMode.ORT_SEQUENTIAL
    # INT8 on x86 without VNNI: sums of products are cut off otherwise
    settings.add_session_config_entry("session.x64quantprecision", "1")
    spin = "1" if options.spinning else "0"
    settings.add_session_config_entry("session.intra_op.allow_spinning", spin)
    return settings


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
    return TensorSpec(arg.name, np.dtype(_TYPES[arg.type]), tuple(arg.shape))


def worded(error: Exception, what: str, backend: str = "onnxruntime") -> EngineError:
    """Word an error of `backend`: with the node it is about, without names of its source."""
    text = " ".join(str(error).split())
    text = re.sub(r"^\[ONNXRuntimeError\] : \d+ : (\w+) : ", "", text)
    where = None
    for pattern in _NODE:
        if match := pattern.search(text):
            groups = match.groupdict()
            op = groups.get("op")
            where = f"node {groups['node']!r}" + (f" ({op})" if op else "")
            break
    fix = []
    if match := _UNREGISTERED.search(text):
        fix.append(f"the model uses {match[1]}, which is a plugin or newer than this runtime")
    text = text.rsplit("Status Message: ", 1)[-1]
    # paths and function names of the runtime's own source are of no use to a reader
    text = re.sub(r"\S*/onnxruntime/\S+ ", "", text)
    return EngineError(f"{backend} {what}: {text[:500]}", where=where, fix=fix)
