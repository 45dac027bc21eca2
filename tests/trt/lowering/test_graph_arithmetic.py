"""Element by element, sums, matrix products."""

from __future__ import annotations

import math

import numpy as np
import pytest

import headrace.trt as trt
from tests.trt.harness import run_layer

rng = np.random.default_rng(11)
erf = np.vectorize(math.erf)
A, B = 0.3, 0.7
ACTIVATIONS = {
    "RELU": lambda x: np.maximum(x, 0),
    "SIGMOID": lambda x: 1 / (1 + np.exp(-x)),
    "TANH": np.tanh,
    "LEAKY_RELU": lambda x: np.where(x < 0, A * x, x),
    "ELU": lambda x: np.where(x >= 0, x, A * (np.exp(x) - 1)),
    "SELU": lambda x: np.where(x > 0, B * x, B * (A * np.exp(x) - A)),
    "SOFTSIGN": lambda x: x / (1 + np.abs(x)),
    "SOFTPLUS": lambda x: A * np.log(1 + np.exp(B * x)),
    "CLIP": lambda x: np.clip(x, A, B),
    "HARD_SIGMOID": lambda x: np.clip(A * x + B, 0, 1),
    "SCALED_TANH": lambda x: A * np.tanh(B * x),
    "THRESHOLDED_RELU": lambda x: np.where(x > np.float32(A), x, 0),
    "GELU_ERF": lambda x: 0.5 * x * (1 + erf(x / math.sqrt(2))),
    "GELU_TANH": lambda x: 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
}


def close(a, b):
    assert a.shape == np.shape(b)
    np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def test_every_activation_is_here():
    assert set(ACTIVATIONS) == set(trt.ActivationType.__members__)


@pytest.mark.parametrize("kind", ACTIVATIONS)
def test_activation(kind):
    x = np.array([-30, -2.5, -0.3, 0, 0.3, 0.5, 0.7, 4, 30], np.float32)

    def make(net, t):
        layer = net.add_activation(t, trt.ActivationType[kind])
        layer.alpha, layer.beta = A, B
        return layer

    close(run_layer(make, x)[0], ACTIVATIONS[kind](x.astype(np.float64)))


UNARY = {
    "EXP": np.exp, "LOG": np.log, "SQRT": np.sqrt, "RECIP": np.reciprocal, "ABS": np.abs,
    "NEG": np.negative, "SIN": np.sin, "COS": np.cos, "TAN": np.tan, "SINH": np.sinh,
    "COSH": np.cosh, "ASIN": np.arcsin, "ACOS": np.arccos, "ATAN": np.arctan,
    "ASINH": np.arcsinh, "ACOSH": lambda x: np.arccosh(x + 1), "ATANH": np.arctanh,
    "CEIL": np.ceil, "FLOOR": np.floor, "ERF": erf, "SIGN": np.sign, "ROUND": np.rint,
}  # fmt: skip


@pytest.mark.parametrize("op", UNARY)
def test_unary(op):
    x = np.array([0.1, 0.5, 0.7, 0.9], np.float32)
    x = x + 1 if op == "ACOSH" else x
    want = UNARY[op]((x - 1 if op == "ACOSH" else x).astype(np.float64))
    close(run_layer(lambda net, t: net.add_unary(t, trt.UnaryOperation[op]), x)[0], want)


def test_round_goes_to_even_and_tests_are_bool():
    x = np.array([0.5, 1.5, -2.5, np.inf, np.nan], np.float32)
    rounded = run_layer(lambda net, t: net.add_unary(t, trt.UnaryOperation.ROUND), x)[0]
    assert rounded[:3].tolist() == [0, 2, -2]
    isinf = run_layer(lambda net, t: net.add_unary(t, trt.UnaryOperation.ISINF), x)[0]
    assert isinf.tolist() == [False, False, False, True, False]
    isnan = run_layer(lambda net, t: net.add_unary(t, trt.UnaryOperation.ISNAN), x)[0]
    assert isnan.tolist() == [False, False, False, False, True]
    flags = np.array([True, False])
    no = run_layer(lambda net, t: net.add_unary(t, trt.UnaryOperation.NOT), flags)[0]
    assert no.tolist() == [False, True]


BINARY = {
    "SUM": np.add, "PROD": np.multiply, "MAX": np.maximum, "MIN": np.minimum, "SUB": np.subtract,
    "DIV": np.divide, "POW": np.power, "FLOOR_DIV": np.floor_divide, "EQUAL": np.equal,
    "GREATER": np.greater, "LESS": np.less,
}  # fmt: skip


@pytest.mark.parametrize("op", BINARY)
@pytest.mark.parametrize("dynamic", [False, True])
def test_elementwise_broadcasts_axes_of_one(op, dynamic):
    a = rng.uniform(0.5, 3, (2, 1, 4)).astype(np.float32)
    b = rng.uniform(0.5, 3, (1, 3, 4)).astype(np.float32)
    b[0, 0] = a[0, 0]

    def make(net, x, y):
        return net.add_elementwise(x, y, trt.ElementWiseOperation[op])

    made = run_layer(make, a, b, dynamic=dynamic)[0]
    close(made, BINARY[op](a, b))


