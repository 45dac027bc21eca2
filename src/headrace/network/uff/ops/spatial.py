"""Convolutions, pooling, normalisation: operations on channels and sizes."""

from __future__ import annotations

from math import prod

import numpy as np

from headrace.network.graph_builder import Blob, Shape, size
from headrace.network.uff.lowering import Lower, UffLowering


def _same_padding(length: int, kernel: int, stride: int) -> tuple[int, int]:
    """Zeros before and after an axis, so that there are ceil(length / stride) windows."""
    total = max((-(-length // stride) - 1) * stride + kernel - length, 0)
    return total // 2, total - total // 2


def _padding(ctx: UffLowering, x: Blob, kernel: list[int], stride: list[int]) -> list[int]:
    """Zeros before each spatial axis, then after each."""
    count = len(kernel)
    if ctx.field("implicit_padding", str, "") == "same":
        pairs = [_same_padding(n, k, s)
                 for n, k, s in zip(x.shape[2:], kernel, stride, strict=True)]  # fmt: skip
        return [before for before, _ in pairs] + [after for _, after in pairs]
    return ctx.ints("padding", count, 0) * 2


def _windows(ctx: UffLowering, x: Blob, extent: list[int], stride: list[int], pads: list[int]
             ) -> list[int]:  # fmt: skip
    lengths = [n + pads[i] + pads[i + len(extent)] for i, n in enumerate(x.shape[2:])]
    if any(e > n or e < 1 or s < 1 for e, n, s in zip(extent, lengths, stride, strict=True)):
        raise ctx.error(f"windows of {extent} by steps of {stride} on {list(x.shape[2:])}",
                        expected="windows that fit")  # fmt: skip
    return [(n - e) // s + 1 for n, e, s in zip(lengths, extent, stride, strict=True)]


def _image(ctx: UffLowering) -> Blob:
    x = ctx.canonical(0)
    if x.rank < 3 or any(d < 0 for d in x.shape[1:]):
        raise ctx.error(f"its input has {x.rank} axes", expected="a batch, channels and sizes")
    return x


def _conv(ctx: UffLowering) -> Blob:
    ctx.count(2)
    x = _image(ctx)
    weight = ctx.array(1, "weights")
    order = ctx.order(1, ctx.inputs[1])
    weight = weight.transpose(np.argsort(order))  # outputs, channels, sizes
    group = ctx.field("number_groups", int, 1)
    if weight.ndim != x.rank or group < 1:
        raise ctx.error(f"weights with {weight.ndim} axes for an input with {x.rank}")
    if group > 1 and weight.shape[1] == group == x.shape[1]:
        # one group per channel, `weight.shape[0]` outputs of each: channel by channel in ONNX
        weight = weight.swapaxes(0, 1).reshape(-1, 1, *weight.shape[2:])
    if x.shape[1] != weight.shape[1] * group or weight.shape[0] % group:
        raise ctx.error(f"{x.shape[1]} channels, {group} groups, weights {weight.shape}")
    count = x.rank - 2
    kernel = list(weight.shape[2:])
    stride = ctx.ints("strides", count, 1)
    dilation = ctx.ints("dilation", count, 1)
    extent = [d * (k - 1) + 1 for k, d in zip(kernel, dilation, strict=True)]
    pads = _padding(ctx, x, extent, stride)
    sides = _windows(ctx, x, extent, stride, pads)
    y = ctx.op(
        "Conv",
        [x, ctx.constant(weight, name="weight")],
        (x.shape[0], weight.shape[0], *sides),
        kernel_shape=kernel,
        strides=stride,
        pads=pads,
        dilations=dilation,
        group=group,
    )
    return ctx.back(y)


def _conv_transpose(ctx: UffLowering) -> Blob:
    """The third input is the shape of the result, where the file knows it."""
    ctx.count(2, 3)
    x = _image(ctx)
    weight = ctx.array(1, "weights")
    weight = weight.transpose(np.argsort(ctx.order(1, ctx.inputs[1]))).swapaxes(0, 1)
    if weight.ndim != x.rank or weight.shape[0] != x.shape[1]:
        raise ctx.error(f"weights {weight.shape} for {x.shape[1]} channels")
    if ctx.field("number_groups", int, 1) != 1:
        raise ctx.error("a transposed convolution in groups", expected="one group")
    kernel, count = list(weight.shape[2:]), x.rank - 2
    stride = ctx.ints("strides", count, 1)
    same = ctx.field("implicit_padding", str, "") == "same"
    full = [(n - 1) * s + k for n, s, k in zip(x.shape[2:], stride, kernel, strict=True)]
    sides = [n * s for n, s in zip(x.shape[2:], stride, strict=True)] if same else list(full)
    out_shape = ctx.inputs[2].array if len(ctx.inputs) == 3 else None
    if out_shape is not None and out_shape.size == x.rank:
        order = np.argsort(ctx.order(0, ctx.x))
        sides = [int(out_shape.reshape(-1)[order[i]]) for i in range(2, x.rank)]
    explicit = ctx.ints("padding", count, 0)
    if any(explicit):
        sides = [n - 2 * p for n, p in zip(full, explicit, strict=True)]
    missing = [n - f for n, f in zip(sides, full, strict=True)]
    if any(not -k < m < s for m, k, s in zip(missing, kernel, stride, strict=True)):
        raise ctx.error(f"the result cannot be {sides}: full size is {full}")
    before = [max(-m, 0) // 2 for m in missing]
    after = [max(-m, 0) - b for m, b in zip(missing, before, strict=True)]
    y = ctx.op(
        "ConvTranspose",
        [x, ctx.constant(weight, name="weight")],
        (x.shape[0], weight.shape[1], *sides),
        kernel_shape=kernel,
        strides=stride,
        pads=[*before, *after],
        output_padding=[max(m, 0) for m in missing],
    )
    return ctx.back(y)


def _pool(ctx: UffLowering) -> Blob:
    ctx.count(1)
    x = _image(ctx)
    count = x.rank - 2
    kernel, stride = ctx.ints("kernel", count), ctx.ints("strides", count, 1)
    method = ctx.field("func", str)
    if method not in ("max", "avg"):
        raise ctx.error(f"func {method!r}", expected="max or avg")
    pads = _padding(ctx, x, kernel, stride)
    sides = _windows(ctx, x, kernel, stride, pads)
    shape = (*x.shape[:2], *sides)
    how = {"kernel_shape": kernel, "strides": stride, "pads": pads}
    # explicit padding is a node that padded with zeros, which the converter took up: they count
    zeros = ctx.field("implicit_padding", str, "") != "same" and any(pads)
    if method == "avg":
        return ctx.back(ctx.op("AveragePool", [x], shape, count_include_pad=int(zeros), **how))
    y = ctx.op("MaxPool", [x], shape, **how)
    if zeros:
        # not a Pad before it: ONNX Runtime 1.31 fuses the two and forgets the zeros
        y = ctx.same("Max", y, ctx.constant(_floor(x.shape[2:], kernel, stride, pads, sides)))
    return ctx.back(y)


def _floor(lengths: Shape, kernel: list[int], stride: list[int], pads: list[int],
           sides: list[int]) -> np.ndarray:  # fmt: skip
    """0 where a window reaches into the padding, else below all; (1, 1, sides)."""
    touches = np.zeros((1, 1, *sides), bool)
    for i, (length, k, s, p, side) in enumerate(
        zip(lengths, kernel, stride, pads, sides, strict=False)
    ):
        starts = np.arange(side) * s - p
        outside = (starts < 0) | (starts + k > length)
        touches |= outside.reshape((1, 1) + (1,) * i + (side,) + (1,) * (len(sides) - i - 1))
    return np.where(touches, np.float32(0), np.finfo(np.float32).min)


def _fully_connected(ctx: UffLowering) -> Blob:
    ctx.count(2)
    weight = ctx.array(1, "weights")
    if weight.ndim != 2:
        raise ctx.error(f"weights with {weight.ndim} axes", expected="two")
    weight = weight.transpose(np.argsort(ctx.order(1, ctx.inputs[1])))  # outputs, channels
    x = ctx.x
    if x.rank > 2:
        x = ctx.graph.reshape(x, (x.shape[0], size(x.shape[1:])))
    elif x.rank == 2:
        x = ctx.canonical(0)
    if x.rank != 2 or x.shape[1] != weight.shape[1]:
        raise ctx.error(f"weights {weight.shape} for an input of {x.shape[1:]}")
    inputs = [x, ctx.constant(weight, name="weight")]
    return ctx.op("Gemm", inputs, (x.shape[0], weight.shape[0]), transB=1)


def _batch_norm(ctx: UffLowering) -> Blob:
    """Inputs behind the first: scale, shift, mean, variance."""
    ctx.count(5)
    x = ctx.canonical(0)
    channels = ctx.fixed_length(x.shape, 1) if x.rank > 1 else 0
    names = ("scale", "shift", "mean", "variance")
    statistics = []
    for i, name in enumerate(names, 1):
        values = ctx.array(i, f"{name} values").reshape(-1)
        if values.size == 1 and channels > 1:
            values = np.broadcast_to(values, (channels,))
        if values.size != channels:
            raise ctx.error(f"{values.size} {name} values for {channels} channels")
        statistics.append(ctx.constant(values, name=name))
    epsilon = ctx.field("epsilon", float, 1e-3)
    y = ctx.op("BatchNormalization", [x, *statistics], x.shape, epsilon=float(epsilon))
    return ctx.back(y)


def _lrn(ctx: UffLowering) -> Blob:
    """`window_size` is the framework's radius: so many channels to either side."""
    ctx.count(1)
    x = _image(ctx)
    window = 2 * ctx.field("window_size", int) + 1
    if not 1 <= window <= 2**16 or x.rank != 4:
        raise ctx.error(f"a radius of {window // 2} on {x.rank} axes")
    alpha, beta = ctx.field("alpha", float), ctx.field("beta", float)
    y = ctx.same("LRN", x, size=window, alpha=float(alpha) * window, beta=float(beta),
                 bias=float(ctx.field("k", float, 1.0)))  # fmt: skip
    return ctx.back(y)


def _flatten(ctx: UffLowering) -> Blob:
    ctx.count(1)
    return ctx.graph.reshape(ctx.x, (ctx.x.shape[0], prod(ctx.x.shape[1:])))


LOWERINGS: dict[str, Lower] = {
    "BatchNorm": _batch_norm,
    "Conv": _conv,
    "ConvTranspose": _conv_transpose,
    "Flatten": _flatten,
    "FullyConnected": _fully_connected,
    "LRN": _lrn,
    "Pool": _pool,
}
