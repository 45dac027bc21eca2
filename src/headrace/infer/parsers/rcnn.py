"""Heads with more work left to the parser: proposals and deltas, own NMS, rotated boxes."""

from __future__ import annotations

import numpy as np

from headrace._core.types import Array
from headrace.infer.parsers.boxes import (
    best_class,
    class_numbers,
    clipped_corners,
    column_thresholds,
    first_threshold,
    pack,
    suppressed,
)
from headrace.infer.parsers.head import Arrays, Head, Layout, Out, UnfitError
from headrace.meta.detections import Detections, FloatArray
from headrace.meta.layers import DetectionParams, NetworkInfo

_FRCNN_SCALE = np.array([10, 10, 5, 5], np.float32)
_ORIGINAL_IOU = 0.5
_ORIGINAL_LIMIT = 200


def _frcnn_tlt(arrays: Arrays, network: NetworkInfo, params: DetectionParams) -> Detections:
    """Best class of each proposal, the last being background; score >= T[0]; clipped corners."""
    proposals, deltas, scores = arrays
    classes = scores.shape[1] - 1
    if classes < 0 or deltas.shape[1] != 4 * classes:
        raise UnfitError(
            f"{deltas.shape[1]} deltas per proposal for {classes} classes and background"
        )
    class_ids = np.where(np.isnan(scores), np.float32(-np.inf), scores).argmax(axis=1)
    best = scores[np.arange(len(scores)), class_ids]
    index = np.nonzero((class_ids != classes) & (best >= first_threshold(params)))[0]
    k = class_ids[index]
    size = np.array([network.height - 1, network.width - 1] * 2, np.float32)
    y1, x1, y2, x2 = (proposals[index] * size).T
    dx, dy, dw, dh = (deltas.reshape(len(deltas), classes, 4)[index, k] / _FRCNN_SCALE).T
    w, h = x2 - x1, y2 - y1
    half = np.float32(0.5)
    new_w, new_h = np.exp(dw) * w, np.exp(dh) * h
    left = dx * w + (x1 + w * half) - new_w * half
    top = dy * h + (y1 + h * half) - new_h * half
    return clipped_corners(
        left,
        top,
        left + new_w,
        top + new_h,
        network.width - 1,
        network.height - 1,
        best[index],
        k.astype(np.int32),
        smallest=0,
    )


def _faster_rcnn(arrays: Arrays, network: NetworkInfo, params: DetectionParams) -> Detections:
    """Every class of every proposal, class 0 too; sizes count both edges; score >= T[class]."""
    deltas, scores, rois = arrays
    if deltas.shape[1] != 4 * scores.shape[1]:
        raise UnfitError(f"{deltas.shape[1]} deltas per roi for {scores.shape[1]} classes")
    every_class = np.arange(scores.shape[1])
    roi, k = np.nonzero(scores >= column_thresholds(params, every_class))
    x1, y1, x2, y2 = rois[roi].T
    dx, dy, dw, dh = deltas.reshape(len(deltas), len(every_class), 4)[roi, k].T
    one, half = np.float32(1), np.float32(0.5)
    w, h = x2 - x1 + one, y2 - y1 + one
    cx, cy = dx * w + (x1 + w * half), dy * h + (y1 + h * half)
    new_w, new_h = np.exp(dw) * w, np.exp(dh) * h
    right, bottom = np.float32(network.width - 1), np.float32(network.height - 1)
    left, top = np.clip(cx - new_w * half, 0, right), np.clip(cy - new_h * half, 0, bottom)
    new_x2, new_y2 = np.clip(cx + new_w * half, 0, right), np.clip(cy + new_h * half, 0, bottom)
    return pack(left, top, new_x2 - left + one, new_y2 - top + one, scores[roi, k], k)


def _yolo_original(arrays: Arrays, network: NetworkInfo, params: DetectionParams) -> Detections:
    """Boxes y1, x1, y2, x2 in pixels as they are; per class IoU > 0.5 goes; at most 200."""
    boxes, scores = arrays
    k, index = np.nonzero(scores >= first_threshold(params))
    y1, x1, y2, x2 = boxes[index].T
    detections = pack(x1, y1, x2 - x1, y2 - y1, scores[k, index], k)
    return detections.select(suppressed(detections, _ORIGINAL_IOU)[:_ORIGINAL_LIMIT])


_OBB_IOU = 0.45
_OBB_TRAINED = np.float32(640)


def _obb_columns(arrays: Arrays, network: NetworkInfo, params: DetectionParams) -> Detections:
    """[4+C+1, N]: centre box in pixels, C scores, angle; best score >= T[0]; IoU > 0.45 goes."""
    table = arrays[0]
    scores = table[4:-1]
    scores = np.where(np.isnan(scores), np.float32(-np.inf), scores)
    best = scores.max(axis=0)
    index = np.nonzero(best >= first_threshold(params))[0]
    detections = _rotated(
        table[:4, index].T,
        best[index],
        scores[:, index].argmax(axis=0),
        table[-1, index],
        network,
    )
    return detections.select(suppressed(detections, _OBB_IOU))


