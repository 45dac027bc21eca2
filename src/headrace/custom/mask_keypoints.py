"""Keypoints that C++ instance parsers leave in the mask field of their objects.

The box records of the original have no field for landmarks. Pose and face parsers put them where
masks go, as a flat list of numbers: `mask_size` contradicts the mask's width and height then, which
are those of the network input.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np

from headrace._core.errors import ParserError
from headrace.meta import DetectionParams, Detections, Layer, NetworkInfo
from headrace.meta.detections import FloatArray

if TYPE_CHECKING:
    from headrace.custom.validate import CheckedParser

MOST_FAR_AWAY = 0.1
"""Share of points that may lie further outside of the network input than its own size."""


def keypoints_in(
    values: Sequence[FloatArray | None], network: NetworkInfo | None = None
) -> FloatArray | None:
    """Find keypoints in the mask fields of the objects of a frame.

    Args:
        values: an array for each of N objects, None for one without; of any shape, read flat:
            x, y, score of each point, or x, y.
        network: its input; coordinates must be in pixels of it. None believes any numbers.

    Returns:
        (N, K, 3) float32, x, y in network space and score; points without one score 1, those of an
        object without values 0. None if the values are no keypoints.
    """
    known = [value.reshape(-1) for value in values if value is not None and value.size]
    if len({value.size for value in known}) != 1:
        return None
    rows = np.stack(known)
    points = _triples(rows) if _are_triples(rows) else _pairs(rows)
    if points is None or (network is not None and not _in_pixels(points, network)):
        return None
    keypoints = np.zeros((len(values), points.shape[1], 3), np.float32)
    keypoints[[value is not None and value.size > 0 for value in values]] = points
    return keypoints


def _are_triples(rows: FloatArray) -> bool:
    """Decide for x, y, score; True also where the number of values leaves no choice."""
    if rows.shape[1] % 3:
        return False
    scores = rows[:, 2::3]
    return rows.shape[1] % 2 == 1 or bool(((scores >= 0) & (scores <= 1)).all())


def _triples(rows: FloatArray) -> FloatArray:
    return rows.reshape(len(rows), -1, 3)


def _pairs(rows: FloatArray) -> FloatArray | None:
    if rows.shape[1] % 2:
        return None
    pairs = rows.reshape(len(rows), -1, 2)
    return np.concatenate([pairs, np.ones_like(pairs[..., :1])], axis=2)


def _in_pixels(points: FloatArray, network: NetworkInfo) -> bool:
    """Decide whether points lie about the network input; values of 0 to 1 are no pixels."""
    coordinates = points[..., :2]
    size = np.array([network.width, network.height], np.float32)
    near = ((coordinates >= -size) & (coordinates <= 2 * size)).all(axis=2)
    return bool(near.mean() >= 1 - MOST_FAR_AWAY and np.nanmax(np.abs(coordinates)) > 2)


class MaskContent:
    """An instance parser of which the configuration states the content of masks.

    Attributes:
        where: library and function.
        notices: repairs of results, the parser's own.
    """

    def __init__(self, parser: CheckedParser, content: Literal["mask", "keypoints"]) -> None:
        self._parser, self._content = parser, content
        self.where, self.notices = parser.where, parser.notices

    def __call__(
        self, layers: Mapping[str, Layer], network: NetworkInfo, params: DetectionParams
    ) -> Detections:
        """Parse one item.

        Raises:
            ParserError: as of the parser; or masks are keypoints and have other numbers of values.
        """
        detections = self._parser(layers, network, params)
        if self._content == "mask":
            detections.keypoints = None
        elif detections.masks is not None:
            detections.keypoints = keypoints_in(detections.masks)
            if detections.keypoints is None:
                sizes = sorted({mask.size for mask in detections.masks if mask.size})
                raise ParserError(
                    f"the masks of a frame have {', '.join(map(str, sizes[:4]))} values, which "
                    "are no keypoints",
                    where=self.where,
                    expected="one number of values for all: x, y, score of each point, or x, y",
                    fix="mask-content=mask, if they are masks",
                )
            detections.raw_masks = [mask.reshape(-1) for mask in detections.masks]
            detections.masks = None
        return detections
