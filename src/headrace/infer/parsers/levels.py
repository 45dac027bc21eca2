"""Heads of one table or map a level, with distances from each cell. Network pixels."""

from __future__ import annotations

from functools import lru_cache, partial
from itertools import pairwise

import numpy as np

from headrace._core.types import Array
from headrace.infer.parsers.boxes import best_class, clipped_corners, first_threshold
from headrace.infer.parsers.head import Arrays, Dims, Head, Layout, Out, UnfitError
from headrace.infer.parsers.keypoints import posed, with_scores
from headrace.meta.detections import Detections, FloatArray, IntArray
from headrace.meta.layers import DetectionParams, NetworkInfo

_STRIDES = (8, 16, 32, 64)
_POINTS = 5
_HALF = np.float32(0.5)


@lru_cache(maxsize=32)
def _cells(width: int, height: int, rows: int, columns: int, offset: float) -> FloatArray:
    """(N, 4) x, y of each cell in pixels, and the stride each way; `offset` 0.5 is the middle."""
    y, x = np.mgrid[:rows, :columns]
    stride = np.array([width / columns, height / rows])
    at = (np.stack([x.ravel(), y.ravel()], axis=1) + offset) * stride
    cells = np.concatenate([at, np.broadcast_to(stride, at.shape)], axis=1).astype(np.float32)
    cells.setflags(write=False)
    return cells


