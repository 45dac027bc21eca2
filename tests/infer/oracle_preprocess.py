"""Pre-processing again, slowly: float64, one pixel at a time, straight from the definitions.

Shares no code with headrace: positions are exact fractions, YUV to RGB is the inverse of the matrix
that makes Y, Cb, Cr, and nothing is rounded; the caller compares bytes with levels.
Source: spec A.2 to A.4.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

NEAREST, BILINEAR, CUBIC, AREA, LANCZOS = range(5)
LUMA_WEIGHTS = {"bt601": (0.299, 0.114), "bt709": (0.2126, 0.0722), "bt2020": (0.2627, 0.0593)}


def kernel(filter: int, x: float) -> float:
    x = abs(x)
    if filter == BILINEAR:
        return max(0.0, 1 - x)
    if filter == CUBIC:
        if x <= 1:
            return 1.5 * x**3 - 2.5 * x**2 + 1
        return -0.5 * x**3 + 2.5 * x**2 - 4 * x + 2 if x < 2 else 0.0
    return float(np.sinc(x) * np.sinc(x / 3)) if x < 3 else 0.0


def weights(filter: int, d: int, start: int, extent: int, count: int) -> dict[int, float]:
    """Source sample -> weight for destination sample `d`, before clamping at the border."""
    centre = Fraction(start) + (d + Fraction(1, 2)) * Fraction(extent, count)
    if filter == NEAREST:
        return {math.floor(centre): 1.0}
    if filter == AREA:
        left, right = centre - Fraction(extent, 2 * count), centre + Fraction(extent, 2 * count)
        found = {
            i: float(min(right, i + 1) - max(left, i))
            for i in range(math.floor(left), math.ceil(right))
        }
    else:
        near = range(math.floor(centre) - 4, math.floor(centre) + 5)
        found = {i: kernel(filter, float(i + Fraction(1, 2) - centre)) for i in near}
    total = sum(found.values())
    return {i: w / total for i, w in found.items() if w}


def clamped(found: dict[int, float], low: int, high: int) -> dict[int, float]:
    result: dict[int, float] = {}
    for i, w in found.items():
        at = min(max(i, low), high - 1)
        result[at] = result.get(at, 0.0) + w
    return result


def scale_plane(plane, filter, src, dst_size, limit):
    """(dh, dw) float64 levels of one (h, w) plane; `limit` is its width and height."""
    left, top, width, height = src
    dw, dh = dst_size
    columns = [
        clamped(weights(filter, d, left, width, dw), left, min(left + width, limit[0]))
        for d in range(dw)
    ]
    rows = [
        clamped(weights(filter, d, top, height, dh), top, min(top + height, limit[1]))
        for d in range(dh)
    ]
    out = np.zeros((dh, dw))
    for y, row in enumerate(rows):
        for x, column in enumerate(columns):
            out[y, x] = sum(
                wy * wx * float(plane[sy, sx])
                for sy, wy in row.items()
                for sx, wx in column.items()
            )
    return out


def yuv_to_rgb(y, u, v, color: str):
    name, _, full = color.partition("-")
    red, blue = LUMA_WEIGHTS[name]
    green = 1 - red - blue
    forward = np.array(
        [
            [red, green, blue],
            [-red / (2 * (1 - blue)), -green / (2 * (1 - blue)), 0.5],
            [0.5, -green / (2 * (1 - red)), -blue / (2 * (1 - red))],
        ]
    )
    if full:
        ycc = np.stack([y / 255, (u - 128) / 255, (v - 128) / 255])
    else:
        ycc = np.stack([(y - 16) / 219, (u - 128) / 224, (v - 128) / 224])
    return np.tensordot(np.linalg.inv(forward), ycc, 1) * 255


def levels(frame, src, dst_size, filter: int, model: str):
    """(channels, dh, dw) float64 levels in 0 ... 255 of the scaled crop, in the model's order."""
    size, half = (frame.width, frame.height), ((frame.width + 1) // 2, (frame.height + 1) // 2)
    half_src = tuple(v // 2 for v in src)
    planes = frame.planes

    def full(plane):
        return scale_plane(plane, filter, src, dst_size, size)

    if frame.format in ("i420", "nv12"):
        y = full(planes[0])
        if frame.format == "nv12":
            chroma = [planes[1][..., 0], planes[1][..., 1]]
        else:
            chroma = list(planes[1:])
        u, v = (scale_plane(plane, filter, half_src, dst_size, half) for plane in chroma)
        if model == "gray":
            neutral = np.full_like(y, 128.0)
            rgb = yuv_to_rgb(y, neutral, neutral, frame.color)
        else:
            rgb = yuv_to_rgb(y, u, v, frame.color)
    elif frame.format == "gray":
        rgb = np.stack([full(planes[0])] * 3)
    else:
        order = (0, 1, 2) if frame.format == "rgb" else (2, 1, 0)
        rgb = np.stack([full(planes[0][..., c]) for c in order])
    if model == "gray":
        rgb = (0.299 * rgb[0] + 0.587 * rgb[1] + 0.114 * rgb[2])[None]
    elif model == "bgr":
        rgb = rgb[::-1]
    return np.clip(rgb, 0, 255)


def normalise(byte, scale: float, mean) -> np.ndarray:
    """f32(scale · f32(byte - mean)) element by element."""
    out = np.empty(byte.shape, np.float32)
    mean = np.broadcast_to(np.asarray(mean, np.float32), byte.shape)
    for i in np.ndindex(byte.shape):
        out[i] = np.float32(scale) * (np.float32(byte[i]) - mean[i])
    return out
