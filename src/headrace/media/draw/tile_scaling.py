"""Images at the size of their tiles on a GPU: tables of weights in whole numbers."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from headrace.media.color_matrix import color_matrix
from headrace.media.draw.colors import yuv_matrix
from headrace.media.pixel_format import ColorSpace
from headrace.meta.detections import IntArray

_ROW_BITS, _COLUMN_BITS, _COLOR_BITS = 8, 14, 14  # of native/gpu/tiles_kernel.cu


class TileAxis(NamedTuple):
    """The samples of an image that make up those of its tile, along one axis.

    Attributes:
        first: (N,) the first one of each.
        weights: (N, taps) from it on, whole numbers with the same sum each.
    """

    first: IntArray
    weights: npt.NDArray[np.int16]


@lru_cache(maxsize=512)
def _axis(source: int, target: int, bits: int) -> TileAxis:
    """Bilinear weights; of a smaller image they reach as far as its samples are apart."""
    step = source / target
    reach = max(1.0, step)
    middle = (np.arange(target) + 0.5) * step - 0.5
    wanted = (np.floor(middle - reach) + 1)[:, None] + np.arange(int(np.ceil(2 * reach)))
    parts = np.maximum(0, 1 - np.abs(wanted - middle[:, None]) / reach)
    taps = min(wanted.shape[1], source)
    first = np.clip(wanted[:, 0], 0, source - taps).astype(np.int32)
    inside = np.clip(wanted, 0, source - 1).astype(np.int32) - first[:, None]
    weights = np.zeros((target, taps))
    np.add.at(weights, (np.arange(target)[:, None], inside), parts)
    total = np.cumsum(weights, axis=1)
    steps = np.rint(total / total[:, -1:] * (1 << bits))
    return TileAxis(first, np.diff(steps, axis=1, prepend=0).astype(np.int16))


def axes(
    width: int, height: int, to_width: int, to_height: int
) -> tuple[tuple[TileAxis, TileAxis], ...]:
    """Across and down, of luma and of chroma: `to_width` and `to_height` are even."""
    return (
        (_axis(width, to_width, _COLUMN_BITS), _axis(height, to_height, _ROW_BITS)),
        (
            _axis((width + 1) // 2, to_width // 2, _COLUMN_BITS),
            _axis((height + 1) // 2, to_height // 2, _ROW_BITS),
        ),
    )


@lru_cache(maxsize=64)
def recoloring(source: ColorSpace, target: ColorSpace) -> IntArray | None:
    """(3, 4): the parts of Y, U - 128, V - 128 and 1 in each component; None: they stay."""
    if source == target:
        return None
    m = color_matrix(source)
    rgb = np.array(
        [[m.luma_gain, 0, m.red_v], [m.luma_gain, m.green_u, m.green_v], [m.luma_gain, m.blue_u, 0]]
    )
    matrix, offset = yuv_matrix(target)
    parts = matrix @ rgb
    rows = np.column_stack((parts, offset - parts[:, 0] * m.luma_zero))
    whole: IntArray = np.rint(rows * (1 << _COLOR_BITS)).astype(np.int32)
    return whole
