"""Shared by the classes of `noria.trt`: strict attributes, kept settings, and an idle `with`."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from operator import attrgetter
from typing import Any, Self


def always(value: Any, doc: str) -> Any:
    """A property that cannot be set and is the same for every object."""
    return property(lambda _: value, doc=doc)


def kept(
    attribute: str,
    doc: str,
    *,
    convert: Callable[[Any], Any] | None = None,
    read_only: bool = False,
) -> Any:
    """Make a property over `attribute`; a value goes through `convert` before it is set."""

    def put(self: Any, value: Any) -> None:
        setattr(self, attribute, value if convert is None else convert(value))

    return property(attrgetter(attribute), None if read_only else put, doc=doc)


def setting(
    name: str, default: Any, doc: str, *, convert: Callable[[Any], Any] | None = None
) -> Any:
    """Make a property kept in `_plain`; a value goes through `convert` before it is set."""

    def get(self: Any) -> Any:
        value = self._plain.get(name, default)
        return list(value) if isinstance(value, list) else value  # a copy, as of the original

    def put(self: Any, value: Any) -> None:
        self._plain[name] = value if convert is None else convert(value)

    return property(get, put, doc=doc)


class Strict:
    """Refuses attributes that the class does not have, as TensorRT's own objects do."""

    def __setattr__(self, name: str, value: Any) -> None:
        known = name.startswith("_") or any(name in c.__dict__ for c in type(self).__mro__)
        if not known:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        object.__setattr__(self, name, value)


class Closable(Strict):
    """`with` works and frees nothing: objects live as long as they are used.

    Source: tensorrt-api spec 2.
    """

    def __enter__(self) -> Self:
        warnings.warn(
            f"{type(self).__name__} need not be used in a with statement: it is freed when nothing "
            "refers to it",
            DeprecationWarning,
            stacklevel=2,
        )
        return self

    def __exit__(self, *_: object) -> None:
        return None