def _obb(arrays: Arrays, network: NetworkInfo, params: DetectionParams) -> Detections:
    """[4+C+1, N]: centre box in pixels, C scores, angle; best score >= T[class]; as they are."""
    table = arrays[0]
    index, class_ids, scores = best_class(table[4:-1].T, params.per_class_threshold)
    rows = table[:, index]
    whole = np.isfinite(rows[[0, 1, 2, 3, -1]]).all(axis=0)
    x, y, w, h = rows[:4, whole]
    corner = x - w * np.float32(0.5), y - h * np.float32(0.5)
    boxes = np.stack([*corner, w, h], axis=1)
    return Detections(boxes, scores[whole], class_ids[whole], angles=rows[-1, whole])


def _obb_rows(arrays: Arrays, network: NetworkInfo, params: DetectionParams) -> Detections:
    """[N, V] after NMS: x, y, w, h, score, then angle and class (V >= 7) or class (V = 6)."""
    rows = arrays[0]
    rows = rows[rows[:, 4] >= first_threshold(params)]
    angled = rows.shape[1] >= 7
    return _rotated(
        rows[:, :4] * (np.float32(network.width) / _OBB_TRAINED),
        rows[:, 4],
        class_numbers(rows[:, 6 if angled else 5]),
        rows[:, 5] if angled else np.zeros(len(rows), np.float32),
        network,
    )


def _rotated(
    boxes: FloatArray,
    scores: FloatArray,
    class_ids: Array,
    angles: FloatArray,
    network: NetworkInfo,
) -> Detections:
    """Centre boxes with angles folded into [0, pi]; the network's width limits both axes."""
    whole = np.isfinite(boxes).all(axis=1) & np.isfinite(angles) & (class_ids >= 0)
    boxes, scores, class_ids, angles = boxes[whole], scores[whole], class_ids[whole], angles[whole]
    folded = np.where((angles < 0) | (angles > np.pi), np.mod(angles, np.float32(np.pi)), angles)
    width = np.float32(network.width)
    centre, size = np.clip(boxes[:, :2], 0, width - 1), np.clip(boxes[:, 2:], 1, width)
    corner = centre - size * np.float32(0.5)
    return Detections(
        np.concatenate([corner, size], axis=1),
        scores,
        class_ids.astype(np.int32),
        angles=folded.astype(np.float32),
    )


HEADS = (
    Head(
        "HeadraceParseYoloObb",
        "YOLOv8/11-obb raw: centre boxes in pixels, best of C scores >= T[class], angle; for "
        "cluster-mode=2 with rotated-boxes=1",
        (Layout((Out("5+C N"),), _obb, suggested=False),),
    ),
    Head(
        "NvDsInferParseCustomYoloV11OBB",
        "rotated boxes: centre box in pixels, C scores, angle; score >= T[0]; own NMS at 0.45",
        (
            Layout(
                (Out("N 7"),), _obb_rows, lambda dims, _: dims["N"] >= 7, likely=lambda *_: True
            ),
            Layout((Out("N 6"),), _obb_rows, lambda dims, _: dims["N"] >= 6),
            Layout((Out("5+C N"),), _obb_columns),
        ),
    ),
    Head(
        "NvDsInferParseCustomFrcnnTLT",
        "proposals y1, x1, y2, x2 in 0..1 and deltas; last class is background; score >= T[0]",
        (
            Layout(
                (
                    Out("N 4", ("proposal",)),
                    Out("N D", ("dense_regress_td/BiasAdd",)),
                    Out("N K", ("dense_class_td/Softmax",)),
                ),
                _frcnn_tlt,
            ),
        ),
    ),
    Head(
        "NvDsInferParseCustomFasterRCNN",
        "rois in pixels and deltas of every class; score >= T[class]",
        (
            Layout(
                (Out("N D", ("bbox_pred",)), Out("N K", ("cls_prob",)), Out("N 4", ("rois",))),
                _faster_rcnn,
            ),
        ),
    ),
    Head(
        "NvDsInferParseCustomYoloOriginal",
        "boxes y1, x1, y2, x2 in pixels; score >= T[0]; own NMS at 0.5, at most 200",
        (
            Layout(
                (
                    Out("N 4", ("yolonms_layer_1/ExpandDims_1:0",)),
                    Out("K N", ("yolonms_layer_1/ExpandDims_3:0",)),
                ),
                _yolo_original,
            ),
        ),
    ),
)
