"""Native plugins, creators and fields as Python objects, of every generation alike.

Each C++ class becomes a Python class of the same name, so that traces and errors name the user's
class.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self

from noria.binary.gpu_code import works_on_device
from noria.plugins.field_data import PluginField, PluginFieldCollection, PluginFieldType

Row = tuple[str, int, int, bytes | None]
"""A field between C++ and Python: name, type, length, bytes or None."""

_classes: dict[tuple[str, type], Any] = {}


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
        name = (native.class_name() or cls.__name__).partition("<")[0].rpartition("::")[2]
        made = _classes.get((name, cls))
        if made is None:
            made = _classes[name, cls] = type(name, (cls,), {"__module__": cls.__module__})
        wrapped: Self = made(native)
        return wrapped

    @property
    def library(self) -> str:
        """The shared library that the class is in."""
        return str(self.native.library)


class ForwardingPlugin(Forwarding):
    """A wrapper around a native plugin."""

    @property
    def plugin_version(self) -> str:
        """Version of the plugin; empty if it gives none."""
        return str(self.native.version() or "")

    @property
    def on_device(self) -> bool:
        """True if `enqueue` takes addresses of the GPU's memory."""
        return works_on_device(self.native.image, self.library)

    def clone(self) -> Any:
        """Wrap the plugin's own clone."""
        return self._wrapped(self.native.clone())

    def destroy(self) -> None:
        """Call the plugin's `destroy`."""
        self.native.destroy()

    def _wrapped(self, made: Any) -> Any:
        return None if made is None else type(self)(made)


def fields_from(rows: Iterable[Row]) -> PluginFieldCollection:
    """Make a collection of the fields of a C++ library; values are copied."""
    return PluginFieldCollection(
        PluginField(name, data, PluginFieldType(kind)) for name, kind, _, data in rows
    )


def fields_to(fields: Any) -> list[Row]:
    """Make the rows that C++ gets of a collection."""
    return [(f.name, int(f.type), f.size, None if f.data is None else f.raw) for f in fields or ()]


class SharedFields:
    """A collection on its way to C++, where it is read in place."""

    def __init__(self, fields: Any) -> None:
        self.__noria_fields__ = fields_to(fields)
