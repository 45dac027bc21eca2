"""Messages to the program that runs libraries of another processor, and its answers.

The other side, with the same numbers: `native/emulated/messages.h`. What comes back was written by
a process that runs a user's code: each number is looked at before it is believed.
"""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import Final

HEAD: Final = struct.Struct("<IIQ")
MOST_BYTES: Final = 1 << 31


class Operation(IntEnum):
    """Requests."""

    LOAD = 1
    FUNCTION = 2
    LAYERS = 3
    PARAMS = 4
    CALL = 5
    CREATORS = 6
    PLUGIN = 7
    NETWORK = 8
    REPLY = 9
    CALL_BACK = 10
    MEMORY = 11


class CallKind(IntEnum):
    """CallKind of the function that is called."""

    BOXES = 0
    INSTANCES = 1
    ATTRIBUTES = 2
    MAP = 3
    INPUTS = 4


class Status(IntEnum):
    """How a request ended."""

    DONE = 0
    FAILED = 1
    THREW = 2
    MISSING = 3
    NO_RESULT = 4
    ASKS = 5


class NonsenseError(ValueError):
    """An answer that the program does not give: its memory was overwritten."""


class Body:
    """A message that is being written."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def add(self, layout: str, *values: float) -> Body:
        """Append numbers: a `struct` layout of little-endian numbers without gaps."""
        self._parts.append(struct.pack(f"<{layout}", *values))
        return self

    def text(self, *words: str) -> Body:
        """Append texts."""
        for one in words:
            encoded = one.encode("utf-8", "surrogateescape")
            self._parts += [struct.pack("<I", len(encoded)), encoded]
        return self

    def raw(self, data: bytes) -> Body:
        """Append bytes."""
        self._parts.append(data)
        return self

    def data(self) -> bytes:
        """Return all of it."""
        return b"".join(self._parts)


class Reader:
    """An answer that is being read; raises NonsenseError beyond its end."""

    def __init__(self, data: bytes) -> None:
        self._data = memoryview(data)
        self._at = 0

    def numbers(self, layout: str) -> tuple[int, ...]:
        """Read integers: a `struct` layout."""
        values: tuple[int, ...] = struct.unpack(
            f"<{layout}", self.bytes(struct.calcsize("<" + layout))
        )
        return values

    def bytes(self, size: int) -> memoryview:
        """Read that many bytes."""
        if size > len(self._data) - self._at:
            raise NonsenseError("an answer that ends early")
        self._at += size
        return self._data[self._at - size : self._at]

    def text(self, wrong: str = "replace") -> str:
        """Read a text.

        Args:
            wrong: handler of bytes that are not UTF-8, as `bytes.decode` has them.
        """
        (size,) = self.numbers("I")
        return bytes(self.bytes(size)).decode("utf-8", wrong)

    def name(self) -> str:
        """Read a name of the library; bytes that are not UTF-8 become surrogates."""
        return self.text("surrogateescape")

    @property
    def left(self) -> int:
        """Bytes that are left."""
        return len(self._data) - self._at
