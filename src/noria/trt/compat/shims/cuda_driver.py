"""`cuda.cuda` and `cuda.bindings.driver`. Kernels cannot be launched: there is no GPU."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

from noria.trt.compat.shims import cuda_runtime as runtime

__path__: list[str] = []


class CUresult(IntEnum):
    """Errors that can happen here, and the numbers of CUDA."""

    CUDA_SUCCESS = 0
    CUDA_ERROR_INVALID_VALUE = 1
    CUDA_ERROR_OUT_OF_MEMORY = 2
    CUDA_ERROR_NOT_SUPPORTED = 801


class CUdeviceptr(int):
    """An address."""


class CUstream(int):
    """A stream."""


class CUcontext(int):
    """A context."""


class CUdevice(int):
    """A device."""


class CUdevice_attribute(IntEnum):
    """Some attributes that scripts ask for."""

    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76


_OK = CUresult.CUDA_SUCCESS
_NO = CUresult.CUDA_ERROR_NOT_SUPPORTED


def _result(made: tuple[Any, ...]) -> tuple[Any, ...]:
    good = int(made[0]) == 0
    return (_OK if good else CUresult.CUDA_ERROR_INVALID_VALUE, *made[1:])


def cuInit(flags: int = 0) -> tuple[Any, ...]:
    return (_OK,)


def cuDeviceGet(ordinal: int = 0) -> tuple[Any, ...]:
    return _OK, CUdevice(0)


def cuDeviceGetCount() -> tuple[Any, ...]:
    return _OK, 1


def cuDeviceGetAttribute(attribute: Any, device: Any) -> tuple[Any, ...]:
    return _OK, 0


def cuDeviceGetName(length: int, device: Any) -> tuple[Any, ...]:
    return _OK, b"host memory (noria)"


def cuDevicePrimaryCtxRetain(device: Any) -> tuple[Any, ...]:
    return _OK, CUcontext(1)


def cuCtxCreate(flags: int = 0, device: Any = 0, *more: Any) -> tuple[Any, ...]:
    return _OK, CUcontext(1)


def cuCtxSetCurrent(context: Any) -> tuple[Any, ...]:
    return (_OK,)


def cuCtxGetCurrent() -> tuple[Any, ...]:
    return _OK, CUcontext(1)


def cuCtxSynchronize() -> tuple[Any, ...]:
    return (_OK,)


def cuCtxDestroy(context: Any) -> tuple[Any, ...]:
    return (_OK,)


def cuMemAlloc(size: int) -> tuple[Any, ...]:
    return _result(runtime.cudaMalloc(size))


def cuMemFree(pointer: Any) -> tuple[Any, ...]:
    return _result(runtime.cudaFree(pointer))


def cuMemcpyHtoD(target: Any, source: Any, size: int) -> tuple[Any, ...]:
    return _result(runtime.cudaMemcpy(target, source, size))


def cuMemcpyDtoH(target: Any, source: Any, size: int) -> tuple[Any, ...]:
    return _result(runtime.cudaMemcpy(target, source, size))


def cuMemcpyDtoD(target: Any, source: Any, size: int) -> tuple[Any, ...]:
    return _result(runtime.cudaMemcpy(target, source, size))


def cuMemcpyHtoDAsync(target: Any, source: Any, size: int, stream: Any = 0) -> tuple[Any, ...]:
    return cuMemcpyHtoD(target, source, size)


def cuMemcpyDtoHAsync(target: Any, source: Any, size: int, stream: Any = 0) -> tuple[Any, ...]:
    return cuMemcpyDtoH(target, source, size)


def cuStreamCreate(flags: int = 0) -> tuple[Any, ...]:
    return _result(runtime.cudaStreamCreate())


def cuStreamSynchronize(stream: Any = 0) -> tuple[Any, ...]:
    return (_OK,)


def cuStreamDestroy(stream: Any = 0) -> tuple[Any, ...]:
    return (_OK,)


def cuModuleLoadData(image: Any) -> tuple[Any, ...]:
    return _NO, 0


def cuModuleGetFunction(module: Any, name: bytes) -> tuple[Any, ...]:
    return _NO, 0


def cuLaunchKernel(*arguments: Any) -> tuple[Any, ...]:
    return (_NO,)


def cuGetErrorName(error: Any) -> tuple[Any, ...]:
    return _OK, CUresult(int(error)).name.encode()


def cuGetErrorString(error: Any) -> tuple[Any, ...]:
    return _OK, CUresult(int(error)).name.encode()
