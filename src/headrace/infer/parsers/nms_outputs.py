"""Heads of networks that end in NMS: counts, boxes, scores, classes. Network pixels."""

from __future__ import annotations

from functools import partial

import numpy as np

from headrace._core.types import Array
from headrace.infer.parsers.boxes import (
    NOT_EMPTY,
    class_numbers,
    clipped_corners,
    column_thresholds,
    first_threshold,
    pack,
)
from headrace.infer.parsers.head import Arrays, Head, Layout, Out, UnfitError
from headrace.meta.detections import Detections, FloatArray, IntArray
from headrace.meta.layers import DetectionParams, NetworkInfo

_BATCHED_NMS_LIMIT = 201
_SSD_TLT_ROWS = 200


_LEAST_NORMAL_BITS = 1 << 23
_NEVER_UNIT = 10  # images; networks that do not clip stay far below


def _count(count: Array, available: int) -> int:
    """Number of rows that count.

    TensorRT's NMS plugins write the bits of an integer into a float tensor: as a number that would
    be next to nothing.
    """
    first = count.ravel()[:1]
    if first.dtype == np.float32 and 0 < first.view(np.int32)[0] < _LEAST_NORMAL_BITS:
        first = first.view(np.int32)
    return min(max(int(class_numbers(first)[0]), 0), available)


def _refuse_classes(class_ids: IntArray, params: DetectionParams) -> None:
    if len(class_ids) and (class_ids.max() >= params.num_classes or class_ids.min() < 0):
        worst = int(class_ids.max() if class_ids.min() >= 0 else class_ids.min())
        raise UnfitError(
            f"the network reports class {worst}, num-detected-classes={params.num_classes}",
            expected=f"class ids from 0 to {params.num_classes - 1}",
            fix=f"set num-detected-classes to the classes of the model, at least {worst + 1}"
            if worst >= 0
            else "check that this is the parser for this model",
            classes=(worst + 1,) if worst >= 0 else (),
        )


def _refuse_scale(boxes: FloatArray, *, unit: bool) -> None:
    """Boxes of the other scale would be empty, or all at an edge."""
    if not len(boxes):
        return
    if unit and np.median(boxes.max(axis=1)) >= _NEVER_UNIT:
        raise UnfitError(
            f"boxes reach {boxes.max():g}: they are in pixels, not in 0..1",
            expected="corners in 0..1",
            fix="take a parser of boxes in pixels: HeadraceParseEfficientNMS, or "
            "NvDsInferParseYoloV5CustomBatchedNMSTLT behind BatchedNMS",
            parsers=("HeadraceParseEfficientNMS", "NvDsInferParseYoloV5CustomBatchedNMSTLT"),
        )
    if not unit and boxes.max() <= 1:
        raise UnfitError(
            f"boxes up to {boxes.max():g}: they are in 0..1, not in pixels",
            expected="corners in network pixels",
            fix="take a parser of boxes in 0..1: HeadraceParseEfficientNMSUnit, or "
            "NvDsInferParseCustomBatchedNMSTLT behind BatchedNMS; BatchedNMS itself cuts boxes in "
            "pixels to 0..1 unless its clipBoxes is 0",
            parsers=("HeadraceParseEfficientNMSUnit", "NvDsInferParseCustomBatchedNMSTLT"),
        )


def _tf_ssd(arrays: Arrays, network: NetworkInfo, params: DetectionParams) -> Detections:
    """Boxes y1, x1, y2, x2 in 0..1, clipped to [0, W-1]; empty ones go; score >= T[class]."""
    boxes, scores, classes, count = arrays
    n = _count(count, len(boxes)) if count.size else len(boxes)
    class_ids = class_numbers(classes[:n])
    keep = scores[:n] >= column_thresholds(params, class_ids)
    y1, x1, y2, x2 = boxes[:n][keep].T
    w, h = np.float32(network.width), np.float32(network.height)
    return clipped_corners(
        x1 * w,
        y1 * h,
        x2 * w,
        y2 * h,
        network.width - 1,
        network.height - 1,
        scores[:n][keep],
        class_ids[keep],
        smallest=NOT_EMPTY,
    )


