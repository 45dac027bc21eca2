"""Poses of several bodies from heat maps of points and part-affinity fields of limbs.

Peaks of the maps are points. Two points are joined where the field of their limb runs along the
line between them; joined points are a body. Source: Cao et al., Realtime Multi-Person 2D Pose
Estimation using Part Affinity Fields, CVPR 2017.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from headrace._core.plain_record import PlainRecord
from headrace.infer.parsers.boxes import first_threshold
from headrace.infer.parsers.head import Arrays, Head, Layout, Out
from headrace.meta.detections import Detections, FloatArray, IntArray
from headrace.meta.layers import DetectionParams, NetworkInfo
from headrace.meta.skeletons import BODY

Limbs = tuple[tuple[int, int], ...]

_REACH = 2  # cells to each side that a peak is the highest of
_LOWEST = 1e-6  # of a peak, whatever the threshold
_MOST_PEAKS = 64  # of one map, the highest; bounds the time that noise can take
_SAMPLES = 10  # of a field along a limb
_ALONG = 0.05  # of a sample that runs along the limb
_LEAST_SHARE = 0.8  # of such samples
_LEAST_MEAN = 0.1
_LEAST_POINTS = 3  # of a body


class Topology(PlainRecord, frozen=True):
    """Order of points and limbs in the outputs of a family of models.

    Attributes:
        order: index in `BODY` of each map's point.
        limbs: indices in `BODY` of the two ends of each limb, from the first to the second.
        y_first: True where the first of a limb's two fields is the vertical part.
    """

    order: tuple[int, ...]
    limbs: Limbs
    y_first: bool


# Source: human_pose.json of trt_pose. Its points are those of COCO, and the neck.
_TRT_POSE = Topology(tuple(range(18)), BODY.bones, y_first=True)

# Source: the COCO model of OpenPose, whose order TAO's BodyPoseNet shares.
_OPENPOSE_ORDER = (0, 17, 6, 8, 10, 5, 7, 9, 12, 14, 16, 11, 13, 15, 2, 1, 4, 3)
_OPENPOSE_LIMBS = (
    (1, 8), (8, 9), (9, 10), (1, 11), (11, 12), (12, 13), (1, 2), (2, 3), (3, 4), (2, 16),
    (1, 5), (5, 6), (6, 7), (5, 17), (1, 0), (0, 14), (0, 15), (14, 16), (15, 17),
)  # fmt: skip
_OPENPOSE = Topology(
    _OPENPOSE_ORDER,
    tuple((_OPENPOSE_ORDER[a], _OPENPOSE_ORDER[b]) for a, b in _OPENPOSE_LIMBS),
    y_first=False,
)


class Peaks(NamedTuple):
    """Points of one kind: (N, 2) x, y in 0..1 of the input, (N,) scores, best first."""

    places: FloatArray
    scores: FloatArray


class Joint(NamedTuple):
    """A limb that may be: its score, the kinds of its ends, and the peaks of these kinds."""

    score: float
    kinds: tuple[int, int]
    peaks: tuple[int, int]


def _tops(heat: FloatArray, threshold: float) -> npt.NDArray[np.bool_]:
    """Mark the cells of (K, H, W) maps that are the highest of their surroundings."""
    around = np.pad(heat, ((0, 0), (_REACH, _REACH), (_REACH, _REACH)), constant_values=-np.inf)
    for axis in (1, 2):
        size = heat.shape[axis]
        shifted = [around.take(np.arange(i, i + size), axis) for i in range(2 * _REACH + 1)]
        around = reduce(np.maximum, shifted)
    tops: npt.NDArray[np.bool_] = (heat >= max(threshold, _LOWEST)) & (heat >= around)
    return tops


def _peaks(heat: FloatArray, tops: npt.NDArray[np.bool_]) -> Peaks:
    """The marked cells of an (H, W) map, each refined as the top of a Gaussian."""
    height, width = heat.shape
    y, x = np.nonzero(tops)
    best = np.argsort(-heat[y, x], kind="stable")[:_MOST_PEAKS]
    y, x = y[best], x[best]
    scores = heat[y, x]

    def logarithm(dy: int, dx: int) -> FloatArray:
        near = heat[np.clip(y + dy, 0, height - 1), np.clip(x + dx, 0, width - 1)]
        result: FloatArray = np.log(np.maximum(near, np.float32(_LOWEST)))
        return result

    def shift(before: FloatArray, after: FloatArray) -> FloatArray:
        bend = 2 * logarithm(0, 0) - before - after
        slope = np.divide(after - before, 2 * bend, out=np.zeros_like(bend), where=bend > 0)
        result: FloatArray = np.clip(slope, -0.5, 0.5)
        return result

    column = x + 0.5 + shift(logarithm(0, -1), logarithm(0, 1))
    row = y + 0.5 + shift(logarithm(-1, 0), logarithm(1, 0))
    return Peaks(np.stack([column / width, row / height], axis=1).astype(np.float32), scores)


def _joints(
    field: FloatArray, kinds: tuple[int, int], first: Peaks, second: Peaks, aspect: FloatArray
) -> list[Joint]:
    """Limbs of one kind that the (2, H, W) field of x and y runs along; a peak has one at most.

    Args:
        field: horizontal and vertical part.
        kinds: of the ends.
        first, second: peaks of these kinds.
        aspect: (2,) width and height of the input, for the direction of the line.
    """
    if not len(first.scores) or not len(second.scores):
        return []
    height, width = field.shape[1:]
    line = second.places[None] - first.places[:, None]
    steps = (np.arange(_SAMPLES, dtype=np.float32) + 0.5) / _SAMPLES
    at = first.places[:, None, None] + line[:, :, None] * steps[:, None]
    x = np.clip((at[..., 0] * width).astype(np.intp), 0, width - 1)
    y = np.clip((at[..., 1] * height).astype(np.intp), 0, height - 1)
    towards = line * aspect
    towards /= np.maximum(np.linalg.norm(towards, axis=2, keepdims=True), 1e-6)
    along = field[0, y, x] * towards[..., :1] + field[1, y, x] * towards[..., 1:]
    means = along.mean(axis=2)
    likely = (means > _LEAST_MEAN) & ((along > _ALONG).mean(axis=2) >= _LEAST_SHARE)
    a, b = np.nonzero(likely)
    joints, used_a, used_b = list[Joint](), set[int](), set[int]()
    for i in np.argsort(-means[a, b], kind="stable").tolist():
        one, other = int(a[i]), int(b[i])
        if one not in used_a and other not in used_b:
            used_a.add(one)
            used_b.add(other)
            joints.append(Joint(float(means[one, other]), kinds, (one, other)))
    return joints


def _bodies(joints: list[Joint]) -> list[dict[int, int]]:
    """Kind -> peak of each body; the surest limbs join first, and no body has a kind twice."""
    bodies: dict[tuple[int, int], dict[int, int]] = {}
    for joint in sorted(joints, key=lambda joint: -joint.score):
        ends = list(zip(joint.kinds, joint.peaks, strict=True))
        one, other = (bodies.setdefault(end, dict([end])) for end in ends)
        if one is other or one.keys() & other.keys():
            continue
        one.update(other)
        for end in other.items():
            bodies[end] = one
    unique = {id(body): body for body in bodies.values()}
    return [body for body in unique.values() if len(body) >= _LEAST_POINTS]


def _grouped(
    heat: FloatArray,
    fields: FloatArray,
    network: NetworkInfo,
    params: DetectionParams,
    topology: Topology,
) -> Detections:
    """Bodies with the box about their points; a body's score is their mean.

    Args:
        heat: (K, H, W) maps; a last one of the background is not looked at.
        fields: (2L, H', W') two for each limb.
        network: its input.
        params: points have scores >= T[0].
        topology: of the model.
    """
    threshold, count = first_threshold(params), len(BODY.names)
    if not heat.size or not fields.size:
        return Detections.empty()
    heat, fields = np.nan_to_num(heat[: len(topology.order)]), np.nan_to_num(fields)
    size = np.array([network.width, network.height], np.float32)
    kinds = [Peaks(np.empty((0, 2), np.float32), np.empty(0, np.float32))] * count
    for kind, one, tops in zip(topology.order, heat, _tops(heat, threshold), strict=True):
        kinds[kind] = _peaks(one, tops)
    joints = list[Joint]()
    for k, (a, b) in enumerate(topology.limbs):
        pair = fields[2 * k : 2 * k + 2]
        pair = pair[::-1] if topology.y_first else pair
        joints += _joints(pair, (a, b), kinds[a], kinds[b], size)
    bodies = _bodies(joints)
    points = np.zeros((len(bodies), count, 3), np.float32)
    for row, body in zip(points, bodies, strict=True):
        for kind, peak in body.items():
            row[kind] = *(kinds[kind].places[peak] * size), kinds[kind].scores[peak]
    seen = points[..., 2:] > 0
    low = np.where(seen, points[..., :2], np.inf).min(axis=1, initial=np.inf)
    high = np.where(seen, points[..., :2], -np.inf).max(axis=1, initial=-np.inf)
    boxes = np.concatenate([low, np.maximum(high - low, 1)], axis=1).astype(np.float32)
    scores = points[..., 2].sum(axis=1) / np.maximum(seen[..., 0].sum(axis=1), 1)
    ids: IntArray = np.zeros(len(bodies), np.int32)
    return Detections(boxes, scores.astype(np.float32), ids, keypoints=points)


def _decoder(
    topology: Topology, *, fields_first: bool = False, channels_last: bool = False
) -> Callable[[Arrays, NetworkInfo, DetectionParams], Detections]:
    def decode(arrays: Arrays, network: NetworkInfo, params: DetectionParams) -> Detections:
        heat, fields = arrays[::-1] if fields_first else arrays
        if channels_last:
            heat, fields = heat.transpose(2, 0, 1), fields.transpose(2, 0, 1)
        return _grouped(heat, fields, network, params, topology)

    return decode


_CHOICES = [(first, last) for last in (False, True) for first in (False, True)]


def _layouts(topology: Topology, maps: int, fields: int) -> tuple[Layout, ...]:
    """Maps or fields first, channels first or last."""
    layouts = []
    for fields_first, last in _CHOICES:
        outs = [f"H W {maps}", f"I J {fields}"] if last else [f"{maps} H W", f"{fields} I J"]
        decode = _decoder(topology, fields_first=fields_first, channels_last=last)
        ordered = outs[::-1] if fields_first else outs
        layouts.append(Layout(tuple(map(Out, ordered)), decode, likely=lambda *_: True))
    return tuple(layouts)


_TAO = Layout(
    (
        Out("H W 19", ("heatmap_out/BiasAdd:0", "heatmap_out/BiasAdd")),
        Out(
            "I J 38",
            ("conv2d_transpose_1/BiasAdd:0", "conv2d_transpose_1/BiasAdd", "paf_out/BiasAdd:0"),
        ),
    ),
    _decoder(_OPENPOSE, channels_last=True),
)

HEADS = (
    Head(
        "HeadraceParseTrtPose",
        "trt_pose: maps of 18 points, fields of 21 limbs; points >= T[0] become bodies of COCO's "
        "17 points and the neck; for cluster-mode=4",
        _layouts(_TRT_POSE, 18, 42),
    ),
    Head(
        "HeadraceParseOpenPose",
        "OpenPose of COCO, BodyPoseNet of TAO: maps of 18 points and background, fields of 19 "
        "limbs; the same bodies; for cluster-mode=4",
        (_TAO, *_layouts(_OPENPOSE, 19, 38)),
    ),
)
