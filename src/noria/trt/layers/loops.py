"""Loops and conditionals: the layers at their borders. Source: tensorrt-api spec 3.4."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from noria.trt.api.enums import LoopOutput, TripLimit
from noria.trt.api.strict import Strict, kept
from noria.trt.api.tensor import ITensor
from noria.trt.layers.base import ILayer, param

if TYPE_CHECKING:
    from noria.trt.api.network import INetworkDefinition


class ILoopBoundaryLayer(ILayer):
    """A layer at the border of a loop."""

    @property
    def loop(self) -> ILoop:
        """The loop."""
        return cast(ILoop, self._params["_loop"])


class IRecurrenceLayer(ILoopBoundaryLayer):
    """Input 0 before the first iteration; input 1 of an iteration is the output in the next."""


class IIteratorLayer(ILoopBoundaryLayer):
    """One slice of a tensor in each iteration."""

    axis = param("axis", int)
    reverse = param("reverse", bool)


class ITripLimitLayer(ILoopBoundaryLayer):
    """The number of turns, or the condition to go on."""

    kind = property(lambda self: self._params["kind"], doc="COUNT or WHILE.")


class ILoopOutputLayer(ILoopBoundaryLayer):
    """An output of a loop: the last value, or all of them along a new axis."""

    axis = param("axis", int)
    kind = property(lambda self: self._params["kind"], doc="LAST_VALUE, CONCATENATE, REVERSE.")


class ILoop(Strict):
    """Made by `INetworkDefinition.add_loop`."""

    def __init__(self, network: INetworkDefinition) -> None:
        self._network = network
        self._name = f"(Unnamed Loop* {len(network._layers)})"
        self._recurrences: list[ILayer] = []
        self._iterators: list[ILayer] = []
        self._limits: list[ILayer] = []
        self._outputs: list[ILayer] = []

    name = kept("_name", "The name.", convert=str)

    def _add(self, cls: type[Any], of: str, tensor: ITensor, **params: Any) -> Any:
        if not isinstance(tensor, ITensor):
            raise TypeError(f"an input is an ITensor, not a {type(tensor).__name__}")
        outputs = 0 if of == "TRIP_LIMIT" else 1
        layer = cls(
            self._network, of, [tensor], params={"_loop": self, **params},
                    outputs=outputs)  # fmt: skip
        self._network._append(layer)
        return layer

    def add_recurrence(self, initial_value: ITensor) -> IRecurrenceLayer:
        """A value that iterations hand on; the next one is its input 1."""
        layer = self._add(IRecurrenceLayer, "RECURRENCE", initial_value)
        self._recurrences.append(layer)
        return cast(IRecurrenceLayer, layer)

    def add_iterator(self, tensor: ITensor, axis: int = 0, reverse: bool = False) -> IIteratorLayer:
        """The slices of a tensor, one in each iteration."""
        layer = self._add(IIteratorLayer, "ITERATOR", tensor, axis=int(axis), reverse=bool(reverse))
        self._iterators.append(layer)
        return cast(IIteratorLayer, layer)

    def add_trip_limit(self, tensor: ITensor, kind: Any) -> ITripLimitLayer:
        """COUNT: how many iterations; WHILE: a bool that is looked at before each."""
        layer = self._add(ITripLimitLayer, "TRIP_LIMIT", tensor, kind=TripLimit(kind))
        self._limits.append(layer)
        return cast(ITripLimitLayer, layer)

    def add_loop_output(self, tensor: ITensor, kind: Any, axis: int = 0) -> ILoopOutputLayer:
        """The kind of output."""
        layer = self._add(
            ILoopOutputLayer, "LOOP_OUTPUT", tensor, kind=LoopOutput(kind), axis=int(axis)
        )
        self._outputs.append(layer)
        return cast(ILoopOutputLayer, layer)


class IIfConditionalBoundaryLayer(ILayer):
    """A layer at the border of a conditional."""

    @property
    def conditional(self) -> IIfConditional:
        """The conditional."""
        return cast(IIfConditional, self._params["_conditional"])


class IConditionLayer(IIfConditionalBoundaryLayer):
    """Takes the condition."""


class IIfConditionalInputLayer(IIfConditionalBoundaryLayer):
    """A tensor that branches use."""


class IIfConditionalOutputLayer(IIfConditionalBoundaryLayer):
    """One of two tensors of the same shape."""


class IIfConditional(Strict):
    """Made by `INetworkDefinition.add_if_conditional`. Both branches are computed, one is taken."""

    def __init__(self, network: INetworkDefinition) -> None:
        self._network = network
        self._name = f"(Unnamed Conditional* {len(network._layers)})"
        self._condition: ITensor | None = None

    name = kept("_name", "The name.", convert=str)

    def _add(self, cls: type[Any], kind: str, tensors: list[Any], outputs: int = 1) -> Any:
        for tensor in tensors:
            if not isinstance(tensor, ITensor):
                raise TypeError(f"an input is an ITensor, not a {type(tensor).__name__}")
        layer = cls(self._network, kind, tensors, params={"_conditional": self}, outputs=outputs)
        self._network._append(layer)
        return layer

    def set_condition(self, condition: ITensor) -> IConditionLayer:
        """A bool without axes."""
        layer = self._add(IConditionLayer, "CONDITION", [condition], outputs=0)
        self._condition = condition
        return cast(IConditionLayer, layer)

    def add_input(self, input: ITensor) -> IIfConditionalInputLayer:
        """The tensor, for use in branches."""
        return cast(
            IIfConditionalInputLayer,
            self._add(IIfConditionalInputLayer, "CONDITIONAL_INPUT", [input]),
        )

    def add_output(
        self, true_subgraph_output: ITensor, false_subgraph_output: ITensor
    ) -> IIfConditionalOutputLayer:
        """One of two."""
        if self._condition is None:
            raise ValueError("set_condition comes before add_output")
        tensors = [self._condition, true_subgraph_output, false_subgraph_output]
        return cast(
            IIfConditionalOutputLayer,
            self._add(IIfConditionalOutputLayer, "CONDITIONAL_OUTPUT", tensors),
        )
