"""Shuffles, joins, constants, and tensors made from shapes. Source: tensorrt-api spec 3.4."""

from __future__ import annotations

import math

import numpy as np

from noria.network.shapes.node_shapes import Shape
from noria.trt.api.types import elem_of
from noria.trt.layers.base import ILayer
from noria.trt.lowering.fragment import Fragment, Inputs, LoweringError, lowers, required
from noria.trt.release import generation


@lowers("SHUFFLE")
def shuffle(f: Fragment, layer: ILayer, inputs: Inputs) -> list[str]:
    """Transpose, reshape, transpose."""
    made = required(inputs, 0)
    if (first := layer._params.get("first_transpose")) is not None:
        made = f.transpose(made, _order(f, first, f.rank(made)))
    allow_zero = None if layer._params["zero_is_placeholder"] else 1
    if len(inputs) > 1 and inputs[1] is not None:
        target = f.cast(inputs[1], np.int64)
        if (known := f.known(inputs[1])) is not None:
            _check_reshape(f, f.shape(made), known.reshape(-1).tolist(), bool(allow_zero))
        if f.implicit:
            target = f.op("Concat", f.ints(0), target, axis=0)
        made = f.op("Reshape", made, target, allowzero=allow_zero)
    elif (dims := layer._params.get("reshape_dims")) is not None:
        axes = [0] * f.offset + [int(d) for d in dims]
        _check_reshape(f, f.shape(made), axes[f.offset :], bool(allow_zero))
        made = f.op("Reshape", made, f.ints(*axes), allowzero=allow_zero)
    if (second := layer._params.get("second_transpose")) is not None:
        made = f.transpose(made, _order(f, second, f.rank(made)))
    return [made]


def _check_reshape(f: Fragment, have: Shape, wanted: list[int], keep_zero: bool) -> None:
    """Refuse an impossible shape now, where all numbers are known.

    Raises:
        LoweringError: it has another number of elements.
    """
    have = have[f.offset :]
    given = tuple(wanted)
    if not keep_zero:
        if any(d == 0 and i >= len(have) for i, d in enumerate(wanted)):
            raise LoweringError(f"{given} keeps an axis that {have} does not have")
        wanted = [have[i] if d == 0 else d for i, d in enumerate(wanted)]
    if given.count(-1) > 1 or min(given, default=0) < -1:
        raise LoweringError(f"{given} is no shape: one axis at most may be -1")
    free = given.index(-1) if -1 in given else None
    rest = [d for i, d in enumerate(wanted) if i != free]
    if any(not isinstance(d, int) or d < 0 for d in (*have, *rest)):
        return  # known when it runs
    count, asked = math.prod(have), math.prod(rest)
    if count != asked if free is None else (count % asked if asked else True):
        raise LoweringError(
            f"{count} elements of shape {tuple(have)} cannot be given the shape {given}"
        )


def _order(f: Fragment, permutation: tuple[int, ...], rank: int) -> list[int]:
    count = rank - f.offset
    order = [int(i) for i in permutation][:count]
    if sorted(order) != list(range(count)):
        raise LoweringError(f"{tuple(permutation)} does not order {count} axes")
    return [*range(f.offset), *(i + f.offset for i in order)]


@lowers("CONCATENATION")
def concatenation(f: Fragment, layer: ILayer, inputs: Inputs) -> list[str]:
    """Join along an axis."""
    names = [required(inputs, i) for i in range(len(inputs))]
    axis = layer._params.get("axis")
    rank = f.rank(names[0])
    axis = max(0, rank - 3 - f.offset) if axis is None else int(axis)
    if not 0 <= axis + f.offset < rank:
        raise LoweringError(f"axis {axis} of {rank - f.offset} axes")
    first = names[0]
    names = [f.same_type(first, n)[1] if n != first else n for n in names]
    names[0] = f.same_type(first, names[-1])[0]
    return [f.op("Concat", *names, axis=axis + f.offset)]


@lowers("CONSTANT")
def constant(f: Fragment, layer: ILayer, inputs: Inputs) -> list[str]:
    """Give the array of the layer."""
    array = layer._weights.get("CONSTANT")
    if array is None:
        raise LoweringError("there are no weights")
    shape = [int(d) for d in layer._params["shape"]]
    if array.size != int(np.prod(shape)):
        raise LoweringError(f"{array.size} weights for a constant of shape {tuple(shape)}")
    return [f.const(array.reshape([1] * f.offset + shape), role="CONSTANT")]


@lowers("SHAPE")
def shape(f: Fragment, layer: ILayer, inputs: Inputs) -> list[str]:
    """INT32 up to 9.x, INT64 from 10.0 on."""
    made = f.op("Shape", required(inputs, 0))
    return [f.cast(made, np.int32 if generation() < 10 else np.int64)]


