"""Layers that act on each element alone."""

from __future__ import annotations

import math

import numpy as np

from noria.network.caffe.lowering import CaffeLowering, Lower
from noria.network.graph_builder import Blob


def _relu(ctx: CaffeLowering) -> list[Blob]:
    slope = ctx.fields("relu_param").number("negative_slope")
    if slope:
        return [ctx.same("LeakyRelu", ctx.x, alpha=slope)]
    return [ctx.same("Relu", ctx.x)]


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
    if power == 2:
        return [ctx.same("Mul", x, x)]
    return [ctx.same("Pow", x, ctx.constant(power))]


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
    """Nothing, unless training did not scale what it kept up: then that is made good for here."""
    fields = ctx.fields("dropout_param")
    ratio = fields.number("dropout_ratio", 0.5)
    if fields.flag("scale_train", True):
        return [ctx.x]
    return [_linear(ctx, ctx.x, 1 - ratio, 0.0)]


LOWERINGS: dict[str, Lower] = {
    "AbsVal": _plain("Abs"),
    "BNLL": _plain("Softplus"),
    "Clip": _clip_layer,
    "Dropout": _dropout,
    "ELU": _elu,
    "Exp": _exp,
    "Log": _log,
    "Mish": _mish,
    "PReLU": _prelu,
    "Power": _power,
    "ReLU": _relu,
    "ReLU6": _relu6,
    "Sigmoid": _plain("Sigmoid"),
    "Swish": _swish,
    "TanH": _plain("Tanh"),
    "Threshold": _threshold,
}
