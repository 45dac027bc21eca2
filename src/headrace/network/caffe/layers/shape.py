"""Layers that move elements: join, cut, reshape, reorder."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from headrace.network.caffe.lowering import CaffeLowering, Lower
from headrace.network.graph_builder import BATCH, Blob, Shape, shape_text, size

_MAX_RANK = 32  # Caffe's own limit


def _concat(ctx: CaffeLowering) -> list[Blob]:
    ctx.count(1, 2**16)
    fields = ctx.fields("concat_param")
    name = "concat_dim" if fields.has("concat_dim") else "axis"
    axis = ctx.axis(fields.integer(name, 1), name=name)
    if len(ctx.inputs) == 1:
        return [ctx.x]
    rest = _without(ctx.x.shape, axis)
    for other in ctx.inputs[1:]:
        if other.rank != ctx.x.rank or _without(other.shape, axis) != rest:
            raise ctx.error(
                f"the inputs differ: {shape_text(ctx.x.shape)} and {shape_text(other.shape)}",
                expected=f"the same shape but for axis {axis}",
            )
    lengths = [b.shape[axis] for b in ctx.inputs]
    if min(lengths) < 0 < max(lengths):
        raise ctx.error("it joins the batch with a fixed number of items")
    if all(b.array is not None for b in ctx.inputs):
        arrays = [b.array for b in ctx.inputs if b.array is not None]
        return [ctx.constant(np.concatenate(arrays, axis), arrays[0].dtype)]
    shape = (*ctx.x.shape[:axis], sum(lengths), *ctx.x.shape[axis + 1 :])
    return [ctx.op("Concat", ctx.inputs, shape, axis=axis)]


def _without(shape: Shape, axis: int) -> Shape:
    return (*shape[:axis], *shape[axis + 1 :])


def _slice(ctx: CaffeLowering) -> list[Blob]:
    ctx.count(1)
    fields = ctx.fields("slice_param")
    name = "slice_dim" if fields.has("slice_dim") else "axis"
    axis = ctx.axis(fields.integer(name, 1), name=name)
    length = ctx.fixed_length(ctx.x.shape, axis, "slices")
    points, count = fields.integers("slice_point"), len(ctx.layer.tops)
    if not points:
        if count == 0 or length % count:
            raise ctx.error(f"{length} channels do not divide into {count} tops")
        points = [length // count * i for i in range(1, count)]
    bounds = [0, *points, length]
    if len(points) != count - 1 or any(a >= b for a, b in pairwise(bounds)):
        raise ctx.error(
            f"slice_point {', '.join(map(str, points))} for {count} tops of an axis of {length}",
            expected="one rising point less than tops",
        )
    return [ctx.graph.slice(ctx.x, axis, a, b) for a, b in pairwise(bounds)]


def _split(ctx: CaffeLowering) -> list[Blob]:
    ctx.count(1)
    return [ctx.x] * len(ctx.layer.tops)


def _reshape(ctx: CaffeLowering) -> list[Blob]:
    """Reshape: 0 copies an axis, -1 takes the rest.

    An axis that repeats the batch of the text stays the batch: networks are written for one
    image and run for many.
    """
    ctx.count(1)
    fields = ctx.fields("reshape_param")
    dims = fields.message("shape").integers("dim")
    start = fields.integer("axis")
    start = start + ctx.x.rank + 1 if start < 0 else start
    count = fields.integer("num_axes", -1)
    end = ctx.x.rank if count == -1 else start + count
    if not 0 <= start <= end <= ctx.x.rank or len(dims) > _MAX_RANK:
        raise ctx.error(f"axis and num_axes do not fit an input of {ctx.x.rank} axes")
    replaced = ctx.x.shape[start:end]
    shape: list[int | None] = []
    for i, dim in enumerate(dims):
        if dim == 0:
            if i >= len(replaced):
                raise ctx.error(f"dim {i} copies an axis that the input does not have")
            shape.append(replaced[i])
        elif dim == -1:
            shape.append(None)
        elif dim < 0:
            raise ctx.error(f"dim: {dim}", expected="-1, 0 or a length")
        elif start + i == 0 and ctx.x.shape[:1] == (BATCH,) and dim == ctx.batch:
            shape.append(BATCH)
        else:
            shape.append(dim)
    return [ctx.graph.reshape(ctx.x, _infer(ctx, ctx.x.shape[:start], shape, ctx.x.shape[end:]))]


def _infer(ctx: CaffeLowering, before: Shape, inside: list[int | None], after: Shape) -> Shape:
    known = size(before) * size(after) * size(tuple(d for d in inside if d is not None))
    total = size(ctx.x.shape)
    missing = inside.count(None)
    # one sign for the batch: a quotient above 0 holds no batch, one below is a multiple of it
    if missing > 1 or (missing == 0 and known != total) or total % known:
        words = " x ".join(
            "?" if d is None else shape_text((d,)) for d in (*before, *inside, *after)
        )
        raise ctx.error(f"{shape_text(ctx.x.shape)} cannot become {words}")
    return (*before, *(total // known if d is None else d for d in inside), *after)


def _flatten(ctx: CaffeLowering) -> list[Blob]:
    ctx.count(1)
    fields = ctx.fields("flatten_param")
    first, last = ctx.axis(fields.integer("axis", 1)), ctx.axis(fields.integer("end_axis", -1))
    if first > last:
        raise ctx.error(f"axis {first} is behind end_axis {last}")
    shape = ctx.x.shape
    return [ctx.graph.reshape(ctx.x, (*shape[:first], size(shape[first : last + 1]),
                                      *shape[last + 1 :]))]  # fmt: skip


def _permute(ctx: CaffeLowering) -> list[Blob]:
    """Axes that `order` does not name follow in their own order."""
    ctx.count(1)
    order = ctx.fields("permute_param").integers("order")
    if len(set(order)) != len(order) or any(not 0 <= i < ctx.x.rank for i in order):
        raise ctx.error(f"order {', '.join(map(str, order))} of {ctx.x.rank} axes")
    order += [i for i in range(ctx.x.rank) if i not in order]
    return [ctx.graph.transpose(ctx.x, order)]


def _crop(ctx: CaffeLowering) -> list[Blob]:
    """The first input cut to the size of the second, from `axis` on."""
    ctx.count(2)
    fields = ctx.fields("crop_param")
    axis, offsets = ctx.axis(fields.integer("axis", 2)), fields.integers("offset")
    target, count = ctx.inputs[1].shape, ctx.x.rank - axis
    if len(offsets) not in (0, 1, count) or ctx.inputs[1].rank != ctx.x.rank:
        raise ctx.error(f"{len(offsets)} offsets for {count} axes", expected=f"0, 1 or {count}")
    offsets = offsets * count if len(offsets) == 1 else offsets or [0] * count
    y = ctx.x
    for i, offset in zip(range(axis, ctx.x.rank), offsets, strict=True):
        if ctx.x.shape[i] == target[i] and offset == 0:
            continue
        length = ctx.fixed_length(ctx.x.shape, i, "cuts")
        target_length = ctx.fixed_length(target, i, "cuts to")
        if not 0 <= offset <= length - target_length:
            raise ctx.error(f"offset {offset} and length {target_length} of an axis of {length}")
        y = ctx.graph.slice(y, i, offset, offset + target_length)
    return [y]


def _tile(ctx: CaffeLowering) -> list[Blob]:
    ctx.count(1)
    fields = ctx.fields("tile_param")
    axis, tiles = ctx.axis(fields.integer("axis", 1)), fields.integer("tiles")
    if tiles < 1:
        raise ctx.error(f"tiles: {tiles}", expected="at least 1")
    shape = (*ctx.x.shape[:axis], ctx.x.shape[axis] * tiles, *ctx.x.shape[axis + 1 :])
    repeats = [tiles if i == axis else 1 for i in range(ctx.x.rank)]
    return [ctx.op("Tile", [ctx.x, ctx.constant(repeats, np.int64)], shape)]


def _shuffle_channel(ctx: CaffeLowering) -> list[Blob]:
    """Channels of each group in turn (ShuffleNet)."""
    ctx.count(1)
    group = ctx.fields("shuffle_channel_param").integer("group", 1)
    channels = ctx.fixed_length(ctx.x.shape, 1, "shuffles")
    if group < 1 or channels % group:
        raise ctx.error(f"group {group} of {channels} channels")
    shape = ctx.x.shape
    parts = ctx.graph.reshape(ctx.x, (shape[0], group, channels // group, *shape[2:]))
    order = [0, 2, 1, *range(3, parts.rank)]
    return [ctx.graph.reshape(ctx.graph.transpose(parts, order), shape)]


def _silence(ctx: CaffeLowering) -> Sequence[Blob]:
    return []


LOWERINGS: dict[str, Lower] = {
    "Concat": _concat,
    "Crop": _crop,
    "Flatten": _flatten,
    "Permute": _permute,
    "Reshape": _reshape,
    "ShuffleChannel": _shuffle_channel,
    "Silence": _silence,
    "Slice": _slice,
    "Split": _split,
    "Tile": _tile,
}
