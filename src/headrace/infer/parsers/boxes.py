"""Small steps shared by the decoders: clipping, filtering, packing. All boxes in network pixels."""

from __future__ import annotations

import threading
from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from headrace._core import _native
from headrace._core.types import Array
from headrace.engine.machine import usable_cores
from headrace.infer.parsers.device_tables import DeviceTables
from headrace.meta.detections import BatchDetections, Detections, FloatArray, IntArray
from headrace.meta.layers import DetectionParams, NetworkInfo

_NO_OBJECTNESS = np.empty(0, np.float32)


def best_class(
    scores: FloatArray,
    thresholds: FloatArray,
    *,
    objectness: FloatArray | None = None,
    simd: bool = True,
) -> tuple[IntArray, IntArray, FloatArray]:
    """Candidates with a best class that reaches its threshold.

    The best class is the one with the largest score, the lowest index among equals; NaN never
    wins. A best class without a threshold (index >= len(thresholds)) drops the candidate.

    Args:
        scores: (N, C) float32; a transposed view of a (C, N) tensor costs no copy.
        thresholds: (K,) float32, lowest score of each class; equality passes.
        objectness: (N,) float32, multiplied with the best score before the comparison.
        simd: False takes the portable path (the same result, for tests).

    Returns:
        index (M,) int32 ascending, class (M,) int32, score (M,) float32. The GIL is released.
    """
    table: Array = scores
    if 0 in table.shape or not len(thresholds):
        return np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0, np.float32)
    if table.itemsize not in table.strides or min(table.strides) < 0:
        table = np.ascontiguousarray(table)
    n = len(table)
    index, class_id, score = np.empty(n, np.int32), np.empty(n, np.int32), np.empty(n, np.float32)
    count = _native.best_class(
        table,
        _NO_OBJECTNESS if objectness is None else objectness,
        np.ascontiguousarray(thresholds, np.float32),
        index,
        class_id,
        score,
        simd,
    )
    return index[:count], class_id[:count], score[:count]


class TableHits(NamedTuple):
    """Candidates of N items that reach the threshold of their best class, item after item.

    Attributes:
        planes: (4, room) float32, the first four columns of the M hits; more columns are free.
        rows, class_ids, scores: (M,) int32, int32, float32: the candidate of each, its best class,
            its score.
        starts: (N + 1,) int32, the first hit of each item, and the end of the last.
    """

    planes: FloatArray
    rows: IntArray
    class_ids: IntArray
    scores: FloatArray
    starts: IntArray


class _Room(threading.local):
    """Memory for the hits of a thread, used again and again: fresh pages cost more than a scan."""

    planes = np.empty((5, 0), np.float32)
    numbers = np.empty((2, 0), np.int32)


_room = _Room()


def room_for_hits(count: int) -> tuple[FloatArray, IntArray, IntArray, FloatArray]:
    """(4, room) planes, rows, class ids and scores of up to `count` hits.

    They last until the next call in this thread.
    """
    if _room.numbers.shape[1] < count:
        _room.planes = np.empty((5, count), np.float32)
        _room.numbers = np.empty((2, count), np.int32)
    return _room.planes[:4], _room.numbers[0], _room.numbers[1], _room.planes[4]


def table_hits(
    tables: FloatArray | DeviceTables, thresholds: FloatArray, *, objectness: bool
) -> TableHits:
    """`best_class` of the tables of a batch, in one call.

    Args:
        tables: (B, N, 4+C) float32 four numbers of a box and C scores, or with `objectness` (B, N,
            5+C); a transposed view costs no copy. Tables on the GPU may be
            float16, too, and stay there.
        thresholds: (K,) float32, lowest score of each class.
        objectness: column 4 is multiplied with the best score before the comparison.

    Returns:
        The hits; they last until the next call in this thread.

    Raises:
        EngineError: the GPU that holds the tables failed.
    """
    if isinstance(tables, DeviceTables):
        return tables.find_hits(tables, 4 + objectness, thresholds)
    items, count, width = tables.shape
    starts = np.zeros(items + 1, np.int32)
    planes, rows, class_ids, scores = room_for_hits(items * count)
    hit_count = 0
    if count and len(thresholds) and width > 4 + objectness:
        _, row, column = tables.strides
        if tables.itemsize not in (row, column) or min(tables.strides) < 0:
            tables = np.ascontiguousarray(tables)
        hit_count = _native.table_hits(
            tables,
            4 + objectness,
            np.ascontiguousarray(thresholds, np.float32),
            planes,
            rows,
            class_ids,
            scores,
            starts,
            _threads(),
        )
    return TableHits(planes, rows[:hit_count], class_ids[:hit_count], scores[:hit_count], starts)


