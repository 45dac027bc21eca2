"""The native suppression against plain loops."""

from __future__ import annotations

import ctypes
import ctypes.util
import platform
import threading
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from headrace.plugins.standard.maths.nms import (
    Kept,
    PlusOne,
    batched_nms,
    efficient_nms,
    greedy_nms,
)
from tests.plugins.standard import slow
from tests.profiles import examples


def same(kept: Kept, rows: list[list[Any]]) -> None:
    for b, image in enumerate(rows):
        n = int(kept.count[b])
        assert n == len(image)
        expected = Kept.empty(1, kept.scores.shape[1])
        for i, (box, score, class_id, row) in enumerate(image):
            expected.boxes[0, i], expected.scores[0, i] = box, score
            expected.classes[0, i], expected.rows[0, i] = class_id, row
        np.testing.assert_array_equal(kept.classes[b], expected.classes[0])
        np.testing.assert_array_equal(kept.rows[b], expected.rows[0])
        np.testing.assert_allclose(kept.scores[b], expected.scores[0], rtol=1e-6)
        np.testing.assert_allclose(kept.boxes[b], expected.boxes[0], rtol=1e-5, atol=1e-6)


@st.composite
def heads(draw: st.DrawFn) -> tuple[Any, Any]:
    """Boxes and scores on coarse grids: ties, touching, empty and crossed boxes are common."""
    b, n, c = draw(st.integers(0, 2)), draw(st.integers(0, 12)), draw(st.integers(1, 3))
    q = draw(st.sampled_from([1, c]))
    odd = [float("nan"), float("inf"), -0.0]
    coordinate = st.one_of(st.integers(-1, 6).map(lambda i: i / 4), st.sampled_from(odd))
    score = st.one_of(st.integers(0, 8).map(lambda i: i / 8), st.just(float("nan")))
    boxes = draw(arrays(np.float32, (b, n, q, 4), elements=coordinate.map(np.float32), fill=None))
    scores = draw(arrays(np.float32, (b, n, c), elements=score.map(np.float32)))
    return boxes, scores


switch = st.booleans()
unit = st.sampled_from([0.0, 0.125, 0.25, 0.5, 0.75, 1.0])


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@given(
    heads(),
    st.integers(1, 8),
    unit,
    unit.filter(bool),
    st.integers(-1, 2),
    st.tuples(switch, switch, switch, switch),
    st.integers(0, 2),
)
def test_efficient_nms_equals_the_loops(
    case: Any, keep: int, score: float, iou: float, background: int, flags: Any, per_class: int
) -> None:
    sigmoid, centres, agnostic, clip = flags
    options: dict[str, Any] = {
        "keep": keep,
        "score_threshold": score,
        "iou_threshold": iou,
        "background": background,
        "sigmoid": sigmoid,
        "centres": centres,
        "agnostic": agnostic,
        "per_class": per_class,
        "clip": clip and bool(np.isfinite(case[0]).all()),
    }
    same(efficient_nms(*case, **options), slow.efficient(*case, **options))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@given(
    heads(), st.integers(1, 6), st.integers(0, 6), unit, unit, st.integers(-1, 2),
    st.sampled_from(list(PlusOne)), switch,
)  # fmt: skip
def test_batched_nms_equals_the_loops(
    case: Any,
    keep: int,
    more: int,
    score: float,
    iou: float,
    background: int,
    plus: PlusOne,
    clip: bool,
) -> None:
    options: dict[str, Any] = {
        "keep": keep,
        "top": keep + more,
        "score_threshold": score,
        "iou_threshold": iou,
        "background": background,
        "clip": clip and bool(np.isfinite(case[0]).all()),
    }
    plain = {"plus_areas": plus > 0, "plus_overlap": plus == PlusOne.AREAS_AND_OVERLAP}
    same(batched_nms(*case, plus_one=plus, **options), slow.batched(*case, **options, **plain))


