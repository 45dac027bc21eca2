"""Libraries of plugins that a script loads with ctypes.

One that was compiled with headrace's headers registers its creators; one that was compiled for a
GPU may have a twin, a file of the same plugins that can run here. The CUDA runtime is host memory:
its functions take pointers, numbers and `byref(…)` as ctypes functions do, and return 0 for
success.
"""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any, SupportsInt

import headrace
from headrace._core.errors import HeadraceError
from headrace.binary.tensorrt_line import file_brings_plugins
from headrace.plugins.registry import TWINS, get_plugin_registry, load_given
from headrace.trt.scripts.shims import memory

_SUCCESS, _INVALID_VALUE, _OUT_OF_MEMORY = 0, 1, 2
_CUDA = re.compile(r"libcudart\.so(\.\d+)*")
_TENSORRT = re.compile(r"libnv(infer(_plugin|_lean|_dispatch)?|onnxparser)\.so(\.\d+)*")


def load_libraries(options: Iterable[str]) -> None:
    """Load files of plugins now, and twins when the script loads the libraries they replace.

    Args:
        options: `FILE`, or `LIBRARY.so=FILE` for a twin.

    Raises:
        HeadraceError: there is no such file.
        CustomLibraryError: it fails.
    """
    for text in options:
        library, mark, file = text.rpartition("=")
        path = Path(file).absolute()
        if not path.is_file():
            raise HeadraceError(
                "there is no such file of plugins", where=file,
                expected="--plugins FILE, or --plugins LIBRARY.so=FILE",
            )  # fmt: skip
        if mark:
            TWINS[Path(library).name] = path
        else:
            load_given(path, get_plugin_registry())
    _watch()


@cache
def _watch() -> None:
    """Watch the libraries that ctypes opens in this process."""
    original = ctypes.CDLL.__init__

    def init(self: Any, name: Any, *arguments: Any, **more: Any) -> None:
        path = Path(os.fspath(name)) if name else None
        if path is None:
            original(self, name, *arguments, **more)
        elif path.name in TWINS:
            load_given(TWINS[path.name], get_plugin_registry())
            original(self, None, *arguments, **more)
        elif _CUDA.fullmatch(path.name):
            original(self, None, *arguments, **more)
            vars(self).update(_CUDART)
        elif _TENSORRT.fullmatch(path.name):  # headrace.trt is it, standard plugins included
            original(self, None, *arguments, **more)
        else:
            if path.is_file() and file_brings_plugins(path):
                load_given(path, get_plugin_registry())
            try:
                original(self, name, *arguments, **more)
            except OSError as error:
                foreign = headrace._wiring.foreign_error(path) if path.is_file() else None
                if foreign is None:
                    raise
                raise OSError(f"{error}\n{foreign}") from error

    ctypes.CDLL.__init__ = init  # type: ignore[method-assign]


def _number(value: Any) -> int:
    """Of an int, a ctypes number or a pointer; None is 0."""
    return int(getattr(value, "value", value) or 0)


def _write(reference: Any, kind: Any, value: int) -> None:
    """Through `byref(x)` or `pointer(x)`."""
    target = getattr(reference, "_obj", None)
    if target is None:
        target = ctypes.cast(reference, ctypes.POINTER(kind)).contents
    target.value = value


def _allocate(pointer: SupportsInt, size: Any, flags: SupportsInt = 0) -> int:
    try:
        _write(pointer, ctypes.c_void_p, memory.allocate(_number(size)))
    except (MemoryError, OverflowError):
        return _OUT_OF_MEMORY
    except ValueError:
        return _INVALID_VALUE
    return _SUCCESS


def _free(pointer: SupportsInt) -> int:
    address = _number(pointer)
    return _SUCCESS if not address or memory.release(address) else _INVALID_VALUE


def _copy(
    target: Any,
    source: SupportsInt,
    size: SupportsInt,
    kind: SupportsInt = 4,
    stream: object = None,
) -> int:
    try:
        memory.copy(_number(target), _number(source), _number(size))
    except ValueError:
        return _INVALID_VALUE
    return _SUCCESS


def _fill(pointer: SupportsInt, value: Any, size: SupportsInt, stream: Any = None) -> int:
    try:
        memory.fill(_number(pointer), _number(value), _number(size))
    except ValueError:
        return _INVALID_VALUE
    return _SUCCESS


def _handle(pointer: SupportsInt, *flags: Any) -> int:
    """Streams and events: every one is the number 1."""
    _write(pointer, ctypes.c_void_p, 1)
    return _SUCCESS


def _one(pointer: SupportsInt) -> int:
    _write(pointer, ctypes.c_int, 1)
    return _SUCCESS


def _zero(pointer: SupportsInt) -> int:
    _write(pointer, ctypes.c_int, 0)
    return _SUCCESS


def _nothing(*arguments: object) -> int:
    return _SUCCESS


_CUDART: dict[str, Callable[..., int]] = {
    "cudaMalloc": _allocate, "cudaMallocHost": _allocate, "cudaHostAlloc": _allocate,
    "cudaMallocManaged": _allocate, "cudaFree": _free, "cudaFreeHost": _free,
    "cudaMemcpy": _copy, "cudaMemcpyAsync": _copy, "cudaMemset": _fill, "cudaMemsetAsync": _fill,
    "cudaStreamCreate": _handle, "cudaStreamCreateWithFlags": _handle, "cudaEventCreate": _handle,
    "cudaStreamDestroy": _nothing, "cudaStreamSynchronize": _nothing, "cudaEventRecord": _nothing,
    "cudaEventSynchronize": _nothing, "cudaEventDestroy": _nothing, "cudaSetDevice": _nothing,
    "cudaDeviceSynchronize": _nothing, "cudaGetLastError": _nothing, "cudaGetDevice": _zero,
    "cudaGetDeviceCount": _one,
}  # fmt: skip
"""Function of `libcudart.so` -> its stand-in."""