@lowers("SQUEEZE", "UNSQUEEZE")
def squeeze(f: Fragment, layer: ILayer, inputs: Inputs) -> list[str]:
    """Remove or insert axes of extent 1."""
    x, axes = required(inputs, 0), f.known(required(inputs, 1))
    if axes is None:
        raise LoweringError("the axes must be known when the network is built")
    numbers = [int(a) for a in axes.reshape(-1)]
    if layer._kind == "SQUEEZE":
        return [f.squeeze(x, numbers)]
    return [f.unsqueeze(x, numbers)]


@lowers("ONE_HOT")
def one_hot(f: Fragment, layer: ILayer, inputs: Inputs) -> list[str]:
    """Inputs: indices, the two values off and on, depth."""
    indices, values, depth = (required(inputs, i) for i in range(3))
    return [f.op("OneHot", indices, depth, values, axis=int(layer._params["axis"]))]


@lowers("NON_ZERO")
def non_zero(f: Fragment, layer: ILayer, inputs: Inputs) -> list[str]:
    """Give the indices of elements that are not 0."""
    made = f.op("NonZero", required(inputs, 0))
    return [f.cast(made, _index_type(layer))]


def _index_type(layer: ILayer) -> np.dtype[np.generic]:
    asked = layer._params.get("indices_type")
    return np.dtype(np.int32) if asked is None else asked.numpy


@lowers("FILL")
def fill(f: Fragment, layer: ILayer, inputs: Inputs) -> list[str]:
    """LINSPACE: alpha + beta * index, beta one number or one per axis; else random numbers.

    Inputs: 0 shape, 1 alpha, 2 beta, instead of the attributes. Source: tensorrt-api spec 3.4.
    """
    kind = layer._params["to_type"]
    if inputs and inputs[0] is not None:
        target = f.cast(inputs[0], np.int64)
    else:
        target = f.ints(*[int(d) for d in layer._params["shape"]])
    op = layer._params["operation"].name
    if op != "LINSPACE":
        return [_random(f, layer, target, op, elem_of(kind))]
    dtype = kind.numpy
    alpha = inputs[1] if len(inputs) > 1 and inputs[1] else None
    beta = inputs[2] if len(inputs) > 2 and inputs[2] else None
    start = alpha or f.const(np.asarray(layer._params["alpha"] or 0, dtype))
    by = layer._params["beta"]
    step = beta or f.const(np.asarray(1 if by is None else by, dtype))
    rank = f.shape(target)[0]
    start, step = f.cast(start, dtype), f.cast(step, dtype)
    made = f.op("Expand", start, target)
    for axis in range(rank):
        if rank > 1 and f.rank(step) == 0:
            raise LoweringError("beta must have one number for each axis")
        one = step if f.rank(step) == 0 else f.op("Gather", step, f.const(np.int64(axis)), axis=0)
        length = f.squeeze(f.op("Gather", target, f.ints(axis), axis=0), [0])
        steps = f.op("Range", f.const(np.int64(0)), length, f.const(np.int64(1)))
        line = f.op("Mul", f.cast(steps, dtype), one)
        behind = rank - 1 - axis
        line = f.unsqueeze(line, list(range(1, behind + 1))) if behind else line
        made = f.op("Add", made, line)
    return [made]


def _random(f: Fragment, layer: ILayer, target: str, op: str, elem: int) -> str:
    zeros = f.op("ConstantOfShape", target)
    first, second = layer._params["alpha"], layer._params["beta"]
    if op == "RANDOM_UNIFORM":
        low, high = 0.0 if first is None else first, 1.0 if second is None else second
        return f.op("RandomUniformLike", zeros, dtype=elem, low=float(low), high=float(high))
    mean, scale = 0.0 if first is None else first, 1.0 if second is None else second
    return f.op("RandomNormalLike", zeros, dtype=elem, mean=float(mean), scale=float(scale))


@lowers("ASSERTION")
def assertion(f: Fragment, layer: ILayer, inputs: Inputs) -> list[str]:
    """Nothing is computed; a condition that is known to fail refuses the network."""
    known = f.known(required(inputs, 0))
    if known is not None and not known.all():
        raise LoweringError(f"assertion failed: {layer._params['message']}")
    return []


@lowers("REVERSE_SEQUENCE")
def reverse_sequence(f: Fragment, layer: ILayer, inputs: Inputs) -> list[str]:
    """Reverse the first elements of each row."""
    lengths = f.cast(required(inputs, 1), np.int64)
    p = layer._params
    return [
        f.op(
            "ReverseSequence", required(inputs, 0), lengths, batch_axis=int(p["batch_axis"]),
            time_axis=int(p["sequence_axis"]),
        )
    ]  # fmt: skip
