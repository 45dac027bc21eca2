"""Fields of the standard plugins: their types, defaults and limits, and reading them.

The original's creators read what they know and refuse what is out of range; since 8.5 a required
field that is missing is refused too. Source: standard-plugins spec, conventions.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from headrace._core.errors import ModelError
from headrace.plugins.field_data import (
    FLOATS,
    INTEGERS,
    PluginField,
    PluginFieldCollection,
    PluginFieldType,
)

Kind = Literal["number", "integer", "numbers", "integers", "text", "weights"]

REQUIRED: object = type("Required", (), {"__repr__": lambda self: "required"})()
"""Stands for the default of a field that has none."""

_TYPES: dict[str, PluginFieldType] = {
    "number": PluginFieldType.FLOAT32,
    "numbers": PluginFieldType.FLOAT32,
    "weights": PluginFieldType.FLOAT32,
    "integer": PluginFieldType.INT32,
    "integers": PluginFieldType.INT32,
    "text": PluginFieldType.CHAR,
}


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a standard plugin.

    Attributes:
        name: as the creator spells it.
        kind: one number or several, or text; weights are an array, since they may be many.
        default: what it is if left out; `REQUIRED` if it must not be.
        low, high: least and greatest value, of each element.
        above: every element is greater.
        length: how many elements, None for any number.
        one_of: the values there are, None for any.
    """

    name: str
    kind: Kind
    default: object = REQUIRED
    low: float | None = None
    high: float | None = None
    above: float | None = None
    length: int | None = None
    one_of: tuple[object, ...] | None = None

    @property
    def type(self) -> PluginFieldType:
        """The type that the creator declares."""
        return _TYPES[self.kind]

    @property
    def required(self) -> bool:
        """Whether it must be given."""
        return self.default is REQUIRED

    def limits(self) -> str:
        """The allowed values in words; empty if all are."""
        if self.one_of is not None:
            return " or ".join(map(str, self.one_of))
        parts = []
        if self.low is not None:
            parts.append(f"≥ {self.low:g}")
        if self.above is not None:
            parts.append(f"> {self.above:g}")
        if self.high is not None:
            parts.append(f"≤ {self.high:g}")
        return ", ".join(parts)

    def describe(self) -> str:
        """Type and limits: `FLOAT32[4]`, `INT32 > 0`."""
        many = "" if self.kind in ("number", "integer", "text") else f"[{self.length or ''}]"
        limits = self.limits()
        return f"{self.type.name}{many}{' ' if limits else ''}{limits}"

    def take(self, field: PluginField, where: str) -> object:
        """The value in `field`: a float, int or str, a tuple of them, or an array.

        Raises:
            ModelError: wrong type, wrong number of elements, out of range.
        """
        if self.kind == "text":
            if field.type != PluginFieldType.CHAR:
                raise self._wrong_type(field, where)
            return self._checked(field.text(), where)
        types = INTEGERS if self.kind in ("integer", "integers") else FLOATS
        data = field.data
        if field.type not in types or data is None:
            raise self._wrong_type(field, where)
        if self.kind == "weights":
            return np.array(data, np.float32)
        return self._checked(data.tolist(), where)

    def _wrong_type(self, field: PluginField, where: str) -> ModelError:
        kind = f"{field.type.name}" if field.raw else "declared, but has no value"
        return ModelError(
            f"field {self.name!r} is {kind}",
            where=where,
            expected=self.describe(),
            fix="integer attributes of a node become INT32, float ones FLOAT32: write 1.0 for 1",
        )

    def _checked(self, value: Any, where: str) -> Any:
        if self.kind == "text":
            good = self.one_of is None or value in self.one_of
        else:
            number = float if self.kind in ("number", "numbers") else int
            values = [number(v) for v in value]
            single = self.kind in ("number", "integer")
            length = 1 if single else self.length
            good = (length is None or len(values) == length) and all(map(self._fits, values))
            if good:
                value = values[0] if single else tuple(values)
        if not good:
            raise ModelError(
                f"field {self.name!r} is {value}", where=where, expected=self.describe()
            )
        return value

    def _fits(self, value: float) -> bool:
        # comparisons that a NaN fails
        return (
            (self.one_of is None or value in self.one_of)
            and (self.low is None or value >= self.low)
            and (self.above is None or value > self.above)
            and (self.high is None or value <= self.high)
        )

    def field(self, value: Any) -> PluginField:
        """`value` as a field."""
        if self.kind == "text":
            return PluginField(self.name, value.encode() + b"\0", self.type)
        dtype = np.float32 if self.type == PluginFieldType.FLOAT32 else np.int32
        return PluginField(self.name, np.atleast_1d(np.array(value, dtype)), self.type)


