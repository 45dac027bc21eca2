"""Fields of plugins between C++ and Python: (name, type, length, bytes or None) and back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from noria.plugins.field_data import PluginField, PluginFieldCollection, PluginFieldType

Row = tuple[str, int, int, bytes | None]


def fields_from(rows: Iterable[Row]) -> PluginFieldCollection:
    """The collection that a C++ library gave; values are copied."""
    return PluginFieldCollection(
        PluginField(name, data, PluginFieldType(kind)) for name, kind, _, data in rows
    )


def fields_to(fields: Any) -> list[Row]:
    """A collection as C++ gets it."""
    return [(f.name, int(f.type), f.size, None if f.data is None else f.raw) for f in fields or ()]


class SharedFields:
    """A collection on its way to C++, where it is read in place."""

    def __init__(self, fields: Any) -> None:
        self.__noria_fields__ = fields_to(fields)
