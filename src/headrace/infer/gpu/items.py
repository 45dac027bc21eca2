"""Records of the GPU's kernel, as native/gpu/preprocess_kernel.cu declares them."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from headrace.config.enums import TensorOrder
from headrace.infer.preprocess import LAYOUTS, Preprocessor
from headrace.media.color_matrix import ColorMatrix, color_matrix
from headrace.media.pixel_format import ColorSpace, PixelFormat

Records = npt.NDArray[np.void]

_COMPONENT = np.dtype([("data", "u8"), ("pitch", "i4"), ("step", "i4")])
ITEM = np.dtype(
    [
        ("component", _COMPONENT, (3,)),
        ("tables", "u8"),
        ("axes", "i4", (2, 2, 2)),  # x or y, whole planes or chroma, place and stride
        ("layout", "i4"),
        ("wide", "i4"),
        ("dst", "i4", (4,)),
        ("matrix", "f4", (6,)),
        ("integers", "i2", (6,)),
    ],
    align=True,
)
"""`Item`: a crop of a frame with its tables."""


class Settings(ctypes.Structure):
    """`Settings`: values that the items of a run share."""

    _fields_ = (
        ("out", ctypes.c_uint64),
        ("mean_image", ctypes.c_uint64),
        *(
            (name, ctypes.c_int32)
            for name in ("width", "height", "color", "nhwc", "filter", "half")
        ),
        ("scale", ctypes.c_float),
        ("fill", ctypes.c_float),
        ("mean", ctypes.c_float * 3),
    )


# Of each component of a format: its plane, the bytes before its first sample, pixels apart.
_COMPONENTS = {
    PixelFormat.I420: ((0, 0, 1), (1, 0, 1), (2, 0, 1)),
    PixelFormat.NV12: ((0, 0, 1), (1, 0, 2), (1, 1, 2)),
    PixelFormat.RGB: ((0, 0, 3), (0, 1, 3), (0, 2, 3)),
    PixelFormat.BGR: ((0, 2, 3), (0, 1, 3), (0, 0, 3)),
    PixelFormat.GRAY: ((0, 0, 1), (0, 0, 1), (0, 0, 1)),
}


def settings_of(pre: Preprocessor, out: int, mean_image: int, *, half: bool) -> Settings:
    """The settings of a scaler; `out` and `mean_image` are device addresses, 0 for no image."""
    settings = Settings(
        out, mean_image, pre.width, pre.height, int(pre.color_format),
        pre.order == TensorOrder.NHWC, pre.filter, half, pre.scale, pre.fill,
    )  # fmt: skip
    settings.mean[:] = pre.means
    return settings


def frame_template(format: PixelFormat, color: ColorSpace, *, wide: bool) -> Records:
    """(1,) `ITEM` of frames of a kind: everything but addresses, pitches and places.

    Args:
        wide: True for samples of 16 bits.
    """
    item = np.zeros(1, ITEM)
    matrix = color_matrix(color)
    item["layout"], item["wide"], item["matrix"] = LAYOUTS[format], wide, matrix
    item["integers"] = _integers(matrix)
    size = 2 if wide else 1
    item["component"]["step"] = [step * size for _, _, step in _COMPONENTS[format]]
    return item


def place_components(
    components: Records,
    format: PixelFormat,
    planes: Sequence[Sequence[tuple[int, int]]],
    counts: Sequence[int],
    *,
    wide: bool,
) -> None:
    """Fill in where the components of items lie.

    Args:
        components: (N, 3) of the items' records.
        planes: of each frame, address and pitch of its planes.
        counts: items of each frame, N in all.
        wide: True for samples of 16 bits.
    """
    which = [plane for plane, _, _ in _COMPONENTS[format]]
    before = [first * (2 if wide else 1) for _, first, _ in _COMPONENTS[format]]
    item_planes = np.array(planes, np.uint64)[:, which].repeat(counts, axis=0)
    components["data"] = item_planes[..., 0] + np.array(before, np.uint64)
    components["pitch"] = item_planes[..., 1]


def has_chroma(format: PixelFormat) -> bool:
    """True if chroma has planes of its own, of half the size."""
    return format in (PixelFormat.I420, PixelFormat.NV12)


def _integers(matrix: ColorMatrix) -> list[int]:
    """As `int_matrix` of the native core: gains in 1 / 2^13, the zero in eighths."""
    values = np.array(matrix, np.float32)
    return [int(8 * values[0]), *np.rint(values[1:] * np.float32(8192)).astype(int).tolist()]
