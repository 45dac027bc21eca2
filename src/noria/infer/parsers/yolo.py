"""YOLO heads with one decoded output, and the YOLOX grid. Boxes in network pixels."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from noria.infer.parsers.boxes import box_planes, class_numbers, clipped_corners, column_thresholds
from noria.infer.parsers.head import Arrays, Dims, Head, Layout, Out, UnfitError
from noria.infer.parsers.scan import best_class
from noria.meta.detections import Detections, FloatArray, IntArray
from noria.meta.layers import DetectionParams, NetworkInfo

_HALF = np.float32(0.5)


def _centres(
    rows: FloatArray,
    index: IntArray,
    scores: FloatArray,
    class_ids: IntArray,
    network: NetworkInfo,
    *,
    unit: bool = False,
) -> Detections:
    """Centre x, centre y, width, height of the rows at `index`; clipped to [0, W] x [0, H]."""
    cx, cy, w, h = box_planes(rows, index)
    if unit:
        wide, high = np.float32(network.width), np.float32(network.height)
        cx, cy, w, h = cx * wide, cy * high, w * wide, h * high
    x1, y1 = cx - w * _HALF, cy - h * _HALF
    return clipped_corners(x1, y1, x1 + w, y1 + h, network.width, network.height, scores, class_ids)


def _plain_rows(arrays: Arrays, network: NetworkInfo, params: DetectionParams) -> Detections:
    """[A, 4+C]: centre box, C scores."""
    rows = arrays[0]
    index, class_ids, scores = best_class(rows[:, 4:], params.per_class_threshold)
    return _centres(rows, index, scores, class_ids, network)


def _plain_columns(arrays: Arrays, network: NetworkInfo, params: DetectionParams) -> Detections:
    """[4+C, A]: the same, channel by channel."""
    return _plain_rows([arrays[0].T], network, params)


def _unit_rows(arrays: Arrays, network: NetworkInfo, params: DetectionParams) -> Detections:
    """[Q, 4+C]: centre box in 0..1, C scores."""
    rows = arrays[0]
    index, class_ids, scores = best_class(rows[:, 4:], params.per_class_threshold)
    return _centres(rows, index, scores, class_ids, network, unit=True)


def _weighted_rows(arrays: Arrays, network: NetworkInfo, params: DetectionParams) -> Detections:
    """[N, 5+C]: centre box, objectness, C scores; score = objectness * best score."""
    rows = arrays[0]
    index, class_ids, scores = best_class(
        rows[:, 5:], params.per_class_threshold, objectness=rows[:, 4]
    )
    return _centres(rows, index, scores, class_ids, network)


def _objectness_rows(arrays: Arrays, network: NetworkInfo, params: DetectionParams) -> Detections:
    """[N, 5+C]: as `_weighted_rows`, but the objectness alone is the confidence."""
    rows = arrays[0]
    rows = rows[rows[:, 4] >= np.float32(params.min_threshold)]
    # The search starts at 0: scores that are not above it leave class 0.
    class_ids = np.where(rows[:, 5:] > 0, rows[:, 5:], np.float32(0)).argmax(axis=1)
    keep = np.nonzero(rows[:, 4] >= column_thresholds(params, class_ids))[0].astype(np.int32)
    return _centres(rows, keep, rows[keep, 4], class_ids[keep].astype(np.int32), network)


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


def _yolox(arrays: Arrays, network: NetworkInfo, params: DetectionParams) -> Detections:
    """[N, 5+C] undecoded: centre = (t + cell) * stride, size = exp(t) * stride."""
    rows = arrays[0]
    for strides in _STRIDES:
        if yolox_candidates(network, strides) == len(rows):
            break
    else:
        raise UnfitError(
            f"{len(rows)} candidates, but a {network.width}x{network.height} network has "
            f"{yolox_candidates(network, _STRIDES[0])} YOLOX cells",
        )
    index, class_ids, scores = best_class(
        rows[:, 5:], params.per_class_threshold, objectness=rows[:, 4]
    )
    grid = _yolox_grid(network.width, network.height, strides)
    cell_x, cell_y, stride = grid.take(index, axis=1)
    tx, ty, tw, th = box_planes(rows, index)
    # An overflowing size ends as NaN corners, which go with the boxes that are too small.
    w, h = np.exp(tw) * stride, np.exp(th) * stride
    x1, y1 = (tx + cell_x) * stride - w * _HALF, (ty + cell_y) * stride - h * _HALF
    x2, y2 = x1 + w, y1 + h
    return clipped_corners(x1, y1, x2, y2, network.width, network.height, scores, class_ids)


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


def _always(dims: Dims, network: NetworkInfo | None) -> bool:
    return True


_COLUMNS = Layout((Out("4+C N"),), _plain_columns, likely=_tall_cells, first=True)
_ROWS = Layout((Out("N 4+C"),), _plain_rows, likely=_tall_cells, first=True)
_WEIGHTED = Layout((Out("N 5+C"),), _weighted_rows, _tall, _is_cells_or_anchors, first=True)
_OBJECTNESS = Layout((Out("N 5+C"),), _objectness_rows, _tall, _is_cells_or_anchors, first=True)
_GRID = Layout((Out("N 5+C"),), _yolox, _tall_or_cells, _is_cells, first=True)
_CORNERS = Layout((Out("N 6"),), _corner_rows, likely=_always, first=True)
_QUERIES = Layout((Out("N 4+C"),), _unit_rows, likely=_few, first=True)

_PLAIN = "centre boxes in pixels, best of C scores >= T[class]"
_CORNER = "corner boxes in pixels, score >= T[class], class index as a number"
_PRODUCT = "centre boxes in pixels, objectness * best score >= T[class]"

HEADS = (
    Head("NvDsInferParseYolo", f"DeepStream-Yolo: {_CORNER}", (_CORNERS,)),
    Head(
        "NvDsInferParseYoloCuda", f"as NvDsInferParseYolo: {_CORNER}", (_CORNERS,), suggested=False
    ),
    Head(
        "NoriaParseYoloX",
        "YOLOX not decoded in the model: grid offsets, objectness * best score >= T[class]",
        (_GRID,),
        strict_classes=True,
    ),
    Head(
        "NoriaParseYoloV8",
        f"YOLOv8/9/11 raw, either orientation: {_PLAIN}",
        (_COLUMNS, _ROWS),
        strict_classes=True,
    ),
    Head(
        "NoriaParseYoloV5",
        f"YOLOv5/6/7, and YOLOX decoded in the model: {_PRODUCT}",
        (_WEIGHTED,),
        strict_classes=True,
    ),
    Head(
        "NoriaParseRTDETR",
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
