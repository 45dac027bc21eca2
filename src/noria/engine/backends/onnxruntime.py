"""ONNX Runtime on the CPU: every ONNX operator, everywhere."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import onnxruntime as ort

from noria._core.errors import EngineError
from noria.engine.backends import RunOptions
from noria.engine.machine import usable_cores
from noria.network.split import WEIGHTS_FILE
from noria.network.tensor_spec import TensorSpec

if TYPE_CHECKING:
    from noria._native import OrtOperators
    from noria.engine.plugin_graph.plugins_in_runtime import PluginCalls, WholeGraph

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
SILENT = 4  # fatal only: what matters arrives as an exception, which noria words
# Where ONNX Runtime's messages name the node: while running, while loading, no kernel, no schema.
_NODE = (
    re.compile(r"running (?P<op>\w+) node\. Name:'(?P<node>[^']*)'"),
    re.compile(r"Node ?\((?P<node>[^)]*)\) Op \((?P<op>\w+)\)"),
    re.compile(r"implementation for (?P<op>\w+)\(\d+\) node with name '(?P<node>[^']*)'"),
    re.compile(r"Node:(?P<node>\S*) Output"),
)
_UNREGISTERED = re.compile(r"(\S+\(-?\d+\)) is not a registered function/op")


class OnnxRuntimeRunner:
    """An `InferenceSession` on the CPU; streams share its threads."""

    device = "cpu"

    def __init__(
        self,
        model: bytes,
        options: RunOptions,
        weights: memoryview | None = None,
        operators: OrtOperators | None = None,
    ) -> None:
        settings = session_options(options)
        try:
            if operators is not None:
                from noria import _native

                # the library is noria itself; the runtime says nothing of which session it asks for
                operators.register_with(
                    lambda: settings.register_custom_ops_library(_native.__file__)
                )
            if weights is not None:
                settings.add_external_initializers_from_files_in_memory(
                    [WEIGHTS_FILE], [weights], [len(weights)]
                )
            session = ort.InferenceSession(model, settings, providers=["CPUExecutionProvider"])
        except Exception as error:  # the binding's exception types share no base of their own
            raise worded(error, "refuses the model") from error
        self._session: Any = session
        self._run_options = ort.RunOptions()
        self._run_options.log_severity_level = SILENT
        self.inputs = tuple(spec(arg) for arg in session.get_inputs())
        self.outputs = tuple(spec(arg) for arg in session.get_outputs())
        self._names = [spec.name for spec in self.outputs]

    def run(
        self, feeds: Mapping[str, npt.NDArray[Any]], *, to_host: bool = True
    ) -> list[npt.NDArray[Any]]:
        session = self._session
        if session is None:
            raise EngineError("the session is closed")
        try:
            outputs: list[npt.NDArray[Any]] = session.run(
                self._names, dict(feeds), self._run_options
            )
        except Exception as error:
            raise worded(error, "failed") from error
        return outputs

    def run_into(
        self, feeds: Mapping[str, npt.NDArray[Any]], places: Mapping[str, npt.NDArray[Any]]
    ) -> list[npt.NDArray[Any]]:
        """See `PlacingRunner`."""
        session = self._session
        if session is None:
            raise EngineError("the session is closed")
        try:
            binding = session.io_binding()
            for name, array in feeds.items():
                binding.bind_cpu_input(name, array)
            for name in self._names:
                if (place := places.get(name)) is None:
                    binding.bind_output(name, "cpu")
                else:
                    binding.bind_output(name, "cpu", 0, place.dtype, place.shape, place.ctypes.data)
            session.run_with_iobinding(binding, self._run_options)
            made = binding.get_outputs() if len(places) < len(self._names) else ()
        except Exception as error:
            raise worded(error, "failed") from error
        return [
            places[name] if name in places else made[i].numpy()
            for i, name in enumerate(self._names)
        ]

    def close(self) -> None:
        self._session = None


def session_options(options: RunOptions) -> Any:
    """ONNX Runtime's settings for `options`."""
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


def spec(arg: Any) -> TensorSpec:
    """An input or output as ONNX Runtime describes it."""
    if arg.type not in _TYPES:
        raise EngineError(
            f"{arg.name!r} is a {arg.type}",
            expected=f"one of {', '.join(sorted(_TYPES))}",
            fix="export the model with float inputs and outputs",
        )
    return TensorSpec(arg.name, np.dtype(_TYPES[arg.type]), tuple(arg.shape))


def worded(error: Exception, what: str) -> EngineError:
    """What ONNX Runtime said, with the node it is about and without its own source's names."""
    text = " ".join(str(error).split())
    text = re.sub(r"^\[ONNXRuntimeError\] : \d+ : (\w+) : ", "", text)
    where = None
    for pattern in _NODE:
        if match := pattern.search(text):
            found = match.groupdict()
            op = found.get("op")
            where = f"node {found['node']!r}" + (f" ({op})" if op else "")
            break
    fix = []
    if match := _UNREGISTERED.search(text):
        fix.append(f"the model uses {match[1]}, which is a plugin or newer than this runtime")
    text = text.rsplit("Status Message: ", 1)[-1]
    # paths and function names of the runtime's own source help nobody
    text = re.sub(r"\S*/onnxruntime/\S+ ", "", text)
    return EngineError(f"onnxruntime {what}: {text[:500]}", where=where, fix=fix)


class OnnxRuntimeBackend:
    """See module."""

    name = "onnxruntime"

    def version(self) -> str:
        return str(ort.__version__)

    def why_not(self) -> str | None:
        return None

    def open(self, model: bytes, options: RunOptions) -> OnnxRuntimeRunner:
        return OnnxRuntimeRunner(model, options)

    def open_split(
        self, graph: bytes, weights: memoryview, options: RunOptions
    ) -> OnnxRuntimeRunner:
        """See `SplitBackend`."""
        return OnnxRuntimeRunner(graph, options, weights)

    def open_whole(
        self, graph: WholeGraph, options: RunOptions, calls: PluginCalls
    ) -> OnnxRuntimeRunner:
        """See `CallingBackend`."""
        from noria.engine.backends.onnxruntime_plugins import operators_for

        operators = operators_for(graph, calls)
        return OnnxRuntimeRunner(graph.model.SerializeToString(), options, operators=operators)

    def profile(
        self, model: bytes, options: RunOptions, feeds: Mapping[str, Any], runs: int
    ) -> list[tuple[str, list[float]]]:
        """See `noria.engine.layer_times.ProfilingBackend`."""
        from noria.engine.backends.onnxruntime_profile import profile_nodes

        return profile_nodes(model, options, feeds, runs)


backend = OnnxRuntimeBackend()
