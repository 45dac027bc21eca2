"""Tensors in a GPU's memory, lent and borrowed by DLPack and `__cuda_array_interface__`."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from ctypes import (
    CFUNCTYPE,
    POINTER,
    PYFUNCTYPE,
    Structure,
    c_char_p,
    c_int,
    c_int32,
    c_int64,
    c_uint8,
    c_uint16,
    c_uint64,
    c_void_p,
    cast,
    py_object,
)
from math import prod
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from headrace._core.errors import EngineError
from headrace._core.gpu.cuda import Memory, Stream, entered

DEVICE_KIND = 2  # kDLCUDA

# DLPack 0.x, its C structures. Source: dlpack.h.


class _Device(Structure):
    _fields_ = (("kind", c_int32), ("number", c_int32))


class _Type(Structure):
    _fields_ = (("code", c_uint8), ("bits", c_uint8), ("lanes", c_uint16))


class _Tensor(Structure):
    _fields_ = (
        ("data", c_void_p),
        ("device", _Device),
        ("ndim", c_int32),
        ("dtype", _Type),
        ("shape", POINTER(c_int64)),
        ("strides", POINTER(c_int64)),
        ("byte_offset", c_uint64),
    )


class _Managed(Structure):
    pass


_Deleter = CFUNCTYPE(None, POINTER(_Managed))
_Managed._fields_ = (("tensor", _Tensor), ("context", c_void_p), ("deleter", _Deleter))

_CODES = {"i": 0, "u": 1, "f": 2, "b": 6}
_KINDS = {code: kind for kind, code in _CODES.items()}
_NAME = b"dltensor"
_python = ctypes.pythonapi
_python.PyCapsule_New.restype = py_object
_python.PyCapsule_New.argtypes = (c_void_p, c_char_p, c_void_p)
_python.PyCapsule_GetPointer.restype = c_void_p
_python.PyCapsule_GetPointer.argtypes = (py_object, c_char_p)
_raw_pointer = PYFUNCTYPE(c_void_p, c_void_p, c_char_p)(("PyCapsule_GetPointer", _python))
_is_valid = PYFUNCTYPE(c_int, c_void_p, c_char_p)(("PyCapsule_IsValid", _python))

_lent: dict[int, Any] = {}  # address of a _Managed -> what it needs alive


def _give_back(managed: Any) -> None:
    _lent.pop(ctypes.addressof(managed.contents), None)


def _drop_unused(capsule: int) -> None:
    """A capsule that was not consumed releases its tensor itself."""
    if _is_valid(capsule, _NAME):
        _lent.pop(_raw_pointer(capsule, _NAME), None)


_GIVE_BACK = _Deleter(_give_back)
_DROP_UNUSED = PYFUNCTYPE(None, c_void_p)(_drop_unused)


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
    managed, extents = _Managed(), c_int64 * len(shape)
    sizes = extents(*shape)
    steps = None if strides is None else extents(*strides)
    tensor = managed.tensor
    tensor.data = pointer
    tensor.device = _Device(DEVICE_KIND, gpu)
    tensor.ndim = len(shape)
    tensor.dtype = _Type(_CODES[dtype.kind], dtype.itemsize * 8, 1)
    tensor.shape = cast(sizes, POINTER(c_int64))
    if steps is not None:
        tensor.strides = cast(steps, POINTER(c_int64))
    managed.deleter = _GIVE_BACK
    address = ctypes.addressof(managed)
    _lent[address] = (managed, sizes, steps, owner)
    return _python.PyCapsule_New(address, _NAME, cast(_DROP_UNUSED, c_void_p))


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

    def __dlpack__(self, **_: Any) -> Any:
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
        self._capsule = tensor.__dlpack__(stream=stream.handle)
        address = _python.PyCapsule_GetPointer(self._capsule, _NAME)
        view = cast(address, POINTER(_Managed)).contents.tensor
        self.shape = tuple(view.shape[i] for i in range(view.ndim))
        kind = _KINDS.get(view.dtype.code)
        if kind is None or view.dtype.lanes != 1 or view.dtype.bits % 8:
            raise EngineError(f"a tensor of DLPack type {view.dtype.code}, {view.dtype.bits} bits")
        size = view.dtype.bits // 8
        self.dtype = np.dtype("?" if kind == "b" else f"{kind}{size}")
        if view.strides and prod(self.shape) > 1:
            step = 1
            for axis in reversed(range(view.ndim)):
                if self.shape[axis] > 1 and view.strides[axis] != step:
                    raise EngineError(
                        f"a tensor of shape {self.shape} whose strides are not C-contiguous",
                        fix="make it contiguous first",
                    )
                step *= self.shape[axis]
        self.pointer: int = (view.data or 0) + view.byte_offset
