"""Each layer type against a slow reference, with a batch larger than the text's."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from headrace.errors import ModelError
from tests.network.caffe import slow
from tests.network.caffe.models import layer, run, run_layer, text_of
from tests.profiles import examples

X = np.random.default_rng(7).normal(size=(2, 4, 6, 7)).astype(np.float32)
RNG = np.random.default_rng(8)


def weights(*shape):
    return RNG.normal(size=shape).astype(np.float32)


def near(found, wanted, tolerance=1e-4):
    assert found.shape == np.shape(wanted)
    np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(
    ("text", "shape", "stride", "pad", "dilation", "group"),
    [
        ("kernel_size: 3", (6, 4, 3, 3), (1, 1), (0, 0), (1, 1), 1),
        ("kernel_size: 3 stride: 2 pad: 1", (6, 4, 3, 3), (2, 2), (1, 1), (1, 1), 1),
        ("kernel_h: 2 kernel_w: 3 pad_h: 1 stride_w: 2", (6, 4, 2, 3), (1, 2), (1, 0), (1, 1), 1),
        ("kernel_size: [3, 2] pad: [2, 0]", (6, 4, 3, 2), (1, 1), (2, 0), (1, 1), 1),
        ("kernel_size: 2 dilation: 2 pad: 1", (6, 4, 2, 2), (1, 1), (1, 1), (2, 2), 1),
        ("kernel_size: 3 group: 2", (6, 2, 3, 3), (1, 1), (0, 0), (1, 1), 2),
    ],
)
def test_convolution(text, shape, stride, pad, dilation, group):
    w, b = weights(*shape), weights(shape[0])
    found = run_layer("Convolution", f"convolution_param {{ num_output: 6 {text} }}", X, [w, b])
    near(found, slow.conv(X, w, b, stride, pad, dilation, group))


def test_convolution_without_bias():
    w = weights(2, 4, 1, 1)
    text = "convolution_param { num_output: 2 kernel_size: 1 bias_term: false }"
    near(run_layer("Convolution", text, X, [w]), np.einsum("oc,nchw->nohw", w[:, :, 0, 0], X))


def test_depthwise_convolution():
    w, b = weights(4, 1, 3, 3), weights(4)
    text = "convolution_param { kernel_size: 3 pad: 1 }"
    found = run_layer("ConvolutionDepthwise", text, X, [w, b])
    near(found, slow.conv(X, w, b, (1, 1), (1, 1), (1, 1), 4))


@pytest.mark.parametrize(("group", "stride", "pad"), [(1, 2, 1), (2, 1, 0), (4, 2, 1)])
def test_deconvolution(group, stride, pad):
    w, b = weights(4, 8 // group, 4, 4), weights(8)
    text = f"num_output: 8 kernel_size: 4 stride: {stride} pad: {pad} group: {group}"
    found = run_layer("Deconvolution", f"convolution_param {{ {text} }}", X, [w, b])
    near(found, slow.deconv(X, w, b, stride, pad, group))


@pytest.mark.parametrize("transpose", [False, True])
def test_inner_product(transpose):
    w, b = weights(5, 4 * 6 * 7), weights(5)
    text = f"inner_product_param {{ num_output: 5 transpose: {str(transpose).lower()} }}"
    found = run_layer("InnerProduct", text, X, [w.T if transpose else w, b])
    near(found, X.reshape(2, -1) @ w.T + b)


def test_inner_product_on_the_last_axis():
    w = weights(3, 7)
    text = "inner_product_param { num_output: 3 axis: -1 bias_term: false }"
    near(run_layer("InnerProduct", text, X, [w]), X @ w.T)


sides = st.integers(1, 9)


@settings(max_examples=examples(60))
@given(
    size=st.tuples(sides, sides),
    kernel=st.tuples(st.integers(1, 4), st.integers(1, 4)),
    stride=st.tuples(st.integers(1, 4), st.integers(1, 4)),
    pad=st.tuples(st.integers(0, 3), st.integers(0, 3)),
    method=st.sampled_from(["MAX", "AVE"]),
)
@example((6, 6), (3, 3), (2, 2), (0, 0), "AVE")
@example((5, 5), (3, 3), (2, 2), (1, 1), "AVE")
@example((4, 4), (2, 2), (3, 3), (1, 1), "MAX")
def test_pooling_sizes_and_sums(size, kernel, stride, pad, method):
    text = (
        f"pooling_param {{ pool: {method} kernel_h: {kernel[0]} kernel_w: {kernel[1]} "
        f"stride_h: {stride[0]} stride_w: {stride[1]} pad_h: {pad[0]} pad_w: {pad[1]} }}"
    )
    x = np.random.default_rng(sum(size)).normal(size=(2, 2, *size)).astype(np.float32) - 3
    fits = all(p < k <= n + 2 * p for n, k, p in zip(size, kernel, pad, strict=True))
    outside = any(
        not (pad[0] or pad[1]) and -(-(n - k) // s) * s >= n
        for n, k, s in zip(size, kernel, stride, strict=True)
    )
    if not fits or outside:  # without padding Caffe clips no window, and finds no maximum in it
        with pytest.raises(ModelError, match="kernel that fits" if not outside else "outside|fits"):
            run_layer("Pooling", text, x)
        return
    near(run_layer("Pooling", text, x), slow.pool(x, kernel, stride, pad, method))


@pytest.mark.parametrize("method", ["MAX", "AVE"])
def test_global_pooling(method):
    found = run_layer("Pooling", f"pooling_param {{ pool: {method} global_pooling: true }}", X)
    wanted = X.max(axis=(2, 3)) if method == "MAX" else X.mean(axis=(2, 3))
    near(found[:, :, 0, 0], wanted)


def test_pooling_can_round_down():
    text = "pooling_param { kernel_size: 3 stride: 2 round_mode: FLOOR }"
    assert run_layer("Pooling", text, X).shape == (2, 4, 2, 3)
    text = "pooling_param { kernel_size: 3 stride: 2 ceil_mode: true }"
    assert run_layer("Pooling", text, X).shape == (2, 4, 3, 3)


POSITIVE = np.abs(X) + 0.1
ELEMENTWISE = [
    ("ReLU", "", X, np.maximum(X, 0)),
    ("ReLU", "relu_param { negative_slope: 0.1 }", X, np.where(X > 0, X, 0.1 * X)),
    ("ReLU6", "", X * 5, np.clip(X * 5, 0, 6)),
    ("Sigmoid", "", X, 1 / (1 + np.exp(-X))),
    ("TanH", "", X, np.tanh(X)),
    ("ELU", "elu_param { alpha: 0.5 }", X, np.where(X > 0, X, 0.5 * np.expm1(X))),
    ("AbsVal", "", X, np.abs(X)),
    ("BNLL", "", X, np.log1p(np.exp(X))),
    ("Power", "power_param { power: 2 scale: 0.5 shift: 1 }", X, (1 + 0.5 * X) ** 2),
    ("Power", "power_param { power: 0.5 }", POSITIVE, POSITIVE**0.5),
    ("Power", "power_param { scale: 3 }", X, 3 * X),
    ("Exp", "exp_param { scale: 0.5 shift: 0.2 }", X, np.exp(0.2 + 0.5 * X)),
    ("Exp", "exp_param { base: 2 }", X, 2.0**X),
    ("Log", "", POSITIVE, np.log(POSITIVE)),
    ("Log", "log_param { base: 10 shift: 1 scale: 2 }", POSITIVE, np.log10(1 + 2 * POSITIVE)),
    ("Threshold", "threshold_param { threshold: 0.5 }", X, (X > 0.5).astype(float)),
    ("Clip", "clip_param { min: -0.5 max: 1 }", X, np.clip(X, -0.5, 1)),
    ("Swish", "swish_param { beta: 2 }", X, X / (1 + np.exp(-2 * X))),
    ("Mish", "", X, X * np.tanh(np.log1p(np.exp(X)))),
    ("Softmax", "", X, slow.softmax(X, 1)),
    ("Softmax", "softmax_param { axis: -1 }", X, slow.softmax(X, 3)),
    ("Dropout", "dropout_param { dropout_ratio: 0.4 }", X, X),
    ("Dropout", "dropout_param { dropout_ratio: 0.4 scale_train: false }", X, 0.6 * X),
    ("LRN", "lrn_param { local_size: 3 alpha: 0.7 beta: 0.6 k: 2 }", X,
     slow.lrn_across(X, 3, 0.7, 0.6, 2)),
    ("LRN", "lrn_param { local_size: 3 alpha: 0.7 beta: 0.6 norm_region: WITHIN_CHANNEL }", X,
     slow.lrn_within(X, 3, 0.7, 0.6)),
    ("MVN", "", X, (X - X.mean((2, 3), keepdims=True)) / X.std((2, 3), keepdims=True)),
    ("MVN", "mvn_param { across_channels: true normalize_variance: false }", X,
     X - X.mean((1, 2, 3), keepdims=True)),
    ("Permute", "permute_param { order: 0 order: 2 }", X, X.transpose(0, 2, 1, 3)),
    ("Flatten", "", X, X.reshape(2, -1)),
    ("Flatten", "flatten_param { axis: 2 end_axis: 3 }", X, X.reshape(2, 4, 42)),
    ("Reshape", "reshape_param { shape { dim: 0 dim: -1 dim: 3 } }", X, X.reshape(2, -1, 3)),
    ("Reshape", "reshape_param { shape { dim: 1 dim: 42 dim: 4 } }", X, X.reshape(2, 42, 4)),
    ("Reshape", "reshape_param { shape { dim: 2 dim: 21 } axis: 2 }", X, X.reshape(2, 4, 2, 21)),
    ("Reshape", "reshape_param { shape { dim: -1 } axis: 1 num_axes: 2 }", X, X.reshape(2, 24, 7)),
    ("Reshape", "reshape_param { shape { dim: 1 } axis: -1 num_axes: 0 }", X, X[..., None]),
    ("Tile", "tile_param { axis: 2 tiles: 3 }", X, np.tile(X, (1, 1, 3, 1))),
    ("ShuffleChannel", "shuffle_channel_param { group: 2 }", X, X[:, [0, 2, 1, 3]]),
    ("Reduction", "reduction_param { axis: 1 }", X, X.sum((1, 2, 3))[:, None]),
    ("Reduction", "reduction_param { axis: -1 operation: MEAN coeff: 2 }", X, 2 * X.mean(3)),
    ("Reduction", "reduction_param { axis: 2 operation: ASUM }", X, np.abs(X).sum((2, 3))),
    ("Reduction", "reduction_param { axis: 2 operation: SUMSQ }", X, (X**2).sum((2, 3))),
    ("ArgMax", "argmax_param { axis: 1 }", X, X.argmax(1)[:, None]),
    ("ArgMax", "argmax_param { axis: 2 out_max_val: true }", X, X.max(2, keepdims=True)),
    ("ArgMax", "", X, X.reshape(2, 1, -1).argmax(2)[..., None]),
    ("Interp", "interp_param { height: 11 width: 9 }", X, slow.interp(X, 11, 9)),
    ("Interp", "interp_param { zoom_factor: 2 }", X, slow.interp(X, 11, 13)),
    ("Interp", "interp_param { shrink_factor: 2 pad_end: -1 }", X,
     slow.interp(X[:, :, :-1, :-1], 3, 3)),
    ("Interp", "interp_param { height: 7 width: 9 }", X, slow.interp(X, 7, 9)),
    ("Interp", "interp_param { height: 5 width: 4 }", X, slow.interp(X, 5, 4)),
    ("Upsample", "upsample_param { scale: 3 }", X, X.repeat(3, 2).repeat(3, 3)),
]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "text", "x", "wanted"), ELEMENTWISE, ids=lambda v: v if isinstance(v, str) else ""
)
def test_layers_without_weights(kind, text, x, wanted):
    near(run_layer(kind, text, x), wanted)


def test_argmax_gives_values_below_positions():
    found = run_layer("ArgMax", "argmax_param { out_max_val: true top_k: 2 }", X)
    flat = X.reshape(2, -1)
    order = np.argsort(-flat, axis=1)[:, :2]
    near(found, np.stack([order, np.take_along_axis(flat, order, 1)], axis=1))


def test_batch_norm_divides_by_the_stored_factor():
    mean, variance = weights(4), np.abs(weights(4)) + 0.1
    blobs = [mean * 3, variance * 3, np.array([3.0])]
    found = run_layer("BatchNorm", "batch_norm_param { eps: 0.01 }", X, blobs)
    c = (1, 4, 1, 1)
    near(found, (X - mean.reshape(c)) / np.sqrt(variance.reshape(c) + 0.01))


def test_batch_norm_with_scale_and_shift_inside():
    mean, variance, a, b = weights(4), np.abs(weights(4)) + 0.1, weights(4), weights(4)
    found = run_layer("BatchNorm", "", X, [mean, variance, np.array([1.0]), a, b])
    c = (1, 4, 1, 1)
    normal = (X - mean.reshape(c)) / np.sqrt(variance.reshape(c) + 1e-5)
    near(found, normal * a.reshape(c) + b.reshape(c))


def test_batch_norm_of_nothing_seen():
    found = run_layer("BatchNorm", "", X, [weights(4), weights(4), np.array([0.0])])
    near(found, X / np.sqrt(1e-5), 1e-3)


def test_scale():
    a, b = weights(4), weights(4)
    text = "scale_param { bias_term: true }"
    near(run_layer("Scale", text, X, [a, b]), X * a[:, None, None] + b[:, None, None])
    rows = weights(6, 7)
    text = "scale_param { axis: 2 num_axes: -1 }"
    near(run_layer("Scale", text, X, [rows]), X * rows)
    near(run_layer("Bias", "", X, [b]), X + b[:, None, None])


def test_scale_by_another_blob():
    text = layer("Pooling", "pooling_param { pool: AVE global_pooling: true }", top="mean")
    text += layer("Flatten", bottom="mean", top="flat")
    text += layer("Scale", "scale_param { axis: 0 }", bottom="data flat")
    (found,) = run(text_of(text, (1, 4, 6, 7)), X).values()
    near(found, X * X.mean((2, 3), keepdims=True))


def test_axpy():
    text = layer("Pooling", "pooling_param { pool: AVE global_pooling: true }", top="mean")
    text += layer("Axpy", bottom="mean data data")
    (found,) = run(text_of(text, (1, 4, 6, 7)), X).values()
    near(found, X * X.mean((2, 3), keepdims=True) + X)


def test_prelu():
    slope = weights(4)
    near(run_layer("PReLU", "", X, [slope]), np.where(X > 0, X, X * slope[:, None, None]))
    text = "prelu_param { channel_shared: true }"
    near(run_layer("PReLU", text, X, [slope[:1]]), np.where(X > 0, X, X * slope[0]))


@pytest.mark.parametrize("across", [False, True])
@pytest.mark.parametrize("shared", [False, True])
def test_normalize(across, shared):
    scale = weights(1 if shared else 4)
    text = f"norm_param {{ across_spatial: {across} channel_shared: {shared} }}".lower()
    total = (X**2).sum((1, 2, 3) if across else 1, keepdims=True)
    near(run_layer("Normalize", text, X, [scale]), X / np.sqrt(total) * scale.reshape(1, -1, 1, 1))


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("", 3 * X),
        ("operation: SUM coeff: 1 coeff: -0.5", X - 0.5 * 2 * X),
        ("operation: PROD", X * 2 * X),
        ("operation: MAX", np.maximum(X, 2 * X)),
        ("operation: 2", np.maximum(X, 2 * X)),
    ],
)
def test_eltwise(text, wanted):
    layers = layer("Power", "power_param { scale: 2 }", top="twice")
    layers += layer("Eltwise", f"eltwise_param {{ {text} }}", bottom="data twice")
    (found,) = run(text_of(layers, (1, 4, 6, 7)), X).values()
    near(found, wanted)


def test_slice_concat_split():
    layers = layer("Slice", "slice_param { slice_point: 1 slice_point: 3 }", top="a b c")
    layers += layer("Split", bottom="b", top="b1 b2")
    layers += layer("Concat", bottom="c b1 a b2")
    (found,) = run(text_of(layers, (1, 4, 6, 7)), X).values()
    near(found, X[:, [3, 1, 2, 0, 1, 2]])


def test_old_names_of_the_axis():
    layers = layer("Slice", "slice_param { slice_dim: 1 }", top="a b")
    layers += layer("Concat", "concat_param { concat_dim: 2 }", bottom="a b")
    (found,) = run(text_of(layers, (1, 4, 6, 7)), X).values()
    near(found, np.concatenate([X[:, :2], X[:, 2:]], axis=2))


def test_crop():
    layers = layer("Pooling", "pooling_param { kernel_size: 2 stride: 2 }", top="small")
    layers += layer("Crop", "crop_param { axis: 2 offset: 1 offset: 2 }", bottom="data small")
    (found,) = run(text_of(layers, (1, 4, 6, 7)), X).values()
    near(found, X[:, :, 1:4, 2:6])
