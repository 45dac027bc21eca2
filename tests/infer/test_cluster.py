"""Clustering against the slow oracle, and the laws of each mode."""

from __future__ import annotations

import math
import threading
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.config import ClassAttrs, ClusterMode
from headrace.infer.cluster import Clusterer, ClusterParams, ClusterResult, Reason
from headrace.meta import Detections
from tests.infer import oracle_cluster as oracle
from tests.profiles import examples


def detections(rows: list[tuple[Any, ...]], **kwargs: Any) -> Detections:
    """From (class id, score, left, top, width, height) rows."""
    table = np.array(rows, np.float64).reshape(-1, 6)
    return Detections(table[:, 2:], table[:, 1], table[:, 0].astype(int), **kwargs)


def as_oracle(a: ClassAttrs) -> oracle.Params:
    return oracle.Params(
        pre=a.pre_cluster_threshold,
        post=a.post_cluster_threshold,
        iou=a.nms_iou_threshold,
        topk=a.topk,
        eps=a.eps,
        group_threshold=a.group_threshold,
        min_boxes=a.min_boxes,
        min_score=a.dbscan_min_score,
    )


def cluster(
    d: Detections,
    per_class: list[ClassAttrs],
    mode: int,
    *,
    trace: bool = False,
    tally: np.ndarray | None = None,
) -> ClusterResult:
    params = ClusterParams.from_attrs(per_class, ClusterMode(mode))
    return Clusterer(params)(d, trace=trace, tally=tally)


def check(d: Detections, per_class: list[ClassAttrs], mode: int) -> None:
    """Native equals oracle bit for bit, with and without a trace, and the trace adds up."""
    expected = oracle.cluster(
        d.boxes, d.scores, d.class_ids, [as_oracle(a) for a in per_class], mode
    )
    boxes = np.array([b.ltwh for b in expected.boxes], np.float32).reshape(-1, 4)
    plain = cluster(d, per_class, mode)
    traced = cluster(d, per_class, mode, trace=True)
    tally = np.zeros((len(per_class) + 1, len(Reason)), np.int64)
    for result in (plain, traced, cluster(d, per_class, mode, tally=tally)):
        got = result.detections
        assert got.class_ids.tolist() == [b.class_id for b in expected.boxes]
        assert result.kept.tolist() == [b.rows[0] for b in expected.boxes]
        assert result.members.tolist() == [len(b.rows) if b.merged else 0 for b in expected.boxes]
        np.testing.assert_array_equal(got.boxes, boxes)
        np.testing.assert_array_equal(got.scores, [b.score for b in expected.boxes])
    trace = traced.trace
    assert trace is not None
    assert tally.sum() == len(d)
    if len(d) <= 256:  # the boxes behind a cut that are told apart
        fates = np.zeros_like(tally)
        known = (d.class_ids >= 0) & (d.class_ids < len(per_class))
        np.add.at(fates, (np.where(known, d.class_ids, len(per_class)), trace.reason), 1)
        assert tally.tolist() == fates.tolist()
    output = {row: i for i, b in enumerate(expected.boxes) for row in b.rows}
    merged = {row for b in expected.boxes if b.merged for row in b.rows}
    for row in range(len(d)):
        reason = Reason(trace.reason[row])
        assert trace.output[row] == output.get(row, -1)
        if row in output:
            assert reason is (Reason.MERGED if row in merged else Reason.KEPT)
        else:
            assert reason.name.lower() == expected.why[row]
        assert (trace.by[row] >= 0) == (reason in (Reason.SUPPRESSED, Reason.CONTAINED))
    assert traced.dropped.tolist() == [row for row in range(len(d)) if row not in output]


PLAIN = st.sampled_from([0.0, 1.0, 2.0, 3.0, 5.0, 8.0, 10.0, 10.5, 0.7, 40.0, 130.0])
ODD = st.sampled_from(
    [math.nan, math.inf, -math.inf, -0.0, -3.0, -10.0, 1e-45, 1e30, 3e38, -3e38, 2.0**31, 1e10]
)
SCORES = st.sampled_from([0.0, 0.2, 0.25, 0.3, 0.5, 0.75, 0.9, 1.0])
ODD_SCORES = st.sampled_from([math.nan, math.inf, -math.inf, -0.0, -1.0, 3e38])
THRESHOLDS = st.sampled_from([0.0, 0.2, 0.25, 0.3, 0.5, 0.9])

