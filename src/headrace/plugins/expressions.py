"""Symbolic shapes: small immutable trees over the axes of a plugin's inputs.

Then with numbers put in, and as text for plans.

Source: tensorrt-plugins spec 7.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self, TypeAlias

from headrace._core.errors import PluginError
from headrace.plugins.types import MAX_DIMS, DimensionOperation

Resolve = Callable[["IDimensionExpr"], int]
NOT_CONSTANT = -(2**31)


class ShapeError(ValueError):
    """An expression has no value: a division by zero, or a negative extent."""


class IDimensionExpr:
    """The extent of one axis: a number, or one that is known only at run time."""

    __slots__ = ()

    def is_constant(self) -> bool:
        """Whether the extent is known while building."""
        return False

    def get_constant_value(self) -> int:
        """The extent if it is constant, else -2147483648."""
        return NOT_CONSTANT

    def is_size_tensor(self) -> bool:
        """Whether the extent is computed by the plugin, see `IExprBuilder.declare_size_tensor`."""
        return False

    def evaluate(self, resolve: Resolve) -> int:
        """The extent.

        Args:
            resolve: gives the values of the leaves that are no constants.

        Raises:
            ShapeError: a division by zero.
        """
        return resolve(self)

    def leaves(self) -> Iterator[IDimensionExpr]:
        """The parts that are no operations."""
        yield self


class _Constant(IDimensionExpr):
    __slots__ = ("value",)

    def __init__(self, value: int) -> None:
        self.value = value

    def is_constant(self) -> bool:
        return True

    def get_constant_value(self) -> int:
        return self.value

    def evaluate(self, resolve: Resolve) -> int:
        return self.value

    def __repr__(self) -> str:
        return str(self.value)


class Axis(IDimensionExpr):
    """The extent of axis `axis` of input `input`.

    With `of_values` it is the value of element `axis` of that shape input.
    """

    __slots__ = ("axis", "input", "of_values")

    def __init__(self, input: int, axis: int, *, of_values: bool = False) -> None:
        self.input, self.axis, self.of_values = input, axis, of_values

    def __repr__(self) -> str:
        return f"{'shape_input' if self.of_values else 'input'}{self.input}[{self.axis}]"


class SizeTensor(IDimensionExpr):
    """The number that the plugin writes to its output `output`.

    Attributes:
        output: index; -1 until the index among the outputs is known (decorators).
        opt, upper: expressions of the usual and of the greatest number.
    """

    __slots__ = ("opt", "output", "upper")

    def __init__(self, output: int, opt: IDimensionExpr, upper: IDimensionExpr) -> None:
        self.output, self.opt, self.upper = output, opt, upper

    def is_size_tensor(self) -> bool:
        """See `IDimensionExpr`."""
        return True

    def __repr__(self) -> str:
        return f"size_tensor(output{self.output} <= {self.upper!r})"


class _Operation(IDimensionExpr):
    __slots__ = ("a", "b", "op")

    def __init__(self, op: DimensionOperation, a: IDimensionExpr, b: IDimensionExpr) -> None:
        self.op, self.a, self.b = op, a, b

    def evaluate(self, resolve: Resolve) -> int:
        return _apply(self.op, self.a.evaluate(resolve), self.b.evaluate(resolve))

    def leaves(self) -> Iterator[IDimensionExpr]:
        yield from self.a.leaves()
        yield from self.b.leaves()

    def __repr__(self) -> str:
        return f"{self.op.name.lower()}({self.a!r}, {self.b!r})"


def _apply(op: DimensionOperation, a: int, b: int) -> int:
    if op in (DimensionOperation.FLOOR_DIV, DimensionOperation.CEIL_DIV):
        if b == 0:
            raise ShapeError(f"{a} is divided by zero")
        return a // b if op == DimensionOperation.FLOOR_DIV else -(-a // b)
    return int(_OPERATIONS[op](a, b))


_OPERATIONS: dict[DimensionOperation, Callable[[int, int], int]] = {
    DimensionOperation.SUM: lambda a, b: a + b,
    DimensionOperation.PROD: lambda a, b: a * b,
    DimensionOperation.MAX: max,
    DimensionOperation.MIN: min,
    DimensionOperation.SUB: lambda a, b: a - b,
    DimensionOperation.EQUAL: lambda a, b: int(a == b),
    DimensionOperation.LESS: lambda a, b: int(a < b),
}


class IExprBuilder:
    """Makes expressions; handed to `get_output_dimensions` and `get_output_shapes`."""

    def constant(self, value: int) -> IDimensionExpr:
        """A number."""
        if isinstance(value, bool) or not hasattr(value, "__index__"):
            raise TypeError(f"{value!r} is not an integer")
        return _Constant(value.__index__())

    def operation(
        self, op: DimensionOperation, first: IDimensionExpr, second: IDimensionExpr
    ) -> IDimensionExpr:
        """`first` op `second`; of two constants a constant.

        Raises:
            TypeError: an operand is not an expression.
            ShapeError: a division of constants by zero.
        """
        for value in (first, second):
            if not isinstance(value, IDimensionExpr):
                raise TypeError(
                    f"{value!r} is not an IDimensionExpr; expr_builder.constant() makes one"
                )
        op = DimensionOperation(op)
        if first.is_constant() and second.is_constant():
            return _Constant(_apply(op, first.get_constant_value(), second.get_constant_value()))
        return _Operation(op, first, second)

    def declare_size_tensor(
        self, output_index: int, opt: IDimensionExpr, upper: IDimensionExpr
    ) -> IDimensionExpr:
        """An extent that the plugin writes to its scalar integer output `output_index`.

        Args:
            output_index: the 0-D INT32 or INT64 output.
            opt: the usual extent.
            upper: the greatest extent; memory is reserved for it.
        """
        for value in (opt, upper):
            if not isinstance(value, IDimensionExpr):
                raise TypeError(f"{value!r} is not an IDimensionExpr")
        return SizeTensor(int(output_index), opt, upper)


class DimsExprs(Sequence[IDimensionExpr]):
    """The axes of one tensor, as expressions.

    Args:
        axes: nothing, a number of axes to be set later, or the expressions.

    Raises:
        TypeError: an axis that is not an expression (a plain integer is not: use
            `expr_builder.constant`).
    """

    __slots__ = ("_axes",)

    def __init__(self, axes: int | Iterable[IDimensionExpr] = ()) -> None:
        if isinstance(axes, int):
            self._axes: list[IDimensionExpr | None] = [None] * axes
        else:
            self._axes = [_expression(axis) for axis in axes]
        if len(self._axes) > MAX_DIMS:
            raise ValueError(f"{len(self._axes)} axes; at most {MAX_DIMS}")

    def __len__(self) -> int:
        return len(self._axes)

    def __getitem__(self, index: Any) -> Any:
        return self._axes[index]

    def __setitem__(self, index: int, value: IDimensionExpr) -> None:
        self._axes[index] = _expression(value)

    def __repr__(self) -> str:
        return f"DimsExprs({', '.join(map(repr, self._axes))})"


SymbolicShapes: TypeAlias = Sequence[DimsExprs]
"""Shapes of a plugin's inputs or outputs."""


