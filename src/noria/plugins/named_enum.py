"""Integer enums that print as TensorRT's do."""

from __future__ import annotations

from enum import IntEnum


class NamedIntEnum(IntEnum):
    """Prints as `Class.NAME`; everywhere else it is its number."""

    def __str__(self) -> str:
        return f"{type(self).__name__}.{self.name}"

    def __format__(self, spec: str) -> str:
        return format(int(self), spec) if spec else str(self)
