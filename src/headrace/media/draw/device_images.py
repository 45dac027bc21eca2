"""The queue in which a GPU makes NV12 images by one kernel, and their memory."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from headrace._core.gpu.cuda import Memory, Stream
from headrace._core.gpu.cuda_kernels import CudaEvent, DevicePool, PinnedPool, shared_kernel

_BLOCK = (32, 8, 1)
_ALIGNED = 256  # bytes, of rows


@dataclass(slots=True, weakref_slot=True)
class DeviceImage:
    """An NV12 image in lent memory, as `DevicePlanes` takes a decoder's."""

    width: int
    height: int
    planes: tuple[_Rows, ...] = ()


@dataclass(frozen=True, slots=True)
class _Rows:
    buffer_ptr: int
    line_size: int


class DeviceImages:
    """One thread's queue on the GPU that is current, with the memory that it uses again.

    Args:
        kernel: writes an image; one thread of it a square of two pixels by two.
    """

    def __init__(self, kernel: str) -> None:
        self._kernel = shared_kernel(kernel)
        self._stream, self._event = Stream(apart=True), CudaEvent()
        self._pinned, self._images = PinnedPool(), DevicePool()
        self._staged = Memory(0)
        self._staging: npt.NDArray[np.uint8]

    def stage(self, size_bytes: int) -> tuple[int, npt.NDArray[np.uint8]]:
        """Lend room for the input of the kernel.

        Returns:
            Its address on the GPU, and the bytes to fill, which `make` copies there.

        Raises:
            EngineError: there is no such memory left.
        """
        self._staging = self._pinned.take(np.dtype(np.uint8), (size_bytes,))
        if self._staged.size_bytes < size_bytes:
            self._staged = Memory(2 * size_bytes)
        return self._staged.pointer, self._staging

    def make(self, record: ctypes.Structure, width: int, height: int) -> DeviceImage:
        """Run the kernel behind the decoder's work; wait until the image is there.

        Args:
            record: what the kernel is called with: its `luma`, `chroma`, `width`, `height` and
                `pitch`, those of the image, are set here.
            width: of the image, in pixels, as `height`.

        Raises:
            EngineError: the GPU has no memory left, or failed.
        """
        rows, columns = (height + 1) // 2, (width + 1) // 2
        image = DeviceImage(width, height)
        pitch = -(-2 * columns // _ALIGNED) * _ALIGNED
        luma = self._images.lend(pitch * (height + rows), image)
        image.planes = (_Rows(luma, pitch), _Rows(luma + pitch * height, pitch))
        placed = {"luma": luma, "chroma": luma + pitch * height, "pitch": pitch}
        for name, value in (placed | {"width": width, "height": height}).items():
            setattr(record, name, value)
        stream = self._stream
        stream.upload(self._staging.ctypes.data, len(self._staging), self._staged.pointer)
        self._event.follow(stream)
        grid = (-(-columns // _BLOCK[0]), -(-rows // _BLOCK[1]), 1)
        self._kernel.launch(stream, grid, _BLOCK, (record,))
        stream.wait()
        return image