def _expression(value: object) -> IDimensionExpr:
    if not isinstance(value, IDimensionExpr):
        raise TypeError(f"{value!r} is not an IDimensionExpr; expr_builder.constant() makes one")
    return value


Extent: TypeAlias = "int | IDimensionExpr | SymbolicExtent"
"""A number of elements, known or not."""


class SymbolicExtent:
    """The extent of an axis to compute with: `+ - *`, and `//` rounding down.

    TensorRT's `IDimensionExpr` has no operators; this wraps one for the standard plugins, and for
    the decorators, whose `ShapeExpr` adds comparisons.
    """

    __slots__ = ("expr",)

    def __init__(self, value: int | IDimensionExpr | SymbolicExtent) -> None:
        self.expr: IDimensionExpr
        if isinstance(value, SymbolicExtent):
            self.expr = value.expr
        else:
            self.expr = value if isinstance(value, IDimensionExpr) else _BUILDER.constant(value)

    def apply(self, op: DimensionOperation, other: Extent, *, swap: bool = False) -> Self:
        """Apply an operation.

        `swap`: True makes `other` the first operand.
        """
        pair = (self.expr, SymbolicExtent(other).expr)
        return type(self)(_BUILDER.operation(op, *(pair[::-1] if swap else pair)))

    def __add__(self, other: Extent) -> Self:
        return self.apply(DimensionOperation.SUM, other)

    def __sub__(self, other: Extent) -> Self:
        return self.apply(DimensionOperation.SUB, other)

    def __mul__(self, other: Extent) -> Self:
        return self.apply(DimensionOperation.PROD, other)

    def __floordiv__(self, other: Extent) -> Self:
        return self.apply(DimensionOperation.FLOOR_DIV, other)

    def __rsub__(self, other: Extent) -> Self:
        return self.apply(DimensionOperation.SUB, other, swap=True)

    def __rfloordiv__(self, other: Extent) -> Self:
        return self.apply(DimensionOperation.FLOOR_DIV, other, swap=True)

    __radd__, __rmul__ = __add__, __mul__


