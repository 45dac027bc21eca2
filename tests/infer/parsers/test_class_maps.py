"""The built-in segmentation parser against a slow oracle."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from headrace.errors import ParserError
from headrace.infer.parsers.class_maps import Segmenter, class_map, segment
from headrace.meta import Layer, NetworkInfo, SegmentationParams

Order = Literal["NCHW", "NHWC"]
ORDERS: tuple[Order, Order] = ("NCHW", "NHWC")
VALUES = st.sampled_from(
    [0.0, -0.0, 0.25, 0.5, 0.75, 1.0, -0.5, -1.0, -2.0, np.nan, np.inf, -np.inf]
)
SHAPES = st.tuples(st.integers(1, 19), st.integers(1, 7), st.integers(1, 9))


def slow(scores: Any, threshold: float) -> list[list[int]]:
    """Pixel by pixel, as the rule is written; scores is (C, H, W)."""
    classes, height, width = scores.shape
    result = [[-1] * width for _ in range(height)]
    for y in range(height):
        for x in range(width):
            best = np.float32(-1)
            for c in range(classes):
                p = scores[c, y, x]
                if p > best and p > np.float32(threshold):
                    best, result[y][x] = p, c
    return result


def in_order(scores: Any, order: Order) -> Any:
    return scores if order == "NCHW" else np.ascontiguousarray(scores.transpose(1, 2, 0))


@given(
    scores=SHAPES.flatmap(lambda s: hnp.arrays(np.float32, s, elements=VALUES)),
    threshold=st.sampled_from([-3.0, -0.75, 0.0, 0.3, 0.5, 2.0]),
    order=st.sampled_from(ORDERS),
    simd=st.booleans(),
)
def test_every_pixel_is_what_the_rule_says(
    scores: Any, threshold: float, order: Order, simd: bool
) -> None:
    found = class_map(in_order(scores, order), threshold, order, simd=simd)
    assert found.dtype == np.int32
    assert found.tolist() == slow(scores, threshold)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("shape", [(21, 37, 61), (1, 40, 40), (8, 33, 31), (40, 11, 101)])
def test_large_volumes_agree_with_numpy(shape: tuple[int, int, int], order: Order) -> None:
    scores = np.random.default_rng(7).random(shape, np.float32)
    expected = np.where(scores.max(axis=0) > 0.5, scores.argmax(axis=0), -1)
    for simd in (False, True):
        np.testing.assert_array_equal(
            class_map(in_order(scores, order), 0.5, order, simd=simd), expected
        )


def test_memory_in_any_order() -> None:
    scores = np.random.default_rng(1).random((3, 5, 7), np.float32)
    expected = scores.argmax(axis=0)
    np.testing.assert_array_equal(class_map(np.asfortranarray(scores), 0, "NCHW"), expected)
    np.testing.assert_array_equal(class_map(scores.transpose(1, 2, 0), 0, "NHWC"), expected)


def one(data: Any, name: str = "out") -> dict[str, Layer]:
    return {name: Layer(name, data)}


SMALL = NetworkInfo(4, 2, 3)


def test_the_first_layer_counts_and_is_the_probabilities() -> None:
    first = np.random.default_rng(2).random((3, 2, 4), np.float32)
    layers = {**one(first), "other": Layer("other", np.ones((3, 2, 4), np.float32))}
    found = segment(layers, SMALL, SegmentationParams(3))
    np.testing.assert_array_equal(found.class_map, first.argmax(axis=0))
    assert found.probabilities is not None
    assert np.shares_memory(found.probabilities, first)


def test_another_size_than_the_input_is_said_once() -> None:
    parse = Segmenter()
    params = SegmentationParams(2, 0.0, "NHWC")
    small, whole = one(np.ones((1, 3, 2), np.float32)), one(np.ones((2, 4, 2), np.float32))
    assert parse(whole, SMALL, params).class_map.shape == (2, 4)
    assert parse.notices == []
    for _ in range(2):
        assert parse(small, SMALL, params).class_map.shape == (1, 3)
    assert [str(n) for n in parse.notices] == [
        "built-in segmentation parser: the output has 3x1 pixels, the network input 4x2: "
        "class maps have the size of the output"
    ]
    old = Segmenter("6.2")
    assert old(small, SMALL, params).class_map.shape == (1, 3)
    assert old.notices == []


@pytest.mark.parametrize(
    ("layers", "words"),
    [
        (one(np.zeros((4, 2, 2), np.float32)), "has 4 classes, num-detected-classes=3"),
        (one(np.zeros((3, 2, 4), np.float16)), "output out is float16"),
        (one(np.zeros((2, 4), np.float32)), "has the shape (2, 4)"),
        (one(np.zeros(4, np.float32)), "a classifier's: network-type=1"),
        (one(np.zeros((1, 3, 2, 4), np.float32)), "has the shape (1, 3, 2, 4)"),
        (
            {**one(np.zeros((3, 2, 4), np.float32)), "best": Layer("best", np.zeros(1, np.int64))},
            "output best is int64",
        ),
        ({}, "no outputs"),
    ],
)
def test_what_does_not_fit_is_refused(layers: dict[str, Layer], words: str) -> None:
    with pytest.raises(ParserError) as caught:
        segment(layers, SMALL, SegmentationParams(3))
    assert words in str(caught.value)


def test_older_generations_check_neither_classes_nor_types() -> None:
    half = np.random.default_rng(3).random((5, 2, 4)).astype(np.float16)
    layers = {**one(half), "best": Layer("best", np.zeros(1, np.int64))}
    found = segment(layers, SMALL, SegmentationParams(3), generation="6.2")
    np.testing.assert_array_equal(found.class_map, half.argmax(axis=0))
    with pytest.raises(ParserError, match="output out is int32"):
        segment(one(np.zeros((3, 2, 4), np.int32)), SMALL, SegmentationParams(3), generation="6.2")


def test_volumes_without_pixels_or_classes() -> None:
    assert class_map(np.empty((0, 2, 3), np.float32), 0, "NCHW").tolist() == [[-1] * 3] * 2
    assert class_map(np.empty((2, 0, 3), np.float32), 0, "NHWC").shape == (2, 0)