def _level(network: NetworkInfo, count: int, stride: int, offset: float) -> FloatArray:
    """The cells of a level of this stride, of which there must be `count`."""
    rows, columns = -(-network.height // stride), -(-network.width // stride)
    if rows * columns != count:
        raise UnfitError(f"{count} candidates of stride {stride} for {rows * columns} cells")
    return _cells(columns * stride, rows * stride, rows, columns, offset)


def _expected(logits: FloatArray) -> FloatArray:
    """(N, 4*B) logits of distances 0..B-1 to (N, 4) expected distances. Source: DFL."""
    table = logits.reshape(len(logits), 4, logits.shape[1] // 4)
    powers = np.exp(table - table.max(axis=2, keepdims=True))
    bins = np.arange(table.shape[2], dtype=np.float32)
    return np.asarray((powers / powers.sum(axis=2, keepdims=True)) @ bins, np.float32)


def _from_distances(
    parts: list[tuple[FloatArray, FloatArray, FloatArray, IntArray]], network: NetworkInfo
) -> Detections:
    """Boxes of (cells, distances to four sides in strides, scores, classes)."""
    if not parts:
        return Detections.empty()
    cells, sides, scores, class_ids = (np.concatenate(part) for part in zip(*parts, strict=True))
    at, stride = cells[:, :2], cells[:, 2:]
    (x1, y1), (x2, y2) = (at - sides[:, :2] * stride).T, (at + sides[:, 2:] * stride).T
    return clipped_corners(x1, y1, x2, y2, network.width, network.height, scores, class_ids)


def _bins(
    arrays: Arrays, network: NetworkInfo, params: DetectionParams, *, offset: float
) -> Detections:
    """Tables [n, C] of scores, then [n, 4*B] of logits of the distances, finest level first."""
    count, parts = len(arrays) // 2, []
    for stride, scores, logits in zip(_STRIDES, arrays[:count], arrays[count:], strict=False):
        cells = _level(network, len(scores), stride, offset)
        index, class_ids, best = best_class(scores, params.per_class_threshold)
        parts.append((cells[index], _expected(logits[index]), best, class_ids))
    return _from_distances(parts, network)


def _nanodet(arrays: Arrays, network: NetworkInfo, params: DetectionParams) -> Detections:
    """[N, C+32]: C scores, logits of 4 x 8 distances from the corner of each cell."""
    table, start, scores, logits = arrays[0], 0, [], []
    for stride in _STRIDES:
        end = start + -(-network.height // stride) * -(-network.width // stride)
        scores.append(table[start:end, :-32])
        logits.append(np.ascontiguousarray(table[start:end, -32:]))
        start = end
    if start != len(table):
        raise UnfitError(f"{len(table)} candidates for {start} cells of strides 8 to 64")
    return _bins([*scores, *logits], network, params, offset=0)


def _table(planes: FloatArray) -> Array:
    """[D, h, w] as (h*w, D), without a copy."""
    depth, rows, columns = planes.shape
    return planes.reshape(depth, rows * columns).T


def _distance_maps(
    arrays: Arrays, network: NetworkInfo, params: DetectionParams, *, each: int
) -> Detections:
    """`each` maps a level: distances [4, h, w] or their logits [4*B, h, w], scores [C, h, w]."""
    parts = []
    for first in range(0, len(arrays), each):
        sides, scores = arrays[first], arrays[first + 1]
        if not sides.size:
            continue
        cells = _cells(network.width, network.height, *sides.shape[1:], 0.5)
        index, class_ids, best = best_class(_table(scores), params.per_class_threshold)
        distances = np.ascontiguousarray(_table(sides)[index])
        if len(sides) != 4:
            distances = _expected(distances)
        parts.append((cells[index], distances, best, class_ids))
    return _from_distances(parts, network)


def _joined_maps(arrays: Arrays, network: NetworkInfo, params: DetectionParams) -> Detections:
    """[5+C, h, w]: distances, a confidence that repeats the best score or is 1, C scores."""
    maps = [part for array in arrays for part in (array[:4], array[5:])]
    return _distance_maps(maps, network, params, each=2)


def _yolox_maps(arrays: Arrays, network: NetworkInfo, params: DetectionParams) -> Detections:
    """[5+C, h, w]: offsets and logarithms of sizes in strides, objectness, C scores."""
    corners, scores, class_ids = [], [], []
    for array in (array for array in arrays if array.size):
        table = _table(array)
        cells = _cells(network.width, network.height, *array.shape[1:], 0)
        index, labels, best = best_class(
            table[:, 5:], params.per_class_threshold, objectness=table[:, 4]
        )
        rows, stride = np.ascontiguousarray(table[index, :4]), cells[index, 2:]
        centre, half = cells[index, :2] + rows[:, :2] * stride, np.exp(rows[:, 2:]) * stride * _HALF
        corners.append(np.concatenate([centre - half, centre + half], axis=1))
        scores.append(best)
        class_ids.append(labels)
    if not corners:
        return Detections.empty()
    x1, y1, x2, y2 = np.concatenate(corners).T
    every, labels = np.concatenate(scores), np.concatenate(class_ids)
    return clipped_corners(x1, y1, x2, y2, network.width, network.height, every, labels)


def _yunet(arrays: Arrays, network: NetworkInfo, params: DetectionParams) -> Detections:
    """Three levels of class, objectness, offset and log size, five points: all from the cell."""
    threshold, parts = first_threshold(params), []
    for stride, *tables in zip(
        _STRIDES[:3], arrays[:3], arrays[3:6], arrays[6:9], arrays[9:], strict=True
    ):
        classes, objects, boxes, points = tables
        chances = np.clip(classes[:, 0], 0, 1) * np.clip(objects[:, 0], 0, 1)
        scores = np.sqrt(chances)
        keep = np.nonzero(scores >= threshold)[0]
        at = _level(network, len(classes), stride, 0)[keep, :2]
        centre, half = at + boxes[keep, :2] * stride, np.exp(boxes[keep, 2:]) * stride * _HALF
        pairs = points[keep].reshape(-1, _POINTS, 2) * stride + at[:, None]
        parts.append((np.concatenate([centre - half, centre + half], axis=1), scores[keep], pairs))
    corners, scores, pairs = (np.concatenate(part) for part in zip(*parts, strict=True))
    x1, y1, x2, y2 = corners.T
    ids = np.zeros(len(scores), np.int32)
    return posed((x1, y1, x2, y2), scores, ids, with_scores(pairs), network)


def _is_nanodet(dims: Dims, network: NetworkInfo | None) -> bool:
    if network is None:
        return dims["N"] % 85 == 0
    cells = (-(-network.width // s) * -(-network.height // s) for s in _STRIDES)
    return sum(cells) == dims["N"]


def _levels(dims: Dims, network: NetworkInfo | None) -> bool:
    """Each level has a quarter of the cells of the finer one."""
    sizes = [dims[letter] for letter in "NMKL" if letter in dims]
    return all(-(-a // 4) <= b <= a // 3 for a, b in pairwise(sizes))


def _always(*_: object) -> bool:
    return True


_SIZES = ("H W", "I J", "K L")
_MAPS = tuple(Out(f"5+C {size}") for size in _SIZES)


def _maps(*terms: str) -> tuple[Out, ...]:
    return tuple(Out(f"{term} {size}") for size in _SIZES for term in terms)


HEADS = (
    Head(
        "HeadraceParseNanoDet",
        "NanoDet-Plus: C scores and logits of 4 x 8 distances, best score >= T[class]",
        (Layout((Out("N 32+C"),), _nanodet, _is_nanodet, _is_nanodet),),
        strict_classes=True,
    ),
    Head(
        "HeadraceParsePicoDetRaw",
        "PicoDet without its last step: four tables of scores, four of logits of 4 x 8 distances, "
        "best score >= T[class]",
        (
            Layout(
                tuple(Out(f"{n} {width}") for width in ("C", "32") for n in "NMKL"),
                partial(_bins, offset=0.5),
                _levels,
                _always,
            ),
        ),
        strict_classes=True,
    ),
    Head(
        "HeadraceParseDistanceMaps",
        "YOLOv8/11 and YOLOv6 as RKNN's fork writes them: maps of distances or their logits, of C "
        "scores, and of the sum of scores (not used); best score >= T[class]",
        tuple(
            Layout(_maps(sides, "C", *more), partial(_distance_maps, each=2 + len(more)),
                   likely=_always)
            for sides in ("64", "4")
            for more in (("1",), ())
        ),
        strict_classes=True,
    ),
    Head(
        "HeadraceParseJoinedMaps",
        "YOLOv6 to YOLOv11 as Luxonis writes them: maps of distances, a confidence (not used) and "
        "C scores; best score >= T[class]",
        (Layout(_MAPS, _joined_maps, likely=_always),),
        strict_classes=True,
    ),
    Head(
        "HeadraceParseYoloXMaps",
        "YOLOX as RKNN's fork writes it: maps of grid offsets, objectness * best score >= T[class]",
        (Layout(_MAPS, _yolox_maps, likely=_always),),
        strict_classes=True,
    ),
    Head(
        "HeadraceParseYuNet",
        "YuNet: class, objectness, box and five points of strides 8, 16, 32; "
        "root of their product >= T[0]",
        (
            Layout(
                tuple(Out(f"{n} {width}") for width in (1, 1, 4, 10) for n in "NMK"),
                _yunet,
                _levels,
                _always,
            ),
        ),
    ),
)  # fmt: skip
