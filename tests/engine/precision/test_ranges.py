"""Ranges and factors of activations: the sample they are chosen from, and the noise they leave."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import helper

from headrace._core._native import rounding_errors
from headrace.engine.precision.choice import TensorChoice
from headrace.engine.precision.prepare import prepare
from headrace.engine.precision.ranges import Channels, choose_ranges, sample_places
from tests.engine.precision.graphs import model


def convolution(kernel, group=1):
    """`x` (n, channels, 4, 4) -> `y`."""
    channels = kernel.shape[1] * group
    nodes = [helper.make_node("Conv", ["x", "w"], ["y"], "conv", group=group)]
    outputs = {"y": ["n", kernel.shape[0], None, None]}
    return prepare(model(nodes, {"x": ["n", channels, 4, 4]}, outputs, {"w": kernel}))


def noise(values, kernel, choice):
    """Relative squared error of a 1x1 convolution of values (C, n) in the bytes of a choice."""
    factors = np.array(choice.factors or [1.0] * len(values))[:, None]
    step = (choice.high - choice.low) / 255
    zero = round(-choice.low / step)
    found = np.clip(np.rint(values * factors / step) + zero, 0, 255) - zero
    found = found * step / factors
    weights = kernel[:, :, 0, 0]
    return np.square(weights @ (found - values)).sum() / np.square(weights @ values).sum()


def test_channels_of_parts_are_those_of_the_whole():
    values = np.random.default_rng(0).normal(0, 1, (3, 4, 5, 6)).astype(np.float32)
    parts, whole = Channels.of(values[:1]), Channels.of(values)
    parts.add(Channels.of(values[1:]))
    assert np.array_equal(parts.low, whole.low)
    assert np.array_equal(parts.high, whole.high)
    assert np.array_equal(np.sort(parts.sample), np.sort(whole.sample))
    some = Channels.of(values, np.array([2, 40]))
    assert some.sample.shape == (4, 2)
    assert np.array_equal(some.high, whole.high)  # of all values, not of the sample


@given(
    height=st.integers(1, 12),
    width=st.integers(1, 12),
    count=st.integers(1, 60),
    edges=st.lists(st.tuples(*[st.floats(-0.5, 1.5)] * 4), max_size=3),
)
def test_places_are_in_the_map_and_none_comes_twice(height, width, count, edges):
    rects = np.array(edges, float).reshape(-1, 4)
    rng = np.random.default_rng(0)
    found = sample_places((1, 8, height, width), rects, count, rng)
    assert len(found) <= min(count, height * width)
    assert len(set(found.tolist())) == len(found)
    assert ((found >= 0) & (found < height * width)).all()


def test_most_places_are_inside_objects():
    found = sample_places(
        (1, 8, 100, 100), np.array([[0.5, 0.5, 0.7, 0.6]]), 100, np.random.default_rng(0)
    )
    rows, columns = np.divmod(found, 100)
    inside = (rows >= 50) & (rows < 60) & (columns >= 50) & (columns < 70)
    assert inside.sum() >= 60
    assert len(found) == 100
    assert len(sample_places((4, 3), np.zeros((0, 4)), 9, np.random.default_rng(0))) == 4


def test_rare_values_far_out_are_cut_off_where_that_loses_less():
    values = np.random.default_rng(1).normal(0, 1, (1, 1, 500, 500)).astype(np.float32)
    values[0, 0, 0, 0] = 20
    kernel = np.ones((1, 1, 1, 1), np.float32)
    [chosen] = choose_ranges(convolution(kernel), {"x": Channels.of(values)}).values()
    assert not chosen.factors
    assert 8 < chosen.high < 18
    assert chosen.low < -3


@pytest.mark.parametrize("shape", ["alike", "unlike", "positive"])
def test_the_choice_leaves_no_more_noise_than_the_range_of_all_values(shape):
    rng = np.random.default_rng(2)
    reach = np.array([8, 1, 0.2, 0.05] if shape == "unlike" else [1] * 4).reshape(1, 4, 1, 1)
    values = (rng.normal(0, 1, (1, 4, 50, 50)) * reach).astype(np.float32)
    if shape == "positive":
        values = np.abs(values)
    kernel = (rng.normal(0, 1, (6, 4, 1, 1)) / reach).astype(np.float32)
    channels = Channels.of(values)
    [chosen] = choose_ranges(convolution(kernel), {"x": channels}).values()
    usual = TensorChoice(low=min(0.0, float(values.min())), high=float(values.max()))
    before, after = (noise(channels.sample, kernel, c) for c in (usual, chosen))
    assert after <= before * 1.001
    if shape == "unlike":
        assert after < before / 20


def test_each_channel_of_a_depthwise_layer_uses_the_bytes_of_its_own_sign():
    """A channel that is mostly negative must not widen the range of all others below 0."""
    rng = np.random.default_rng(3)
    values = np.abs(rng.normal(0, 1, (1, 8, 40, 40))).astype(np.float32)
    values[0, 0] *= -0.2
    kernel = rng.normal(0, 1, (8, 1, 3, 3)).astype(np.float32)
    [chosen] = choose_ranges(convolution(kernel, 8), {"x": Channels.of(values)}).values()
    assert -chosen.low < chosen.high
    factors = np.array(chosen.factors)
    assert factors[0] == pytest.approx(-chosen.low / 0.2 / values.max(), rel=1)


def test_directions_and_deviations_are_the_second_moment_of_the_channels():
    rng = np.random.default_rng(5)
    values = (rng.normal(0, 1, (3, 2, 40, 40)) + 2).astype(np.float32)
    values = np.concatenate([values, 3 * values, rng.normal(0, 1, values.shape)], axis=1)
    kernel = np.ones((2, 6, 1, 1), np.float32)
    channels = Channels.of(values)
    [chosen] = choose_ranges(convolution(kernel), {"x": channels}).values()
    along = np.array(chosen.directions)
    found = along.T @ along + np.diag(np.square(chosen.deviations))
    sample = channels.sample.astype(float)
    assert np.allclose(found, sample @ sample.T / sample.shape[1], rtol=1e-2, atol=1e-2)


def test_an_activation_that_is_always_0_is_left_out():
    kernel = np.ones((2, 2, 1, 1), np.float32)
    zeros = np.zeros((1, 2, 4, 4), np.float32)
    assert choose_ranges(convolution(kernel), {"x": Channels.of(zeros)}) == {}


@pytest.mark.parametrize("count", [1, 15, 512, 1300])
def test_what_rounding_loses_is_what_numpy_says(count):
    rows = np.random.default_rng(count).normal(0, 90, (3, count)).astype(np.float32)
    rows[0, 0] = 2.5  # between two: the even one
    factors = np.array([1, 0.3, 7], np.float32)
    found = np.empty(3)
    rounding_errors(rows, factors, -10, 245, found)
    scaled = rows * factors[:, None]
    errors = np.clip(np.rint(scaled), -10, 245).astype(np.float64) - scaled
    np.testing.assert_allclose(found, np.square(errors).sum(1), rtol=1e-5)
