"""NVIDIA's driver through ctypes, as far as engines and plugins need it: memory and streams.

The driver (libcuda) is there wherever a GPU is; nothing has to be installed for it.
"""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from ctypes import (
    byref,
    c_char_p,
    c_int,
    c_size_t,
    c_uint,
    c_uint64,
    c_void_p,
)
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from weakref import WeakSet

import numpy.typing as npt

from headrace._core import _native
from headrace._core.errors import DeviceMemoryError, EngineError

_LIBRARY = "libcuda.so.1"
NO_DRIVER = "no-gpu-driver"  # code of the error where none is installed
_MEMORY_TYPE, _IS_MANAGED, _DEVICE = 2, 8, 2  # CU_POINTER_ATTRIBUTE_…, CU_MEMORYTYPE_DEVICE
_NOT_OURS = (1, 3)  # what no allocation of CUDA's has; CUDA is not in use
_FATAL = frozenset({214, 220, 226, 700, 702, 709, 710, *range(714, 720), 721, 999})
"""Errors after which a process cannot use CUDA any more. Source: CUresult of the driver API."""
_MAJOR, _MINOR = 75, 76  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_…
_NO_MEMORY = 2  # CUDA_ERROR_OUT_OF_MEMORY
_LEAST_STREAM = 4096
_NON_BLOCKING = 1  # CU_STREAM_NON_BLOCKING
_BLOCKING_SYNC = 4  # CU_CTX_SCHED_BLOCKING_SYNC: waiting threads sleep
FAULT_HINT = "compute-sanitizer, of NVIDIA's toolkit, names the kernel and the line"


class _Driver:
    """The driver, with the primary context of each GPU that is used.

    Attributes:
        count: how many GPUs this process sees.
    """

    def __init__(self) -> None:
        try:
            self._loaded = _native.SharedObject(_LIBRARY)
        except RuntimeError as error:
            if f"{_LIBRARY}: cannot open shared object file: No such file" in str(error):
                text = f"there is no NVIDIA driver ({_LIBRARY})"
                raise EngineError(text, code=NO_DRIVER) from error
            raise EngineError(f"the NVIDIA driver cannot be loaded: {error}") from error
        self.library = _behind(self._loaded.handle)
        self._contexts: dict[int, c_void_p] = {}
        self._lock = threading.Lock()
        count = c_int()
        self.call("cuInit", c_uint(0))
        self.call("cuDeviceGetCount", byref(count))
        if count.value == 0:
            raise EngineError("there is no NVIDIA GPU")
        self.count = count.value

    def call(self, name: str, *arguments: Any) -> None:
        """Call a function of the driver."""
        status = _status(self.library, name, *arguments)
        if status:
            kind = DeviceMemoryError if status == _NO_MEMORY else EngineError
            text = f"{name}: {_words(self.library, status)}"
            raise kind(text, data={"cuda": status})

    def enter(self, gpu: int) -> None:
        """Make the context of a GPU that of the calling thread."""
        self.call("cuCtxSetCurrent", self.context(gpu))

    def context(self, gpu: int) -> c_void_p:
        """The primary context of a GPU."""
        context = self._contexts.get(gpu)
        if context is None:
            with self._lock:
                context = self._contexts.get(gpu) or self._retained(gpu)
                self._contexts[gpu] = context
        return context

    def _retained(self, gpu: int) -> c_void_p:
        device, context = c_int(), c_void_p()
        self.call("cuDeviceGet", byref(device), c_int(gpu))
        # FFmpeg's decoder refuses a context with other flags, and would set these itself
        with suppress(EngineError):
            self.call("cuDevicePrimaryCtxSetFlags_v2", device, c_uint(_BLOCKING_SYNC))
        self.call("cuDevicePrimaryCtxRetain", byref(context), device)
        return context


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
def _open() -> _Driver | EngineError:
    try:
        return _Driver()
    except EngineError as error:
        error.__cause__ = error.__context__ = None
        return error.with_traceback(None)  # its frames would keep whoever asked first