@pytest.mark.parametrize("centres", [False, True])
@pytest.mark.parametrize("sets", [1, 3])
@pytest.mark.parametrize("shared", [False, True])
def test_boxes_relative_to_anchors(centres: bool, sets: int, shared: bool) -> None:
    random = np.random.default_rng(1)
    boxes = random.normal(0, 0.5, (2, 40, sets, 4)).astype(np.float32)
    scores = random.random((2, 40, 3), np.float32)
    anchors = random.random((1 if shared else 2, 40, 4), np.float32)
    options: dict[str, Any] = {
        "keep": 30, "score_threshold": 0.3, "iou_threshold": 0.4, "centres": centres,
    }  # fmt: skip
    same(
        efficient_nms(boxes, scores, anchors, **options),
        slow.efficient(boxes, scores, anchors, **options),
    )


def test_a_flood_of_candidates_is_cut_to_the_best_5000() -> None:
    random = np.random.default_rng(2)
    n, c = 1500, 9
    boxes = np.zeros((1, n, 1, 4), np.float32)
    boxes[0, :, 0, :2] = random.integers(0, 10_000, (n, 2))
    boxes[0, :, 0, 2:] = boxes[0, :, 0, :2] + 1
    scores = (random.integers(1, 700, (1, n, c)) / 700).astype(np.float32)
    options: dict[str, Any] = {"keep": 6000, "score_threshold": 0.0, "iou_threshold": 0.5}
    kept = efficient_nms(boxes, scores, **options)
    order = np.argsort(-scores.reshape(-1), kind="stable")[:5000]
    # boxes hardly meet: nearly all of the 5,000 survive, in order
    rows = set((kept.rows[0] * c + kept.classes[0])[: kept.count[0]].tolist())
    assert rows <= set(order.tolist())
    assert 4800 < kept.count[0] <= 5000
    got = (kept.rows[0] * c + kept.classes[0])[: kept.count[0]]
    place = {int(index): i for i, index in enumerate(order)}
    assert np.all(np.diff([place[int(g)] for g in got]) > 0)


CLASSES = 40


