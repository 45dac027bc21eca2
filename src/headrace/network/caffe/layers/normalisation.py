"""Layers that scale: by stored statistics, by neighbours, by sums over an axis."""

from __future__ import annotations

import numpy as np

from headrace.network.caffe.layers.spatial import average
from headrace.network.caffe.lowering import CaffeLowering, Lower
from headrace.network.graph_builder import Blob


def _batch_norm(ctx: CaffeLowering) -> list[Blob]:
    """Means and variances are stored as sums beside the number that they are divided by."""
    fields = ctx.fields("batch_norm_param")
    eps = fields.number("eps", 1e-5)
    scaled = fields.flag("scale_bias", False) or ctx.weight_count == 5  # a fork has both in one
    channels = ctx.fixed_length(ctx.x.shape, 1, "normalises along") if ctx.x.rank > 1 else 1
    mean = ctx.weight(0, (channels,), name="means").astype(np.float64)
    variance = ctx.weight(1, (channels,), name="variances").astype(np.float64)
    factor = float(ctx.weight(2, (1,), name="scale factor")[0])
    divisor = 1 / factor if factor else 0.0
    scale, shift = np.ones(channels), np.zeros(channels)
    if scaled:
        scale = ctx.weight(3, (channels,), name="scales").astype(np.float64)
        shift = ctx.weight(4, (channels,), name="shifts").astype(np.float64)
    deviation = np.sqrt(variance * divisor + eps)
    if not (np.isfinite(deviation).all() and (deviation > 0).all()):
        raise ctx.error("a stored variance is negative or not finite")
    scale = scale / deviation
    return [_affine(ctx, scale, shift - mean * divisor * scale)]


def _affine(ctx: CaffeLowering, scale: np.ndarray, shift: np.ndarray) -> Blob:
    """One scale and shift per channel, as the operator that runtimes fold into a convolution."""
    channels = len(scale)
    zeros, ones = np.zeros(channels), np.ones(channels)
    statistics = [("scale", scale), ("shift", shift), ("mean", zeros), ("variance", ones)]
    inputs = [ctx.x, *(ctx.constant(v, name=n) for n, v in statistics)]
    return ctx.op("BatchNormalization", inputs, ctx.x.shape, epsilon=0.0)


def _scale(ctx: CaffeLowering) -> list[Blob]:
    ctx.count(1, 2)
    fields = ctx.fields("scale_param")
    shape, at = _stretch(ctx, fields.integer("axis", 1), fields.integer("num_axes", 1))
    biased = fields.flag("bias_term", False)
    stored = 0 if len(ctx.inputs) == 2 else 1
    bias = ctx.weight(stored, shape, name="bias") if biased else None
    if stored and at == 1 and len(shape) == 1 and ctx.x.rank >= 2:
        scale = ctx.weight(0, shape, name="scales")
        return [_affine(ctx, scale, np.zeros_like(scale) if bias is None else bias)]
    y = ctx.same("Mul", ctx.x, _term(ctx, shape, at, "scales"))
    return [y if bias is None else ctx.same("Add", y, ctx.constant(_spread(bias, at, ctx.x.rank)))]


def _bias(ctx: CaffeLowering) -> list[Blob]:
    ctx.count(1, 2)
    fields = ctx.fields("bias_param")
    shape, at = _stretch(ctx, fields.integer("axis", 1), fields.integer("num_axes", 1))
    return [ctx.same("Add", ctx.x, _term(ctx, shape, at, "bias"))]


def _stretch(ctx: CaffeLowering, axis: int, count: int) -> tuple[tuple[int, ...], int]:
    """The axes that a scale or bias covers: their lengths, and the first."""
    at = ctx.axis(axis)
    if len(ctx.inputs) == 2:
        count = ctx.inputs[1].rank
        if count == 0:
            return (), 0
    end = ctx.x.rank if count == -1 else at + count
    if not at <= end <= ctx.x.rank:
        raise ctx.error(f"axis {axis} and {count} axes", expected=f"at most {ctx.x.rank} axes")
    shape = ctx.x.shape[at:end]
    if len(ctx.inputs) == 1 and any(d < 0 for d in shape):
        raise ctx.error("it has one value per item of the batch")
    return shape, at


