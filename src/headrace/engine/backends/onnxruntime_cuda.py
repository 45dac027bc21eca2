"""ONNX Runtime on an NVIDIA GPU, by I/O binding: tensors that are there already stay there.

Needs the package `onnxruntime-gpu` in the place of `onnxruntime`.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from headrace._core.errors import DeviceMemoryError, EngineError
from headrace._core.gpu.cuda import current_gpu, entered, gpu_decodes, why_no_gpu
from headrace._core.gpu.cuda_kernels import PinnedPool
from headrace._core.gpu.cuda_tensors import CudaTensor
from headrace._core.gpu.kept_kernels import keep_kernels
from headrace._core.types import Array, DType
from headrace.engine.backends import RunnerOptions
from headrace.engine.backends.cuda_graphs import CapturedRun
from headrace.engine.backends.onnxruntime_common import SILENT, ort, session_options, spec, worded
from headrace.engine.backends.onnxruntime_package import cuda_major, gpu_fix, why_no_cuda

if TYPE_CHECKING:
    import numpy.typing as npt
    import onnxruntime

    from headrace.engine.backends.protocol import DLPackTensor, Outputs


_NAME = "onnxruntime-cuda"
_PROVIDER = "CUDAExecutionProvider"
_NO_MEMORY = re.compile(r"out of memory|failed to allocate memory|bad_alloc", re.IGNORECASE)
_SEARCH = {"cudnn_conv_algo_search": "HEURISTIC"}
"""Measured on an H200, batch 32, items a second: YOLO11n in FP16 3,725 with it, 2,223 with the
exhaustive default; YOLOX-nano 6,158 and 5,757."""


class OrtTensor:
    """An output that stayed on the GPU; speaks DLPack."""

    def __init__(self, value: onnxruntime.OrtValue, dtype: DType) -> None:
        self._value = value
        self.dtype = dtype

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self._value.shape())

    @property
    def pointer(self) -> int:
        """Device address. The run that fills it is over."""
        return int(self._value.data_ptr())

    def numpy(self) -> Array:
        """A copy on the host."""
        array: Array = self._value.numpy()
        return array

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> Array:
        return self.numpy() if dtype is None else self.numpy().astype(dtype)

    def __dlpack__(self, **_: object) -> object:
        # complete: the run has waited for its outputs, so no stream has to
        return self._value._ortvalue.__dlpack__()

    def __dlpack_device__(self) -> tuple[int, int]:
        kind, number = self._value._ortvalue.__dlpack_device__()
        return int(kind), int(number)


class CudaRunner:
    """An `InferenceSession` on the thread's GPU; each run has a binding of its own.

    Outputs for the host are copied into memory that the GPU writes directly: into that of any
    other kind the copy takes ten times as long.
    """

    def __init__(self, model: bytes, options: RunnerOptions) -> None:
        ort.set_default_logger_severity(SILENT)  # it warns of what it does not need
        keep_kernels(cuda_major(ort))
        if hasattr(ort, "preload_dlls"):  # CUDA and cuDNN as pip installs them are on no path
            ort.preload_dlls()
        self._place = ("cuda", current_gpu())
        self.device = "{}:{}".format(*self._place)
        # fp32 is fp32; without it convolutions in fp16 get no tensor cores, either
        tensor_cores = int(options.half == "fp16")
        settings = {"device_id": self._place[1], "use_tf32": tensor_cores, **_SEARCH}
        self._one_at_a_time = threading.Lock() if options.graph else None
        self.plans_kernels = not options.graph  # which is of the thread of its first run
        if options.graph:
            settings["enable_cuda_graph"] = "1"
        provider = (_PROVIDER, settings)
        try:
            session = ort.InferenceSession(model, session_options(options), providers=[provider])
        except Exception as error:  # the binding's exception types share no base of their own
            raise worded(error, "refuses the model", _NAME) from error
        if _PROVIDER not in session.get_providers():  # it falls back to the CPU without a word
            raise EngineError(
                f"{_NAME} cannot use the GPU",
                expected="the CUDA and cuDNN that onnxruntime-gpu was built for",
                fix=gpu_fix(),
            )
        self._session: onnxruntime.InferenceSession = session
        self._run_options = _run_options(graph=-1 if options.graph else None)
        self.inputs = tuple(spec(arg) for arg in session.get_inputs())
        self.outputs = tuple(spec(arg) for arg in session.get_outputs())
        self._pinned = PinnedPool()
        self._batched = options.batched
        self._captured: tuple[threading.Thread, object, CapturedRun] | None = (
            None  # with its shapes
        )

    def run(self, feeds: Mapping[str, DLPackTensor], *, to_host: bool = True) -> Outputs:
        session = self._session
        if session is None:
            raise EngineError("the session is closed")
        try:
            if self._one_at_a_time is None:
                return self._run(session, feeds, to_host)
            with self._one_at_a_time, entered(self._place[1]):
                captured = self._captured_run(session, feeds)
                if captured is None:
                    return self._run(session, feeds, to_host)
                return self._run_captured(captured, feeds, to_host)
        except Exception as error:
            raise _failed(error) from error

    def _captured_run(
        self, session: onnxruntime.InferenceSession, feeds: Mapping[str, DLPackTensor]
    ) -> CapturedRun | None:
        """The run as a graph, if it is that of the first shapes, in the first thread.

        ONNX Runtime keeps graphs for each thread. None is captured while videos are decoded on the
        GPU, as for a model that is exchanged in the middle of a run.
        """
        thread = threading.current_thread()  # numbers are used again
        shapes = tuple(tuple(value.shape) for value in feeds.values())
        if self._captured is None:
            if gpu_decodes():
                return None
            known = []
            for output, shape in zip(self.outputs, self._shapes(feeds), strict=True):
                if shape is None:
                    raise EngineError(
                        f"a CUDA graph needs outputs of known shapes; {output.name!r} has none",
                        fix="leave graph=1 out of the tactic",
                    )
                known.append((output, shape))
            captured = CapturedRun(session, _run_options(graph=1), feeds, known)
            self._captured = thread, shapes, captured
        first, those, captured = self._captured
        return captured if first is thread and those == shapes else None

    def _run_captured(
        self, captured: CapturedRun, feeds: Mapping[str, DLPackTensor], to_host: bool
    ) -> Outputs:
        if to_host:
            return captured.to_host(feeds)
        tensors = []
        for output, shape in zip(self.outputs, self._shapes(feeds), strict=True):
            value = ort.OrtValue.ortvalue_from_shape_and_type(shape, output.dtype, *self._place)
            tensors.append(OrtTensor(value, output.dtype))
        captured.to(feeds, tensors)
        return tensors

    def _run(
        self,
        session: onnxruntime.InferenceSession,
        feeds: Mapping[str, DLPackTensor],
        to_host: bool,
    ) -> Outputs:
        binding = session.io_binding()
        for name, value in feeds.items():
            if isinstance(value, np.ndarray):
                binding.bind_cpu_input(name, value)
            else:
                binding.bind_ortvalue_input(name, ort.OrtValue.from_dlpack(value))
        targets = self._places(feeds) if to_host else [None] * len(self.outputs)
        for output, target in zip(self.outputs, targets, strict=True):
            if target is not None:
                address = target.ctypes.data
                binding.bind_output(output.name, "cpu", 0, target.dtype, target.shape, address)
            else:
                binding.bind_output(output.name, *(("cpu", 0) if to_host else self._place))
        # A run waits for its own work. These two wait for all work on the GPU, that of other
        # runs and decoders too, and hold the GIL: only for tensors that others may still write.
        ours = all(isinstance(value, CudaTensor) for value in feeds.values())
        if not ours:
            binding.synchronize_inputs()
        session.run_with_iobinding(binding, self._run_options)
        if not (to_host or ours):
            binding.synchronize_outputs()
        values = binding.get_outputs()
        if not to_host:
            return [OrtTensor(v, o.dtype) for v, o in zip(values, self.outputs, strict=True)]
        pairs = zip(values, targets, strict=True)
        return [value.numpy() if target is None else target for value, target in pairs]

    def _places(self, feeds: Mapping[str, DLPackTensor]) -> list[Array | None]:
        """Memory for each output with a shape that is known before the run; None for others."""
        pairs = zip(self.outputs, self._shapes(feeds), strict=True)
        return [None if s is None else self._pinned.take(o.dtype, s) for o, s in pairs]

    def _shapes(self, feeds: Mapping[str, DLPackTensor]) -> list[tuple[int, ...] | None]:
        """The shape of each output if it is known before the run."""
        rows = next(iter(feeds.values())).shape[0] if self._batched and feeds else None
        shapes: list[tuple[int, ...] | None] = []
        for output in self.outputs:
            sizes = list(output.shape)
            if sizes and rows is not None and not isinstance(sizes[0], int):
                sizes[0] = rows
            shape = tuple(size for size in sizes if isinstance(size, int))
            shapes.append(shape if len(shape) == len(sizes) else None)
        return shapes

    def close(self) -> None:
        self._session = self._captured = None


def _run_options(graph: int | None) -> onnxruntime.RunOptions:
    """Options of a run; `graph`: number of the CUDA graph that it is, -1 for none."""
    options = ort.RunOptions()
    options.log_severity_level = SILENT
    if graph is not None:
        options.add_run_config_entry("gpu_graph_id", str(graph))
    return options


def _failed(error: Exception) -> EngineError:
    """Word an error of a run; the GPU's memory may do for fewer items."""
    if isinstance(error, EngineError):
        return error
    failure = worded(error, "failed", _NAME)
    if _NO_MEMORY.search(str(error)):
        return DeviceMemoryError(failure.finding, code=DeviceMemoryError.code)
    return failure


class OnnxRuntimeCudaBackend:
    """See module."""

    name = _NAME

    def version(self) -> str:
        return str(ort.__version__)

    def why_not(self) -> str | None:
        return why_no_gpu() or why_no_cuda(ort)

    def open(self, model: bytes, options: RunnerOptions) -> CudaRunner:
        if reason := self.why_not():
            raise EngineError(
                f"{_NAME} cannot run here: {reason}",
                fix=(gpu_fix(), "for the CPU: headrace build CONFIG --backend onnxruntime"),
            )
        return CudaRunner(model, options)


backend = OnnxRuntimeCudaBackend()
