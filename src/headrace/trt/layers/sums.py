"""Reductions, top-k, soft-max, running sums, products, norms. Source: tensorrt-api spec 3.4."""

from __future__ import annotations

import numpy as np

from headrace.plugins.types import DataType
from headrace.trt.layers.base import ILayer, Param, index_dtype
from headrace.trt.lowering.fragment import Fragment, Inputs, LoweringError, required
from headrace.trt.release import versioned
from headrace.trt.types.enums import (
    CumulativeOperation,
    MatrixOperation,
    ReduceOperation,
    TopKOperation,
)

MAX_K = 3840

REDUCE = {
    "SUM": "ReduceSum", "PROD": "ReduceProd", "MAX": "ReduceMax", "MIN": "ReduceMin",
    "AVG": "ReduceMean",
}  # fmt: skip


class IReduceLayer(ILayer):
    """Over the axes of a mask."""

    _kind = "REDUCE"
    op = Param(ReduceOperation)
    axes = Param(int, "Mask.")
    keep_dims = Param(bool, "Reduced axes stay, with extent 1.")

    def _lower(self, f: Fragment, inputs: Inputs) -> list[str]:
        x = required(inputs, 0)
        axes = f.axes(int(self._params["axes"]), f.rank(x))
        if not axes:
            raise LoweringError(f"no axis of {f.rank(x) - f.offset} is in the mask")
        op = self._params["op"].name
        if op not in REDUCE:
            return [f.op("Identity", x)]
        return [f.reduce(REDUCE[op], x, axes, keep=bool(self._params["keep_dims"]))]


class ITopKLayer(ILayer):
    """Outputs: values, indices. Input 1: k as a tensor."""

    _kind = "TOPK"
    op = Param(TopKOperation, "Greatest or least.")
    k = Param(int, "How many.")
    axes = Param(int, "Mask of exactly one axis.")
    indices_type = Param(DataType)

    def _lower(self, f: Fragment, inputs: Inputs) -> list[str]:
        x = required(inputs, 0)
        axis = _one_axis(f, int(self._params["axes"]), f.rank(x), "top-k")
        if len(inputs) > 1 and inputs[1] is not None:
            k = f.op("Reshape", f.cast(inputs[1], np.int64), f.ints(1))
        else:
            number, length = int(self._params["k"]), f.shape(x)[axis]
            if not 1 <= number <= MAX_K or 0 <= length < number:
                raise LoweringError(f"the {number} greatest of {length}; at most {MAX_K}")
            k = f.ints(number)
        largest = int(self._params["op"].name == "MAX")
        values, indices = f.ops("TopK", [x, k], 2, axis=axis, largest=largest, sorted=1)
        return [values, f.cast(indices, index_dtype(self))]


class ISoftMaxLayer(ILayer):
    """Exponentials, normalised along one axis."""

    _kind = "SOFTMAX"
    _words = "Softmax"

    @property
    def axes(self) -> int:
        """Mask of the axis; by default max(0, rank - 3)."""
        mask = self._params.get("axes")
        if mask is not None:
            return int(mask)
        first = self._inputs[0]
        return 1 << max(0, len(first.shape) - 3) if first is not None else 1

    @axes.setter
    def axes(self, value: int) -> None:
        self._set_param("axes", int(value))

    def _lower(self, f: Fragment, inputs: Inputs) -> list[str]:
        x = required(inputs, 0)
        rank = f.rank(x)
        mask = self._params.get("axes")
        axis = (
            max(f.offset, rank - 3) if mask is None else _one_axis(f, int(mask), rank, "soft-max")
        )
        if f.opset >= 13 or axis == rank - 1:
            return [f.op("Softmax", x, axis=axis)]
        # before opset 13 all axes from the given one on are normalised as one
        order = [i for i in range(rank) if i != axis] + [axis]
        softmax = f.op("Softmax", f.transpose(x, order), axis=rank - 1)
        return [f.transpose(softmax, [order.index(i) for i in range(rank)])]


class IRaggedSoftMaxLayer(ILayer):
    """Inputs: x, elements that count in each row; the others become 0."""

    _kind = "RAGGED_SOFTMAX"
    _words = "Ragged SoftMax"

    def _lower(self, f: Fragment, inputs: Inputs) -> list[str]:
        x, bounds = required(inputs, 0), required(inputs, 1)
        last = f.rank(x) - 1
        if last < 0:
            raise LoweringError("a soft-max of rows needs a tensor with an axis; this is a scalar")
        length = f.squeeze(f.extent(x, last), [0])
        indices = f.op("Range", f.const(np.int64(0)), length, f.const(np.int64(1)))
        inside = f.op("Less", indices, f.cast(bounds, np.int64))
        lowest = f.like(np.finfo(np.float32).min, x)
        softmax = f.op("Softmax", f.op("Where", inside, x, lowest), axis=last)
        return [f.op("Where", inside, softmax, f.like(0, x))]