def _opened() -> _Driver:
    handle = _open()
    if isinstance(handle, EngineError):
        raise handle.with_traceback(None)
    return handle


class _Here(threading.local):
    gpu = 0


_here = _Here()


def current_gpu() -> int:
    """The GPU of this thread: that of the innermost `entered`, else the first one."""
    return _here.gpu


def driver() -> _Driver:
    """The driver, the context of this thread's GPU current."""
    handle = _opened()
    handle.enter(_here.gpu)
    return handle


@contextmanager
def entered(gpu: int | None = None) -> Iterator[_Driver]:
    """As `driver`; afterwards the thread has the context and the GPU again that it had.

    Args:
        gpu: number of the thread's GPU meanwhile; None leaves it.

    Raises:
        EngineError: there is no driver, or no such GPU.
    """
    handle = _opened()
    before, before_gpu = c_void_p(), _here.gpu
    _status(handle.library, "cuCtxGetCurrent", byref(before))
    index = before_gpu if gpu is None else gpu
    handle.enter(index)
    _here.gpu = index
    try:
        yield handle
    finally:
        _here.gpu = before_gpu
        _status(handle.library, "cuCtxSetCurrent", before)  # none, where it had none


@contextmanager
def meant(gpu: int) -> Iterator[None]:
    """Make a GPU that of this thread, as `entered` does, without its context: for questions."""
    before, _here.gpu = _here.gpu, gpu
    try:
        yield
    finally:
        _here.gpu = before


def why_no_gpu() -> str | None:
    """Why there is no GPU to use, or None."""
    handle = _open()
    return f"{handle:brief}" if isinstance(handle, EngineError) else None


def no_gpu_driver() -> bool:
    """Whether no driver is installed, so that no GPU is expected here."""
    handle = _open()
    return isinstance(handle, EngineError) and handle.code == NO_DRIVER


def gpu_count() -> int:
    """How many GPUs this process sees; 0 without a driver."""
    handle = _open()
    return 0 if isinstance(handle, EngineError) else handle.count


def device_attribute(number: int, gpu: int | None = None) -> int:
    """The attribute `number` (CU_DEVICE_ATTRIBUTE_…) of a GPU, of the thread's without `gpu`.

    Raises:
        EngineError: there is no driver, or it does not know the attribute.
    """
    handle, value = _opened(), c_int()
    which = c_int(current_gpu() if gpu is None else gpu)
    handle.call("cuDeviceGetAttribute", byref(value), c_int(number), which)
    return value.value


def compute_capability(gpu: int | None = None) -> tuple[int, int]:
    """Major and minor number of a GPU's generation, as (9, 0); of the thread's without `gpu`.

    Raises:
        EngineError: there is no driver.
    """
    return device_attribute(_MAJOR, gpu), device_attribute(_MINOR, gpu)


def driver_cuda() -> int:
    """The newest CUDA that the driver knows, as CUDA counts it (12080 is 12.8); 0: unknown."""
    handle, number = _open(), c_int()
    if not isinstance(handle, EngineError):
        with suppress(EngineError):  # a driver without this function
            _status(handle.library, "cuDriverGetVersion", byref(number))
    return number.value


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

    None if CUDA is whole, or not in use. Asks the calling thread's context, and those that CUDA's
    runtime uses in all threads.
    """
    library = _in_use()
    if library is None:
        return None
    count = c_int()
    try:
        if lost := _broken(library):
            return lost
        _status(library, "cuDeviceGetCount", byref(count))
        return next(filter(None, (_primary_broken(library, n) for n in range(count.value))), None)
    except EngineError:  # a driver without these functions
        return None


def _broken(library: ctypes.CDLL) -> str | None:
    context = c_void_p()
    if _status(library, "cuCtxGetCurrent", byref(context)) or not context.value:
        return None
    status = _status(library, "cuCtxSynchronize")
    return _words(library, status) if status in _FATAL else None


def _primary_broken(library: ctypes.CDLL, gpu: int) -> str | None:
    flags, active, context, before = c_uint(), c_int(), c_void_p(), c_void_p()
    if _status(library, "cuDevicePrimaryCtxGetState", c_int(gpu), byref(flags), byref(active)):
        return None
    if not active.value:
        return None
    if _status(library, "cuDevicePrimaryCtxRetain", byref(context), c_int(gpu)):
        return None
    _status(library, "cuCtxGetCurrent", byref(before))
    try:
        _status(library, "cuCtxSetCurrent", context)
        return _broken(library)
    finally:
        _status(library, "cuCtxSetCurrent", before)
        _status(library, "cuDevicePrimaryCtxRelease_v2", c_int(gpu))


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
        for target, attribute in ((kind, _MEMORY_TYPE), (managed, _IS_MANAGED)):
            status = _status(library, name, byref(target), attribute, c_uint64(address))
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


def in_nvidia_packages(name: str) -> Iterator[Path]:
    """Files of a name in NVIDIA's packages for pip, which the loader does not search."""
    package = find_spec("nvidia")
    for folder in () if package is None else package.submodule_search_locations or ():
        yield from sorted(Path(folder).glob(f"*/lib/{name}"))


