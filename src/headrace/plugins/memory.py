"""Memory by address: `enqueue` gets numbers, as on a GPU.

While a plugin runs, the arrays behind its pointers are known: a view that would reach beyond one of
them, or write into an input, is refused instead of made.
Source: tensorrt-plugins spec 14.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from headrace._core._native import address_of as raw_address
from headrace._core._native import count_elements, lent_blocks, lent_view
from headrace._core.gpu.cuda import AnyMemory
from headrace._core.types import Array, DType
from headrace.plugins.types import DataType

if TYPE_CHECKING:
    from typing import Any


class LentMemoryError(ValueError):
    """A plugin views memory that is not its own, or may only be read.

    Attributes:
        clause: the part of the contract that it breaks.
    """

    def __init__(self, problem: str, clause: str) -> None:
        super().__init__(problem)
        self.clause = clause


def address_of(array: Array) -> int:
    """The address of the first element of `array`, as plugins are given it.

    Raises:
        ValueError: the array is not dense and row-major: one address does not describe it.
    """
    if not array.flags.c_contiguous:
        raise ValueError("the array is not C-contiguous")
    return int(array.ctypes.data)


def array_at(
    address: int, shape: Sequence[int], dtype: npt.DTypeLike | DataType, *, writable: bool = False
) -> Array:
    """View memory as an array, without a copy.

    Args:
        address: of the first element, as `enqueue` gets it.
        shape: of the array, row-major and dense; `PluginTensorDesc.dims` fits.
        dtype: NumPy type, or a `DataType`.
        writable: for outputs and workspace. Inputs are not to be written to.

    Raises:
        ValueError: a null address; a negative axis; the memory lent to the running plugin is
            smaller than that, or must not be written to.
        TypeError: the type has no NumPy twin.
    """
    kind = _numpy(dtype)
    axes = tuple(map(int, shape))
    if axes and min(axes) < 0:
        raise ValueError(f"shape {axes} has a negative axis")
    count = prod(axes)
    if count == 0:
        return np.empty(axes, kind)
    if not address:
        raise ValueError("the address is null: the tensor was left out")
    size = count * kind.itemsize
    view = lent_view(int(address), size, writable)
    if view is None:
        raise _not_lent(int(address), size, axes, kind)
    return np.ndarray(axes, kind, view)


def _numpy(dtype: npt.DTypeLike | DataType) -> DType:
    return dtype.numpy if isinstance(dtype, DataType) else np.dtype(dtype)


def read_at(
    address: int, shape: Sequence[int], dtype: npt.DTypeLike | DataType, *, stream: int = 0
) -> Array:
    """Read the values at an address: a view of host memory, a copy of the GPU's.

    BF16 gives float32. Work queued in `stream` comes before reading the GPU's memory.

    Raises:
        ValueError, TypeError: as `array_at`.
        EngineError: there is no such memory on the GPU.
    """
    if dtype == DataType.BF16:
        bits = read_at(address, shape, np.uint16, stream=stream)
        return (bits.astype(np.uint32) << 16).view(np.float32)
    memory = AnyMemory(stream)
    if not memory.on_device(address):
        return array_at(address, shape, dtype)
    array = np.empty(tuple(map(int, shape)), _numpy(dtype))
    memory.read(address, array)
    return array


def write_at(
    address: int, array: Array, dtype: npt.DTypeLike | DataType, *, stream: int = 0
) -> None:
    """Write values, converted to a type, at an address.

    BF16 takes the nearest numbers. Work queued in `stream` comes before that on a GPU.

    Raises:
        ValueError, TypeError: as `array_at`.
        EngineError: there is no such memory on the GPU.
    """
    if dtype == DataType.BF16:
        array, dtype = bfloat16_bits(array), np.uint16
    memory = AnyMemory(stream)
    if memory.on_device(address):
        memory.write(address, np.ascontiguousarray(array.astype(_numpy(dtype), copy=False)))
        return
    np.copyto(array_at(address, array.shape, dtype, writable=True), array, casting="unsafe")


def bfloat16_bits(values: Array) -> npt.NDArray[np.uint16]:
    """Bits of the nearest bfloat16 numbers: the upper half of float32, ties to even."""
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32).astype(np.uint64)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


_FENCE_BYTES = 4096
_FENCE = 0xA5


def fenced(shape: Sequence[int], dtype: DType) -> Array:
    """Make an array, row-major and not initialised, between known bytes."""
    stop = _FENCE_BYTES + prod(shape) * dtype.itemsize
    block: Array = np.empty(stop + _FENCE_BYTES, np.uint8)
    block[:_FENCE_BYTES] = block[stop:] = _FENCE
    return block[_FENCE_BYTES:stop].view(dtype).reshape(tuple(shape))


def written_outside(array: Array) -> str:
    """Tell where bytes around an array of `fenced` have changed; empty if nowhere, or of others.

    It takes no memory: that of a damaged heap ends the process.
    """
    block: Any = array
    while isinstance(block, np.ndarray) and block.base is not None:
        block = block.base
    size = array.nbytes
    if not isinstance(block, np.ndarray) or block.dtype != np.uint8 or block.ndim != 1:
        return ""
    if block.nbytes != size + 2 * _FENCE_BYTES:
        return ""
    start = raw_address(block)
    if not _is_fence(start + _FENCE_BYTES + size):
        return "behind the end of"
    return "" if _is_fence(start) else "before the start of"


def _is_fence(address: int) -> bool:
    return count_elements(address, _FENCE_BYTES, 1, _FENCE) == _FENCE_BYTES


def lent_bytes(address: int) -> int:
    """Bytes from an address to the end of the memory that the running plugin is lent there.

    0 for null.

    Raises:
        ValueError: no memory is lent there.
    """
    blocks = lent_blocks()
    for start, stop, _, _ in blocks:
        if start <= address < stop:
            return stop - address
    if not address or any(address == stop for _, stop, _, _ in blocks):
        return 0
    raise ValueError("no memory is lent to the plugin at that address")


def may_write(address: int) -> bool:
    """False for memory that the running plugin must only read."""
    for start, stop, allowed, _ in lent_blocks():
        if start <= address < stop:
            return allowed
    return True


def _not_lent(address: int, size: int, shape: Sequence[int], dtype: Any) -> LentMemoryError:
    _, stop, may_write, what = next(b for b in lent_blocks() if b[0] <= address < b[1])
    if address + size <= stop:
        return LentMemoryError(f"{what} must not be written to", "inputs-read-only")
    kind = "inputs" if not may_write else "workspace" if "workspace" in what else "outputs"
    return LentMemoryError(
        f"{dtype.name} {shape} needs {size} bytes; {what} has {stop - address} there",
        f"{kind}-bounds",
    )
