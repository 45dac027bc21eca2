"""Computing small tensors of which some elements may be unknown.

Values are NumPy arrays; unknown elements are NaN in a float64 array, which every operation here
carries on. That is enough for what models do with shapes: take axes, join and scale them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from headrace._core.types import Array

if TYPE_CHECKING:
    import numpy.typing as npt


Value = Array
Attributes = Mapping[str, Any]
_Inputs: TypeAlias = Sequence[Any]
_Operation = Callable[[_Inputs, Attributes], object]


def compute(op: str, inputs: Sequence[Value | None], attributes: Attributes) -> Value | None:
    """The output of an ONNX operator; None if it is not one that is followed here."""
    operation = _OPERATIONS.get(op)
    if operation is None:
        return None
    try:
        with np.errstate(all="ignore"):
            return np.asarray(operation(inputs, attributes))
    except (ValueError, IndexError, TypeError, OverflowError):
        return None


def _axes(inputs: _Inputs, attributes: Attributes) -> tuple[int, ...] | None:
    if len(inputs) > 1 and inputs[1] is not None:
        return tuple(int(i) for i in inputs[1].reshape(-1))
    axes = attributes.get("axes")
    return None if axes is None else tuple(int(i) for i in axes)


def _binary(function: Callable[[Any, Any], npt.ArrayLike]) -> _Operation:
    def run(inputs: _Inputs, attributes: Attributes) -> Value:
        a, b = inputs
        return np.asarray(function(a, b))

    return run


def _compared(function: Callable[[Any, Any], npt.ArrayLike]) -> _Operation:
    def run(inputs: _Inputs, attributes: Attributes) -> Value:
        a, b = inputs
        result = np.asarray(function(a, b))
        unknown = _unknown(a) | _unknown(b)
        return np.where(unknown, np.nan, result.astype(np.float64)) if unknown.any() else result

    return run


def _unknown(value: Value) -> Value:
    return np.isnan(value) if value.dtype.kind == "f" else np.zeros(value.shape, np.bool_)


def _divide(a: Value, b: Value) -> Value:
    if a.dtype.kind in "iu" and b.dtype.kind in "iu":
        return np.asarray(np.trunc(a / b)).astype(a.dtype)
    return a / b


def _int_divide(inputs: _Inputs, attributes: Attributes) -> Value:
    a, b = inputs
    partial = attributes.get("_integer") and np.float64 in (a.dtype, b.dtype)
    return np.trunc(a / b) if partial else _divide(a, b)


def _unary(function: Callable[[Any], object]) -> _Operation:
    def run(inputs: _Inputs, attributes: Attributes) -> Value:
        return np.asarray(function(inputs[0]))

    return run


def _gather(inputs: _Inputs, attributes: Attributes) -> object:
    data, indices = inputs
    if _unknown(indices).any():
        raise ValueError("unknown indices")
    return np.take(data, indices.astype(np.int64), axis=int(attributes.get("axis", 0)))


def _concat(inputs: _Inputs, attributes: Attributes) -> Value:
    return np.concatenate([v for v in inputs if v is not None], axis=int(attributes["axis"]))


def _slice(inputs: _Inputs, attributes: Attributes) -> object:
    data = inputs[0]
    if len(inputs) == 1:
        starts, ends = list(attributes["starts"]), list(attributes["ends"])
        axes = list(attributes.get("axes", range(len(starts))))
        steps = [1] * len(starts)
    else:
        parts: list[Any] = [
            None if v is None else [int(i) for i in v.reshape(-1)] for v in inputs[1:]
        ]
        parts += [None] * (4 - len(parts))
        starts, ends = parts[0], parts[1]
        axes = parts[2] if parts[2] is not None else list(range(len(starts)))
        steps = parts[3] if parts[3] is not None else [1] * len(starts)
    cut = [slice(None)] * data.ndim
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        stop = None if step < 0 and end < -data.shape[axis] else end
        cut[axis] = slice(start, stop, step)
    return data[tuple(cut)]


def _unsqueeze(inputs: _Inputs, attributes: Attributes) -> object:
    axes: Any = _axes(inputs, attributes)
    return np.expand_dims(inputs[0], axes)


def _squeeze(inputs: _Inputs, attributes: Attributes) -> object:
    return np.squeeze(inputs[0], _axes(inputs, attributes))


def _reshape(inputs: _Inputs, attributes: Attributes) -> object:
    data, shape = inputs
    target = [int(d) for d in shape]
    if not attributes.get("allowzero"):
        target = [data.shape[i] if d == 0 else d for i, d in enumerate(target)]
    return data.reshape(target)


def _reduce(function: Callable[..., npt.ArrayLike]) -> _Operation:
    def run(inputs: _Inputs, attributes: Attributes) -> Value:
        axes = _axes(inputs, attributes)
        keep = bool(attributes.get("keepdims", 1))
        result = np.asarray(function(inputs[0], axis=axes, keepdims=keep))
        same = inputs[0].dtype.kind in "iu" and function is not np.mean
        return result.astype(inputs[0].dtype) if same else result

    return run


def _range(inputs: _Inputs, attributes: Attributes) -> Value:
    start, limit, delta = (v.reshape(-1)[0] for v in inputs if v is not None)
    return np.arange(start, limit, delta)


def _where(inputs: _Inputs, attributes: Attributes) -> Value:
    condition, a, b = inputs
    unknown = _unknown(condition)
    chosen: Any = np.where(condition.astype(np.bool_), a, b)
    return np.where(unknown, np.nan, chosen.astype(np.float64)) if unknown.any() else chosen


def _constant_of_shape(inputs: _Inputs, attributes: Attributes) -> Value:
    fill = attributes.get("value")
    shape = [int(d) for d in inputs[0]]
    if fill is None:
        return np.zeros(shape, np.float32)
    return np.full(shape, fill.reshape(-1)[0], fill.dtype)


def _expand(inputs: _Inputs, attributes: Attributes) -> object:
    data, shape = inputs
    return data * np.ones([int(d) for d in shape], data.dtype)


def _transpose(inputs: _Inputs, attributes: Attributes) -> object:
    return np.transpose(inputs[0], attributes.get("perm"))


def _many(function: Callable[[Any, Any], npt.ArrayLike]) -> _Operation:
    def run(inputs: _Inputs, attributes: Attributes) -> Value:
        values = [v for v in inputs if v is not None]
        result = values[0]
        for value in values[1:]:
            result = function(result, value)
        return np.asarray(result)

    return run


_OPERATIONS: dict[str, _Operation] = {
    "Abs": _unary(np.abs),
    "Add": _binary(np.add),
    "And": _compared(np.logical_and),
    "Ceil": _unary(np.ceil),
    "Concat": _concat,
    "ConstantOfShape": _constant_of_shape,
    "Div": _int_divide,
    "Equal": _compared(np.equal),
    "Exp": _unary(np.exp),
    "Expand": _expand,
    "Floor": _unary(np.floor),
    "Gather": _gather,
    "Greater": _compared(np.greater),
    "GreaterOrEqual": _compared(np.greater_equal),
    "Identity": _unary(np.asarray),
    "Less": _compared(np.less),
    "LessOrEqual": _compared(np.less_equal),
    "Max": _many(np.maximum),
    "Min": _many(np.minimum),
    "Mod": _binary(np.mod),
    "Mul": _binary(np.multiply),
    "Neg": _unary(np.negative),
    "Or": _compared(np.logical_or),
    "Range": _range,
    "ReduceMax": _reduce(np.max),
    "ReduceMean": _reduce(np.mean),
    "ReduceMin": _reduce(np.min),
    "ReduceProd": _reduce(np.prod),
    "ReduceSum": _reduce(np.sum),
    "Reshape": _reshape,
    "Round": _unary(np.rint),
    "Slice": _slice,
    "Sqrt": _unary(np.sqrt),
    "Squeeze": _squeeze,
    "Sub": _binary(np.subtract),
    "Transpose": _transpose,
    "Unsqueeze": _unsqueeze,
    "Where": _where,
}
