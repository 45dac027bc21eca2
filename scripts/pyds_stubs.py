"""Write the types of `pyds` for type checkers and editors, from Headrace's classes.

    python scripts/pyds_stubs.py packaging/gst/pyds-stubs/__init__.pyi

headrace-gst holds them as the stub package `pyds-stubs`: `pyds` itself is given at import.
"""

from __future__ import annotations

import inspect
import sys
from enum import IntEnum
from pathlib import Path
from types import FunctionType
from typing import Any, TypeVar

from headrace.gstreamer import pyds
from headrace.gstreamer.pyds.meta import MetaField
from headrace.gstreamer.pyds.osd import Elements
from headrace.gstreamer.pyds.struct import Buffer, Nested, Struct, Text

HEAD = '''"""Types of `pyds`; written by scripts/pyds_stubs.py."""

from collections.abc import Iterator, Sequence
from enum import IntEnum
from typing import Any, Self

import numpy as np
import numpy.typing as npt

'''
_INNER = {
    "Buffer", "Callable", "Elements", "HostPointer", "INTERVAL_UPDATE", "MetaField", "MetaList",
    "Nested", "STREAM_RESET", "Text", "allocate", "bridge", "capsule_of", "duplicate", "free",
    "function", "gstreamer", "image_pixels", "items", "plain_kind", "text_at",
}  # fmt: skip
_PLAIN = (bool, int, float, str)


def public() -> dict[str, Any]:
    """The names that applications use: ours, and constants."""
    found: dict[str, Any] = {"Struct": Struct}
    for name in sorted(dir(pyds)):
        value = getattr(pyds, name)
        ours = str(getattr(value, "__module__", "")).startswith("headrace.gstreamer.pyds")
        if (
            not name.startswith("_")
            and name not in _INNER
            and ((ours and not isinstance(value, TypeVar)) or type(value) is int)
        ):
            found[name] = value
    return found


def stub() -> str:
    """The text of the stub."""
    lines, values = [], []
    for name, value in public().items():
        if isinstance(value, type):
            if issubclass(value, IntEnum):
                members = [f"    {member.name} = {int(member)}" for member in value]
                lines += ["", f"class {name}(IntEnum):", *members]
            else:
                lines += ["", *_class(name, value)]
        elif isinstance(value, FunctionType):
            lines.append(_function(name, value, ""))
        elif isinstance(value, IntEnum):
            values.append(f"{name} = {type(value).__name__}.{value.name}")
        else:
            values.append(f"{name}: int")
    return HEAD + "\n".join([*lines, "", *values]).replace("\n\n\n", "\n\n") + "\n"


def _class(name: str, kind: type) -> list[str]:
    base = "" if kind is Struct or not issubclass(kind, Struct) else f"({_base(kind).__name__})"
    private = kind.__mro__[1 : kind.__mro__.index(_base(kind))] if base else ()
    body = [
        line
        for each in (kind, *private)
        for one, value in vars(each).items()
        for line in _member(each, one, value)
    ]
    known = {one for each in kind.__mro__ for one in vars(each)}
    made = vars(kind()) if base else {}
    body += [
        f"    {one}: {_type(value)}"
        for one, value in made.items()
        if one not in known and not one.startswith("_")
    ]
    slots = getattr(kind, "__slots__", ())
    if "data" in slots:  # a node of a list
        body = ["    data: Any", f"    next: {name} | None", f"    prev: {name} | None"]
    return [f"class {name}{base}:", *(body or ["    ..."])]


def _base(kind: type) -> type:
    """The nearest base that the stub has, too."""
    return next(one for one in kind.__mro__[1:] if not one.__name__.startswith("_"))


def _member(kind: type, name: str, value: Any) -> list[str]:
    if name.startswith("_") and name != "__init__":
        return []
    if isinstance(value, Nested | Elements):
        inner = value.kind.__name__
        return [f"    {name}: {inner if isinstance(value, Nested) else f'list[{inner}]'}"]
    if isinstance(value, Text):
        accepted = "str | int" if isinstance(value, Buffer) else "str"
        return [
            "    @property", f"    def {name}(self) -> int: ...",
            f"    @{name}.setter", f"    def {name}(self, value: {accepted}) -> None: ...",
        ]  # fmt: skip
    if isinstance(value, MetaField):
        return ["    @property", f"    def {name}(self) -> GList | None: ..."]
    if isinstance(value, property):
        return ["    @property", _function(name, value.fget, "    ")]
    if isinstance(value, classmethod):
        return ["    @classmethod", f"    def {name}(cls, data: Any) -> Self: ..."]
    if isinstance(value, FunctionType):
        return [_function(name, value, "    ")]
    return [f"    {name}: {vars(kind).get('__annotations__', {}).get(name) or _type(value)}"]


class _Any:
    def __repr__(self) -> str:
        return "..."


def _function(name: str, function: Any, indent: str) -> str:
    signature = inspect.signature(function)
    parameters = [
        one if one.default is one.empty else one.replace(default=_Any())
        for one in signature.parameters.values()
    ]
    text = str(signature.replace(parameters=parameters)).replace("'", "")
    return f"{indent}def {name}{text}: ..."


def _type(value: Any) -> str:
    if isinstance(value, dict):
        return "dict[Any, Any]"
    if isinstance(value, list):
        inner = {_type(one) for one in value}
        return f"list[{inner.pop() if len(inner) == 1 else 'Any'}]"
    return type(value).__name__ if isinstance(value, (*_PLAIN, Struct)) else "Any"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(stub())
