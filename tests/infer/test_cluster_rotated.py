"""Turned rectangles: their IoU equals one of rational numbers, and suppression uses it."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace._core import _native
from headrace.config import ClassAttrs, ModelConfig
from headrace.config.enums import ClusterMode
from headrace.diagnose.compare.matching import pair_boxes
from headrace.diagnose.evaluate.box_matching import Scored, agreement, shared
from headrace.infer.cluster import Clusterer, Reason
from headrace.meta import Detections

Point = tuple[Fraction, Fraction]
Turned = tuple[float, float, float, float, float]


def corners(box: Turned) -> list[Point]:
    left, top, width, height = (Fraction(float(np.float32(v))) for v in box[:4])
    angle = float(np.float32(box[4]))
    sin, cos = Fraction(math.sin(angle)), Fraction(math.cos(angle))
    x, y, a, b = left + width / 2, top + height / 2, width / 2, height / 2
    return [
        (x + u * cos - v * sin, y + u * sin + v * cos)
        for u, v in ((-a, -b), (a, -b), (a, b), (-a, b))
    ]


def cross(o: Point, p: Point, q: Point) -> Fraction:
    return (p[0] - o[0]) * (q[1] - o[1]) - (p[1] - o[1]) * (q[0] - o[0])


def sides(shape: list[Point]) -> list[tuple[Point, Point]]:
    return list(zip(shape, [*shape[1:], shape[0]], strict=True))


def inside(p: Point, shape: list[Point]) -> bool:
    return all(cross(a, b, p) >= 0 for a, b in sides(shape))


def crossing(a: Point, b: Point, c: Point, d: Point) -> list[Point]:
    before, after = cross(c, d, a), cross(c, d, b)
    if before * after >= 0 or cross(a, b, c) * cross(a, b, d) > 0:
        return []
    t = before / (before - after)
    return [(a[0] + t * (b[0] - a[0]), a[1] + t * (b[1] - a[1]))]


def area(points: list[Point]) -> Fraction:
    """Of the convex hull: corners of one in the other, and where their sides cross."""
    points = sorted(set(points))
    if len(points) < 3:
        return Fraction(0)
    hull: list[Point] = []
    for way in (points, points[::-1]):
        part: list[Point] = []
        for p in way:
            while len(part) > 1 and cross(part[-2], part[-1], p) <= 0:
                part.pop()
            part.append(p)
        hull += part[:-1]
    return abs(sum((p[0] * q[1] - p[1] * q[0] for p, q in sides(hull)), Fraction(0))) / 2


def exact(a: Turned, b: Turned) -> float:
    p, q = corners(a), corners(b)
    found = [x for x in p if inside(x, q)] + [x for x in q if inside(x, p)]
    for (c, d), (e, f) in product(sides(p), sides(q)):
        found += crossing(c, d, e, f)
    common, whole = area(found), area(p) + area(q)
    return float(common / (whole - common)) if whole > common else 0.0


def native(a: list[Turned], b: list[Turned]) -> np.ndarray:
    x, y = np.array(a, np.float32), np.array(b, np.float32)
    out = np.empty((len(a), len(b)))
    boxes = [np.ascontiguousarray(v[:, :4]) for v in (x, y)]
    _native.rotated_iou(boxes[0], x[:, 4].copy(), boxes[1], y[:, 4].copy(), out)
    return out


PLACES, LENGTHS = st.floats(-50, 50, width=32), st.floats(0.125, 80, width=32)
ANGLES = st.one_of(
    st.floats(-7, 7, width=32),
    st.sampled_from([0.0, math.pi / 2, math.pi, -math.pi / 4, 1e-7]),
)
BOXES: st.SearchStrategy[Turned] = st.tuples(PLACES, PLACES, LENGTHS, LENGTHS, ANGLES)


@given(BOXES, BOXES)
def test_iou_equals_rational_clipping(a: Turned, b: Turned) -> None:
    assert native([a], [b])[0, 0] == pytest.approx(exact(a, b), abs=1e-6)


@given(BOXES, BOXES)
def test_iou_is_symmetric_and_turns_with_both(a: Turned, b: Turned) -> None:
    both = native([a, b], [a, b])
    assert both == pytest.approx(both.T, abs=1e-9)
    assert both.diagonal() == pytest.approx([1, 1], abs=1e-9)
    half_turn = (*a[:4], a[4] + math.pi)
    assert native([half_turn], [b])[0, 0] == pytest.approx(both[0, 1], abs=1e-4)


def test_iou_of_known_shapes() -> None:
    square = (0, 0, 2, 2, 0)
    found = native(
        [square],
        [(0, 0, 2, 2, math.pi / 4), (0, 0, 0, 2, 0), (1e6, 0, 2, 2, 0), (math.nan, 0, 2, 2, 0)],
    )[0]
    octagon = 8 * (math.sqrt(2) - 1)
    assert found[:3] == pytest.approx([octagon / (8 - octagon), 0, 0])
    assert math.isnan(found[3])
    far = native([(1e6, 1e6, 2, 2, 0)], [(1e6, 1e6, 2, 2, math.pi / 4)])
    assert far[0, 0] == pytest.approx(found[0], rel=1e-6)


def crossed() -> Detections:
    """A long box, one across it, and one that lies upon the first."""
    boxes = np.array([[0, 45, 100, 10], [0, 45, 100, 10], [2, 45, 100, 10]], np.float32)
    scores = np.array([0.9, 0.8, 0.7], np.float32)
    angles = np.array([0, math.pi / 2, 0], np.float32)
    return Detections(boxes, scores, np.zeros(3, np.int32), angles=angles)


@pytest.mark.parametrize("mode", [ClusterMode.NMS, ClusterMode.GROUP_RECTANGLES])
def test_suppression_compares_turned_boxes_where_the_config_asks(mode: ClusterMode) -> None:
    attrs = ClassAttrs(pre_cluster_threshold=0.1, nms_iou_threshold=0.5)
    cfg = ModelConfig(num_detected_classes=1, all_classes=attrs, cluster_mode=mode)
    upright = Clusterer(cfg)(crossed(), trace=True)
    assert upright.kept.tolist() == [0]
    turned = Clusterer(cfg.with_overrides(rotated_boxes=True))(crossed(), trace=True)
    assert turned.kept.tolist() == [0, 1]
    assert turned.detections.angles is not None
    assert turned.trace is not None
    assert turned.detections.angles.tolist() == pytest.approx([0, math.pi / 2])
    assert turned.trace.reason.tolist() == [Reason.KEPT, Reason.KEPT, Reason.SUPPRESSED]
    assert turned.trace.by.tolist() == [-1, -1, 0]


@given(st.lists(BOXES, min_size=1, max_size=12), st.floats(0, 1))
def test_suppression_is_greedy(rows: list[Turned], limit: float) -> None:
    limit = float(np.float32(limit))
    table = np.array(rows, np.float32)
    scores = np.linspace(0.9, 0.2, len(rows)).astype(np.float32)
    found = Detections(table[:, :4], scores, np.zeros(len(rows), np.int32), angles=table[:, 4])
    attrs = ClassAttrs(pre_cluster_threshold=0.1, nms_iou_threshold=limit)
    cfg = ModelConfig(num_detected_classes=1, all_classes=attrs, cluster_mode=ClusterMode.NMS)
    iou, kept = native(rows, rows), list[int]()
    for i in range(len(rows)):
        if all(iou[i, j] <= limit for j in kept):
            kept.append(i)
    assert Clusterer(cfg.with_overrides(rotated_boxes=True))(found).kept.tolist() == kept


def test_compared_objects_have_their_angles() -> None:
    found = crossed()
    assert found.angles is not None
    upright = Scored(found.boxes.astype(float), found.class_ids.astype(int), found.scores)
    turned = replace(upright, angles=np.degrees(found.angles).astype(float))
    assert shared(upright, upright)[0].tolist() == pytest.approx([1, 1, 98 / 102])
    assert shared(turned, turned)[0].tolist() == pytest.approx([1, 1 / 19, 98 / 102], rel=1e-5)
    first, second = turned.select(np.array([0])), turned.select(np.array([1]))
    assert len(pair_boxes(first, first).rows) == 1
    assert len(pair_boxes(first, second).rows) == 0
    assert agreement([first], [second]) == 0