def many_scores(kind: str, boxes: int, seed: int) -> Any:
    """(1, boxes, CLASSES): so many that few are looked at first, by a threshold that is guessed."""
    random = np.random.default_rng(seed)
    total = boxes * CLASSES
    scores = random.random(total, np.float32)
    step = max(1, total // 64 // 256)
    sampled = np.arange(total) // 64 % step == step // 2  # where the guess is made
    if kind == "ties":
        scores = np.float32(0.5) + np.round(scores * 30) * np.float32(2**-24)  # neighbours
    elif kind == "equal":
        scores[:] = 0.5
    elif kind == "ascending":
        scores.sort()
    elif kind == "few":
        scores[random.random(total) > 0.01] = 0
    elif kind == "misled":  # the guess is much too high
        scores *= np.float32(0.5)
        scores[sampled & (random.random(total) < 0.05)] += np.float32(0.5)
    elif kind == "unseen":  # the guess is much too low
        scores[sampled] = 0
    elif kind == "odd":
        scores[random.random(total) < 0.3] = np.nan
        scores[random.random(total) < 0.05] = np.inf
        scores[random.random(total) < 0.1] = -0.0
    return scores.reshape(1, boxes, CLASSES)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(
    "kind", ["any", "ties", "equal", "ascending", "few", "misled", "unseen", "odd"]
)
@settings(max_examples=examples(15))
@given(
    boxes=st.sampled_from([300, 830, 1700]),
    places=st.sampled_from([4, 30, 700]),
    seed=st.integers(0, 10**6),
    keep=st.sampled_from([7, 130, 130, 1300]),
    threshold=st.sampled_from([0.0, 0.3, 0.9]),
    background=st.sampled_from([-1, 5]),
    top=st.sampled_from([20, 5000]),
)
@pytest.mark.sampled
def test_of_many_candidates_the_best_are_kept(
    kind: str,
    boxes: int,
    places: int,
    seed: int,
    keep: int,
    threshold: float,
    background: int,
    top: int,
) -> None:
    """Boxes of one place and class suppress each other: the best of each is kept, in order, as
    long as it is among the best scores. Nothing suppresses a box with a NaN."""
    scores = many_scores(kind, boxes, seed)
    place = (np.random.default_rng(seed).random(boxes) ** 6 * places).astype(int)  # some are rare
    corner = np.stack([place % 50, place // 50], 1).astype(np.float32)
    broken = np.arange(boxes) % 400 == 7
    corner[broken, 1] = np.nan
    corners = np.concatenate([corner, corner + np.float32(0.5)], 1).reshape(1, boxes, 1, 4)
    options: dict[str, Any] = {
        "keep": keep, "score_threshold": threshold, "iou_threshold": 0.5, "background": background,
    }  # fmt: skip
    flat = scores.ravel()
    row, label = np.divmod(np.arange(flat.size), CLASSES)

    def check(kept: Kept, best: Any) -> None:
        own = np.where(broken[row[best]], -1 - best, place[row[best]] * CLASSES + label[best])
        wanted = best[np.sort(np.unique(own, return_index=True)[1])][:keep]
        count = int(kept.count[0])
        assert (kept.rows[0] * CLASSES + kept.classes[0])[:count].tolist() == wanted.tolist()
        np.testing.assert_array_equal(kept.scores[0, :count], flat[wanted])

    able = np.flatnonzero((flat >= threshold) & (label != background))
    best = able[np.argsort(-flat[able], kind="stable")][:5000]
    check(efficient_nms(corners, scores, **options), best)

    above = able[flat[able] > np.float32(threshold)]
    best = above[np.lexsort((row[above], label[above], -flat[above]))]
    turns = [np.flatnonzero(label[best] == k)[:top] for k in range(CLASSES)]
    check(batched_nms(corners, scores, top=top, **options), best[np.sort(np.concatenate(turns))])


def test_an_overlap_at_the_threshold_suppresses_in_one_and_not_in_the_other() -> None:
    boxes = np.array([[[[0, 0, 4, 1]], [[0, 0, 2, 1]]]], np.float32)  # IoU 0.5
    scores = np.array([[[0.9], [0.8]]], np.float32)
    assert efficient_nms(boxes, scores, keep=2, score_threshold=0.8, iou_threshold=0.5).count == 1
    options: dict[str, Any] = {"keep": 2, "top": 2, "iou_threshold": 0.5}
    assert batched_nms(boxes, scores, score_threshold=0.7, **options).count == 2
    assert batched_nms(boxes, scores, score_threshold=np.float32(0.8), **options).count == 1


@pytest.mark.skipif(platform.machine() != "x86_64", reason="sets a register of x86")
def test_scores_of_zero_are_not_above_it_where_denormal_numbers_are_zero() -> None:
    """Libraries compiled with -ffast-math make it so for the threads that load them."""
    boxes = np.arange(24, dtype=np.float32).reshape(1, 6, 1, 4) * 10
    scores = np.zeros((1, 6, 2), np.float32)
    scores[0, 1, 0] = 0.5
    counts = []

    def run() -> None:
        maths = ctypes.CDLL(ctypes.util.find_library("m"))
        environment = (ctypes.c_uint32 * 8)()  # the last word is MXCSR
        maths.fegetenv(environment)
        environment[7] |= 0x8040
        maths.fesetenv(environment)
        options: dict[str, Any] = {"keep": 10, "top": 10, "iou_threshold": 0.5}
        counts.append(batched_nms(boxes, scores, score_threshold=0.0, **options).count.tolist())

    thread = threading.Thread(target=run)  # others keep theirs
    thread.start()
    thread.join()
    assert counts == [[1]]


def test_greedy_stops_when_it_has_enough_and_keeps_classes_apart() -> None:
    boxes = np.array([[0, 0, 2, 2], [0, 0, 2, 2], [5, 5, 6, 6], [0, 0, 2, 2]], np.float32)
    assert greedy_nms(boxes, iou_threshold=0.5).tolist() == [0, 2]
    assert greedy_nms(boxes, iou_threshold=0.5, keep=1).tolist() == [0]
    classes = np.array([0, 1, 0, 1])
    assert greedy_nms(boxes, iou_threshold=0.5, class_ids=classes).tolist() == [0, 1, 2]
