"""Heads of points: of a crop, of a frame, of queries. Network pixels.

A model of a crop finds one object as large as its input. A model without boxes gets the box around
the points.
"""

from __future__ import annotations

import numpy as np

from headrace.infer.parsers.boxes import first_threshold, sigmoid
from headrace.infer.parsers.head import Arrays, Dims, Head, Layout, Out, UnfitError
from headrace.infer.parsers.keypoints import posed, with_scores
from headrace.infer.parsers.ssd_detr import top_scores
from headrace.meta.detections import Detections, FloatArray
from headrace.meta.layers import DetectionParams, NetworkInfo

_HALF = np.float32(0.5)
_MESH = 400  # points of a face of MediaPipe: 468, or 478 with the irises


def crop_of(
    points: FloatArray, score: float, network: NetworkInfo, params: DetectionParams
) -> Detections:
    """One object as large as the input, with (K, 3) points, if the score reaches T[0]."""
    if not score >= first_threshold(params):
        return Detections.empty()
    whole = np.array([[0, 0, network.width, network.height]], np.float32)
    scores, ids = np.array([score], np.float32), np.zeros(1, np.int32)
    return Detections(whole, scores, ids, keypoints=points[None].astype(np.float32))


def _simcc(arrays: Arrays, network: NetworkInfo, params: DetectionParams) -> Detections:
    """[K, bins] for x and for y: a point at the best bins, its score the smaller of the two.

    As mmpose evaluates it. The score of the object is the mean.
    """
    places, scores = [], []
    if not all(table.size for table in arrays):
        return Detections.empty()
    for table, length in zip(arrays, (network.width, network.height), strict=True):
        best = table.argmax(axis=1)
        places.append(best * np.float32(length / table.shape[1]))
        scores.append(table[np.arange(len(table)), best])
    points = np.column_stack([*places, np.minimum(*scores)])
    return crop_of(points, float(points[:, 2].mean()), network, params)


def _landmarks(arrays: Arrays, network: NetworkInfo, params: DetectionParams) -> Detections:
    """[3K] x, y, z in pixels of the crop, and the chance that the object is there."""
    values, presence = arrays[0].reshape(-1, 3), arrays[1][:1]
    score = float((sigmoid(presence) if len(values) >= _MESH else presence)[0])
    return crop_of(with_scores(values[None, :, :2])[0], score, network, params)


def _blaze_pose(arrays: Arrays, network: NetworkInfo, params: DetectionParams) -> Detections:
    """[195] x, y, z in pixels of the crop, logits of visibility and presence; the chance of it."""
    values = arrays[0].reshape(-1, 5)
    points = np.column_stack([values[:, :2], sigmoid(values[:, 3])])
    return crop_of(points, float(arrays[1][0]), network, params)


def _movenet(arrays: Arrays, network: NetworkInfo, params: DetectionParams) -> Detections:
    """[K, 3] y, x in 0..1 and the score of each point; the object's is their mean."""
    y, x, scores = arrays[0].T
    points = np.column_stack([x * network.width, y * network.height, scores])
    return crop_of(points, float(scores.mean()), network, params)


def _movenet_many(arrays: Arrays, network: NetworkInfo, params: DetectionParams) -> Detections:
    """[N, 56]: 17 points y, x, score, then y1, x1, y2, x2 in 0..1 and the score."""
    rows = arrays[0][arrays[0][:, 55] >= first_threshold(params)]
    size = np.array([network.width, network.height], np.float32)
    parts = rows[:, :51].reshape(len(rows), 17, 3)
    points = np.concatenate([parts[..., 1::-1] * size, parts[..., 2:]], axis=2)
    y1, x1, y2, x2 = (rows[:, 51:55] * np.tile(size[::-1], 2)).T
    ids = np.zeros(len(rows), np.int32)
    return posed((x1, y1, x2, y2), rows[:, 55], ids, points, network)


def _final(arrays: Arrays, network: NetworkInfo, params: DetectionParams) -> Detections:
    """[N, 5] corners in pixels and score, [N, K, 3] points."""
    keep = arrays[0][:, 4] >= first_threshold(params)
    rows, points = arrays[0][keep], arrays[1][keep]
    x1, y1, x2, y2 = rows[:, :4].T
    return posed((x1, y1, x2, y2), rows[:, 4], np.zeros(len(rows), np.int32), points, network)


