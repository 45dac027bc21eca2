"""Images as a low-level tracker library asks for them, in memory of the CPU."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

import numpy as np

from headrace.custom.nvmot.host import SurfaceImage
from headrace.media.frame import Frame
from headrace.media.resizing import reformatted


@cache
def formats() -> Mapping[int, str]:
    """FFmpeg's names of the original's colour formats, NvBufSurfaceColorFormat."""
    return MappingProxyType(
        {
            1: "gray", 2: "yuv420p", 4: "yuv420p", 6: "nv12", 7: "nv12", 19: "rgba", 20: "bgra",
            21: "argb", 22: "abgr", 23: "rgb0", 24: "bgr0", 25: "0rgb", 26: "0bgr", 27: "rgb24",
            28: "bgr24", 31: "yuv420p", 33: "nv12", 88: "gray",
        }
    )  # fmt: skip


def _plane_pixels(color: int) -> tuple[tuple[int, int], ...]:
    """Bytes of a pixel, and by how much it is smaller than the image, of each plane."""
    name = formats()[color]
    if name == "nv12":
        return (1, 1), (2, 2)
    if name == "yuv420p":
        return (1, 1), (1, 2), (1, 2)
    return ((1 if name == "gray" else 3 if name in ("rgb24", "bgr24") else 4, 1),)


def surface_image(frame: Frame, color: int, width: int, height: int) -> SurfaceImage:
    """A frame in a format and size.

    Raises:
        KeyError: a format that `formats` does not have.
        MediaError: it cannot be scaled.
    """
    image = reformatted(frame, formats()[color], width, height)
    planes, parts, start = [], [], 0
    for (pixel, less), plane in zip(_plane_pixels(color), image.planes, strict=True):
        part = np.frombuffer(memoryview(plane), np.uint8)
        across, down = -(-width // less), -(-height // less)
        pitch = plane.line_size
        planes.append((across, down, pitch, start, pixel))
        parts.append(part[: pitch * down])
        start += pitch * down
    return SurfaceImage(color, width, height, planes, np.concatenate(parts))


def gray_image(color: int, width: int, height: int) -> SurfaceImage | None:
    """An image of one gray; None of a format that `formats` does not have."""
    if color not in formats():
        return None
    planes, start = [], 0
    for pixel, less in _plane_pixels(color):
        across, down = -(-width // less), -(-height // less)
        planes.append((across, down, across * pixel, start, pixel))
        start += across * pixel * down
    return SurfaceImage(color, width, height, planes, np.full(start, 128, np.uint8))
