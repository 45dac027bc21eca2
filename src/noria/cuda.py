"""NVIDIA's driver through ctypes, as far as engines and plugins need it: memory, streams, DLPack.

The driver (libcuda) is there wherever a GPU is; nothing has to be installed for it.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from contextlib import suppress
from ctypes import (
    CFUNCTYPE,
    POINTER,
    PYFUNCTYPE,
    Structure,
    byref,
    c_char_p,
    c_int,
    c_int32,
    c_int64,
    c_size_t,
    c_uint,
    c_uint8,
    c_uint16,
    c_uint64,
    c_void_p,
    cast,
    py_object,
)
from functools import cache, lru_cache
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from noria import _native
from noria.errors import EngineError

__all__ = [
    "AnyMemory",
    "CudaTensor",
    "Imported",
    "Memory",
    "Stream",
    "driver",
    "why_lost",
    "why_no_gpu",
]

_LIBRARY = "libcuda.so.1"
_MEMORY_TYPE, _IS_MANAGED, _DEVICE = 2, 8, 2  # CU_POINTER_ATTRIBUTE_…, CU_MEMORYTYPE_DEVICE
DEVICE_KIND = 2  # kDLCUDA


class _Driver:
    """The primary context of the first visible GPU."""

    def __init__(self) -> None:
        try:
            self.library = ctypes.CDLL(_LIBRARY)
        except OSError as error:
            raise EngineError(f"there is no NVIDIA driver ({_LIBRARY})") from error
        count, device, context = c_int(), c_int(), c_void_p()
        self.call("cuInit", c_uint(0))
        self.call("cuDeviceGetCount", byref(count))
        if count.value == 0:
            raise EngineError("there is no NVIDIA GPU")
        self.call("cuDeviceGet", byref(device), c_int(0))
        self.call("cuDevicePrimaryCtxRetain", byref(context), device)
        self._context = context

    def call(self, name: str, *arguments: Any) -> None:
        status = getattr(self.library, name)(*arguments)
        if status:
            raise EngineError(f"{name}: {_words(self.library, status)}")

    def enter(self) -> None:
        """Make the context that of the calling thread."""
        self.call("cuCtxSetCurrent", self._context)


def _words(library: ctypes.CDLL, status: int) -> str:
    text = c_char_p()
    library.cuGetErrorString(status, byref(text))
    return text.value.decode() if text.value else f"error {status}"


@cache
def _open() -> _Driver | str:
    try:
        return _Driver()
    except EngineError as error:
        return error.found


def driver() -> _Driver:
    """The driver, its context current in the calling thread.

    Raises:
        EngineError: there is no GPU.
    """
    found = _open()
    if isinstance(found, str):
        raise EngineError(found)
    found.enter()
    return found


def why_no_gpu() -> str | None:
    """Why there is no GPU to use, or None."""
    found = _open()
    return found if isinstance(found, str) else None


def _in_use() -> ctypes.CDLL | None:
    """The driver, if anything in this process has loaded it."""
    return _loaded_of(_native.opened_libraries())


@lru_cache(1)  # looking for it takes long; nothing unloads it
def _loaded_of(opened: int) -> ctypes.CDLL | None:
    try:
        return ctypes.CDLL(_LIBRARY, mode=os.RTLD_NOLOAD)
    except OSError:
        return None


def why_lost() -> str | None:
    """What broke the CUDA context of the calling thread, such as an illegal access of a kernel;
    None if it is whole, or there is none. Nothing works in a broken context any more.
    """
    library = _in_use()
    if library is None:
        return None
    context = c_void_p()
    if library.cuCtxGetCurrent(byref(context)) or not context.value:
        return None
    status = library.cuCtxSynchronize()
    return _words(library, status) if status else None


class AnyMemory:
    """Memory of addresses that somebody gave: of the host, or of the GPU, where one is in use.

    Args:
        stream: what is queued there comes before reading the GPU's memory.
    """

    def __init__(self, stream: int = 0) -> None:
        self._library = _in_use()
        self._stream = stream

    def on_device(self, address: int) -> bool:
        """Whether only the GPU can reach it."""
        if self._library is None or not address:
            return False
        kind, managed = c_uint(), c_uint()
        self._library.cuPointerGetAttribute(byref(kind), _MEMORY_TYPE, c_uint64(address))
        self._library.cuPointerGetAttribute(byref(managed), _IS_MANAGED, c_uint64(address))
        return kind.value == _DEVICE and not managed.value

    def read(self, address: int, array: npt.NDArray[Any]) -> None:
        """Copy from the GPU into a C-contiguous array.

        Raises:
            EngineError: there is no such memory.
        """
        use = driver()
        use.call("cuStreamSynchronize", c_void_p(self._stream))
        use.call(
            "cuMemcpyDtoH_v2", c_void_p(array.ctypes.data), c_void_p(address),
            c_size_t(array.nbytes),
        )  # fmt: skip

    def write(self, address: int, array: npt.NDArray[Any]) -> None:
        """Copy a C-contiguous array to the GPU.

        Raises:
            EngineError: there is no such memory.
        """
        driver().call(
            "cuMemcpyHtoD_v2", c_void_p(address), c_void_p(array.ctypes.data),
            c_size_t(array.nbytes),
        )  # fmt: skip


class Memory:
    """Device memory, freed with the object."""

    def __init__(self, size_bytes: int) -> None:
        self._driver = driver()
        pointer = c_void_p()
        self._driver.call("cuMemAlloc_v2", byref(pointer), c_size_t(max(1, size_bytes)))
        self.pointer: int = pointer.value or 0
        self.size_bytes = size_bytes

    def __del__(self) -> None:
        if getattr(self, "pointer", 0):
            with suppress(EngineError):  # nothing can be freed after a fault of the GPU
                self._driver.enter()
                self._driver.library.cuMemFree_v2(c_void_p(self.pointer))


class Stream:
    """A queue of work on the GPU."""

    def __init__(self) -> None:
        self._driver = driver()
        handle = c_void_p()
        self._driver.call("cuStreamCreate", byref(handle), c_uint(0))
        self.handle: int = handle.value or 0

    def upload(self, address: int, size_bytes: int, pointer: int) -> None:
        """Copy host memory to the device; it must stay until the stream is waited for."""
        self._driver.call(
            "cuMemcpyHtoDAsync_v2", c_void_p(pointer), c_void_p(address), c_size_t(size_bytes),
            c_void_p(self.handle),
        )  # fmt: skip

    def download(self, pointer: int, address: int, size_bytes: int) -> None:
        """Copy device memory to the host."""
        self._driver.call(
            "cuMemcpyDtoHAsync_v2", c_void_p(address), c_void_p(pointer), c_size_t(size_bytes),
            c_void_p(self.handle),
        )  # fmt: skip

    def wait(self) -> None:
        """Until all that was queued is done."""
        self._driver.call("cuStreamSynchronize", c_void_p(self.handle))

    def __del__(self) -> None:
        if getattr(self, "handle", 0):
            with suppress(EngineError):
                self._driver.enter()
                self._driver.library.cuStreamDestroy_v2(c_void_p(self.handle))


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
    """A capsule that nobody took gives its tensor back itself."""
    if _is_valid(capsule, _NAME):
        _lent.pop(_raw_pointer(capsule, _NAME), None)


_GIVE_BACK = _Deleter(_give_back)
_DROP_UNUSED = PYFUNCTYPE(None, c_void_p)(_drop_unused)


class CudaTensor:
    """A C-contiguous tensor on the GPU; speaks DLPack and `__cuda_array_interface__`.

    What is in it is complete: nothing has to be waited for.
    """

    def __init__(self, shape: Sequence[int], dtype: np.dtype[Any]) -> None:
        self.shape = tuple(shape)
        self.dtype = dtype
        self.nbytes = prod(self.shape) * dtype.itemsize
        self.memory = Memory(self.nbytes)

    @property
    def pointer(self) -> int:
        """Device address."""
        return self.memory.pointer

    def numpy(self) -> npt.NDArray[Any]:
        """A copy on the host."""
        array = np.empty(self.shape, self.dtype)
        stream = Stream()
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
        return (DEVICE_KIND, 0)

    def __dlpack__(self, **_: Any) -> Any:
        managed = _Managed()
        shape = (c_int64 * len(self.shape))(*self.shape)
        tensor = managed.tensor
        tensor.data = self.pointer
        tensor.device = _Device(*self.__dlpack_device__())
        tensor.ndim = len(self.shape)
        tensor.dtype = _Type(_CODES[self.dtype.kind], self.dtype.itemsize * 8, 1)
        tensor.shape = cast(shape, POINTER(c_int64))
        managed.deleter = _GIVE_BACK
        address = ctypes.addressof(managed)
        _lent[address] = (managed, shape, self.memory)
        return _python.PyCapsule_New(address, _NAME, cast(_DROP_UNUSED, c_void_p))

    def __repr__(self) -> str:
        return f"CudaTensor({self.dtype}{list(self.shape)} on cuda:0)"


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
