"""The three parsers of the configs here: text boxes, orientation, text.

Each works on the raw output of one image or crop, as a whole tensor.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from headrace import Detections, Layer, NetworkInfo
from headrace.meta import Classification, ClassifierParams, DetectionParams

__all__ = ["parse_orientation", "parse_text", "parse_text_boxes"]

INSIDE = 0.3
"""Pixels of the probability map above this are text. No key of a config says so."""

GROWTH = 2.0
"""The map shows shrunk text; a box grows by its area times this over its circumference."""

MIN_SIDE = 3
"""Regions narrower than this, in pixels of the network, are specks."""

LONG = 9
"""Lines longer than this, in heights, are of class 1: another width of the reader suits them."""


def parse_text_boxes(
    layers: Mapping[str, Layer], network: NetworkInfo, params: DetectionParams
) -> Detections:
    """Upright boxes of lines of text, in network pixels.

    One layer (1, H, W): how likely each pixel belongs to the core of a line. Each connected region
    of likely pixels is a line; its score is their mean, compared with `pre-cluster-threshold`.
    Class 0 are lines up to `LONG`, class 1 longer ones.
    """
    (layer,) = layers.values()
    likely = layer.data.reshape(network.height, network.width)
    boxes, scores = regions(likely, INSIDE)
    size = boxes[:, 2:] - boxes[:, :2]
    real = (size.min(axis=1) >= MIN_SIDE) & (scores >= params.min_threshold)
    boxes, size, scores = boxes[real], size[real], scores[real]
    reach = GROWTH * size.prod(axis=1, keepdims=True) / (2 * size.sum(axis=1, keepdims=True))
    boxes = np.hstack((boxes[:, :2] - reach, boxes[:, 2:] + reach))
    boxes = np.clip(boxes, 0, np.tile([network.width, network.height], 2)).astype(np.float32)
    width, height = (boxes[:, 2:] - boxes[:, :2]).T
    return Detections.from_xyxy(boxes, scores, (width > LONG * height).astype(np.int32))


def parse_orientation(
    layers: Mapping[str, Layer], network: NetworkInfo, params: ClassifierParams
) -> Classification:
    """The label `180` for a line that stands on its head, nothing for others.

    One layer (2,): probabilities of 0 and 180 degrees, compared with `classifier-threshold`.
    """
    (layer,) = layers.values()
    found = Classification()
    if layer.data[1] > params.threshold:
        found.add(0, 1, float(layer.data[1]))  # the label comes from the label file
    return found


def parse_text(
    layers: Mapping[str, Layer], network: NetworkInfo, params: ClassifierParams
) -> Classification:
    """The text of a line as the label of its only attribute.

    One layer (T, 2 + C): for T steps from left to right, probabilities of blank, of the C
    characters of the label file, and of a space. Equal neighbours are one character, blanks part
    characters (CTC). The confidence is the mean over the characters, compared with
    `classifier-threshold`.
    """
    (layer,) = layers.values()
    steps = layer.data
    if steps.shape[1] != len(params.labels) + 2:
        raise ValueError(f"{layer} does not fit a label file of {len(params.labels)} characters")
    best = steps.argmax(axis=1)
    read = (best > 0) & np.append(True, best[1:] != best[:-1])
    found = Classification()
    text = "".join(character(i, params) for i in best[read].tolist()).strip()
    if text:
        sure = float(steps.max(axis=1)[read].mean())
        if sure > params.threshold:
            found.add(0, 0, sure, text)
            found.text = text + " "
    return found


def character(index: int, params: ClassifierParams) -> str:
    """The character of class `index`; a semicolon parts fields, so that its own line is empty."""
    return " " if index > len(params.labels) else params.labels[index - 1][0] or ";"


def regions(
    likely: npt.NDArray[np.float32], limit: float
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float32]]:
    """Connected regions of a map's values above `limit`; diagonal neighbours touch.

    Args:
        likely: (H, W).

    Returns:
        (N, 4) left, top, right, bottom, the last two exclusive; (N,) the mean value of each region.
    """
    height, width = likely.shape
    mask = np.zeros((height, width + 2), np.int8)
    mask[:, 1:-1] = likely > limit
    steps = np.diff(mask, axis=1)
    rows, starts = np.nonzero(steps == 1)  # runs of pixels, row by row
    ends = np.nonzero(steps == -1)[1]
    if not len(rows):
        return np.empty((0, 4)), np.empty(0, np.float32)

    # Runs of the next row that touch each run are neighbours in the list.
    stride = width + 2
    first = np.searchsorted(rows * stride + ends, (rows + 1) * stride + starts, "left")
    last = np.searchsorted(rows * stride + starts, (rows + 1) * stride + ends, "right")
    count = last - first
    above = np.repeat(np.arange(len(rows)), count)
    below = np.arange(len(above)) + np.repeat(first - np.cumsum(count) + count, count)

    # Every run takes the least number of all runs it is connected with.
    group = np.arange(len(rows))
    while (group[above] != group[below]).any():
        low = np.minimum(group[above], group[below])
        np.minimum.at(group, group[above], low)
        np.minimum.at(group, group[below], low)
        while (group != group[group]).any():
            group = group[group]
    _, region = np.unique(group, return_inverse=True)

    n = int(region.max()) + 1
    boxes = np.tile(np.array([width, height, 0, 0], np.float64), (n, 1))
    left, top, right, bottom = boxes.T
    np.minimum.at(left, region, starts)
    np.minimum.at(top, region, rows)
    np.maximum.at(right, region, ends)
    np.maximum.at(bottom, region, rows + 1)
    sums = np.concatenate(([0.0], np.cumsum(likely, dtype=np.float64)))
    weight = sums[rows * width + ends] - sums[rows * width + starts]
    area = np.bincount(region, ends - starts)
    return boxes, (np.bincount(region, weight) / area).astype(np.float32)