def _nms_rows(arrays: Arrays, network: NetworkInfo, params: DetectionParams) -> Detections:
    """Rows image, class, score, x1, y1, x2, y2 in 0..1; score >= T[0]; the size is clipped."""
    rows = arrays[0]
    n = _count(arrays[1], len(rows)) if len(arrays) > 1 else min(len(rows), _SSD_TLT_ROWS)
    rows = rows[:n][rows[:n, 2] >= first_threshold(params)]
    class_ids = class_numbers(rows[:, 1])
    _refuse_classes(class_ids, params)
    _refuse_scale(rows[:, 3:], unit=True)
    w, h = np.float32(network.width), np.float32(network.height)
    x1, y1, x2, y2 = rows[:, 3:].T
    return pack(
        np.clip(x1 * w, 0, w - 1),
        np.clip(y1 * h, 0, h - 1),
        np.clip((x2 - x1) * w, 0, w - 1),
        np.clip((y2 - y1) * h, 0, h - 1),
        rows[:, 2],
        class_ids,
    )


def _nms_rows_whole_pixels(
    arrays: Arrays, network: NetworkInfo, params: DetectionParams
) -> Detections:
    """The same rows; corners are cut to whole pixels and both edges count (+1)."""
    rows = arrays[0][: _count(arrays[1], len(arrays[0]))]
    class_ids = class_numbers(rows[:, 1])
    keep = rows[:, 2] >= column_thresholds(params, class_ids)
    rows, class_ids = rows[keep], class_ids[keep]
    _refuse_scale(rows[:, 3:], unit=True)
    w, h = network.width, network.height
    x1, x2 = (np.trunc(np.clip(rows[:, i] * np.float32(w), 0, w - 1)) for i in (3, 5))
    y1, y2 = (np.trunc(np.clip(rows[:, i] * np.float32(h), 0, h - 1)) for i in (4, 6))
    keep = (x2 >= x1) & (y2 >= y1)
    return pack(x1, y1, x2 - x1 + 1, y2 - y1 + 1, rows[:, 2], class_ids, keep)


def _passing(arrays: Arrays, params: DetectionParams) -> tuple[FloatArray, FloatArray, IntArray]:
    """Boxes, scores and classes of the first `count` rows with score >= T[0]."""
    count, boxes, scores, classes = arrays
    n = _count(count, len(boxes))
    keep = scores[:n] >= first_threshold(params)
    return boxes[:n][keep], scores[:n][keep], class_numbers(classes[:n][keep])


def _batched_nms(
    arrays: Arrays, network: NetworkInfo, params: DetectionParams, *, unit: bool
) -> Detections:
    """Corners (0..1 when `unit`) clipped to [0, W-1]; at most 201 objects."""
    boxes, scores, class_ids = _passing(arrays, params)
    keep = (class_ids < params.num_classes) & (class_ids >= 0)
    keep &= (boxes[:, 2] >= boxes[:, 0]) & (boxes[:, 3] >= boxes[:, 1])
    first = np.nonzero(keep)[0][:_BATCHED_NMS_LIMIT]
    boxes, scores, class_ids = boxes[first], scores[first], class_ids[first]
    _refuse_scale(boxes, unit=unit)
    if unit:
        boxes = boxes * np.array([network.width, network.height] * 2, np.float32)
    x1, y1, x2, y2 = boxes.T
    return clipped_corners(
        x1, y1, x2, y2, network.width - 1, network.height - 1, scores, class_ids, smallest=0
    )


