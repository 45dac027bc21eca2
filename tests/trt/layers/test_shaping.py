"""Layers that move, choose and make elements."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import headrace.trt as trt
from tests.profiles import thinned
from tests.trt import reference
from tests.trt.harness import engine_of, execute, network, run_layer

rng = np.random.default_rng(5)


def close(a, b):
    assert a.shape == np.shape(b)
    np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def floats(*shape):
    return rng.standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize(
    ("first", "reshape", "second", "want"),
    [
        (None, (0, -1), None, lambda x: x.reshape(2, -1)),
        ((2, 0, 1), None, None, lambda x: x.transpose(2, 0, 1)),
        ((0, 2, 1), (2, 2, -1), (1, 0, 2), lambda x: x.transpose(0, 2, 1).reshape(2, 2, -1).transpose(1, 0, 2)),  # noqa: E501
        (None, (0, 0, 2, -1), None, lambda x: x.reshape(2, 3, 2, -1)),
    ],
)  # fmt: skip
def test_shuffle(dynamic, first, reshape, second, want):
    x = floats(2, 3, 4)

    def make(net, t):
        layer = net.add_shuffle(t)
        if first:
            layer.first_transpose = first
        if reshape:
            layer.reshape_dims = reshape
        if second:
            layer.second_transpose = second
            assert layer.second_transpose == (*second, *[0] * (8 - len(second)))
        return layer

    close(run_layer(make, x, dynamic=dynamic)[0], want(x))


def test_shuffle_by_a_shape_tensor():
    """Shape -> slice -> joined -> reshape: known while building as far as the input is."""
    x = floats(2, 3, 4)
    net = network()
    t = net.add_input("x", trt.float32, (-1, 3, 4))
    shape = net.add_shape(t).get_output(0)
    batch = net.add_slice(shape, (0,), (1,), (1,)).get_output(0)
    rest = net.add_constant((1,), np.array([12], np.int32)).get_output(0)
    joined = net.add_concatenation([batch, rest])
    joined.axis = 0
    layer = net.add_shuffle(t)
    layer.set_input(1, joined.get_output(0))
    assert layer.get_output(0).shape == (-1, 12)
    layer.get_output(0).name = "y"
    net.mark_output(layer.get_output(0))
    config = net.builder.create_builder_config()
    profile = net.builder.create_optimization_profile()
    profile.set_shape("x", (1, 3, 4), (2, 3, 4), (5, 3, 4))
    config.add_optimization_profile(profile)
    engine = engine_of(net, config)
    context = engine.create_execution_context()
    context.set_input_shape("x", (4, 3, 4))
    assert context.get_tensor_shape("y") == (4, 12)
    close(execute(engine, x=x)["y"], x.reshape(2, 12))


@pytest.mark.parametrize("mode", ["STRICT_BOUNDS", "WRAP", "CLAMP", "FILL", "REFLECT"])
@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize(
    ("start", "size", "stride"),
    [((0, 1, 0), (2, 2, 3), (1, 1, 2)), ((1, 2, 4), (2, 3, 3), (-1, -1, -2))],
)
def test_slice(mode, dynamic, start, size, stride):
    x = floats(2, 3, 5)
    if mode != "STRICT_BOUNDS":  # beyond the ends
        start, size = (start[0], start[1] - 2, start[2]), (size[0], size[1] + 2, size[2] + 3)

    def make(net, t):
        layer = net.add_slice(t, start, size, stride)
        layer.mode = trt.SampleMode[mode]
        if mode == "FILL":
            layer.set_input(4, net.add_constant((), np.array(9.0, np.float32)).get_output(0))
        return layer

    made = run_layer(make, x, dynamic=dynamic)[0]
    close(made, reference.slice_(x, start, size, stride, mode, 9.0))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ((7, 7), "768 elements of shape (1, 3, 16, 16) cannot be given the shape (7, 7)"),
        ((0, -1, 7), "cannot be given the shape (0, -1, 7)"),
        ((-1, -1), "one axis at most may be -1"),
        ((1, 3, 16, 16, 0), "keeps an axis that (1, 3, 16, 16) does not have"),
    ],
)
@pytest.mark.parametrize("as_input", [False, True])
def test_impossible_reshapes_are_refused(given, words, as_input):
    net = network()
    x = net.add_input("x", trt.float32, (1, 3, 16, 16))
    layer = net.add_shuffle(x)
    if as_input:
        target = net.add_constant((len(given),), np.array(given, np.int64))
        layer.set_input(1, target.get_output(0))
    else:
        layer.reshape_dims = given
    net.mark_output(layer.get_output(0))
    assert net.builder.build_serialized_network(net, net.builder.create_builder_config()) is None
    assert "[Shuffle]" in net.builder.logger.errors[-1]
    assert words in net.builder.logger.errors[-1]


@pytest.mark.parametrize(("start", "size"), [(2, 4), (2, 3), (-1, 2)])
def test_slice_out_of_bounds_is_refused(start, size):
    net = network()
    x = net.add_input("x", trt.float32, (4,))
    layer = net.add_slice(x, (start,), (size,), (1,))
    net.mark_output(layer.get_output(0))
    assert net.builder.build_serialized_network(net, net.builder.create_builder_config()) is None
    assert "leaves axis 0 of 4 elements" in net.builder.logger.errors[-1]


@pytest.mark.parametrize("axis", [None, 0, 2])
def test_concatenation(axis):
    a, b = floats(2, 3, 4), floats(2, 3, 4)

    def make(net, x, y):
        layer = net.add_concatenation([x, y])
        if axis is not None:
            layer.axis = axis
        return layer

    close(run_layer(make, a, b)[0], np.concatenate([a, b], 0 if axis is None else axis))


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_gather(axis):
    x, at = floats(3, 4, 5), np.array([[0, 2], [1, 1]], np.int32)
    close(run_layer(lambda n, t, i: n.add_gather(t, i, axis), x, at)[0], np.take(x, at, axis))


@pytest.mark.parametrize("lead", [2, 1])
@pytest.mark.parametrize("axis", [1, 2])
@pytest.mark.parametrize("tail", [(), (3,), (1, 2)])
def test_gather_shares_leading_axes(lead, axis, tail):
    x = floats(2, 4, 5)
    at = rng.integers(0, 4, (lead, *tail)).astype(np.int32)

    def make(net, t, i):
        layer = net.add_gather(t, i, axis)
        layer.num_elementwise_dims = 1
        return layer

    want = np.stack([np.take(x[b], at[min(b, lead - 1)], axis - 1) for b in range(2)])
    close(run_layer(make, x, at)[0], want)


def test_gather_elements_and_nd():
    x = floats(3, 4)
    at = rng.integers(0, 3, (2, 4)).astype(np.int32)

    def element(net, t, i):
        layer = net.add_gather_v2(t, i, trt.GatherMode.ELEMENT)
        layer.axis = 0
        return layer

    close(run_layer(element, x, at)[0], np.take_along_axis(x, at, 0))
    nd = np.array([[0, 1], [2, 3]], np.int32)
    made = run_layer(lambda n, t, i: n.add_gather_v2(t, i, trt.GatherMode.ND), x, nd)[0]
    close(made, x[[0, 2], [1, 3]])


def test_scatter():
    x, updates = floats(3, 4), floats(2, 4)
    at = np.array([[0, 1, 2, 0], [1, 2, 0, 1]], np.int32)
    want = x.copy()
    np.put_along_axis(want, at, updates, 0)
    make = lambda n, t, i, u: n.add_scatter(t, i, u, trt.ScatterMode.ELEMENT)  # noqa: E731
    close(run_layer(make, x, at, updates)[0], want)
    rows = np.array([[2], [0]], np.int32)
    want = x.copy()
    want[[2, 0]] = updates
    make = lambda n, t, i, u: n.add_scatter(t, i, u, trt.ScatterMode.ND)  # noqa: E731
    close(run_layer(make, x, rows, updates)[0], want)


ROUNDING = [("LINEAR", "FLOOR"), *product(["NEAREST"], ("FLOOR", "CEIL", "HALF_UP", "HALF_DOWN"))]


@pytest.mark.parametrize(
    ("how", "rounds", "size"),
    thinned(
        product(("ASYMMETRIC", "HALF_PIXEL", "ALIGN_CORNERS"), ROUNDING, ((7, 5), (3, 9), (1, 2))),
        2,
    ),
)
def test_resize(how, rounds, size):
    mode, rounding = rounds
    x = floats(1, 2, 4, 5)

    def make(net, t):
        layer = net.add_resize(t)
        layer.resize_mode = trt.InterpolationMode[mode]
        layer.coordinate_transformation = trt.ResizeCoordinateTransformation[how]
        layer.nearest_rounding = trt.ResizeRoundMode[rounding]
        layer.shape = (1, 2, *size)
        assert layer.get_output(0).shape == (1, 2, *size)
        return layer

    made = run_layer(make, x)[0]
    close(made, reference.resize(x, (1, 2, *size), mode, how, rounding))


def test_resize_by_scales_and_of_a_single_pixel():
    x = floats(1, 1, 3, 4)

    def twice(net, t):
        layer = net.add_resize(t)
        layer.scales = [1, 1, 2, 2]
        return layer

    close(run_layer(twice, x)[0], x.repeat(2, 2).repeat(2, 3))

    def one(net, t):
        layer = net.add_resize(t)
        layer.shape = (1, 1, 1, 1)
        layer.coordinate_transformation = trt.ResizeCoordinateTransformation.HALF_PIXEL
        layer.selector_for_single_pixel = trt.ResizeSelector.UPPER
        return layer

    assert run_layer(one, x)[0].item() == x[0, 0, 0, 0]


def test_grid_sample():
    x = floats(1, 1, 3, 3)
    grid = np.array([[[[-1, -1], [0, 0], [1, 1]]]], np.float32)

    def make(net, t, g):
        layer = net.add_grid_sample(t, g)
        layer.align_corners = True
        return layer

    assert run_layer(make, x, grid)[0].reshape(-1).tolist() == [x[0, 0, i, i] for i in range(3)]


def test_constant_identity_cast_shape_fill():
    x = np.array([1.7, -2.2], np.float32)
    assert run_layer(lambda n, t: n.add_cast(t, trt.int32), x)[0].tolist() == [1, -2]
    assert run_layer(lambda n, t: n.add_identity(t), x)[0].tolist() == x.tolist()

    def converted(net, t):
        layer = net.add_identity(t)
        layer.set_output_type(0, trt.int32)
        return layer

    assert run_layer(converted, x)[0].tolist() == [1, -2]
    made = run_layer(lambda n, t: n.add_shape(t), floats(2, 3), dynamic=True)[0]
    assert made.tolist() == [2, 3]

    def line(net, t):
        layer = net.add_fill((2, 3), trt.FillOperation.LINSPACE)
        layer.set_input(1, net.add_constant((), np.array(5, np.float32)).get_output(0))
        layer.set_input(2, net.add_constant((2,), np.array([10, 1], np.float32)).get_output(0))
        return net.add_elementwise(layer.get_output(0), t, trt.ElementWiseOperation.SUM)

    made = run_layer(line, np.zeros((1, 1), np.float32))[0]
    assert made.tolist() == [[5, 6, 7], [15, 16, 17]]


def test_random_fill_stays_in_its_range():
    def make(net, t):
        layer = net.add_fill((100, 10), trt.FillOperation.RANDOM_UNIFORM)
        layer.alpha, layer.beta = 2.0, 3.0
        return net.add_elementwise(layer.get_output(0), t, trt.ElementWiseOperation.SUM)

    made = run_layer(make, np.zeros((1, 1), np.float32))[0]
    assert 2 <= made.min() < 2.1
    assert 2.9 < made.max() <= 3


@pytest.mark.parametrize("kind", ["RANDOM_UNIFORM", "RANDOM_NORMAL"])
def test_random_numbers_between_inputs(kind):
    def make(net, low, high):
        layer = net.add_fill((100, 10), trt.FillOperation[kind])
        layer.set_input(1, low)
        layer.set_input(2, high)
        return layer

    (made,) = run_layer(make, np.float32(50), np.float32(60))
    if kind == "RANDOM_UNIFORM":
        assert 50 <= made.min() < 51 < 59 < made.max() <= 60
    else:  # mean and deviation
        assert 40 < made.mean() < 60
        assert 55 < made.std() < 65


def test_one_hot_non_zero_squeeze():
    at = np.array([0, 2], np.int32)

    def hot(net, t):
        values = net.add_constant((2,), np.array([0, 5], np.float32)).get_output(0)
        depth = net.add_constant((), np.array(3, np.int32)).get_output(0)
        return net.add_one_hot(t, values, depth, -1)

    assert run_layer(hot, at)[0].tolist() == [[5, 0, 0], [0, 0, 5]]
    x = np.array([[0, 3], [4, 0]], np.float32)
    made = run_layer(lambda n, t: n.add_non_zero(t), x)[0]
    assert made.tolist() == [[0, 1], [1, 0]]

    def squeeze(net, t):
        axes = net.add_constant((1,), np.array([0], np.int32)).get_output(0)
        return net.add_squeeze(net.add_unsqueeze(t, axes).get_output(0), axes)

    assert run_layer(squeeze, x)[0].tolist() == x.tolist()


def test_reverse_sequence():
    x = np.arange(8, dtype=np.float32).reshape(4, 2)
    made = run_layer(lambda n, t, k: n.add_reverse_sequence(t, k), x, np.array([2, 3], np.int32))[0]
    assert made.tolist() == [[2, 5], [0, 3], [4, 1], [6, 7]]


def test_assertion_that_is_known_to_fail():
    net = network()
    x = net.add_input("x", trt.float32, (2,))
    flag = net.add_constant((1,), np.array([False])).get_output(0)
    net.add_assertion(flag, "never")
    net.mark_output(net.add_identity(x).get_output(0))
    assert net.builder.build_serialized_network(net, net.builder.create_builder_config()) is None
    assert "never" in net.builder.logger.errors[-1]


@pytest.mark.parametrize("per_class", [False, True])
@pytest.mark.parametrize("centre", [False, True])
@pytest.mark.parametrize("limit", [5000, 17])
def test_nms(per_class, centre, limit):
    corners = rng.uniform(0, 1, (2, 15, 3, 2) if per_class else (2, 15, 2)).astype(np.float32)
    sizes = rng.uniform(0.1, 0.6, corners.shape).astype(np.float32)
    boxes = np.concatenate([corners, sizes if centre else corners + sizes], -1)
    scores = rng.permutation(90).reshape(2, 15, 3).astype(np.float32) / 90

    def make(net, b, s):
        most = net.add_constant((), np.array(4, np.int32)).get_output(0)
        layer = net.add_nms(b, s, most)
        layer.set_input(3, net.add_constant((), np.array(0.3, np.float32)).get_output(0))
        layer.set_input(4, net.add_constant((), np.array(0.2, np.float32)).get_output(0))
        layer.bounding_box_format = trt.BoundingBoxFormat[
            "CENTER_SIZES" if centre else "CORNER_PAIRS"
        ]
        layer.topk_box_limit = limit
        return layer

    found, count = run_layer(make, boxes, scores)
    want = reference.nms(boxes, scores, 4, 0.3, 0.2, centre, limit)
    assert found.tolist() == want.tolist()
    assert count.shape == ()
    assert count == len(want)


def test_a_slice_with_stride_0_repeats_an_element():
    x = floats(2, 3)
    (made,) = run_layer(lambda net, t: net.add_slice(t, (0, 1), (2, 4), (1, 0)), x)
    close(made, np.repeat(x[:, 1:2], 4, axis=1))


def test_a_constant_without_elements_keeps_its_type():
    net = network()
    empty = net.add_constant((0, 3), trt.Weights(trt.int32)).get_output(0)
    empty.name = "y"
    net.mark_output(empty)
    made = execute(engine_of(net))["y"]
    assert (made.shape, made.dtype) == ((0, 3), np.int32)


@pytest.mark.parametrize("kind", [np.int8, np.float32])
def test_zero_points_may_be_floats(kind):
    net = network()
    x = net.add_input("x", trt.float32, (3,))
    scale = net.add_constant((), np.array(0.5, np.float32)).get_output(0)
    zero = net.add_constant((), np.array(3, kind)).get_output(0)
    quantize = net.add_quantize(x, scale)
    quantize.set_input(2, zero)
    back = net.add_dequantize(quantize.get_output(0), scale)
    back.set_input(2, zero)
    back.get_output(0).name = "y"
    net.mark_output(back.get_output(0))
    close(execute(engine_of(net), x=np.float32([1, -3.2, 100]))["y"], [1, -3, 62])


def test_bf16_goes_in_and_out_as_its_bits():
    net = network()
    x = net.add_input("x", trt.float32, (3,))
    cast = net.add_cast(x, trt.bfloat16).get_output(0)
    cast.name = "y"
    net.mark_output(cast)
    there = engine_of(net)
    net = network()
    back = net.add_cast(net.add_input("y", trt.bfloat16, (3,)), trt.float32).get_output(0)
    back.name = "z"
    net.mark_output(back)
    values, result = np.float32([1, -2.5, 3.14159]), np.zeros(3, np.float32)
    bits = np.zeros(3, np.uint16)
    assert there.get_tensor_dtype("y") == trt.bfloat16
    assert there.create_execution_context().execute_v2([values.ctypes.data, bits.ctypes.data])
    assert bits.tolist() == [0x3F80, 0xC020, 0x4049]
    context = engine_of(net).create_execution_context()
    assert context.execute_v2([bits.ctypes.data, result.ctypes.data])
    assert result.tolist() == [1, -2.5, 3.140625]


def test_default_names_are_those_of_the_original():
    net = network()
    x = net.add_input("x", trt.float32, (4, 4))
    none = trt.MatrixOperation.NONE
    net.add_matrix_multiply(x, none, x, none)
    net.add_softmax(x)
    net.add_topk(x, trt.TopKOperation.MAX, 1, 2)
    assert [layer.name for layer in net] == [
        "(Unnamed Layer* 0) [Matrix Multiply]",
        "(Unnamed Layer* 1) [Softmax]",
        "(Unnamed Layer* 2) [TopK]",
    ]
