"""Operations on elements, reductions, soft-max."""

from __future__ import annotations

from collections.abc import Callable, Collection

import numpy as np

from headrace._core.types import Array
from headrace.network.graph_builder import Blob
from headrace.network.uff.lowering import Lower, UffLowering

_BINARY: dict[str, tuple[str, Callable[..., Array]]] = {
    "add": ("Add", np.add),
    "div": ("Div", np.divide),
    "max": ("Max", np.maximum),
    "min": ("Min", np.minimum),
    "mul": ("Mul", np.multiply),
    "pow": ("Pow", np.power),
    "sub": ("Sub", np.subtract),
}
_UNARY = {
    name: name.capitalize()
    for name in ("neg", "exp", "log", "abs", "sqrt", "sin", "cos", "tan", "sinh", "cosh", "asin",
                 "acos", "atan", "asinh", "acosh", "atanh", "ceil", "floor")
}  # fmt: skip
_ACTIVATION = {
    "elu": "Elu",
    "relu": "Relu",
    "selu": "Selu",
    "sigmoid": "Sigmoid",
    "softplus": "Softplus",
    "softsign": "Softsign",
    "tanh": "Tanh",
}
_REDUCE = {"sum": "ReduceSum", "prod": "ReduceProd", "max": "ReduceMax", "min": "ReduceMin",
           "mean": "ReduceMean"}  # fmt: skip


def _binary(ctx: UffLowering) -> Blob:
    ctx.count(2)
    name = _function(ctx, _BINARY)
    operator, function = _BINARY[name]
    a, b = ctx.inputs
    shape = ctx.broadcast(a.shape, b.shape)
    if ctx.folds(shape):
        with np.errstate(all="ignore"):
            if a.dtype.kind == b.dtype.kind == "i" and name == "div":
                function = np.floor_divide
            if name != "pow" or a.dtype.kind == "f":
                return ctx.constant(function(a.array, b.array), np.result_type(a.dtype, b.dtype))
    if a.dtype != b.dtype or a.dtype.kind != "f":
        raise ctx.error(f"{a.dtype} and {b.dtype}", expected="two tensors of floats")
    if b.array is not None and (turned := _with_vector(ctx, operator, a, b)) is not None:
        return turned
    return ctx.op(operator, [a, b], shape)


def _with_vector(ctx: UffLowering, operator: str, x: Blob, vector: Blob) -> Blob | None:
    """`x` and a constant along its last axis, done where `x` was turned from."""
    base = ctx.turns.base(x)
    if base is None or vector.array is None or vector.array.ndim > 1:
        return None
    if vector.array.size not in (1, x.shape[-1]):
        return None
    axis = base[1][-1]
    shape = (-1,) + (1,) * (base[0].rank - 1 - axis)
    term = ctx.constant(vector.array.reshape(shape))
    return ctx.elementwise(x, lambda b: ctx.same(operator, b, term))


def _unary(ctx: UffLowering) -> Blob:
    _floats(ctx)
    name = _function(ctx, sorted([*_UNARY, "square", "rsqrt"]))
    if name == "square":
        return ctx.elementwise(ctx.x, lambda x: ctx.same("Mul", x, x))
    if name == "rsqrt":
        return ctx.elementwise(ctx.x, lambda x: ctx.same("Reciprocal", ctx.same("Sqrt", x)))
    return ctx.elementwise(ctx.x, lambda x: ctx.same(_UNARY[name], x))


def _activation(ctx: UffLowering) -> Blob:
    _floats(ctx)
    name = _function(ctx, sorted([*_ACTIVATION, "relu6"]))
    if name == "relu6":
        low, high = ctx.constant(0.0), ctx.constant(6.0)
        return ctx.elementwise(ctx.x, lambda x: ctx.same("Clip", x, low, high))
    return ctx.elementwise(ctx.x, lambda x: ctx.same(_ACTIVATION[name], x))


def _leaky_relu(ctx: UffLowering) -> Blob:
    _floats(ctx)
    alpha = float(ctx.field("alpha", float, 0.2))
    return ctx.elementwise(ctx.x, lambda x: ctx.same("LeakyRelu", x, alpha=alpha))


def _function(ctx: UffLowering, known: Collection[str]) -> str:
    name: str = ctx.field("func", str)
    if name not in known:
        raise ctx.error(f"func {name!r}", expected=f"one of {', '.join(known)}")
    return name


def _floats(ctx: UffLowering) -> None:
    """Refuse a node but one of a single input, of floats."""
    ctx.count(1)
    if ctx.x.dtype.kind != "f":
        raise ctx.error(f"its input is {ctx.x.dtype}", expected="floats")


def _softmax(ctx: UffLowering) -> Blob:
    """Along the last axis, as TensorFlow's; the converter writes 0 for that."""
    _floats(ctx)
    axis = ctx.axis(ctx.field("axis", int, 0) or -1)
    ctx.fixed_length(ctx.x.shape, axis)
    return ctx.same("Softmax", ctx.x, axis=axis)


def _reduce(ctx: UffLowering) -> Blob:
    _floats(ctx)
    name = _function(ctx, _REDUCE)
    axes = ctx.field("axes", (list, int))
    axes = sorted({ctx.axis(a) for a in (axes if isinstance(axes, list) else [axes])})
    for axis in axes:
        ctx.fixed_length(ctx.x.shape, axis)
    keep = ctx.field("keepdims", (bool, int), False)
    shape = tuple(1 if i in axes else d for i, d in enumerate(ctx.x.shape) if keep or i not in axes)
    if name == "sum":
        inputs = [ctx.x, ctx.constant(axes, np.int64)]
        return ctx.op("ReduceSum", inputs, shape, keepdims=int(keep))
    return ctx.op(_REDUCE[name], [ctx.x], shape, axes=axes, keepdims=int(keep))


def _arg(operator: str) -> Lower:
    def lower(ctx: UffLowering) -> Blob:
        """Positions as floats, the form that a parser reads."""
        _floats(ctx)
        axis = ctx.axis(ctx.field("axis", int, 0))
        ctx.fixed_length(ctx.x.shape, axis)
        shape = (*ctx.x.shape[:axis], *ctx.x.shape[axis + 1 :])
        indices = ctx.op(operator, [ctx.x], shape, dtype=np.int64, axis=axis, keepdims=0)
        return ctx.op("Cast", [indices], shape, to=1)

    return lower


def _identity(ctx: UffLowering) -> Blob:
    ctx.count(1)
    return ctx.x


LOWERINGS: dict[str, Lower] = {
    "Activation": _activation,
    "ArgMax": _arg("ArgMax"),
    "ArgMin": _arg("ArgMin"),
    "Binary": _binary,
    "Identity": _identity,
    "LeakyRelu": _leaky_relu,
    "MarkOutput": _identity,
    "Reduce": _reduce,
    "Softmax": _softmax,
    "Unary": _unary,
}
