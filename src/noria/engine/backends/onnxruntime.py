"""ONNX Runtime on the CPU: every ONNX operator, everywhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy.typing as npt
import onnxruntime as ort

from noria._core.errors import EngineError
from noria.engine.backends import RunOptions
from noria.engine.backends.onnxruntime_common import SILENT, session_options, spec, worded
from noria.network.external_data import WEIGHTS_FILE

if TYPE_CHECKING:
    from noria.engine.plugin_graph.plugins_in_runtime import CallbackGraph, PluginCallbacks


class OnnxRuntimeRunner:
    """An `InferenceSession` on the CPU; streams share its threads."""

    device = "cpu"

    def __init__(
        self,
        model: bytes,
        options: RunOptions,
        weights: memoryview | None = None,
        register: Callable[[Any], None] | None = None,
    ) -> None:
        settings = session_options(options)
        try:
            if register is not None:
                register(settings)
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


class OnnxRuntimeBackend:
    """See module."""

    name = "onnxruntime"

    def version(self) -> str:
        return str(ort.__version__)

    def why_not(self) -> str | None:
        return None

    def open(self, model: bytes, options: RunOptions) -> OnnxRuntimeRunner:
        return OnnxRuntimeRunner(model, options)

    def open_with_weights(
        self, graph: bytes, weights: memoryview, options: RunOptions
    ) -> OnnxRuntimeRunner:
        """See `ExternalWeightsBackend`."""
        return OnnxRuntimeRunner(graph, options, weights)

    def callback_types(self) -> frozenset[int]:
        """See `CallingBackend`."""
        from noria.engine.backends.onnxruntime_plugins import TYPES  # plugins are rare

        return TYPES

    def why_no_callbacks(self) -> str | None:
        """See `CallingBackend`."""
        from noria.engine.backends.onnxruntime_plugins import try_register

        try:
            try_register()
        except Exception as error:  # the binding's exception types share no base of their own
            return worded(error, "takes no operators").found
        return None

    def open_with_callbacks(
        self, graph: CallbackGraph, options: RunOptions, calls: PluginCallbacks
    ) -> OnnxRuntimeRunner:
        """See `CallingBackend`."""
        from noria.engine.backends.onnxruntime_plugins import operators_for, register

        operators = operators_for(graph, calls)
        model = graph.model.SerializeToString()
        return OnnxRuntimeRunner(
            model, options, register=lambda settings: register(operators, settings)
        )

    def profile(
        self, model: bytes, options: RunOptions, feeds: Mapping[str, Any], runs: int
    ) -> list[tuple[str, list[float]]]:
        """See `noria.engine.layers.ProfilingBackend`."""
        from noria.engine.backends.onnxruntime_profile import profile_nodes

        return profile_nodes(model, options, feeds, runs)


backend = OnnxRuntimeBackend()
