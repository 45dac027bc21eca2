"""Where a box will be: constant velocity."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Corners = npt.NDArray[np.float64]


def predict(
    corners: Corners,
    velocities: Corners,
    frames: npt.NDArray[Any] | int,
    rigid: npt.NDArray[np.bool_] | None = None,
) -> Corners:
    """Boxes some frames later.

    Each edge moves at its own speed, so that a box that enters the picture grows. A rigid box, or
    one that would turn inside out, keeps its size and moves as its centre does.

    Args:
        corners: (N, 4) left, top, right, bottom.
        velocities: (N, 4) pixels per frame of each edge.
        frames: how many frames later, one number or (N,).
        rigid: (N,) which boxes keep their size, or None.
    """
    step = velocities * np.reshape(frames, (-1, 1))
    moved: Corners = corners + step
    stiff = (moved[:, 2:] - moved[:, :2] < 1).any(axis=1)
    if rigid is not None:
        stiff |= rigid
    if stiff.any():
        shift = (step[stiff, :2] + step[stiff, 2:]) / 2
        moved[stiff] = corners[stiff] + np.concatenate((shift, shift), axis=1)
    return moved


def inside(corners: Corners, width: int, height: int) -> Corners:
    """The part of boxes that lies in a picture; a box outside has no area."""
    low = np.zeros(4)
    high = np.array([width, height, width, height], np.float64)
    clipped: Corners = np.clip(corners, low, high)
    return clipped
