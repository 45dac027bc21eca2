"""Images of many sources on one, where a GPU decoded them.

The CPU's tiles come from FFmpeg's scaler: values here are close to them, and not the same.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Sequence
from ctypes import c_int32, c_uint64
from typing import TYPE_CHECKING

import numpy as np

from headrace._core.gpu.cuda import entered
from headrace._core.gpu.cuda_tensors import CudaTensor
from headrace.media.device_planes import DevicePlanes
from headrace.media.draw.colors import Rgb, to_yuv
from headrace.media.draw.device_images import DeviceImages
from headrace.media.draw.tile_scaling import TileAxis, axes, recoloring
from headrace.media.frame import Frame
from headrace.media.pixel_format import ColorSpace

if TYPE_CHECKING:
    from headrace.media.draw.tiler import Tile

_MOST_AXES = 1024  # whose tables stay on the GPU: sizes of sources that come and go
_COMPONENT = np.dtype([("data", "u8"), ("pitch", "i4"), ("step", "i4")])
_AXIS = np.dtype([("first", "u8"), ("weights", "u8"), ("taps", "i8")])
TILE = np.dtype(
    [
        ("component", _COMPONENT, (3,)),
        ("axes", _AXIS, (2, 2)),  # across and down, each of luma and of chroma
        *((name, "i4") for name in ("wide", "left", "top", "width", "height", "recolors")),
        ("matrix", "i4", (12,)),
    ],
    align=True,
)
"""`Tile` of native/gpu/tiles_kernel.cu."""


class _Mosaic(ctypes.Structure):
    """`Mosaic` of native/gpu/tiles_kernel.cu."""

    _fields_ = (
        *((name, c_uint64) for name in ("tiles", "luma", "chroma")),
        *((name, c_int32) for name in ("count", "width", "height", "pitch")),
        ("dark", c_int32 * 3),
    )


def gpu_of(frames: Sequence[Frame]) -> int | None:
    """The GPU that has all of some images, none of them copied to the host; None: there is none."""
    planes = [frame.on_device for frame in frames]
    if any(p is None or p.downloaded for p in planes):
        return None
    gpus = {p.gpu for p in planes if p is not None}
    return gpus.pop() if len(gpus) == 1 else None


def composed(
    gpu: int, placed: Sequence[tuple[Frame, Tile]], size: tuple[int, int], color: ColorSpace,
    dark: Rgb,
) -> Frame:  # fmt: skip
    """Put images at their places.

    Args:
        gpu: which has them.
        placed: the images, each with its place.
        size: of the result.
        color: of the result.
        dark: its colour where no image is.

    Returns:
        NV12 in the GPU's memory.

    Raises:
        EngineError: the GPU has no memory left, or failed.
    """
    with entered(gpu):
        composer = _here.composers.get(gpu)
        if composer is None:
            composer = _here.composers[gpu] = _Composer(gpu)
        planes = composer.run(placed, size, color, dark)
    return Frame(planes, planes.format, *size, color)


class _Composer:
    """One thread's tiles on one GPU, with the tables of sizes that come again."""

    def __init__(self, gpu: int) -> None:
        self._gpu = gpu
        self._images = DeviceImages("tiles")
        self._axes: dict[int, tuple[TileAxis, CudaTensor, CudaTensor]] = {}

    def run(
        self, placed: Sequence[tuple[Frame, Tile]], size: tuple[int, int], color: ColorSpace,
        dark: Rgb,
    ) -> DevicePlanes:  # fmt: skip
        """See `composed`; wait until it is there."""
        kept = []
        if len(self._axes) > _MOST_AXES:
            self._axes.clear()
        records = np.zeros(len(placed), TILE)
        for record, (frame, tile) in zip(records, placed, strict=True):
            planes = frame.on_device
            assert planes is not None
            kept.append(planes)
            rows = [(c.data, c.pitch, c.step) for c in planes.components]
            record["component"] = np.array(rows, _COMPONENT)
            tables = axes(frame.width, frame.height, tile.width, tile.height)
            for number, pair in enumerate(tables):
                for way, axis in enumerate(pair):
                    record["axes"][way, number] = self._on_gpu(axis)
            record["wide"] = planes.wide
            for name in ("left", "top", "width", "height"):
                record[name] = getattr(tile, name)
            matrix = recoloring(frame.color, color)
            if matrix is not None:
                record["recolors"], record["matrix"] = 1, matrix.reshape(-1)
        base, staging = self._images.stage(records.nbytes + 1)
        staging[: records.nbytes] = records.view(np.uint8)
        mosaic = _Mosaic(tiles=base, count=len(records))
        mosaic.dark[:] = to_yuv(dark, color)
        return DevicePlanes(self._images.make(mosaic, *size), gpu=self._gpu)

    def _on_gpu(self, axis: TileAxis) -> tuple[int, int, int]:
        """The record of an axis; its tables are copied once."""
        if id(axis) not in self._axes:  # the axis is kept, so that no other gets its id
            self._axes[id(axis)] = axis, CudaTensor.of(axis.first), CudaTensor.of(axis.weights)
        _, first, weights = self._axes[id(axis)]
        return first.pointer, weights.pointer, axis.weights.shape[1]


class _Here(threading.local):
    """One thread's composers, by GPU."""

    def __init__(self) -> None:
        self.composers: dict[int, _Composer] = {}


_here = _Here()
