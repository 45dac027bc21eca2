"""Ranges of activations with unlike channels, and weights whose rounding errors cancel."""

import numpy as np
import pytest
from onnx import helper

from headrace.engine.precision.even import even_out, round_weights
from headrace.engine.precision.prepare import prepare
from headrace.engine.precision.qdq import to_qdq
from headrace.engine.precision.ranges import Channels, choose_ranges
from tests.engine.precision.graphs import model, run, sqnr

REACH = np.array([30, 3, 0.3, 0.03], np.float32).reshape(4, 1, 1)
IMAGE = (np.random.default_rng(0).normal(0, 1, (2, 4, 12, 12)) * REACH).astype(np.float32)


def unlike(group=1):
    """`image` (n, 4, 12, 12) -> `map`: a convolution of channels that reach far and less far."""
    rng = np.random.default_rng(1)
    kernel = rng.normal(0, 1, (4, 4 // group, 3, 3)).astype(np.float32)
    if group == 1:
        kernel /= REACH.reshape(1, 4, 1, 1)
    nodes = [helper.make_node("Conv", ["image", "w"], ["map"], "conv", group=group)]
    return prepare(
        model(nodes, {"image": ["n", 4, 12, 12]}, {"map": ["n", 4, 10, 10]}, {"w": kernel})
    )


def chosen_for(proto):
    return choose_ranges(proto, {"image": Channels.of(IMAGE)})


def by_channel(proto):
    [found] = run(proto.SerializeToString(), {"image": IMAGE})
    return np.moveaxis(found, 1, 0)


@pytest.mark.parametrize("group", [1, 2, 4])
def test_factors_do_not_change_what_is_computed(group):
    import msgspec

    proto = unlike(group)
    plain = {
        name: msgspec.structs.replace(choice, directions=(), deviations=())
        for name, choice in chosen_for(proto).items()
    }
    assert plain["image"].factors
    made = even_out(proto, plain, {"conv"})
    assert [n.op_type for n in made.graph.node] == ["Mul", "Conv"]
    assert np.allclose(by_channel(made), by_channel(proto), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("group", [1, 2, 4])
@pytest.mark.parametrize("own_zeros", [True, False])
def test_small_channels_keep_their_levels(group, own_zeros):
    proto = unlike(group)
    scales = {"image": float(np.abs(IMAGE).max()) / 127}
    usual, _ = to_qdq(proto, scales)
    made, report = to_qdq(proto, scales, tensors=chosen_for(proto), own_zeros=own_zeros)
    assert report.converted == ["conv"]
    types = {n.op_type for n in made.graph.node}
    assert types == {"Mul", "QuantizeLinear", "DequantizeLinear", "Conv"}
    true = by_channel(proto)
    before = min(sqnr(a, b) for a, b in zip(true, by_channel(usual), strict=True))
    after = min(sqnr(a, b) for a, b in zip(true, by_channel(made), strict=True))
    assert after > before + 10
    assert after > 20


def test_a_range_off_the_middle_uses_all_bytes():
    proto = unlike()
    positive = np.abs(IMAGE)
    choices = choose_ranges(proto, {"image": Channels.of(positive)})
    assert choices["image"].low == 0
    scales = {"image": 1.0}
    errors = []
    for own_zeros in (True, False):
        made, _ = to_qdq(proto, scales, tensors=choices, own_zeros=own_zeros)
        feeds = {"image": positive}
        [true], [found] = (run(p.SerializeToString(), feeds) for p in (proto, made))
        errors.append(sqnr(true, found))
    assert errors[0] > errors[1] + 3


def test_layers_that_are_kept_take_the_tensor_as_it_was():
    proto = unlike()
    made = even_out(proto, chosen_for(proto), ())
    assert made.graph == proto.graph


@pytest.mark.parametrize("levels", [63, 127])
@pytest.mark.parametrize("shape", [(1, 16, 8, 1), (1, 6, 4, 9), (8, 1, 1, 9)])
def test_rounding_errors_cancel_on_the_values_that_were_seen(shape, levels):
    rng = np.random.default_rng(3)
    groups, inputs, *_ = shape
    kernel = rng.normal(0, 1, shape)
    means, spread = rng.uniform(1, 3, groups * inputs), rng.uniform(0.1, 0.5, groups * inputs)
    rounded = round_weights(kernel, means[None], spread, levels)
    step = np.abs(kernel).max(axis=(1, 3), keepdims=True) / levels
    assert np.allclose(rounded / step, np.round(rounded / step), atol=1e-6)
    assert np.abs(rounded / step).max() <= levels + 1e-6
    assert (np.abs(rounded - kernel) <= step * (1 + 1e-9)).all()

    values = means + rng.normal(0, 1, (500, groups * inputs)) * spread
    values = values.reshape(500, groups, inputs)  # alike under all places of a kernel

    def loss(made):
        return np.square(np.einsum("ngi,giop->ngo", values, made - kernel)).mean()

    assert loss(rounded) < 0.6 * loss(np.round(kernel / step) * step)


def test_rounding_errors_cancel_along_all_directions():
    rng = np.random.default_rng(4)
    kernel = rng.normal(0, 1, (1, 24, 6, 1))
    directions = rng.normal(0, 1, (8, 24))
    little = np.full(24, 0.05)
    values = rng.normal(0, 1, (2000, 8)) @ directions + rng.normal(0, 0.05, (2000, 24))
    step = np.abs(kernel).max(axis=(1, 3), keepdims=True) / 127

    def loss(made):
        return np.square(np.einsum("ni,io->no", values, (made - kernel)[0, :, :, 0])).mean()

    nearest = loss(np.round(kernel / step) * step)
    first = loss(round_weights(kernel, directions[:1], little, 127))
    every = loss(round_weights(kernel, directions, little, 127))
    assert every < 0.4 * nearest
    assert every < 0.6 * first
