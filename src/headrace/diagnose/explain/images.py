"""Images of an explanation: the network's input, the heat of its candidates, class maps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from headrace._core.types import Array
from headrace.config.enums import ColorFormat, TensorOrder
from headrace.media.draw.colors import class_color

if TYPE_CHECKING:
    from headrace.infer.candidates import Candidates
    from headrace.infer.preprocess import Preprocessor
    from headrace.meta import SegmentationMeta

Rgb = npt.NDArray[np.uint8]

_CELLS = 160  # of a heat map along its longer side
_MOST = 4000  # boxes painted, the best ones
_OPAQUE = 0.75
# From no score to a score of 1: dark violet, red, yellow.
_STOPS = np.array([(60, 0, 90), (200, 40, 60), (255, 140, 0), (255, 240, 90)], np.float32)


def input_image(tensor: Array, pre: Preprocessor) -> Rgb:
    """Undo the normalisation of a network input, for people.

    Args:
        tensor: one item as the network gets it, of the shape of `pre`.
        pre: the scaling that made it.

    Returns:
        (height, width, 3) uint8 RGB; what lies beyond a byte is cut.
    """
    planes = np.asarray(tensor, np.float32)
    if pre.order == TensorOrder.NCHW:
        planes = planes.transpose(1, 2, 0)
    mean: Any = 0.0
    if pre.mean is not None:
        mean = pre.mean
    elif pre.offsets:
        mean = np.array(pre.offsets, np.float32)
    levels = np.nan_to_num(planes / np.float32(pre.scale or 1) + mean, nan=0.0)
    image = np.clip(np.rint(levels), 0, 255).astype(np.uint8)
    if image.shape[2] == 1:
        return np.repeat(image, 3, axis=2)
    if pre.color_format == ColorFormat.BGR:
        image = image[..., ::-1]
    return np.ascontiguousarray(image)


def heat_image(under: Rgb, candidates: Candidates) -> Rgb:
    """Paint the best score at every place over an image.

    Args:
        under: (height, width, 3) uint8 RGB, the network's input.
        candidates: with boxes in pixels of that input.

    Returns:
        (height, width, 3) uint8 RGB; places of no candidate are darker and grey.
    """
    height, width = under.shape[:2]
    step = max(1.0, max(height, width) / _CELLS)
    rows, columns = max(1, round(height / step)), max(1, round(width / step))
    heat = np.zeros((rows, columns), np.float32)
    scores = np.nan_to_num(candidates.detections.scores, nan=0.0)
    order = np.argsort(scores, kind="stable")[-_MOST:]  # the best is painted last
    limits = np.array([columns, rows, columns, rows])
    corners = np.nan_to_num(candidates.detections.boxes[order].astype(np.float64))
    corners[:, 2:] += corners[:, :2]
    corners = corners / (width, height, width, height) * limits
    first = np.clip(np.floor(corners[:, :2]), 0, limits[:2] - 1).astype(int)
    last = np.clip(np.ceil(corners[:, 2:]), 1, limits[2:]).astype(int)
    painted = zip(first.tolist(), last.tolist(), scores[order].tolist(), strict=True)
    for (x1, y1), (x2, y2), score in painted:
        heat[y1 : max(y2, y1 + 1), x1 : max(x2, x1 + 1)] = score
    full = np.asarray(
        Image.fromarray(heat).resize((width, height), Image.Resampling.BILINEAR), np.float32
    )
    full = np.clip(full, 0, 1)[..., None]
    grey = under.mean(axis=2, keepdims=True) * 0.55
    alpha = np.where(full > 0, _OPAQUE * (0.35 + 0.65 * full), 0)
    blended = grey * (1 - alpha) + _colours(full[..., 0]) * alpha
    painted_over: Rgb = np.clip(blended, 0, 255).astype(np.uint8)
    return painted_over


def _colours(values: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """(..., 3) colours of values in 0..1."""
    position = values * (len(_STOPS) - 1)
    low = np.minimum(position.astype(int), len(_STOPS) - 2)
    share = (position - low)[..., None]
    mixed: npt.NDArray[np.float32] = _STOPS[low] * (1 - share) + _STOPS[low + 1] * share
    return mixed


def map_color(class_id: int) -> tuple[int, int, int]:
    """The colour of a class in a class map; dark grey for -1, which is no class."""
    return class_color(class_id) if class_id >= 0 else (48, 48, 48)


def class_image(segmentation: SegmentationMeta) -> Rgb:
    """A class map with a colour for each class; pixels without a class are dark grey."""
    classes = np.unique(segmentation.class_map)
    colours = np.array([map_color(value) for value in classes.tolist()], np.uint8).reshape(-1, 3)
    image: Rgb = colours[np.searchsorted(classes, segmentation.class_map)]
    return image