def number(name: str, default: object = REQUIRED, **limits: Any) -> Field:
    """A FLOAT32 field."""
    return Field(name, "number", default, **limits)


def integer(name: str, default: object = REQUIRED, **limits: Any) -> Field:
    """An INT32 field."""
    return Field(name, "integer", default, **limits)


def floats(name: str, default: object = REQUIRED, **limits: Any) -> Field:
    """A field of several FLOAT32."""
    return Field(name, "numbers", default, **limits)


def integers(name: str, default: object = REQUIRED, **limits: Any) -> Field:
    """A field of several INT32."""
    return Field(name, "integers", default, **limits)


def weights(name: str, default: object = REQUIRED) -> Field:
    """A field of many FLOAT32, kept as an array."""
    return Field(name, "weights", default)


def text(name: str, default: object = REQUIRED, **limits: Any) -> Field:
    """A CHAR field."""
    return Field(name, "text", default, **limits)


class Given:
    """The values of a plugin's fields, as attributes. Not to be changed."""

    def __init__(self, values: Mapping[str, object]) -> None:
        self._values = dict(values)

    def __getattr__(self, name: str) -> Any:
        try:
            return self.__dict__["_values"][name]
        except KeyError:
            raise AttributeError(name) from None

    @classmethod
    def read(cls, fields: Sequence[Field], collection: Iterable[PluginField], where: str) -> Given:
        """The values in a collection; fields that the plugin does not have are ignored.

        Raises:
            ModelError: a required field is missing, or one has a wrong type or value.
        """
        by_name = {field.name: field for field in collection}
        missing = [f.name for f in fields if f.required and f.name not in by_name]
        if missing:
            raise ModelError(
                f"field {', '.join(map(repr, missing))} is missing",
                where=where,
                expected=", ".join(f"{f.name} ({f.describe()})" for f in fields if f.required),
                fix=f"it has {', '.join(map(repr, by_name))}" if by_name else None,
            )
        return cls(
            {
                f.name: f.take(by_name[f.name], where) if f.name in by_name else f.default
                for f in fields
            }
        )

    def collection(self, fields: Sequence[Field]) -> PluginFieldCollection:
        """The values as fields, from which `read` gives them back."""
        return PluginFieldCollection(f.field(self._values[f.name]) for f in fields)

    def pack(self) -> dict[str, object]:
        """The values as JSON takes them; long lists as the bytes of their float32."""
        packed: dict[str, object] = {}
        for name, value in self._values.items():
            many = isinstance(value, tuple) and len(value) > 16 and isinstance(value[0], float)
            if many or isinstance(value, np.ndarray):
                raw = np.asarray(value, "<f4").tobytes()
                packed[name] = {"float32": base64.b64encode(raw).decode()}
            else:
                packed[name] = value
        return packed

    @classmethod
    def unpack(cls, fields: Sequence[Field], packed: Any, where: str) -> Given:
        """The values again, checked as if they came from a model.

        Raises:
            ModelError: `packed` is nothing that `pack` made.
        """
        try:
            values = {
                name: np.frombuffer(base64.b64decode(value["float32"]), "<f4")
                if isinstance(value, dict)
                else value
                for name, value in packed.items()
            }
            collection = [
                field.field(values[field.name]) for field in fields if field.name in values
            ]
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise ModelError(
                f"its saved fields cannot be read: {error}", where=where,
                fix="build the engine again",
            ) from error  # fmt: skip
        return cls.read(fields, collection, where)

    def __repr__(self) -> str:
        return json.dumps(self._values, default=str)
