"""CUDA-Python's runtime, driver and compiler of kernels, on the host's memory.

The importer makes a module of each table. Every call gives a tuple that begins with an error, and
is done when it returns. Kernels can be neither compiled nor launched: there is no GPU.
Source: tensorrt-api spec 4.5.
"""

from __future__ import annotations

import ctypes
import os
import time
from enum import IntEnum
from typing import Any, SupportsInt

from headrace.trt.scripts.shims import memory


class cudaError_t(IntEnum):
    """Errors that can happen here, and the numbers of CUDA."""

    cudaSuccess = 0
    cudaErrorInvalidValue = 1
    cudaErrorMemoryAllocation = 2
    cudaErrorInvalidDevice = 101
    cudaErrorInvalidResourceHandle = 400
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

    cudaDevAttrMaxThreadsPerBlock = 1
    cudaDevAttrMaxSharedMemoryPerBlock = 8
    cudaDevAttrWarpSize = 10
    cudaDevAttrClockRate = 13
    cudaDevAttrMultiProcessorCount = 16
    cudaDevAttrIntegrated = 18
    cudaDevAttrCanMapHostMemory = 19
    cudaDevAttrComputeMode = 20
    cudaDevAttrUnifiedAddressing = 41
    cudaDevAttrComputeCapabilityMajor = 75
    cudaDevAttrComputeCapabilityMinor = 76


class cudaDeviceProp:
    """Facts about a device."""

    def __init__(self) -> None:
        self.name = _NAME
        self.major, self.minor = 0, 0
        self.totalGlobalMem = 0
        self.multiProcessorCount = self.integrated = 0


class CUresult(IntEnum):
    """Errors that can happen here, and the numbers of CUDA."""

    CUDA_SUCCESS = 0
    CUDA_ERROR_INVALID_VALUE = 1
    CUDA_ERROR_OUT_OF_MEMORY = 2
    CUDA_ERROR_INVALID_HANDLE = 400
    CUDA_ERROR_NOT_SUPPORTED = 801


class CUdeviceptr(int):
    """An address."""


class CUstream(int):
    """A stream."""


class CUcontext(int):
    """A context."""


class CUdevice(int):
    """A device."""


class CUevent(cudaEvent_t):
    """An event of the driver."""


class CUctx_flags(IntEnum):
    """How contexts wait; nothing waits here."""

    CU_CTX_SCHED_AUTO = 0
    CU_CTX_SCHED_SPIN = 1
    CU_CTX_SCHED_YIELD = 2
    CU_CTX_SCHED_BLOCKING_SYNC = 4
    CU_CTX_MAP_HOST = 8


class CUevent_flags(IntEnum):
    """Kinds of events."""

    CU_EVENT_DEFAULT = 0
    CU_EVENT_BLOCKING_SYNC = 1
    CU_EVENT_DISABLE_TIMING = 2


class CUstream_flags(IntEnum):
    """Kinds of streams."""

    CU_STREAM_DEFAULT = 0
    CU_STREAM_NON_BLOCKING = 1


class cudaStreamCaptureMode(IntEnum):
    """Modes of captures, which are refused."""

    cudaStreamCaptureModeGlobal = 0
    cudaStreamCaptureModeThreadLocal = 1
    cudaStreamCaptureModeRelaxed = 2


class CUdevice_attribute(IntEnum):
    """Some attributes that scripts ask for."""

    CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 1
    CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK = 8
    CU_DEVICE_ATTRIBUTE_WARP_SIZE = 10
    CU_DEVICE_ATTRIBUTE_CLOCK_RATE = 13
    CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16
    CU_DEVICE_ATTRIBUTE_INTEGRATED = 18
    CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY = 19
    CU_DEVICE_ATTRIBUTE_COMPUTE_MODE = 20
    CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING = 41
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76


class nvrtcResult(IntEnum):
    """Errors that can happen here."""

    NVRTC_SUCCESS = 0
    NVRTC_ERROR_INVALID_INPUT = 3
    NVRTC_ERROR_COMPILATION = 6


_NAME = b"host memory (headrace)"
_OK, _BAD = cudaError_t.cudaSuccess, cudaError_t.cudaErrorInvalidValue
_DONE, _NO = CUresult.CUDA_SUCCESS, CUresult.CUDA_ERROR_NOT_SUPPORTED
_MADE, _NOT_MADE = nvrtcResult.NVRTC_SUCCESS, nvrtcResult.NVRTC_ERROR_COMPILATION
_numbers = iter(range(1, 2**62))
_recorded: dict[int, float | None] = {}
"""Event -> when it was recorded, in seconds."""
_current: list[CUcontext] = []
"""Contexts that were pushed, the current one last."""


