"""Many boxes: clustering is bounded, can be stopped, and gives what the plain loops give."""

import threading
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.config import ModelConfig
from headrace.config.enums import ClusterMode
from headrace.infer.cluster import Clusterer, ClusterParams, Reason
from headrace.meta import Detections

_native = pytest.importorskip("headrace._core._native")
f32 = np.float32


def params(mode, *, iou=0.3, eps=0.2, min_boxes=3, group=1, **more):
    thresholds = np.array([[0.1, 0, iou, eps, 0]], f32)
    counts = np.array([[-1, group, min_boxes]], np.int32)
    return ClusterParams(ClusterMode(mode), thresholds, counts, **more)


def scene(seed, count, size, spread, odd):
    """Boxes from a few pixels to the whole field, crowds among them, some of them no boxes."""
    rng = np.random.default_rng(seed)
    places = rng.uniform(-spread / 9, spread, (max(count // 9, 1), 2))
    extents = np.exp(rng.uniform(np.log(size / 9), np.log(size * 9), (len(places), 2)))
    own = rng.integers(0, len(places), count)
    corners = places[own] + rng.normal(0, size, (count, 2))
    boxes = np.concatenate([corners, extents[own] * rng.uniform(0.8, 1.25, (count, 2))], 1)
    broken = np.flatnonzero(rng.random(count) < odd)
    values = rng.choice([0, -3, 1e-30, 1e20, np.nan, np.inf], len(broken))
    boxes[broken, rng.integers(0, 4, len(broken))] = values
    scores = np.round(rng.uniform(0, 1, count), 3).astype(f32)
    return Detections(boxes.astype(f32), scores, np.zeros(count, np.int32))


def overlap(a, a_end, b, b_end):
    """Shared length of one edge with many, as spec B.4 has it."""
    swap = a > b
    end, start, other = np.where(swap, b_end, a_end), np.where(swap, a, b), None
    other = np.where(swap, a_end, b_end)
    return np.where(end < start, f32(0), np.where(other < end, other, end) - start)


def plain_nms(d, threshold):
    """Rows that are kept, best first, by comparing each box with all kept ones."""
    boxes, kept = d.boxes, []
    rows = np.flatnonzero(~(d.scores < f32(0.1)))
    area, ends = boxes[:, 2] * boxes[:, 3], boxes[:, :2] + boxes[:, 2:]
    for row in rows[np.argsort(-d.scores[rows], kind="stable")]:
        x = overlap(boxes[row, 0], ends[row, 0], boxes[kept, 0], ends[kept, 0])
        shared = x * overlap(boxes[row, 1], ends[row, 1], boxes[kept, 1], ends[kept, 1])
        total = area[row] + area[kept] - shared
        if np.where(total == 0, f32(0), shared / total).__le__(f32(threshold)).all():
            kept.append(row)
    return [row for row in kept if d.scores[row] > 0]


def plain_near(d, rows, eps):
    """(N, N) bool, which pairs are neighbours. Source: spec B.5."""
    b = d.boxes[rows]
    start, end = b[:, :2], b[:, :2] + b[:, 2:]
    sides = np.minimum(end[:, None], end) - np.maximum(start[:, None], start)
    shared = np.where((sides > 0).all(2), sides[..., 0] * sides[..., 1], f32(0))
    area = np.where(np.isnan(b).any(1), f32(np.nan), b[:, 2] * b[:, 3])  # no neighbour of any
    return f32(1) - shared / (area[:, None] + area - shared) < f32(eps)


def plain_members(d, eps, least):
    """Rows that are no noise."""
    rows = np.flatnonzero(~(d.scores < f32(0.1)))
    near = plain_near(d, rows, eps)
    np.fill_diagonal(near, False)
    dense = near.sum(1) + 1 >= least
    visited, member = np.zeros(len(rows), bool), np.zeros(len(rows), bool)
    for i in range(len(rows)):
        if visited[i] or not dense[i]:
            visited[i] = True
            continue
        taken = near[i] & ~visited
        visited |= taken
        visited[i] = member[i] = True
        member |= taken & dense
    return rows[member].tolist()


SCENES = st.builds(
    scene,
    st.integers(0, 2**32),
    st.integers(1300, 2600),
    st.sampled_from([0.02, 1, 30]),
    st.sampled_from([5, 600, 1e5]),
    st.sampled_from([0, 0.01, 0.3]),
)


@settings(max_examples=6, deadline=None)
@given(SCENES, st.sampled_from([0, 0.02, 0.3, 0.7, 1]))
@pytest.mark.slow
def test_many_boxes_are_suppressed_as_by_comparing_all(detections, iou):
    with np.errstate(all="ignore"):
        expected = plain_nms(detections, iou)
    result = Clusterer(params(2, iou=iou))(detections, trace=True)
    assert result.kept.tolist() == expected
    suppressed = result.trace.reason == Reason.SUPPRESSED
    assert set(result.trace.by[suppressed]) <= set(expected)


@pytest.mark.slow
@settings(max_examples=5, deadline=None)
@given(SCENES, st.sampled_from([0.05, 0.4, 0.95, 1, 1.2]), st.sampled_from([1, 2, 5]))
def test_neighbours_of_many_boxes_are_those_of_comparing_all(detections, eps, least):
    with np.errstate(all="ignore"):
        expected = plain_members(detections, eps, least)
    result = Clusterer(params(1, eps=eps, min_boxes=least))(detections, trace=True)
    alone = result.trace.reason == Reason.NOISE
    below = result.trace.reason == Reason.BELOW_PRE_THRESHOLD
    assert np.flatnonzero(~alone & ~below).tolist() == expected


@pytest.mark.slow
@settings(max_examples=5, deadline=None)
@given(SCENES.filter(lambda d: np.isfinite(d.boxes).all()), st.sampled_from([0, 0.1, 0.5, 2]))
def test_groups_of_many_boxes_are_those_of_parts_joined(detections, eps):
    rows = np.flatnonzero(~(detections.scores < f32(0.1)))
    x, y, w, h = np.clip(np.trunc(detections.boxes[rows].T.astype(np.float64)), -(2**31), 2**31 - 1)
    group = np.arange(len(rows))
    delta = eps * (np.minimum(w[:, None], w) + np.minimum(h[:, None], h)) * 0.5
    pairs = np.ones_like(delta, bool)
    for edge in (x, y, x + w, y + h):
        pairs &= np.abs(edge[:, None] - edge) <= delta
    while True:  # each takes the smallest number among those it is similar to
        lower = np.where(pairs, group, len(rows)).min(1)
        lower = np.minimum(lower, group)
        if (lower == group).all():
            break
        group = lower
    result = Clusterer(params(0, eps=eps))(detections, trace=True)
    small = np.bincount(group, minlength=len(rows))[group] <= 1
    assert (result.trace.reason[rows] == Reason.GROUP_THRESHOLD).tolist() == small.tolist()


def grid(count):
    """Boxes side by side, none of which touches another; the last is the best."""
    index = np.arange(count)
    boxes = np.stack([index % 1000 * 3, index // 1000 * 2, np.full(count, 2), np.ones(count)], 1)
    scores = 0.5 + index * 1e-7
    return Detections(boxes.astype(f32), scores.astype(f32), np.zeros(count, np.int32))


@pytest.mark.parametrize("mode", [0, 1, 2, 3])
def test_a_million_boxes_are_cut_to_the_best(mode):
    detections = grid(1_000_000)
    tally = np.zeros((2, len(Reason)), np.int64)
    result = Clusterer(params(mode, min_boxes=1, group=0))(detections, tally=tally)
    assert result.cut.counts.tolist() == [900_000]
    assert not result.cut.stopped
    assert tally[0, Reason.MAX_CANDIDATES] == 900_000
    assert sorted(result.kept.tolist()) == list(range(900_000, 1_000_000))


def test_the_cut_spans_classes_and_keeps_the_order_of_equal_scores():
    detections = Detections(
        np.array([[10 * i, 0, 5, 5] for i in range(6)], f32),
        np.array([0.5, 0.9, np.nan, 0.5, 0.5, 0.8], f32),
        np.array([0, 1, 0, 1, 0, 0], np.int32),
    )
    both = params(2, max_candidates=4)
    both = replace(both, thresholds=both.thresholds.repeat(2, 0), counts=both.counts.repeat(2, 0))
    result = Clusterer(both)(detections, trace=True)
    assert sorted(result.kept.tolist()) == [0, 1, 3, 5]
    assert result.trace.reason.tolist()[4] == result.trace.reason.tolist()[2] == 12
    assert Reason.MAX_CANDIDATES.key == "max-candidates"
    assert Clusterer(replace(both, mode=ClusterMode.NONE))(detections).cut is None


def test_the_key_sets_the_limit():
    assert Clusterer(ModelConfig()).params.max_candidates == 100_000
    cfg = ModelConfig().with_overrides(max_candidates=7, cluster_mode=2, num_detected_classes=1)
    assert Clusterer(cfg)(grid(20)).cut.counts.tolist() == [13]


@pytest.mark.slow
def test_turned_boxes_that_all_cross_are_cut():
    count = 30_000
    angles = np.linspace(0, np.pi, count, endpoint=False).astype(f32)
    boxes = np.tile(np.array([[0, 300, 640, 0.01]], f32), (count, 1))
    star = Detections(boxes, np.full(count, 0.9, f32), np.zeros(count, np.int32), angles=angles)
    result = Clusterer(params(2, iou=0.5, rotated=True))(star)
    assert result.cut.counts[0] > 0
    assert len(result.kept) + result.cut.counts[0] <= count


def test_a_stop_ends_long_work():
    # Reversed edges: no index helps, all of them are compared with each other.
    detections = grid(200_000)
    detections.boxes[:, 2] *= -1
    stop = _native.Stop()
    threading.Timer(0.2, setattr, (stop, "asked", True)).start()
    result = Clusterer(params(2, max_candidates=200_000))(detections, stop=stop)
    assert result.cut.stopped
    assert len(result.kept) == 0


def test_a_stop_lets_short_work_finish():
    stop = _native.Stop()
    stop.asked = True
    assert len(Clusterer(params(2))(grid(5000), stop=stop).kept) == 5000