@pytest.mark.parametrize("op", ["AND", "OR", "XOR"])
def test_elementwise_logic(op):
    a, b = np.array([True, True, False, False]), np.array([True, False, True, False])
    made = run_layer(lambda n, x, y: n.add_elementwise(x, y, trt.ElementWiseOperation[op]), a, b)[0]
    assert made.tolist() == getattr(np, f"logical_{op.lower()}")(a, b).tolist()


def test_integer_division_rounds_down_or_cuts():
    a, b = np.array([7, -7, 7, -7], np.int32), np.array([2, 2, -2, -2], np.int32)
    ops = trt.ElementWiseOperation
    floor = run_layer(lambda n, x, y: n.add_elementwise(x, y, ops.FLOOR_DIV), a, b)[0]
    assert floor.tolist() == [3, -4, -4, 3]
    cut = run_layer(lambda n, x, y: n.add_elementwise(x, y, ops.DIV), a, b)[0]
    assert cut.tolist() == [3, -3, -3, 3]


@pytest.mark.parametrize("mode", ["UNIFORM", "CHANNEL", "ELEMENTWISE"])
@pytest.mark.parametrize("parts", [("shift", "scale", "power"), ("scale",), ("shift", "power")])
def test_scale(mode, parts):
    x = rng.uniform(0.5, 2, (2, 3, 2, 2)).astype(np.float32)
    size = {"UNIFORM": (1,), "CHANNEL": (3,), "ELEMENTWISE": (3, 2, 2)}[mode]
    given = {p: rng.uniform(0.5, 2, size).astype(np.float32) for p in parts}

    def make(net, t):
        args = [given.get(p, trt.Weights(trt.float32)) for p in ("shift", "scale", "power")]
        return net.add_scale(t, trt.ScaleMode[mode], *args)

    shaped = {p: a.reshape(3, 1, 1) if mode == "CHANNEL" else a for p, a in given.items()}
    want = x * shaped.get("scale", 1) + shaped.get("shift", 0)
    close(run_layer(make, x)[0], want ** shaped.get("power", np.float32(1)))


def test_lrn():
    x = rng.standard_normal((1, 7, 2, 2)).astype(np.float32)
    want = np.empty_like(x)
    for c in range(7):
        total = (x[:, max(0, c - 1) : c + 2] ** 2).sum(1)
        want[:, c] = x[:, c] / (2 + 0.3 / 3 * total) ** 0.75
    close(run_layer(lambda n, t: n.add_lrn(t, 3, 0.3, 0.75, 2), x)[0], want)


def test_parametric_relu_and_select():
    x = rng.standard_normal((2, 3, 4)).astype(np.float32)
    slopes = rng.standard_normal((1, 3, 1)).astype(np.float32)
    made = run_layer(lambda n, a, b: n.add_parametric_relu(a, b), x, slopes)[0]
    close(made, np.where(x < 0, x * slopes, x))
    flags = rng.random((1, 3, 4)) > 0.5
    made = run_layer(lambda n, c, a, b: n.add_select(c, a, b), flags, x, slopes)[0]
    close(made, np.where(flags, x, slopes))


@pytest.mark.parametrize("op", ["SUM", "PROD", "MAX", "MIN", "AVG"])
@pytest.mark.parametrize(("mask", "axes"), [(0b10, (1,)), (0b101, (0, 2)), (0b111, (0, 1, 2))])
@pytest.mark.parametrize("keep", [True, False])
def test_reduce(op, mask, axes, keep):
    x = rng.standard_normal((2, 3, 5)).astype(np.float32)
    function = {"SUM": np.sum, "PROD": np.prod, "MAX": np.max, "MIN": np.min, "AVG": np.mean}[op]
    made = run_layer(lambda n, t: n.add_reduce(t, trt.ReduceOperation[op], mask, keep), x)[0]
    close(made, function(x, axis=axes, keepdims=keep))


def test_softmax_defaults_to_the_third_axis_from_behind():
    def soft(x, axis):
        e = np.exp(x - x.max(axis, keepdims=True))
        return e / e.sum(axis, keepdims=True)

    x = rng.standard_normal((2, 3, 4, 5)).astype(np.float32)
    close(run_layer(lambda n, t: n.add_softmax(t), x)[0], soft(x, 1))
    flat = rng.standard_normal((4, 5)).astype(np.float32)
    close(run_layer(lambda n, t: n.add_softmax(t), flat)[0], soft(flat, 0))

    def last(net, t):
        layer = net.add_softmax(t)
        layer.axes = 1 << 3
        return layer

    close(run_layer(last, x)[0], soft(x, 3))


