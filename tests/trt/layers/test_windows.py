"""Convolution, deconvolution, pooling, padding against their definitions."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import headrace.trt as trt
from tests.profiles import thinned
from tests.trt import reference
from tests.trt.harness import network, run_layer

rng = np.random.default_rng(7)
MODES = ["EXPLICIT_ROUND_DOWN", "EXPLICIT_ROUND_UP", "SAME_UPPER", "SAME_LOWER"]


def close(a, b, tolerance=1e-4):
    assert a.shape == b.shape
    np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize(
    ("kernel", "stride", "pre", "post", "dilation", "groups"),
    [
        ((3, 3), (1, 1), (0, 0), (0, 0), (1, 1), 1),
        ((3, 2), (2, 3), (1, 0), (0, 2), (1, 1), 2),
        ((2, 3), (3, 2), (2, 1), (1, 1), (2, 1), 1),
    ],
)
def test_convolution(mode, dynamic, kernel, stride, pre, post, dilation, groups):
    x = rng.standard_normal((2, 4, 8, 7)).astype(np.float32)
    w = rng.standard_normal((6, 4 // groups, *kernel)).astype(np.float32)
    bias = rng.standard_normal(6).astype(np.float32)

    def make(net, tensor):
        if dynamic:
            tensor.shape = (-1, 4, -1, -1)
        layer = net.add_convolution_nd(tensor, 6, kernel, w, bias)
        layer.stride_nd, layer.dilation_nd, layer.num_groups = stride, dilation, groups
        layer.pre_padding, layer.post_padding = pre, post
        layer.padding_mode = trt.PaddingMode[mode]
        return layer

    if dynamic and mode.startswith("SAME") and max(dilation) > 1:
        pytest.skip("automatic padding of a dilated kernel needs known axes")
    (y,) = run_layer(make, x, dynamic=dynamic)
    close(y, reference.convolution(x, w, bias, stride, pre, post, dilation, groups, mode))


def test_convolution_of_three_axes_and_weights_as_flat_trt_weights():
    x = rng.standard_normal((1, 2, 4, 5, 6)).astype(np.float32)
    w = rng.standard_normal((3, 2, 2, 3, 2)).astype(np.float32)
    flat = trt.Weights(np.ascontiguousarray(w.reshape(-1)))
    (y,) = run_layer(lambda net, t: net.add_convolution_nd(t, 3, (2, 3, 2), flat), x)
    three = ([1] * 3, [0] * 3, [0] * 3, [1] * 3, 1, "EXPLICIT_ROUND_DOWN")
    close(y, reference.convolution(x, w, None, *three))


@pytest.mark.parametrize(
    ("kernel", "stride", "pre", "post", "dilation", "groups"),
    [
        ((2, 2), (2, 2), (0, 0), (0, 0), (1, 1), 1),
        ((3, 4), (2, 3), (1, 0), (0, 2), (1, 1), 2),
        ((3, 2), (1, 2), (1, 1), (2, 0), (2, 1), 1),
    ],
)
def test_deconvolution(kernel, stride, pre, post, dilation, groups):
    x = rng.standard_normal((2, 4, 3, 4)).astype(np.float32)
    w = rng.standard_normal((4, 6 // groups, *kernel)).astype(np.float32)

    def make(net, tensor):
        layer = net.add_deconvolution_nd(tensor, 6, kernel, w)
        layer.stride_nd, layer.dilation_nd, layer.num_groups = stride, dilation, groups
        layer.pre_padding, layer.post_padding = pre, post
        return layer

    (y,) = run_layer(make, x)
    close(y, reference.deconvolution(x, w, stride, pre, post, dilation, groups))


KINDS = ("MAX", "AVERAGE", "MAX_AVERAGE_BLEND")
WINDOWS = (
    ((2, 2), (2, 2), (0, 0), (0, 0)),
    ((3, 2), (2, 1), (1, 0), (1, 1)),
    ((3, 3), (2, 3), (2, 1), (0, 2)),
)


@pytest.mark.parametrize(
    ("kind", "mode", "excludes", "windows"),
    thinned(product(KINDS, MODES, (True, False), WINDOWS), 5),
)
def test_pooling(kind, mode, excludes, windows):
    window, stride, pre, post = windows
    x = rng.standard_normal((2, 3, 7, 9)).astype(np.float32)

    def make(net, tensor):
        layer = net.add_pooling_nd(tensor, trt.PoolingType[kind], window)
        layer.stride_nd, layer.padding_mode = stride, trt.PaddingMode[mode]
        layer.pre_padding, layer.post_padding = pre, post
        layer.blend_factor, layer.average_count_excludes_padding = 0.25, excludes
        return layer

    (y,) = run_layer(make, x)
    args = (kind, window, stride, pre, post, mode, excludes, 0.25)
    close(y, reference.pooling(x, *args))


def test_pooling_pads_as_much_as_the_window_is_wide():
    x = rng.standard_normal((1, 1, 5, 5)).astype(np.float32)

    def make(net, tensor):
        layer = net.add_pooling_nd(tensor, trt.PoolingType.MAX, (2, 2))
        layer.stride_nd, layer.post_padding = (2, 2), (1, 2)
        return layer

    (y,) = run_layer(make, x)
    assert y.shape == (1, 1, 3, 3)
    assert y[0, 0, 0, 0] == x[0, 0, :2, :2].max()


@pytest.mark.parametrize(("pre", "post"), [((1, 2), (3, 0)), ((-1, 1), (0, -2))])
def test_padding(pre, post):
    x = rng.standard_normal((2, 3, 4, 5)).astype(np.float32)
    (y,) = run_layer(lambda net, t: net.add_padding_nd(t, pre, post), x)
    want = x[:, :, max(0, -pre[0]) : 4 - max(0, -post[0]), max(0, -pre[1]) : 5 - max(0, -post[1])]
    grow = [(0, 0), (0, 0), *[(max(0, a), max(0, b)) for a, b in zip(pre, post, strict=True)]]
    close(y, np.pad(want, grow))


def test_fully_connected():
    x = rng.standard_normal((2, 3, 2, 4)).astype(np.float32)
    w = rng.standard_normal((5, 24)).astype(np.float32)
    b = rng.standard_normal(5).astype(np.float32)
    (y,) = run_layer(lambda net, t: net.add_fully_connected(t, 5, w, b), x)
    close(y, (x.reshape(2, 24) @ w.T + b).reshape(2, 5, 1, 1))


def test_older_names_of_two_axes():
    x = rng.standard_normal((1, 1, 6, 6)).astype(np.float32)
    w = np.ones((1, 1, 3, 3), np.float32)

    def make(net, tensor):
        layer = net.add_convolution(tensor, 1, trt.DimsHW(3, 3), w)
        layer.stride, layer.padding = (2, 2), trt.DimsHW(1, 1)
        assert layer.stride_nd == (2, 2)
        assert layer.pre_padding == layer.post_padding == (1, 1)
        assert layer.kernel_size.h == 3
        return net.add_pooling(layer.get_output(0), trt.PoolingType.MAX, (3, 3))

    (y,) = run_layer(make, x)
    assert y.shape == (1, 1, 1, 1)


@pytest.mark.parametrize("kind", ["convolution", "deconvolution", "pooling"])
def test_an_input_without_its_batch_is_told_how_to_go_on(kind):
    net = network()
    x = net.add_input("x", trt.float32, (3, 8, 8))
    w = np.ones((3, 3, 3, 3), np.float32)
    if kind == "pooling":
        layer = net.add_pooling_nd(x, trt.PoolingType.MAX, (2, 2))
    else:
        layer = getattr(net, f"add_{kind}_nd")(x, 3, (3, 3), w)
    net.mark_output(layer.get_output(0))
    assert net.builder.build_serialized_network(net, net.builder.create_builder_config()) is None
    assert "-D NV_TENSORRT_MAJOR=8" in net.builder.logger.errors[-1]
