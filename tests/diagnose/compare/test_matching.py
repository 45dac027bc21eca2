"""Pairs of boxes and their drift."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from headrace.diagnose.compare.matching import Drift, Tolerance, pair_boxes
from headrace.diagnose.evaluate.box_matching import Scored
from headrace.meta.detections import overlaps


def objects(*rows: tuple[float, float, float, float, int, float]) -> Scored:
    table = np.array(rows, np.float64).reshape(-1, 6)
    return Scored(table[:, :4], table[:, 4].astype(np.int64), table[:, 5])


@st.composite
def scenes(draw: st.DrawFn) -> Scored:
    n = draw(st.integers(0, 8))
    boxes = draw(arrays(np.float64, (n, 4), elements=st.integers(0, 20)))
    ids = draw(arrays(np.int64, n, elements=st.integers(0, 2)))
    return Scored(boxes, ids, np.linspace(0.1, 0.9, n))


@given(scenes(), scenes())
def test_every_box_is_in_one_pair_or_alone(a, b):
    pairs = pair_boxes(a, b)
    for side, alone, boxes in ((0, pairs.only_a, a.boxes), (1, pairs.only_b, b.boxes)):
        used = [*pairs.rows[:, side], *pairs.changed[:, side], *alone]
        assert sorted(used) == list(range(len(boxes)))
    assert (a.class_ids[pairs.rows[:, 0]] == b.class_ids[pairs.rows[:, 1]]).all()
    assert (a.class_ids[pairs.changed[:, 0]] != b.class_ids[pairs.changed[:, 1]]).all()
    assert (pairs.ious >= 0.5).all()
    # nothing that is left over could still be a pair
    left = overlaps(a.boxes[pairs.only_a], b.boxes[pairs.only_b])
    assert not (left >= 0.5).any()


@given(scenes(), scenes())
def test_matching_does_not_depend_on_which_is_first(a, b):
    forth, back = Drift(), Drift()
    forth.add(a, b)
    back.add(b, a)
    assert (forth.only_a, forth.only_b) == (back.only_b, back.only_a)
    assert np.allclose(np.sort(forth.ious), np.sort(back.ious))


def test_the_best_overlap_goes_first():
    a = objects((0, 0, 10, 10, 0, 0.9), (2, 0, 10, 10, 0, 0.8))
    b = objects((2, 0, 10, 10, 0, 0.7))
    pairs = pair_boxes(a, b)
    assert pairs.rows.tolist() == [[1, 0]]
    assert pairs.only_a.tolist() == [0]


def test_drift_counts_classes_labels_and_scores():
    drift = Drift()
    a = objects((0, 0, 10, 10, 0, 0.9), (50, 0, 10, 10, 1, 0.5), (90, 0, 9, 9, 1, 0.4))
    b = objects((0, 0, 10, 10, 0, 0.8), (50, 0, 10, 10, 2, 0.5), (200, 0, 9, 9, 1, 0.4))
    drift.add(a, b, ({0: "car", 1: "dog"}, {0: "van", 1: "dog"}))
    assert (drift.boxes_a, drift.boxes_b, drift.matched) == (3, 3, 1)
    assert (drift.only_a, drift.only_b, drift.class_changed, drift.label_changed) == (1, 1, 1, 1)
    assert drift.score_changes == pytest.approx([-0.1])
    assert drift.beyond(Tolerance(0.9, 0.2)) == 4
    assert drift.beyond(Tolerance(0.9, 0.05)) == 5
    figures = drift.to_dict()
    assert figures["score_drift"]["largest"] == pytest.approx(0.1)
    assert figures["iou_min"] == 1


def test_numbers_that_are_none_differ_from_others_only():
    drift = Drift()
    drift.add(objects((0, 0, 9, 9, 0, np.nan)), objects((0, 0, 9, 9, 0, np.nan)))
    assert drift.beyond(Tolerance()) == 0
    drift.add(objects((0, 0, 9, 9, 0, np.nan)), objects((0, 0, 9, 9, 0, 0.5)))
    assert drift.beyond(Tolerance()) == 1
    drift.add(objects((np.nan, 0, 9, 9, 0, 1)), objects((0, 0, 9, 9, 0, 1)))
    assert (drift.only_a, drift.only_b) == (1, 1)
    assert drift.to_dict()["score_drift"]["largest"] is None
