"""The base of typed values that are checked, never change, and know where they came from."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cache
from inspect import get_annotations
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar, cast, dataclass_transform, get_type_hints

import msgspec

from headrace._core.errors import ConfigError
from headrace._core.near import did_you_mean, nearest
from headrace._core.text import quoted
from headrace.config.document import report
from headrace.config.key import Key
from headrace.config.origin import DEFAULT, Origin

if TYPE_CHECKING:
    from headrace.config.values import Values


REQUIRED = object()
"""Stands in `Frozen.FIELDS` for the default of a field that has none."""


@dataclass_transform(kw_only_default=True, frozen_default=True)
class Frozen(ABC):
    """Checked values. Fields are the annotations of the class, defaults its attributes."""

    FIELDS: ClassVar[Mapping[str, Any]] = {}
    """Field -> default."""

    _origins = cast("Mapping[str, Origin]", MappingProxyType({}))

    def __init_subclass__(cls) -> None:
        own = {name: getattr(cls, name, REQUIRED) for name in cls.__annotations__}
        cls.FIELDS = {**cls.FIELDS, **own}

    def __init__(self, **values: Any) -> None:
        """Make it from values.

        Raises:
            ConfigError: values are refused, or there are no such fields; all are reported.
        """
        self._take({}, values)

    def _take(self, typed: Values, values: Values) -> None:
        """Check values and keep them.

        Args:
            typed: values of the right types: those of a file, or of another one of this class.
            values: values of a program, which replace those.
        """
        problems = []
        for name, value in (typed | values).items():
            try:
                if name not in self.FIELDS:
                    raise _UnknownFieldError
                right = _typed(type(self), name, value) if name in values else value
                self.__dict__[name] = self._check_field(name, right)
            except ValueError as error:
                problems.append(self._refusal(name, value, error))
        needed = [name for name, default in self.FIELDS.items() if default is REQUIRED]
        kind = type(self).__name__
        problems += [ConfigError(f"{kind} needs {n}.") for n in needed if n not in typed | values]
        if not problems:
            try:
                self._check_whole()
            except ValueError as error:
                problems.append(ConfigError(f"{quoted(str(error), limit=300)}."))
        report(Path(kind), problems)

    @classmethod
    @abstractmethod
    def _key(cls, field: str) -> Key | None:
        """Look up the key of a config file that sets a field."""

    @classmethod
    @abstractmethod
    def _check_field(cls, field: str, value: Any) -> Any:
        """Return a value of the right type as it is kept; refuse it by ValueError."""

    def _check_whole(self) -> None:  # noqa: B027 - most settings stand alone
        """Refuse values that do not go together by ValueError."""

    @classmethod
    def _refusal(cls, name: str, value: Any, error: ValueError) -> ConfigError:
        if isinstance(error, _UnknownFieldError):
            return ConfigError(
                f"{quoted(name)} is not a field of {cls.__name__}.",
                fix=did_you_mean(nearest(name, cls.FIELDS)),
            )
        key, message = cls._key(name), quoted(str(error), limit=300)
        if key is not None and key.enum is not None:
            message = f"is not {key.enum.noun()}"
        shown = "" if name == "uri" else f"={quoted(str(value))}"  # it may hold a password
        return ConfigError(
            f"{cls._label(name)}{shown} {message}.", expected=key.expected() if key else None
        )

    @classmethod
    def _label(cls, field: str) -> str:
        """Name a field in messages."""
        return field

    def _origin_of(self, field: str) -> Origin:
        """Where the value of a field came from, named as field or as key.

        Raises:
            KeyError: there is no such field.
        """
        name = field.replace("-", "_")
        if name not in self.FIELDS:
            raise KeyError(field)
        return self._origins.get(name, DEFAULT)

    def values(self) -> Values:
        """The value of each field, by name."""
        return {name: getattr(self, name) for name in self.FIELDS}

    def _set_values(self) -> Values:
        """The values of the fields that were set."""
        return {name: value for name, value in vars(self).items() if name in self.FIELDS}

    def __setattr__(self, name: str, value: Any) -> None:
        if not name.startswith("_"):
            raise ValueError(f"{type(self).__name__} is frozen: {name} cannot be set")
        super().__setattr__(name, value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self)) and self.values() == other.values()


class _UnknownFieldError(ValueError):
    pass


@cache
def _type_of(cls: type, field: str) -> Any:
    """The type of one field: a run sets a few of a hundred, and each is compiled."""
    home = next(base for base in cls.__mro__ if field in get_annotations(base))
    alone = SimpleNamespace(__annotations__={field: home.__annotations__[field]})
    return get_type_hints(alone, vars(sys.modules[home.__module__]))[field]


def _typed(cls: type[Frozen], field: str, value: Any) -> Any:
    """Return a program's value as the type of a field: a list as tuple, a text as path."""
    try:
        kind = _type_of(cls, field)
        return msgspec.convert(plain(value), kind, strict=False, dec_hook=_instance)
    except msgspec.ValidationError as error:
        message = str(error)
        raise ValueError(f"is not usable: {message[0].lower()}{message[1:]}") from None


def plain(value: Any) -> Any:
    """Return bools and numpy's scalars as Python's numbers, sequences as lists of them."""
    if isinstance(value, list | tuple | range):
        return [plain(item) for item in value]
    if isinstance(value, bool):
        return int(value)
    return value.item() if getattr(value, "ndim", None) == 0 else value


def _instance(kind: Any, value: Any) -> Any:
    if isinstance(value, kind):
        return value
    if issubclass(kind, Frozen):
        return kind(**value)
    return kind(value)
