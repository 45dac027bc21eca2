"""Each operation against NumPy, in the order of axes that TensorFlow has: channels last."""

import numpy as np
import pytest

from headrace.errors import ModelError
from tests.network.caffe.slow import conv
from tests.network.uff.models import (
    const,
    network_of,
    node,
    orders,
    run,
    run_node,
    source,
    uff,
)

RNG = np.random.default_rng(4)
X = RNG.normal(size=(2, 5, 6, 4)).astype(np.float32)
P = np.abs(X) + 0.1


def weights(*shape):
    return RNG.normal(size=shape).astype(np.float32)


def near(found, wanted, tolerance=1e-4):
    assert found.shape == np.shape(wanted)
    np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance)


def same_pads(length, kernel, stride):
    total = max((-(-length // stride) - 1) * stride + kernel - length, 0)
    return total // 2, total - total // 2


def tf_conv(x, w, stride, dilation=1, same=True, group=1):
    """x (N, H, W, C), w (H, W, C/group, outputs)."""
    x, w = x.transpose(0, 3, 1, 2), w.transpose(3, 2, 0, 1)
    if same:
        widths = [same_pads(n, dilation * (k - 1) + 1, stride)
                  for n, k in zip(x.shape[2:], w.shape[2:], strict=True)]  # fmt: skip
        x = np.pad(x, [(0, 0), (0, 0), *widths])
    y = conv(x, w, np.zeros(len(w)), (stride,) * 2, (0, 0), (dilation,) * 2, group)
    return y.transpose(0, 2, 3, 1)


@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("kernel", [(1, 1), (3, 3), (2, 4)])
@pytest.mark.parametrize("same", [False, True])
def test_convolution(stride, kernel, same):
    w = weights(*kernel, 4, 3)
    found = run_node("Conv", X, w, inputs_orders=orders("N+C", "+CK"), strides=[stride, stride],
                     padding=None, dilation=None, number_groups=None,
                     implicit_padding="same" if same else None)  # fmt: skip
    near(found, tf_conv(X, w, stride, same=same))


def test_dilated_and_explicitly_padded_convolution():
    w = weights(3, 3, 4, 2)
    found = run_node("Conv", X, w, inputs_orders=orders("N+C", "+CK"), strides=[1, 1],
                     dilation=[2, 2], implicit_padding="same")  # fmt: skip
    near(found, tf_conv(X, w, 1, dilation=2))
    found = run_node("Conv", X, w, inputs_orders=orders("N+C", "+CK"), strides=[2, 2],
                     padding=[1, 1])  # fmt: skip
    padded = np.pad(X, [(0, 0), (1, 1), (1, 1), (0, 0)])
    near(found, tf_conv(padded, w, 2, same=False))


def test_depthwise_convolution_with_a_multiplier():
    w = weights(3, 3, 4, 2)
    found = run_node("Conv", X, w, inputs_orders=orders("N+C", "+CK"), strides=[1, 1],
                     number_groups=4, implicit_padding="same")  # fmt: skip
    wanted = np.empty((2, 5, 6, 8))
    for c in range(4):
        one = X[..., c : c + 1]
        wanted[..., 2 * c : 2 * c + 2] = tf_conv(one, w[:, :, c : c + 1], 1)
    near(found, wanted)


@pytest.mark.parametrize("same", [False, True])
@pytest.mark.parametrize(("kernel", "stride"), [(3, 2), (2, 2), (4, 2), (3, 1), (2, 3)])
def test_transposed_convolution_is_the_gradient_of_a_convolution(same, kernel, stride):
    w = weights(kernel, kernel, 3, 4)  # height, width, outputs, channels
    if same:
        height, width = 5 * stride, 6 * stride
    else:
        height, width = ((n - 1) * stride + kernel for n in (5, 6))
    shape = np.array([2, height, width, 3], np.int32)
    padding = "same" if same else None
    found = run_node("ConvTranspose", X, w, shape, inputs_orders=orders("N+C", "+KC"),
                     strides=[stride, stride], implicit_padding=padding)  # fmt: skip
    # <conv(z), x> = <z, transposed(x)> for every z
    for _ in range(3):
        z = RNG.normal(size=(2, height, width, 3))
        left = (tf_conv(z, w, stride, same=same) * X).sum()
        np.testing.assert_allclose(left, (z * found).sum(), rtol=1e-3)


@pytest.mark.parametrize("method", ["max", "avg"])
@pytest.mark.parametrize(("kernel", "stride"), [(2, 2), (3, 2), (3, 1), (2, 3)])
@pytest.mark.parametrize("same", [False, True])
def test_pooling(method, kernel, stride, same):
    padding = "same" if same else None
    found = run_node("Pool", X, func=method, kernel=[kernel] * 2, strides=[stride] * 2,
                     inputs_orders=orders("N+C"), implicit_padding=padding)  # fmt: skip
    pads = [same_pads(n, kernel, stride) if same else (0, 0) for n in (5, 6)]
    sides = [(n + sum(p) - kernel) // stride + 1 for n, p in zip((5, 6), pads, strict=True)]
    wanted = np.empty((2, *sides, 4))
    for i in range(sides[0]):
        for j in range(sides[1]):
            top, left = i * stride - pads[0][0], j * stride - pads[1][0]
            window = X[:, max(top, 0) : top + kernel, max(left, 0) : left + kernel]
            wanted[:, i, j] = window.max((1, 2)) if method == "max" else window.mean((1, 2))
    near(found, wanted)


def test_pooling_of_zeros_that_a_padding_node_put_there():
    found = run_node("Pool", -P, func="max", kernel=[3, 3], strides=[2, 2], padding=[1, 1],
                     inputs_orders=orders("N+C"))  # fmt: skip
    assert found[:, 0].max() == 0
    found = run_node("Pool", X, func="avg", kernel=[3, 3], strides=[1, 1], padding=[1, 1],
                     inputs_orders=orders("N+C"))  # fmt: skip
    near(found[:, 0, 0], X[:, :2, :2].sum((1, 2)) / 9)


def test_chains_stay_channels_first():
    w1, w2, bias = weights(3, 3, 4, 8), weights(1, 1, 8, 2), weights(8)
    how = {"inputs_orders": orders("N+C", "+CK"), "strides": [1, 1], "implicit_padding": "same"}
    data = uff(
        source(), const("w1", w1), const("w2", w2), const("b", bias),
        node("a", "Conv", ["x", "w1"], **how), node("s", "Binary", ["a", "b"], func="add"),
        node("r", "Activation", ["s"], func="relu"), node("y", "Conv", ["r", "w2"], **how),
        node("m", "MarkOutput", ["y"]),
    )  # fmt: skip
    (found,) = run(data, X.transpose(0, 3, 1, 2)).values()
    near(found, tf_conv(np.maximum(tf_conv(X, w1, 1) + bias, 0), w2, 1))
    kinds = [n.op_type for n in network_of(data).model.graph]
    assert kinds == ["Conv", "Add", "Relu", "Conv", "Transpose"]


def test_channels_first_graphs():
    w = weights(3, 3, 4, 2)
    data = uff(
        source((-1, 4, 5, 6)), const("w", w),
        node("y", "Conv", ["x", "w"], inputs_orders=orders("NC+", "+CK"), strides=[1, 1],
             implicit_padding="same"),
        node("m", "MarkOutput", ["y"]),
    )  # fmt: skip
    (found,) = run(data, X.transpose(0, 3, 1, 2), input_dims=(4, 5, 6)).values()
    near(found, tf_conv(X, w, 1).transpose(0, 3, 1, 2))


def test_fully_connected():
    w = weights(5 * 6 * 4, 7)
    how = {"inputs_orders": orders("NC", "CK")}
    flat = X.reshape(2, -1)
    data = uff(
        source(), const("w", w), node("f", "Flatten", ["x"]),
        node("y", "FullyConnected", ["f", "w"], **how), node("m", "MarkOutput", ["y"]),
    )  # fmt: skip
    (found,) = run(data, X.transpose(0, 3, 1, 2)).values()
    near(found, flat @ w)
    near(run_node("FullyConnected", X, w.T.copy(), inputs_orders=orders("NC", "KC")), flat @ w)


def test_batch_norm():
    scale, shift, mean, variance = weights(4), weights(4), weights(4), np.abs(weights(4))
    found = run_node("BatchNorm", X, scale, shift, mean, variance, epsilon=0.01,
                     inputs_orders=orders("N+C"))  # fmt: skip
    near(found, (X - mean) / np.sqrt(variance + 0.01) * scale + shift)


def test_local_response():
    found = run_node("LRN", X, window_size=1, alpha=0.5, beta=0.75, k=2.0,
                     inputs_orders=orders("N+C"))  # fmt: skip
    wanted = np.empty_like(X)
    for c in range(4):
        near_by = X[..., max(0, c - 1) : c + 2]
        wanted[..., c] = X[..., c] / (2 + 0.5 * (near_by**2).sum(-1)) ** 0.75
    near(found, wanted)


UNARY = [
    ("neg", X, -X), ("exp", X, np.exp(X)), ("log", P, np.log(P)), ("abs", X, np.abs(X)),
    ("sqrt", P, np.sqrt(P)), ("rsqrt", P, 1 / np.sqrt(P)), ("square", X, X**2),
    ("sin", X, np.sin(X)), ("atan", X, np.arctan(X)), ("cosh", X, np.cosh(X)),
    ("ceil", X, np.ceil(X)), ("floor", X, np.floor(X)),
]  # fmt: skip
ACTIVATIONS = [
    ("relu", np.maximum(X, 0)), ("relu6", np.clip(X, 0, 6)), ("tanh", np.tanh(X)),
    ("sigmoid", 1 / (1 + np.exp(-X))), ("elu", np.where(X > 0, X, np.expm1(X))),
    ("softplus", np.log1p(np.exp(X))), ("softsign", X / (1 + np.abs(X))),
    ("selu", 1.0507 * np.where(X > 0, X, 1.67326 * np.expm1(X))),
]  # fmt: skip


@pytest.mark.parametrize(("name", "x", "wanted"), UNARY, ids=lambda v: v if type(v) is str else "")
def test_unary(name, x, wanted):
    near(run_node("Unary", x, func=name), wanted)


@pytest.mark.parametrize(("name", "wanted"), ACTIVATIONS, ids=lambda v: v if type(v) is str else "")
def test_activation(name, wanted):
    near(run_node("Activation", X, func=name), wanted)


def test_leaky_relu():
    near(run_node("LeakyRelu", X, alpha=0.3), np.where(X > 0, X, 0.3 * X))


@pytest.mark.parametrize(
    ("name", "function"),
    [("add", np.add), ("sub", np.subtract), ("mul", np.multiply), ("div", np.divide),
     ("min", np.minimum), ("max", np.maximum)],
)  # fmt: skip
@pytest.mark.parametrize("shape", [(4,), (1,), (), (6, 4), (5, 1, 4), (1, 5, 6, 4)])
def test_binary(name, function, shape):
    c = weights(*shape) + np.float32(3) if shape else np.float32(3.5)
    near(run_node("Binary", X, c, func=name), function(X, c))


def test_power_and_constants_first():
    near(run_node("Binary", P, np.float32(1.5), func="pow"), P**1.5)
    data = uff(source(), const("c", weights(4)), node("y", "Binary", ["c", "x"], func="sub"),
               node("m", "MarkOutput", ["y"]))  # fmt: skip
    (found,) = run(data, X.transpose(0, 3, 1, 2)).values()
    assert found.shape == X.shape


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


SHAPES = [
    ("Softmax", {"axis": 0, "inputs_orders": orders("N+C")}, [], softmax(X)),
    ("Softmax", {"axis": -1, "inputs_orders": orders("N+C")}, [], softmax(X)),
    ("Reduce", {"func": "mean", "axes": [1, 2], "keepdims": False}, [], X.mean((1, 2))),
    ("Reduce", {"func": "sum", "axes": [-1], "keepdims": True}, [], X.sum(-1, keepdims=True)),
    ("Reduce", {"func": "max", "axes": [3]}, [], X.max(3)),
    ("Reduce", {"func": "min", "axes": [1]}, [], X.min(1)),
    ("Reduce", {"func": "prod", "axes": [2]}, [], X.prod(2)),
    ("ArgMax", {"axis": 3}, [], X.argmax(3)),
    ("ArgMin", {"axis": -1}, [], X.argmin(3)),
    ("Transpose", {"permutation": [0, 3, 1, 2]}, [], X.transpose(0, 3, 1, 2)),
    ("ExpandDims", {"axis": 1}, [], X[:, None]),
    ("ExpandDims", {"axis": -1}, [], X[..., None]),
    ("Flatten", {}, [], X.reshape(2, -1)),
    ("Reshape", {}, [np.array([-1, 30, 4], np.int32)], X.reshape(2, 30, 4)),
    ("Reshape", {}, [np.array([1, 120], np.int32)], X.reshape(2, 120)),
    ("Reshape", {}, [np.array([-1, 5, -1], np.int32)], X.reshape(2, 5, 24)),
    ("Pad", {}, [np.array([[0, 0], [1, 2], [0, 3], [0, 0]], np.int32)],
     np.pad(X, [(0, 0), (1, 2), (0, 3), (0, 0)])),
    ("StridedSlice", {"begin_mask": 1, "end_mask": 1, "shrink_axis_mask": 0},
     [np.array([0, 1], np.int32), np.array([0, 4], np.int32), np.array([1, 2], np.int32)],
     X[:, 1:4:2]),
    ("StridedSlice", {"begin_mask": 7, "end_mask": 7, "shrink_axis_mask": 8},
     [np.array([0, 0, 0, 2], np.int32), np.zeros(4, np.int32), np.ones(4, np.int32)], X[..., 2]),
    ("StridedSlice", {"begin_mask": 7, "end_mask": 15, "shrink_axis_mask": 0},
     [np.array([0, 0, 0, -1], np.int32), np.zeros(4, np.int32), np.array([1, 1, 1, -1], np.int32)],
     X[..., ::-1]),
    ("GatherV2", {"axis": 3}, [np.array([2, 0], np.int32)], X[..., [2, 0]]),
    ("Identity", {}, [], X),
]  # fmt: skip


@pytest.mark.parametrize(
    ("operation", "fields", "constants", "wanted"),
    SHAPES,
    ids=[f"{s[0]}{i}" for i, s in enumerate(SHAPES)],
)  # fmt: skip
def test_shapes(operation, fields, constants, wanted):
    found = run_node(operation, X, *constants, **fields)
    near(found.reshape(np.shape(wanted)) if found.size == np.size(wanted) else found, wanted)
    assert found.ndim == np.ndim(wanted) or np.ndim(wanted) < 2


def test_concat_stack_squeeze():
    data = uff(
        source(), node("n", "Unary", ["x"], func="neg"),
        node("c", "Concat", ["x", "n", "x"], axis=-1), node("s", "Stack", ["x", "n"], axis=1),
        node("r", "Reduce", ["x"], func="max", axes=[1, 2], keepdims=True),
        node("q", "Squeeze", ["r"], axes=[1, 2]),
    )  # fmt: skip
    found = run(data, X.transpose(0, 3, 1, 2), outputs=["c", "s", "q"])
    near(found["c"], np.concatenate([X, -X, X], axis=-1))
    near(found["s"], np.stack([X, -X], axis=1))
    near(found["q"], X.max((1, 2)))


def test_shapes_that_the_graph_computes():
    """What Keras writes for a flattening: the batch from the shape, the rest inferred."""
    one = np.array([1], np.int32)
    data = uff(
        source(), const("zero", one * 0), const("one", one), const("rest", np.int32(-1)),
        node("shape", "Shape", ["x"]),
        node("batch", "StridedSlice", ["shape", "zero", "one", "one"], shrink_axis_mask=1,
             begin_mask=0, end_mask=0),
        node("target", "Stack", ["batch", "rest"], axis=0),
        node("y", "Reshape", ["x", "target"]), node("m", "MarkOutput", ["y"]),
    )  # fmt: skip
    (found,) = run(data, X.transpose(0, 3, 1, 2)).values()
    near(found, X.reshape(2, -1))


def test_half_precision_constants():
    c = weights(4).astype(np.float16)
    near(run_node("Binary", X, c, func="mul"), X * c.astype(np.float32))


REFUSED = [
    ("Conv", {"strides": [1, 1]}, [weights(1, 1, 4, 2)], "inputs_orders"),
    ("Conv", {"strides": [0, 1], "inputs_orders": orders("N+C", "+CK")}, [weights(1, 1, 4, 2)],
     "windows"),
    ("Conv", {"strides": [1, 1], "inputs_orders": orders("N+C", "+CK")}, [weights(9, 1, 4, 2)],
     "windows that fit"),
    ("Conv", {"strides": [1, 1], "inputs_orders": orders("N+C", "+CK")}, [weights(1, 1, 3, 2)],
     "4 channels"),
    ("Conv", {"strides": [1, 1], "inputs_orders": orders("N+C", "NC")}, [weights(1, 1, 4, 2)],
     "order of input 1"),
    ("Pool", {"func": "min", "kernel": [2, 2], "inputs_orders": orders("N+C")}, [], "max or avg"),
    ("Unary", {"func": "pow"}, [], "'pow'"),
    ("Binary", {"func": "add"}, [weights(3)], "do not go together"),
    ("Binary", {"func": "add"}, [np.int32(3)], "int64"),
    ("Reduce", {"func": "max", "axes": [0]}, [], "number of items"),
    ("Reshape", {}, [np.array([-1, 7], np.int32)], "cannot become"),
    ("Transpose", {"permutation": [0, 1, 2, 2]}, [], "permutation"),
    ("Pad", {}, [np.array([[1, 0], [0, 0], [0, 0], [0, 0]], np.int32)], "none for the batch"),
    ("GatherV2", {"axis": 3}, [np.array([4], np.int32)], "beyond"),
    ("Softmax", {"axis": "a"}, [], "'axis'"),
    ("Mystery", {}, [], r"(?s)'Mystery' is not known.*Conv, ConvTranspose"),
    ("_NMS_TRT", {"topK": 7, "iou": 0.5, "w": b"123"}, [],
     r"(?s)plugin 'NMS_TRT'.*batch x 5 x 6 x 4.*topK=7, iou=0.5, w=3 bytes.*output-blob-names"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("operation", "fields", "constants", "words"), REFUSED, ids=[r[0] + r[3][:12] for r in REFUSED]
)
def test_what_is_refused(operation, fields, constants, words):
    with pytest.raises(ModelError, match=words) as caught:
        run_node(operation, X, *constants, **fields)
    assert f"node 'y' ({operation})" in str(caught.value)
