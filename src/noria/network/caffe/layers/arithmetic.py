"""Layers that combine inputs or sum over axes."""

from __future__ import annotations

import numpy as np

from noria.network.caffe.lowering import CaffeLowering, Lower
from noria.network.graph_builder import BATCH, Blob, shape_text, size


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
    "ArgMax": _argmax,
    "Axpy": _axpy,
    "Eltwise": _eltwise,
    "Reduction": _reduction,
    "Softmax": _softmax,
}
