"""Text: lines in a map of probabilities, characters in a row of them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from headrace._core.errors import ParserError
from headrace.infer.parsers.boxes import clipped_corners, first_threshold, to_float32
from headrace.infer.parsers.head import CTC, Arrays, Head, Layout, Out
from headrace.meta.detections import Detections, FloatArray
from headrace.meta.layers import (
    Classification,
    ClassifierParams,
    DetectionParams,
    Layer,
    NetworkInfo,
)

_INSIDE = np.float32(0.3)  # of a line's core; no key of a config says so
_GROWTH = 2.0  # cores are shrunk: boxes grow by their area times this over their circumference
_SPECK = 3  # narrower regions, in cells, are none


def _text_regions(arrays: Arrays, network: NetworkInfo, params: DetectionParams) -> Detections:
    """[1, H, W] of probabilities: connected regions above 0.3, their mean >= T[0], grown."""
    if not arrays[0].size:
        return Detections.empty()
    boxes, scores = regions(arrays[0][0], _INSIDE)
    size = boxes[:, 2:] - boxes[:, :2]
    real = (size.min(axis=1, initial=np.inf) >= _SPECK) & (scores >= first_threshold(params))
    boxes, size, scores = boxes[real], size[real], scores[real]
    reach = _GROWTH * size.prod(axis=1, keepdims=True) / (2 * size.sum(axis=1, keepdims=True))
    rows, columns = arrays[0].shape[1:]
    cell = np.tile([network.width / columns, network.height / rows], 2)
    grown = np.hstack((boxes[:, :2] - reach, boxes[:, 2:] + reach)) * cell
    x1, y1, x2, y2 = grown.astype(np.float32).T
    classes = np.zeros(len(scores), np.int32)
    return clipped_corners(x1, y1, x2, y2, network.width, network.height, scores, classes)


def regions(likely: FloatArray, limit: np.float32) -> tuple[npt.NDArray[np.float64], FloatArray]:
    """Connected regions of a map's values above `limit`; diagonal neighbours touch.

    Args:
        likely: (H, W).
        limit: the least value, not itself inside.

    Returns:
        (N, 4) left, top, right, bottom in cells, the last two exclusive; (N,) mean of each region.
    """
    height, width = likely.shape
    mask = np.zeros((height, width + 2), np.int8)
    mask[:, 1:-1] = likely > limit
    steps = np.diff(mask, axis=1)
    rows, starts = np.nonzero(steps == 1)  # runs of cells, row by row
    ends = np.nonzero(steps == -1)[1]
    if not len(rows):
        return np.empty((0, 4)), np.empty(0, np.float32)
    # The runs of the next row that touch a run are neighbours in the list.
    stride = width + 2
    first = np.searchsorted(rows * stride + ends, (rows + 1) * stride + starts, "left")
    last = np.searchsorted(rows * stride + starts, (rows + 1) * stride + ends, "right")
    count = last - first
    above = np.repeat(np.arange(len(rows)), count)
    below = np.arange(len(above)) + np.repeat(first - np.cumsum(count) + count, count)
    region = _joined(len(rows), above, below)
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


def _joined(
    count: int, above: npt.NDArray[np.intp], below: npt.NDArray[np.intp]
) -> npt.NDArray[np.intp]:
    """Number of the group of each run: those that pairs connect, from 0 without gaps."""
    group = np.arange(count)
    while (group[above] != group[below]).any():
        low = np.minimum(group[above], group[below])
        np.minimum.at(group, group[above], low)
        np.minimum.at(group, group[below], low)
        while (group != group[group]).any():
            group = group[group]
    return np.unique(group, return_inverse=True)[1]


HEADS = (
    Head(
        "HeadraceParseTextRegions",
        "PaddleOCR's text detectors: one map of probabilities, regions above 0.3, mean >= T[0]",
        (Layout((Out("1 H W"),), _text_regions, first=True),),
        suggested=False,
    ),
)


def parse_ctc(
    layers: Mapping[str, Layer], network: NetworkInfo, params: ClassifierParams
) -> Classification:
    """Read a line of text: the best character of each step, repeats and blanks left out.

    The first layer is (T, K): for T steps from left to right the probabilities of blank, of the
    characters of the label file, one a line, and maybe of a space. The confidence is the mean over
    the characters, compared with `classifier-threshold`.

    Raises:
        ParserError: the layer is not such a table, or the label file has other characters.
    """
    layer = next(iter(layers.values()), None)
    known = len(params.labels)
    if layer is None or len(layer.shape) != 2 or layer.shape[1] - known not in (1, 2):
        raise ParserError(
            f"{layer!r} does not fit a label file of {known} characters",
            where=f"parse-classifier-func-name={CTC}",
            expected="one layer (T, K) with K one or two more than characters: blank and space",
            fix="labelfile-path names the model's dictionary, one character a line",
        )
    steps = to_float32(layer.data)
    best = steps.argmax(axis=1)
    read = (best > 0) & np.append(True, best[1:] != best[:-1])
    # a semicolon parts the fields of a label file, so that its own line is empty
    characters = [record[0] or ";" for record in params.labels] + [" "]
    text = "".join(characters[i - 1] for i in best[read].tolist()).strip()
    classification = Classification()
    if text:
        sure = float(steps.max(axis=1)[read].mean())
        if sure > params.threshold:
            classification.add(0, 0, sure, text)
            classification.text = text + " "
    return classification
