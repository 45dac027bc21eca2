"""The release of TensorRT that `headrace.trt` looks like.

By default it is the union of 8.6, 10 and 11: every name is there, and `__version__` is 8.6.1.
`set_version("10")`, the environment variable `HEADRACE_TRT_VERSION` or `headrace exec
--trt-version`
choose one release: names it lacks are hidden, and enums get its numbers.
"""

from __future__ import annotations

import inspect
import os
import re
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from headrace._core.errors import ConfigError

ENVIRONMENT = "HEADRACE_TRT_VERSION"

CHOOSE_RELEASE = (
    "the batch is explicit here, and the script was written for implicit ones: choose its release "
    f"before networks are made, with headrace exec --trt-version 8.6 or {ENVIRONMENT}=8.6"
)

Version = tuple[int, int]
"""Major and minor number."""


@dataclass(frozen=True, slots=True)
class Release:
    """A release to look like.

    Attributes:
        name: `union` or the number that was asked for.
        version: `__version__` of the module.
        number: major and minor; None for the union, which hides nothing.
    """

    name: str
    version: str
    number: Version | None


_RELEASES = {
    "union": Release("union", "8.6.1", None),
    "8.6": Release("8.6", "8.6.1", (8, 6)),
    "10": Release("10", "10.16.0", (10, 16)),
    "11": Release("11", "11.1.0", (11, 1)),
}


_BOUND = re.compile(r"(deprecated>=|>=|<)(\d+(?:\.\d+)?)")


@dataclass(frozen=True, slots=True)
class Span:
    """Releases that have a name.

    Attributes:
        since: the first one.
        removed: the first one without it.
        deprecated: the first one that warns.
        instead: the replacement that the warning recommends.
    """

    since: Version | None = None
    removed: Version | None = None
    deprecated: Version | None = None
    instead: str = ""

    @classmethod
    def of(cls, text: str, instead: str = "") -> Span:
        """Read a span such as `>=8.5`, `<11` or `<10 deprecated>=8.5`.

        Args:
            text: the bounds, in any order; empty for every release.
            instead: the replacement that the warning names.
        """
        bounds = {word: _version(number) for word, number in _BOUND.findall(text)}
        return cls(bounds.get(">="), bounds.get("<"), bounds.get("deprecated>="), instead)

    def has(self, number: Version | None) -> bool:
        """True if a release has the name; the union has every name."""
        if number is None:
            return True
        return (self.since is None or number >= self.since) and (
            self.removed is None or number < self.removed
        )


class _State:
    release = _RELEASES["union"]


def release_of(name: str) -> Release:
    """Read the name of a release: `8.6`, `10.x`, `11.1`, `union` ….

    Raises:
        ConfigError: a release that is not known.
    """
    text = name.strip().lower().removesuffix(".x")
    if text in _RELEASES:
        return _RELEASES[text]
    parts = text.split(".")
    if all(p.isdigit() and len(p) <= 3 for p in parts) and 1 <= len(parts) <= 4:
        major, minor = int(parts[0]), int(parts[1]) if len(parts) > 1 else 0
        if major in (8, 9, 10, 11):
            full = ".".join([*parts, "0", "0"][: max(3, len(parts))])
            return Release(text, full, (major, minor))
    raise ConfigError(
        f"{name!r} is no TensorRT release that headrace.trt can look like",
        expected="union, 8.6, 10.x, 11.x, or one of their minor numbers such as 10.3",
    )


def set_version(name: str) -> None:
    """Look like that release from now on, in the whole process.

    Raises:
        ConfigError: a release that is not known.
    """
    _State.release = release_of(name)


def current() -> Release:
    """The release that is looked like."""
    return _State.release


def generation() -> int:
    """Give 8, 10 or 11: the generation of the enums' numbers and of rules that differ."""
    number = _State.release.number
    return 8 if number is None or number[0] < 10 else min(number[0], 11)


def missing(owner: str, name: str) -> AttributeError:
    """The error for a name that the release looked like does not have."""
    return AttributeError(f"{owner} has no attribute {name!r} in TensorRT {_State.release.version}")


def _version(text: str) -> Version:
    major, _, minor = text.partition(".")
    return int(major), int(minor or 0)


Class = TypeVar("Class", bound=type)


def versioned(rows: Mapping[str, str]) -> Callable[[Class], Class]:
    """Hide methods and properties of the decorated class in releases that lack them.

    Args:
        rows: span -> names with a comma between them; `name -> text` adds the replacement that the
            warning about a deprecated name recommends.
    """

    def apply(cls: Class) -> Class:
        for text, names in rows.items():
            for row in names.split(","):
                name, _, instead = (part.strip() for part in row.partition("->"))
                span = Span.of(text, instead)
                setattr(cls, name, _Versioned(cls.__dict__[name], name, span))
        return cls

    return apply


def shown(cls: type, names: Iterable[str]) -> list[str]:
    """Leave out private names, and those that the release does not have.

    Args:
        cls: the class, or that of the object, with these names.
        names: as `object.__dir__` gives them.
    """
    number = _State.release.number
    visible = []
    for name in names:
        held = inspect.getattr_static(cls, name, None)
        absent = isinstance(held, _Versioned) and not held._span.has(number)
        if not absent and (name.startswith("__") or not name.startswith("_")):
            visible.append(name)
    return visible


class _Versioned:
    """A method or property that some releases lack; `hasattr` is False for those."""

    def __init__(self, inner: Any, name: str, span: Span) -> None:
        self._inner = inner
        self._name = name
        self._span = span
        self.__doc__ = getattr(inner, "__doc__", None)

    def _check(self, owner: type) -> None:
        number = _State.release.number
        if not self._span.has(number):
            raise missing(f"{owner.__name__!r} object", self._name)
        warns = self._span.deprecated
        if warns is not None and number is not None and number >= warns:
            instead = f"; use {self._span.instead}" if self._span.instead else ""
            warnings.warn(
                f"{owner.__name__}.{self._name} is deprecated since TensorRT "
                f"{warns[0]}.{warns[1]}{instead}",
                DeprecationWarning,
                stacklevel=3,
            )

    def __get__(self, instance: Any, owner: type) -> Any:
        self._check(owner)
        bind = getattr(type(self._inner), "__get__", None)
        return self._inner if bind is None else bind(self._inner, instance, owner)

    def __set__(self, instance: Any, value: Any) -> None:
        self._check(type(instance))
        setter = getattr(type(self._inner), "__set__", None)
        if setter is None:
            raise AttributeError(f"{self._name!r} cannot be set")
        setter(self._inner, instance, value)


if _asked := os.environ.get(ENVIRONMENT):
    set_version(_asked)
