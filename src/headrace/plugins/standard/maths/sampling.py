"""Bilinear sampling of regions of feature maps. The loops are native (`plugin_sample*.cpp`)."""

from __future__ import annotations

from enum import IntEnum

import numpy as np
import numpy.typing as npt

from headrace._core import _native
from headrace._core.types import Array

FloatArray = npt.NDArray[np.float32]

MAX_SAMPLES = 4096
"""Samples of one bin along an axis; only absurd regions ask for more."""


class Outside(IntEnum):
    """The value of a sample outside of the map; the numbers are those of `plugins/sample.h`."""

    EDGE = 0
    ZERO = 1
    ZERO_FAR = 2


def sample_regions(
    features: Array,
    images: Array,
    starts: Array,
    steps: Array,
    counts: Array | int,
    size: tuple[int, int],
    *,
    offset: float,
    outside: Outside,
    largest: bool = False,
    out: FloatArray | None = None,
    rows: Array | None = None,
) -> FloatArray:
    """Bins of regions, each the mean (or the largest) of samples on a grid.

    Sample k of bin i lies at start + step * i + step * (k + offset) / count, on each axis.

    Args:
        features: (B, C, H, W).
        images: (R,), the image of each region.
        starts: (R, 2), y and x, in places of the map.
        steps: (R, 2), y and x, size of a bin.
        counts: (R, 2) or one number, samples of a bin along y and x.
        size: bins along y and x.
        offset: 0.5 puts samples in the middle of their part of the bin.
        outside: value of a sample outside of the map.
        largest: take the largest of the weighted corners of all samples.
        out: array to fill; None: a new one of R regions.
        rows: region i fills `out[rows[i]]`; None: `out[i]`.

    Returns:
        (R, C, bins y, bins x) float32, or `out`.
    """
    number = len(images)
    grids = np.stack([starts[:, 0], steps[:, 0], starts[:, 1], steps[:, 1]], axis=1)
    many = np.broadcast_to(np.asarray(counts), (number, 2)).clip(0, MAX_SAMPLES)
    if out is None:
        out = np.empty((number, features.shape[1], *size), np.float32)
    if rows is None:
        rows = np.arange(number)
    _native.roi_sample(
        np.ascontiguousarray(features, np.float32),
        np.ascontiguousarray(images, np.int32),
        np.ascontiguousarray(rows, np.int32),
        np.ascontiguousarray(grids, np.float32),
        np.ascontiguousarray(many, np.int32),
        offset,
        int(outside),
        largest,
        out,
    )
    return out


def adaptive_counts(extents: Array, size: tuple[int, int], *, least: int) -> Array:
    """Samples of a bin of regions with `extents` (R, 2): a sample per place of the map."""
    counts = np.ceil(np.nan_to_num(extents / np.array(size, np.float32), posinf=MAX_SAMPLES))
    return counts.clip(least, MAX_SAMPLES).astype(np.int32)


def crop_and_resize(
    features: Array, images: Array, boxes: Array, size: tuple[int, int]
) -> FloatArray:
    """TensorFlow's crop_and_resize, bilinear, 0 outside.

    Args:
        features: (B, C, H, W).
        images: (R,), the image of each region.
        boxes: (R, 4), y1, x1, y2, x2 in 0..1 of the map.
        size: rows and columns of the crops.

    Source: standard-plugins spec 4.2.
    """
    last = np.array(features.shape[2:], np.float32) - 1
    first, second = boxes[:, :2] * last, boxes[:, 2:] * last
    bins = np.array(size, np.float32)
    steps = np.where(bins > 1, (second - first) / np.maximum(bins - 1, 1), 0)
    starts = np.where(bins > 1, first, (first + second) * np.float32(0.5))
    return sample_regions(features, images, starts, steps, 1, size, offset=0, outside=Outside.ZERO)


def max_pool_regions(
    features: Array, images: Array, rois: Array, size: tuple[int, int], scale: float
) -> FloatArray:
    """Caffe's ROI pooling: the largest value of each bin of whole places; an empty bin is 0.

    Args:
        features: (B, C, H, W).
        images: (R,), the image of each region.
        rois: (R, 4), x1, y1, x2, y2 in pixels.
        size: bins along y and x.
        scale: of `rois` to places of the map.

    Returns:
        (R, C, bins y, bins x).
    """
    out = np.empty((len(rois), features.shape[1], *size), np.float32)
    limit = np.float32(2**24)
    corners = np.nan_to_num(rois * np.float32(scale)).clip(-limit, limit)
    # C's round of positive numbers
    bounds = np.floor(corners + np.float32(0.5)).astype(np.int64)[:, [1, 0, 3, 2]]
    _native.roi_max_pool(
        np.ascontiguousarray(features, np.float32),
        np.ascontiguousarray(images, np.int32),
        np.ascontiguousarray(bounds),
        out,
    )
    return out
