"""Pooling by Caffe's rules: sizes rounded up, windows clipped, averages that count the padding."""

from __future__ import annotations

from noria.network.caffe.layers.convolution import per_axis
from noria.network.caffe.lowering import CaffeLowering, Lower
from noria.network.caffe.reading import Fields
from noria.network.graph_builder import Blob


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
    kernel, stride, pad = _sizes(ctx, fields)
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


def _sizes(ctx: CaffeLowering, fields: Fields) -> tuple[list[int], list[int], list[int]]:
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


LOWERINGS: dict[str, Lower] = {"Pooling": _pooling}
