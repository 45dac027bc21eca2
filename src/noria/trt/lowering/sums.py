"""Reductions, top-k, soft-max, running sums, matrix products. Source: tensorrt-api spec 3.4."""

from __future__ import annotations

import numpy as np

from noria.trt.layers.base import ILayer
from noria.trt.lowering.fragment import Fragment, Inputs, LoweringError, lowers, required

MAX_K = 3840

_REDUCE = {
    "SUM": "ReduceSum", "PROD": "ReduceProd", "MAX": "ReduceMax", "MIN": "ReduceMin",
    "AVG": "ReduceMean",
}  # fmt: skip


def _one_axis(f: Fragment, mask: int, rank: int, what: str) -> int:
    axes = f.axes(mask, rank)
    if len(axes) != 1 or mask >> (rank - f.offset):
        raise LoweringError(f"{what} along the axes of mask {mask:#x} of {rank - f.offset} axes")
    return axes[0]


@lowers("REDUCE")
def reduce(f: Fragment, layer: ILayer, inputs: Inputs) -> list[str]:
    """Reduce over the axes of a mask."""
    x = required(inputs, 0)
    axes = f.axes(int(layer._params["axes"]), f.rank(x))
    if not axes:
        raise LoweringError(f"no axis of {f.rank(x) - f.offset} is in the mask")
    op = layer._params["op"].name
    if op not in _REDUCE:
        return [f.op("Identity", x)]
    return [f.reduce(_REDUCE[op], x, axes, keep=bool(layer._params["keep_dims"]))]


@lowers("TOPK")
def topk(f: Fragment, layer: ILayer, inputs: Inputs) -> list[str]:
    """Take the k greatest or smallest elements and their indices."""
    x = required(inputs, 0)
    axis = _one_axis(f, int(layer._params["axes"]), f.rank(x), "top-k")
    if len(inputs) > 1 and inputs[1] is not None:
        k = f.op("Reshape", f.cast(inputs[1], np.int64), f.ints(1))
    else:
        number, length = int(layer._params["k"]), f.shape(x)[axis]
        if not 1 <= number <= MAX_K or 0 <= length < number:
            raise LoweringError(f"the {number} greatest of {length}; at most {MAX_K}")
        k = f.ints(number)
    largest = int(layer._params["op"].name == "MAX")
    values, indices = f.ops("TopK", [x, k], 2, axis=axis, largest=largest, sorted=1)
    asked = layer._params.get("indices_type")
    return [values, f.cast(indices, np.int32 if asked is None else asked.numpy)]


@lowers("SOFTMAX")
def softmax(f: Fragment, layer: ILayer, inputs: Inputs) -> list[str]:
    """Normalise exponentials along one axis."""
    x = required(inputs, 0)
    rank = f.rank(x)
    mask = layer._params.get("axes")
    axis = max(f.offset, rank - 3) if mask is None else _one_axis(f, int(mask), rank, "soft-max")
    if f.opset >= 13 or axis == rank - 1:
        return [f.op("Softmax", x, axis=axis)]
    # before opset 13 all axes from the given one on are normalised as one
    order = [i for i in range(rank) if i != axis] + [axis]
    made = f.op("Softmax", f.transpose(x, order), axis=rank - 1)
    return [f.transpose(made, [order.index(i) for i in range(rank)])]


@lowers("RAGGED_SOFTMAX")
def ragged_softmax(f: Fragment, layer: ILayer, inputs: Inputs) -> list[str]:
    """Soft-max of the first `bounds` elements of each row; the rest become 0."""
    x, bounds = required(inputs, 0), required(inputs, 1)
    last = f.rank(x) - 1
    if last < 0:
        raise LoweringError("a soft-max of rows needs a tensor with an axis; this is a scalar")
    length = f.squeeze(f.extent(x, last), [0])
    places = f.op("Range", f.const(np.int64(0)), length, f.const(np.int64(1)))
    inside = f.op("Less", places, f.cast(bounds, np.int64))
    lowest = f.like(np.finfo(np.float32).min, x)
    made = f.op("Softmax", f.op("Where", inside, x, lowest), axis=last)
    return [f.op("Where", inside, made, f.like(0, x))]


@lowers("CUMULATIVE")
def cumulative(f: Fragment, layer: ILayer, inputs: Inputs) -> list[str]:
    """Sum up along an axis."""
    p = layer._params
    return [
        f.op(
            "CumSum", required(inputs, 0), required(inputs, 1), exclusive=int(p["exclusive"]),
            reverse=int(p["reverse"]),
        )
    ]  # fmt: skip


@lowers("MATRIX_MULTIPLY")
def matrix_multiply(f: Fragment, layer: ILayer, inputs: Inputs) -> list[str]:
    """Batched, leading axes broadcast; a VECTOR has one axis less than a matrix."""
    a, b = f.same_type(required(inputs, 0), required(inputs, 1))
    ops = [layer._params["op0"].name, layer._params["op1"].name]
    ranks = [f.rank(n) + (op == "VECTOR") for n, op in ((a, ops[0]), (b, ops[1]))]
    if ranks[0] != ranks[1] and not f.implicit:
        raise LoweringError(f"a matrix product of {f.rank(a)} and {f.rank(b)} axes ({ops})")
    if min(ranks) < 2:
        raise LoweringError("a matrix needs two axes")
    drop = []
    sides = []
    for side, (name, op) in enumerate(zip((a, b), ops, strict=True)):
        rank = f.rank(name)
        if op == "TRANSPOSE":
            name = f.transpose(name, [*range(rank - 2), rank - 1, rank - 2])
        elif op == "VECTOR":
            name = f.unsqueeze(name, [rank - 1 if side == 0 else rank])
            drop.append(-2 if side == 0 else -1)
        sides.append(name)
    made = f.op("MatMul", *sides)
    rank = f.rank(made)
    return [f.squeeze(made, sorted(rank + d for d in drop)) if drop else made]


@lowers("EINSUM")
def einsum(f: Fragment, layer: ILayer, inputs: Inputs) -> list[str]:
    """Compute Einstein's sum."""
    names = [required(inputs, i) for i in range(len(inputs))]
    return [f.op("Einsum", *names, equation=str(layer._params["equation"]))]
