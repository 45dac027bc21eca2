"""YOLO heads: decoded rows, the YOLOX grid, grids that leave the anchors to the parser."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial
from itertools import pairwise

import numpy as np

from headrace._core.types import Array
from headrace.infer.parsers.boxes import (
    TableHits,
    best_class,
    box_planes,
    centre_boxes,
    class_numbers,
    clipped_corners,
    column_thresholds,
    sigmoid,
    table_hits,
)
from headrace.infer.parsers.head import Arrays, Dims, Head, Layout, Out, UnfitError, wrong_classes
from headrace.meta.detections import BatchDetections, Detections, FloatArray, IntArray
from headrace.meta.layers import DetectionParams, NetworkInfo


def _rows(
    arrays: Arrays,
    network: NetworkInfo,
    params: DetectionParams,
    *,
    objectness: bool = False,
    unit: bool = False,
) -> BatchDetections:
    """[B, N, 4+C]: centre box, C scores; with `objectness` [B, N, 5+C], the score is their product.

    Boxes are in pixels, with `unit` in 0..1.
    """
    hits = table_hits(arrays[0], params.per_class_threshold, objectness=objectness)
    scale = (network.width, network.height) if unit else (1, 1)
    return centre_boxes(hits, network, scale=scale)


def _columns(
    arrays: Arrays, network: NetworkInfo, params: DetectionParams, *, unit: bool = False
) -> BatchDetections:
    """[B, 4+C, N]: the same, channel by channel."""
    return _rows([arrays[0].transpose(0, 2, 1)], network, params, unit=unit)


def _objectness_rows(arrays: Arrays, network: NetworkInfo, params: DetectionParams) -> Detections:
    """[N, 5+C]: as `_rows`, but the objectness alone is the confidence."""
    rows = arrays[0]
    rows = rows[rows[:, 4] >= np.float32(params.min_threshold)]
    # The search starts at 0: scores that are not above it leave class 0.
    class_ids = np.where(rows[:, 5:] > 0, rows[:, 5:], np.float32(0)).argmax(axis=1)
    keep = np.nonzero(rows[:, 4] >= column_thresholds(params, class_ids))[0].astype(np.int32)
    planes = np.stack(box_planes(rows, keep))
    starts = np.array([0, len(keep)], np.int32)
    hits = TableHits(planes, keep, class_ids[keep].astype(np.int32), rows[keep, 4], starts)
    return centre_boxes(hits, network).boxes


def _corner_rows(arrays: Arrays, network: NetworkInfo, params: DetectionParams) -> Detections:
    """[N, 6]: corner box, score, class."""
    rows = arrays[0]
    rows = rows[rows[:, 4] >= np.float32(params.min_threshold)]
    class_ids = class_numbers(rows[:, 5])
    rows = rows[keep := rows[:, 4] >= column_thresholds(params, class_ids)]
    x1, y1, x2, y2 = rows[:, :4].T
    return clipped_corners(
        x1, y1, x2, y2, network.width, network.height, rows[:, 4], class_ids[keep]
    )


def yolox_candidates(network: NetworkInfo, strides: tuple[int, ...]) -> int:
    """How many rows a YOLOX head has: one per cell of each grid."""
    return sum(-(-network.width // s) * -(-network.height // s) for s in strides)


_STRIDES = ((8, 16, 32), (8, 16, 32, 64))


@lru_cache(maxsize=8)
def _yolox_grid(width: int, height: int, strides: tuple[int, ...]) -> FloatArray:
    """(3, N) float32: cell x, cell y, stride of each candidate."""
    parts = []
    for stride in strides:
        y, x = np.mgrid[: -(-height // stride), : -(-width // stride)]
        parts.append(np.stack([x.ravel(), y.ravel(), np.full(x.size, stride)]))
    grid = np.concatenate(parts, axis=1).astype(np.float32)
    grid.setflags(write=False)
    return grid


def _yolox(arrays: Arrays, network: NetworkInfo, params: DetectionParams) -> BatchDetections:
    """[B, N, 5+C] undecoded: centre = (t + cell) * stride, size = exp(t) * stride."""
    tables = arrays[0]
    count = tables.shape[1]
    for strides in _STRIDES:
        if yolox_candidates(network, strides) == count:
            break
    else:
        raise UnfitError(
            f"{count} candidates, but a {network.width}x{network.height} network has "
            f"{yolox_candidates(network, _STRIDES[0])} YOLOX cells",
        )
    hits = table_hits(tables, params.per_class_threshold, objectness=True)
    # An overflowing size ends as NaN corners, which go with the boxes that are too small.
    for sizes in hits.planes[2:, : len(hits.rows)]:
        np.exp(sizes, out=sizes)
    return centre_boxes(hits, network, cells=_yolox_grid(network.width, network.height, strides))


def _is_cells(dims: Dims, network: NetworkInfo | None) -> bool:
    """One candidate per cell of the usual grids."""
    if network is None:  # 21 = 16 + 4 + 1 cells per cell of the coarsest grid, 85 with stride 64
        return dims["N"] % 21 == 0 or dims["N"] % 85 == 0
    return any(yolox_candidates(network, s) == dims["N"] for s in _STRIDES)


def _is_cells_or_anchors(dims: Dims, network: NetworkInfo | None) -> bool:
    """The same, or three candidates per cell."""
    third = {"N": dims["N"] // 3} if dims["N"] % 3 == 0 else {"N": -1}
    return _is_cells(dims, network) or _is_cells(third, network)


def _tall(dims: Dims, network: NetworkInfo | None) -> bool:
    return dims["N"] > 4 + dims["C"]


def _tall_or_cells(dims: Dims, network: NetworkInfo | None) -> bool:
    return _tall(dims, network) or (network is not None and _is_cells(dims, network))


def _tall_cells(dims: Dims, network: NetworkInfo | None) -> bool:
    return _tall(dims, network) and _is_cells(dims, network)


def _few(dims: Dims, network: NetworkInfo | None) -> bool:
    return _tall(dims, network) and dims["N"] <= 1000 and not _is_cells(dims, network)


_COLUMNS = Layout((Out("4+C N"),), _columns, likely=_tall_cells, first=True, batched=True)
_DUAL = Layout(
    (Out("4+C N"), Out("4+C N")), lambda a, n, p: _columns(a[1:], n, p), _tall_cells, _tall_cells,
    batched=True,
)  # fmt: skip
_ROWS = Layout((Out("N 4+C"),), _rows, likely=_tall_cells, first=True, batched=True)
_UNIT_COLUMNS = Layout(
    (Out("4+C N"),), partial(_columns, unit=True), likely=_tall_cells, first=True, suggested=False,
    batched=True,
)  # fmt: skip
_UNIT_ROWS = Layout(
    (Out("N 4+C"),), partial(_rows, unit=True), likely=_tall_cells, first=True, suggested=False,
    batched=True,
)  # fmt: skip
_PRODUCTS = partial(_rows, objectness=True)
_WEIGHTED = Layout(
    (Out("N 5+C"),), _PRODUCTS, _tall, _is_cells_or_anchors, first=True, batched=True
)
_OBJECTNESS = Layout((Out("N 5+C"),), _objectness_rows, _tall, _is_cells_or_anchors, first=True)
_GRID = Layout((Out("N 5+C"),), _yolox, _tall_or_cells, _is_cells, first=True, batched=True)
_CORNERS = Layout((Out("N 6"),), _corner_rows, likely=lambda *_: True, first=True)
_QUERIES = Layout((Out("N 4+C"),), partial(_rows, unit=True), likely=_few, first=True, batched=True)

_PLAIN = "centre boxes in pixels, best of C scores >= T[class]"
_CORNER = "corner boxes in pixels, score >= T[class], class index as a number"
_PRODUCT = "centre boxes in pixels, objectness * best score >= T[class]"

HEADS = (
    Head("NvDsInferParseYolo", f"DeepStream-Yolo: {_CORNER}", (_CORNERS,)),
    Head(
        "NvDsInferParseYoloCuda", f"as NvDsInferParseYolo: {_CORNER}", (_CORNERS,), suggested=False
    ),
    Head(
        "HeadraceParseYoloX",
        "YOLOX not decoded in the model: grid offsets, objectness * best score >= T[class]",
        (_GRID,),
        strict_classes=True,
    ),
    Head(
        "HeadraceParseYoloV8",
        f"YOLOv8/9/11 raw, either orientation, the second of YOLOv9's two: {_PLAIN}",
        (_DUAL, _COLUMNS, _ROWS),
        strict_classes=True,
    ),
    Head(
        "HeadraceParseYoloV5",
        f"YOLOv5/6/7, and YOLOX decoded in the model: {_PRODUCT}",
        (_WEIGHTED,),
        strict_classes=True,
    ),
    Head(
        "HeadraceParseYoloV8Unit",
        "YOLOv8/11 raw with boxes divided by the input's size, either orientation: centre boxes in "
        "0..1, best of C scores >= T[class]",
        (_UNIT_COLUMNS, _UNIT_ROWS),
        strict_classes=True,
    ),
    Head(
        "HeadraceParseRTDETR",
        "RT-DETR with one output: centre boxes in 0..1, best of C scores >= T[class]",
        (_QUERIES,),
        strict_classes=True,
    ),
    Head("NvDsInferParseYoloV11", f"YOLOv8/11 raw: {_PLAIN}", (_COLUMNS,)),
    Head("NvDsInferParseCustomYoloV8", f"YOLOv8 rows: {_PLAIN}", (_ROWS,)),
    Head("NvDsInferParseCustomYoloV8_cuda", f"YOLOv8 rows: {_PLAIN}", (_ROWS,), suggested=False),
    Head(
        "NvDsInferParseCustomYoloV11_cuda",
        f"rows, unlike its CPU namesake: {_PLAIN}",
        (_ROWS,),
        suggested=False,
    ),
    Head(
        "NvDsInferParseCustomYoloV7",
        "YOLOv7 rows: centre boxes in pixels; the confidence is the objectness alone",
        (_OBJECTNESS,),
        suggested=False,
    ),
    Head(
        "NvDsInferParseCustomYoloV7_cuda", f"YOLOv7 rows: {_PRODUCT}", (_WEIGHTED,), suggested=False
    ),
)


def _anchors(text: str) -> FloatArray:
    """(A, 2) float32 widths and heights from a list as in a Darknet cfg."""
    return np.array(text.replace(",", " ").split(), np.float32).reshape(-1, 2)


# In pixels, of YOLOv3 and YOLOv5 alike; those of YOLOv2 are in cells.
_V3 = _anchors("10,13, 16,30, 33,23, 30,61, 62,45, 59,119, 116,90, 156,198, 373,326")
_V7 = _anchors("12,16, 19,36, 40,28, 36,75, 76,55, 72,146, 142,110, 192,243, 459,401")
_V3_TINY = _anchors("10,14, 23,27, 37,58, 81,82, 135,169, 344,319")
_V2 = _anchors(
    "0.57273,0.677385, 1.87446,2.06253, 3.33843,5.47434, 7.88282,3.52778, 9.77052,9.16828"
)
_V3_MASKS = ((6, 7, 8), (3, 4, 5), (0, 1, 2))
_V3_TINY_MASKS = ((3, 4, 5), (1, 2, 3))  # 1, 2, 3 as in the original model's cfg


def _gathered(
    parts: Sequence[tuple[FloatArray, FloatArray, IntArray, Array]], network: NetworkInfo
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


def _yolov2_activated(logits: FloatArray) -> FloatArray:
    """[5+C, N] of YOLOv2 with its activations: sigmoid of x, y, objectness, soft-max of scores."""
    powers = np.exp(logits[5:] - logits[5:].max(axis=0))
    parts = [sigmoid(logits[:2]), logits[2:4], sigmoid(logits[4:5]), powers / powers.sum(axis=0)]
    return np.concatenate(parts)


def _activated(
    arrays: Arrays,
    network: NetworkInfo,
    params: DetectionParams,
    *,
    anchors: FloatArray,
    masks: Sequence[Sequence[int]],
    exponential: bool = False,
    logits: bool = False,
) -> Detections:
    """Grids [A*(5+C), h, w], coarsest first, with activated x, y, objectness and scores.

    Centre = (cell + x) * stride; size = anchor * w, or anchor * stride * exp(w). Boxes come cell
    by cell, the anchors of a cell together. With `logits` nothing is activated yet: sigmoid of x, y
    and objectness, soft-max of the scores.
    """
    parts, base = [], 0
    for grid, mask in zip(sorted(arrays, key=lambda a: a.shape[1]), masks, strict=True):
        rows, columns = grid.shape[1:]
        stride_x, stride_y = -(-network.width // columns), -(-network.height // rows)
        planes = grid.reshape(len(mask), -1, rows * columns)
        for k, anchor in enumerate(mask):
            table = _yolov2_activated(planes[k]) if logits else planes[k]
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


def _raw_v5(
    arrays: Arrays,
    network: NetworkInfo,
    params: DetectionParams,
    *,
    anchors: FloatArray = _V3,
    activated: bool = False,
) -> Detections:
    """Grids [3, h, w, 5+C] or [3*(5+C), h, w] of logits, finest first.

    Centre = (2 sigmoid(t) - 0.5 + cell) * stride, size = (2 sigmoid(t))^2 * anchor,
    score = sigmoid(objectness) * sigmoid(best class). With `activated` the graph has the sigmoid.
    """
    # No class score exceeds 1, so the objectness alone rules most cells out; the margins cover
    # rounding (a float32 sigmoid reaches 1 at a logit of 17).
    lowest = min(max(params.min_threshold, 0.0), 1.0 - 1e-6)
    limit = np.float32(np.log(lowest) - np.log1p(-lowest) - 1e-3)
    if activated:
        limit = np.float32(lowest)
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
            raise wrong_classes(params, width - 5)
        stride = np.array([network.width / columns, network.height / rows], np.float32)
        for k, anchor in enumerate(mask):
            cell = np.nonzero(tables[k, :, 4] >= limit)[0]
            t = np.ascontiguousarray(tables[k, cell])
            t = t if activated else sigmoid(t)
            index, class_ids, scores = best_class(
                t[:, 5:], params.per_class_threshold, objectness=t[:, 4]
            )
            cell, boxes = cell[index], t[index, :4] * np.float32(2)
            boxes[:, :2] += np.stack([cell % columns, cell // columns], axis=1) - np.float32(0.5)
            boxes[:, :2] *= stride
            boxes[:, 2:] *= boxes[:, 2:] * anchors[anchor]
            parts.append((boxes, scores, class_ids, base + k * rows * columns + cell))
        base += 3 * rows * columns
    return _gathered(parts, network)


def _not_empty(dims: Dims, network: NetworkInfo | None) -> bool:
    return min(dims.values()) > 0


def _coarsest(dims: Dims, network: NetworkInfo | None) -> bool:
    """One cell for 32 pixels, as YOLOv2 has."""
    if network is None:
        return False
    return (32 * dims["H"], 32 * dims["W"]) == (network.height, network.width)


def _pyramid(dims: Dims, network: NetworkInfo | None) -> bool:
    """Each grid has twice the cells of the next, each way."""
    heights, widths = (sorted(dims[k] for k in keys if k in dims) for keys in ("HIK", "WJL"))
    sizes = [side for side in (heights, widths) if side]
    return all(b == 2 * a for side in sizes for a, b in pairwise(side))


_THREE = (Out("3*(5+C) H W"), Out("3*(5+C) I J"), Out("3*(5+C) K L"))
_V3_LAYOUTS = (
    Layout(_THREE, partial(_activated, anchors=_V3, masks=_V3_MASKS), _not_empty, _pyramid),
)
_V3_TINY_DECODE = partial(_activated, anchors=_V3_TINY, masks=_V3_TINY_MASKS)
_V2_DECODE = partial(_activated, anchors=_V2, masks=(range(5),), exponential=True)
_RULE = "activated grids, objectness * best score >= T[class]"

ANCHOR_HEADS = (
    *(
        Head(
            f"HeadraceParseYoloV{version}{suffix}",
            f"YOLOv{version} without the decoding layer: three grids {kind}, COCO anchors",
            tuple(
                Layout(
                    outs,
                    partial(_raw_v5, anchors=anchors, activated=activated),
                    _not_empty,
                    _pyramid,
                )
                for outs in (
                    (Out("3 H W 5+C"), Out("3 I J 5+C"), Out("3 K L 5+C")),
                    _THREE,
                )
            ),
        )
        for suffix, kind, activated in (
            ("Raw", "of logits", False),
            ("Grids", "after a sigmoid", True),
        )
        for version, anchors in ((5, _V3), (7, _V7))
    ),
    Head("NvDsInferParseCustomYoloV3", f"YOLOv3: three {_RULE}", _V3_LAYOUTS),
    Head("NvDsInferParseCustomYoloV3_cuda", f"YOLOv3: three {_RULE}", _V3_LAYOUTS, suggested=False),
    Head(
        "NvDsInferParseCustomYoloV3Tiny",
        f"YOLOv3-tiny: two {_RULE}",
        (Layout(_THREE[:2], _V3_TINY_DECODE, _not_empty, _pyramid),),
    ),
    *(
        Head(
            name,
            f"YOLOv2: one of {_RULE}",
            (Layout((Out("5*(5+C) H W"),), _V2_DECODE, _not_empty),),
        )
        for name in ("NvDsInferParseCustomYoloV2", "NvDsInferParseCustomYoloV2Tiny")
    ),
    Head(
        "HeadraceParseYoloV2Raw",
        "YOLOv2 of Custom Vision: one grid of logits, objectness * best score >= T[class]",
        (
            Layout(
                (Out("5*(5+C) H W"),),
                partial(_V2_DECODE, logits=True),
                _coarsest,
            ),
        ),
        suggested=False,
    ),
)
