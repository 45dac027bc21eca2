"""Why a value of user code is no array of numbers: in words of ours, as NumPy's change."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Number
from typing import Any

import numpy as np

_DEEPEST = 32  # as NumPy reads


def array_fault(value: Any) -> str:
    """Name the first entry that makes a value no array of numbers.

    Args:
        value: nested lists, or anything else.

    Returns:
        Its place and what it is, such as `[2] has 3 entries, [0] has 4`.
    """
    return _fault(value, "", 0) or f"it is {_kind(value)}"


def _fault(value: Any, place: str, depth: int) -> str:
    if isinstance(value, np.ndarray):
        numeric = value.dtype.kind in "fiub"
        return "" if numeric else f"{place or 'it'} is {_kind(value)}"
    if isinstance(value, str | bytes) or not isinstance(value, Sequence):
        fits = isinstance(value, Number | np.generic) and not isinstance(value, complex)
        return "" if fits else f"{place or 'it'} is {_kind(value)}"
    if depth == _DEEPEST:
        return f"{place} is nested deeper than {_DEEPEST} lists"
    lengths = [_length(entry) for entry in value]
    for index, length in enumerate(lengths):
        if length != lengths[0]:
            first, other = (_entries(n) for n in (lengths[0], length))
            return f"{place}[{index}] {other}, {place}[0] {first}"
    return next(
        (fault for i, v in enumerate(value) if (fault := _fault(v, f"{place}[{i}]", depth + 1))), ""
    )


def _length(value: Any) -> int | None:
    """The number of its entries; None of one value."""
    if isinstance(value, np.ndarray):
        return len(value) if value.ndim else None
    return (
        len(value) if isinstance(value, Sequence) and not isinstance(value, str | bytes) else None
    )


def _entries(count: int | None) -> str:
    if count is None:
        return "is one value"
    return f"has {count} {'entry' if count == 1 else 'entries'}"


def _kind(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype}"
    return "None" if value is None else f"of type {type(value).__name__}"