def give_back(gpu: int, function: str, handle: int | None) -> None:
    """Give a thing back to the driver; at the end of the process all goes back by itself."""
    if not sys.is_finalizing():
        with suppress(EngineError), entered(gpu) as use:  # after a fault none can be
            use.call(function, c_void_p(handle))


class Memory:
    """Memory of the thread's GPU, freed with the object."""

    def __init__(self, size_bytes: int) -> None:
        pointer, self.gpu = c_void_p(), current_gpu()
        with entered() as use:
            use.call("cuMemAlloc_v2", byref(pointer), c_size_t(max(1, size_bytes)))
        self.pointer: int = pointer.value or 0
        self.size_bytes = size_bytes

    def __del__(self) -> None:
        if getattr(self, "pointer", 0):
            give_back(self.gpu, "cuMemFree_v2", self.pointer)


class Stream:
    """A queue of work on the thread's GPU.

    Args:
        apart: True for one that does not wait for the default stream, nor that for it.
    """

    def __init__(self, *, apart: bool = False) -> None:
        handle, self.gpu = c_void_p(), current_gpu()
        with entered() as use:
            self._driver = use
            use.call("cuStreamCreate", byref(handle), c_uint(_NON_BLOCKING if apart else 0))
        self.handle: int = handle.value or 0

    def upload(self, address: int, size_bytes: int, pointer: int) -> None:
        """Copy host memory to the device; it must stay until the stream is waited for."""
        self._copy("cuMemcpyHtoDAsync_v2", pointer, address, size_bytes)

    def download(self, pointer: int, address: int, size_bytes: int) -> None:
        """Copy device memory to the host."""
        self._copy("cuMemcpyDtoHAsync_v2", address, pointer, size_bytes)

    def copy_from(self, gpu: int, pointer: int, size_bytes: int, to: int) -> None:
        """Copy memory of another GPU to that of this one."""
        context = self._driver.context
        self._driver.call(
            "cuMemcpyPeerAsync", c_void_p(to), context(self.gpu), c_void_p(pointer), context(gpu),
            c_size_t(size_bytes), c_void_p(self.handle),
        )  # fmt: skip

    def copy(self, pointer: int, size_bytes: int, to: int) -> None:
        """Copy device memory to other device memory of the same GPU."""
        self._copy("cuMemcpyDtoDAsync_v2", to, pointer, size_bytes)

    def _copy(self, name: str, to: int, source: int, size_bytes: int) -> None:
        size, stream = c_size_t(size_bytes), c_void_p(self.handle)
        self._driver.call(name, c_void_p(to), c_void_p(source), size, stream)

    def wait(self) -> None:
        """Until all that was queued is done."""
        self._driver.call("cuStreamSynchronize", c_void_p(self.handle))

    def __del__(self) -> None:
        if getattr(self, "handle", 0):
            give_back(self.gpu, "cuStreamDestroy_v2", self.handle)
