"""Layers with weights: convolutional, connected, and the learnt constants of YOLOR."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from noria.network.darknet.lowering import DarknetLowering, Lower, activate
from noria.network.graph_builder import Blob, size

_EPSILON = 1e-5  # what Darknet adds to variances
_MAX_SIDE = 2**12
_REFUSED = ("antialiasing", "assisted_excitation", "binary", "deform", "flipped", "reverse",
            "rotate", "share_index", "stretch", "stretch_sway", "sway", "xnor")  # fmt: skip


def _convolutional(ctx: DarknetLowering) -> Blob:
    section, x = ctx.section, ctx.picture()
    for key in _REFUSED:
        if section.integer(key, 0, least=-(2**31)):
            raise section.error(key, f"{key} is not supported", f"{key}=0, or none")
    filters = section.integer("filters", 1, least=1)
    kernel = section.integer("size", 1, least=1, most=_MAX_SIDE)
    stride = section.integer("stride", 1, least=1, most=_MAX_SIDE)
    strides = [section.integer(f"stride_{axis}", stride, least=1) for axis in "yx"]
    dilation = section.integer("dilation", 1, least=1, most=_MAX_SIDE)
    pad = kernel // 2 if section.integer("pad", 0) else section.integer("padding", 0)
    pad *= dilation
    groups = section.integer("groups", 1, least=1)
    channels = x.shape[1]
    if channels % groups or filters % groups or pad > _MAX_SIDE:
        raise ctx.error(
            f"{channels} channels and {filters} filters in {groups} groups, padding {pad}",
            expected="both divisible by groups",
        )
    extent = dilation * (kernel - 1) + 1
    sides = [(n + 2 * pad - extent) // s + 1 for n, s in zip(x.shape[2:], strides, strict=True)]
    if any(n + 2 * pad < extent for n in x.shape[2:]):
        raise ctx.error(f"size {kernel} does not fit an input of {x.shape[2]} x {x.shape[3]}")
    norm, bias = None, np.zeros(filters, np.float32)
    if section.integer("batch_normalize", 0):
        bias = ctx.take("biases", filters)
        norm = _norm(ctx, filters)
    elif section.integer("bias", 1):
        bias = ctx.take("biases", filters)
    weight = ctx.take("weights", filters, channels // groups, kernel, kernel)
    weight, bias = _folded(weight, bias, norm)
    y = ctx.op(
        "Conv",
        [x, ctx.constant(weight, name="weight"), ctx.constant(bias, name="bias")],
        (x.shape[0], filters, *sides),
        kernel_shape=[kernel] * 2,
        strides=strides,
        pads=[pad] * 4,
        dilations=[dilation] * 2,
        group=groups,
    )
    return activate(ctx, y, "logistic")


Norm = tuple[npt.NDArray[np.float32], npt.NDArray[np.float32], npt.NDArray[np.float32]]


def _norm(ctx: DarknetLowering, count: int) -> Norm:
    names = ("scales", "means", "variances")
    scale, mean, variance = (ctx.take(name, count) for name in names)
    return scale, mean, variance


def _folded(
    weight: npt.NDArray[np.float32], bias: npt.NDArray[np.float32], norm: Norm | None
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """Weights and biases with the normalisation in them."""
    if norm is None:
        return weight, bias
    scale, mean, variance = (part.astype(np.float64) for part in norm)
    with np.errstate(all="ignore"):
        factor = scale / np.sqrt(variance + _EPSILON)
        spread = factor.reshape(-1, *(1,) * (weight.ndim - 1))
        return (weight * spread).astype(np.float32), (bias - mean * factor).astype(np.float32)


def _connected(ctx: DarknetLowering) -> Blob:
    outputs = ctx.section.integer("output", 1, least=1)
    inputs = size(ctx.x.shape[1:])
    bias = ctx.take("biases", outputs)
    if ctx.weights.transposed:
        weight = ctx.take("weights", inputs, outputs).T
    else:
        weight = ctx.take("weights", outputs, inputs)
    norm = _norm(ctx, outputs) if ctx.section.integer("batch_normalize", 0) else None
    weight, bias = _folded(weight, bias, norm)
    x = ctx.graph.reshape(ctx.x, (ctx.x.shape[0], inputs))
    terms = [x, ctx.constant(weight, name="weight"), ctx.constant(bias, name="bias")]
    return activate(ctx, ctx.op("Gemm", terms, (x.shape[0], outputs), transB=1), "logistic")


def _implicit(ctx: DarknetLowering) -> Blob:
    """Learnt numbers, one per channel, that other layers add or multiply."""
    filters = ctx.section.integer("filters", 1, least=1)
    if ctx.section.integer("atoms", 1, least=1) != 1:
        raise ctx.section.error("atoms", "several atoms are not supported", "atoms=1")
    return ctx.constant(ctx.take("weights", filters).reshape(1, filters, 1, 1), name="weight")


LOWERINGS: dict[str, Lower] = {
    "connected": _connected,
    "conn": _connected,
    "conv": _convolutional,
    "convolutional": _convolutional,
    "implicit": _implicit,
    "implicit_add": _implicit,
    "implicit_mul": _implicit,
}
