"""Planes of an image in GPU memory, copied to the host when the pixels are read."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any, overload

import numpy as np

from headrace._core.types import DType
from headrace.media.pixel_format import PixelFormat, Plane, plane_shapes


@dataclass(frozen=True, slots=True)
class DevicePlane:
    """One plane on the GPU, as CuPy, PyTorch and others take it without a copy.

    Attributes:
        address: of the first row on the GPU.
        pitch: bytes from row to row.
        shape: (h, w) of luma, (h, w, 2) of interleaved chroma, in samples.
        dtype: uint8; uint16 of images with more than 8 bits, which are in the upper ones.
        owner: keeps the memory.
        gpu: number of the GPU.
    """

    address: int
    pitch: int
    shape: tuple[int, ...]
    dtype: DType
    owner: Any
    gpu: int = 0

    @property
    def strides(self) -> tuple[int, ...]:
        """Bytes from row to row, from pixel to pixel, from sample to sample."""
        size = self.dtype.itemsize
        return (self.pitch, size) if len(self.shape) == 2 else (self.pitch, 2 * size, size)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {
            "shape": self.shape,
            "strides": self.strides,
            "typestr": self.dtype.str,
            "data": (self.address, True),
            "version": 2,
        }

    def __dlpack_device__(self) -> tuple[int, int]:
        from headrace._core.gpu.cuda_tensors import DEVICE_KIND

        return (DEVICE_KIND, self.gpu)

    def __dlpack__(self, **_: object) -> Any:
        from headrace._core.gpu.cuda_tensors import dlpack_capsule

        steps = [step // self.dtype.itemsize for step in self.strides]
        return dlpack_capsule(self.address, self.shape, self.dtype, self.owner, steps, gpu=self.gpu)

    def numpy(self) -> Plane:
        """The plane on the host, as bytes: 16-bit samples are rounded to their upper 8."""
        from headrace._core.gpu.cuda_kernels import download_rows

        row = int(np.prod(self.shape[1:])) * self.dtype.itemsize
        out = np.empty((self.shape[0], row), np.uint8)
        download_rows(self.gpu, self.address, self.pitch, row, out)
        samples = out.view(self.dtype).reshape(self.shape)
        if self.dtype.itemsize == 2:
            samples = np.minimum((samples.astype(np.uint32) + 128) >> 8, 255).astype(np.uint8)
        samples.flags.writeable = False
        return samples


class Component(ctypes.Structure):
    """`Component` of native/gpu/component.h: where the samples of Y, U or V are."""

    _fields_ = (("data", ctypes.c_uint64), ("pitch", ctypes.c_int32), ("step", ctypes.c_int32))


Components = Component * 3


class DevicePlanes(Sequence[Plane]):
    """The planes of an NV12 image, `Frame.planes` of an image on a GPU.

    Read like a tuple of arrays it copies them to the host, once for all who share it.

    Args:
        surface: a decoder's image with its planes in GPU memory; it owns them.
        wide: True if samples have 16 bits (P010).
        gpu: number of the GPU.

    Attributes:
        rows: device address and pitch in bytes of each plane.
    """

    format = PixelFormat.NV12

    def __init__(self, surface: Any, *, wide: bool = False, gpu: int = 0) -> None:
        self.width, self.height = int(surface.width), int(surface.height)
        self.wide, self.gpu = wide, gpu
        self.rows = [(plane.buffer_ptr, plane.line_size) for plane in surface.planes]
        self._surface = surface
        self._lock = Lock()
        self._host: tuple[Plane, ...] | None = None

    @property
    def surfaces(self) -> tuple[DevicePlane, ...]:
        """The planes where they are: luma, then chroma."""
        dtype = np.dtype(np.uint16 if self.wide else np.uint8)
        shapes = plane_shapes(self.format, self.width, self.height)
        return tuple(
            DevicePlane(address, pitch, shape, dtype, self._surface, self.gpu)
            for (address, pitch), shape in zip(self.rows, shapes, strict=True)
        )

    @property
    def components(self) -> ctypes.Array[Component]:
        """Where Y, U and V are."""
        (luma, luma_pitch), (chroma, pitch) = self.rows
        size = 1 + self.wide
        return Components(
            Component(luma, luma_pitch, size),
            Component(chroma, pitch, 2 * size),
            Component(chroma + size, pitch, 2 * size),
        )

    @property
    def downloaded(self) -> bool:
        """True if the pixels were copied to the host."""
        return self._host is not None

    def _arrays(self) -> tuple[Plane, ...]:
        with self._lock:
            if self._host is None:
                self._host = tuple(plane.numpy() for plane in self.surfaces)
            return self._host

    @overload
    def __getitem__(self, index: int) -> Plane: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Plane]: ...
    def __getitem__(self, index: int | slice) -> Plane | Sequence[Plane]:
        return self._arrays()[index]

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Plane]:
        return iter(self._arrays())
