"""Kernels, events and memory that is lent, through NVIDIA's driver."""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Sequence
from ctypes import byref, c_char_p, c_int, c_size_t, c_uint, c_void_p
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from headrace._core.errors import EngineError
from headrace._core.gpu.cuda import Memory, Stream, current_gpu, driver, entered, give_back

_DISABLE_TIMING = 2  # CU_EVENT_DISABLE_TIMING
_PORTABLE = 1  # CU_MEMHOSTALLOC_PORTABLE
_HOST, _DEVICE = 1, 2  # CU_MEMORYTYPE_…
_NEEDS = "520.61 (CUDA 11.8)"  # the PTX is of version 7.8


class Kernel:
    """One of Headrace's kernels (native/gpu), compiled by the driver for the thread's GPU.

    Args:
        name: of its PTX file, and of its function behind `headrace_`.

    Raises:
        EngineError: the driver is too old.
    """

    def __init__(self, name: str) -> None:
        ptx = Path(__file__).with_name(f"{name}.ptx").read_bytes()
        name = f"headrace_{name}"
        module, function = c_void_p(), c_void_p()
        with entered() as use:
            try:
                use.call("cuModuleLoadData", byref(module), c_char_p(ptx))
            except EngineError as error:
                raise EngineError(
                    f"the NVIDIA driver refuses headrace's kernel {name}: {error:brief}",
                    expected=f"driver {_NEEDS} or newer",
                    fix="update the driver, or run with --device cpu",
                ) from error
            use.call("cuModuleGetFunction", byref(function), module, c_char_p(name.encode()))
        self._function, self._module, self._gpu = function, module, current_gpu()

    def __del__(self) -> None:
        if getattr(self, "_module", None):
            give_back(self._gpu, "cuModuleUnload", self._module.value)

    def launch(
        self,
        stream: Stream,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        arguments: Sequence[Any],
    ) -> None:
        """Queue one run.

        Args:
            stream: where; the calling thread must have the context (`cuda.entered`).
            grid, block: blocks, and threads of a block, along x, y and z.
            arguments: C objects of ctypes, as the function takes them; copied before this returns.
        """
        pointers = (c_void_p * len(arguments))(*(ctypes.addressof(a) for a in arguments))
        driver().call(
            "cuLaunchKernel", self._function, *map(c_uint, grid), *map(c_uint, block), c_uint(0),
            c_void_p(stream.handle), pointers, None,
        )  # fmt: skip


def shared_kernel(name: str) -> Kernel:
    """The kernel of the thread's GPU that others have, too, while one of them lives."""
    key = (current_gpu(), name)
    kernel = _kernels.get(key)
    if kernel is None:
        kernel = _kernels[key] = Kernel(name)
    return kernel


_kernels: weakref.WeakValueDictionary[tuple[int, str], Kernel] = weakref.WeakValueDictionary()


class CudaEvent:
    """A mark in one queue of the thread's GPU for which a queue of any GPU can wait."""

    def __init__(self) -> None:
        handle, self._gpu = c_void_p(), current_gpu()
        with entered() as use:
            use.call("cuEventCreate", byref(handle), c_uint(_DISABLE_TIMING))
        self._handle = handle

    def follow(self, stream: Stream, behind: int = 0) -> None:
        """Let `stream` wait for all that is queued in `behind` now.

        Args:
            behind: handle of a stream; 0 is the default stream, which FFmpeg decodes in.
        """
        use = driver()
        use.call("cuEventRecord", self._handle, c_void_p(behind))
        use.call("cuStreamWaitEvent", c_void_p(stream.handle), self._handle, c_uint(0))

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            give_back(self._gpu, "cuEventDestroy_v2", self._handle.value)


class PinnedPool:
    """Host memory that GPUs copy to and from directly, lent as arrays; of the thread's GPU.

    An array and its views keep their memory; when the last is gone the pool lends it again.
    """

    def __init__(self) -> None:
        self._gpu = current_gpu()
        self._free: dict[int, list[_Pinned]] = {}

    def take(self, dtype: np.dtype[Any], shape: tuple[int, ...]) -> npt.NDArray[Any]:
        """A C-contiguous array, its values arbitrary. Thread-safe.

        Raises:
            EngineError: there is no such memory left.
        """
        count = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        size = 1 << max(12, (count - 1).bit_length())  # batches of many sizes share few
        try:
            memory = self._free.setdefault(size, []).pop()
        except IndexError:
            memory = _Pinned(size, self._gpu)
        buffer = (ctypes.c_ubyte * size).from_address(memory.address)
        weakref.finalize(buffer, self._free[size].append, memory).atexit = False
        return np.ndarray(shape, dtype, memoryview(buffer))


class DevicePool:
    """Memory of the thread's GPU that is lent to objects, and lent again when they are gone."""

    def __init__(self) -> None:
        self._free: dict[int, list[Memory]] = {}

    def lend(self, size_bytes: int, owner: object) -> int:
        """Lend memory as long as `owner` lives, its values arbitrary. Thread-safe.

        Returns:
            Its device address.

        Raises:
            EngineError: there is no such memory left.
        """
        free = self._free.setdefault(size_bytes, [])
        try:
            memory = free.pop()
        except IndexError:
            memory = Memory(size_bytes)
        weakref.finalize(owner, free.append, memory).atexit = False
        return memory.pointer


class _Pinned:
    def __init__(self, size_bytes: int, gpu: int) -> None:
        pointer, self._gpu = c_void_p(), gpu
        with entered(gpu) as use:
            use.call("cuMemHostAlloc", byref(pointer), c_size_t(size_bytes), c_uint(_PORTABLE))
        self.address: int = pointer.value or 0

    def __del__(self) -> None:
        if getattr(self, "address", 0):
            give_back(self._gpu, "cuMemFreeHost", self.address)


class _Copy2D(ctypes.Structure):
    """CUDA_MEMCPY2D of the driver API."""

    _fields_ = (
        ("source_x", c_size_t),
        ("source_y", c_size_t),
        ("source_type", c_int),
        ("source_host", c_void_p),
        ("source_device", c_void_p),
        ("source_array", c_void_p),
        ("source_pitch", c_size_t),
        ("target_x", c_size_t),
        ("target_y", c_size_t),
        ("target_type", c_int),
        ("target_host", c_void_p),
        ("target_device", c_void_p),
        ("target_array", c_void_p),
        ("target_pitch", c_size_t),
        ("width", c_size_t),
        ("height", c_size_t),
    )


def download_rows(
    gpu: int, address: int, pitch: int, row_bytes: int, out: npt.NDArray[np.uint8]
) -> None:
    """Copy rows of a surface into a C-contiguous array of (rows, row_bytes) bytes, and wait.

    Args:
        gpu: number of the GPU.
        address: of the first row on it.
        pitch: bytes from row to row there.
        row_bytes: bytes of each row.
        out: the array; what was queued in the default stream is waited for first.
    """
    copy = _Copy2D(
        source_type=_DEVICE, source_device=address, source_pitch=pitch, target_type=_HOST,
        target_host=out.ctypes.data, target_pitch=row_bytes, width=row_bytes, height=len(out),
    )  # fmt: skip
    with entered(gpu) as use:
        use.call("cuMemcpy2D_v2", byref(copy))


def upload(stream: Stream, pointer: int, array: npt.NDArray[Any]) -> None:
    """Queue a copy of an array to the GPU, from its first byte to its last, row padding included.

    The array must stay until the stream is waited for.
    """
    size = sum((n - 1) * step for n, step in zip(array.shape, array.strides, strict=True))
    stream.upload(array.ctypes.data, size + array.itemsize, pointer)
