"""Heads of poses and faces: boxes with keypoints, both in network pixels."""

from __future__ import annotations

from functools import lru_cache, partial

import numpy as np

from headrace.infer.parsers.boxes import best_class, box_planes, clipped_corners, first_threshold
from headrace.infer.parsers.head import Arrays, Dims, Head, Layout, Out, UnfitError, wrong_classes
from headrace.meta.detections import Detections, FloatArray, IntArray
from headrace.meta.layers import DetectionParams, NetworkInfo

_HALF = np.float32(0.5)
_FACE_POINTS = 5
_STRIDES = (8, 16, 32)
_ANCHOR_SIZES = ((16, 32), (64, 128), (256, 512))  # RetinaFace, pixels at each stride
_VARIANCES = np.array([0.1, 0.2], np.float32)  # of places and of the logarithms of sizes


def posed(
    corners: tuple[FloatArray, FloatArray, FloatArray, FloatArray],
    scores: FloatArray,
    class_ids: IntArray,
    keypoints: FloatArray,
    network: NetworkInfo,
) -> Detections:
    """Boxes clipped to the network input, each with its keypoints; points are not clipped.

    Args:
        corners: x1, y1, x2, y2, each (N,).
        scores: (N,).
        class_ids: (N,).
        keypoints: (N, K, 3).
        network: its input.
    """
    # The places ride along as scores: what is dropped for its size takes its points along.
    indices = np.arange(len(scores), dtype=np.float32)
    detections = clipped_corners(*corners, network.width, network.height, indices, class_ids)
    rows = detections.scores.astype(np.intp)
    detections.scores, detections.keypoints = scores[rows], np.ascontiguousarray(keypoints[rows])
    return detections


