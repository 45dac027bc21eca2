"""Constants, and operations that move elements; shapes that graphs compute are followed."""

from __future__ import annotations

from math import prod

import numpy as np

from headrace.network.graph_builder import BATCH, Blob, Shape, shape_text, size
from headrace.network.uff.lowering import Lower, UffLowering
from headrace.network.uff.proto import DTYPES


def _const(ctx: UffLowering) -> Blob:
    """Integers become int64, floats float32: one type of each is enough."""
    code = ctx.field("dtype", int)
    values, shape = ctx.field("values", memoryview), ctx.field("shape", list, [])
    if code not in DTYPES:
        raise ctx.error(f"element type {code}", expected="an integer or float type of the format")
    dtype = np.dtype(DTYPES[code])
    if any(d < 0 for d in shape) or len(shape) > 16 or prod(shape) * dtype.itemsize != len(values):
        raise ctx.error(f"{len(values)} bytes do not fill {shape[:16]} of {dtype}",
                        fix="the file is damaged: copy it again")  # fmt: skip
    if not values:
        raise ctx.error("it is empty")
    array = np.frombuffer(values, dtype.newbyteorder("<")).reshape(shape)
    return ctx.constant(array, np.float32 if dtype.kind == "f" else np.int64, name="values")


def _shape(ctx: UffLowering) -> Blob:
    """The lengths of the axes; the batch appears as -1, as later reshapes need it."""
    ctx.count(1)
    if any(d < BATCH for d in ctx.x.shape):
        raise ctx.error(f"the shape {shape_text(ctx.x.shape)} is not known")
    return ctx.constant(ctx.x.shape, np.int64)


def _reshape(ctx: UffLowering) -> Blob:
    """-1 stands for the batch where that is first, and for the rest elsewhere."""
    ctx.count(2)
    lengths = ctx.integers(1, "lengths")
    if any(d < -1 or d == 0 for d in lengths) or not lengths:
        raise ctx.error(f"lengths {lengths}", expected="-1 or more, not 0")
    return ctx.graph.reshape(ctx.x, _target(ctx, lengths))


