"""Greedy suppression inside a parser, for the heads whose original does it itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from noria.meta.detections import Detections


def suppressed(found: Detections, iou: float) -> npt.NDArray[Any]:
    """Indices that survive, best first: a box goes when a kept one of its class overlaps > `iou`.

    Axis-aligned boxes; ties keep their order. The loop runs over kept boxes, not candidates.
    """
    order = np.argsort(-found.scores, kind="stable")
    left, top, width, height = found.boxes.T
    right, bottom, area = left + width, top + height, width * height
    kept = []
    while len(order):
        best, order = order[0], order[1:]
        kept.append(best)
        w = np.minimum(right[best], right[order]) - np.maximum(left[best], left[order])
        h = np.minimum(bottom[best], bottom[order]) - np.maximum(top[best], top[order])
        common = np.maximum(w, 0) * np.maximum(h, 0)
        union = area[best] + area[order] - common
        same = found.class_ids[order] == found.class_ids[best]
        order = order[~(same & (common > np.float32(iou) * union))]
    return np.array(kept, np.intp)
