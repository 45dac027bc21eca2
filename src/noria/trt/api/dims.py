"""Orders of axes. Shapes are `noria.plugins.dims.Dims`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

_LENGTH = 8


class Permutation(Sequence[int]):
    """An order of up to 8 axes; always eight numbers, unused ones are 0.

    Raises:
        ValueError: more than 8 numbers.
    Source: tensorrt-api spec 7, idiom 16.
    """

    def __init__(self, order: Iterable[int] = range(_LENGTH)) -> None:
        numbers = [int(i) for i in order]
        if len(numbers) > _LENGTH:
            raise ValueError(f"{len(numbers)} axes; a permutation has at most {_LENGTH}")
        self._order = numbers + [0] * (_LENGTH - len(numbers))

    def __getitem__(self, index: Any) -> Any:
        return tuple(self._order)[index]

    def __setitem__(self, index: int, value: int) -> None:
        self._order[index] = int(value)

    def __len__(self) -> int:
        return _LENGTH

    def __iter__(self) -> Iterator[int]:
        return iter(self._order)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Permutation | tuple | list):
            return self._order == list(other)
        return NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(tuple(self._order))
