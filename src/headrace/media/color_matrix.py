"""From YUV to RGB: the six numbers of each colour space."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from headrace.media.pixel_format import ColorSpace, is_full

_WEIGHTS = {"bt601": (0.299, 0.114), "bt709": (0.2126, 0.0722), "bt2020": (0.2627, 0.0593)}


class ColorMatrix(NamedTuple):
    """R = Y + red_v·V, G = Y + green_u·U + green_v·V, B = Y + blue_u·U, all in levels 0 to 255.

    Y = (byte - luma_zero)·luma_gain; U, V = byte - 128. The native core takes the same six numbers.
    """

    luma_zero: float
    luma_gain: float
    red_v: float
    green_u: float
    green_v: float
    blue_u: float


def luma_weights(color: ColorSpace) -> tuple[float, float]:
    """Weights of red and blue in luma: ITU-R BT.601, BT.709, BT.2020 (non-constant luminance)."""
    return _WEIGHTS[color.value.removesuffix("-full")]


@cache
def color_matrix(color: ColorSpace) -> ColorMatrix:
    """The standard matrix of a colour space. Source: spec A.3."""
    (red, blue), full = luma_weights(color), is_full(color)
    green = 1 - red - blue
    luma, chroma = (1.0, 1.0) if full else (255 / 219, 255 / 224)
    red_v, blue_u = 2 * (1 - red) * chroma, 2 * (1 - blue) * chroma
    return ColorMatrix(
        luma_zero=0.0 if full else 16.0,
        luma_gain=luma,
        red_v=red_v,
        green_u=-blue_u * blue / green,
        green_v=-red_v * red / green,
        blue_u=blue_u,
    )