ATTRS = st.builds(
    ClassAttrs,
    pre_cluster_threshold=THRESHOLDS,
    post_cluster_threshold=THRESHOLDS,
    nms_iou_threshold=st.sampled_from([0.0, 0.1, 0.3, 0.5, 1 / 3, 1.0]),
    topk=st.sampled_from([-1, -1, 0, 1, 2, 20]),
    eps=st.sampled_from([0.0, 0.2, 0.5, 0.7, 1.0, 1.5]),
    group_threshold=st.integers(0, 4),
    min_boxes=st.integers(0, 4),
    dbscan_min_score=st.sampled_from([0.0, 0.5, 0.75, 1.5]),
)


def rows(coordinates: Any, scores: Any, most: int) -> Any:
    return st.lists(st.tuples(st.integers(-1, 3), scores, *[coordinates] * 4), max_size=most)


@pytest.mark.parametrize("mode", ClusterMode)
@settings(max_examples=examples(150))
@given(data=rows(PLAIN, SCORES, 24), per_class=st.lists(ATTRS, max_size=3))
def test_same_as_the_oracle_with_ties(
    mode: int, data: list[tuple[Any, ...]], per_class: list[ClassAttrs]
) -> None:
    check(detections(data), per_class, mode)


@pytest.mark.parametrize("mode", ClusterMode)
@settings(max_examples=examples(100))
@given(data=rows(PLAIN | ODD, SCORES | ODD_SCORES, 16), attrs=ATTRS)
def test_same_as_the_oracle_on_degenerate_numbers(
    mode: int, data: list[tuple[Any, ...]], attrs: ClassAttrs
) -> None:
    check(detections(data), [attrs, attrs], mode)


@pytest.mark.parametrize("mode", ClusterMode)
def test_same_as_the_oracle_on_a_crowd(mode: int) -> None:
    rng = np.random.default_rng(mode)
    centres = rng.uniform(0, 300, (8, 2))
    which = rng.integers(0, 8, 250)
    boxes = np.concatenate(
        [centres[which] + rng.normal(0, 4, (250, 2)), rng.uniform(20, 60, (250, 2))], axis=1
    )
    d = Detections(boxes, rng.uniform(0, 1, 250).round(2), which % 3)
    attrs = ClassAttrs(eps=0.6, min_boxes=3, group_threshold=2, topk=7, nms_iou_threshold=0.4)
    check(d, [attrs, replace(attrs, topk=-1), replace(attrs, eps=0.3)], mode)


def test_a_nan_box_is_suppressed_by_any_kept_box_and_is_nobodys_neighbour() -> None:
    for column in range(4):
        box = [0.0, 0.0, 10.0, 10.0]
        box[column] = math.nan
        d = detections([(0, 0.9, 500, 500, 10, 10), (0, 0.8, *box)])
        result = cluster(d, [ClassAttrs()], ClusterMode.NMS, trace=True)
        assert result.kept.tolist() == [0]
        assert result.trace is not None
        assert result.trace.by.tolist() == [-1, 0]
        crowd = detections([(0, 0.8, *box), (0, 0.8, 0, 0, 10, 10)])
        near = ClassAttrs(eps=1.5, min_boxes=2)
        assert len(cluster(crowd, [near], ClusterMode.DBSCAN).detections) == 0


def test_equal_scores_keep_the_order_of_the_parser() -> None:
    d = detections([(0, 0.5, 20 * i, 0, 10, 10) for i in range(50)])
    for mode, topk in ((2, -1), (1, 50), (4, 50), (3, 9)):
        result = cluster(d, [ClassAttrs(topk=topk)], mode)
        assert result.kept.tolist() == list(range(50 if topk != 9 else 9))


def test_each_class_uses_its_own_parameters() -> None:
    pair = [(0.9, 0, 0, 10, 10), (0.8, 0, 0, 10, 5)]
    d = detections([(c, *box) for c in (1, 0) for box in pair])
    loose, tight = ClassAttrs(nms_iou_threshold=0.5), ClassAttrs(nms_iou_threshold=0.4)
    result = cluster(d, [tight, loose], ClusterMode.NMS)
    assert result.kept.tolist() == [2, 0, 1]
    assert result.detections.class_ids.tolist() == [0, 1, 1]


