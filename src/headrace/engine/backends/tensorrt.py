"""TensorRT on an NVIDIA GPU: the packages `tensorrt` 8.5 to 11, and `tensorrt_rtx`.

Extra: `tensorrt`.

TensorRT-RTX builds its engines without a GPU, and finishes them for the GPU it then runs on;
TensorRT builds on the GPU it is for. Source: TensorRT facts 1, 3, 4.
"""

from __future__ import annotations

import re
import threading
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from headrace._core.errors import EngineError
from headrace._core.gpu.cuda import (
    Stream,
    compute_capability,
    current_gpu,
    driver,
    entered,
    why_no_gpu,
)
from headrace._core.gpu.cuda_kernels import PinnedPool
from headrace._core.gpu.cuda_tensors import CudaTensor, Imported
from headrace._core.types import Array, DType
from headrace.engine.backends import PluginKey, RunnerOptions
from headrace.engine.backends.onnxruntime_package import gpu_fix
from headrace.network.tensor_spec import TensorSpec

if TYPE_CHECKING:
    import tensorrt

    from headrace.engine.backends.protocol import DLPackTensor, Outputs


try:
    import tensorrt as trt
except ModuleNotFoundError as error:
    if error.name != "tensorrt":
        raise
    import tensorrt_rtx as trt

_MODULE = str(trt.__name__).split(".")[0]
_PACKAGE = f"{_MODULE} {trt.__version__}"
if _MODULE == "headrace":  # `headrace exec` gives scripts its own module under this name
    raise ModuleNotFoundError("headrace.trt stands in for tensorrt", name="tensorrt")


_TURING = 75  # TensorRT-RTX builds for it where it is named, and for newer chips otherwise


class _Log(trt.ILogger):  # type: ignore[misc]
    """Collect failures for the error that follows; print nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.errors: list[str] = []

    def log(self, severity: tensorrt.ILogger.Severity, message: str) -> None:
        if severity <= trt.ILogger.ERROR and len(self.errors) < 20:
            self.errors.append(" ".join(str(message).split()))


_log = _Log()  # one for the process: TensorRT keeps the first it is given
_log_lock = threading.Lock()


# Where TensorRT's texts name the function and line of its own source.
_CALL = re.compile(r"^\w+::\w+: Error Code \d+: [\w ]+ \((?P<text>.*?)( In \w+ at \S+:\d+)?\)$")


def _said(fallback: str) -> str:
    return "; ".join(_CALL.sub(r"\g<text>", text) for text in _log.errors[:3])[:500] or fallback


def _chips() -> list[int]:
    """Compute capabilities that TensorRT-RTX builds engines for, as 86 for 8.6; [] of others."""
    known = getattr(trt, "ComputeCapability", None)
    members = {} if known is None else known.__members__
    return sorted(int(value) for name, value in members.items() if name.startswith("SM"))


def _chip() -> int:
    major, minor = compute_capability()
    return 10 * major + minor


def _shown(chip: int) -> str:
    return f"{chip // 10}.{chip % 10}"


def _only_chip() -> str:
    """The compute capability of the thread's GPU if an engine that is built on it runs there alone.

    TensorRT builds for one. TensorRT-RTX builds for Ampere and newer, or for Turing.
    """
    chip = _chip()
    return _shown(chip) if chip == _TURING or not _chips() else ""


def _plugin_registry() -> tensorrt.IPluginRegistry:
    """TensorRT's, with the plugins that come with it; None: TensorRT-RTX has no plugins."""
    register = getattr(trt, "init_libnvinfer_plugins", None)
    if register is None or not hasattr(trt, "get_plugin_registry"):
        return None
    register(_log, "")
    return trt.get_plugin_registry()