def _centre_corners(
    rows: FloatArray, index: IntArray
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    cx, cy, w, h = box_planes(rows, index)
    x1, y1 = cx - w * _HALF, cy - h * _HALF
    return x1, y1, x1 + w, y1 + h


def with_scores(pairs: FloatArray) -> FloatArray:
    """(N, K, 2) x, y as keypoints of score 1."""
    return np.concatenate([pairs, np.ones_like(pairs[..., :1])], axis=2)


def points_of(values: FloatArray) -> FloatArray:
    """(N, 3K) x, y, score of each point, or (N, 2K) x, y."""
    count, width = values.shape
    if width % 3 == 0:
        return values.reshape(count, width // 3, 3)
    return with_scores(values.reshape(count, width // 2, 2))


def _yolo_v8_pose(
    arrays: Arrays, network: NetworkInfo, params: DetectionParams, *, columns: bool
) -> Detections:
    """[4+C+3K, N] or its transpose: centre box, C scores, x, y, score of each point."""
    rows = arrays[0].T if columns else arrays[0]
    values = rows.shape[1] - 4 - params.num_classes
    if values < 2 or (values % 3 and values % 2):
        if rows.shape[1] == 4 + 1 + 3 * 17 or rows.shape[1] == 4 + 1 + 3 * _FACE_POINTS:
            raise wrong_classes(params, 1)
        raise UnfitError(
            f"{rows.shape[1]} values a candidate leave {values} for keypoints of "
            f"{params.num_classes} classes",
            expected="4 + num-detected-classes + 3 (or 2) for each point",
        )
    scores_end = 4 + params.num_classes
    index, class_ids, scores = best_class(rows[:, 4:scores_end], params.per_class_threshold)
    points = points_of(np.ascontiguousarray(rows[index, scores_end:]))
    return posed(_centre_corners(rows, index), scores, class_ids, points, network)


def _yolo_v5_face(arrays: Arrays, network: NetworkInfo, params: DetectionParams) -> Detections:
    """[N, 15+C]: centre box, objectness, x, y of five points, C scores."""
    rows = arrays[0]
    index, class_ids, scores = best_class(
        rows[:, 15:], params.per_class_threshold, objectness=rows[:, 4]
    )
    pairs = rows[index, 5:15].reshape(-1, _FACE_POINTS, 2)
    return posed(_centre_corners(rows, index), scores, class_ids, with_scores(pairs), network)


def _yolo_v7_face(arrays: Arrays, network: NetworkInfo, params: DetectionParams) -> Detections:
    """[N, 20+C], C = 1: centre box, objectness, a score, x, y, score of five points."""
    rows = arrays[0]
    index, class_ids, scores = best_class(
        rows[:, 5:6], params.per_class_threshold, objectness=rows[:, 4]
    )
    points = np.ascontiguousarray(rows[index, 6:]).reshape(-1, _FACE_POINTS, 3)
    return posed(_centre_corners(rows, index), scores, class_ids, points, network)


@lru_cache(maxsize=8)
def _cells(width: int, height: int, stride: int, anchors: int) -> FloatArray:
    """(N, 2) x, y of the upper left corner of each cell, `anchors` times each, in pixels."""
    y, x = np.mgrid[: -(-height // stride), : -(-width // stride)]
    cells = np.stack([x.ravel(), y.ravel()], axis=1).repeat(anchors, axis=0) * stride
    corners = cells.astype(np.float32)
    corners.setflags(write=False)
    return corners


def _scrfd(arrays: Arrays, network: NetworkInfo, params: DetectionParams) -> Detections:
    """Three strides of scores, distances to the four sides and points, in strides from the cell.

    Points may be missing.
    """
    threshold = first_threshold(params)
    parts = []
    tables = arrays[6:] or [np.empty((len(score), 0), np.float32) for score in arrays[:3]]
    for stride, score, sides, points in zip(_STRIDES, arrays[:3], arrays[3:6], tables, strict=True):
        cells = _cells(network.width, network.height, stride, 1)
        anchors, rest = divmod(len(score), max(1, len(cells)))
        if rest or not anchors:
            raise UnfitError(
                f"{len(score)} candidates of stride {stride} for {len(cells)} cells",
                expected="one number of candidates for each cell",
            )
        keep = np.nonzero(score[:, 0] >= threshold)[0]
        at = _cells(network.width, network.height, stride, anchors)[keep]
        sides, points = (
            sides[keep] * stride,
            points[keep].reshape(len(keep), points.shape[1] // 2, 2) * stride,
        )
        corners = np.concatenate([at - sides[:, :2], at + sides[:, 2:]], axis=1)
        parts.append((corners, score[keep, 0], points + at[:, None]))
    corners, scores, points = (np.concatenate(part) for part in zip(*parts, strict=True))
    x1, y1, x2, y2 = corners.T
    ids = np.zeros(len(scores), np.int32)
    if not points.shape[1]:
        return clipped_corners(x1, y1, x2, y2, network.width, network.height, scores, ids)
    return posed((x1, y1, x2, y2), scores, ids, with_scores(points), network)


@lru_cache(maxsize=8)
def _priors(width: int, height: int) -> FloatArray:
    """(N, 4) centre and size of the anchors of RetinaFace, in pixels."""
    parts = []
    for stride, sizes in zip(_STRIDES, _ANCHOR_SIZES, strict=True):
        centres = _cells(width, height, stride, len(sizes)) + np.float32(stride / 2)
        size = np.tile(np.array(sizes, np.float32), len(centres) // len(sizes))
        parts.append(np.column_stack([centres, size, size]))
    priors = np.concatenate(parts).astype(np.float32)
    priors.setflags(write=False)
    return priors


def _retina_face(arrays: Arrays, network: NetworkInfo, params: DetectionParams) -> Detections:
    """Offsets from anchors, two probabilities, offsets of five points. Source: SSD's decoding."""
    offsets, scores, points = arrays
    priors = _priors(network.width, network.height)
    if len(priors) != len(offsets):
        raise UnfitError(
            f"{len(offsets)} candidates, but a {network.width}x{network.height} network has "
            f"{len(priors)} anchors of RetinaFace"
        )
    keep = np.nonzero(scores[:, 1] >= first_threshold(params))[0]
    at, size = priors[keep, :2], priors[keep, 2:]
    centres = at + offsets[keep, :2] * _VARIANCES[0] * size
    sides = size * np.exp(offsets[keep, 2:] * _VARIANCES[1])
    pairs = (
        at[:, None]
        + points[keep].reshape(len(keep), _FACE_POINTS, 2) * _VARIANCES[0] * size[:, None]
    )
    (x1, y1), (x2, y2) = (centres - sides * _HALF).T, (centres + sides * _HALF).T
    ids = np.zeros(len(keep), np.int32)
    return posed((x1, y1, x2, y2), scores[keep, 1], ids, with_scores(pairs), network)


def _heat_maps(arrays: Arrays, network: NetworkInfo, params: DetectionParams) -> Detections:
    """[K, H, W]: one object, as large as the input; each point at the peak of its map.

    A quarter cell towards the higher neighbour, as SimpleBaseline and HRNet are evaluated.
    """
    maps = arrays[0]  # TinyPose adds the places of their peaks
    count, height, width = maps.shape
    y, x = np.divmod(maps.reshape(count, -1).argmax(axis=1), width)
    every = np.arange(count)
    scores = maps[every, y, x]
    padded = np.pad(maps, ((0, 0), (1, 1), (1, 1)), mode="edge")
    shift_x = np.sign(padded[every, y + 1, x + 2] - padded[every, y + 1, x])
    shift_y = np.sign(padded[every, y + 2, x + 1] - padded[every, y, x + 1])
    scale = np.array([network.width / width, network.height / height], np.float32)
    positions = np.stack([x + shift_x / 4, y + shift_y / 4], axis=1) * scale
    points = np.column_stack([positions, scores]).astype(np.float32)
    score = np.float32(scores.mean())
    if not score >= first_threshold(params):
        return Detections.empty()
    whole = np.array([[0, 0, network.width, network.height]], np.float32)
    return Detections(whole, score.reshape(1), np.zeros(1, np.int32), keypoints=points[None])


def _wide(dims: Dims, network: NetworkInfo | None) -> bool:
    """More candidates than values, and values enough for a box, a score and a point."""
    return dims["N"] > dims["P"] >= 7


def _persons(dims: Dims, network: NetworkInfo | None) -> bool:
    """One class, and a candidate for each cell of the usual grids."""
    return dims["C"] == 1 and dims["N"] % 21 == 0


def _one_class(dims: Dims, network: NetworkInfo | None) -> bool:
    """Faces alone, of as many candidates as three anchors a cell give."""
    return dims["C"] == 1 and dims["N"] % 63 == 0


def _quarters(dims: Dims, network: NetworkInfo | None) -> bool:
    """Each level has a quarter of the candidates of the finer one."""
    return dims["N"] == 4 * dims["M"] == 16 * dims["K"]


def _quarter(dims: Dims, network: NetworkInfo | None) -> bool:
    if network is None or dims["K"] < _FACE_POINTS:
        return False
    return (4 * dims["H"], 4 * dims["W"]) == (network.height, network.width)


_POSE_COLUMNS = partial(_yolo_v8_pose, columns=True)
_POSE_ROWS = partial(_yolo_v8_pose, columns=False)
_LETTERS = "NMK"
_SCRFD = tuple(Out(f"{letter} {width}") for width in (1, 4, 10) for letter in _LETTERS)

HEADS = (
    Head(
        "HeadraceParseYoloV8Pose",
        "YOLOv8/11-pose and YOLOv8-face raw, P = 4+C+3K: centre boxes in pixels, best of C scores "
        ">= T[class], K points",
        (
            # 17 points of a person, 5 of a face; beside those, as many as the numbers leave
            Layout((Out("55+C N"),), _POSE_COLUMNS, _persons, _persons),
            Layout((Out("19+C N"),), _POSE_COLUMNS, _persons, _persons),
            Layout((Out("N 55+C"),), _POSE_ROWS, _persons, _persons),
            Layout((Out("N 19+C"),), _POSE_ROWS, _persons, _persons),
            Layout((Out("P N"),), _POSE_COLUMNS, _wide, suggested=False),
            Layout((Out("N P"),), _POSE_ROWS, _wide, suggested=False),
        ),
    ),
    Head(
        "HeadraceParseYoloV5Face",
        "YOLOv5-face decoded in the model: centre boxes in pixels, objectness * best score >= "
        "T[class], five points",
        (Layout((Out("N 15+C"),), _yolo_v5_face, _one_class, _one_class),),
        strict_classes=True,
    ),
    Head(
        "HeadraceParseYoloV7Face",
        "YOLOv7-face: centre boxes in pixels, objectness * score >= T[0], five points with scores",
        (Layout((Out("N 20+C"),), _yolo_v7_face, _one_class, _one_class),),
        strict_classes=True,
    ),
    Head(
        "HeadraceParseSCRFD",
        "SCRFD: scores of strides 8, 16, 32, then distances, then points, if any; score >= T[0]",
        (
            Layout(_SCRFD, _scrfd, likely=lambda dims, _: True),
            Layout(_SCRFD[:6], _scrfd, _quarters, _quarters),
        ),
    ),
    Head(
        "HeadraceParseRetinaFace",
        "RetinaFace: offsets from anchors of 16 to 512 pixels, probabilities >= T[0], five points",
        (Layout((Out("N 4"), Out("N 2"), Out("N 10")), _retina_face, likely=lambda dims, _: True),),
    ),
    Head(
        "HeadraceParseHeatmapPose",
        "SimpleBaseline, HRNet, ViTPose on a crop: one object, a point at the peak of each of K "
        "maps; mean score >= T[0]",
        (
            Layout((Out("K H W"),), _heat_maps, _quarter, suggested=False),
            Layout((Out("K H W"), Out("K", integers=True)), _heat_maps, _quarter, _quarter),
        ),
    ),
)
