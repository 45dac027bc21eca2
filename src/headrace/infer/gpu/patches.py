"""`DevicePatches`: samples of an image in a GPU's memory for a visual tracker, without a copy."""

from __future__ import annotations

import ctypes
from ctypes import c_float, c_int32, c_uint64
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from headrace._core.gpu.cuda import Memory, Stream, entered
from headrace._core.gpu.cuda_kernels import CudaEvent, PinnedPool, shared_kernel
from headrace.media.color_matrix import color_matrix
from headrace.media.device_planes import Components

if TYPE_CHECKING:
    from headrace.media.frame import Frame

_BLOCK = (32, 8, 1)
_BYTES = np.dtype(np.uint8)
Places = npt.NDArray[np.int32]
Patches = npt.NDArray[np.uint8]


class _Patches(ctypes.Structure):
    """`Patches` of native/gpu/patches_kernel.cu."""

    _fields_ = (
        ("component", Components),
        ("across", c_uint64),
        ("down", c_uint64),
        ("rgb", c_uint64),
        ("side", c_int32),
        ("wide", c_int32),
        ("matrix", c_float * 6),
    )


class DevicePatches:
    """Reads patches of images where they are, for one thread at a time.

    Attributes:
        gpu: number of the GPU.

    Raises:
        EngineError: the driver is too old.
    """

    def __init__(self, gpu: int) -> None:
        self.gpu = gpu
        with entered(gpu):
            self._kernel = shared_kernel("patches")
            self._stream, self._event = Stream(apart=True), CudaEvent()
            self._pinned = PinnedPool()
            self._memory = Memory(0)

    def __call__(self, frame: Frame, across: Places, down: Places) -> Patches:
        """Read patches.

        Args:
            frame: in the memory of this GPU.
            across, down: (N, S) columns and rows of the samples, inside the image.

        Returns:
            (N, 3, S, S) uint8 red, green and blue: the bytes that the CPU's tracker reads.

        Raises:
            EngineError: the GPU has no memory left, or failed.
        """
        planes = frame.on_device
        assert planes is not None
        assert planes.gpu == self.gpu
        count, side = across.shape
        out_bytes, place_bytes = count * 3 * side * side, across.nbytes
        with entered(self.gpu):
            if self._memory.size_bytes < 2 * place_bytes + out_bytes:
                self._memory = Memory(2 * (2 * place_bytes + out_bytes))
            base = self._memory.pointer
            places = self._pinned.take(across.dtype, (2, count, side))
            places[0], places[1] = across, down
            self._stream.upload(places.ctypes.data, places.nbytes, base)
            self._event.follow(self._stream)  # behind the decoder
            record = _Patches(
                component=planes.components, across=base, down=base + place_bytes,
                rgb=base + 2 * place_bytes, side=side, wide=planes.wide,
            )  # fmt: skip
            record.matrix[:] = color_matrix(frame.color)
            grid = (-(-side // _BLOCK[0]), -(-side // _BLOCK[1]), count)
            self._kernel.launch(self._stream, grid, _BLOCK, (record,))
            out = self._pinned.take(_BYTES, (count, 3, side, side))
            self._stream.download(base + 2 * place_bytes, out.ctypes.data, out_bytes)
            self._stream.wait()
        return out
