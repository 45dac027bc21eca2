"""Layers that act on each element alone, combine inputs, or sum over axes."""

from __future__ import annotations

import math

import numpy as np

from headrace.network.caffe.lowering import CaffeLowering, Lower
from headrace.network.graph_builder import BATCH, Blob, shape_text, size


def _relu(ctx: CaffeLowering) -> list[Blob]:
    slope = ctx.fields("relu_param").number("negative_slope")
    return [ctx.same("LeakyRelu", ctx.x, alpha=slope) if slope else ctx.same("Relu", ctx.x)]


def _relu6(ctx: CaffeLowering) -> list[Blob]:
    slope = ctx.fields("relu_param").number("negative_slope")
    if slope:
        raise ctx.error(f"negative_slope: {slope}", expected="0 for ReLU6")
    return [_clip(ctx, ctx.x, 0.0, 6.0)]


def _prelu(ctx: CaffeLowering) -> list[Blob]:
    shared = ctx.fields("prelu_param").flag("channel_shared", False)
    channels = 1 if shared else ctx.fixed_length(ctx.x.shape, 1, "scales along")
    slope = ctx.weight(0, (channels,), name="slopes")
    shape = (channels,) + (1,) * (ctx.x.rank - 2)
    return [ctx.same("PRelu", ctx.x, ctx.constant(slope.reshape(shape), name="slope"))]


def _elu(ctx: CaffeLowering) -> list[Blob]:
    return [ctx.same("Elu", ctx.x, alpha=ctx.fields("elu_param").number("alpha", 1.0))]


def _clip(ctx: CaffeLowering, x: Blob, low: float, high: float) -> Blob:
    return ctx.same("Clip", x, ctx.constant(low), ctx.constant(high))


def _clip_layer(ctx: CaffeLowering) -> list[Blob]:
    fields = ctx.fields("clip_param")
    return [_clip(ctx, ctx.x, fields.number("min"), fields.number("max"))]


def _linear(ctx: CaffeLowering, x: Blob, scale: float, shift: float) -> Blob:
    if scale != 1:
        x = ctx.same("Mul", x, ctx.constant(scale))
    if shift != 0:
        x = ctx.same("Add", x, ctx.constant(shift))
    return x


def _power(ctx: CaffeLowering) -> list[Blob]:
    """Compute (shift + scale * x) ^ power."""
    fields = ctx.fields("power_param")
    power, scale = fields.number("power", 1.0), fields.number("scale", 1.0)
    x = _linear(ctx, ctx.x, scale, fields.number("shift"))
    if power == 1:
        return [x]
    return [ctx.same("Mul", x, x) if power == 2 else ctx.same("Pow", x, ctx.constant(power))]


def _base(ctx: CaffeLowering, base: float) -> float:
    if base != -1 and (base <= 0 or base == 1):
        raise ctx.error(f"base: {base}", expected="-1 for e, or a positive base other than 1")
    return 1.0 if base == -1 else math.log(base)


def _exp(ctx: CaffeLowering) -> list[Blob]:
    """Compute base ^ (shift + scale * x); base -1 is e."""
    fields = ctx.fields("exp_param")
    log = _base(ctx, fields.number("base", -1.0))
    scale, shift = fields.number("scale", 1.0), fields.number("shift")
    return [ctx.same("Exp", _linear(ctx, ctx.x, scale * log, shift * log))]


def _log(ctx: CaffeLowering) -> list[Blob]:
    """Compute the logarithm to a base of (shift + scale * x); base -1 is e."""
    fields = ctx.fields("log_param")
    log = _base(ctx, fields.number("base", -1.0))
    x = _linear(ctx, ctx.x, fields.number("scale", 1.0), fields.number("shift"))
    return [_linear(ctx, ctx.same("Log", x), 1 / log, 0.0)]


def _threshold(ctx: CaffeLowering) -> list[Blob]:
    limit = ctx.constant(ctx.fields("threshold_param").number("threshold"))
    above = ctx.op("Greater", [ctx.x, limit], ctx.x.shape, dtype=np.bool_)
    return [ctx.same("Cast", above, to=1)]


def _swish(ctx: CaffeLowering) -> list[Blob]:
    beta = ctx.fields("swish_param").number("beta", 1.0)
    return [ctx.same("Mul", ctx.x, ctx.same("Sigmoid", _linear(ctx, ctx.x, beta, 0.0)))]


def _mish(ctx: CaffeLowering) -> list[Blob]:
    return [ctx.same("Mul", ctx.x, ctx.same("Tanh", ctx.same("Softplus", ctx.x)))]


def _plain(operator: str) -> Lower:
    def lower(ctx: CaffeLowering) -> list[Blob]:
        ctx.count(1)
        return [ctx.same(operator, ctx.x)]

    return lower


def _dropout(ctx: CaffeLowering) -> list[Blob]:
    """Nothing, unless training did not scale kept values: then they are scaled here."""
    fields = ctx.fields("dropout_param")
    ratio = fields.number("dropout_ratio", 0.5)
    if fields.flag("scale_train", True):
        return [ctx.x]
    return [_linear(ctx, ctx.x, 1 - ratio, 0.0)]


