"""Shapes, descriptors and expressions of plugins in messages to the emulated program."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import Any, Final

from headrace.custom.emulated.messages import NonsenseError, Reader
from headrace.plugins.expressions import IDimensionExpr, IExprBuilder
from headrace.plugins.types import MAX_DIMS, DimensionOperation

_DIMS: Final = struct.Struct(f"<i4x{MAX_DIMS}q")
_DESC: Final = struct.Struct("<iif4x")
_DEEPEST = 200  # nodes above each other in an expression that is read


def _dims(axes: Iterable[int]) -> bytes:
    values = list(axes)
    if len(values) > MAX_DIMS:
        raise ValueError("more than 8 axes")
    return _DIMS.pack(len(values), *values, *[0] * (MAX_DIMS - len(values)))


def shapes_data(shapes: Sequence[Iterable[int]]) -> bytes:
    """Write shapes, each as Dims."""
    return struct.pack("<I", len(shapes)) + b"".join(map(_dims, shapes))


def descs_data(descs: Sequence[Any]) -> bytes:
    """Write PluginTensorDesc or DynamicPluginTensorDesc, with the limits of the latter."""
    parts = [struct.pack("<I", len(descs))]
    for desc in descs:
        inner = getattr(desc, "desc", None)
        one = desc if inner is None else inner
        kind, format = (-1 if value is None else int(value) for value in (one.type, one.format))
        parts += [_dims(one.dims), _DESC.pack(kind, format, float(one.scale))]
        profile = [()] * 3 if inner is None else [desc.min, desc.opt, desc.max]
        parts += map(_dims, profile)
    return b"".join(parts)


def read_axes(answer: Reader) -> tuple[int, ...]:
    """Read Dims."""
    count, *axes = _DIMS.unpack(answer.bytes(_DIMS.size))
    if not 0 <= count <= MAX_DIMS:
        raise ValueError(f"{count} axes; Dims has at most {MAX_DIMS}")
    return tuple(axes[:count])


def read_exprs(
    answer: Reader, leaves: Sequence[IDimensionExpr], builder: IExprBuilder
) -> list[IDimensionExpr | None]:
    """Read the axes of an output as the program writes them."""

    def one(depth: int) -> IDimensionExpr | None:
        (kind,) = answer.numbers("I")
        if kind == 0:
            return None
        if depth > _DEEPEST or kind > 4:
            raise NonsenseError("an expression that is none")
        (number,) = answer.numbers("q")
        if kind == 1:
            if not 0 <= number < len(leaves):
                raise NonsenseError(f"axis {number} of {len(leaves)}")
            return leaves[number]
        if kind == 2:
            return builder.constant(number)
        first, second = one(depth + 1), one(depth + 1)
        if first is None or second is None:
            raise NonsenseError("an operation without operands")
        if kind == 4:
            return builder.declare_size_tensor(number, first, second)
        return builder.operation(DimensionOperation(number), first, second)

    (count,) = answer.numbers("i")
    if not 0 <= count <= MAX_DIMS:
        raise ValueError(f"{count} axes; DimsExprs has at most {MAX_DIMS}")
    return [one(0) for _ in range(count)]
