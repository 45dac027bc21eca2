"""Heads of corner boxes with a score for each class, before suppression. Network pixels."""

from __future__ import annotations

from functools import partial

import numpy as np

from headrace.infer.parsers.boxes import best_class, clipped_corners
from headrace.infer.parsers.head import Arrays, Dims, Head, Layout, Out
from headrace.infer.parsers.keypoints import posed
from headrace.meta.detections import Detections
from headrace.meta.layers import DetectionParams, NetworkInfo

_HALF = np.float32(0.5)


def _corners(
    arrays: Arrays,
    network: NetworkInfo,
    params: DetectionParams,
    *,
    columns: bool = False,
    first: int = 4,
) -> Detections:
    """[N, first+C] or its transpose: x1, y1, x2, y2, C scores from column `first` on."""
    rows = arrays[0].T if columns else arrays[0]
    index, class_ids, scores = best_class(rows[:, first:], params.per_class_threshold)
    x1, y1, x2, y2 = rows[index, :4].T
    return clipped_corners(x1, y1, x2, y2, network.width, network.height, scores, class_ids)


def _posed(arrays: Arrays, network: NetworkInfo, params: DetectionParams) -> Detections:
    """[N, 4] corners, [N, C] scores, [N, K, 2] points and [N, K] their scores."""
    boxes, scores, points, visible = arrays
    index, class_ids, best = best_class(scores, params.per_class_threshold)
    keypoints = np.concatenate([points[index], visible[index][..., None]], axis=2)
    x1, y1, x2, y2 = boxes[index].T
    return posed((x1, y1, x2, y2), best, class_ids, keypoints, network)


def _rotated(arrays: Arrays, network: NetworkInfo, params: DetectionParams) -> Detections:
    """[N, 5] centre boxes with their angle in radians, [N, C] scores."""
    boxes, scores = arrays
    index, class_ids, best = best_class(scores, params.per_class_threshold)
    rows = boxes[index]
    whole = np.isfinite(rows).all(axis=1)
    x, y, w, h, angles = rows[whole].T
    upright = np.stack([x - w * _HALF, y - h * _HALF, w, h], axis=1)
    return Detections(upright, best[whole], class_ids[whole], angles=angles)


def _tall(dims: Dims, network: NetworkInfo | None) -> bool:
    return dims["N"] > 4 + dims["C"]


_BEST = "best of C scores >= T[class]"

HEADS = (
    Head(
        "HeadraceParseYoloCorners",
        f"YOLO9, SSD, RTMDet, PicoDet of LibreYOLO, either orientation: corner boxes in pixels, "
        f"{_BEST}",
        (
            Layout((Out("4+C N"),), partial(_corners, columns=True), _tall, suggested=False),
            Layout((Out("N 4+C"),), _corners, _tall, suggested=False),
        ),
        strict_classes=True,
    ),
    Head(
        "HeadraceParseFcos",
        "FCOS of LibreYOLO, YOLO26 of Luxonis, either orientation: corner boxes in pixels, a "
        f"column that is not used (the pyramid's level, or 1), {_BEST}",
        (
            Layout(
                (Out("5+C N"),), partial(_corners, columns=True, first=5), _tall, suggested=False
            ),
            Layout((Out("N 5+C"),), partial(_corners, first=5), _tall, suggested=False),
        ),
        strict_classes=True,
    ),
    Head(
        "HeadraceParseYoloNasPose",
        f"YOLO-NAS pose: corner boxes in pixels, {_BEST}, K points and their scores",
        (
            Layout(
                (
                    Out("N 4", ("boxes",)),
                    Out("N C", ("scores",)),
                    Out("N K 2", ("keypoints_xy",)),
                    Out("N K", ("keypoints_conf",)),
                ),
                _posed,
            ),
        ),
        strict_classes=True,
    ),
    Head(
        "HeadraceParseBoxesScoresObb",
        f"YOLO-NAS obb: centre boxes in pixels with their angle, {_BEST}",
        (Layout((Out("N 5"), Out("N C")), _rotated, suggested=False),),
        strict_classes=True,
    ),
)
