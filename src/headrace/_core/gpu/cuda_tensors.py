"""Tensors in a GPU's memory, lent and borrowed by DLPack and `__cuda_array_interface__`."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from headrace._core import _native
from headrace._core.errors import EngineError
from headrace._core.gpu.cuda import Memory, Stream, entered

DEVICE_KIND = 2  # kDLCUDA

# DLPack's codes of NumPy's kinds. Source: dlpack.h.
_CODES = {"i": 0, "u": 1, "f": 2, "b": 6}
_KINDS = {code: kind for kind, code in _CODES.items()}


def dlpack_capsule(
    pointer: int,
    shape: Sequence[int],
    dtype: np.dtype[Any],
    owner: Any,
    strides: Sequence[int] | None = None,
    *,
    gpu: int,
) -> Any:
    """A DLPack capsule over memory of the GPU.

    Args:
        pointer: device address.
        shape, dtype: of the tensor.
        owner: kept alive as long as the capsule or whoever takes it.
        strides: elements from entry to entry of each axis; None is C-contiguous.
        gpu: number of the GPU.
    """
    return _native.dlpack_capsule(
        pointer, shape, strides, _CODES[dtype.kind], dtype.itemsize * 8, owner, DEVICE_KIND, gpu
    )


class CudaTensor:
    """A C-contiguous tensor on the thread's GPU; speaks DLPack and `__cuda_array_interface__`.

    What is in it is complete: nothing has to be waited for.
    """

    def __init__(self, shape: Sequence[int], dtype: np.dtype[Any]) -> None:
        self.shape = tuple(shape)
        self.dtype = dtype
        self.nbytes = prod(self.shape) * dtype.itemsize
        self.memory = Memory(self.nbytes)

    @classmethod
    def of(cls, array: npt.NDArray[Any]) -> Self:
        """Copy an array of the host to the GPU."""
        tensor, source = cls(array.shape, array.dtype), np.ascontiguousarray(array)
        with entered():
            stream = Stream(apart=True)
            stream.upload(source.ctypes.data, source.nbytes, tensor.pointer)
            stream.wait()
        return tensor

    @property
    def pointer(self) -> int:
        """Device address."""
        return self.memory.pointer

    def numpy(self) -> npt.NDArray[Any]:
        """A copy on the host."""
        array = np.empty(self.shape, self.dtype)
        with entered(self.memory.gpu):
            stream = Stream(apart=True)  # complete: there is nothing to wait for
            stream.download(self.pointer, array.ctypes.data, array.nbytes)
            stream.wait()
        return array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        array = self.numpy()
        return array if dtype is None else array.astype(dtype)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": (self.pointer, False),
            "version": 2,
        }

    def __dlpack_device__(self) -> tuple[int, int]:
        return (DEVICE_KIND, self.memory.gpu)

    def __dlpack__(self, **_: object) -> Any:
        gpu = self.memory.gpu
        return dlpack_capsule(self.pointer, self.shape, self.dtype, self.memory, gpu=gpu)

    def __repr__(self) -> str:
        return f"CudaTensor({self.dtype}{list(self.shape)} on cuda:{self.memory.gpu})"


class Imported:
    """Someone's tensor on this GPU, by DLPack; borrowed as long as this object lives.

    Args:
        stream: the queue it will be read in: what is still being written is waited for there.

    Raises:
        EngineError: not C-contiguous, or of a type that has no name in NumPy.
    """

    def __init__(self, tensor: Any, stream: Stream) -> None:
        self._tensor = view = _native.BorrowedTensor(tensor.__dlpack__(stream=stream.handle))
        self.shape = tuple(view.shape)
        self.pointer: int = view.address
        kind = _KINDS.get(view.code)
        if kind is None or view.lanes != 1 or view.bits % 8:
            raise EngineError(f"a tensor of DLPack type {view.code}, {view.bits} bits")
        self.dtype = np.dtype("?" if kind == "b" else f"{kind}{view.bits // 8}")
        if prod(self.shape) > 1:
            step = 1
            for extent, stride in zip(view.shape[::-1], view.strides[::-1], strict=True):
                if extent > 1 and stride != step:
                    raise EngineError(
                        f"a tensor of shape {self.shape} whose strides are not C-contiguous",
                        fix="make it contiguous first",
                    )
                step *= extent
