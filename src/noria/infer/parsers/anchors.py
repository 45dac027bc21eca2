"""YOLO heads that leave the anchors to the parser. Boxes in network pixels."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from noria.infer.parsers.boxes import clipped_corners, sigmoid
from noria.infer.parsers.head import Arrays, Dims, Head, Layout, Out, UnfitError
from noria.infer.parsers.scan import best_class
from noria.meta.detections import Detections, FloatArray, IntArray
from noria.meta.layers import DetectionParams, NetworkInfo


def _anchors(text: str) -> FloatArray:
    """(A, 2) float32 widths and heights from a list as in a Darknet cfg."""
    return np.array(text.replace(",", " ").split(), np.float32).reshape(-1, 2)


# In pixels, of YOLOv3 and YOLOv5 alike; those of YOLOv2 are in cells.
_V3 = _anchors("10,13, 16,30, 33,23, 30,61, 62,45, 59,119, 116,90, 156,198, 373,326")
_V3_TINY = _anchors("10,14, 23,27, 37,58, 81,82, 135,169, 344,319")
_V2 = _anchors(
    "0.57273,0.677385, 1.87446,2.06253, 3.33843,5.47434, 7.88282,3.52778, 9.77052,9.16828"
)
_V3_MASKS = ((6, 7, 8), (3, 4, 5), (0, 1, 2))
_V3_TINY_MASKS = ((3, 4, 5), (1, 2, 3))  # 1, 2, 3 as in the original model's cfg


def _gathered(
    parts: Sequence[tuple[FloatArray, FloatArray, IntArray, npt.NDArray[Any]]], network: NetworkInfo
) -> Detections:
    """One result from (centre boxes (N, 4), scores, classes, order) parts."""
    boxes = np.concatenate([p[0] for p in parts])
    order = np.argsort(np.concatenate([p[3] for p in parts]), kind="stable")
    scores, class_ids = (np.concatenate([p[i] for p in parts])[order] for i in (1, 2))
    cx, cy, w, h = boxes[order].T
    half = np.float32(0.5)
    # infinite sizes become NaN corners, which go
    x1, y1 = cx - w * half, cy - h * half
    x2, y2 = x1 + w, y1 + h
    return clipped_corners(x1, y1, x2, y2, network.width, network.height, scores, class_ids)


def _activated(
    arrays: Arrays,
    network: NetworkInfo,
    params: DetectionParams,
    *,
    anchors: FloatArray,
    masks: Sequence[Sequence[int]],
    exponential: bool = False,
) -> Detections:
    """Grids [A*(5+C), h, w], coarsest first, with activated x, y, objectness and scores.

    Centre = (cell + x) * stride; size = anchor * w, or anchor * stride * exp(w). Boxes come cell
    by cell, the anchors of a cell together.
    """
    parts, base = [], 0
    for grid, mask in zip(sorted(arrays, key=lambda a: a.shape[1]), masks, strict=True):
        rows, columns = grid.shape[1:]
        stride_x, stride_y = -(-network.width // columns), -(-network.height // rows)
        planes = grid.reshape(len(mask), -1, rows * columns)
        for k, anchor in enumerate(mask):
            table = planes[k]
            cell, class_ids, scores = best_class(
                table[5:].T, params.per_class_threshold, objectness=table[4]
            )
            boxes = table[:4, cell].T.copy()
            stride = np.array([stride_x, stride_y], np.float32)
            boxes[:, :2] += np.stack([cell % columns, cell // columns], axis=1)
            boxes[:, :2] *= stride
            if exponential:
                boxes[:, 2:] = np.exp(boxes[:, 2:]) * stride
            boxes[:, 2:] *= anchors[anchor]
            parts.append((boxes, scores, class_ids, base + cell * len(mask) + k))
        base += rows * columns * len(mask)
    return _gathered(parts, network)


def _raw_v5(arrays: Arrays, network: NetworkInfo, params: DetectionParams) -> Detections:
    """Grids [3, h, w, 5+C] or [3*(5+C), h, w] of logits, finest first.

    Centre = (2 sigmoid(t) - 0.5 + cell) * stride, size = (2 sigmoid(t))^2 * anchor,
    score = sigmoid(objectness) * sigmoid(best class).
    """
    # No class score exceeds 1, so the objectness alone rules most cells out; the margins cover
    # rounding (a float32 sigmoid reaches 1 at a logit of 17).
    lowest = min(max(params.min_threshold, 0.0), 1.0 - 1e-6)
    limit = np.float32(np.log(lowest) - np.log1p(-lowest) - 1e-3)
    parts, base = [], 0
    for grid, mask in zip(
        sorted(arrays, key=lambda a: -a.shape[1]), reversed(_V3_MASKS), strict=True
    ):
        if grid.ndim == 4:
            rows, columns, width = grid.shape[1:]
            tables = grid.reshape(3, rows * columns, width)
        else:
            rows, columns = grid.shape[1:]
            tables = grid.reshape(3, -1, rows * columns).transpose(0, 2, 1)
            width = tables.shape[2]
        if width - 5 != params.num_classes:
            raise UnfitError(
                f"num-detected-classes={params.num_classes}, but the outputs hold {width - 5} "
                "classes",
                expected=f"num-detected-classes={width - 5}",
                fix=f"set num-detected-classes={width - 5}; hide classes with filter-out-class-ids",
            )
        stride = np.array([network.width / columns, network.height / rows], np.float32)
        for k, anchor in enumerate(mask):
            cell = np.nonzero(tables[k, :, 4] >= limit)[0]
            t = sigmoid(np.ascontiguousarray(tables[k, cell]))
            index, class_ids, scores = best_class(
                t[:, 5:], params.per_class_threshold, objectness=t[:, 4]
            )
            cell, boxes = cell[index], t[index, :4] * np.float32(2)
            boxes[:, :2] += np.stack([cell % columns, cell // columns], axis=1) - np.float32(0.5)
            boxes[:, :2] *= stride
            boxes[:, 2:] *= boxes[:, 2:] * _V3[anchor]
            parts.append((boxes, scores, class_ids, base + k * rows * columns + cell))
        base += 3 * rows * columns
    return _gathered(parts, network)


def _with_area(dims: Dims, network: NetworkInfo | None) -> bool:
    return min(dims.values()) > 0


def _with_classes(dims: Dims, network: NetworkInfo | None) -> bool:
    return dims["P"] > 5 and min(dims.values()) > 0


_THREE = (Out("3*P H W"), Out("3*P I J"), Out("3*P K L"))
_V3_LAYOUTS = (Layout(_THREE, partial(_activated, anchors=_V3, masks=_V3_MASKS), _with_classes),)
_V3_TINY_DECODE = partial(_activated, anchors=_V3_TINY, masks=_V3_TINY_MASKS)
_V2_DECODE = partial(_activated, anchors=_V2, masks=(range(5),), exponential=True)
_RULE = "activated grids, P = 5+C, objectness * best score >= T[class]"

HEADS = (
    Head(
        "NoriaParseYoloV5Raw",
        "YOLOv5/7 without the decoding layer: three grids of logits, COCO anchors; P = 5+C",
        (
            Layout((Out("3 H W 5+C"), Out("3 I J 5+C"), Out("3 K L 5+C")), _raw_v5, _with_area),
            Layout(_THREE, _raw_v5, _with_classes),
        ),
    ),
    Head("NvDsInferParseCustomYoloV3", f"YOLOv3: three {_RULE}", _V3_LAYOUTS),
    Head("NvDsInferParseCustomYoloV3_cuda", f"YOLOv3: three {_RULE}", _V3_LAYOUTS, suggested=False),
    Head(
        "NvDsInferParseCustomYoloV3Tiny",
        f"YOLOv3-tiny: two {_RULE}",
        (Layout(_THREE[:2], _V3_TINY_DECODE, _with_classes),),
    ),
    *(
        Head(
            name, f"YOLOv2: one of {_RULE}", (Layout((Out("5*P H W"),), _V2_DECODE, _with_classes),)
        )
        for name in ("NvDsInferParseCustomYoloV2", "NvDsInferParseCustomYoloV2Tiny")
    ),
)
