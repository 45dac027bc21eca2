"""Check values that user code returned.

Each function takes the `Instance` and the method it came from, and raises `PluginError` naming
plugin, layer, method, what was found and what must be there.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from headrace._core.errors import PluginError
from headrace._core.text import printable, shortened
from headrace.plugins.base import IPluginV3
from headrace.plugins.calls import Instance, wrong
from headrace.plugins.expressions import DimsExprs, IDimensionExpr
from headrace.plugins.field_data import PluginField, PluginFieldCollection
from headrace.plugins.spoken import spoken
from headrace.plugins.trace import Phase
from headrace.plugins.types import MAX_DIMS, DataType

if TYPE_CHECKING:
    from typing import TypeGuard


log = logging.getLogger("headrace.plugins")
MAX_OUTPUTS = 1024
MAX_SIZE = 2**40
MAX_TEXT = 1024


def as_count(instance: Instance, attribute: str, value: object) -> int:
    """A number of outputs."""
    if not _is_int(value) or not 1 <= value <= MAX_OUTPUTS:
        raise _bad(instance, attribute, value, f"a number of outputs, 1 to {MAX_OUTPUTS}")
    return int(value)


def as_text(instance: Instance, attribute: str, value: object, *, empty: bool = False) -> str:
    """A name, version or namespace."""
    if isinstance(value, str) and (value or empty):
        with suppress(UnicodeEncodeError):  # bytes of C++ that are no UTF-8
            if len(value.encode()) < MAX_TEXT:
                return value
    least = 0 if empty else 1
    raise _bad(instance, attribute, value, f"text of {least} to {MAX_TEXT - 1} bytes, UTF-8")


def as_bool(instance: Instance, method: str, value: object) -> bool:
    """A yes or no; 1 and 0 will do."""
    if isinstance(value, bool) or type(value).__name__ == "bool":  # NumPy's too
        return bool(value)
    if _is_int(value) and value in (0, 1):
        return bool(value)
    raise wrong(instance, method, _short(value), "True or False")


def as_status(instance: Instance, method: str, value: object) -> None:
    """A status of a C++ plugin, or of Python's `execute_async`: 0 is success.

    Other methods of Python fail by an exception alone, as in TensorRT's bindings: what they return
    is ignored, and named once. None, True and False are success everywhere.
    """
    if _returns_nothing(instance.plugin, method):
        if value is not None and not (_is_int(value) and value == 0):
            _note_ignored(instance, method, value, "is ignored: raise an exception to fail")
        return
    if _is_int(value) and value != 0:
        why = getattr(instance.plugin, "why_not_computed", None) if method == "enqueue" else None
        raise wrong(instance, method, f"status {value}" + (f": {why}" if why else ""), "0")
    if value is not None and not _is_int(value) and type(value).__name__ not in ("bool", "bool_"):
        raise wrong(instance, method, _short(value), "0 or None")


def status_of(
    instance: Instance, phase: Phase, method: str, *arguments: object, face: object = None
) -> None:
    """Call a method that returns a status."""
    as_status(instance, method, instance.call(phase, method, *arguments, face=face))


def _returns_nothing(plugin: object, method: str) -> bool:
    """Whether TensorRT's Python bindings ignore the result of a method."""
    if hasattr(plugin, "native"):  # of C++
        return False
    return isinstance(plugin, IPluginV3) or method in ("initialize", "configure_plugin")


_ignored: set[tuple[type, str]] = set()


def _note_ignored(instance: Instance, method: str, value: object, what: str) -> None:
    key = type(instance.plugin), method
    if key not in _ignored:
        _ignored.add(key)
        log.warning("%s", printable(f"{instance.where}: {method} returned {_short(value)}: {what}"))


def as_size(instance: Instance, method: str, value: object) -> int:
    """A number of bytes; None of Python's `get_workspace_size` is 0, as in TensorRT's bindings."""
    if value is None and method == "get_workspace_size" and not hasattr(instance.plugin, "native"):
        _note_ignored(instance, method, value, "taken for 0 bytes")
        return 0
    if not _is_int(value) or not 0 <= value <= MAX_SIZE:
        raise wrong(instance, method, _short(value), f"0 to {MAX_SIZE:,} bytes")
    return int(value)


def as_type(instance: Instance, method: str, value: object) -> DataType:
    """The element type of an output."""
    if not isinstance(value, DataType):
        raise wrong(instance, method, _short(value), "a DataType")
    return value


