"""Protobuf's wire format, read with suspicion: fields of one message, nothing copied.

Enough for the old formats, whose messages are few: no generated code, no descriptors. Nothing
here allocates by a number in the file; arrays are views on its bytes.
Source: the encoding that protobuf's documentation describes.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from headrace._core.types import Array

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
_MASK64 = 2**64 - 1


class WireError(Exception):
    """The bytes are no protobuf message; the text has the place."""


Value: TypeAlias = Any
"""A number or a view of bytes, as the wire type says."""


def fields(data: memoryview) -> Iterator[tuple[int, int, Value]]:
    """(field number, wire type, value) of one message.

    A value is an int (varint: unsigned), or a memoryview of the bytes (8, 4, or as many as the
    field says). Floats that follow one another unpacked, a tag before each as old writers have
    it, come as if they were packed: one by one a large layer takes minutes.
    """
    at, end = 0, len(data)
    while at < end:
        start = at
        tag, at = (data[at], at + 1) if data[at] < 128 else _varint(data, at)
        number, wire = tag >> 3, tag & 7
        if number == 0:
            raise WireError(f"byte {start} does not begin a field")
        if wire == VARINT:
            value, at = _varint(data, at)
            yield number, wire, value
            continue
        if wire == BYTES:  # most numbers of a model are one byte
            small = at < end and data[at] < 128
            size, at = (data[at], at + 1) if small else _varint(data, at)
        elif wire == FIXED32 and at == start + 1 and data[at + 4 : at + 5] == data[start:at]:
            run = _run(data, start)
            yield number, BYTES, memoryview(run[:, 1:].tobytes())
            at = start + 5 * len(run)
            continue
        elif wire in (FIXED64, FIXED32):
            size = 8 if wire == FIXED64 else 4
        else:
            raise WireError(f"byte {start} begins a field of unknown kind {wire}")
        if size > end - at:
            raise WireError(
                f"field {number} at byte {start} needs {size} bytes, {end - at} are left"
            )
        yield number, wire, data[at : at + size]
        at += size


def _run(data: memoryview, start: int) -> npt.NDArray[np.uint8]:
    """The rows (tag, four bytes) from `start` on that have the same tag. At least two fit."""
    count, rows = 64, np.empty((0, 5), np.uint8)
    while True:
        count = min(count, (len(data) - start) // 5)
        rows = np.frombuffer(data[start : start + 5 * count], dtype=np.uint8).reshape(-1, 5)
        other = rows[:, 0] != data[start]
        if other.any():
            return rows[: int(other.argmax())]
        if count == (len(data) - start) // 5:
            return rows
        count *= 8


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(data):
            raise WireError(f"the number at byte {at} breaks off")
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value & _MASK64, at
    raise WireError(f"the number before byte {at} has no end")


def signed(value: int) -> int:
    """A varint as the int64 it stands for."""
    return value - 2**64 if value >= 2**63 else value


def varints(wire: int, value: Value) -> list[int]:
    """The int64s of one occurrence of a repeated field, packed or not."""
    if wire == VARINT:
        return [signed(value)]
    if wire != BYTES:
        raise WireError("a list of integers holds something else")
    numbers, at = [], 0
    while at < len(value):
        number, at = _varint(value, at)
        numbers.append(signed(number))
    return numbers


def floats(wire: int, value: Value) -> npt.NDArray[np.float32]:
    """The floats of one occurrence of a repeated field, packed or single; a view."""
    return _numbers(wire, value, FIXED32, "<f4")


def doubles(wire: int, value: Value) -> npt.NDArray[np.float64]:
    """The doubles of one occurrence of a repeated field, packed or single; a view."""
    return _numbers(wire, value, FIXED64, "<f8")


def _numbers(wire: int, value: Value, single: int, dtype: str) -> Array:
    if wire not in (single, BYTES) or len(value) % np.dtype(dtype).itemsize:
        raise WireError("a list of numbers has a broken length or another kind")
    return np.frombuffer(value, dtype=dtype)


def number(wire: int, value: Value) -> float:
    """One double or float."""
    if wire == FIXED64:
        return float(struct.unpack("<d", value)[0])
    if wire == FIXED32:
        return float(struct.unpack("<f", value)[0])
    raise WireError("a number has another kind")


def text(wire: int, value: Value) -> str:
    """One string; bytes that are not UTF-8 are replaced."""
    if wire != BYTES:
        raise WireError("a text has another kind")
    return bytes(value).decode(errors="replace")


def message(wire: int, value: Value) -> memoryview:
    """The bytes of one message."""
    if wire != BYTES:
        raise WireError("a number stands where a message is expected")
    content: memoryview = value
    return content