def _compile(model: bytes, options: RunnerOptions) -> bytes:
    """The engine's bytes."""
    _log.errors.clear()
    builder = trt.Builder(_log)
    if builder is None:
        raise EngineError(f"{_MODULE} cannot build here: {_said('no builder')}")
    flags = 0
    # types come from the graph where that can be asked for: later versions know nothing else
    for name in ("EXPLICIT_BATCH", "STRONGLY_TYPED"):
        if (flag := getattr(trt.NetworkDefinitionCreationFlag, name, None)) is not None:
            flags |= 1 << int(flag)
    network = builder.create_network(flags)
    parser = trt.OnnxParser(network, _log)
    if not parser.parse(model):
        raise _unparsed(parser)
    config = builder.create_builder_config()
    if hasattr(trt.BuilderFlag, "TF32"):
        config.clear_flag(trt.BuilderFlag.TF32)  # fp32 is fp32
    if not hasattr(trt.NetworkDefinitionCreationFlag, "STRONGLY_TYPED"):
        # TensorRT 8 obeys the types of the graph only as far as the builder may use them
        builder_flags = {"FP16": options.half == "fp16", "INT8": b"DequantizeLinear" in model}
        for name, asked in builder_flags.items():
            if asked:
                config.set_flag(getattr(trt.BuilderFlag, name))
    profile = builder.create_optimization_profile()
    free = False
    most = options.max_batch or 1
    for i in range(network.num_inputs):
        tensor = network.get_input(i)
        shape = tuple(tensor.shape)
        if any(d < 0 for d in shape):
            free = True
            one, many = ((n, *shape[1:]) for n in (1, most))
            profile.set_shape(tensor.name, one, many, many)
    if free:
        config.add_optimization_profile(profile)
    if why_no_gpu() is None and _chip() == _TURING and _TURING in _chips():
        config.num_compute_capabilities = 1
        config.set_compute_capability(trt.ComputeCapability.SM75, 0)
    built = builder.build_serialized_network(network, config)
    if built is None:
        raise EngineError(f"{_MODULE} refuses the model: {_said('it does not say why')}")
    return bytes(built)


def _unparsed(parser: tensorrt.OnnxParser) -> EngineError:
    messages, where = [], None
    for i in range(min(parser.num_errors, 3)):
        error = parser.get_error(i)
        if where is None and hasattr(error, "node_name") and error.node_operator():
            where = f"node {error.node_name()!r} ({error.node_operator()})"
        messages.append(" ".join(str(error.desc()).split()))
    return EngineError(f"{_MODULE} refuses the model: {'; '.join(messages)[:500]}", where=where)


class _Lane:
    """One execution context with its stream and buffers: one run at a time."""

    def __init__(self, engine: tensorrt.ICudaEngine) -> None:
        self.stream = Stream()
        self.context = engine.create_execution_context()
        if self.context is None:
            raise EngineError(f"{_MODULE}: {_said('no execution context')}")
        self.buffers: dict[str, CudaTensor] = {}

    def buffer(self, name: str, shape: Sequence[int], dtype: DType) -> CudaTensor:
        """Memory for a tensor, kept for the next run of the same shape."""
        have = self.buffers.get(name)
        if have is None or have.shape != tuple(shape) or have.dtype != dtype:
            have = self.buffers[name] = CudaTensor(shape, dtype)
        return have


