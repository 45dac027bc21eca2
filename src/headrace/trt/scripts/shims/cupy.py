"""`cupy`: NumPy, with arrays that can be made at an address.

Functions that are not here are NumPy's. Source: tensorrt-api spec 4.5.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace._core.types import ShapeLike
from headrace.plugins.memory import array_at, may_write
from headrace.trt.scripts.shims import cupy_cuda as cuda  # noqa: F401 - cupy.cuda

if TYPE_CHECKING:
    import numpy.typing as npt


__path__: list[str] = []


class ndarray(np.ndarray[Any, Any]):
    """A NumPy array; `memptr` puts it on memory that is there."""

    def __new__(
        cls,
        shape: ShapeLike,
        dtype: npt.DTypeLike = float,
        memptr: Any = None,
        strides: Any = None,
        order: str = "C",
    ) -> ndarray:
        if memptr is None:
            return np.empty(shape, dtype).view(cls)
        axes = tuple(np.atleast_1d(shape).tolist())
        size = int(np.prod(axes)) * np.dtype(dtype).itemsize
        if size > memptr.size:
            raise ValueError(f"an array of {size} bytes in {memptr.size} bytes of memory")
        return array_at(memptr.ptr, axes, dtype, writable=may_write(memptr.ptr)).view(cls)

    def get(self, *arguments: object, **options: object) -> object:
        return np.array(self)

    def set(self, array: Any, stream: Any = None) -> None:
        """Take the values of another array."""
        np.copyto(self, array)


def asnumpy(a: object, *arguments: object, **options: object) -> object:
    return np.asarray(a)


def get_array_module(*arrays: object) -> object:
    return sys.modules[__name__]


class RawKernel:
    """Kernels cannot run here."""

    def __init__(self, *arguments: object, **options: object) -> None:
        raise NotImplementedError("headrace runs on the CPU: there are no CUDA kernels")


RawModule = RawKernel


def __getattr__(name: str) -> Any:
    try:
        return getattr(np, name)
    except AttributeError:
        raise AttributeError(f"module 'cupy' has no attribute {name!r}") from None
