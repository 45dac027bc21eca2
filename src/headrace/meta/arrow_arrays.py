"""Columns of values as arrays of Arrow, made of their buffers.

`pyarrow.array` looks whether its values are those of pandas, which it imports where it is
installed: 30 MB and half a second of each process.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sized
from itertools import chain
from typing import Any

import numpy as np

from headrace._core.lazy import import_extra
from headrace._core.types import Array


def arrow_array(values: Any, kind: Any) -> Any:
    """A `pyarrow.Array`.

    Args:
        values: an array of numbers, or a collection; None in it is null.
        kind: its type: numbers, booleans, strings, or a list of these.
    """
    pa = import_extra("pyarrow", "arrow")
    types, buffer = pa.types, pa.py_buffer
    count = len(values)
    if isinstance(values, np.ndarray):
        numbers = np.ascontiguousarray(values, kind.to_pandas_dtype())
        return pa.Array.from_buffers(kind, count, [None, buffer(numbers)])
    valid, nulls = None, sum(value is None for value in values)
    if nulls:
        valid = buffer(_bits(value is not None for value in values))
    if types.is_list(kind):
        flat = chain.from_iterable(() if value is None else value for value in values)
        items = arrow_array(list(flat), kind.value_type)
        buffers = [valid, buffer(_offsets(values))]
        return pa.Array.from_buffers(kind, count, buffers, nulls, children=[items])
    if types.is_string(kind):
        texts = [(value or "").encode() for value in values]
        buffers = [valid, buffer(_offsets(texts)), buffer(b"".join(texts))]
    elif types.is_boolean(kind):
        buffers = [valid, buffer(_bits(map(bool, values)))]
    else:
        filled = [0 if value is None else value for value in values] if nulls else list(values)
        buffers = [valid, buffer(np.array(filled, kind.to_pandas_dtype()))]
    return pa.Array.from_buffers(kind, count, buffers, nulls)


def _bits(values: Iterable[bool]) -> Array:
    return np.packbits(np.fromiter(values, bool), bitorder="little")


def _offsets(values: Collection[Sized | None]) -> Array:
    lengths = [0, *(0 if value is None else len(value) for value in values)]
    return np.cumsum(lengths, dtype=np.int32)
