"""Columns of the user's manifests: they go with each input into every table of the results."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Any

from headrace._core.errors import MediaError
from headrace._core.findings import Finding
from headrace._core.lazy import import_extra
from headrace.batches.units import Value

Columns = tuple[tuple[str, str], ...]
"""Name and type of each column; see `type_of`."""

INPUT = "input"
RENAMED = "given_{}"
_SECONDS = "timestamp[us]", "timestamp[us, tz=UTC]"


def type_of(kind: Any) -> str:
    """The type that a column of a pyarrow type is carried as.

    Truth values, numbers, texts, dates and times keep their kind, with 64 bits and microseconds.
    Everything else becomes text: lists and structs as JSON, the rest as Python writes it.
    """
    pa = import_extra("pyarrow", "arrow")
    types = pa.types
    if types.is_dictionary(kind):
        return type_of(kind.value_type)
    if types.is_boolean(kind):
        return "bool"
    if types.is_integer(kind):
        return "uint64" if types.is_uint64(kind) else "int64"
    if types.is_floating(kind):
        return "float64"
    if types.is_timestamp(kind):
        return _SECONDS[kind.tz is not None]
    return "date32" if types.is_date(kind) else "string"


def arrow_type(kind: str) -> Any:
    """The pyarrow type of one that `type_of` names."""
    pa = import_extra("pyarrow", "arrow")
    types = {
        "bool": pa.bool_(), "int64": pa.int64(), "uint64": pa.uint64(), "float64": pa.float64(),
        "string": pa.string(), "date32": pa.date32(),
        _SECONDS[0]: pa.timestamp("us"), _SECONDS[1]: pa.timestamp("us", "UTC"),
    }  # fmt: skip
    return types[kind]


def fields_of(columns: Columns) -> list[Any]:
    """The pyarrow fields of the columns; each may be null."""
    pa = import_extra("pyarrow", "arrow")
    return [pa.field(name, arrow_type(kind)) for name, kind in columns]


def arrays_of(columns: Columns, rows: Sequence[Sequence[Value]]) -> list[Any]:
    """An array for each column; a row without values is null in all of them."""
    pa = import_extra("pyarrow", "arrow")
    arrays = []
    for index, (_, kind) in enumerate(columns):
        values = [_read(row[index], kind) if row else None for row in rows]
        arrays.append(pa.array(values, arrow_type(kind)))
    return arrays


def constants_of(columns: Columns, values: Sequence[Value]) -> Any:
    """The table of one row for an input; None without columns."""
    if not columns:
        return None
    pa = import_extra("pyarrow", "arrow")
    return pa.Table.from_arrays(arrays_of(columns, [values]), schema=pa.schema(fields_of(columns)))


def _read(value: Value, kind: str) -> Any:
    if value is None or kind in ("bool", "int64", "uint64", "float64", "string"):
        return value
    return (date if kind == "date32" else datetime).fromisoformat(str(value))


def plain_value(value: Any, kind: str) -> Value:
    """A value that a manifest has, for units and the ledger."""
    if value is None:
        return None
    if kind == "float64":
        return float(value) if math.isfinite(value) else None
    if isinstance(value, bool | int):
        return value
    if isinstance(value, datetime | date):
        return value.isoformat() if kind != "string" else str(value)
    if isinstance(value, list | dict):
        return json.dumps(value, default=str)
    return str(value).encode(errors="replace").decode()


def joined_columns(
    given: Sequence[tuple[str, Mapping[str, str]]], reserved: frozenset[str]
) -> tuple[Columns, list[Finding]]:
    """The columns of all manifests together.

    Args:
        given: file, and its columns with their types.
        reserved: names of the results' own columns: one of these is renamed.

    Returns:
        The columns, and a notice of each that was renamed.

    Raises:
        MediaError: two manifests have one name for different types, or a new name is taken.
    """
    kinds: dict[str, tuple[str, str]] = {}
    notices: list[Finding] = []
    for file, columns in given:
        for name, kind in columns.items():
            other, before = kinds.setdefault(name, (file, kind))
            if before != kind:
                raise MediaError(
                    f"the column {name!r} is {kind} here and {before} in {other}",
                    where=file,
                    expected="one type for a column that all results have",
                )
    renamed = {name: RENAMED.format(name) for name in kinds if name in reserved}
    for name, new in renamed.items():
        file = kinds[name][0]
        if new in kinds:
            raise MediaError(
                f"the results have a column {name!r} of their own, and {new!r} is taken, too",
                where=file,
                fix="rename one of them",
            )
        text = f"the results have a column {name!r} of their own: the manifest's is {new!r} there"
        notices.append(Finding("column-renamed", "info", text, file))
    return tuple((renamed.get(n, n), kind) for n, (_, kind) in kinds.items()), notices


def described(columns: Columns) -> str:
    """The columns as JSON, for the identity of a run; empty without any."""
    return json.dumps(columns) if columns else ""


def parsed(text: str) -> Columns:
    """The columns that `described` gave."""
    return tuple((name, kind) for name, kind in json.loads(text or "[]"))
