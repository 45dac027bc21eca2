"""Prior boxes of SSD: sizes in a cell, and the boxes of a grid of cells."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt


def cell_ratios(aspect_ratios: Sequence[float], *, flip: bool) -> list[float]:
    """1, then each new ratio, with `flip` followed by its inverse."""
    ratios = [1.0]
    for ratio in aspect_ratios:
        if all(abs(ratio - known) >= 1e-6 for known in ratios):
            ratios += [ratio, 1 / ratio] if flip else [ratio]
    return ratios


def cell_sizes(
    least: Sequence[float], largest: Sequence[float], ratios: Sequence[float]
) -> list[tuple[float, float]]:
    """Return width and height of the boxes of a cell.

    For each minimum: its square, its larger square (if there are maxima), its other ratios.

    Args:
        least: minimum sizes.
        largest: as many maximum sizes, or none.
        ratios: as `cell_ratios` gives them.
    """
    sizes = []
    for i, small in enumerate(least):
        sizes.append((small, small))
        if largest:
            sizes.append((math.sqrt(small * largest[i]),) * 2)
        sizes += [(small * math.sqrt(r), small / math.sqrt(r)) for r in ratios[1:]]
    return sizes


def prior_boxes(
    cells: tuple[int, int],
    sizes: Sequence[tuple[float, float]],
    image: tuple[float, float],
    step: tuple[float, float],
    offset: float,
    *,
    clip: bool = False,
) -> npt.NDArray[np.float64]:
    """Corners x1, y1, x2, y2 in 0..1 of the image: (rows, columns, sizes, 4).

    Args:
        cells: rows and columns of the feature map.
        sizes: width and height of each box of a cell, in pixels.
        image: its height and width in pixels.
        step: height and width of a cell in pixels.
        offset: of the centre in its cell; 0.5 is the middle.
        clip: cut boxes to the image.
    """
    height, width = cells
    boxes = np.empty((height, width, len(sizes), 4), np.float64)
    half = np.array(sizes, np.float64).reshape(-1, 2) / 2
    centre_x = ((np.arange(width) + offset) * step[1])[None, :, None]
    centre_y = ((np.arange(height) + offset) * step[0])[:, None, None]
    boxes[..., 0] = (centre_x - half[:, 0]) / image[1]
    boxes[..., 1] = (centre_y - half[:, 1]) / image[0]
    boxes[..., 2] = (centre_x + half[:, 0]) / image[1]
    boxes[..., 3] = (centre_y + half[:, 1]) / image[0]
    return boxes.clip(0, 1) if clip else boxes
