"""Colours: one per class, easy to distinguish, and their values in a frame's own colour space."""

from __future__ import annotations

import colorsys
from functools import cache, lru_cache

import numpy as np

from headrace.media.color_matrix import luma_weights
from headrace.media.pixel_format import ColorSpace, is_full
from headrace.meta.detections import FloatArray

Rgb = tuple[int, int, int]

# Neighbouring ids are far apart in hue and all are light or strong enough to stand on a street.
_FIRST: tuple[Rgb, ...] = (
    (255, 59, 48),
    (10, 132, 255),
    (48, 209, 88),
    (255, 159, 10),
    (191, 90, 242),
    (100, 210, 255),
    (255, 214, 10),
    (255, 55, 145),
    (0, 199, 190),
    (172, 142, 104),
    (94, 92, 230),
    (160, 220, 60),
)
_GOLDEN = 0.618033988749895


@cache
def class_color(class_id: int) -> Rgb:
    """The colour of a class, 0..255: the same for the same id in every run."""
    if 0 <= class_id < len(_FIRST):
        return _FIRST[class_id]
    hue = (0.11 + class_id * _GOLDEN) % 1.0
    saturation = (0.9, 0.65, 0.75)[class_id % 3]
    r, g, b = colorsys.hsv_to_rgb(hue, saturation, (1.0, 0.95, 0.8)[class_id // 3 % 3])
    return round(255 * r), round(255 * g), round(255 * b)


def component_color(component_id: int, class_id: int) -> Rgb:
    """The colour of a class of one model of several: those of the first are `class_color`'s."""
    return class_color(class_id + 5 * (component_id - 1) if class_id >= 0 else class_id)


def readable_on(background: Rgb) -> Rgb:
    """Black or white, whichever is easier to read on `background`."""
    r, g, b = ((c / 255) ** 2.2 for c in background)
    luminance = 0.2126 * r + 0.7152 * g + 0.0722 * b
    return (0, 0, 0) if luminance > 0.36 else (255, 255, 255)


@cache
def yuv_matrix(space: ColorSpace) -> tuple[FloatArray, FloatArray]:
    """(3, 3) matrix and (3,) offset that turn RGB in 0..255 into Y, U, V of `space`."""
    red, blue = luma_weights(space)
    luma = np.array([red, 1 - red - blue, blue])
    rows = np.stack(
        (
            luma,
            (np.array([0, 0, 1.0]) - luma) / (2 * (1 - blue)),
            (np.array([1.0, 0, 0]) - luma) / (2 * (1 - red)),
        )
    )
    if is_full(space):
        return rows.astype(np.float32), np.array([0, 128, 128], np.float32)
    swing = np.array([[219], [224], [224]]) / 255
    return (rows * swing).astype(np.float32), np.array([16, 128, 128], np.float32)


@lru_cache(maxsize=4096)
def to_yuv(color: Rgb, space: ColorSpace) -> Rgb:
    """An RGB colour as Y, U, V bytes of `space`."""
    matrix, offset = yuv_matrix(space)
    y, u, v = np.clip(np.rint(matrix @ np.array(color, np.float32) + offset), 0, 255).tolist()
    return int(y), int(u), int(v)
