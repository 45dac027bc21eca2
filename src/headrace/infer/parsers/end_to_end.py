"""Heads that end in a selection, as YOLO26 and `nms=True` of Ultralytics: a row is one object.

A row is a box, its score and its class, then mask coefficients, keypoints or an angle. All in
network pixels but where a head says otherwise. Rows of a score below the threshold, as those that
fill up the table, go.
"""

from __future__ import annotations

import numpy as np

from headrace.infer.parsers.boxes import (
    class_numbers,
    clipped_corners,
    column_thresholds,
)
from headrace.infer.parsers.head import Arrays, Dims, Head, InstanceHead, Layout, Out, UnfitError
from headrace.infer.parsers.keypoints import points_of, posed
from headrace.infer.parsers.segmentation import prototype_masks
from headrace.meta.detections import Detections, FloatArray, IntArray
from headrace.meta.layers import DetectionParams, NetworkInfo

_MOST_ROWS = 1000  # a selection keeps 100 to 300
_HALF = np.float32(0.5)


def _passing(rows: FloatArray, params: DetectionParams) -> tuple[FloatArray, IntArray]:
    """Rows with score >= T[class], and their classes."""
    class_ids = class_numbers(rows[:, 5])
    keep = rows[:, 4] >= column_thresholds(params, class_ids)
    return rows[keep], class_ids[keep]


def _masked(arrays: Arrays, network: NetworkInfo, params: DetectionParams) -> Detections:
    """[N, 6+M] corners, score, class, coefficients; [M, H, W] prototypes."""
    rows, class_ids = _passing(arrays[0], params)
    x1, y1, x2, y2 = rows[:, :4].T
    # The indices ride along as scores: what is dropped for its size takes its mask along.
    indices = np.arange(len(rows), dtype=np.float32)
    detections = clipped_corners(x1, y1, x2, y2, network.width, network.height, indices, class_ids)
    kept = detections.scores.astype(np.intp)
    detections.scores = rows[kept, 4]
    detections.masks = prototype_masks(arrays[1], rows[kept, 6:], detections.boxes, network)
    return detections


def _posed(arrays: Arrays, network: NetworkInfo, params: DetectionParams) -> Detections:
    """[N, 6+3K] or [N, 6+2K]: corners, score, class, x, y (, score) of each point."""
    values = arrays[0].shape[1] - 6
    if values % 3 and values % 2:
        raise UnfitError(
            f"{values} values of a row are left for keypoints",
            expected="3 (or 2) for each point behind box, score and class",
        )
    rows, class_ids = _passing(arrays[0], params)
    points = points_of(np.ascontiguousarray(rows[:, 6:]))
    x1, y1, x2, y2 = rows[:, :4].T
    return posed((x1, y1, x2, y2), rows[:, 4], class_ids, points, network)


def _rotated(arrays: Arrays, network: NetworkInfo, params: DetectionParams) -> Detections:
    """[N, 7]: centre box, score, class, angle in radians."""
    rows, class_ids = _passing(arrays[0], params)
    whole = np.isfinite(rows).all(axis=1)
    x, y, w, h, scores, _, angles = rows[whole].T
    boxes = np.stack([x - w * _HALF, y - h * _HALF, w, h], axis=1)
    return Detections(boxes, scores, class_ids[whole], angles=angles)


def _unit_centres(arrays: Arrays, network: NetworkInfo, params: DetectionParams) -> Detections:
    """[N, 6]: centre box in 0..1, score, class."""
    rows, class_ids = _passing(arrays[0], params)
    size = np.array([network.width, network.height], np.float32)
    centres, half = rows[:, :2] * size, rows[:, 2:4] * size * _HALF
    (x1, y1), (x2, y2) = (centres - half).T, (centres + half).T
    return clipped_corners(x1, y1, x2, y2, network.width, network.height, rows[:, 4], class_ids)


def _few(dims: Dims, network: NetworkInfo | None) -> bool:
    return dims["N"] <= _MOST_ROWS


def _persons(dims: Dims, network: NetworkInfo | None) -> bool:
    """As many values as 17 points of a person have, in not too many rows."""
    return dims["P"] == 6 + 3 * 17 and dims["N"] <= _MOST_ROWS


_ROW = "corner boxes in pixels, score >= T[class]"

HEADS = (
    Head(
        "HeadraceParseYoloEndPose",
        f"YOLO-pose with NMS inside, YOLO26-pose, P = 6+3K: {_ROW}, class, K points",
        (Layout((Out("N P"),), _posed, lambda dims, _: dims["P"] >= 8, _persons),),
    ),
    Head(
        "HeadraceParseYoloEndObb",
        "YOLO-obb with NMS inside, YOLO26-obb: centre boxes in pixels, score >= T[class], class, "
        "angle",
        (Layout((Out("N 7"),), _rotated, suggested=False),),
    ),
    Head(
        "HeadraceParseRTDETREnd",
        "RT-DETR with its selection inside: centre boxes in 0..1, score >= T[class], class",
        (Layout((Out("N 6"),), _unit_centres, likely=_few),),
    ),
)
INSTANCE_HEADS = (
    InstanceHead(
        "HeadraceParseYoloEndSeg",
        f"YOLO-seg with NMS inside, YOLO26-seg: {_ROW}, class, M coefficients; masks from "
        "prototypes",
        (Layout((Out("N 6+M"), Out("M H W")), _masked, _few, _few),),
    ),
)
