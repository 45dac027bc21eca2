"""Precision, recall and F1 at thresholds, and the best of them, as a loop finds it."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.diagnose.evaluate.box_matching import Scored, Truth, match_boxes
from headrace.diagnose.evaluate.operating import OperatingPoint, best_points, points_at, total
from tests.diagnose.made_up import ALL_CLASSES, made_up
from tests.profiles import examples


def at(truths, found, threshold):
    kept = [f.select(f.scores >= threshold) for f in found]
    matches = [match_boxes(t, f) for t, f in zip(truths, kept, strict=True)]
    return points_at(truths, kept, matches, [threshold] * ALL_CLASSES)


@settings(max_examples=examples(15), deadline=None)
@given(st.integers(0, 2**32 - 1), st.booleans())
def test_the_best_threshold_is_the_best_of_all(seed, crowds):
    truths, found = made_up(seed, 5, crowds=crowds)
    matches = [match_boxes(t, f) for t, f in zip(truths, found, strict=True)]
    best = best_points(truths, found, matches, ALL_CLASSES)
    scores = np.unique(np.concatenate([f.scores for f in found]))
    tried = [at(truths, found, s) for s in scores]
    for k, point in enumerate(best):
        wanted = sum(int((t.class_ids[~t.ignored] == k).sum()) for t in truths)
        assert (point is None) == (wanted == 0)
        if point is None:
            continue
        assert point.f1 == pytest.approx(max(p[k].f1 for p in tried))
        if point.threshold is not None:
            again = at(truths, found, point.threshold)[k]
            assert (again.right, again.false, again.missed) == (
                point.right,
                point.false,
                point.missed,
            )


def test_equal_scores_stand_or_fall_together():
    boxes = np.array([[10.0, 10, 50, 50], [200, 200, 50, 50]])
    truth = Truth(boxes[:1], np.zeros(1, int), np.zeros(1, bool))
    found = Scored(boxes, np.zeros(2, int), np.array([0.5, 0.5]))
    (point,) = best_points([truth], [found], [match_boxes(truth, found)], 1)
    assert (point.right, point.false, point.missed) == (1, 1, 0)


def test_shares_and_sums():
    point = OperatingPoint(0.5, 3, 1, 2)
    assert (point.precision, point.recall) == (0.75, 0.6)
    assert point.f1 == pytest.approx(2 * 0.75 * 0.6 / 1.35)
    both = total([point, OperatingPoint(0.5, 1, 0, 0)])
    assert both == OperatingPoint(0.5, 4, 1, 2)
    assert total([point, OperatingPoint(0.4, 1, 0, 0)]).threshold is None
    nothing = OperatingPoint(0.5, 0, 0, 0).to_dict()
    assert json.loads(json.dumps(nothing, allow_nan=False))["precision"] is None
