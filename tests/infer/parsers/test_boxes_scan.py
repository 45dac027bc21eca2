"""The native scan against a candidate-by-candidate oracle, on both paths and both layouts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace._core import _native
from headrace.infer.parsers.boxes import best_class, to_float32
from tests.profiles import examples


def oracle(scores, thresholds, objectness):
    found = []
    lowest = thresholds.min()
    for n, row in enumerate(scores):
        if objectness is not None and lowest > 0 and not objectness[n] >= lowest:
            continue
        best, k = np.float32(-np.inf), 0
        for c, score in enumerate(row):
            if score > best:
                best, k = score, c
        value = best if objectness is None else np.float32(objectness[n] * best)
        if k < len(thresholds) and value >= thresholds[k]:
            found.append((n, k, value))
    return found


@settings(max_examples=examples(150))
@given(data=st.data())
def test_equals_the_oracle_on_every_path(data):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    n = data.draw(st.sampled_from([1, 2, 7, 8, 9, 31, 64, 1023, 1025]))
    classes = data.draw(st.sampled_from([1, 2, 3, 7, 8, 9, 16, 17, 80]))
    if data.draw(st.booleans()):
        scores = rng.random((n, classes), np.float32)
    else:  # many ties, NaN, infinities, both zeros
        values = [0.0, -0.0, 0.25, 0.5, 0.75, np.nan, np.inf, -np.inf, -1.0]
        scores = rng.choice(values, (n, classes)).astype(np.float32)
    thresholds = rng.choice([0.0, 0.25, 0.6, 0.9, -np.inf], data.draw(st.integers(1, classes + 2)))
    thresholds = thresholds.astype(np.float32)
    weights = rng.choice([0.0, 0.5, 1.0, 0.3, np.nan], n).astype(np.float32)
    objectness = weights if data.draw(st.booleans()) else None
    with np.errstate(invalid="ignore"):
        expected = oracle(scores, thresholds, objectness)
    column_major = np.ascontiguousarray(scores.T).T
    for table in (scores, column_major):
        for simd in (True, False):
            index, class_ids, values = best_class(
                table, thresholds, objectness=objectness, simd=simd
            )
            assert index.tolist() == [e[0] for e in expected]
            assert class_ids.tolist() == [e[1] for e in expected]
            np.testing.assert_array_equal(
                values.view(np.uint32),
                np.array([e[2] for e in expected], np.float32).view(np.uint32),
            )


@settings(max_examples=examples(150))
@given(
    n=st.sampled_from([1, 31, 32, 33, 63, 64, 65, 127, 200, 1030]),
    classes=st.sampled_from([2, 3, 80]),
    part=st.sampled_from([0.0, 0.002, 0.02, 0.4, 1.0]),
    known=st.sampled_from([1, 2, 80]),
    seed=st.integers(0, 2**32),
)
def test_class_by_class_with_few_scores_above_the_thresholds_or_many(n, classes, part, known, seed):
    rng = np.random.default_rng(seed)
    values = [0.3, 0.5, 0.5, 0.75, 0.9, np.nan, np.inf, -np.inf]
    rows = np.where(
        rng.random((classes, n)) < part,
        rng.choice(values, (classes, n)),
        rng.uniform(-0.1, 0.3, (classes, n)),
    ).astype(np.float32)
    thresholds = rng.choice([0.3, 0.5, 0.8], known).astype(np.float32)
    expected = oracle(rows.T, thresholds, None)
    wide = np.full((classes, n + 7), np.inf, np.float32)  # rows with gaps between them
    wide[:, :n] = rows
    for table in (rows.T, wide[:, :n].T):
        found = best_class(table, thresholds)
        assert list(zip(*found, strict=True)) == expected
        for array, portable in zip(found, best_class(table, thresholds, simd=False), strict=True):
            np.testing.assert_array_equal(array, portable)


@settings(max_examples=examples(60))
@given(
    open_in=st.lists(st.sampled_from([0.0, 0.05, 0.3, 1.0]), min_size=1, max_size=6),
    stretch=st.sampled_from([100, 256, 300]),
    seed=st.integers(0, 2**32),
)
def test_few_open_candidates_and_many_take_turns(open_in, stretch, seed):
    rng = np.random.default_rng(seed)
    objectness = np.concatenate(
        [np.where(rng.random(stretch) < part, 0.9, 0.1) for part in open_in]
    ).astype(np.float32)
    scores = rng.random((len(objectness), 3), np.float32)
    thresholds = np.array([0.3, 0.5, 0.4], np.float32)
    expected = oracle(scores, thresholds, objectness)
    assert (
        list(zip(*best_class(scores, thresholds, objectness=objectness), strict=True)) == expected
    )


def test_views_with_gaps_are_read_in_place():
    rng = np.random.default_rng(1)
    rows = rng.random((50, 85), np.float32)
    thresholds = np.full(80, 0.97, np.float32)
    index, class_ids, scores = best_class(rows[:, 5:], thresholds, objectness=rows[:, 4])
    expected = oracle(rows[:, 5:], thresholds, rows[:, 4])
    assert list(zip(index, class_ids, scores, strict=True)) == expected
    every_other = rows[::2, 5::2]
    index, _, _ = best_class(every_other, thresholds)
    assert index.tolist() == [e[0] for e in oracle(every_other, thresholds, None)]


@pytest.mark.parametrize("shape", [(0, 80), (10, 0)])
def test_nothing_to_scan(shape):
    assert [len(a) for a in best_class(np.empty(shape, np.float32), np.zeros(3, np.float32))] == [
        0
    ] * 3
    assert len(best_class(np.ones((4, 2), np.float32), np.empty(0, np.float32))[0]) == 0


def test_every_half_float_is_converted_exactly():
    halves = np.arange(65536, dtype=np.uint16).view(np.float16)
    expected = halves.astype(np.float32)
    np.testing.assert_array_equal(to_float32(halves), expected)
    np.testing.assert_array_equal(to_float32(halves[::-3]), expected[::-3])
    np.testing.assert_array_equal(
        to_float32(halves.reshape(256, 256).T).ravel(), expected.reshape(256, 256).T.ravel()
    )


def test_the_vector_path_is_said():
    assert isinstance(_native.best_class_has_simd(), bool)


def test_hits_need_room_for_every_candidate():
    scores, weights = np.zeros((300, 2), np.float32), np.ones(300, np.float32)
    short = np.empty(2, np.int32), np.empty(2, np.int32), np.empty(2, np.float32)
    with pytest.raises(ValueError, match="no room for every candidate"):
        _native.best_class(scores, weights, np.full(2, 0.5, np.float32), *short)
