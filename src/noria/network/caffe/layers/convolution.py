"""Convolution, Deconvolution, InnerProduct."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from noria.network.caffe.lowering import CaffeLowering, Lower
from noria.network.caffe.reading import Fields
from noria.network.graph_builder import Blob

_MAX_SIDE = 2**16


def per_axis(
    ctx: CaffeLowering,
    fields: Fields,
    name: str,
    count: int,
    default: int | None,
    names: tuple[str, str],
) -> list[int]:
    """A size for each spatial axis: `name` once or once per axis, or `names` for height, width."""
    values = fields.integers(name)
    h, w = (fields.integer(n) if fields.has(n) else None for n in names)
    if h is not None or w is not None:
        if values or count != 2:
            raise ctx.error(f"{names[0]} and {names[1]} stand beside {name}", expected="one form")
        values = [default or 0 if h is None else h, default or 0 if w is None else w]
    if not values:
        if default is None:
            raise ctx.error(f"{name} is not given")
        values = [default]
    if len(values) == 1:
        values = values * count
    least = 0 if name == "pad" else 1
    if len(values) != count or any(not least <= v <= _MAX_SIDE for v in values):
        raise ctx.error(
            f"{name} is {', '.join(map(str, values))}",
            expected=f"{count} numbers from {least} to {_MAX_SIDE}",
        )
    return values


def _sizes(ctx: CaffeLowering, fields: Fields) -> tuple[list[int], list[int], list[int], list[int]]:
    axis = ctx.axis(fields.integer("axis", 1))
    if axis != 1:
        raise ctx.error(f"axis: {axis}", expected="1: channels follow the batch")
    count = ctx.x.rank - 2
    if count < 1:
        raise ctx.error(f"the input has {ctx.x.rank} axes", expected="batch, channels, and a size")
    kernel = per_axis(ctx, fields, "kernel_size", count, None, ("kernel_h", "kernel_w"))
    stride = per_axis(ctx, fields, "stride", count, 1, ("stride_h", "stride_w"))
    pad = per_axis(ctx, fields, "pad", count, 0, ("pad_h", "pad_w"))
    dilation = per_axis(ctx, fields, "dilation", count, 1, ("dilation_h", "dilation_w"))
    return kernel, stride, pad, dilation


def _convolution(
    ctx: CaffeLowering, *, transposed: bool = False, depthwise: bool = False
) -> list[Blob]:
    ctx.count(1)
    fields = ctx.fields("convolution_param")
    kernel, stride, pad, dilation = _sizes(ctx, fields)
    channels = ctx.fixed_length(ctx.x.shape, 1, "convolves")
    outputs = fields.integer("num_output")
    group = fields.integer("group", 1)
    if depthwise:
        outputs = outputs or channels
        group = channels
    if outputs < 1 or group < 1 or channels % group or outputs % group:
        raise ctx.error(
            f"num_output {outputs}, group {group}, {channels} input channels",
            expected="num_output and input channels divisible by group",
        )
    first, second = (channels, outputs // group) if transposed else (outputs, channels // group)
    weight = ctx.weight(0, (first, second, *kernel), name="weights")
    inputs = [ctx.x, ctx.constant(weight, name="weight")]
    if fields.flag("bias_term", True):
        inputs.append(ctx.constant(ctx.weight(1, (outputs,), name="bias"), name="bias"))
    sides = []
    zipped = zip(ctx.x.shape[2:], kernel, stride, pad, dilation, strict=True)
    for length, k, s, p, d in zipped:
        extent = d * (k - 1) + 1
        if transposed:
            sides.append(s * (length - 1) + extent - 2 * p)
        else:
            sides.append((length + 2 * p - extent) // s + 1)
    if any(side < 1 for side in sides):
        raise ctx.error(f"the kernel {kernel} does not fit the input {list(ctx.x.shape[2:])}")
    return [
        ctx.op(
            "ConvTranspose" if transposed else "Conv",
            inputs,
            (ctx.x.shape[0], outputs, *sides),
            kernel_shape=kernel,
            strides=stride,
            pads=pad * 2,
            dilations=dilation,
            group=group,
        )
    ]


def _inner_product(ctx: CaffeLowering) -> list[Blob]:
    ctx.count(1)
    fields = ctx.fields("inner_product_param")
    axis = ctx.axis(fields.integer("axis", 1))
    outputs = fields.integer("num_output")
    if outputs < 1:
        raise ctx.error(f"num_output: {outputs}", expected="at least 1")
    if axis == 0:
        ctx.fixed_length(ctx.x.shape, 0, "multiplies")
    inner = prod(ctx.x.shape[axis:])
    transposed = fields.flag("transpose", False)
    shape = (inner, outputs) if transposed else (outputs, inner)
    weight = ctx.weight(0, shape, name="weights")
    inputs = [ctx.graph.reshape(ctx.x, (prod(ctx.x.shape[:axis]), inner))]
    inputs.append(ctx.constant(weight, name="weight"))
    if fields.flag("bias_term", True):
        inputs.append(ctx.constant(ctx.weight(1, (outputs,), name="bias"), name="bias"))
    flat = (inputs[0].shape[0], outputs)
    y = ctx.op("Gemm", inputs, flat, transB=0 if transposed else 1)
    return [ctx.graph.reshape(y, (*ctx.x.shape[:axis], outputs))]


def _deconvolution(ctx: CaffeLowering) -> Sequence[Blob]:
    return _convolution(ctx, transposed=True)


def _depthwise(ctx: CaffeLowering) -> Sequence[Blob]:
    return _convolution(ctx, depthwise=True)


LOWERINGS: dict[str, Lower] = {
    "Convolution": _convolution,
    "ConvolutionDepthwise": _depthwise,
    "Deconvolution": _deconvolution,
    "DepthwiseConvolution": _depthwise,
    "InnerProduct": _inner_product,
}
