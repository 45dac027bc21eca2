"""Convolution, inner product, pooling and resizing.

Pooling follows Caffe's rules: sizes rounded up, windows clipped, averages that count the padding.
"""

from __future__ import annotations

from functools import partial
from math import prod

import numpy as np

from headrace.network.caffe.fields import Fields
from headrace.network.caffe.lowering import CaffeLowering, Lower
from headrace.network.graph_builder import Blob

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


def _convolution_sizes(
    ctx: CaffeLowering, fields: Fields
) -> tuple[list[int], list[int], list[int], list[int]]:
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
    kernel, stride, pad, dilation = _convolution_sizes(ctx, fields)
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
    y = ctx.op("Gemm", inputs, (inputs[0].shape[0], outputs), transB=0 if transposed else 1)
    return [ctx.graph.reshape(y, (*ctx.x.shape[:axis], outputs))]


def _pooled_side(length: int, kernel: int, stride: int, pad: int, *, ceil: bool, clip: bool) -> int:
    """Return the length of an axis after pooling.

    Source: Caffe's rule: with padding on either axis, a window that would begin behind the input
    and its first padding is dropped.
    """
    steps = length + 2 * pad - kernel
    side = (-(-steps // stride) if ceil else steps // stride) + 1
    if clip and (side - 1) * stride >= length + pad:
        side -= 1
    return side


def _pooling(ctx: CaffeLowering) -> list[Blob]:
    ctx.count(1)
    x = ctx.x
    if x.rank != 4 or len(ctx.layer.tops) > 1:
        what = f"{x.rank} axes" if x.rank != 4 else "a second top (the positions of the maxima)"
        raise ctx.error(f"pooling with {what}", expected="four axes and one top")
    fields = ctx.fields("pooling_param")
    method = fields.choice("pool", ["MAX", "AVE", "STOCHASTIC"])
    if method == "STOCHASTIC":
        raise ctx.error("stochastic pooling draws lots", expected="pool: MAX or AVE")
    kernel, stride, pad = _pool_sizes(ctx, fields)
    ceil = fields.choice("round_mode", ["CEIL", "FLOOR"]) == "CEIL"
    ceil = fields.flag("ceil_mode", ceil)
    sides, after = [], []
    for length, k, s, p in zip(x.shape[2:], kernel, stride, pad, strict=True):
        if p >= k or k > length + 2 * p:
            raise ctx.error(
                f"kernel {k} and pad {p} on an axis of {length}",
                expected="a pad smaller than the kernel, and a kernel that fits",
            )
        side = _pooled_side(length, k, s, p, ceil=ceil, clip=any(pad))
        if (side - 1) * s >= length + p:
            raise ctx.error(f"the last window of an axis of {length} lies outside of it")
        sides.append(side)
        after.append(max(0, (side - 1) * s + k - length - 2 * p))
    shape = (*x.shape[:2], *sides)
    if method == "AVE":
        return [average(ctx, x, shape, kernel, stride, pad, after)]
    ends = [p + a for p, a in zip(pad, after, strict=True)]
    return [ctx.op("MaxPool", [x], shape, kernel_shape=kernel, strides=stride, pads=[*pad, *ends])]


def _pool_sizes(ctx: CaffeLowering, fields: Fields) -> tuple[list[int], list[int], list[int]]:
    pad = per_axis(ctx, fields, "pad", 2, 0, ("pad_h", "pad_w"))
    stride = per_axis(ctx, fields, "stride", 2, 1, ("stride_h", "stride_w"))
    if fields.flag("global_pooling", False):
        if any(pad) or stride != [1, 1] or fields.has("kernel_size"):
            raise ctx.error("global_pooling with a kernel, pad or stride", expected="none of them")
        return list(ctx.x.shape[2:]), stride, pad
    kernel = per_axis(ctx, fields, "kernel_size", 2, None, ("kernel_h", "kernel_w"))
    return kernel, stride, pad


def average(
    ctx: CaffeLowering,
    x: Blob,
    shape: tuple[int, ...],
    kernel: list[int],
    stride: list[int],
    pad: list[int],
    after: list[int],
) -> Blob:
    """Average pooling that counts the zeros of `pad`, but nothing beyond it (`after`).

    The zeros are put there by a node of their own, since runtimes disagree on what they count.
    """
    if any(pad):
        h, w = x.shape[2] + 2 * pad[0], x.shape[3] + 2 * pad[1]
        pads = ctx.constant([0, 0, *pad, 0, 0, *pad], int)
        x = ctx.op("Pad", [x, pads], (*x.shape[:2], h, w))
    return ctx.op(
        "AveragePool",
        [x],
        shape,
        kernel_shape=kernel,
        strides=stride,
        pads=[0, 0, *after],
        count_include_pad=0,
    )


def _interp(ctx: CaffeLowering) -> list[Blob]:
    """Bilinear with the corners on each other. Source: the layer of DeepLab and PSPNet."""
    ctx.count(1, 2)
    fields = ctx.fields("interp_param")
    begin, end = fields.integer("pad_beg"), fields.integer("pad_end")
    shrink, zoom = fields.integer("shrink_factor", 1), fields.integer("zoom_factor", 1)
    height, width = fields.integer("height"), fields.integer("width")
    if ctx.x.rank != 4 or begin > 0 or end > 0 or shrink < 1 or zoom < 1:
        raise ctx.error("pads above 0, factors below 1, or an input without four axes",
                        expected="pads of 0 or less (they crop), factors of 1 or more")  # fmt: skip
    x = ctx.x
    for axis in (2, 3):
        if begin or end:
            length = x.shape[axis]
            if -begin - end >= length:
                raise ctx.error(f"the pads crop all {length} of axis {axis}")
            x = ctx.graph.slice(x, axis, -begin, length + end)
    if len(ctx.inputs) == 2:
        sides = list(ctx.inputs[1].shape[2:])
    elif height or width:
        sides = [height, width]
    else:
        sides = [(n - 1) // shrink + 1 for n in x.shape[2:]]
        sides = [n + (n - 1) * (zoom - 1) for n in sides]
    return [_resize(ctx, x, sides, mode="linear", coordinate_transformation_mode="align_corners")]


def _upsample(ctx: CaffeLowering) -> list[Blob]:
    """Every element repeated `scale` times in both directions."""
    if len(ctx.inputs) > 1:
        raise ctx.error(
            "upsampling to stored positions (SegNet) is not supported",
            expected="one input: each element is repeated",
        )
    ctx.count(1)
    scale = ctx.fields("upsample_param").integer("scale", 2)
    if scale < 1 or ctx.x.rank != 4:
        raise ctx.error(f"scale {scale} on {ctx.x.rank} axes", expected="1 or more, four axes")
    sides = [n * scale for n in ctx.x.shape[2:]]
    return [
        _resize(
            ctx,
            ctx.x,
            sides,
            mode="nearest",
            nearest_mode="floor",
            coordinate_transformation_mode="asymmetric",
        )
    ]


def _resize(ctx: CaffeLowering, x: Blob, sides: list[int], **how: str) -> Blob:
    if any(not 1 <= n <= _MAX_SIDE for n in sides):
        raise ctx.error(f"the result would be {sides[0]} x {sides[1]}",
                        expected=f"sides from 1 to {_MAX_SIDE}")  # fmt: skip
    if list(x.shape[2:]) == sides:
        return x
    # scales rather than sizes: sizes would have to repeat the batch
    scales = [1, 1, *(b / a for a, b in zip(x.shape[2:], sides, strict=True))]
    scales = [_reaching(a, b, s) for a, b, s in zip((1, 1, *x.shape[2:]), (1, 1, *sides), scales,
                                                    strict=True)]  # fmt: skip
    inputs = [x, None, ctx.constant(scales)]
    return ctx.graph.node("Resize", inputs, (*x.shape[:2], *sides), **how)


def _reaching(length: int, target: int, scale: float) -> float:
    """A float32 scale with floor(length * scale) equal to `target`, in either precision."""
    value = np.float32(scale)
    while int(length * float(value)) < target or int(np.float32(length) * value) < target:
        value = np.nextafter(value, np.float32(np.inf))
    return float(value)


LOWERINGS: dict[str, Lower] = {
    "Convolution": _convolution,
    "ConvolutionDepthwise": partial(_convolution, depthwise=True),
    "Deconvolution": partial(_convolution, transposed=True),
    "DepthwiseConvolution": partial(_convolution, depthwise=True),
    "InnerProduct": _inner_product,
    "Interp": _interp,
    "Pooling": _pooling,
    "Upsample": _upsample,
}