@cache
def _threads() -> int:
    """Threads that share a batch's tables, which come from memory: more than four gain nothing."""
    return max(1, min(4, usable_cores() // 4))


_NO_CELLS = np.empty((3, 0), np.float32)


def centre_boxes(
    hits: TableHits,
    network: NetworkInfo,
    *,
    cells: FloatArray = _NO_CELLS,
    scale: tuple[float, float] = (1, 1),
) -> BatchDetections:
    """Boxes of hits that hold centre x, centre y, width, height, clipped to [0, W] x [0, H].

    Boxes narrower or lower than 1 go.

    Args:
        hits: of the tables; their `starts` become those of the boxes.
        network: W and H in pixels.
        cells: (3, N) float32 column, row and stride of each candidate: its centre counts from the
            cell, and all in strides.
        scale: network pixels of a unit of x and y, where there are no cells.
    """
    count, size = len(hits.rows), (network.width, network.height)
    boxes, class_ids = np.empty((count, 4), np.float32), np.empty(count, np.int32)
    scores = np.empty(count, np.float32)
    kept = _native.boxes_of_centres(*hits, cells, scale, size, boxes, class_ids, scores)
    detections = Detections.unchecked(boxes[:kept], scores[:kept], class_ids[:kept])
    return BatchDetections(detections, hits.starts)


def to_float32(values: Array) -> FloatArray:
    """The same numbers as float32, of any shape; float32 itself is not copied."""
    if values.dtype != np.float16:
        return values.astype(np.float32, copy=False)
    half = np.ascontiguousarray(values)
    single = np.empty(half.shape, np.float32)
    # NumPy converts halves in software, ten times slower than the instruction.
    if not _native.half_to_float(half.reshape(-1).view(np.uint16), single.reshape(-1)):
        return half.astype(np.float32)
    return single


NOT_EMPTY = float(np.finfo(np.float32).smallest_subnormal)
"""`smallest` that drops boxes without area and nothing else."""


def clipped_corners(
    x1: FloatArray,
    y1: FloatArray,
    x2: FloatArray,
    y2: FloatArray,
    right: float,
    bottom: float,
    scores: Array,
    class_ids: Array,
    *,
    smallest: float = 1.0,
) -> Detections:
    """Corners clipped to [0, right] x [0, bottom]; boxes narrower or lower than `smallest` go.

    Args:
        x1, y1, x2, y2: (N,) float32, pixels.
        scores, class_ids: (N,).
        smallest: pixels; sizes below it are dropped, equality stays.
    """
    # Plane by plane: NumPy is several times slower on columns of an (N, 4) array.
    planes = np.array((x1, y1, x2, y2), np.float32)
    np.minimum(planes, np.array([[right], [bottom], [right], [bottom]], np.float32), out=planes)
    np.maximum(planes, np.float32(0), out=planes)
    planes[2:] -= planes[:2]
    # NaN fails the comparison, so what is left is finite.
    keep = (planes[2] >= smallest) & (planes[3] >= smallest)
    if not keep.all():
        planes, scores, class_ids = planes[:, keep], scores[keep], class_ids[keep]
    return Detections(np.ascontiguousarray(planes.T), scores, class_ids)


def pack(
    left: Array,
    top: Array,
    width: Array,
    height: Array,
    scores: Array,
    class_ids: Array,
    keep: npt.NDArray[np.bool_] | None = None,
) -> Detections:
    """Boxes from four columns; rows outside `keep` and rows that are not finite are left out."""
    boxes = np.empty((len(left), 4), np.float32)
    boxes[:, 0], boxes[:, 1], boxes[:, 2], boxes[:, 3] = left, top, width, height
    chosen = np.asarray(np.isfinite(boxes).all(axis=1))
    if keep is not None:
        chosen &= keep
    return Detections(boxes[chosen], scores[chosen], class_ids[chosen].astype(np.int32))


def box_planes(rows: Array, index: Array) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """The first four columns of `rows` at `index`, fetched the way that suits the memory order."""
    if rows.strides[0] == rows.itemsize:
        a, b, c, d = rows.T[:4].take(index, axis=1)
    else:
        a, b, c, d = np.ascontiguousarray(rows[index, :4].T)
    return a, b, c, d


def class_numbers(values: Array) -> IntArray:
    """(N,) class ids given as numbers, cut to integers; NaN becomes -1."""
    if values.dtype.kind in "iu":
        values = np.clip(values, -1, 2**31 - 1)
        return np.asarray(values, np.int32)
    inside = np.abs(values) < 2**31  # false for NaN
    return np.where(inside, values, -1).astype(np.int32)


def first_threshold(params: DetectionParams) -> float:
    """The threshold of class 0, which several heads use for every class; NaN without classes."""
    return float(params.per_class_threshold[0]) if len(params.per_class_threshold) else np.nan


def column_thresholds(params: DetectionParams, class_ids: Array) -> FloatArray:
    """(N,) the threshold of each class id; NaN, which no score reaches, for ids out of range."""
    known = params.per_class_threshold[: params.num_classes]
    table = np.append(np.asarray(known, np.float32), np.float32(np.nan))
    inside = (class_ids >= 0) & (class_ids < len(known))
    return table[np.where(inside, class_ids, len(known))]


def sigmoid(x: Array) -> FloatArray:
    """1 / (1 + exp(-x)) in float32."""
    return np.asarray(1 / (1 + np.exp(-x.astype(np.float32, copy=False))), np.float32)


def suppressed(detections: Detections, iou: float) -> Array:
    """Indices that survive, best first: a box goes when a kept one of its class overlaps > `iou`.

    Axis-aligned boxes; ties keep their order.
    """
    order = np.argsort(-detections.scores, kind="stable")
    boxes = detections.boxes[order]
    boxes[:, 2:] += boxes[:, :2]
    kept = np.empty(len(order), np.int32)
    count = _native.greedy_nms(boxes, detections.class_ids[order], iou, False, 0, kept)
    return np.asarray(order[kept[:count]], np.intp)