@pytest.mark.parametrize(("op", "sign"), [("MAX", -1), ("MIN", 1)])
@pytest.mark.parametrize("axis", [0, 1])
def test_topk(op, sign, axis):
    x = rng.permutation(35).reshape(5, 7).astype(np.float32)
    make = lambda n, t: n.add_topk(t, trt.TopKOperation[op], 3, 1 << axis)  # noqa: E731
    values, places = run_layer(make, x)
    order = np.argsort(sign * x, axis, kind="stable")
    order = np.take(order, range(3), axis)
    assert places.dtype == np.int32
    assert (places == order).all()
    close(values, np.take_along_axis(x, order, axis))


@pytest.mark.parametrize(
    ("ops", "shapes"),
    [
        (("NONE", "NONE"), ((2, 3, 4), (1, 4, 5))),
        (("TRANSPOSE", "NONE"), ((2, 4, 3), (2, 4, 5))),
        (("NONE", "TRANSPOSE"), ((3, 4), (5, 4))),
        (("VECTOR", "NONE"), ((2, 4), (2, 4, 5))),
        (("NONE", "VECTOR"), ((2, 3, 4), (1, 4))),
        (("VECTOR", "VECTOR"), ((4,), (4,))),
    ],
)
def test_matrix_multiply(ops, shapes):
    a, b = (rng.standard_normal(s).astype(np.float32) for s in shapes)
    first, second = (trt.MatrixOperation[o] for o in ops)
    made = run_layer(lambda n, x, y: n.add_matrix_multiply(x, first, y, second), a, b)[0]
    left = (
        a[..., None, :]
        if ops[0] == "VECTOR"
        else a.swapaxes(-1, -2)
        if ops[0] == "TRANSPOSE"
        else a
    )
    right = (
        b[..., :, None]
        if ops[1] == "VECTOR"
        else b.swapaxes(-1, -2)
        if ops[1] == "TRANSPOSE"
        else b
    )
    want = left @ right
    want = want[..., 0] if ops[1] == "VECTOR" else want
    want = (want[..., 0] if ops[1] == "VECTOR" else want[..., 0, :]) if ops[0] == "VECTOR" else want
    close(made, want)


def test_einsum():
    a = rng.standard_normal((2, 3, 4)).astype(np.float32)
    b = rng.standard_normal((4, 5)).astype(np.float32)
    made = run_layer(lambda n, x, y: n.add_einsum([x, y], "bij,jk->bki"), a, b)[0]
    close(made, np.einsum("bij,jk->bki", a, b))


@pytest.mark.parametrize("axis", [-1, 1])
def test_quantize_and_back(axis):
    x = np.array([[[0.5, 1.5], [-3.4, 200.0]]], np.float32)
    scale = np.array([1.0] if axis < 0 else [1.0, 2.0], np.float32)

    def make(net, t):
        s = net.add_constant(() if axis < 0 else (2,), scale).get_output(0)
        q = net.add_quantize(t, s)
        q.axis = axis
        d = net.add_dequantize(q.get_output(0), s)
        d.axis = axis
        return d

    by = scale.reshape(1, -1, 1)
    close(run_layer(make, x)[0], np.clip(np.rint(x / by), -128, 127) * by)


@pytest.mark.parametrize("groups", [1, 2])
def test_normalization(groups):
    x = rng.standard_normal((2, 4, 3, 3)).astype(np.float32)
    scale, bias = (rng.standard_normal((1, 4, 1, 1)).astype(np.float32) for _ in range(2))

    def make(net, t, s, b):
        add = net.add_normalization if groups == 1 else net.add_normalization_v2
        layer = add(t, s, b, 0b1100)
        layer.num_groups, layer.epsilon = groups, 1e-3
        return layer

    if groups == 1:
        mean, var = x.mean((2, 3), keepdims=True), x.var((2, 3), keepdims=True)
    else:
        g = x.reshape(2, 2, 2, 3, 3)
        mean = np.repeat(g.mean((2, 3, 4)), 2, 1).reshape(2, 4, 1, 1)
        var = np.repeat(g.var((2, 3, 4)), 2, 1).reshape(2, 4, 1, 1)
    close(run_layer(make, x, scale, bias)[0], (x - mean) / np.sqrt(var + 1e-3) * scale + bias)


def test_cumulative_and_ragged_softmax():
    x = rng.standard_normal((2, 5)).astype(np.float32)

    def sums(net, t):
        axis = net.add_constant((), np.array(1, np.int32)).get_output(0)
        return net.add_cumulative(t, axis, trt.CumulativeOperation.SUM, False, True)

    close(run_layer(sums, x)[0], np.cumsum(x[:, ::-1], 1)[:, ::-1])
    bounds = np.array([[2], [5]], np.int32)
    made = run_layer(lambda n, t, b: n.add_ragged_softmax(t, b), x, bounds)[0]
    e = np.exp(x) * (np.arange(5) < bounds)
    close(made, e / e.sum(1, keepdims=True))
