"""Records: data that is kept as JSON, every field typed and bounded."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, Self, TypeVar

import msgspec

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_R = TypeVar("_R")

Seconds = Annotated[float, msgspec.Meta(ge=0, le=sys.float_info.max)]


def finite(value: float | None, digits: int | None = None) -> float | None:
    """Return a number as JSON holds it, rounded to `digits`; None for NaN and infinity."""
    if value is None or not math.isfinite(value):
        return None
    return float(value) if digits is None else round(value, digits)


def finite_data(data: Any) -> Any:
    """Return data of a document as JSON holds it: None for NaN and infinity."""
    if isinstance(data, float):
        return finite(data)
    if isinstance(data, Mapping):
        return {key: finite_data(value) for key, value in data.items()}
    return [finite_data(value) for value in data] if isinstance(data, list | tuple) else data


def finite_row(one: DataclassInstance, digits: int) -> dict[str, Any]:
    """Return the fields of a dataclass as JSON holds them, numbers as `finite` gives them."""
    values = asdict(one)
    return {n: finite(v, digits) if isinstance(v, float) else v for n, v in values.items()}


class RecordError(ValueError):
    """Data that is no record of its kind.

    Attributes:
        place: the field, as `model.name`; empty for the whole.
        found: the fault.
        unknown: True if a newer kind may have that field, and this one has not.
    """

    def __init__(self, error: Exception) -> None:
        text, _, path = str(error).rpartition(" - at `$")
        text, path = (text, path[:-1]) if text else (path, "")
        path = path.replace("[...]", "").replace("[", ".").replace("]", "")
        field = text.partition("unknown field `")[2][:-1]
        self.unknown = bool(field)
        self.place = f"{path}.{field}"[:300].strip(".")
        self.found = (
            "JSON is nested too deeply" if isinstance(error, RecursionError) else text[:300]
        )
        super().__init__(f"{self.place}: {self.found}" if self.place else self.found)


class JsonRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The base of records. Creating one checks no types: `checked` does, as reading one does."""

    @classmethod
    def from_json(cls, data: bytes | str) -> Self:
        """Read a record.

        Raises:
            RecordError: it is none.
        """
        return _read(lambda: msgspec.json.decode(data, type=cls))

    @classmethod
    def from_dict(cls, values: Any) -> Self:
        """Make a record from the values of JSON that was read.

        Raises:
            RecordError: they are none.
        """
        return _read(lambda: msgspec.convert(values, cls))

    def checked(self) -> Self:
        """The same record.

        Raises:
            RecordError: it could not be read again.
        """
        return self.from_dict(self.to_dict())

    def changed(self, **values: Any) -> Self:
        """A copy with other values of some fields."""
        return msgspec.structs.replace(self, **values)

    def to_json(self) -> bytes:
        """The record as JSON."""
        return msgspec.json.encode(self)

    def to_dict(self) -> dict[str, Any]:
        """The values of the record, as JSON has them."""
        values: dict[str, Any] = msgspec.to_builtins(self)
        return values


def _read(read: Callable[[], _R]) -> _R:
    try:
        return read()
    except (ValueError, RecursionError) as error:
        raise RecordError(error) from error
