"""Functions of the headers about engines that run: outputs held for allocators, refitting.

Programs run engines by C++; the classes of `headrace.trt` have another form for some of their
calls.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt

from headrace.plugins.memory import write_at
from headrace.plugins.types import Dims
from headrace.trt.api.interfaces import IOutputAllocator

if TYPE_CHECKING:
    from headrace.trt.api.context import IExecutionContext
    from headrace.trt.api.engine import ICudaEngine
    from headrace.trt.api.refitter import Refitter


class HeldOutput(IOutputAllocator):
    """Keeps an output until the program's own allocator has given memory for it."""

    def __init__(self) -> None:
        super().__init__()
        self.memory: npt.NDArray[np.uint8] = np.empty(0, np.uint8)
        self.size = 0
        self.shape = Dims(())

    def reallocate_output(self, tensor_name: str, memory: int, size: int, alignment: int) -> int:
        """Make room for an output."""
        self.size = size
        self.memory = np.empty(max(size, 1), np.uint8)
        return int(self.memory.ctypes.data)

    def notify_shape(self, tensor_name: str, shape: Dims) -> None:
        """Keep its shape."""
        self.shape = shape


def hold_output(context: IExecutionContext, name: str, held: bool) -> str | None:
    """IExecutionContext::setOutputAllocator: give the name, None if no output is called so."""
    return name if context.set_output_allocator(name, HeldOutput() if held else None) else None


def _held(context: IExecutionContext, name: str) -> HeldOutput:
    return cast(HeldOutput, context.get_output_allocator(name))


def held_size(context: IExecutionContext, name: str) -> int:
    """Bytes of an output of the last run."""
    return int(_held(context, name).size)


def held_shape(context: IExecutionContext, name: str) -> Any:
    """Extents of an output of the last run."""
    return _held(context, name).shape


def copy_held(context: IExecutionContext, name: str, address: int) -> bool:
    """Copy an output of the last run to the program's memory; False without an address."""
    held = _held(context, name)
    if not address:
        return False
    write_at(address, held.memory[: held.size], np.uint8)
    return True


def count_missing_shapes(context: IExecutionContext) -> int:
    """IExecutionContext::inferShapes: how many inputs lack a shape or values."""
    return len(context.infer_shapes())


def engine_profile_shape(engine: ICudaEngine, name: str, profile: int, which: int) -> Any:
    """ICudaEngine::getProfileShape: None if there is no such input or profile."""
    if not 0 <= profile < engine.num_optimization_profiles:
        return None
    shapes = engine.get_tensor_profile_shape(name, profile)
    return shapes[which] if shapes else None


def count_weights(refitter: Refitter, by_layer: bool) -> int:
    """IRefitter::getAll and getAllWeights: how many there are."""
    return len(_names(refitter, by_layer))


def weights_at(refitter: Refitter, by_layer: bool, index: int) -> str:
    """Name of the layer, or of the weights, with a number."""
    return str(_names(refitter, by_layer)[index])


def role_at(refitter: Refitter, index: int) -> object:
    """The role of the weights with a number."""
    return refitter.get_all()[1][index]


def _names(refitter: Refitter, by_layer: bool) -> list[str]:
    return list(refitter.get_all()[0] if by_layer else refitter.get_all_weights())
