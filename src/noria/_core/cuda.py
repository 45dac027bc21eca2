"""NVIDIA's driver through ctypes, as far as engines and plugins need it: memory, streams, DLPack.

The driver (libcuda) is there wherever a GPU is; nothing has to be installed for it.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
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
from functools import cache
from math import prod
from typing import Any, Self
from weakref import WeakSet

import numpy as np
import numpy.typing as npt

from noria import _native
from noria._core.errors import DeviceMemoryError, EngineError

_LIBRARY = "libcuda.so.1"
NO_DRIVER = "there is no NVIDIA driver"  # begins the reason where none is installed
_MEMORY_TYPE, _IS_MANAGED, _DEVICE = 2, 8, 2  # CU_POINTER_ATTRIBUTE_…, CU_MEMORYTYPE_DEVICE
_NOT_OURS = (1, 3)  # what no allocation of CUDA's has; CUDA is not in use
_FATAL = frozenset({214, 220, 226, 700, 702, 709, 710, *range(714, 720), 721, 999})
"""Errors after which a process cannot use CUDA any more. Source: CUresult of the driver API."""
_NO_MEMORY = 2  # CUDA_ERROR_OUT_OF_MEMORY
_LEAST_STREAM = 4096
_NON_BLOCKING = 1  # CU_STREAM_NON_BLOCKING
_BLOCKING_SYNC = 4  # CU_CTX_SCHED_BLOCKING_SYNC: waiting threads sleep
FAULT_HINT = "compute-sanitizer, of NVIDIA's toolkit, names the kernel and the line"
DEVICE_KIND = 2  # kDLCUDA


class _Driver:
    """The primary context of the first visible GPU."""

    def __init__(self) -> None:
        try:
            self._loaded = _native.SharedObject(_LIBRARY)
        except RuntimeError as error:
            if f"{_LIBRARY}: cannot open shared object file: No such file" in str(error):
                raise EngineError(f"{NO_DRIVER} ({_LIBRARY})") from error
            raise EngineError(f"the NVIDIA driver cannot be loaded: {error}") from error
        self.library = _behind(self._loaded.handle)
        count, device, context = c_int(), c_int(), c_void_p()
        self.call("cuInit", c_uint(0))
        self.call("cuDeviceGetCount", byref(count))
        if count.value == 0:
            raise EngineError("there is no NVIDIA GPU")
        self.call("cuDeviceGet", byref(device), c_int(0))
        # FFmpeg's decoder refuses a context with other flags, and would set these itself
        with suppress(EngineError):
            self.call("cuDevicePrimaryCtxSetFlags_v2", device, c_uint(_BLOCKING_SYNC))
        self.call("cuDevicePrimaryCtxRetain", byref(context), device)
        self._context = context

    def call(self, name: str, *arguments: Any) -> None:
        """Call a function of the driver."""
        status = _status(self.library, name, *arguments)
        if status:
            kind = DeviceMemoryError if status == _NO_MEMORY else EngineError
            raise kind(f"{name}: {_words(self.library, status)}")

    def enter(self) -> None:
        """Make the context that of the calling thread."""
        self.call("cuCtxSetCurrent", self._context)


def _status(library: ctypes.CDLL, name: str, *arguments: Any) -> int:
    try:
        function = getattr(library, name)
    except AttributeError as error:
        raise EngineError(f"the NVIDIA driver has no {name}") from error
    return int(function(*arguments))


def _words(library: ctypes.CDLL, status: int) -> str:
    text = c_char_p()
    with suppress(EngineError):
        _status(library, "cuGetErrorString", status, byref(text))
    return text.value.decode(errors="replace") if text.value else f"error {status}"


@cache
def _open() -> _Driver | str:
    try:
        return _Driver()
    except EngineError as error:
        return error.found


def driver() -> _Driver:
    """The driver, its context current in the calling thread."""
    found = _open()
    if isinstance(found, str):
        raise EngineError(found)
    found.enter()
    return found


@contextmanager
def entered() -> Iterator[_Driver]:
    """As `driver`; afterwards the thread has the context again that it had."""
    found = _open()
    if isinstance(found, str):
        raise EngineError(found)
    before = c_void_p()
    _status(found.library, "cuCtxGetCurrent", byref(before))
    found.enter()
    try:
        yield found
    finally:
        if before.value:
            _status(found.library, "cuCtxSetCurrent", before)


def why_no_gpu() -> str | None:
    """Why there is no GPU to use, or None."""
    found = _open()
    return found if isinstance(found, str) else None


def driver_cuda() -> int:
    """The newest CUDA that the driver knows, as CUDA counts it (12080 is 12.8); 0: unknown."""
    found, number = _open(), c_int()
    if not isinstance(found, str):
        with suppress(EngineError):  # a driver without this function
            _status(found.library, "cuDriverGetVersion", byref(number))
    return number.value


def driver_is_open() -> bool:
    """True once this process has looked for a GPU: it sees the same ones from then on."""
    return _open.cache_info().currsize > 0


_decoders: WeakSet[Any] = WeakSet()
_decoders_lock = threading.Lock()


def decoder_begins(owner: Any) -> None:
    """Count `owner` as a decoder of the GPU until `decoder_ends`, or until it is deleted."""
    with _decoders_lock:
        _decoders.add(owner)


def decoder_ends(owner: Any) -> None:
    """Take `owner` from the decoders of the GPU, if it is one."""
    with _decoders_lock:
        _decoders.discard(owner)


def gpu_decodes() -> bool:
    """True while anything in this process decodes on the GPU."""
    with _decoders_lock:
        return bool(_decoders)


def _in_use() -> ctypes.CDLL | None:
    """The driver, if anything in this process has loaded it."""
    handle = _native.loaded_library("libcuda.so")
    return _behind(handle) if handle else None


@cache
def _behind(handle: int) -> ctypes.CDLL:
    return ctypes.CDLL(_LIBRARY, handle=handle)


def why_lost() -> str | None:
    """Return the error that broke CUDA in this process, such as an illegal access of a kernel.

    None if CUDA is whole, or not in use. Asks the calling thread's context, and the one that
    CUDA's runtime uses in all threads.
    """
    library = _in_use()
    if library is None:
        return None
    try:
        return _broken(library) or _primary_broken(library)
    except EngineError:  # a driver without these functions
        return None


def _broken(library: ctypes.CDLL) -> str | None:
    context = c_void_p()
    if _status(library, "cuCtxGetCurrent", byref(context)) or not context.value:
        return None
    status = _status(library, "cuCtxSynchronize")
    return _words(library, status) if status in _FATAL else None


def _primary_broken(library: ctypes.CDLL) -> str | None:
    flags, active, context, before = c_uint(), c_int(), c_void_p(), c_void_p()
    if _status(library, "cuDevicePrimaryCtxGetState", c_int(0), byref(flags), byref(active)):
        return None
    if not active.value:
        return None
    if _status(library, "cuDevicePrimaryCtxRetain", byref(context), c_int(0)):
        return None
    _status(library, "cuCtxGetCurrent", byref(before))
    try:
        _status(library, "cuCtxSetCurrent", context)
        return _broken(library)
    finally:
        _status(library, "cuCtxSetCurrent", before)
        _status(library, "cuDevicePrimaryCtxRelease_v2", c_int(0))


class AnyMemory:
    """Memory at given addresses: of the host, or of the GPU, where one is in use.

    Args:
        stream: its queued work ends before the GPU's memory is used. Small numbers are no addresses
            of streams: then all queued work ends before.
    """

    def __init__(self, stream: int = 0) -> None:
        self._library = _in_use()
        self._stream = stream

    def on_device(self, address: int) -> bool:
        """Whether only the GPU can reach it."""
        library, name = self._library, "cuPointerGetAttribute"
        if library is None or not address or not hasattr(library, name):
            return False
        kind, managed = c_uint(), c_uint()
        for found, attribute in ((kind, _MEMORY_TYPE), (managed, _IS_MANAGED)):
            status = _status(library, name, byref(found), attribute, c_uint64(address))
            if status in _NOT_OURS:
                return False
            if status:
                raise EngineError(f"{name}: {_words(library, status)}")
        return kind.value == _DEVICE and not managed.value

    def read(self, address: int, array: npt.NDArray[Any]) -> None:
        """Copy from the GPU into a C-contiguous array."""
        with self._ready() as use:
            use.call(
                "cuMemcpyDtoH_v2", c_void_p(array.ctypes.data), c_void_p(address),
                c_size_t(array.nbytes),
            )  # fmt: skip

    def write(self, address: int, array: npt.NDArray[Any]) -> None:
        """Copy a C-contiguous array to the GPU."""
        with self._ready() as use:
            use.call(
                "cuMemcpyHtoD_v2", c_void_p(address), c_void_p(array.ctypes.data),
                c_size_t(array.nbytes),
            )  # fmt: skip

    @contextmanager
    def _ready(self) -> Iterator[_Driver]:
        """Wait for the work that is queued."""
        with entered() as use:
            if self._stream >= _LEAST_STREAM:
                use.call("cuStreamSynchronize", c_void_p(self._stream))
            else:
                use.call("cuCtxSynchronize")
            yield use


class Memory:
    """Device memory, freed with the object."""

    def __init__(self, size_bytes: int) -> None:
        pointer = c_void_p()
        with entered() as use:
            use.call("cuMemAlloc_v2", byref(pointer), c_size_t(max(1, size_bytes)))
        self.pointer: int = pointer.value or 0
        self.size_bytes = size_bytes

    def __del__(self) -> None:
        if getattr(self, "pointer", 0):
            with suppress(EngineError), entered() as use:  # after a fault nothing can be freed
                use.call("cuMemFree_v2", c_void_p(self.pointer))


class Stream:
    """A queue of work on the GPU.

    Args:
        apart: True for one that does not wait for the default stream, nor that for it.
    """

    def __init__(self, *, apart: bool = False) -> None:
        handle = c_void_p()
        with entered() as use:
            self._driver = use
            use.call("cuStreamCreate", byref(handle), c_uint(_NON_BLOCKING if apart else 0))
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

    def copy(self, pointer: int, size_bytes: int, to: int) -> None:
        """Copy device memory to other device memory."""
        self._driver.call(
            "cuMemcpyDtoDAsync_v2", c_void_p(to), c_void_p(pointer), c_size_t(size_bytes),
            c_void_p(self.handle),
        )  # fmt: skip

    def wait(self) -> None:
        """Until all that was queued is done."""
        self._driver.call("cuStreamSynchronize", c_void_p(self.handle))

    def __del__(self) -> None:
        if getattr(self, "handle", 0):
            with suppress(EngineError), entered() as use:
                use.call("cuStreamDestroy_v2", c_void_p(self.handle))


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
) -> Any:
    """A DLPack capsule over memory of the GPU.

    Args:
        pointer: device address.
        shape, dtype: of the tensor.
        owner: kept alive as long as the capsule or whoever takes it.
        strides: elements from entry to entry of each axis; None is C-contiguous.
    """
    managed, extents = _Managed(), c_int64 * len(shape)
    sizes = extents(*shape)
    steps = None if strides is None else extents(*strides)
    tensor = managed.tensor
    tensor.data = pointer
    tensor.device = _Device(DEVICE_KIND, 0)
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
    """A C-contiguous tensor on the GPU; speaks DLPack and `__cuda_array_interface__`.

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
        with entered():
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
        return (DEVICE_KIND, 0)

    def __dlpack__(self, **_: Any) -> Any:
        return dlpack_capsule(self.pointer, self.shape, self.dtype, self.memory)

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
