"""A UFF node on its way into a graph: its fields, and the order of its axes.

The graph is computed as the framework it came from did, in that framework's order of axes; only
convolutions and their like are turned to channels first and back. A tensor that was just turned
back remembers what it was turned from, so that chains of them stay channels first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from headrace._core.types import Array
from headrace.network.graph_builder import BATCH, Blob, GraphBuilder, Shape, shape_text
from headrace.network.importer import LayerLowering
from headrace.network.uff.proto import Node

_INCREMENT = 2**31 - 1  # "and the axes after it, rising": stands for the spatial ones
_MAX_FOLD = 2**20  # elements of constants that are computed here rather than by the runtime


def permutation(code: Sequence[int], rank: int) -> tuple[int, ...] | None:
    """Which axis of the canonical order (batch or outputs, channels, sizes) each axis is.

    `code` lists canonical axes; one followed by a marker stands for itself and all after it. None
    if that is no order of `rank` axes.
    """
    order: list[int] = []
    for i, axis in enumerate(code):
        if axis == _INCREMENT:
            continue
        if code[i + 1 : i + 2] == [_INCREMENT]:
            order += range(axis, rank)
        else:
            order.append(axis)
    return tuple(order) if sorted(order) == list(range(rank)) else None


class Transposes:
    """Tensors that are another one transposed: value -> (the other, the order of axes)."""

    def __init__(self, graph: GraphBuilder) -> None:
        self.graph = graph
        self._made: dict[int, tuple[Blob, tuple[int, ...]]] = {}

    def turn(self, blob: Blob, order: Sequence[int]) -> Blob:
        """Transpose, undoing the turn that made `blob` if it is the opposite one."""
        order = tuple(order)
        base = self._made.get(id(blob.value))
        if base is not None and tuple(base[1][i] for i in order) == tuple(range(len(order))):
            return base[0]
        turned = self.graph.transpose(blob, order)
        if turned.array is None and turned is not blob:
            self._made[id(turned.value)] = (blob, order)
        return turned

    def base(self, blob: Blob) -> tuple[Blob, tuple[int, ...]] | None:
        """Return the tensor that `blob` was turned from, and the order; None without one."""
        return self._made.get(id(blob.value))


class UffLowering(LayerLowering):
    """One node on its way into the graph.

    Attributes:
        node: the node as the file has it.
        turns: the tensors that are another one turned.
    """

    def __init__(
        self, node: Node, inputs: Sequence[Blob], graph: GraphBuilder, turns: Transposes
    ) -> None:
        super().__init__(graph, inputs)
        self.node = node
        self.turns = turns

    def field(self, name: str, kind: type | tuple[type, ...], default: Any = None) -> Any:
        """A field of a kind; absent or empty, `default`; without one it must be there."""
        value = self.node.fields.get(name)
        if value is None and default is not None:
            return default
        kinds = (kind, int) if kind is float else kind
        if not isinstance(value, kinds) or (isinstance(value, bool) and kind is int):
            what = "missing" if value is None else f"a {type(value).__name__}"
            names = kind.__name__ if isinstance(kind, type) else "value"
            raise self.error(f"its field {name!r} is {what}", expected=f"a {names}")
        return value

    def ints(self, name: str, count: int, default: int | None = None) -> list[int]:
        """A list of `count` integers from 0 to 65536, or `default` for all."""
        values = self.field(name, list, None if default is None else [])
        if not values and default is not None:
            return [default] * count
        if len(values) != count or any(not 0 <= v <= 2**16 for v in values):
            raise self.error(f"its field {name!r} is {values[:8]}", expected=f"{count} sizes")
        return list(values)

    def order(self, index: int, blob: Blob) -> tuple[int, ...]:
        """The order of the axes of input `index`, as `permutation`."""
        codes = self.field("inputs_orders", list)
        code = codes[index] if index < len(codes) else []
        order = permutation(code, blob.rank) if isinstance(code, list) else None
        if order is None:
            raise self.error(f"the order of input {index} is not one of {blob.rank} axes")
        return order

    def canonical(self, index: int) -> Blob:
        """Input `index` with its axes in the canonical order."""
        blob = self.inputs[index]
        return self.turns.turn(blob, np.argsort(self.order(index, blob)).tolist())

    def back(self, blob: Blob) -> Blob:
        """A result in canonical order, turned into the order of the first input."""
        return self.turns.turn(blob, self.order(0, self.x))

    def array(self, index: int, what: str) -> Array:
        """The content of input `index`, which must be constant."""
        content = self.inputs[index].array if index < len(self.inputs) else None
        if content is None:
            raise self.error(f"its {what} are computed", expected="a constant")
        return content

    def integers(self, index: int, what: str) -> list[int]:
        """The content of input `index` as a list of integers."""
        array = self.array(index, what)
        if array.dtype.kind != "i" or array.ndim > 1 or array.size > 64:
            raise self.error(f"its {what} are {array.dtype} {array.shape}", expected="integers")
        return [int(v) for v in array.reshape(-1)]

    def elementwise(self, x: Blob, make: Callable[[Blob], Blob]) -> Blob:
        """Apply `make`, to which the order of axes is the same, to `x` or its unturned form."""
        base = self.turns.base(x)
        return make(x) if base is None else self.turns.turn(make(base[0]), base[1])

    def broadcast(self, a: Shape, b: Shape) -> Shape:
        """The shape of an operation on both."""
        rank = max(len(a), len(b))
        pairs = zip((1,) * (rank - len(a)) + a, (1,) * (rank - len(b)) + b, strict=True)
        shape = []
        for x, y in pairs:
            if x != y and 1 not in (x, y):
                raise self.error(f"{shape_text(a)} and {shape_text(b)} do not go together")
            shape.append(y if x == 1 else x)
        return tuple(shape)

    def folds(self, shape: Shape) -> bool:
        """Whether a constant result of this shape is computed here."""
        return all(b.array is not None for b in self.inputs) and (
            int(np.prod(shape)) <= _MAX_FOLD and BATCH not in shape
        )


Lower = Callable[[UffLowering], Blob]
"""Makes the nodes for a UFF node and returns its output."""