_BUILDER = IExprBuilder()


Shape = tuple[int, ...]
MAX_AXIS = 2**40
MAX_TEXT = 16_384


@dataclass(frozen=True, slots=True)
class Shaped:
    """Shapes of a plugin's outputs.

    Attributes:
        shapes: of each output; the greatest or usual ones where the plugin decides.
        sized: per output, (axis, output that holds its extent) of the axes the plugin decides.
    """

    shapes: tuple[Shape, ...]
    sized: tuple[tuple[tuple[int, int], ...], ...]

    @property
    def data_dependent(self) -> bool:
        """Whether the plugin decides any axis."""
        return any(self.sized)


def symbols(dims: Shape, index: int) -> DimsExprs:
    """The shape of input `index`: constants, and an `Axis` for each -1."""
    make = IExprBuilder()
    return DimsExprs([make.constant(d) if d >= 0 else Axis(index, i) for i, d in enumerate(dims)])


def values(known: Sequence[int | None], index: int) -> DimsExprs:
    """The values of shape input `index`, as a shape."""
    make = IExprBuilder()
    return DimsExprs(
        [make.constant(v) if v is not None else Axis(index, i, of_values=True)
         for i, v in enumerate(known)]
    )  # fmt: skip


def evaluate(
    shapes: Sequence[DimsExprs],
    inputs: Sequence[Shape],
    shape_values: Sequence[Shape] = (),
    *,
    size: Literal["opt", "upper"] = "upper",
    where: str = "",
) -> Shaped:
    """Shapes of the outputs for real shapes of the inputs.

    `size`: which number stands for an extent that the plugin decides.

    Raises:
        PluginError: a division by zero, a negative or absurd extent, an input that is not there.
    """

    def leaf(expression: IDimensionExpr) -> int:
        if isinstance(expression, Axis):
            source = shape_values if expression.of_values else inputs
            return source[expression.input][expression.axis]
        if isinstance(expression, SizeTensor):
            return getattr(expression, size).evaluate(leaf)  # type: ignore[no-any-return]
        raise ShapeError(f"{expression!r} has no value")

    extents, sized = [], []
    for index, exprs in enumerate(shapes):
        try:
            axes = tuple(e.evaluate(leaf) for e in exprs)
        except (ShapeError, IndexError) as error:
            raise PluginError(f"the shape of output {index}: {error}", where=where) from error
        if any(not 0 <= d <= MAX_AXIS for d in axes):
            raise PluginError(
                f"output {index} would be {axes} for inputs {', '.join(map(str, inputs))}",
                where=where,
                expected="axes >= 0",
            )
        extents.append(axes)
        sized.append(tuple((i, e.output) for i, e in enumerate(exprs) if isinstance(e, SizeTensor)))
    return Shaped(tuple(extents), tuple(sized))