def _yolov3_tlt(arrays: Arrays, network: NetworkInfo, params: DetectionParams) -> Detections:
    """Corners in pixels; the position and the size are clipped each on its own."""
    boxes, scores, class_ids = _passing(arrays, params)
    _refuse_classes(class_ids, params)
    right, bottom = network.width - 1, network.height - 1
    x1, y1, x2, y2 = boxes.T
    return pack(
        np.clip(x1, 0, right),
        np.clip(y1, 0, bottom),
        np.clip(x2 - x1, 0, right),
        np.clip(y2 - y1, 0, bottom),
        scores,
        class_ids,
    )


def _efficientdet(
    arrays: Arrays, network: NetworkInfo, params: DetectionParams, *, by_name: bool
) -> Detections:
    """Boxes y1, x1, y2, x2 in pixels; left and top clipped first, the size from the clipped."""
    boxes, scores, class_ids = _passing(arrays, params)
    if by_name:  # the first class out of range ends the list
        wild = np.nonzero((class_ids >= params.num_classes) | (class_ids < 0))[0]
        n = int(wild[0]) if len(wild) else len(boxes)
        boxes, scores, class_ids = boxes[:n], scores[:n], class_ids[:n]
    else:
        _refuse_classes(class_ids, params)
        if len(boxes) and not boxes.max() >= 2:
            raise UnfitError(
                f"boxes up to {boxes.max():g}: they are in 0..1, not in pixels",
                expected="boxes y1, x1, y2, x2 in network pixels",
                fix="NvDsInferParseCustomTfSSD reads y1, x1, y2, x2 in 0..1 (by output name)",
                parsers=("NvDsInferParseCustomTfSSD",),
            )
    right, bottom = np.float32(network.width - 1), np.float32(network.height - 1)
    y1, x1, y2, x2 = boxes.T
    left, top = np.clip(x1, 0, right), np.clip(y1, 0, bottom)
    width, height = np.clip(x2 - left, 0, right), np.clip(y2 - top, 0, bottom)
    return pack(left, top, width, height, scores, class_ids)


def _after_nms(
    arrays: Arrays,
    network: NetworkInfo,
    params: DetectionParams,
    *,
    unit: bool,
    strict: bool = False,
) -> Detections:
    """Corners clipped to [0, W]; under 1 pixel goes; score >= T[class], or > when `strict`."""
    count, boxes, scores, classes = arrays
    n = _count(count, len(boxes))
    class_ids, scores = class_numbers(classes[:n]), scores[:n]
    limits = column_thresholds(params, class_ids)
    keep = scores > limits if strict else scores >= limits
    boxes = boxes[:n][keep]
    _refuse_scale(boxes, unit=unit)
    if unit:
        boxes = boxes * np.array([network.width, network.height] * 2, np.float32)
    x1, y1, x2, y2 = boxes.T
    return clipped_corners(
        x1, y1, x2, y2, network.width, network.height, scores[keep], class_ids[keep]
    )


def _dets_labels(arrays: Arrays, network: NetworkInfo, params: DetectionParams) -> Detections:
    """Rows x1, y1, x2, y2, score in pixels, classes beside them; clipped to [0, W]."""
    rows, classes = arrays
    class_ids = class_numbers(classes)
    keep = rows[:, 4] >= column_thresholds(params, class_ids)
    x1, y1, x2, y2, scores = rows[keep].T
    return clipped_corners(x1, y1, x2, y2, network.width, network.height, scores, class_ids[keep])


_BY_POSITION = (Out("1", integers=True), Out("K 4"), Out("K"), Out("K", integers=True))


def _by_name(count: str, boxes: str, scores: str, classes: str) -> tuple[Out, ...]:
    return (
        Out("1", tuple(count.split()), integers=True),
        Out("K 4", tuple(boxes.split())),
        Out("K", tuple(scores.split())),
        Out("K", tuple(classes.split()), integers=True),
    )


_DETECTION = _by_name("num_detections", "detection_boxes", "detection_scores", "detection_classes")
_EFFICIENT_NMS = _by_name(
    "num_dets num_detections",
    "det_boxes detection_boxes",
    "det_scores detection_scores",
    "det_classes detection_classes",
)
_NMSED = _by_name("num_detections", "nmsed_boxes", "nmsed_scores", "nmsed_classes")

