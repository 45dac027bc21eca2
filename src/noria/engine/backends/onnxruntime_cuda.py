"""ONNX Runtime on an NVIDIA GPU, by I/O binding: tensors that are there already stay there.

Needs the package `onnxruntime-gpu` in the place of `onnxruntime`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnxruntime as ort

from noria._core.cuda import why_no_gpu
from noria._core.errors import EngineError
from noria.engine.backends import RunOptions
from noria.engine.backends.onnxruntime_common import SILENT, session_options, spec, worded

_PROVIDER = "CUDAExecutionProvider"
_DEVICE = ("cuda", 0)


class OrtTensor:
    """An output that stayed on the GPU; speaks DLPack."""

    def __init__(self, value: Any) -> None:
        self._value = value

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self._value.shape())

    def numpy(self) -> npt.NDArray[Any]:
        """A copy on the host."""
        array: npt.NDArray[Any] = self._value.numpy()
        return array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        return self.numpy() if dtype is None else self.numpy().astype(dtype)

    def __dlpack__(self, **_: Any) -> Any:
        # complete: the run has waited for its outputs, so no stream has to
        return self._value._ortvalue.__dlpack__()

    def __dlpack_device__(self) -> tuple[int, int]:
        kind, number = self._value._ortvalue.__dlpack_device__()
        return int(kind), int(number)


class CudaRunner:
    """An `InferenceSession` on the GPU; each run has a binding of its own."""

    device = "cuda:0"

    def __init__(self, model: bytes, options: RunOptions) -> None:
        ort.set_default_logger_severity(SILENT)  # it warns of what it does not need
        if hasattr(ort, "preload_dlls"):  # CUDA and cuDNN as pip installs them are on no path
            ort.preload_dlls()
        provider = (_PROVIDER, {"device_id": _DEVICE[1], "use_tf32": 0})  # fp32 is fp32
        try:
            session = ort.InferenceSession(model, session_options(options), providers=[provider])
        except Exception as error:  # the binding's exception types share no base of their own
            raise worded(error, "refuses the model") from error
        if _PROVIDER not in session.get_providers():  # it falls back to the CPU without a word
            raise EngineError(
                "onnxruntime cannot use the GPU",
                fix="its CUDA and cuDNN must be those that onnxruntime-gpu was built for",
            )
        self._session: Any = session
        self._run_options = ort.RunOptions()
        self._run_options.log_severity_level = SILENT
        self.inputs = tuple(spec(arg) for arg in session.get_inputs())
        self.outputs = tuple(spec(arg) for arg in session.get_outputs())

    def run(self, feeds: Mapping[str, Any], *, to_host: bool = True) -> Sequence[Any]:
        session = self._session
        if session is None:
            raise EngineError("the session is closed")
        try:
            binding = session.io_binding()
            for name, value in feeds.items():
                if isinstance(value, np.ndarray):
                    binding.bind_cpu_input(name, value)
                else:
                    binding.bind_ortvalue_input(name, ort.OrtValue.from_dlpack(value))
            for output in self.outputs:
                binding.bind_output(output.name, *(("cpu", 0) if to_host else _DEVICE))
            binding.synchronize_inputs()
            session.run_with_iobinding(binding, self._run_options)
            binding.synchronize_outputs()
            values = binding.get_outputs()
        except Exception as error:
            raise worded(error, "failed") from error
        return [value.numpy() if to_host else OrtTensor(value) for value in values]

    def close(self) -> None:
        self._session = None


class OnnxRuntimeCudaBackend:
    """See module."""

    name = "onnxruntime-cuda"

    def version(self) -> str:
        return str(ort.__version__)

    def why_not(self) -> str | None:
        if _PROVIDER not in ort.get_available_providers():
            return "this onnxruntime is built without CUDA"
        return why_no_gpu()

    def open(self, model: bytes, options: RunOptions) -> CudaRunner:
        if reason := self.why_not():
            fix = []
            if "without CUDA" in reason:
                fix = ["pip uninstall onnxruntime && pip install 'onnxruntime-gpu[cuda,cudnn]'"]
            raise EngineError(f"onnxruntime-cuda cannot run here: {reason}", fix=fix)
        return CudaRunner(model, options)


backend = OnnxRuntimeCudaBackend()
