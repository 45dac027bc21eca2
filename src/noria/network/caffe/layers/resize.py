"""Interp and Upsample: layers of common branches of Caffe that make pictures larger or smaller."""

from __future__ import annotations

import numpy as np

from noria.network.caffe.lowering import CaffeLowering, Lower
from noria.network.graph_builder import Blob

_MAX_SIDE = 2**16


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
    fields = ctx.fields("upsample_param")
    scale = fields.integer("scale", 2)
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


def _reaching(length: int, wanted: int, scale: float) -> float:
    """A float32 scale with floor(length * scale) equal to `wanted`, in either precision."""
    value = np.float32(scale)
    while int(length * float(value)) < wanted or int(np.float32(length) * value) < wanted:
        value = np.nextafter(value, np.float32(np.inf))
    return float(value)


LOWERINGS: dict[str, Lower] = {"Interp": _interp, "Upsample": _upsample}
