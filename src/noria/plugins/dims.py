"""Shapes as TensorRT's Python users know them: like a tuple, but items may be set."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, overload

MAX_DIMS = 8


class Dims(Sequence[int]):
    """Up to 8 axes. Equal to a tuple of the same numbers, prints like one, slices to tuples.

    Args:
        shape: the axes; -1 for one that is known only at run time. A single number is that many
            axes of unknown extent, as in the original.

    Raises:
        ValueError: more than 8 axes.
        TypeError: an axis that is not an integer.
    Source: tensorrt-api spec 2.
    """

    MAX_DIMS = MAX_DIMS
    __slots__ = ("_axes",)

    def __init__(self, shape: Iterable[int] | int = ()) -> None:
        axes = [-1] * shape if isinstance(shape, int) else [_axis(d) for d in shape]
        if len(axes) > MAX_DIMS:
            raise ValueError(f"{len(axes)} axes; Dims has at most {MAX_DIMS}")
        self._axes = axes

    @overload
    def __getitem__(self, index: int) -> int: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[int, ...]: ...
    def __getitem__(self, index: int | slice) -> int | tuple[int, ...]:
        if isinstance(index, slice):
            return tuple(self._axes[index])
        return self._axes[index]

    def __setitem__(self, index: int | slice, value: Any) -> None:
        if isinstance(index, slice):
            new = [_axis(d) for d in value]
            if len(self._axes[index]) != len(new):
                raise ValueError("a slice of Dims can only be set to as many numbers")
            self._axes[index] = new
        else:
            self._axes[index] = _axis(value)

    def __len__(self) -> int:
        return len(self._axes)

    def __iter__(self) -> Iterator[int]:
        return iter(self._axes)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, (Dims, tuple, list)):
            return self._axes == list(other)
        return NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __add__(self, other: Iterable[int]) -> tuple[int, ...]:
        return (*self._axes, *other)

    def __radd__(self, other: Iterable[int]) -> tuple[int, ...]:
        return (*other, *self._axes)

    def numel(self) -> int:
        """Number of elements; negative if an axis is unknown."""
        count = 1
        for axis in self._axes:
            count *= axis
        return -1 if any(axis < 0 for axis in self._axes) else count

    def __repr__(self) -> str:
        return repr(tuple(self._axes))


class _Fixed(Dims):
    __slots__ = ()
    _rank = 0

    def __init__(self, *shape: Any) -> None:
        if not shape:
            super().__init__([0] * self._rank)
        else:
            super().__init__(shape[0] if len(shape) == 1 else shape)
        if len(self) != self._rank:
            raise ValueError(f"{len(self)} axes; {type(self).__name__} has {self._rank}")


class Dims2(_Fixed):
    """Two axes: `Dims2(a, b)`."""

    __slots__ = ()
    _rank = 2


class DimsHW(Dims2):
    """Height and width."""

    __slots__ = ()

    @property
    def h(self) -> int:
        """Height."""
        return self[0]

    @h.setter
    def h(self, value: int) -> None:
        self[0] = value

    @property
    def w(self) -> int:
        """Width."""
        return self[1]

    @w.setter
    def w(self, value: int) -> None:
        self[1] = value


class Dims3(_Fixed):
    """Three axes: `Dims3(a, b, c)`."""

    __slots__ = ()
    _rank = 3


class Dims4(_Fixed):
    """Four axes: `Dims4(a, b, c, d)`."""

    __slots__ = ()
    _rank = 4


def _axis(value: Any) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{value!r} is not the extent of an axis")
    return int(value.__index__())
