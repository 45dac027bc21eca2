"""Native plugins, creators and fields as Python objects, of every generation alike.

Each C++ class becomes a Python class of the same name, so that traces and errors name the user's
class.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self, TypeVar

from headrace.plugins.field_data import PluginField, PluginFieldCollection, PluginFieldType

Row = tuple[str, int, int, bytes | None]
"""A field between C++ and Python: name, type, length, bytes or None."""

T = TypeVar("T")
_classes: dict[tuple[str, type], Any] = {}


def named_class(base: type[T], name: str) -> type[T]:
    """The subclass that is called as the C++ class is: traces and errors name the user's class."""
    name = (name or base.__name__).partition("<")[0].rpartition("::")[2]
    if (name, base) not in _classes:
        _classes[name, base] = type(name, (base,), {"__module__": base.__module__})
    found: type[T] = _classes[name, base]
    return found


class Forwarding:
    """A wrapper around a native object.

    Attributes:
        native: the object of the native module.
    """

    def __init__(self, native: Any) -> None:
        self.native = native

    @classmethod
    def of(cls, native: Any) -> Self:
        """Wrap in a subclass with the name of the C++ class."""
        return named_class(cls, native.class_name() or cls._kind(native))(native)

    @staticmethod
    def _kind(native: Any) -> str:
        """Return the name of an object of a library without names of classes (-fno-rtti)."""
        return str(native.name())

    @property
    def library(self) -> str:
        """The shared library that the class is in."""
        return str(self.native.library)

    @property
    def plugin_namespace(self) -> str:
        """The namespace that the object has in the registry."""
        return str(self.native.get_namespace() or "")

    @plugin_namespace.setter
    def plugin_namespace(self, value: str) -> None:
        self.native.set_namespace(value)


def fields_from(rows: Iterable[Row]) -> PluginFieldCollection:
    """Make a collection of the fields of a C++ library; values are copied."""
    return PluginFieldCollection(
        PluginField(name, data, PluginFieldType(kind)) for name, kind, _, data in rows
    )


def fields_to(fields: Any) -> list[Row]:
    """Make the rows that C++ gets of a collection; an empty list has null data, as in TensorRT."""
    return [(f.name, int(f.type), f.size, f.raw or None) for f in fields or ()]


class SharedFields:
    """A collection on its way to C++, where it is read in place."""

    def __init__(self, fields: object) -> None:
        self.__headrace_fields__ = fields_to(fields)


class CppAddress:
    """An address on its way to C++."""

    def __init__(self, value: int) -> None:
        self.__headrace_address__ = value