class ICumulativeLayer(ILayer):
    """Running sums. Input 1: the axis."""

    _kind = "CUMULATIVE"
    op = Param(CumulativeOperation)
    exclusive = Param(bool)
    reverse = Param(bool)

    def _lower(self, f: Fragment, inputs: Inputs) -> list[str]:
        p = self._params
        return [
            f.op(
                "CumSum", required(inputs, 0), required(inputs, 1), exclusive=int(p["exclusive"]),
                reverse=int(p["reverse"]),
            )
        ]  # fmt: skip


class IMatrixMultiplyLayer(ILayer):
    """Batched product; leading axes are broadcast, a VECTOR has one axis less than a matrix."""

    _kind = "MATRIX_MULTIPLY"
    _words = "Matrix Multiply"
    op0 = Param(MatrixOperation, "How the first input is read.")
    op1 = Param(MatrixOperation, "How the second input is read.")

    def _lower(self, f: Fragment, inputs: Inputs) -> list[str]:
        a, b = f.same_type(required(inputs, 0), required(inputs, 1))
        ops = [self._params["op0"].name, self._params["op1"].name]
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
        product = f.op("MatMul", *sides)
        rank = f.rank(product)
        return [f.squeeze(product, sorted(rank + d for d in drop)) if drop else product]


class IEinsumLayer(ILayer):
    """Einstein's sum."""

    _kind = "EINSUM"
    equation = Param(str)

    def _lower(self, f: Fragment, inputs: Inputs) -> list[str]:
        names = [required(inputs, i) for i in range(len(inputs))]
        return [f.op("Einsum", *names, equation=str(self._params["equation"]))]


class _Fixed(Param):
    """A setting that is read alone once the layer is made."""

    def _put(self, layer: ILayer, value: object) -> None:
        raise AttributeError(f"{self._key} cannot be set")


@versioned({">=10.15": "is_v2"})
class INormalizationLayer(ILayer):
    """(x - mean) / sqrt(variance + epsilon) * scale + bias over the axes of a mask.

    Inputs: x, scale, bias. With more than one group, axis 1 is cut into groups that are normalised
    each for itself.
    """

    _kind = "NORMALIZATION"
    epsilon = Param(float, initial=1e-5)
    axes = Param(int, "Mask.")
    num_groups = Param(int, initial=1)
    compute_precision = Param(DataType, initial=DataType.FLOAT)

    is_v2 = _Fixed(bool, "Whether `add_normalization_v2` made it.", initial=False)

    @property  # a constant of all other layers
    def _words(self) -> str:  # type: ignore[override]
        return "NormalizationV2" if self._params.get("is_v2") else "Normalization"

    def _lower(self, f: Fragment, inputs: Inputs) -> list[str]:
        x, scale, bias = (required(inputs, i) for i in range(3))
        groups, rank = int(self._params["num_groups"]), f.rank(x)
        axes = f.axes(int(self._params["axes"]), rank)
        if not axes:
            raise LoweringError("no axis is in the mask")
        shape = f.shape(x)
        normalised = x
        if groups > 1:
            channels = shape[1]
            if channels < 0 or channels % groups:
                raise LoweringError(f"{channels} channels in {groups} groups")
            normalised = f.op(
                "Reshape", x,
                f.op("Concat", f.extent(x, 0), f.ints(groups, channels // groups),
                     *[f.extent(x, i) for i in range(2, rank)], axis=0),
            )  # fmt: skip
            axes = sorted({2, *(a + 1 for a in axes if a >= 2)})
        centred = f.op("Sub", normalised, f.reduce("ReduceMean", normalised, axes))
        variance = f.reduce("ReduceMean", f.op("Mul", centred, centred), axes)
        epsilon = f.like(float(self._params["epsilon"]), x)
        normalised = f.op("Div", centred, f.op("Sqrt", f.op("Add", variance, epsilon)))
        if groups > 1:
            normalised = f.op("Reshape", normalised, f.extents(x))
            if f.shape(scale)[1:2] == (groups,) and groups != shape[1]:
                scale, bias = (_per_channel(f, n, groups, shape[1]) for n in (scale, bias))
        return [f.op("Add", f.op("Mul", normalised, scale), bias)]


def _one_axis(f: Fragment, mask: int, rank: int, what: str) -> int:
    axes = f.axes(mask, rank)
    if len(axes) != 1 or mask >> (rank - f.offset):
        raise LoweringError(f"{what} along the axes of mask {mask:#x} of {rank - f.offset} axes")
    return axes[0]


def _per_channel(f: Fragment, name: str, groups: int, channels: int) -> str:
    """One number for each group, repeated for its channels."""
    rank = f.rank(name)
    spread = f.op("Expand", f.reshape(name, [groups, 1]), f.ints(groups, channels // groups))
    return f.reshape(spread, [1, channels, *[1] * (rank - 2)])
