"""`Runtime`: engines from bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace._core.errors import EngineError, HeadraceError
from headrace.engine.plan import Plan
from headrace.plugins.registry import PluginRegistry, get_plugin_registry
from headrace.trt.api.engine import ICudaEngine, open_engine
from headrace.trt.release import versioned
from headrace.trt.types.reporting import Severity, note_without_effect, report
from headrace.trt.types.strict import Closable, Stored, always, kept

if TYPE_CHECKING:
    from headrace.trt.types.reporting import IErrorRecorder, ILogger


_TENSORRT = (b"ftrt", b"ptrt", b"vtrt")


@versioned(
    {
        ">=8.6": (
            "get_plugin_registry, load_runtime, engine_host_code_allowed, temporary_directory, "
            "tempfile_control_flags"
        ),
    }
)
class Runtime(Closable):
    """Source: tensorrt-api spec 4.1."""

    def __init__(self, logger: ILogger | None) -> None:
        self._logger = logger
        self._recorder: IErrorRecorder | None = None
        self._plain: dict[str, object] = {}
        self._registry: PluginRegistry | None = None

    @property
    def gpu_allocator(self) -> object:
        """An `IGpuAllocator`: kept and not called, since memory is the host's."""
        return self._plain.get("gpu_allocator")

    @gpu_allocator.setter
    def gpu_allocator(self, value: object) -> None:
        self._plain["gpu_allocator"] = value
        note_without_effect(self._logger, "gpu_allocator" if value is not None else "")

    max_threads = Stored(1, "Recorded.")
    DLA_core = Stored(-1, "There is none.")
    engine_host_code_allowed = Stored(False, "Plans hold no code.")
    temporary_directory = Stored("", "Not needed.")
    tempfile_control_flags = Stored(3, "Recorded.")

    logger = kept("_logger", "Where errors are reported.", read_only=True)
    error_recorder = kept("_recorder", "An `IErrorRecorder`, or None.")

    num_DLA_cores = always(0, "None here.")

    def deserialize_cuda_engine(self, serialized_engine: object) -> ICudaEngine | None:
        """An engine from its bytes, or from a reader with `read(size) -> bytes`.

        Returns:
            None if there can be none: damaged, of another program, a plugin is not registered. The
            logger has the reason.
        """
        try:
            data = _bytes_of(serialized_engine)
            _refuse_tensorrt(data)
            return open_engine(Plan.from_bytes(data), self._logger, self._recorder)
        except HeadraceError as error:
            report(self._logger, Severity.ERROR, str(error), recorder=self._recorder)
            return None

    def load_runtime(self, path: str) -> Runtime | None:
        """Lean runtimes are not loaded: this one reads every plan of headrace."""
        return self

    def get_plugin_registry(self) -> PluginRegistry:
        """A registry of this runtime, in front of the global one."""
        if self._registry is None:
            self._registry = PluginRegistry(get_plugin_registry())
        return self._registry

    def set_plugin_registry_parent(self, parent: PluginRegistry) -> None:
        """Search another registry behind that of this runtime."""
        self.get_plugin_registry().parent = parent


def _bytes_of(source: Any) -> bytes:
    read = getattr(source, "read", None)
    if read is None:
        try:
            return bytes(memoryview(source))
        except TypeError:
            raise TypeError(
                f"an engine is bytes or a stream reader, not a {type(source).__name__}"
            ) from None
    parts = []
    while part := bytes(read(2**20)):
        parts.append(part)
    return b"".join(parts)


def _refuse_tensorrt(data: bytes) -> None:
    """Engines of TensorRT itself: say which release wrote them.

    Source: tensorrt-api spec 5.
    """
    if data[:4] not in _TENSORRT:
        return
    version = ".".join(str(b) for b in data[24:28]) if data[:4] != b"ptrt" else "8.5 or older"
    raise EngineError(
        f"this is an engine of TensorRT {version}: code for one GPU model and one release",
        expected="an engine that headrace built",
        fix="build it again from its ONNX model: headrace trtexec --onnx=… --saveEngine=…, or the "
        "script that made it under headrace exec",
    )