def test_angles_and_masks_follow_their_boxes() -> None:
    data = [(0, 0.5, 0, 0, 10, 10), (0, 0.9, 1, 0, 10, 10), (1, 0.7, 0, 0, 10, 10)]
    masks = [np.full((2, 2), i, np.float32) for i in range(3)]
    d = detections(data, angles=np.array([0.1, 0.2, 0.3]), masks=masks)
    attrs = [ClassAttrs(eps=0.7, min_boxes=2), ClassAttrs()]

    own = cluster(d, attrs, ClusterMode.NMS).detections
    assert own.angles is not None
    assert own.masks is not None
    assert own.angles.tolist() == [np.float32(0.2), np.float32(0.3)]
    assert [m[0, 0] for m in own.masks] == [1, 2]

    merged = cluster(d, attrs, ClusterMode.DBSCAN).detections
    assert merged.angles is not None
    assert merged.masks is not None
    assert merged.angles.tolist() == [0, np.float32(0.3)]
    assert [m.size for m in merged.masks] == [0, 4]


@pytest.mark.parametrize("mode", ClusterMode)
def test_nothing_in_nothing_out(mode: int) -> None:
    result = cluster(Detections.empty(), [ClassAttrs()], mode, trace=True)
    assert len(result.detections) == 0
    assert result.detections.boxes.shape == (0, 4)
    some = detections([(0, 0.9, 0, 0, 5, 5)])
    no_classes = cluster(some, [], mode, trace=True)
    assert no_classes.trace is not None
    assert no_classes.trace.reason.tolist() == [Reason.CLASS_OUT_OF_RANGE]


def test_huge_parameters_do_not_wrap() -> None:
    d = detections([(0, 0.9, 0, 0, 5, 5)])
    huge = ClassAttrs(topk=2**40, min_boxes=2**40, group_threshold=2**40)
    assert len(cluster(d, [huge], ClusterMode.NMS).detections) == 1
    assert len(cluster(d, [huge], ClusterMode.HYBRID).detections) == 0
    assert len(cluster(d, [huge], ClusterMode.GROUP_RECTANGLES).detections) == 0


@pytest.mark.parametrize("mode", ClusterMode)
def test_many_boxes_in_reasonable_time(mode: int) -> None:
    n = 10_000
    rng = np.random.default_rng(1)
    boxes = np.concatenate([rng.uniform(0, 1e4, (n, 2)), np.full((n, 2), 9.0)], axis=1)
    d = Detections(boxes, rng.uniform(0.3, 1, n), np.zeros(n, int))
    result = cluster(d, [ClassAttrs(eps=0.5, min_boxes=1, group_threshold=1)], mode)
    assert len(result.detections) <= n


def test_threads_share_a_clusterer() -> None:
    rng = np.random.default_rng(2)
    clusterer = Clusterer(ClusterParams.from_attrs([ClassAttrs()] * 4, ClusterMode.NMS))
    frames = [
        Detections(rng.uniform(0, 90, (400, 4)), rng.uniform(0, 1, 400), rng.integers(0, 4, 400))
        for _ in range(8)
    ]
    expected = [clusterer(f).kept.tolist() for f in frames]
    failures: list[int] = []

    def work() -> None:
        for _ in range(20):
            for i, f in enumerate(frames):
                if clusterer(f).kept.tolist() != expected[i]:
                    failures.append(i)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures


def test_a_tally_adds_up_and_its_time_is_bounded() -> None:
    rows = [(0, 0.9 - i * 1e-4, 20.0 * i, 0, 10, 10) for i in range(400)]
    tally = np.zeros((2, len(Reason)), np.int64)
    attrs = [ClassAttrs(topk=10)]
    doubles = detections([row for row in rows for _ in range(2)])
    for _ in range(2):
        cluster(doubles, attrs, ClusterMode.NMS, tally=tally)
    assert tally.sum() == 2 * 800
    assert tally[0, Reason.KEPT] == 2 * 10
    # 10 kept boxes have doubles, and of 256 behind them half are; the rest is not compared
    assert tally[0, Reason.SUPPRESSED] == 2 * (10 + 127)
    assert tally[0, Reason.TOPK] == 2 * (800 - 20 - 127)
    assert not tally[1].any()


def test_a_tally_has_a_row_for_each_class_and_one_more() -> None:
    with pytest.raises(ValueError, match="1 rows, not 2"):
        cluster(Detections.empty(), [ClassAttrs()], 2, tally=np.zeros((1, 12), np.int64))


def test_dropped_needs_a_trace() -> None:
    with pytest.raises(ValueError, match="trace=True"):
        _ = cluster(Detections.empty(), [], 2).dropped
