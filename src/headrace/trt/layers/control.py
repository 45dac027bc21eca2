"""Loops and conditionals: the layers at their borders. Source: tensorrt-api spec 3.4.

`headrace.trt.lowering.loop_body` makes the bodies of loops.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import numpy as np

from headrace.network.tensor_spec import TensorType
from headrace.trt.layers.base import ILayer, Layer, Param, check_tensors
from headrace.trt.lowering.fragment import Fragment, Inputs, LoweringError, required
from headrace.trt.types.enums import LoopOutput, TripLimit
from headrace.trt.types.strict import Strict, kept
from headrace.trt.types.tensor import ITensor

if TYPE_CHECKING:
    from headrace.plugins.types import NumberedEnum
    from headrace.trt.types.owner import Owner


class ILoopBoundaryLayer(ILayer):
    """A layer at the border of a loop."""

    @property
    def loop(self) -> ILoop:
        """The loop."""
        return cast(ILoop, self._params["_loop"])


class IRecurrenceLayer(ILoopBoundaryLayer):
    """Input 0 before the first iteration; input 1 of an iteration is the output in the next."""

    _kind = "RECURRENCE"

    def _lower(self, f: Fragment, inputs: Inputs) -> list[str]:
        # no node: the loop's body has it as an input; its value differs from turn to turn
        first = f.infos[required(inputs, 0)]
        return [f.placeholder("recurrence", TensorType(first.elem, first.shape))]


class IIteratorLayer(ILoopBoundaryLayer):
    """One slice of a tensor in each iteration; the body gives its number."""

    _kind = "ITERATOR"
    axis = Param(int)
    reverse = Param(bool)

    def _lower(self, f: Fragment, inputs: Inputs) -> list[str]:
        x, axis = required(inputs, 0), int(self._params["axis"])
        at = f.placeholder("iteration", TensorType(7, ()))
        self._params["_counter"] = at
        if self._params["reverse"]:
            last = f.op("Sub", f.squeeze(f.extent(x, axis), [0]), f.const(np.int64(1)))
            return [f.op("Gather", x, f.op("Sub", last, at), axis=axis)]
        return [f.op("Gather", x, at, axis=axis)]


class ITripLimitLayer(ILoopBoundaryLayer):
    """The number of turns, or the condition to go on; the loop reads it."""

    _kind = "TRIP_LIMIT"
    kind = property(lambda self: self._params["kind"], doc="COUNT or WHILE.")

    def _lower(self, f: Fragment, inputs: Inputs) -> list[str]:
        return []


class ILoopOutputLayer(ILoopBoundaryLayer):
    """An output of a loop: the last value, or all of them along a new axis."""

    _kind = "LOOP_OUTPUT"
    axis = Param(int)
    kind = property(lambda self: self._params["kind"], doc="LAST_VALUE, CONCATENATE, REVERSE.")

    def _lower(self, f: Fragment, inputs: Inputs) -> list[str]:
        first = f.infos[required(inputs, 0)]
        kind, axis = self._params["kind"].name, int(self._params["axis"])
        if kind == "LAST_VALUE":
            return [f.placeholder("last", TensorType(first.elem, first.shape))]
        stacked = None if first.shape is None else (-1, *first.shape)
        stack = f.placeholder("stacked", TensorType(first.elem, stacked))
        self._params["_stacked"] = stack
        if kind == "REVERSE":
            lowest = np.iinfo(np.int64).min
            stack = f.op("Slice", stack, f.ints(-1), f.ints(lowest), f.ints(0), f.ints(-1))
        if len(inputs) > 1 and inputs[1] is not None:
            stack = _of_length(f, stack, inputs[1])
        if axis:
            order = [*range(1, axis + 1), 0, *range(axis + 1, f.rank(stack))]
            return [f.transpose(stack, order)]
        return [f.op("Identity", stack)]


def _of_length(f: Fragment, stacked: str, length: str) -> str:
    """The values of a loop with the extent that the layer asks for: cut, or zeros behind them."""
    target = f.reshape(f.cast(length, np.int64), [1])
    kept = f.op("Slice", stacked, f.ints(0), target, f.ints(0))
    missing = f.op("Sub", target, f.extent(kept, 0))
    rest = [f.extent(kept, axis) for axis in range(1, f.rank(kept))]
    zeros = f.op("Expand", f.like(0, kept), f.op("Concat", missing, *rest, axis=0))
    padded = f.op("Concat", kept, zeros, axis=0)
    known, info = f.known(length), f.infos[padded]
    if known is not None and info.shape is not None:
        f.infos[padded] = TensorType(info.elem, (int(known.reshape(-1)[0]), *info.shape[1:]))
    return padded


class ILoop(Strict):
    """Made by `INetworkDefinition.add_loop`."""

    def __init__(self, network: Owner) -> None:
        self._network = network
        self._name = f"(Unnamed Loop* {len(network._layers)})"
        self._recurrences: list[ILayer] = []
        self._iterators: list[ILayer] = []
        self._limits: list[ILayer] = []
        self._outputs: list[ILayer] = []

    name = kept("_name", "The name.", convert=str)

    def _add(self, to: list[ILayer], cls: type[Layer], tensor: ITensor, **params: object) -> Layer:
        check_tensors([tensor])
        layer = cls(
            self._network, [tensor], params={"_loop": self, **params},
            outputs=0 if cls is ITripLimitLayer else 1,
        )  # fmt: skip
        self._network._append(layer)
        to.append(layer)
        return layer

    def add_recurrence(self, initial_value: ITensor) -> IRecurrenceLayer:
        """A value that iterations hand on; the next one is its input 1."""
        return self._add(self._recurrences, IRecurrenceLayer, initial_value)

    def add_iterator(self, tensor: ITensor, axis: int = 0, reverse: bool = False) -> IIteratorLayer:
        """The slices of a tensor, one in each iteration."""
        params = {"axis": int(axis), "reverse": bool(reverse)}
        return self._add(self._iterators, IIteratorLayer, tensor, **params)

    def add_trip_limit(self, tensor: ITensor, kind: NumberedEnum) -> ITripLimitLayer:
        """COUNT: how many iterations; WHILE: a bool that is looked at before each."""
        return self._add(self._limits, ITripLimitLayer, tensor, kind=TripLimit(kind))

    def add_loop_output(
        self, tensor: ITensor, kind: NumberedEnum, axis: int = 0
    ) -> ILoopOutputLayer:
        """The kind of output."""
        params = {"kind": LoopOutput(kind), "axis": int(axis)}
        return self._add(self._outputs, ILoopOutputLayer, tensor, **params)


class IIfConditionalBoundaryLayer(ILayer):
    """A layer at the border of a conditional."""

    @property
    def conditional(self) -> IIfConditional:
        """The conditional."""
        return cast(IIfConditional, self._params["_conditional"])


class IConditionLayer(IIfConditionalBoundaryLayer):
    """Takes the condition; the conditional reads it."""

    _kind = "CONDITION"

    def _lower(self, f: Fragment, inputs: Inputs) -> list[str]:
        return []


class IIfConditionalInputLayer(IIfConditionalBoundaryLayer):
    """A tensor that branches use."""

    _kind = "CONDITIONAL_INPUT"

    def _lower(self, f: Fragment, inputs: Inputs) -> list[str]:
        return [f.op("Identity", required(inputs, 0))]


class IIfConditionalOutputLayer(IIfConditionalBoundaryLayer):
    """One of two tensors of the same shape; both are computed."""

    _kind = "CONDITIONAL_OUTPUT"
    _words = "Output"

    def _lower(self, f: Fragment, inputs: Inputs) -> list[str]:
        condition, yes, no = (required(inputs, i) for i in range(3))
        yes, no = f.same_type(yes, no)
        if f.rank(yes) != f.rank(no):
            raise LoweringError(f"branches of {f.rank(yes)} and {f.rank(no)} axes")
        return [f.op("Where", f.op("Reshape", condition, f.ints(*([1] * f.rank(yes)))), yes, no)]


class IIfConditional(Strict):
    """Made by `INetworkDefinition.add_if_conditional`. Both branches are computed, one is taken."""

    def __init__(self, network: Owner) -> None:
        self._network = network
        self._name = f"(Unnamed Conditional* {len(network._layers)})"
        self._condition: ITensor | None = None

    name = kept("_name", "The name.", convert=str)

    def _add(self, cls: type[Layer], tensors: list[ITensor], outputs: int = 1) -> Layer:
        check_tensors(tensors)
        layer = cls(self._network, tensors, params={"_conditional": self}, outputs=outputs)
        self._network._append(layer)
        return layer

    def set_condition(self, condition: ITensor) -> IConditionLayer:
        """A bool without axes."""
        layer = self._add(IConditionLayer, [condition], outputs=0)
        self._condition = condition
        return layer

    def add_input(self, input: ITensor) -> IIfConditionalInputLayer:
        """The tensor, for use in branches."""
        return self._add(IIfConditionalInputLayer, [input])

    def add_output(
        self, true_subgraph_output: ITensor, false_subgraph_output: ITensor
    ) -> IIfConditionalOutputLayer:
        """One of two."""
        if self._condition is None:
            raise ValueError("set_condition comes before add_output")
        tensors = [self._condition, true_subgraph_output, false_subgraph_output]
        return self._add(IIfConditionalOutputLayer, tensors)