def as_types(instance: Instance, method: str, value: object, count: int) -> tuple[DataType, ...]:
    """Element types of `count` outputs."""
    values = _sequence(instance, method, value, "DataType", count)
    return tuple(as_type(instance, method, v) for v in values)


def as_dims(instance: Instance, method: str, value: Any) -> tuple[int, ...]:
    """A shape without unknown axes."""
    try:
        axes = tuple(value)
    except TypeError:
        raise wrong(instance, method, _short(value), "a shape") from None
    if len(axes) > MAX_DIMS or not all(_is_int(d) and d >= 0 for d in axes):
        raise wrong(instance, method, _short(value), f"a shape: up to {MAX_DIMS} axes, each >= 0")
    return tuple(int(d) for d in axes)


def as_exprs(instance: Instance, method: str, value: Any) -> DimsExprs:
    """A symbolic shape with every axis set."""
    shape = value
    if not isinstance(shape, DimsExprs):
        try:
            shape = DimsExprs(list(value))
        except (TypeError, ValueError):
            raise wrong(instance, method, _short(value), "a DimsExprs") from None
    unset = [i for i, axis in enumerate(shape) if not isinstance(axis, IDimensionExpr)]
    if unset:
        raise wrong(instance, method, f"a shape whose axis {unset[0]} is not set", "every axis set")
    if any(axis.is_constant() and axis.get_constant_value() < 0 for axis in shape):
        raise wrong(instance, method, f"{shape!r}", "axes >= 0")
    exprs: DimsExprs = shape
    return exprs


def as_all_exprs(instance: Instance, method: str, value: object, count: int) -> list[DimsExprs]:
    """Symbolic shapes of `count` outputs."""
    values = _sequence(instance, method, value, "DimsExprs", count)
    return [as_exprs(instance, method, v) for v in values]


def as_blob(instance: Instance, method: str, value: object, size: int | None = None) -> bytes:
    """Serialised bytes, as many as were announced; text counts as its bytes, as there."""
    if isinstance(value, str):
        value = value.encode()
    if not isinstance(value, (bytes, bytearray, memoryview)):
        raise wrong(instance, method, _short(value), "bytes")
    blob = bytes(value)
    if size is not None and len(blob) != size:
        raise wrong(
            instance, method, f"{len(blob)} bytes", f"{size}, as get_serialization_size announced"
        )
    return blob


def as_tactics(instance: Instance, method: str, value: Any) -> tuple[int, ...]:
    """Tactics: unique numbers but 0, or none."""
    values = _sequence(instance, method, value, "tactic", None)
    good = all(_is_int(v) and v != 0 and -(2**31) <= v < 2**31 for v in values)
    if not good or len(set(values)) != len(values):
        raise wrong(instance, method, _short(value), "unique numbers of 32 bits but 0")
    return tuple(int(v) for v in values)


def as_fields(instance: Instance, method: str, value: Any) -> PluginFieldCollection:
    """A collection of fields with data."""
    values = _sequence(instance, method, value, "PluginField", None)
    for field in values:
        if not isinstance(field, PluginField):
            raise wrong(instance, method, f"a {type(field).__name__} in it", "PluginField objects")
        if not isinstance(field.name, str) or len(field.name.encode()) >= MAX_TEXT:
            raise wrong(instance, method, f"a field called {_short(field.name)}", "a name")
    return PluginFieldCollection(values)


def _sequence(
    instance: Instance, method: str, value: object, of: str, count: int | None
) -> Sequence[Any]:
    if isinstance(value, (str, bytes)) or not hasattr(value, "__iter__"):
        raise wrong(instance, method, _short(value), f"a list of {of}")
    values = list(value)
    if count is not None and len(values) != count:
        raise wrong(
            instance, method, f"{len(values)} of them", f"{count} {of}: one for each output"
        )
    return values


def _bad(instance: Instance, attribute: str, value: object, expected: str) -> PluginError:
    return PluginError(
        f"{spoken(instance.plugin, attribute)} {_IS.get(hasattr(instance.plugin, 'native'))} "
        f"{_short(value)}",
        where=instance.where,
        expected=expected,
        data={"method": attribute},
    )


_IS = {True: "returned", False: "is"}  # a method of C++, an attribute in Python


def _is_int(value: object) -> TypeGuard[int]:
    return hasattr(value, "__index__") and not isinstance(value, bool)


def _short(value: object) -> str:
    try:
        text = repr(value)
    except Exception:
        text = f"a {type(value).__name__}"
    return shortened(text, 80)