def _target(ctx: UffLowering, lengths: list[int]) -> Shape:
    total = size(ctx.x.shape)
    if total > 0:  # no batch in it
        known = -prod(lengths) if -1 in lengths else prod(lengths)
        if lengths.count(-1) <= 1 and total % known == 0:
            return tuple(total // known if d == -1 else d for d in lengths)
    else:
        # a first length may be -1 or the batch that the graph was exported with
        rest = lengths[1:]
        first = prod(d for d in rest if d != -1)
        if rest.count(-1) == 1 and -total % first == 0:
            return (BATCH, *(-total // first if d == -1 else d for d in rest))
        if rest.count(-1) == 0 and total % first == 0:
            return (total // first, *rest)
    words = " x ".join("?" if d == -1 else str(d) for d in lengths)
    raise ctx.error(f"{shape_text(ctx.x.shape)} cannot become {words}")


def _transpose(ctx: UffLowering) -> Blob:
    ctx.count(1)
    order = ctx.field("permutation", list)
    if sorted(order) != list(range(ctx.x.rank)):
        raise ctx.error(f"permutation {order[:16]} of {ctx.x.rank} axes")
    return ctx.turns.turn(ctx.x, order)


def _concat(ctx: UffLowering) -> Blob:
    ctx.count(1, 2**16)
    axis = ctx.axis(ctx.field("axis", int, 0))
    shapes = [b.shape for b in ctx.inputs]
    rests = {(*s[:axis], *s[axis + 1 :]) for s in shapes}
    lengths = [s[axis] for s in shapes if len(s) > axis]
    if len(rests) > 1 or len({len(s) for s in shapes}) > 1 or min(lengths) < 0 < max(lengths):
        raise ctx.error(f"{'; '.join(map(shape_text, shapes[:4]))} do not join along axis {axis}")
    shape = (*shapes[0][:axis], sum(lengths), *shapes[0][axis + 1 :])
    if ctx.folds(shape):
        return _folded(ctx, np.concatenate(_arrays(ctx), axis))
    _refuse_integers(ctx, *ctx.inputs)
    return ctx.op("Concat", ctx.inputs, shape, axis=axis)


def _stack(ctx: UffLowering) -> Blob:
    ctx.count(1, 2**16)
    axis = ctx.axis(ctx.field("axis", int, 0), ctx.x.rank + 1)
    if any(b.shape != ctx.x.shape for b in ctx.inputs):
        raise ctx.error("the inputs have different shapes")
    shape = (*ctx.x.shape[:axis], len(ctx.inputs), *ctx.x.shape[axis:])
    if ctx.folds(shape):
        return _folded(ctx, np.stack(_arrays(ctx), axis))
    _refuse_integers(ctx, *ctx.inputs)
    one = (*ctx.x.shape[:axis], 1, *ctx.x.shape[axis:])
    return ctx.op("Concat", [ctx.graph.reshape(b, one) for b in ctx.inputs], shape, axis=axis)


def _arrays(ctx: UffLowering) -> list[np.ndarray]:
    return [b.array for b in ctx.inputs if b.array is not None]


def _folded(ctx: UffLowering, array: np.ndarray) -> Blob:
    return ctx.constant(array, np.float32 if array.dtype.kind == "f" else np.int64)


def _refuse_integers(ctx: UffLowering, *blobs: Blob) -> None:
    if any(b.dtype != np.float32 for b in blobs):
        raise ctx.error("tensors of integers are computed", expected="floats")


def _expand_dims(ctx: UffLowering) -> Blob:
    ctx.count(1)
    axis = ctx.axis(ctx.field("axis", int, 0), ctx.x.rank + 1)
    return ctx.graph.reshape(ctx.x, (*ctx.x.shape[:axis], 1, *ctx.x.shape[axis:]))


def _squeeze(ctx: UffLowering) -> Blob:
    ctx.count(1)
    axes = [ctx.axis(a) for a in ctx.field("axes", list, [])]
    axes = axes or [i for i, d in enumerate(ctx.x.shape) if d == 1]
    if any(ctx.x.shape[a] != 1 for a in axes):
        raise ctx.error(f"axes {axes} of {shape_text(ctx.x.shape)} are not all 1 long")
    return ctx.graph.reshape(ctx.x, tuple(d for i, d in enumerate(ctx.x.shape) if i not in axes))


def _pad(ctx: UffLowering) -> Blob:
    ctx.count(2)
    widths = ctx.array(1, "widths")
    if widths.shape != (ctx.x.rank, 2) or widths.dtype.kind != "i" or ctx.x.dtype != np.float32:
        raise ctx.error(f"widths {widths.shape} for {ctx.x.rank} axes", expected="two for each")
    pairs = [(int(a), int(b)) for a, b in widths]
    shape = []
    for length, (a, b) in zip(ctx.x.shape, pairs, strict=True):
        if not (0 <= a < 2**31 and 0 <= b < 2**31) or (length < 0 and (a or b)):
            raise ctx.error(f"widths {pairs}", expected="0 or more, and none for the batch")
        shape.append(length + a + b)
    flat = [a for a, _ in pairs] + [b for _, b in pairs]
    return ctx.op("Pad", [ctx.x, ctx.constant(flat, np.int64)], tuple(shape))


def _strided_slice(ctx: UffLowering) -> Blob:
    """Inputs: data, first, end, steps; bits of the masks say which of them do not count."""
    ctx.count(4)
    begin, end, step = (ctx.integers(i, "bounds") for i in (1, 2, 3))
    if not len(begin) == len(end) == len(step) <= ctx.x.rank or 0 in step:
        raise ctx.error(f"{len(begin)} bounds for {ctx.x.rank} axes")
    masks = [ctx.field(n, int, 0) for n in ("begin_mask", "end_mask", "shrink_axis_mask")]
    cuts: list[slice] = []
    shape, squeezed = list(ctx.x.shape), []
    for i in range(len(begin)):
        free_begin, free_end, shrink = (bool(m >> i & 1) for m in masks)
        if ctx.x.shape[i] < 0:
            if shrink or step[i] != 1 or not (free_begin or begin[i] == 0) or not free_end:
                raise ctx.error("it cuts the batch", expected="all items")
            cuts.append(slice(None))
            continue
        cut = slice(None if free_begin else begin[i], None if free_end else end[i], step[i])
        if shrink:
            cut = slice(begin[i], begin[i] + 1 or None, 1)
            squeezed.append(i)
        cuts.append(cut)
        shape[i] = len(range(*cut.indices(ctx.x.shape[i])))
    if 0 in shape:
        raise ctx.error(f"nothing of {shape_text(ctx.x.shape)} is left between its bounds")
    kept = tuple(d for i, d in enumerate(shape) if i not in squeezed)
    if ctx.x.array is not None and ctx.folds(kept):
        return _folded(ctx, ctx.x.array[tuple(cuts)].reshape(kept))
    _refuse_integers(ctx, ctx.x)
    y = ctx.x
    for i, cut in enumerate(cuts):
        if cut == slice(None) or (shape[i] == ctx.x.shape[i] and cut.step == 1):
            continue
        a, b, s = cut.indices(ctx.x.shape[i])
        if s < 0 and b < 0:
            b = -(2**31)  # behind the first element, which -1 would not be
        bounds = [ctx.constant([v], np.int64) for v in (a, b, i, s)]
        y = ctx.op("Slice", [y, *bounds], (*y.shape[:i], shape[i], *y.shape[i + 1 :]))
    return ctx.graph.reshape(y, kept)


def _gather(ctx: UffLowering) -> Blob:
    ctx.count(2)
    indices = ctx.array(1, "indices")
    axis = ctx.axis(ctx.field("axis", int, 0))
    length = ctx.fixed_length(ctx.x.shape, axis)
    if indices.dtype.kind != "i" or indices.min() < 0 or indices.max() >= length:
        raise ctx.error(f"indices beyond an axis of {length}")
    shape = (*ctx.x.shape[:axis], *indices.shape, *ctx.x.shape[axis + 1 :])
    if ctx.x.array is not None and ctx.folds(shape):
        return _folded(ctx, np.take(ctx.x.array, indices, axis))
    _refuse_integers(ctx, ctx.x)
    return ctx.op("Gather", [ctx.x, ctx.inputs[1]], shape, axis=axis)


LOWERINGS: dict[str, Lower] = {
    "Concat": _concat,
    "Const": _const,
    "ExpandDims": _expand_dims,
    "Gather": _gather,
    "GatherV2": _gather,
    "Pad": _pad,
    "Reshape": _reshape,
    "Shape": _shape,
    "Squeeze": _squeeze,
    "Stack": _stack,
    "StridedSlice": _strided_slice,
    "Transpose": _transpose,
}
