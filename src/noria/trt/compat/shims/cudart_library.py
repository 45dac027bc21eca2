"""`libcudart.so` for scripts that open it with ctypes: functions on the host's memory.

They take what ctypes functions take: pointers, numbers and `byref(…)`. A number is returned, 0 for
success; everything is done when a call returns.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from noria.trt.compat.shims import memory

__all__ = ["FUNCTIONS"]

SUCCESS, INVALID_VALUE, OUT_OF_MEMORY = 0, 1, 2


def _number(value: Any) -> int:
    """Of an int, a ctypes number or a pointer; None is 0."""
    return int(getattr(value, "value", value) or 0)


def _write(reference: Any, kind: Any, value: int) -> None:
    """Through `byref(x)` or `pointer(x)`."""
    target = getattr(reference, "_obj", None)
    if target is None:
        target = ctypes.cast(reference, ctypes.POINTER(kind)).contents
    target.value = value


def _allocate(pointer: Any, size: Any, flags: Any = 0) -> int:
    try:
        _write(pointer, ctypes.c_void_p, memory.allocate(_number(size)))
    except (MemoryError, OverflowError):
        return OUT_OF_MEMORY
    except ValueError:
        return INVALID_VALUE
    return SUCCESS


def _free(pointer: Any) -> int:
    address = _number(pointer)
    return SUCCESS if not address or memory.release(address) else INVALID_VALUE


def _copy(target: Any, source: Any, size: Any, kind: Any = 4, stream: Any = None) -> int:
    try:
        memory.copy(_number(target), _number(source), _number(size))
    except ValueError:
        return INVALID_VALUE
    return SUCCESS


def _fill(pointer: Any, value: Any, size: Any, stream: Any = None) -> int:
    try:
        memory.fill(_number(pointer), _number(value), _number(size))
    except ValueError:
        return INVALID_VALUE
    return SUCCESS


def _handle(pointer: Any, *flags: Any) -> int:
    """Streams and events: every one is the number 1."""
    _write(pointer, ctypes.c_void_p, 1)
    return SUCCESS


def _one(pointer: Any) -> int:
    _write(pointer, ctypes.c_int, 1)
    return SUCCESS


def _zero(pointer: Any) -> int:
    _write(pointer, ctypes.c_int, 0)
    return SUCCESS


def _nothing(*arguments: Any) -> int:
    return SUCCESS


FUNCTIONS: dict[str, Callable[..., int]] = {
    "cudaMalloc": _allocate, "cudaMallocHost": _allocate, "cudaHostAlloc": _allocate,
    "cudaMallocManaged": _allocate, "cudaFree": _free, "cudaFreeHost": _free,
    "cudaMemcpy": _copy, "cudaMemcpyAsync": _copy, "cudaMemset": _fill, "cudaMemsetAsync": _fill,
    "cudaStreamCreate": _handle, "cudaStreamCreateWithFlags": _handle, "cudaEventCreate": _handle,
    "cudaStreamDestroy": _nothing, "cudaStreamSynchronize": _nothing, "cudaEventRecord": _nothing,
    "cudaEventSynchronize": _nothing, "cudaEventDestroy": _nothing, "cudaSetDevice": _nothing,
    "cudaDeviceSynchronize": _nothing, "cudaGetLastError": _nothing, "cudaGetDevice": _zero,
    "cudaGetDeviceCount": _one,
}  # fmt: skip
"""Name -> its stand-in."""