_TLT = "score >= T[0]; position and size clipped to [0, W-1]"
_BATCHED = "count, corner boxes {}, scores, classes; score >= T[0]; at most 201"

HEADS = (
    Head(
        "HeadraceParseEfficientNMS",
        "EfficientNMS: count, corner boxes in pixels, scores, classes; score >= T[class]",
        (
            Layout(_EFFICIENT_NMS, partial(_after_nms, unit=False)),
            Layout(_BY_POSITION, partial(_after_nms, unit=False)),
        ),
    ),
    Head(
        "HeadraceParseEfficientNMSUnit",
        "EfficientNMS: count, corner boxes in 0..1, scores, classes; score >= T[class]",
        (
            Layout(_EFFICIENT_NMS, partial(_after_nms, unit=True)),
            Layout(_BY_POSITION, partial(_after_nms, unit=True)),
        ),
    ),
    Head(
        "NvDsInferParseCustomYoloV4",
        "BatchedNMS by name: corner boxes in 0..1; score > T[class]",
        (Layout(_NMSED, partial(_after_nms, unit=True, strict=True)),),
    ),
    Head(
        "NvDsInferParseCustomBatchedNMSTLT",
        "BatchedNMS: " + _BATCHED.format("in 0..1"),
        (Layout(_BY_POSITION, partial(_batched_nms, unit=True)),),
    ),
    *(
        Head(
            name,
            "BatchedNMS: " + _BATCHED.format("in pixels"),
            (Layout(_BY_POSITION, partial(_batched_nms, unit=False)),),
            suggested=not i,
        )
        for i, name in enumerate(
            ("NvDsInferParseYoloV5CustomBatchedNMSTLT", "NvDsInferParseCustomBatchedYoloV5NMSTLT")
        )
    ),
    Head(
        "NvDsInferParseCustomEfficientDetTAO",
        "boxes y1, x1, y2, x2 in pixels; score >= T[0]",
        (
            Layout(_DETECTION, partial(_efficientdet, by_name=True)),
            Layout(_BY_POSITION, partial(_efficientdet, by_name=False)),
        ),
    ),
    Head(
        "NvDsInferParseCustomTfSSD",
        "TensorFlow detection API: boxes y1, x1, y2, x2 in 0..1; score >= T[class]",
        (
            Layout(
                (*_DETECTION[1:], Out("1", ("num_detections",), integers=True, optional=True)),
                _tf_ssd,
            ),
        ),
    ),
    Head(
        "NvDsInferParseCustomNMSTLT",
        f"NMS rows image, class, score, corners in 0..1 and a count; {_TLT}",
        (Layout((Out("K 7"), Out("1", integers=True)), _nms_rows),),
    ),
    Head(
        "NvDsInferParseCustomSSDTLT",
        f"the same rows without a count, the first 200; {_TLT}",
        (Layout((Out("K 7", ("NMS",)),), _nms_rows),),
    ),
    Head(
        "NvDsInferParseCustomSSD",
        "the same rows, corners cut to whole pixels, size + 1; score >= T[class]",
        (
            Layout(
                (Out("K 7", ("NMS",)), Out("1", ("NMS_1",), integers=True)),
                _nms_rows_whole_pixels,
            ),
        ),
    ),
    Head(
        "HeadraceParseDetsLabels",
        "mmdetection by mmdeploy: corner boxes in pixels, scores, labels; score >= T[class]",
        (Layout((Out("K 5", ("dets",)), Out("K", ("labels",), integers=True)), _dets_labels),),
    ),
    Head(
        "NvDsInferParseCustomYOLOV3TLT",
        f"BatchedNMS with corner boxes in pixels; {_TLT}",
        (Layout(_BY_POSITION, _yolov3_tlt),),
        suggested=False,
    ),
)
