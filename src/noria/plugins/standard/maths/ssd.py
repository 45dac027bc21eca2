"""Boxes from priors, as SSD codes them. Source: standard-plugins spec 3.5."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

CODES = ("CORNER", "CENTER_SIZE", "CORNER_SIZE", "TF_CENTER")
"""`codeType` 0 to 3."""


def decode(codes: Array, priors: Array, variances: Array | None, code: str) -> Array:
    """Corners x1, y1, x2, y2.

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