def evaluate_free(
    exprs: Sequence[DimsExprs], dims: Sequence[Shape], values: Sequence[Shape], where: str
) -> list[Shape]:
    """Evaluate shapes where axes may be free: -1 for those that differ between two trial extents.

    Raises:
        PluginError: as `evaluate`.
    """
    trials = []
    for stand_in in (7, 11):
        inputs = [tuple(stand_in if d < 0 else d for d in s) for s in dims]
        numbers = [tuple(stand_in if v < 0 else v for v in s) for s in values]
        trials.append(evaluate(exprs, inputs, numbers, where=where))
    shapes = []
    for i, (one, two) in enumerate(zip(trials[0].shapes, trials[1].shapes, strict=True)):
        decided = {axis for axis, _ in trials[0].sized[i]}
        pairs = enumerate(zip(one, two, strict=True))
        shapes.append(tuple(-1 if a != b or k in decided else a for k, (a, b) in pairs))
    return shapes


def to_text(shape: DimsExprs) -> str:
    """A symbolic shape as JSON, for plans."""
    return json.dumps([_tree(e) for e in shape], separators=(",", ":"))


def _tree(expression: Any) -> Any:
    if expression.is_constant():
        return expression.get_constant_value()
    if isinstance(expression, Axis):
        return ["value" if expression.of_values else "axis", expression.input, expression.axis]
    if isinstance(expression, SizeTensor):
        return ["size", expression.output, _tree(expression.opt), _tree(expression.upper)]
    return [expression.op.name.lower(), _tree(expression.a), _tree(expression.b)]


def from_text(text: str) -> DimsExprs:
    """A symbolic shape from JSON.

    Raises:
        ValueError: it is none.
    """
    if len(text) > MAX_TEXT:
        raise ValueError("the shape is too long")
    try:
        axes = json.loads(text)
        if not isinstance(axes, list) or len(axes) > MAX_DIMS:
            raise ValueError("the shape is no list of axes")
        return DimsExprs([_parse(axis, IExprBuilder()) for axis in axes])
    except RecursionError:
        raise ValueError("the shape is nested too deeply") from None
    except TypeError as error:
        raise ValueError(str(error)) from None


def _parse(tree: object, make: IExprBuilder) -> IDimensionExpr:
    if isinstance(tree, int) and not isinstance(tree, bool):
        return make.constant(tree)
    if not isinstance(tree, list) or not tree or not isinstance(tree[0], str):
        raise ValueError("the shape has a part that is no expression")
    kind, *parts = tree
    if kind in ("axis", "value") and len(parts) == 2:
        return Axis(_index(parts[0]), _index(parts[1]), of_values=kind == "value")
    if kind == "size" and len(parts) == 3:
        return SizeTensor(_index(parts[0]), _parse(parts[1], make), _parse(parts[2], make))
    if kind.upper() in DimensionOperation.__members__ and len(parts) == 2:
        operation = DimensionOperation[kind.upper()]
        return make.operation(operation, _parse(parts[0], make), _parse(parts[1], make))
    raise ValueError(f"the shape has an unknown part {kind[:20]!r}")


def _index(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 4096:
        raise ValueError("the shape has an index that is none")
    return value


def checked_leaves(
    shapes: Sequence[DimsExprs],
    ranks: Sequence[int],
    counts: Sequence[int],
    outputs: int,
    complain: Callable[[str], Exception],
) -> None:
    """Refuse expressions over axes that the inputs do not have.

    `ranks` and `counts` are of the inputs, and of the values of the shape inputs; `complain` makes
    the error.
    """
    for exprs in shapes:
        for expression in exprs:
            for part in expression.leaves():
                if isinstance(part, Axis):
                    there = counts if part.of_values else ranks
                    if part.input >= len(there) or part.axis >= there[part.input]:
                        raise complain(f"{part!r} is not there")
                if isinstance(part, SizeTensor) and part.output >= outputs:
                    raise complain(f"{part!r}: there is no output {part.output}")
