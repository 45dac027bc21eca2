"""Native plugins and creators as Python objects: what those of every generation forward.

Each C++ class is shown as a Python class of the same name, so that traces and errors name what the
user wrote.
"""

from __future__ import annotations

from typing import Any, Self

from noria.binary.gpu_code import works_on_device

_classes: dict[tuple[str, type], Any] = {}


class Forwarding:
    """A wrapper around a native object.

    Attributes:
        native: what the native module gave.
    """

    def __init__(self, native: Any) -> None:
        self.native = native

    @classmethod
    def of(cls, native: Any) -> Self:
        """Wrapped in a subclass that is called as the C++ class is."""
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
        return str(self.native.version() or "")

    @property
    def on_device(self) -> bool:
        """Whether `enqueue` takes addresses of the GPU's memory."""
        return works_on_device(self.native.image, self.library)

    def clone(self) -> Any:
        return self._wrapped(self.native.clone())

    def destroy(self) -> None:
        self.native.destroy()

    def _wrapped(self, made: Any) -> Any:
        return None if made is None else type(self)(made)
