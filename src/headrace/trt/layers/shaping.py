"""Shuffles, joins, constants, and tensors made from shapes. Source: tensorrt-api spec 3.4."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.network.shapes.node_shapes import Shape
from headrace.plugins.types import DataType
from headrace.trt.layers.base import ILayer, Param, dims_param, weights_param
from headrace.trt.lowering.fragment import Fragment, Inputs, LoweringError, required
from headrace.trt.release import generation
from headrace.trt.types.enums import FillOperation
from headrace.trt.types.reporting import Severity
from headrace.trt.types.values import Permutation, elem_of

if TYPE_CHECKING:
    from collections.abc import Iterable


def _permutation(doc: str) -> property:
    def show(layer: ILayer, value: Iterable[int] | None) -> Permutation:
        return Permutation(range(8)) if value is None else Permutation(value)

    return Param(lambda v: tuple(Permutation(v)), doc, show=show)


class IShuffleLayer(ILayer):
    """Transpose, reshape, transpose. Input 1: the shape as a tensor."""

    _kind = "SHUFFLE"
    first_transpose = _permutation("Order of the axes before reshaping.")
    second_transpose = _permutation("Order of the axes afterwards.")
    reshape_dims = dims_param("0 copies an axis, -1 is worked out.")
    zero_is_placeholder = Param(bool, "0 copies instead of being empty.", initial=True)

    def _lower(self, f: Fragment, inputs: Inputs) -> list[str]:
        shuffled = required(inputs, 0)
        if (first := self._params.get("first_transpose")) is not None:
            shuffled = f.transpose(shuffled, _order(f, first, f.rank(shuffled)))
        allow_zero = None if self._params["zero_is_placeholder"] else 1
        if len(inputs) > 1 and inputs[1] is not None:
            target = f.cast(inputs[1], np.int64)
            if (known := f.known(inputs[1])) is not None:
                _check_reshape(f, f.shape(shuffled), known.reshape(-1).tolist(), bool(allow_zero))
            if f.implicit:
                target = f.op("Concat", f.ints(0), target, axis=0)
            shuffled = f.op("Reshape", shuffled, target, allowzero=allow_zero)
        elif (dims := self._params.get("reshape_dims")) is not None:
            axes = [0] * f.offset + [int(d) for d in dims]
            _check_reshape(f, f.shape(shuffled), axes[f.offset :], bool(allow_zero))
            shuffled = f.op("Reshape", shuffled, f.ints(*axes), allowzero=allow_zero)
        if (second := self._params.get("second_transpose")) is not None:
            shuffled = f.transpose(shuffled, _order(f, second, f.rank(shuffled)))
        return [shuffled]


class IConcatenationLayer(ILayer):
    """Joins along `axis`."""

    _kind = "CONCATENATION"

    @property
    def axis(self) -> int:
        """The axis; by default that of the channels."""
        axis = self._params.get("axis")
        if axis is not None:
            return int(axis)
        first = self._inputs[0]
        return max(0, len(first.shape) - 3) if first is not None else 0

    @axis.setter
    def axis(self, value: int) -> None:
        self._set_param("axis", int(value))

    def _lower(self, f: Fragment, inputs: Inputs) -> list[str]:
        names = [required(inputs, i) for i in range(len(inputs))]
        axis = self._params.get("axis")
        rank = f.rank(names[0])
        axis = max(0, rank - 3 - f.offset) if axis is None else int(axis)
        if not 0 <= axis + f.offset < rank:
            raise LoweringError(f"axis {axis} of {rank - f.offset} axes")
        first = names[0]
        names = [f.same_type(first, n)[1] if n != first else n for n in names]
        names[0] = f.same_type(first, names[-1])[0]
        return [f.op("Concat", *names, axis=axis + f.offset)]


class IConstantLayer(ILayer):
    """`shape`, `weights`."""

    _kind = "CONSTANT"
    shape = dims_param("Extents.")
    weights = weights_param("CONSTANT", "The elements.")

    def _lower(self, f: Fragment, inputs: Inputs) -> list[str]:
        array = self._weights.get("CONSTANT")
        shape = [int(d) for d in self._params["shape"]]
        if array is None and 0 in shape:  # `trt.Weights(dtype)` for a tensor without elements
            array = np.empty(shape, self._params.get("empty", np.float32))
        if array is None:
            raise LoweringError("there are no weights")
        if array.size != int(np.prod(shape)):
            raise LoweringError(f"{array.size} weights for a constant of shape {tuple(shape)}")
        return [f.const(array.reshape([1] * f.offset + shape), role="CONSTANT")]


class IShapeLayer(ILayer):
    """The extents of a tensor as a tensor: INT32 up to 9.x, INT64 from 10.0 on."""

    _kind = "SHAPE"

    def _lower(self, f: Fragment, inputs: Inputs) -> list[str]:
        extents = f.op("Shape", required(inputs, 0))
        return [f.cast(extents, np.int32 if generation() < 10 else np.int64)]


class ISqueezeLayer(ILayer):
    """Input 1: axes that go."""

    _kind = "SQUEEZE"

    def _lower(self, f: Fragment, inputs: Inputs) -> list[str]:
        return [f.squeeze(required(inputs, 0), _axes(f, inputs))]


class IUnsqueezeLayer(ILayer):
    """Input 1: axes that come."""

    _kind = "UNSQUEEZE"

    def _lower(self, f: Fragment, inputs: Inputs) -> list[str]:
        return [f.unsqueeze(required(inputs, 0), _axes(f, inputs))]


def _axes(f: Fragment, inputs: Inputs) -> list[int]:
    axes = f.known(required(inputs, 1))
    if axes is None:
        raise LoweringError("the axes must be known when the network is built")
    return [int(a) for a in axes.reshape(-1)]


class IAssertionLayer(ILayer):
    """Computes nothing; a condition that is known to be false refuses the network."""

    _kind = "ASSERTION"
    message = Param(str, "Text of the error.")

    def _lower(self, f: Fragment, inputs: Inputs) -> list[str]:
        known = f.known(required(inputs, 0))
        if known is not None and not known.all():
            raise LoweringError(f"assertion failed: {self._params['message']}")
        return []


class _Number(Param):
    """A setting of one number; other values are ignored with a warning, by TensorRT without one."""

    def _put(self, layer: ILayer, value: Any) -> None:
        try:
            number = float(value)
        except (TypeError, ValueError):
            text = f"{layer.name}: {self._key}={value!r} is no number and changes nothing"
            layer._network._report(text, Severity.WARNING)
            return
        layer._set_param(self._key, number)


class IFillLayer(ILayer):
    """Evenly spaced or random numbers.

    LINSPACE: alpha + beta * index, beta one number or one per axis. Inputs 0 to 2: shape, alpha,
    beta, instead of the attributes.
    """

    _kind = "FILL"
    shape = dims_param("Extents.")
    operation = Param(FillOperation, "The numbers that fill it.")
    alpha = _Number(float, "Start, least value or mean.", initial=None)
    beta = _Number(float, "Step, greatest value or deviation.", initial=None)
    to_type = Param(DataType, "Element type.")

    def is_alpha_beta_int64(self) -> bool:
        """Whether they are integers."""
        return bool(self._params["to_type"] == DataType.INT64)

    def _lower(self, f: Fragment, inputs: Inputs) -> list[str]:
        kind = self._params["to_type"]
        if inputs and inputs[0] is not None:
            target = f.cast(inputs[0], np.int64)
        else:
            target = f.ints(*[int(d) for d in self._params["shape"]])
        op = self._params["operation"].name
        alpha = inputs[1] if len(inputs) > 1 and inputs[1] else None
        beta = inputs[2] if len(inputs) > 2 and inputs[2] else None
        if op != "LINSPACE":
            return [_random(f, self, target, elem_of(kind), alpha, beta)]
        dtype = kind.numpy
        start = alpha or f.const(np.asarray(self._params["alpha"] or 0, dtype))
        by = self._params["beta"]
        step = beta or f.const(np.asarray(1 if by is None else by, dtype))
        rank = f.shape(target)[0]
        start, step = f.cast(start, dtype), f.cast(step, dtype)
        filled = f.op("Expand", start, target)
        for axis in range(rank):
            if rank > 1 and f.rank(step) == 0:
                raise LoweringError("beta must have one number for each axis")
            one = (
                step if f.rank(step) == 0 else f.op("Gather", step, f.const(np.int64(axis)), axis=0)
            )
            length = f.squeeze(f.op("Gather", target, f.ints(axis), axis=0), [0])
            steps = f.op("Range", f.const(np.int64(0)), length, f.const(np.int64(1)))
            line = f.op("Mul", f.cast(steps, dtype), one)
            behind = rank - 1 - axis
            line = f.unsqueeze(line, list(range(1, behind + 1))) if behind else line
            filled = f.op("Add", filled, line)
        return [filled]


def _check_reshape(f: Fragment, have: Shape, axes: list[int], keep_zero: bool) -> None:
    """Refuse an impossible shape now, where all numbers are known.

    Raises:
        LoweringError: it has another number of elements.
    """
    have = have[f.offset :]
    shape = tuple(axes)
    if not keep_zero:
        if any(d == 0 and i >= len(have) for i, d in enumerate(axes)):
            raise LoweringError(f"{shape} keeps an axis that {have} does not have")
        axes = [have[i] if d == 0 else d for i, d in enumerate(axes)]
    if shape.count(-1) > 1 or min(shape, default=0) < -1:
        raise LoweringError(f"{shape} is no shape: one axis at most may be -1")
    free = shape.index(-1) if -1 in shape else None
    rest = [d for i, d in enumerate(axes) if i != free]
    if any(not isinstance(d, int) or d < 0 for d in (*have, *rest)):
        return  # known when it runs
    count, asked = math.prod(have), math.prod(rest)
    if count != asked if free is None else (count % asked if asked else True):
        raise LoweringError(
            f"{count} elements of shape {tuple(have)} cannot be given the shape {shape}"
        )


def _order(f: Fragment, permutation: tuple[int, ...], rank: int) -> list[int]:
    count = rank - f.offset
    order = [int(i) for i in permutation][:count]
    if sorted(order) != list(range(count)):
        raise LoweringError(f"{tuple(permutation)} does not order {count} axes")
    return [*range(f.offset), *(i + f.offset for i in order)]


def _random(
    f: Fragment, layer: ILayer, target: str, elem: int, alpha: str | None, beta: str | None
) -> str:
    """Uniform numbers from alpha to beta, or normal ones of that mean and deviation."""
    uniform = layer._params["operation"].name == "RANDOM_UNIFORM"
    first, second = layer._params["alpha"], layer._params["beta"]
    zeros = f.op("ConstantOfShape", target)
    noise = f.op("RandomUniformLike" if uniform else "RandomNormalLike", zeros, dtype=elem)
    start = alpha or f.like(0.0 if first is None else first, noise)
    by = beta or f.like(1.0 if second is None else second, noise)
    start, by = (f.cast_to_elem(name, elem) for name in (start, by))
    return f.op("Add", start, f.op("Mul", noise, f.op("Sub", by, start) if uniform else by))
