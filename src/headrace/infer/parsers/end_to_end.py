"""Heads that end in a selection, as YOLO26 and `nms=True` of Ultralytics: a row is one object.

A row is a box, its score and its class, then mask coefficients, keypoints or an angle. All in
network pixels but where a head says otherwise. Rows of a score below the threshold, as those that
fill up the table, go.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from headrace.infer.parsers.boxes import (
    class_numbers,
    clipped_corners,
    column_thresholds,
)
from headrace.infer.parsers.head import Arrays, Dims, Head, InstanceHead, Layout, Out, UnfitError
from headrace.infer.parsers.keypoints import points_of, posed
from headrace.infer.parsers.segmentation import prototype_masks
from headrace.infer.parsers.ssd_detr import top_scores
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


def _beside(
    arrays: Arrays, network: NetworkInfo, params: DetectionParams, *, order: str, unit: bool
) -> Detections:
    """[K, 4] corners, [K] scores and [K] class numbers, in any order: `order` has b, s, l."""
    boxes, scores, classes = (arrays[order.index(letter)] for letter in "bsl")
    class_ids = class_numbers(classes)
    keep = scores >= column_thresholds(params, class_ids)
    scale = np.array([network.width, network.height] * 2 if unit else [1] * 4, np.float32)
    x1, y1, x2, y2 = (boxes[keep] * scale).T
    return clipped_corners(
        x1, y1, x2, y2, network.width, network.height, scores[keep], class_ids[keep]
    )


def _queries_masked(arrays: Arrays, network: NetworkInfo, params: DetectionParams) -> Detections:
    """[Q, C] logits, [Q, 4] centre boxes in 0..1, [Q, H, W] masks over the whole input."""
    logits, boxes, masks = arrays
    if masks.size and masks.min() >= 0 and masks.max() <= 1:  # after a sigmoid
        even = np.clip(masks, _LEAST, 1 - _LEAST)
        masks = np.log(even / (1 - even))
    query, class_ids, scores = top_scores(logits, len(logits), params)
    size = np.array([network.width, network.height], np.float32)
    centres, half = boxes[query, :2] * size, boxes[query, 2:] * size * _HALF
    (x1, y1), (x2, y2) = (centres - half).T, (centres + half).T
    indices = np.arange(len(query), dtype=np.float32)
    detections = clipped_corners(x1, y1, x2, y2, network.width, network.height, indices, class_ids)
    kept = detections.scores.astype(np.intp)
    detections.scores = scores[kept]
    detections.masks = [
        prototype_masks(masks[row : row + 1], _ALONE, box[None], network)[0]
        for row, box in zip(query[kept], detections.boxes, strict=True)
    ]
    return detections


def _queries_rotated(arrays: Arrays, network: NetworkInfo, params: DetectionParams) -> Detections:
    """[Q, C] logits, [Q, 5] centre boxes in 0..1 and the angle in half turns."""
    logits, boxes = arrays
    query, class_ids, scores = top_scores(logits, len(logits), params)
    boxes = boxes[query]
    whole = np.isfinite(boxes).all(axis=1)
    size = np.array([network.width, network.height] * 2, np.float32)
    x, y, w, h = (boxes[whole, :4] * size).T
    corners = np.stack([x - w * _HALF, y - h * _HALF, w, h], axis=1)
    angles = boxes[whole, 4] * np.float32(np.pi)
    return Detections(corners, scores[whole], class_ids[whole], angles=angles)


_LEAST = np.float32(1e-6)
_ALONE = np.ones((1, 1), np.float32)  # weight of a mask that is no sum


def _few(dims: Dims, network: NetworkInfo | None) -> bool:
    return dims["N"] <= _MOST_ROWS


_ROW = "corner boxes in pixels, score >= T[class]"

_KINDS = {
    "b": Out("K 4"),
    "s": Out("K"),
    "l": Out("K", integers=True, exact=True),
}

HEADS = (
    *(
        Head(
            f"HeadraceParseBoxesLabels{suffix}",
            f"{who}, in any order: corner boxes in {space}, score >= T[class], integer class "
            "numbers",
            tuple(
                Layout(
                    tuple(_KINDS[letter] for letter in order),
                    partial(_beside, order=order, unit=bool(suffix)),
                    likely=lambda *_: True,
                )
                for order in ("lbs", "bls", "bsl", "lsb", "slb", "sbl")
            ),
        )
        for suffix, who, space in (
            ("", "RT-DETR, D-FINE, DEIM with labels inside", "pixels"),
            ("Unit", "Custom Vision with labels inside", "0..1"),
        )
    ),
    Head(
        "HeadraceParseYoloEndPose",
        f"YOLO-pose with NMS inside, YOLO26-pose, P = 6+3K: {_ROW}, class, K points",
        (Layout((Out("N P"),), _posed, lambda dims, _: dims["P"] >= 8, suggested=False),),
    ),
    Head(
        "HeadraceParseYoloEndObb",
        "YOLO-obb with NMS inside, YOLO26-obb: centre boxes in pixels, score >= T[class], class, "
        "angle",
        (Layout((Out("N 7"),), _rotated, suggested=False),),
    ),
    Head(
        "HeadraceParseDetrObb",
        "RT-DETR obb of LibreYOLO: as many of the best scores as queries, sigmoid >= T[class]; "
        "centre boxes in 0..1 and the angle in half turns",
        (Layout((Out("Q C", ("pred_logits",)), Out("Q 5", ("pred_boxes",))), _queries_rotated),),
        strict_classes=True,
    ),
    Head(
        "HeadraceParseRTDETREnd",
        "RT-DETR with its selection inside: centre boxes in 0..1, score >= T[class], class",
        (Layout((Out("N 6"),), _unit_centres, suggested=False),),
    ),
)
INSTANCE_HEADS = (
    InstanceHead(
        "HeadraceParseDetrSeg",
        "RF-DETR and other DETR with masks: as many of the best scores as queries, sigmoid >= "
        "T[class], mask logits",
        (
            Layout(
                (
                    Out("Q C", ("pred_logits", "logits", "labels")),
                    Out("Q 4", ("pred_boxes", "boxes", "dets")),
                    Out("Q H W", ("pred_masks", "masks")),
                ),
                _queries_masked,
            ),
        ),
        strict_classes=True,
    ),
    InstanceHead(
        "HeadraceParseYoloEndSeg",
        f"YOLO-seg with NMS inside, YOLO26-seg: {_ROW}, class, M coefficients; masks from "
        "prototypes",
        (Layout((Out("N 6+M"), Out("M H W")), _masked, _few, _few),),
    ),
)
