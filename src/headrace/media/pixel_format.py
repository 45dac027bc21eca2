"""Memory layouts and colour spaces of images, and FFmpeg's codes of them."""

from __future__ import annotations

from enum import StrEnum
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from headrace._core.errors import MediaError

Plane = npt.NDArray[np.uint8]

# AVColorSpace codes of the matrices that are distinguished here; everything else is BT.601.
_BT709, _BT2020 = (1,), (9, 10)
_FULL_RANGE = 2  # AVCOL_RANGE_JPEG


class PixelFormat(StrEnum):
    """Memory layout of a frame's planes.

    I420: three 2-D planes Y, U, V, chroma at half size (rounded up). NV12: Y plane, then an
    interleaved (ceil(h/2), ceil(w/2), 2) UV plane. RGB, BGR: one (h, w, 3) plane. GRAY: one (h, w).
    """

    I420 = "i420"
    NV12 = "nv12"
    RGB = "rgb"
    BGR = "bgr"
    GRAY = "gray"


class ColorSpace(StrEnum):
    """YUV to RGB matrix and range a frame is tagged with.

    Untagged video is BT.601 limited. Source: spec A.3.
    """

    BT601 = "bt601"
    BT601_FULL = "bt601-full"
    BT709 = "bt709"
    BT709_FULL = "bt709-full"
    BT2020 = "bt2020"
    BT2020_FULL = "bt2020-full"


@lru_cache(256)
def plane_shapes(format: PixelFormat, width: int, height: int) -> tuple[tuple[int, ...], ...]:
    """The shape of every plane of a `width` x `height` image."""
    if width < 1 or height < 1:
        raise MediaError(f"{width}x{height} is not an image size", where="Frame")
    cw, ch = (width + 1) // 2, (height + 1) // 2
    match format:
        case PixelFormat.I420:
            return (height, width), (ch, cw), (ch, cw)
        case PixelFormat.NV12:
            return (height, width), (ch, cw, 2)
        case PixelFormat.GRAY:
            return ((height, width),)
        case _:
            return ((height, width, 3),)


def color_space(matrix: int, full: bool) -> ColorSpace:
    """From FFmpeg's matrix code and range; untagged is BT.601 limited. Source: spec A.3."""
    if matrix in _BT709:
        return ColorSpace.BT709_FULL if full else ColorSpace.BT709
    if matrix in _BT2020:
        return ColorSpace.BT2020_FULL if full else ColorSpace.BT2020
    return ColorSpace.BT601_FULL if full else ColorSpace.BT601


def is_full(color: ColorSpace) -> bool:
    """Whether luma uses 0..255 rather than 16..235."""
    return color.value.endswith("-full")


def matrix_code(color: ColorSpace) -> int:
    """FFmpeg's code of the matrix of `color`."""
    name = color.value.removesuffix("-full")
    return {"bt709": 1, "bt2020": 9}.get(name, 6)