def _address(pointer: Any) -> int:
    """The address of any object that scripts pass as one."""
    if pointer is None or isinstance(pointer, int):
        return pointer or 0
    if hasattr(pointer, "__array_interface__"):
        return int(pointer.__array_interface__["data"][0])
    if isinstance(pointer, ctypes.c_void_p):
        return int(pointer.value or 0)
    try:
        return int(pointer)
    except TypeError:
        return ctypes.addressof((ctypes.c_char).from_buffer(pointer))


def cudaMalloc(size: int) -> tuple[object, ...]:
    try:
        return _OK, memory.allocate(int(size))
    except (MemoryError, ValueError, OverflowError):
        return cudaError_t.cudaErrorMemoryAllocation, 0


def cudaFree(pointer: Any) -> tuple[Any, ...]:
    address = _address(pointer)
    return (_OK if not address or memory.release(address) else _BAD,)


def cudaMemcpy(target: Any, source: Any, size: int, kind: SupportsInt = 4) -> tuple[object, ...]:
    try:
        memory.copy(_address(target), _address(source), int(size))
    except (ValueError, TypeError):
        return (_BAD,)
    return (_OK,)


def cudaMemset(pointer: SupportsInt, value: int, size: int) -> tuple[Any, ...]:
    try:
        memory.fill(_address(pointer), int(value), int(size))
    except ValueError:
        return (_BAD,)
    return (_OK,)


def cudaMemGetInfo() -> tuple[Any, ...]:
    page = os.sysconf("SC_PAGE_SIZE")
    return _OK, page * os.sysconf("SC_AVPHYS_PAGES"), page * os.sysconf("SC_PHYS_PAGES")


def cudaMemcpy2D(
    target: Any,
    target_pitch: int,
    source: Any,
    source_pitch: int,
    width: int,
    height: int,
    kind: SupportsInt = 4,
) -> tuple[object, ...]:
    """Copy rows of `width` bytes; pitches are the steps between rows, in bytes."""
    to, source_at = _address(target), _address(source)
    if width > target_pitch or width > source_pitch:
        return (_BAD,)
    for row in range(int(height)):
        result = cudaMemcpy(to + row * target_pitch, source_at + row * source_pitch, width)
        if result != (_OK,):
            return result
    return (_OK,)


def cudaEventCreate(flags: int = 0) -> tuple[object, ...]:
    event = cudaEvent_t(next(_numbers))
    _recorded[int(event)] = None
    return _OK, event


def cudaEventRecord(event: SupportsInt, stream: object = 0) -> tuple[object, ...]:
    if int(event) not in _recorded:
        return (cudaError_t.cudaErrorInvalidResourceHandle,)
    _recorded[int(event)] = time.perf_counter()
    return (_OK,)


def cudaEventElapsedTime(start: SupportsInt, end: SupportsInt) -> tuple[object, ...]:
    """Milliseconds between two recorded events."""
    times = [_recorded.get(int(event)) for event in (start, end)]
    first, last = times
    if first is None or last is None:
        return cudaError_t.cudaErrorInvalidResourceHandle, 0.0
    return _OK, (last - first) * 1000


def cudaEventDestroy(event: SupportsInt) -> tuple[object, ...]:
    _recorded.pop(int(event), None)
    return (_OK,)


def cudaHostRegister(pointer: Any, size: int, flags: int = 0) -> tuple[object, ...]:
    """Host memory needs no registration."""
    return (_OK if _address(pointer) and int(size) > 0 else _BAD,)


def _error_name(error: Any) -> tuple[Any, ...]:
    return _OK, cudaError_t(int(error)).name.encode()


def _result_name(error: Any) -> tuple[Any, ...]:
    return _DONE, CUresult(int(error)).name.encode()


