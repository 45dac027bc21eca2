"""`pycuda.gpuarray`: arrays in device memory, which is the host's; NumPy computes with them.

Source: the documentation of PyCUDA 2024.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from headrace._core.types import Array, ShapeLike
from headrace.plugins.memory import array_at
from headrace.trt.scripts.shims.pycuda_driver import DeviceAllocation, LogicError

if TYPE_CHECKING:
    import numpy.typing as npt


class GPUArray(NDArrayOperatorsMixin):
    """An array at an address; `get` copies it out.

    Args:
        shape, dtype: of the array.
        allocator: makes the memory from a number of bytes.
        order: only C.
        gpudata: memory that is there, instead of new memory.

    Raises:
        LogicError: another order.
    """

    def __init__(
        self,
        shape: ShapeLike,
        dtype: npt.DTypeLike,
        allocator: Any = DeviceAllocation,
        order: str = "C",
        gpudata: Any = None,
    ) -> None:
        if order != "C":
            raise LogicError(f"order={order!r}: arrays are row-major here")
        self.shape = tuple(np.atleast_1d(shape).tolist()) if shape != () else ()
        self.dtype = np.dtype(dtype)
        self.size = int(np.prod(self.shape))
        self.nbytes = self.size * self.dtype.itemsize
        self.gpudata = (allocator or DeviceAllocation)(self.nbytes) if gpudata is None else gpudata

    @property
    def ptr(self) -> int:
        """Address of the first element."""
        return int(self.gpudata)

    ndim = property(lambda self: len(self.shape), doc="Number of axes.")

    _view: Array | None = None

    @property
    def _array(self) -> Array:
        if self._view is not None:
            return self._view
        return array_at(self.ptr, self.shape, self.dtype, writable=True)

    def get(self, ary: Any = None, **options: Any) -> Array:
        """Copy the values into a new array, or into `ary`."""
        if ary is None:
            return self._array.copy()
        np.copyto(ary, self._array)
        return ary  # type: ignore[no-any-return]

    def get_async(self, stream: object = None, ary: object = None) -> Array:
        """As `get`."""
        return self.get(ary)

    def set(self, ary: object, *more: object) -> None:
        """Take the values of an array of the same shape."""
        np.copyto(self._array, np.asarray(ary, self.dtype).reshape(self.shape))

    def set_async(self, ary: object, stream: object = None) -> None:
        """As `set`."""
        self.set(ary)

    def fill(self, value: object, stream: object = None) -> GPUArray:
        """Set every element."""
        self._array.fill(value)
        return self

    def copy(self) -> GPUArray:
        """Make another array with the same values."""
        return to_gpu(self._array)

    def reshape(self, *shape: Any, order: str = "C") -> GPUArray:
        """View the same memory with another shape."""
        if not self._array.flags.c_contiguous:
            raise LogicError("a part with gaps cannot be viewed with another shape: copy it first")
        view = self._array.reshape(*shape)
        return GPUArray(view.shape, self.dtype, gpudata=self.gpudata)

    def ravel(self) -> GPUArray:
        """View the same memory as one axis."""
        return self.reshape(-1)

    def astype(self, dtype: npt.DTypeLike, stream: object = None) -> GPUArray:
        """Make another array, of another type."""
        return to_gpu(self._array.astype(dtype))

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> Array:
        return np.array(self._array, dtype)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        out = options.get("out", ())
        if out:
            options["out"] = tuple(o._array if isinstance(o, GPUArray) else o for o in out)
        plain = [i._array if isinstance(i, GPUArray) else i for i in inputs]
        values = getattr(ufunc, method)(*plain, **options)
        return out[0] if out else to_gpu(values)

    def __getitem__(self, index: object) -> GPUArray:
        """View a part of the memory; by a list or a mask, copy it."""
        index = index if isinstance(index, tuple) else (index,)
        rest = () if any(i is ... for i in index) else (...,)
        part = self._array[(*index, *rest)]
        if not np.may_share_memory(part, self._array):
            return to_gpu(part)
        view = GPUArray(part.shape, part.dtype, gpudata=_Part(self.gpudata, part.ctypes.data))
        view._view = part
        return view

    def __setitem__(self, index: Any, value: Any) -> None:
        self._array[index] = value.get() if isinstance(value, GPUArray) else value

    def __len__(self) -> int:
        return int(self.shape[0])

    def __repr__(self) -> str:
        return repr(self._array)


class _Part:
    """An address within memory, which it keeps."""

    def __init__(self, whole: object, address: int) -> None:
        self._whole = whole
        self._address = address

    def __int__(self) -> int:
        return self._address

    __index__ = __int__


def to_gpu(ary: object, allocator: object = None) -> GPUArray:
    """Make an array with the values of another."""
    values = np.asarray(ary)
    array = GPUArray(values.shape, values.dtype, allocator)
    array.set(values)
    return array


def to_gpu_async(ary: object, allocator: object = None, stream: object = None) -> GPUArray:
    """As `to_gpu`."""
    return to_gpu(ary, allocator)


def empty(
    shape: ShapeLike, dtype: npt.DTypeLike, allocator: Any = None, order: str = "C"
) -> GPUArray:
    """Make an array without values."""
    return GPUArray(shape, dtype, allocator, order)


def zeros(
    shape: ShapeLike, dtype: npt.DTypeLike = np.float64, allocator: Any = None, order: str = "C"
) -> GPUArray:
    """Make an array of zeros."""
    return GPUArray(shape, dtype, allocator, order).fill(0)


def empty_like(other: GPUArray) -> GPUArray:
    """Make an array without values, of the shape and type of another."""
    return GPUArray(other.shape, other.dtype)


def zeros_like(other: GPUArray) -> GPUArray:
    """Make an array of zeros, of the shape and type of another."""
    return empty_like(other).fill(0)


def arange(*numbers: Any, dtype: npt.DTypeLike | None = None, **options: Any) -> GPUArray:
    """Make an array of numbers in steps, as `numpy.arange`."""
    return to_gpu(np.arange(*numbers, dtype=dtype))


def _computing(function: Any) -> Any:
    """Make a function of arrays here from one of NumPy."""

    def compute(*arrays: Any, dtype: npt.DTypeLike | None = None, **options: Any) -> GPUArray:
        plain = [a._array if isinstance(a, GPUArray) else a for a in arrays]
        values = np.asarray(function(*plain))
        return to_gpu(values if dtype is None else values.astype(dtype))

    compute.__doc__ = f"As `numpy.{function.__name__}`, of arrays here."
    return compute


sum, min, max, dot, maximum, minimum = map(
    _computing, (np.sum, np.min, np.max, np.dot, np.maximum, np.minimum)
)
