"""Pairs of boxes are those of COCO's evaluation; agreement is that of a loop."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.diagnose.evaluate.box_matching import Scored, Truth, agreement, match_boxes
from headrace.meta.detections import overlaps
from tests.diagnose.evaluate.test_average_precision import pycoco
from tests.diagnose.made_up import made_up
from tests.profiles import examples


@settings(max_examples=examples(15), deadline=None)
@given(st.integers(0, 2**32 - 1), st.booleans())
def test_pairs_are_those_of_pycocotools(seed, crowds):
    truths, found = made_up(seed, 4, crowds=crowds)
    evaluation = pycoco(truths, found)
    rows = [r for r in evaluation.evalImgs if r and r["aRng"] == [0, 1e10]]
    right = sum(int(((r["dtMatches"][0] > 0) & ~r["dtIgnore"][0].astype(bool)).sum()) for r in rows)
    ignored = sum(int(r["dtIgnore"][0].sum()) for r in rows)
    matches = [match_boxes(t, f) for t, f in zip(truths, found, strict=True)]
    assert sum(int(m.hit.sum()) for m in matches) == right
    assert sum(int(m.ignored.sum()) for m in matches) == ignored
    wanted = sum(int((~t.crowd).sum()) for t in truths)
    assert sum(int(m.missed.sum()) for m in matches) == wanted - right
    assert all((m.false == ~(m.hit | m.ignored)).all() for m in matches)


def test_a_difficult_object_takes_one_box_and_a_crowd_many():
    boxes = np.array([[0.0, 0, 10, 10]])
    one = np.array([True])
    twice = Scored(boxes[[0, 0]], np.zeros(2, int), np.array([0.9, 0.8]))
    difficult = Truth(boxes, np.zeros(1, int), ~one, one)
    crowd = Truth(boxes, np.zeros(1, int), one)
    assert match_boxes(difficult, twice).false.tolist() == [False, True]
    assert match_boxes(crowd, twice).ignored.tolist() == [True, True]
    assert not match_boxes(difficult, twice).missed.any()


def test_parts_are_taken_with_all_they_have():
    boxes, kinds = np.eye(4), np.arange(4)
    truth = Truth(boxes, kinds, kinds > 2, kinds > 1, kinds * 1.0, ("a", "b", "c", "d"))
    part = truth.select(np.array([False, True, False, True]))
    assert part.masks == ("b", "d")
    assert part.areas.tolist() == [1, 3]
    assert part.ignored.tolist() == [False, True]
    found = Scored(boxes, kinds, kinds / 4, ("a", "b", "c", "d"))
    assert found.select(np.array([3, 0])).masks == ("d", "a")
    assert found.select(kinds < 2).masks == ("a", "b")


@pytest.mark.parametrize("seed", range(5))
def test_agreement_is_counted_as_it_is_said(seed):
    _, a = made_up(seed)
    _, b = made_up(seed, crowds=False)
    there = total = 0
    for mine, theirs in zip(a, b, strict=True):
        for box, kind, score in zip(mine.boxes, mine.class_ids, mine.scores, strict=True):
            if score < 0.5:
                continue
            total += 1
            there += any(
                k == kind and overlaps(box[None], o[None])[0, 0] >= 0.8
                for o, k in zip(theirs.boxes, theirs.class_ids, strict=True)
            )
    assert agreement(a, b) == pytest.approx(there / total)
    assert agreement(a, a) == 1
