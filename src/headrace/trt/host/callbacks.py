"""Error recorders, monitors, listeners, profilers and allocators of C++ libraries.

The native object calls a method by its name; the classes give it the form that `headrace.trt` asks
for, and go back to C++ as the objects that they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from headrace.plugins.types import DataType, Dims, DimsHW
from headrace.trt.api.algorithms import IAlgorithmSelector
from headrace.trt.api.interfaces import (
    IDebugListener,
    IGpuAllocator,
    IProfiler,
    IProgressMonitor,
)
from headrace.trt.types.enums import ErrorCodeTRT
from headrace.trt.types.reporting import IErrorRecorder

if TYPE_CHECKING:
    from headrace.plugins.types import NumberedEnum


class FromCpp:
    """A C++ object behind an interface of `headrace.trt`.

    Attributes:
        native: the object of the native module.
    """

    def __init__(self, native: Any) -> None:
        super().__init__()
        self.native = native


class CppErrorRecorder(FromCpp, IErrorRecorder):
    """An IErrorRecorder."""

    def num_errors(self) -> int:
        """Ask the recorder."""
        return int(self.native.call("num_errors"))

    def get_error_code(self, error_idx: int) -> NumberedEnum:
        """Ask the recorder."""
        code: NumberedEnum = ErrorCodeTRT(self.native.call("get_error_code", error_idx))
        return code

    def get_error_desc(self, error_idx: int) -> str:
        """Ask the recorder."""
        return str(self.native.call("get_error_desc", error_idx))

    def has_overflowed(self) -> bool:
        """Ask the recorder."""
        return bool(self.native.call("has_overflowed"))

    def clear(self) -> None:
        """Empty the recorder."""
        self.native.call("clear")

    def report_error(self, val: NumberedEnum, desc: str) -> bool:
        """Give the recorder an error."""
        return bool(self.native.call("report_error", int(val), desc))


class CppProgressMonitor(FromCpp, IProgressMonitor):
    """An IProgressMonitor."""

    def phase_start(self, phase_name: str, parent_phase: str | None, num_steps: int) -> None:
        """Call the monitor."""
        self.native.call("phase_start", phase_name, parent_phase, num_steps)

    def step_complete(self, phase_name: str, step: int) -> bool:
        """Call the monitor; False stops the build."""
        return bool(self.native.call("step_complete", phase_name, step))

    def phase_finish(self, phase_name: str) -> None:
        """Call the monitor."""
        self.native.call("phase_finish", phase_name)


class CppProfiler(FromCpp, IProfiler):
    """An IProfiler."""

    def report_layer_time(self, layer_name: str, ms: float) -> None:
        """Call the profiler."""
        self.native.call("report_layer_time", layer_name, float(ms))


class CppDebugListener(FromCpp, IDebugListener):
    """An IDebugListener."""

    def process_debug_tensor(
        self, addr: int, location: NumberedEnum, type: DataType, shape: Dims, name: str, stream: int
    ) -> bool:
        """Show the listener a tensor."""
        axes = tuple(int(d) for d in shape)
        return bool(
            self.native.call("process_debug_tensor", addr, int(location), int(type), axes, name)
        )


class CppGpuAllocator(FromCpp, IGpuAllocator):
    """An IGpuAllocator."""

    def allocate(self, size: int, alignment: int, flags: int) -> int:
        """Ask the allocator for memory."""
        return int(self.native.call("allocate", size, alignment, flags) or 0)

    def deallocate(self, memory: int) -> bool:
        """Give memory back to the allocator."""
        return bool(self.native.call("deallocate", memory))


class CppAlgorithmSelector(FromCpp, IAlgorithmSelector):
    """An IAlgorithmSelector."""

    def select_algorithms(self, context: object, choices: Sequence[object]) -> list[int]:
        """Ask about a layer; there is one choice."""
        (choice,) = choices
        return list(self.native.call("select_algorithms", context, choice) or ())

    def report_algorithms(self, contexts: Sequence[object], choices: Sequence[object]) -> None:
        """Give the selector the choice of all layers."""
        self.native.call("report_algorithms", len(contexts), *contexts, *choices)


class CppFormula(FromCpp):
    """An IOutputDimensionsFormula."""

    def compute(self, *extents: Sequence[int], name: str) -> tuple[int, int]:
        """Ask for the height and width of an output.

        Args:
            extents: input, kernel, stride, padding and dilation, each (height, width).
            name: of the layer.
        """
        height, width = self.native.call("compute", *(tuple(DimsHW(e)) for e in extents), name)
        return int(height), int(width)


_CLASSES = {
    "IErrorRecorder": CppErrorRecorder,
    "IProgressMonitor": CppProgressMonitor,
    "IProfiler": CppProfiler,
    "IDebugListener": CppDebugListener,
    "IGpuAllocator": CppGpuAllocator,
    "IAlgorithmSelector": CppAlgorithmSelector,
    "IOutputDimensionsFormula": CppFormula,
}


def callback(native: Any) -> FromCpp:
    """Wrap an object of a library by the name of its interface."""
    made: FromCpp = _CLASSES[native.kind](native)
    return made