def _result(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Give a result of the runtime with the driver's error."""
    return (_DONE if int(values[0]) == 0 else CUresult.CUDA_ERROR_INVALID_VALUE, *values[1:])


def _pop() -> tuple[object, ...]:
    return _DONE, _current.pop() if _current else CUcontext(1)


def _push(context: SupportsInt) -> tuple[object, ...]:
    _current.append(CUcontext(int(context)))
    return (_DONE,)


def _elapsed(start: SupportsInt, end: SupportsInt) -> tuple[object, ...]:
    error, milliseconds = cudaEventElapsedTime(start, end)
    return (_DONE if error == _OK else CUresult.CUDA_ERROR_INVALID_HANDLE), milliseconds


def _copied(target: object, source: object, size: int) -> tuple[object, ...]:
    return _result(cudaMemcpy(target, source, size))


RUNTIME: dict[str, object] = {
    "cudaError_t": cudaError_t,
    "cudaMemcpyKind": cudaMemcpyKind,
    "cudaStream_t": cudaStream_t,
    "cudaEvent_t": cudaEvent_t,
    "cudaDeviceAttr": cudaDeviceAttr,
    "cudaDeviceProp": cudaDeviceProp,
    "cudaStreamDefault": 0,
    "cudaStreamNonBlocking": 1,
    "cudaHostAllocDefault": 0,
    "cudaHostAllocPortable": 1,
    "cudaHostAllocMapped": 2,
    "cudaHostAllocWriteCombined": 4,
    "cudaEventWaitDefault": 0,
    "cudaEventWaitExternal": 1,
    "cudaMalloc": cudaMalloc,
    "cudaMallocAsync": lambda size, stream=0: cudaMalloc(size),
    "cudaMallocHost": cudaMalloc,
    "cudaHostAlloc": lambda size, flags=0: cudaMalloc(size),
    "cudaMallocManaged": lambda size, flags=1: cudaMalloc(size),
    "cudaFree": cudaFree,
    "cudaFreeAsync": lambda pointer, stream=0: cudaFree(pointer),
    "cudaFreeHost": cudaFree,
    "cudaMemcpy": cudaMemcpy,
    "cudaMemcpyAsync": lambda target, source, size, kind=4, stream=0: cudaMemcpy(
        target, source, size
    ),
    "cudaMemset": cudaMemset,
    "cudaMemsetAsync": lambda pointer, value, size, stream=0: cudaMemset(pointer, value, size),
    "cudaMemGetInfo": cudaMemGetInfo,
    "cudaStreamCreate": lambda: (_OK, cudaStream_t(next(_numbers))),
    "cudaStreamCreateWithFlags": lambda flags=0: (_OK, cudaStream_t(next(_numbers))),
    "cudaStreamSynchronize": lambda stream=0: (_OK,),
    "cudaStreamDestroy": lambda stream=0: (_OK,),
    "cudaStreamWaitEvent": lambda stream, event, flags=0: (_OK,),
    "cudaStreamQuery": lambda stream=0: (_OK,),
    "cudaStreamCaptureMode": cudaStreamCaptureMode,
    "cudaStreamBeginCapture": lambda stream=0, mode=0: (cudaError_t.cudaErrorNotSupported,),
    "cudaStreamEndCapture": lambda stream=0: (cudaError_t.cudaErrorNotSupported, 0),
    "cudaGraphInstantiate": lambda *graph: (cudaError_t.cudaErrorNotSupported, 0),
    "cudaGraphLaunch": lambda graph, stream=0: (cudaError_t.cudaErrorNotSupported,),
    "cudaEventCreate": cudaEventCreate,
    "cudaEventCreateWithFlags": cudaEventCreate,
    "cudaEventRecord": cudaEventRecord,
    "cudaEventSynchronize": lambda event: (_OK,),
    "cudaEventQuery": lambda event: (_OK,),
    "cudaEventElapsedTime": cudaEventElapsedTime,
    "cudaEventDestroy": cudaEventDestroy,
    "cudaHostRegister": cudaHostRegister,
    "cudaHostUnregister": lambda pointer: (_OK,),
    "cudaMemcpy2D": cudaMemcpy2D,
    "cudaMemcpy2DAsync": lambda *arguments: cudaMemcpy2D(*arguments[:7]),
    "cudaDeviceReset": lambda: (_OK,),
    "cudaProfilerStart": lambda: (_OK,),
    "cudaProfilerStop": lambda: (_OK,),
    "cudaPeekAtLastError": lambda: (_OK,),
    "cudaDeviceSynchronize": lambda: (_OK,),
    "cudaGetDeviceCount": lambda: (_OK, 1),
    "cudaSetDevice": lambda device: (
        _OK if int(device) == 0 else cudaError_t.cudaErrorInvalidDevice,
    ),
    "cudaGetDevice": lambda: (_OK, 0),
    "cudaGetDeviceProperties": lambda device=0: (_OK, cudaDeviceProp()),
    "cudaDeviceGetAttribute": lambda attribute, device=0: (_OK, 0),
    "cudaRuntimeGetVersion": lambda: (_OK, 0),
    "cudaDriverGetVersion": lambda: (_OK, 0),
    "cudaGetLastError": lambda: (_OK,),
    "cudaGetErrorName": _error_name,
    "cudaGetErrorString": _error_name,
}
"""`cuda.cudart` and `cuda.bindings.runtime`."""

DRIVER: dict[str, object] = {
    "CUresult": CUresult,
    "CUdeviceptr": CUdeviceptr,
    "CUstream": CUstream,
    "CUcontext": CUcontext,
    "CUdevice": CUdevice,
    "CUdevice_attribute": CUdevice_attribute,
    "cuInit": lambda flags=0: (_DONE,),
    "cuDriverGetVersion": lambda: (_DONE, 0),
    "cuDeviceGet": lambda ordinal=0: (_DONE, CUdevice(0)),
    "cuDeviceGetCount": lambda: (_DONE, 1),
    "cuDeviceGetAttribute": lambda attribute, device: (_DONE, 0),
    "cuDeviceGetName": lambda length, device: (_DONE, _NAME),
    "cuDevicePrimaryCtxRetain": lambda device: (_DONE, CUcontext(1)),
    "cuCtxCreate": lambda flags=0, device=0, *more: (_DONE, CUcontext(1)),
    "cuCtxSetCurrent": lambda context: (_DONE,),
    "cuCtxGetCurrent": lambda: (_DONE, CUcontext(1)),
    "CUevent": CUevent,
    "CUctx_flags": CUctx_flags,
    "CUevent_flags": CUevent_flags,
    "CUstream_flags": CUstream_flags,
    "cuCtxPushCurrent": _push,
    "cuCtxPopCurrent": _pop,
    "cuDevicePrimaryCtxRelease": lambda device: (_DONE,),
    "cuCtxSynchronize": lambda: (_DONE,),
    "cuMemHostAlloc": lambda size, flags=0: _result(cudaMalloc(size)),
    "cuMemAllocHost": lambda size: _result(cudaMalloc(size)),
    "cuMemFreeHost": lambda pointer: _result(cudaFree(pointer)),
    "cuMemsetD8": lambda pointer, value, size: _result(cudaMemset(pointer, value, size)),
    "cuMemsetD8Async": lambda pointer, value, size, stream=0: _result(
        cudaMemset(pointer, value, size)
    ),
    "cuMemGetInfo": lambda: _result(cudaMemGetInfo()),
    "cuEventCreate": lambda flags=0: _result(cudaEventCreate(flags)),
    "cuEventRecord": lambda event, stream=0: _result(cudaEventRecord(event)),
    "cuEventSynchronize": lambda event: (_DONE,),
    "cuEventQuery": lambda event: (_DONE,),
    "cuEventElapsedTime": _elapsed,
    "cuEventDestroy": lambda event: _result(cudaEventDestroy(event)),
    "cuStreamQuery": lambda stream=0: (_DONE,),
    "cuStreamWaitEvent": lambda stream, event, flags=0: (_DONE,),
    "cuCtxDestroy": lambda context: (_DONE,),
    "cuMemAlloc": lambda size: _result(cudaMalloc(size)),
    "cuMemFree": lambda pointer: _result(cudaFree(pointer)),
    "cuMemcpyHtoD": _copied,
    "cuMemcpyDtoH": _copied,
    "cuMemcpyDtoD": _copied,
    "cuMemcpyHtoDAsync": lambda target, source, size, stream=0: _copied(target, source, size),
    "cuMemcpyDtoHAsync": lambda target, source, size, stream=0: _copied(target, source, size),
    "cuStreamCreate": lambda flags=0: (_DONE, cudaStream_t(next(_numbers))),
    "cuStreamSynchronize": lambda stream=0: (_DONE,),
    "cuStreamDestroy": lambda stream=0: (_DONE,),
    "cuModuleLoadData": lambda image: (_NO, 0),
    "cuModuleGetFunction": lambda module, name: (_NO, 0),
    "cuLaunchKernel": lambda *arguments: (_NO,),
    "cuGetErrorName": _result_name,
    "cuGetErrorString": _result_name,
}
"""`cuda.cuda` and `cuda.bindings.driver`."""

NVRTC: dict[str, object] = {
    "nvrtcResult": nvrtcResult,
    "nvrtcCreateProgram": lambda *arguments: (_NOT_MADE, 0),
    "nvrtcCompileProgram": lambda *arguments: (_NOT_MADE,),
    "nvrtcGetProgramLogSize": lambda program: (_MADE, 0),
    "nvrtcGetProgramLog": lambda program, log: (_MADE,),
    "nvrtcGetErrorString": lambda error: (
        _MADE, b"headrace runs on the CPU: there is no compiler for GPU kernels",
    ),
}  # fmt: skip
"""`cuda.nvrtc` and `cuda.bindings.nvrtc`."""