def _eltwise(ctx: CaffeLowering) -> list[Blob]:
    ctx.count(2, 2**16)
    fields = ctx.fields("eltwise_param")
    operation = fields.choice("operation", ["PROD", "SUM", "MAX"], default="SUM")
    coefficients = fields.numbers("coeff")
    for other in ctx.inputs[1:]:
        if other.shape != ctx.x.shape:
            raise ctx.error(f"the inputs differ: {shape_text(ctx.x.shape)} and "
                            f"{shape_text(other.shape)}", expected="equal shapes")  # fmt: skip
    if coefficients and (operation != "SUM" or len(coefficients) != len(ctx.inputs)):
        raise ctx.error(f"{len(coefficients)} coefficients for {operation} of {len(ctx.inputs)}",
                        expected="one per input, for SUM only")  # fmt: skip
    terms = list(ctx.inputs)
    for i, factor in enumerate(coefficients):
        if factor != 1:
            terms[i] = ctx.same("Mul", terms[i], ctx.constant(factor))
    if operation == "MAX":
        return [ctx.same("Max", *terms)]
    result = terms[0]
    for term in terms[1:]:
        result = ctx.same("Mul" if operation == "PROD" else "Add", result, term)
    return [result]


def _axpy(ctx: CaffeLowering) -> list[Blob]:
    """Compute a * x + y, a one number per channel (squeeze and excitation networks)."""
    ctx.count(3)
    scale, x, y = ctx.inputs
    if size(scale.shape) != size(x.shape[:2]) or x.shape != y.shape:
        raise ctx.error("the inputs do not fit: batch x channels, and twice the same shape")
    factor = ctx.graph.reshape(scale, (*x.shape[:2], *(1,) * (x.rank - 2)))
    return [ctx.same("Add", ctx.same("Mul", x, factor), y)]


def _reduction(ctx: CaffeLowering) -> list[Blob]:
    """Sum over all axes from `axis` on."""
    fields = ctx.fields("reduction_param")
    operation = fields.choice("operation", ["SUM", "ASUM", "SUMSQ", "MEAN"], first=1)
    axis, factor = ctx.axis(fields.integer("axis")), fields.number("coeff", 1.0)
    if axis == 0:
        raise ctx.error("it sums over the batch (axis: 0)", expected="axis: 1 or more")
    count = size(ctx.x.shape[axis:])
    flat = ctx.graph.reshape(ctx.x, (*ctx.x.shape[:axis], count))
    if operation == "ASUM":
        flat = ctx.same("Abs", flat)
    elif operation == "SUMSQ":
        flat = ctx.same("Mul", flat, flat)
    elif operation == "MEAN":
        factor /= count
    shape = ctx.x.shape[:axis]
    y = ctx.op("ReduceSum", [flat, ctx.constant([axis], np.int64)], shape, keepdims=0)
    return [ctx.same("Mul", y, ctx.constant(factor)) if factor != 1 else y]


def _argmax(ctx: CaffeLowering) -> list[Blob]:
    """Positions of the largest values, as floats; with their values where asked for."""
    fields = ctx.fields("argmax_param")
    top_k, values_too = fields.integer("top_k", 1), fields.flag("out_max_val", False)
    if fields.has("axis"):
        axis = ctx.axis(fields.integer("axis"))
        x = ctx.x
    else:
        axis, x = 1, ctx.graph.reshape(ctx.x, (ctx.x.shape[0], size(ctx.x.shape[1:])))
    length = ctx.fixed_length(x.shape, axis, "ranks")
    if not 1 <= top_k <= length:
        raise ctx.error(f"top_k: {top_k}", expected=f"1 to {length}")
    shape = (*x.shape[:axis], top_k, *x.shape[axis + 1 :])
    inputs = [x, ctx.constant([top_k], np.int64)]
    values, indices = ctx.graph.nodes(
        "TopK", inputs, [(shape, np.float32), (shape, np.int64)], axis=axis
    )
    if fields.has("axis"):
        return [values if values_too else ctx.op("Cast", [indices], shape, to=1)]
    rows = (x.shape[0], 1, top_k)
    positions = ctx.graph.reshape(ctx.op("Cast", [indices], shape, to=1), rows)
    if not values_too:
        return [positions]
    both = [positions, ctx.graph.reshape(values, rows)]
    return [ctx.op("Concat", both, (x.shape[0], 2, top_k), axis=1)]


def _softmax(ctx: CaffeLowering) -> list[Blob]:
    ctx.count(1)
    axis = ctx.axis(ctx.fields("softmax_param").integer("axis", 1))
    if ctx.x.shape[axis] <= BATCH:
        ctx.fixed_length(ctx.x.shape, axis, "normalises along")
    return [ctx.same("Softmax", ctx.x, axis=axis)]


LOWERINGS: dict[str, Lower] = {
    "AbsVal": _plain("Abs"),
    "ArgMax": _argmax,
    "Axpy": _axpy,
    "BNLL": _plain("Softplus"),
    "Clip": _clip_layer,
    "Dropout": _dropout,
    "ELU": _elu,
    "Eltwise": _eltwise,
    "Exp": _exp,
    "Log": _log,
    "Mish": _mish,
    "PReLU": _prelu,
    "Power": _power,
    "ReLU": _relu,
    "ReLU6": _relu6,
    "Reduction": _reduction,
    "Sigmoid": _plain("Sigmoid"),
    "Softmax": _softmax,
    "Swish": _swish,
    "TanH": _plain("Tanh"),
    "Threshold": _threshold,
}