def _queries(arrays: Arrays, network: NetworkInfo, params: DetectionParams) -> Detections:
    """[Q, C] logits of which the last is a person, [Q, 2K] x, y in 0..1; no boxes."""
    if not all(array.size for array in arrays):
        return Detections.empty()
    scores = sigmoid(arrays[0][:, -1])
    keep = scores >= first_threshold(params)
    size = np.array([network.width, network.height], np.float32)
    count, odd = divmod(arrays[1].shape[1], 2)
    if odd:
        raise UnfitError(f"{arrays[1].shape[1]} values of a query are no pairs of x and y")
    pairs = arrays[1][keep].reshape(int(keep.sum()), count, 2) * size
    (x1, y1), (x2, y2) = pairs.min(axis=1).T, pairs.max(axis=1).T
    ids = np.zeros(len(pairs), np.int32)
    return posed((x1, y1, x2, y2), scores[keep], ids, with_scores(pairs), network)


def _boxed_queries(arrays: Arrays, network: NetworkInfo, params: DetectionParams) -> Detections:
    """[Q, 4] centre boxes in 0..1, [Q, C] logits, [Q, K, 8] x, y in 0..1 and the point's logit.

    As many of the best scores as queries, so that one may stand for two classes.
    """
    boxes, logits, values = arrays
    if not logits.size:
        return Detections.empty()
    query, class_ids, scores = top_scores(logits, len(logits), params)
    size = np.array([network.width, network.height], np.float32)
    centres, half = boxes[query, :2] * size, boxes[query, 2:] * size * _HALF
    points = np.concatenate([values[query, :, :2] * size, sigmoid(values[query, :, 2:3])], axis=2)
    (x1, y1), (x2, y2) = (centres - half).T, (centres + half).T
    return posed((x1, y1, x2, y2), scores, class_ids, points, network)


def _threes(dims: Dims, network: NetworkInfo | None) -> bool:
    return dims["P"] % 3 == 0 and dims["P"] >= 15


def _bins(dims: Dims, network: NetworkInfo | None) -> bool:
    """A whole number of bins for each pixel, the same both ways."""
    if network is None:
        return True
    (x, left), (y, right) = divmod(dims["W"], network.width), divmod(dims["H"], network.height)
    return x == y >= 1 and not left and not right


def _likely(*_: object) -> bool:
    return True


_P, _ONE = Out("P"), Out("1")

HEADS = (
    Head(
        "HeadraceParseSimCC",
        "RTMPose, SimCC on a crop: one object, a point at the best bins of x and y; mean score >= "
        "T[0]",
        (
            Layout((Out("K W", ("simcc_x",)), Out("K H", ("simcc_y",))), _simcc),
            Layout((Out("K W"), Out("K H")), _simcc, _bins, suggested=False),
        ),
    ),
    Head(
        "HeadraceParseLandmarks",
        "hands and faces of MediaPipe on a crop: one object with K points; its chance >= T[0]",
        (
            Layout((_P, _ONE, _ONE, _P), _landmarks, _threes, _threes),
            Layout((_P, _ONE), _landmarks, _threes, _threes),
        ),
    ),
    Head(
        "HeadraceParseBlazePose",
        "poses of MediaPipe on a crop: one object with 39 points; its chance >= T[0]",
        (
            Layout(
                (Out("195"), _ONE, Out("H W 1"), Out("I J 39"), Out("117")),
                _blaze_pose,
                likely=_likely,
            ),
        ),
    ),
    Head(
        "HeadraceParseMoveNet",
        "MoveNet of one person: an object with 17 points y, x, score in 0..1; mean score >= T[0]",
        (Layout((Out("17 3"),), _movenet, likely=_likely),),
    ),
    Head(
        "HeadraceParseMoveNetMany",
        "MoveNet of several persons: rows of 17 points, y1, x1, y2, x2 in 0..1 and score >= T[0]",
        (Layout((Out("6 56"),), _movenet_many, likely=_likely),),
    ),
    Head(
        "HeadraceParseDetsPoints",
        "RTMO by mmdeploy: corner boxes in pixels with score >= T[0], K points of each",
        (Layout((Out("N 5", ("dets",)), Out("N K 3", ("keypoints",))), _final),),
    ),
    Head(
        "HeadraceParseDetrPoints",
        "poses of queries without boxes: sigmoid of the last logit >= T[0], points in 0..1, the "
        "box around them",
        (Layout((Out("Q C", ("pred_logits",)), Out("Q P", ("pred_keypoints",))), _queries),),
    ),
    Head(
        "HeadraceParseDetrPose",
        "RF-DETR with points: as many of the best scores as queries, sigmoid >= T[class], K points "
        "with scores",
        (
            Layout(
                (
                    Out("Q 4", ("dets", "pred_boxes")),
                    Out("Q C", ("labels", "pred_logits")),
                    Out("Q K 8", ("keypoints", "pred_keypoints")),
                ),
                _boxed_queries,
            ),
        ),
        strict_classes=True,
    ),
)
