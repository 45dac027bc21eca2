"""Shared by the classes of `headrace.trt`: strict attributes, kept settings, and an idle `with`."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import wraps
from operator import attrgetter
from typing import Any, Protocol, Self

from headrace.trt.release import shown


def always(value: object, doc: str) -> property:
    """A property that cannot be set and is the same for every object."""
    return property(lambda _: value, doc=doc)


def counted(attribute: str, doc: str) -> property:
    """Make a property that gives the length of `attribute`."""
    get = attrgetter(attribute)
    return property(lambda self: len(get(self)), doc=doc)


def kept(
    attribute: str,
    doc: str,
    *,
    convert: Callable[[Any], object] | None = None,
    read_only: bool = False,
) -> property:
    """Make a property over `attribute`; a value goes through `convert` before it is set."""

    def put(self: object, value: object) -> None:
        setattr(self, attribute, value if convert is None else convert(value))

    return property(attrgetter(attribute), None if read_only else put, doc=doc)


def by_binding(method: Callable[..., Any], key: str = "index") -> Any:
    """Make the older twin of a method: it takes the number of a binding instead of a name.

    Args:
        method: of an engine or a context, with the name as its first argument.
        key: name of the first argument of the twin.
    """

    @wraps(method)
    def call(self: Any, *values: object, **named: object) -> object:
        first, *rest = values or (named.pop(key),)
        engine = getattr(self, "_engine", self)
        return method(self, engine._at(first).name, *rest, **named)

    call.__doc__ = f"`{method.__name__}` by the number of a binding."
    return call


class _Holder(Protocol):
    _plain: dict[str, object]


class Stored(property):
    """A property kept in `_plain`; a value goes through `convert` before it is set."""

    def __init__(
        self, default: object, doc: str, convert: Callable[[Any], object] | None = None
    ) -> None:
        super().__init__(self._get, self._put, doc=doc)
        self._default, self._convert = default, convert

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def _get(self, holder: _Holder) -> object:
        value = holder._plain.get(self._name, self._default)
        return list(value) if isinstance(value, list) else value  # a copy, as of the original

    def _put(self, holder: _Holder, value: object) -> None:
        holder._plain[self._name] = value if self._convert is None else self._convert(value)


class Listed(type):
    """Metaclass: `dir` lists the public names that the release has."""

    def __dir__(cls) -> list[str]:
        return shown(cls, super().__dir__())


class Idle:
    """Base of objects that a `with` frees nothing of."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return None


class Subclassed(metaclass=Listed):
    """Base of the classes that applications subclass."""

    def __init__(self) -> None:
        """Subclasses call it first."""


class Strict(metaclass=Listed):
    """Refuses attributes that the class does not have, as TensorRT's own objects do."""

    def __dir__(self) -> list[str]:
        return shown(type(self), super().__dir__())

    def __setattr__(self, name: str, value: object) -> None:
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
