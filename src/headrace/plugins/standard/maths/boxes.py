"""Boxes from anchors and deltas, as two-stage detectors and SSD code them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from headrace._core.types import Array

FloatArray = npt.NDArray[np.float32]

LIMIT = math.log(1000 / 16)
"""Most that the logarithm of a size may grow by."""


def centred_anchors(
    rows: Sequence[int], columns: Sequence[int], sizes: Sequence[tuple[float, float]]
) -> FloatArray:
    """y1, x1, y2, x2 of boxes (height, width) around each row and column.

    Returns:
        (rows, columns, sizes, 4).
    """
    y, x = np.meshgrid(np.array(rows, np.float32), np.array(columns, np.float32), indexing="ij")
    centre = np.stack([y, x], axis=-1)[:, :, None]
    half = np.array(sizes, np.float32).reshape(-1, 2) / np.float32(2)
    return np.concatenate([centre - half, centre + half], axis=-1).astype(np.float32)


def decode_pixels(
    boxes: Array, deltas: Array, weights: Sequence[float], image: Sequence[int]
) -> FloatArray:
    """y1, x1, y2, x2 in pixels, edges included (+1), cut to the image.

    Args:
        boxes: (..., 4).
        deltas: (..., 4), dy, dx and the logarithms of the growth of height and width.
        weights: of the deltas; they are divided by them.
        image: height and width.
    Source: standard-plugins spec 4.5.
    """
    size = boxes[..., 2:] - boxes[..., :2] + np.float32(1)
    deltas = deltas / np.array(weights, np.float32)
    centre = boxes[..., :2] + size * np.float32(0.5) + deltas[..., :2] * size
    new = np.exp(np.minimum(deltas[..., 2:], np.float32(LIMIT))) * size
    first = centre - np.float32(0.5) * new
    corners = np.concatenate([first, first + new - np.float32(1)], axis=-1)
    last = np.array([image[0] - 1, image[1] - 1] * 2, np.float32)
    return np.asarray(np.clip(corners, 0, last), np.float32)


def decode_unit(boxes: Array, deltas: Array) -> FloatArray:
    """y1, x1, y2, x2 in 0..1; deltas times 0.1, 0.1, 0.2, 0.2.

    Source: standard-plugins spec 4.6.
    """
    deltas = deltas * np.array([0.1, 0.1, 0.2, 0.2], np.float32)
    size = boxes[..., 2:] - boxes[..., :2]
    centre = (boxes[..., :2] + boxes[..., 2:]) / np.float32(2) + deltas[..., :2] * size
    new = size * np.exp(deltas[..., 2:])
    first = centre - np.float32(0.5) * new
    return np.asarray(np.clip(np.concatenate([first, first + new], axis=-1), 0, 1), np.float32)


def descending(scores: Array, limit: int | None = None) -> npt.NDArray[np.intp]:
    """Rows by falling score, equal ones in order, NaN left out; the first `limit`."""
    rows = np.flatnonzero(scores == scores)
    if limit is not None and len(rows) > 4 * limit:
        least = np.partition(scores[rows], len(rows) - limit)[len(rows) - limit]
        rows = rows[scores[rows] >= least]
    return rows[np.argsort(-scores[rows], kind="stable")[:limit]]


CODES = ("CORNER", "CENTER_SIZE", "CORNER_SIZE", "TF_CENTER")
"""`codeType` 0 to 3."""


def decode(codes: Array, priors: Array, variances: Array | None, code: str) -> Array:
    """Corners x1, y1, x2, y2 from priors, as SSD codes them. Source: standard-plugins spec 3.5.

    Args:
        codes: (..., 4), what the network says of each prior.
        priors: (..., 4) corners; broadcast against `codes`.
        variances: (..., 4) factors of the codes; None if they are in the codes already.
        code: one of `CODES`.
    """
    if variances is not None:
        codes = codes * variances
    first, second = priors[..., :2], priors[..., 2:]
    size = second - first
    if code == "TF_CENTER":  # y before x
        codes = codes[..., [1, 0, 3, 2]]
    if code in ("CORNER", "CORNER_SIZE"):
        boxes = priors + (codes if code == "CORNER" else codes * np.concatenate([size, size], -1))
    else:
        centre = codes[..., :2] * size + (first + second) * np.float32(0.5)
        half = np.exp(codes[..., 2:]) * size * np.float32(0.5)
        boxes = np.concatenate([centre - half, centre + half], axis=-1)
    return boxes
