"""ONNX Runtime on the CPU: every ONNX operator, everywhere."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace._core import _native
from headrace._core.errors import EngineError
from headrace.engine.backends import RunnerOptions
from headrace.engine.backends.onnxruntime_common import (
    SILENT,
    open_session,
    ort,
    session_options,
    spec,
    worded,
)
from headrace.network.external_data import WEIGHTS_FILE

if TYPE_CHECKING:
    import onnxruntime

    from headrace._core.types import Array
    from headrace.engine.backends.protocol import DLPackTensor
    from headrace.engine.plugin_graph.plugins_in_runtime import CallbackGraph, PluginCallbacks


_CALLBACK_TYPES = (
    "FLOAT", "FLOAT16", "DOUBLE", "BOOL", "INT8", "INT16", "INT32", "INT64", "UINT8", "UINT16",
    "UINT32", "UINT64",
)  # fmt: skip
"""ONNX element types that ONNX Runtime passes to operators and back."""
_MAX_EMBEDDED_BYTES = 2**31 - 1
_SUFFIX = "_kernel_time"  # of the events of nodes in its profile


class OnnxRuntimeRunner:
    """An `InferenceSession` on the CPU; streams share its threads."""

    device = "cpu"

    def __init__(
        self,
        model: bytes,
        options: RunnerOptions,
        weights: memoryview | None = None,
        register: Callable[[onnxruntime.SessionOptions], None] | None = None,
    ) -> None:
        settings = session_options(options)
        self._large: dict[str, onnxruntime.OrtValue] = {}  # it reads them as long as it lives
        try:
            if register is not None:
                register(settings)
            if weights is not None:
                settings.add_external_initializers_from_files_in_memory(
                    [WEIGHTS_FILE], [weights], [len(weights)]
                )
                self._large = _large_values(model, weights)
                settings.add_external_initializers(list(self._large), list(self._large.values()))
            session = open_session(model, settings, ["CPUExecutionProvider"])
        except Exception as error:  # the binding's exception types share no base of their own
            raise worded(error, "refuses the model") from error
        self._session: Any = session
        session.disable_fallback()  # to other providers: it would keep the model's bytes for that
        session._model_bytes = b""
        self._run_options = ort.RunOptions()
        self._run_options.log_severity_level = SILENT
        self.inputs = tuple(spec(arg) for arg in session.get_inputs())
        self.outputs = tuple(spec(arg) for arg in session.get_outputs())
        self._names = [spec.name for spec in self.outputs]

    def run(self, feeds: Mapping[str, Array], *, to_host: bool = True) -> list[Array]:
        session = self._session
        if session is None:
            raise EngineError("the session is closed")
        try:
            outputs: list[Array] = session.run(self._names, dict(feeds), self._run_options)
        except Exception as error:
            raise worded(error, "failed") from error
        return outputs

    def run_into(self, feeds: Mapping[str, Array], targets: Mapping[str, Array]) -> list[Array]:
        """See `PlacingRunner`."""
        session = self._session
        if session is None:
            raise EngineError("the session is closed")
        try:
            binding = session.io_binding()
            for name, array in feeds.items():
                binding.bind_cpu_input(name, array)
            for name in self._names:
                if (target := targets.get(name)) is None:
                    binding.bind_output(name, "cpu")
                else:
                    binding.bind_output(
                        name, "cpu", 0, target.dtype, target.shape, target.ctypes.data
                    )
            session.run_with_iobinding(binding, self._run_options)
            values = binding.get_outputs() if len(targets) < len(self._names) else ()
        except Exception as error:
            raise worded(error, "failed") from error
        return [
            targets[name] if name in targets else values[i].numpy()
            for i, name in enumerate(self._names)
        ]

    def close(self) -> None:
        self._session = None
        self._large = {}


class OnnxRuntimeBackend:
    """See module."""

    name = "onnxruntime"
    maps_weights = True  # it reads them where they are

    def version(self) -> str:
        return str(ort.__version__)

    def why_not(self) -> str | None:
        return None

    def open(self, model: bytes, options: RunnerOptions) -> OnnxRuntimeRunner:
        return OnnxRuntimeRunner(model, options)

    def open_with_weights(
        self, graph: bytes, weights: memoryview, options: RunnerOptions
    ) -> OnnxRuntimeRunner:
        """See `ExternalWeightsBackend`."""
        return OnnxRuntimeRunner(graph, options, weights)

    def callback_types(self) -> frozenset[int]:
        """See `CallingBackend`."""
        from onnx import TensorProto

        return frozenset(getattr(TensorProto, name) for name in _CALLBACK_TYPES)

    def why_no_callbacks(self) -> str | None:
        """See `CallingBackend`."""
        try:  # no operators at all, to see whether the runtime takes them
            _register(
                _native.OrtOperators(lambda index, call: False, "headrace", []),
                ort.SessionOptions(),
            )
        except Exception as error:  # the binding's exception types share no base of their own
            return f"{worded(error, 'takes no operators'):brief}"
        return None

    def open_with_callbacks(
        self, graph: CallbackGraph, options: RunnerOptions, calls: PluginCallbacks
    ) -> OnnxRuntimeRunner:
        """See `CallingBackend`."""
        nodes = [
            (node.op, list(node.input_types), list(node.output_types), node.passes_run_id)
            for node in graph.nodes
        ]

        def compute(index: int, call: _native.OrtCall) -> bool:
            return calls.call(index, call.run_id, call.inputs(), call.output)

        operators = _native.OrtOperators(compute, graph.domain, nodes)
        model = graph.model.SerializeToString()
        return OnnxRuntimeRunner(
            model, options, register=lambda settings: _register(operators, settings)
        )

    def profile(
        self, model: bytes, options: RunnerOptions, feeds: Mapping[str, DLPackTensor], runs: int
    ) -> list[tuple[str, list[float]]]:
        """See `headrace.engine.layers.ProfilingBackend`."""
        from tempfile import TemporaryDirectory

        with TemporaryDirectory(prefix="headrace-profile-") as folder:
            settings = session_options(options)
            settings.enable_profiling = True
            settings.profile_file_prefix = str(Path(folder) / "profile")
            try:
                session = open_session(model, settings, ["CPUExecutionProvider"])
                for _ in range(runs + 1):  # the first run is never like the others
                    session.run(None, dict(feeds))
                events = json.loads(Path(session.end_profiling()).read_text())
            except Exception as error:  # the binding's exception types share no base of their own
                raise worded(error, "failed") from error
        times: dict[str, list[float]] = {}
        for event in events:
            name = event.get("name", "")
            if event.get("cat") == "Node" and name.endswith(_SUFFIX):
                operator = event.get("args", {}).get("op_name", "")
                own = name[: -len(_SUFFIX)]
                key = f"{own} ({operator})" if operator and operator not in own else own
                times.setdefault(key, []).append(event["dur"] / 1e3)
        # a node inside a loop runs more often than the model does
        return [(name, _by_run(ms, runs + 1)[1:]) for name, ms in times.items()]


def _large_values(graph: bytes, weights: memoryview) -> dict[str, onnxruntime.OrtValue]:
    """Tensors of a graph that the runtime takes from memory by name alone: those over 2 GiB."""
    if len(weights) <= _MAX_EMBEDDED_BYTES:
        return {}
    from onnx import ModelProto

    values = {}
    for tensor in ModelProto.FromString(graph).graph.initializer:
        place = {entry.key: entry.value for entry in tensor.external_data}
        size = int(place.get("length", 0))
        if size > _MAX_EMBEDDED_BYTES:
            start = int(place["offset"])
            data = np.frombuffer(weights[start : start + size], np.uint8)
            count = math.prod(tensor.dims)
            words = data.view(f"u{size // count}").reshape(tuple(tensor.dims))
            values[tensor.name] = ort.OrtValue.ortvalue_from_numpy_with_onnx_type(
                words, tensor.data_type
            )
    return values


def _register(operators: _native.OrtOperators, settings: onnxruntime.SessionOptions) -> None:
    """Register operators with the options of one session; any exception: it takes none."""
    # the library is headrace itself; the runtime does not say for which session it asks
    operators.register_with(lambda: settings.register_custom_ops_library(_native.__file__))


def _by_run(times: list[float], runs: int) -> list[float]:
    if len(times) % runs:
        return [sum(times) / runs] * runs
    each = len(times) // runs
    return [sum(times[i * each : (i + 1) * each]) for i in range(runs)]


backend = OnnxRuntimeBackend()
