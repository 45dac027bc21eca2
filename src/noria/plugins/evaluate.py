"""Symbolic shapes with numbers put in, and as text for plans.

Source: tensorrt-plugins spec 7.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from noria._core.errors import PluginError
from noria.plugins.dims import MAX_DIMS
from noria.plugins.expressions import (
    Axis,
    DimsExprs,
    IDimensionExpr,
    IExprBuilder,
    ShapeError,
    SizeTensor,
)
from noria.plugins.types import DimensionOperation

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

    Args:
        shapes: of the outputs, in terms of the inputs.
        inputs: their shapes.
        shape_values: values of the shape inputs.
        size: which number stands for an extent that the plugin decides.
        where: for messages.

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

    found, sized = [], []
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
        found.append(axes)
        sized.append(tuple((i, e.output) for i, e in enumerate(exprs) if isinstance(e, SizeTensor)))
    return Shaped(tuple(found), tuple(sized))


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


def _parse(tree: Any, make: IExprBuilder) -> IDimensionExpr:
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


def _index(value: Any) -> int:
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

    Args:
        shapes: of the outputs.
        ranks: of the inputs.
        counts: of the values of the shape inputs.
        outputs: how many outputs there are.
        complain: makes the error.
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