class TensorRtRunner:
    """An engine on the thread's GPU, with a pool of execution contexts."""

    def __init__(self, data: bytes) -> None:
        self._gpu = current_gpu()
        self.device = f"cuda:{self._gpu}"
        driver()
        _log.errors.clear()
        _plugin_registry()  # engines with plugins look for their creators there
        self._runtime = trt.Runtime(_log)
        engine = self._runtime.deserialize_cuda_engine(data)
        if engine is None:
            raise EngineError(f"{_MODULE} cannot load the engine: {_said('it does not say why')}")
        self._engine: tensorrt.ICudaEngine = engine
        names = [engine.get_tensor_name(i) for i in range(engine.num_io_tensors)]
        inputs = [n for n in names if engine.get_tensor_mode(n) == trt.TensorIOMode.INPUT]
        self.inputs = tuple(self._spec(name) for name in inputs)
        self.outputs = tuple(self._spec(name) for name in names if name not in inputs)
        self._idle: deque[_Lane] = deque()
        self._pinned = PinnedPool()  # into other memory the copies take ten times as long

    def _spec(self, name: str) -> TensorSpec:
        kind = self._engine.get_tensor_dtype(name)
        try:
            dtype = np.dtype(trt.nptype(kind))
        except TypeError as error:
            raise EngineError(
                f"{name!r} is a tensor of {kind}, which NumPy does not know"
            ) from error
        shape = tuple(self._engine.get_tensor_shape(name))
        return TensorSpec(name, dtype, tuple(None if d < 0 else d for d in shape))

    def run(self, feeds: Mapping[str, DLPackTensor], *, to_host: bool = True) -> Outputs:
        if self._engine is None:
            raise EngineError("the session is closed")
        with entered(self._gpu):
            try:
                lane = self._idle.pop()
            except IndexError:  # more runs at once than ever before
                lane = _Lane(self._engine)
            try:
                return self._run(lane, feeds, to_host)
            finally:
                self._idle.append(lane)

    def _run(self, lane: _Lane, feeds: Mapping[str, object], to_host: bool) -> Outputs:
        context, stream = lane.context, lane.stream
        borrowed: list[object] = []  # alive until the stream is done
        for spec in self.inputs:
            value = feeds[spec.name]
            tensor: CudaTensor | Imported
            if isinstance(value, np.ndarray):
                array = np.ascontiguousarray(value, spec.dtype)
                tensor = lane.buffer(spec.name, array.shape, spec.dtype)
                stream.upload(array.ctypes.data, array.nbytes, tensor.pointer)
                borrowed.append(array)
            else:
                tensor = Imported(value, stream)
                if tensor.dtype != spec.dtype:
                    raise EngineError(
                        f"input {spec.name!r} is {tensor.dtype.name}", expected=spec.dtype.name
                    )
            borrowed.append(tensor)
            if not context.set_input_shape(spec.name, tensor.shape):
                raise EngineError(f"{_MODULE} refuses {spec.name!r} of shape {tensor.shape}")
            context.set_tensor_address(spec.name, tensor.pointer)
        results: list[CudaTensor] = []
        for spec in self.outputs:
            shape = tuple(context.get_tensor_shape(spec.name))
            if any(d < 0 for d in shape):
                raise EngineError(
                    f"the shape of output {spec.name!r} depends on the data",
                    fix="export the model with outputs of fixed size",
                )
            kept = lane.buffer(spec.name, shape, spec.dtype) if to_host else None
            result = kept or CudaTensor(shape, spec.dtype)
            context.set_tensor_address(spec.name, result.pointer)
            results.append(result)
        if not context.execute_async_v3(stream.handle):
            raise EngineError(f"{_MODULE} failed: {_said('it does not say why')}")
        arrays: list[Array] = []
        if to_host:
            for result in results:
                host = self._pinned.take(result.dtype, result.shape)
                stream.download(result.pointer, host.ctypes.data, host.nbytes)
                arrays.append(host)
        stream.wait()
        return arrays if to_host else results

    def close(self) -> None:
        self._engine = None
        self._idle.clear()


class TensorRtBackend:
    """See module."""

    name = "tensorrt"

    def version(self) -> str:
        """The package's, and the chip where engines run on no other."""
        chip = "" if why_no_gpu() else _only_chip()
        return f"{_PACKAGE} for compute capability {chip}" if chip else _PACKAGE

    def why_not(self) -> str | None:
        if (reason := why_no_gpu()) is not None:
            return reason
        chips, chip = _chips(), _chip()
        if not chips or chip in chips or chip > chips[-1]:
            return None
        serves = ", ".join(map(_shown, chips))
        return (
            f"{_PACKAGE} does not serve compute capability {_shown(chip)}, only {serves} and newer"
        )

    def lacks(self, plugins: Iterable[PluginKey]) -> list[PluginKey]:
        """Those of `plugins` without a creator in TensorRT's registry."""
        registry = _plugin_registry()
        if registry is None:
            return list(plugins)
        find = getattr(registry, "get_creator", None) or registry.get_plugin_creator  # from 10 on
        return [key for key in plugins if find(*key) is None]

    def compile(self, model: bytes, options: RunnerOptions) -> bytes:
        """The engine to keep in the plan. TensorRT-RTX needs no GPU for it.

        Raises:
            EngineError: the model is refused; or TensorRT is asked for an engine without a GPU.
        """
        if _MODULE == "tensorrt" and (reason := self.why_not()):
            raise EngineError(
                f"tensorrt cannot build here: {reason}",
                fix="tensorrt_rtx builds without a GPU: pip install tensorrt_rtx",
            )
        with _log_lock:
            return _compile(model, options)

    def open(
        self, model: bytes, options: RunnerOptions, compiled: bytes | None = None
    ) -> TensorRtRunner:
        """Load `compiled`; without it, compile first."""
        if reason := self.why_not():
            fix = ["build for the CPU: headrace build CONFIG --backend onnxruntime"]
            if why_no_gpu() is None:
                fix.insert(0, f"for this GPU: pip install tensorrt, or {gpu_fix()}")
            raise EngineError(f"tensorrt cannot run here: {reason}", fix=fix)
        if compiled is None:
            compiled = self.compile(model, options)
        return TensorRtRunner(compiled)


backend = TensorRtBackend()