def _term(ctx: CaffeLowering, shape: tuple[int, ...], at: int, name: str) -> Blob:
    """The second input, else the layer's weights, from axis `at` on, spread over all of them."""
    if len(ctx.inputs) == 1:
        return ctx.constant(_spread(ctx.weight(0, shape, name=name), at, ctx.x.rank))
    second = ctx.inputs[1]
    if second.shape != ctx.x.shape[at : at + second.rank]:
        raise ctx.error(f"the second input is {second.shape}, axes {at} and on of the first are "
                        f"{ctx.x.shape[at:]}")  # fmt: skip
    trailing = (1,) * (ctx.x.rank - at - second.rank)
    return ctx.graph.reshape(second, (1,) * at + second.shape + trailing)


def _spread(values: np.ndarray, at: int, rank: int) -> np.ndarray:
    return values.reshape((1,) * at + values.shape + (1,) * (rank - at - values.ndim))


def _lrn(ctx: CaffeLowering) -> list[Blob]:
    fields = ctx.fields("lrn_param")
    size, alpha = fields.integer("local_size", 5), fields.number("alpha", 1.0)
    beta, k = fields.number("beta", 0.75), fields.number("k", 1.0)
    if size < 1 or size % 2 == 0 or ctx.x.rank != 4:
        raise ctx.error(
            f"local_size {size} on {ctx.x.rank} axes", expected="an odd size, four axes"
        )
    if fields.choice("norm_region", ["ACROSS_CHANNELS", "WITHIN_CHANNEL"]) == "ACROSS_CHANNELS":
        return [ctx.same("LRN", ctx.x, size=size, alpha=alpha, beta=beta, bias=k)]
    if min(ctx.x.shape[2:]) < size - (size - 1) // 2 * 2:
        raise ctx.error(f"local_size {size} is larger than the input")
    pad = (size - 1) // 2
    squares = ctx.same("Mul", ctx.x, ctx.x)
    mean = average(ctx, squares, ctx.x.shape, [size] * 2, [1, 1], [pad] * 2, [0, 0])
    base = ctx.same("Add", ctx.same("Mul", mean, ctx.constant(alpha)), ctx.constant(1.0))
    return [ctx.same("Mul", ctx.x, ctx.same("Pow", base, ctx.constant(-beta)))]


def _normalize(ctx: CaffeLowering) -> list[Blob]:
    """L2 norm of the SSD branch: eps is added to the sum of squares."""
    fields = ctx.fields("norm_param")
    if ctx.x.rank != 4:
        raise ctx.error(f"the input has {ctx.x.rank} axes", expected="four")
    across = fields.flag("across_spatial", True)
    eps = fields.number("eps", 1e-10)
    shared = fields.flag("channel_shared", True)
    channels = 1 if shared else ctx.fixed_length(ctx.x.shape, 1, "scales along")
    scale = ctx.weight(0, (channels,), name="scales").reshape(1, channels, 1, 1)
    axes = (1, 2, 3) if across else (1,)
    total = _reduce(ctx, "ReduceSum", ctx.same("Mul", ctx.x, ctx.x), axes)
    norm = ctx.same("Sqrt", ctx.same("Add", total, ctx.constant(eps)))
    y = ctx.op("Div", [ctx.x, norm], ctx.x.shape)
    return [ctx.same("Mul", y, ctx.constant(scale, name="scale"))]


def _mvn(ctx: CaffeLowering) -> list[Blob]:
    fields = ctx.fields("mvn_param")
    if ctx.x.rank < 3:
        raise ctx.error(f"the input has {ctx.x.rank} axes", expected="batch, channels and sizes")
    first = 1 if fields.flag("across_channels", False) else 2
    variance = fields.flag("normalize_variance", True)
    eps = fields.number("eps", 1e-9)
    axes = tuple(range(first, ctx.x.rank))
    centred = ctx.op("Sub", [ctx.x, _reduce(ctx, "ReduceMean", ctx.x, axes)], ctx.x.shape)
    if not variance:
        return [centred]
    spread = _reduce(ctx, "ReduceMean", ctx.same("Mul", centred, centred), axes)
    deviation = ctx.same("Add", ctx.same("Sqrt", spread), ctx.constant(eps))
    return [ctx.op("Div", [centred, deviation], ctx.x.shape)]


def _reduce(ctx: CaffeLowering, op: str, x: Blob, axes: tuple[int, ...]) -> Blob:
    shape = tuple(1 if i in axes else d for i, d in enumerate(x.shape))
    if op == "ReduceSum":
        return ctx.op(op, [x, ctx.constant(axes, np.int64)], shape, keepdims=1)
    return ctx.op(op, [x], shape, axes=list(axes), keepdims=1)


LOWERINGS: dict[str, Lower] = {
    "BatchNorm": _batch_norm,
    "Bias": _bias,
    "LRN": _lrn,
    "MVN": _mvn,
    "Normalize": _normalize,
    "Scale": _scale,
}
