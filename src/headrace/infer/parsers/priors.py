"""Heads of offsets from fixed boxes: UltraFace, BlazeFace, EfficientDet. Network pixels."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from headrace._core.types import Array
from headrace.infer.parsers.boxes import (
    best_class,
    clipped_corners,
    column_thresholds,
    first_threshold,
    sigmoid,
)
from headrace.infer.parsers.head import Arrays, Dims, Head, Layout, Out, UnfitError
from headrace.infer.parsers.keypoints import posed, with_scores
from headrace.meta.detections import Detections, FloatArray
from headrace.meta.layers import DetectionParams, NetworkInfo

_HALF = np.float32(0.5)
_FACE_STRIDES = (8, 16, 32, 64)
_FACE_SIZES = ((10, 16, 24), (32, 48), (64, 96), (128, 192, 256))
_BLAZE = (((8, 2), (16, 6)), ((4, 1),))  # anchors in a cell of each stride: near faces, far ones
_LEVELS = (8, 16, 32, 64, 128)
_ANCHOR = 4  # sides of EfficientDet's anchors, in strides
_OCTAVES = tuple(2 ** (i / 3) for i in range(3))
_ASPECTS = ((1.0, 1.0), (1.4, 0.7), (0.7, 1.4))


def _fixed(parts: list[Array]) -> FloatArray:
    values = np.concatenate(parts).astype(np.float32)
    values.setflags(write=False)
    return values


def _centres(width: int, height: int, stride: int) -> Array:
    """(cells, 2) x, y of the middle of each cell, in pixels."""
    y, x = np.mgrid[: -(-height // stride), : -(-width // stride)]
    return (np.stack([x.ravel(), y.ravel()], axis=1) + 0.5) * stride


@lru_cache(maxsize=8)
def _face_priors(width: int, height: int) -> FloatArray:
    """(N, 4) centre and size of UltraFace's priors, in 0..1, clipped as its training does."""
    parts = []
    for stride, sizes in zip(_FACE_STRIDES, _FACE_SIZES, strict=True):
        centres = _centres(width, height, stride).repeat(len(sizes), axis=0)
        size = np.tile(np.array(sizes, float), len(centres) // len(sizes))[:, None]
        boxes = np.concatenate([centres, size, size], axis=1) / [width, height, width, height]
        parts.append(np.clip(boxes, 0, 1))
    return _fixed(parts)


def _ultra_face(arrays: Arrays, network: NetworkInfo, params: DetectionParams) -> Detections:
    """[N, 2] probabilities, [N, 4] offsets from priors with SSD's variances 0.1 and 0.2."""
    scores, offsets = arrays
    priors = _face_priors(network.width, network.height)
    if len(priors) != len(scores):
        raise UnfitError(
            f"{len(scores)} candidates, but a {network.width}x{network.height} network has "
            f"{len(priors)} priors of UltraFace"
        )
    keep = np.nonzero(scores[:, 1] >= first_threshold(params))[0]
    at, size = priors[keep, :2], priors[keep, 2:]
    centres = at + offsets[keep, :2] * np.float32(0.1) * size
    half = size * np.exp(offsets[keep, 2:] * np.float32(0.2)) * _HALF
    scale = np.array([network.width, network.height], np.float32)
    (x1, y1), (x2, y2) = ((centres - half) * scale).T, ((centres + half) * scale).T
    ids = np.zeros(len(keep), np.int32)
    return clipped_corners(x1, y1, x2, y2, network.width, network.height, scores[keep, 1], ids)


@lru_cache(maxsize=8)
def _blaze_centres(width: int, height: int, rows: int) -> FloatArray | None:
    """(N, 2) centres of BlazeFace's anchors in pixels; None where no set has so many rows."""
    for strides in _BLAZE:
        parts = [_centres(width, height, s).repeat(count, axis=0) for s, count in strides]
        if sum(map(len, parts)) == rows:
            return _fixed(parts)
    return None


def _blaze(arrays: Arrays, network: NetworkInfo, params: DetectionParams) -> Detections:
    """[N, 4+2K] centre, size and points in pixels from the anchor, [N, 1] logits."""
    offsets, logits = arrays
    centres = _blaze_centres(network.width, network.height, len(offsets))
    if centres is None:
        raise UnfitError(
            f"{len(offsets)} candidates are none of BlazeFace's numbers of anchors for a "
            f"{network.width}x{network.height} network"
        )
    scores = sigmoid(logits[:, 0])
    keep = np.nonzero(scores >= first_threshold(params))[0]
    at, rows = centres[keep], offsets[keep]
    middle, half = at + rows[:, :2], rows[:, 2:4] * _HALF
    (x1, y1), (x2, y2) = (middle - half).T, (middle + half).T
    count = (offsets.shape[1] - 4) // 2
    points = rows[:, 4:].reshape(len(keep), count, 2) + at[:, None]
    ids = np.zeros(len(keep), np.int32)
    return posed((x1, y1, x2, y2), scores[keep], ids, with_scores(points), network)


@lru_cache(maxsize=8)
def _efficientdet_anchors(width: int, height: int, stride: int) -> FloatArray:
    """(9 * cells, 4) centre and size of a level's anchors, in pixels; cell by cell."""
    centres = _centres(width, height, stride)
    sides = [(_ANCHOR * stride * o * w, _ANCHOR * stride * o * h) for o in _OCTAVES
             for w, h in _ASPECTS]  # fmt: skip
    sizes = np.tile(np.array(sides), (len(centres), 1))
    return _fixed([np.concatenate([centres.repeat(len(sides), axis=0), sizes], axis=1)])


def _efficientdet(arrays: Arrays, network: NetworkInfo, params: DetectionParams) -> Detections:
    """Five maps [9*C, h, w] of logits, five [36, h, w] of y, x, height, width from the anchors."""
    count = len(arrays) // 2
    parts = []
    for stride, classes, offsets in zip(_LEVELS, arrays[:count], arrays[count:], strict=True):
        anchors = _efficientdet_anchors(network.width, network.height, stride)
        shapes = len(_OCTAVES) * len(_ASPECTS)
        table = classes.reshape(shapes, len(classes) // shapes, *classes.shape[1:])
        table = np.ascontiguousarray(table.transpose(2, 3, 0, 1)).reshape(-1, table.shape[1])
        if len(table) != len(anchors):
            raise UnfitError(
                f"a level of {len(table)} candidates for {len(anchors)} anchors of stride {stride}"
            )
        index, class_ids, best = best_class(table, np.full(table.shape[1], -np.inf, np.float32))
        scores = sigmoid(best)
        keep = scores >= column_thresholds(params, class_ids)
        index, class_ids, scores = index[keep], class_ids[keep], scores[keep]
        deltas = offsets.reshape(shapes, 4, *offsets.shape[1:]).transpose(2, 3, 0, 1).reshape(-1, 4)
        at, size = anchors[index, :2], anchors[index, 2:]
        centre = at + deltas[index, 1::-1] * size
        half = np.exp(deltas[index, :1:-1]) * size * _HALF
        parts.append((centre - half, centre + half, scores, class_ids))
    low, high, scores, class_ids = (np.concatenate(part) for part in zip(*parts, strict=True))
    (x1, y1), (x2, y2) = low.T, high.T
    return clipped_corners(x1, y1, x2, y2, network.width, network.height, scores, class_ids)


def _is_blaze(dims: Dims, network: NetworkInfo | None) -> bool:
    if network is None:
        return dims["N"] in (896, 2016, 2304)
    return _blaze_centres(network.width, network.height, dims["N"]) is not None


def _is_ultra_face(dims: Dims, network: NetworkInfo | None) -> bool:
    if network is None:
        return dims["N"] in (4420, 17640)
    return len(_face_priors(network.width, network.height)) == dims["N"]


def _five(term: str) -> tuple[Out, ...]:
    return tuple(
        Out(f"{term} {rows} {columns}") for rows, columns in ("HW", "IJ", "KL", "MN", "PQ")
    )


HEADS = (
    Head(
        "HeadraceParseUltraFacePriors",
        "Ultra-Light-Fast face detector without its last step: offsets from priors, "
        "probabilities >= T[0]",
        (Layout((Out("N 2", ("scores",)), Out("N 4", ("boxes",))), _ultra_face, _is_ultra_face),),
        suggested=False,
    ),
    Head(
        "HeadraceParseBlazeFace",
        "BlazeFace and palms of MediaPipe: boxes and K points in pixels from the anchor, "
        "sigmoid >= T[0]",
        tuple(
            Layout((Out(f"N {width}"), Out("N 1")), _blaze, _is_blaze, _is_blaze)
            for width in (16, 18)
        ),
    ),
    Head(
        "HeadraceParseEfficientDetRaw",
        "EfficientDet without its last step: five maps of logits for nine anchors, five of "
        "y, x, height, width from them, sigmoid >= T[class]",
        (Layout((*_five("9*C"), *_five("36")), _efficientdet, likely=lambda *_: True),),
        strict_classes=True,
    ),
)
