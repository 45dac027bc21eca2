"""Objects of Python's as records of C, packed in one piece: most objects of a batch are plain.

A record holds all fields of a structure in the layout of C; the library copies them behind the base
meta of an element of its pool. What a record cannot hold (a mask, a nested structure that an
application keeps, a number that must be clipped) goes the way of `views.bind`.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable
from functools import cache
from operator import itemgetter
from typing import Any, NamedTuple

from headrace._core import _native
from headrace.gstreamer.cmeta.layout import c_type, structure
from headrace.gstreamer.cmeta.views import (
    Bound,
    Value,
    borrowed_address,
    fields_of,
)
from headrace.gstreamer.pyds.struct import Held, Struct, text_at

_CODES: dict[Any, str] = {
    ctypes.c_int32: "i", ctypes.c_uint32: "I", ctypes.c_int64: "q", ctypes.c_uint64: "Q",
    ctypes.c_float: "f", ctypes.c_double: "d", ctypes.c_uint8: "B", ctypes.c_int16: "h",
    ctypes.c_bool: "?", ctypes.c_void_p: "Q", ctypes.c_uint16: "H",
}  # fmt: skip


class _Part(NamedTuple):
    """The fields of a structure, or of one inside of it, in the order of their values.

    The native core reads it by index (native/src/results/gather.cpp).
    """

    plain: tuple[str, ...]  # numbers
    defaults: tuple[float, ...]  # of these
    owned: tuple[str, ...]  # texts that the structure frees
    borrowed: tuple[str, ...]  # texts that it does not
    characters: tuple[str, ...]
    arrays: tuple[tuple[str, int], ...]  # name and length
    empty: tuple[str, ...]  # pointers that stay 0 here
    nested: tuple[tuple[str, type[Struct], _Part], ...]
    blank: tuple[Value, ...] | None  # the values of one that nothing was written to
    is_plain: bool  # numbers alone


class PackedRecord:
    """How a class of pyds is packed.

    Args:
        plain: the class.

    Attributes:
        size: bytes of a record.
    """

    def __init__(self, plain: Bound) -> None:
        places: list[tuple[int, str]] = []
        self.size = ctypes.sizeof(structure(plain.__name__))
        self._part = _part_of(plain, 0, places)
        order = sorted(range(len(places)), key=lambda i: places[i][0])
        self._sorted: Callable[[list[Value]], tuple[Value, ...]] = itemgetter(*order)
        text, at = "=", 0
        for offset, code in (places[i] for i in order):
            text += (f"{offset - at}x" if offset > at else "") + code
            at = offset + struct.calcsize(f"={code}")
        self._packer = struct.Struct(f"{text}{self.size - at}x")

    def pack(self, value: Struct) -> bytes | None:
        """Pack a structure of Python's; its texts belong to the record then.

        Returns:
            The record; None for one that goes the long way, and is as it was.
        """
        values: list[Value] = []
        texts: list[Held] = []
        try:
            if not _gather(self._part, value.__dict__, values, texts):
                return None
            record = self._packer.pack(*self._sorted(values))
        except (struct.error, TypeError, AttributeError, OverflowError):
            return None
        for held in texts:
            held.address = 0
        return record


@cache
def record_of(plain: Bound) -> PackedRecord:
    """Return how a class of pyds is packed."""
    return PackedRecord(plain)


def _part_of(plain: Bound, base: int, places: list[tuple[int, str]]) -> _Part:
    """List the fields of a structure; `places` gets the offset and format of each value."""
    c, kinds = structure(plain.__name__), fields_of(plain)
    kinds["nested"].pop("base_meta", None)

    def place(name: str, code: str) -> None:
        places.append((base + getattr(c, name).offset, code))

    for name, kind in kinds["plain"].items():
        place(name, _CODES[c_type(kind)])
    for name in (*kinds["owned"], *kinds["borrowed"]):
        place(name, "Q")
    for name in kinds["characters"]:
        place(name, f"{getattr(c, name).size}s")
    arrays = [(name, getattr(c, name).size // 8) for name in kinds["arrays"]]
    for name, count in arrays:
        start = base + getattr(c, name).offset
        places.extend((start + 8 * i, "q") for i in range(count))
    for name in kinds["empty"]:
        place(name, "Q")
    nested = [
        (name, inner, _part_of(inner, base + getattr(c, name).offset, places))
        for name, inner in kinds["nested"].items()
    ]
    defaults = tuple(_default(plain, name) for name in kinds["plain"])
    part = _Part(
        tuple(kinds["plain"]), defaults, tuple(kinds["owned"]), tuple(kinds["borrowed"]),
        tuple(kinds["characters"]), tuple(arrays), tuple(kinds["empty"]), tuple(nested),
        None, not any(kinds[kind] for kind in kinds if kind != "plain"),
    )  # fmt: skip
    values: list[Value] = []
    return part._replace(blank=tuple(values)) if _gather(part, {}, values, []) else part


def _default(plain: Bound, name: str) -> float:
    value = getattr(plain, name, 0)
    return value if isinstance(value, int | float) else 0


def _gather(part: _Part, old: dict[str, Value], values: list[Value], texts: list[Held]) -> bool:
    """Append the values of a structure; False for one that goes the long way."""
    return _native.gather(part, old, values, texts, Held, _address, _letters)


def _address(text: str | Held) -> int:
    """Return the address of a text that stays for ever."""
    known = text_at(text.address) if isinstance(text, Held) else text
    return borrowed_address(known) if known else 0


def _letters(text: str) -> bytes:
    return text.encode(errors="replace")[:127]
