"""`cuda.cudart` and `cuda.bindings.runtime`: every call gives a tuple that begins with an error.

Source: tensorrt-api spec 4.5.
"""

from __future__ import annotations

import ctypes
from enum import IntEnum
from typing import Any

from noria.trt.compat.shims import memory

__path__: list[str] = []


class cudaError_t(IntEnum):
    """Errors that can happen here, and the numbers of CUDA."""

    cudaSuccess = 0
    cudaErrorInvalidValue = 1
    cudaErrorMemoryAllocation = 2
    cudaErrorInvalidDevice = 101
    cudaErrorNotSupported = 801


class cudaMemcpyKind(IntEnum):
    """Direction of a copy; all are copies between host addresses."""

    cudaMemcpyHostToHost = 0
    cudaMemcpyHostToDevice = 1
    cudaMemcpyDeviceToHost = 2
    cudaMemcpyDeviceToDevice = 3
    cudaMemcpyDefault = 4


class cudaStream_t(int):
    """A stream is a number; every call is done when it returns."""

    def getPtr(self) -> int:
        """The number."""
        return int(self)


class cudaEvent_t(int):
    """An event is a number."""


class cudaDeviceAttr(IntEnum):
    """Some attributes that scripts ask for."""

    cudaDevAttrComputeCapabilityMajor = 75
    cudaDevAttrComputeCapabilityMinor = 76


class cudaDeviceProp:
    """Facts about a device."""

    def __init__(self) -> None:
        self.name = b"host memory (noria)"
        self.major, self.minor = 0, 0
        self.totalGlobalMem = 0
        self.multiProcessorCount = 0


_OK = cudaError_t.cudaSuccess
_BAD = cudaError_t.cudaErrorInvalidValue
cudaStreamDefault, cudaStreamNonBlocking = 0, 1
cudaHostAllocDefault, cudaHostAllocMapped = 0, 2
_streams = iter(range(1, 2**62))


def _address(pointer: Any) -> int:
    """The address of whatever scripts pass as one."""
    if isinstance(pointer, int):
        return pointer
    if hasattr(pointer, "__array_interface__"):
        return int(pointer.__array_interface__["data"][0])
    if isinstance(pointer, ctypes.c_void_p):
        return int(pointer.value or 0)
    try:
        return int(pointer)
    except TypeError:
        return ctypes.addressof((ctypes.c_char).from_buffer(pointer))


def cudaMalloc(size: int) -> tuple[Any, ...]:
    try:
        return _OK, memory.allocate(int(size))
    except (MemoryError, ValueError, OverflowError):
        return cudaError_t.cudaErrorMemoryAllocation, 0


def cudaMallocAsync(size: int, stream: Any = 0) -> tuple[Any, ...]:
    return cudaMalloc(size)


def cudaMallocHost(size: int) -> tuple[Any, ...]:
    return cudaMalloc(size)


def cudaHostAlloc(size: int, flags: int = 0) -> tuple[Any, ...]:
    return cudaMalloc(size)


def cudaMallocManaged(size: int, flags: int = 1) -> tuple[Any, ...]:
    return cudaMalloc(size)


def cudaFree(pointer: Any) -> tuple[Any, ...]:
    address = _address(pointer)
    return (_OK if not address or memory.release(address) else _BAD,)


def cudaFreeAsync(pointer: Any, stream: Any = 0) -> tuple[Any, ...]:
    return cudaFree(pointer)


def cudaFreeHost(pointer: Any) -> tuple[Any, ...]:
    return cudaFree(pointer)


def cudaMemcpy(target: Any, source: Any, size: int, kind: Any = 4) -> tuple[Any, ...]:
    try:
        memory.copy(_address(target), _address(source), int(size))
    except (ValueError, TypeError):
        return (_BAD,)
    return (_OK,)


def cudaMemcpyAsync(
    target: Any, source: Any, size: int, kind: Any = 4, stream: Any = 0
) -> tuple[Any, ...]:
    return cudaMemcpy(target, source, size, kind)


def cudaMemset(pointer: Any, value: int, size: int) -> tuple[Any, ...]:
    try:
        memory.fill(_address(pointer), int(value), int(size))
    except ValueError:
        return (_BAD,)
    return (_OK,)


def cudaMemsetAsync(pointer: Any, value: int, size: int, stream: Any = 0) -> tuple[Any, ...]:
    return cudaMemset(pointer, value, size)


def cudaStreamCreate() -> tuple[Any, ...]:
    return _OK, cudaStream_t(next(_streams))


def cudaStreamCreateWithFlags(flags: int = 0) -> tuple[Any, ...]:
    return cudaStreamCreate()


def cudaStreamSynchronize(stream: Any = 0) -> tuple[Any, ...]:
    return (_OK,)


def cudaStreamDestroy(stream: Any = 0) -> tuple[Any, ...]:
    return (_OK,)


def cudaDeviceSynchronize() -> tuple[Any, ...]:
    return (_OK,)


def cudaGetDeviceCount() -> tuple[Any, ...]:
    return _OK, 1


def cudaSetDevice(device: int) -> tuple[Any, ...]:
    return (_OK if int(device) == 0 else cudaError_t.cudaErrorInvalidDevice,)


def cudaGetDevice() -> tuple[Any, ...]:
    return _OK, 0


def cudaGetDeviceProperties(device: int = 0) -> tuple[Any, ...]:
    return _OK, cudaDeviceProp()


def cudaDeviceGetAttribute(attribute: Any, device: int = 0) -> tuple[Any, ...]:
    return _OK, 0


def cudaMemGetInfo() -> tuple[Any, ...]:
    import os

    page = os.sysconf("SC_PAGE_SIZE")
    return _OK, page * os.sysconf("SC_AVPHYS_PAGES"), page * os.sysconf("SC_PHYS_PAGES")


def cudaEventCreate() -> tuple[Any, ...]:
    return _OK, cudaEvent_t(next(_streams))


def cudaEventRecord(event: Any, stream: Any = 0) -> tuple[Any, ...]:
    return (_OK,)


def cudaEventSynchronize(event: Any) -> tuple[Any, ...]:
    return (_OK,)


def cudaEventDestroy(event: Any) -> tuple[Any, ...]:
    return (_OK,)


def cudaStreamWaitEvent(stream: Any, event: Any, flags: int = 0) -> tuple[Any, ...]:
    return (_OK,)


def cudaRuntimeGetVersion() -> tuple[Any, ...]:
    return _OK, 0


def cudaDriverGetVersion() -> tuple[Any, ...]:
    return _OK, 0


def cudaGetLastError() -> tuple[Any, ...]:
    return (_OK,)


def cudaGetErrorName(error: Any) -> tuple[Any, ...]:
    return _OK, cudaError_t(int(error)).name.encode()


def cudaGetErrorString(error: Any) -> tuple[Any, ...]:
    return _OK, cudaError_t(int(error)).name.encode()
