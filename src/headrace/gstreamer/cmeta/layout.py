"""The table of structures that C applications see, and their layouts in memory.

One table serves the C headers, the structures of `ctypes`, and the views of pyds' classes on them.
"""

from __future__ import annotations

import ctypes
import re
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

GENERATIONS = ("6.2", "7.1", "9.1")
NEWEST = GENERATIONS[-1]

_PLAIN: dict[str, type] = {
    "gint": ctypes.c_int32, "gint32": ctypes.c_int32, "int": ctypes.c_int32,
    "int32_t": ctypes.c_int32, "gboolean": ctypes.c_int32, "guint": ctypes.c_uint32,
    "guint32": ctypes.c_uint32,
    "uint32_t": ctypes.c_uint32, "unsigned int": ctypes.c_uint32, "gint64": ctypes.c_int64,
    "guint64": ctypes.c_uint64, "uint64_t": ctypes.c_uint64, "unsigned long": ctypes.c_uint64,
    "gulong": ctypes.c_uint64, "size_t": ctypes.c_uint64, "float": ctypes.c_float,
    "gfloat": ctypes.c_float, "double": ctypes.c_double, "gdouble": ctypes.c_double,
    "char": ctypes.c_char, "gchar": ctypes.c_char, "uint8_t": ctypes.c_uint8,
    "uint16_t": ctypes.c_uint16, "short": ctypes.c_int16, "bool": ctypes.c_bool,
    "GMutex": ctypes.c_uint64, "gpointer": ctypes.c_void_p, "cudaStream_t": ctypes.c_void_p,
}  # fmt: skip
# GRecMutex is a pointer and two words; GstMeta flags and a pointer.
_WORDS = ctypes.c_uint64 * 2


@dataclass(frozen=True)
class StructField:
    """A field: its name, its type in C, and the first generation that has it ("" for all)."""

    name: str
    kind: str
    since: str = ""


@dataclass(frozen=True)
class Enum:
    """An enumeration with the values of 9.1."""

    name: str
    values: list[tuple[str, str]] = field(default_factory=list)


@dataclass(frozen=True)
class StructRow:
    """A structure; sizes in bytes by generation, where it is there."""

    name: str
    sizes: dict[str, int]
    fields: list[StructField] = field(default_factory=list)


@dataclass(frozen=True)
class Header:
    """A header: its includes, macros and declarations."""

    name: str
    about: str
    includes: list[str] = field(default_factory=list)
    defines: list[tuple[str, str]] = field(default_factory=list)
    forwards: list[str] = field(default_factory=list)
    types: list[tuple[str, str]] = field(default_factory=list)
    enums: list[Enum] = field(default_factory=list)
    structs: list[StructRow] = field(default_factory=list)
    callbacks: list[tuple[str, str, str]] = field(default_factory=list)
    calls: list[tuple[str, str, str]] = field(default_factory=list)


_FIELD = re.compile(r"(\S+) (.+?)(?: (\d+\.\d+))?$")
_CALL = re.compile(r"(.+?) (\w+) ?((?:\w.*)?)$")


@cache
def table() -> tuple[Header, ...]:
    """Read the table."""
    headers: list[Header] = []
    for raw in (Path(__file__).parent / "layout.txt").read_text().splitlines():
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        word, _, rest = line.partition(" ")
        if raw.startswith("    "):
            _add_row(headers[-1], line)
        elif word == "header":
            name, _, about = rest.partition(": ")
            headers.append(Header(name, about))
        else:
            _add(headers[-1], word, rest)
    return tuple(headers)


_rows: list[Enum | StructRow] = []


def _add(header: Header, word: str, rest: str) -> None:
    name, _, more = rest.partition(" ")
    if word in ("include", "include?"):
        header.includes.append(f"? {rest}" if word.endswith("?") else rest)
    elif word == "define":
        header.defines.append((name, more))
    elif word == "forward":
        header.forwards.append(rest)
    elif word == "type":
        header.types.append((name, more))
    elif word == "enum":
        header.enums.append(Enum(name))
        _rows[:] = [header.enums[-1]]
    elif word == "struct":
        sizes = {g: int(s) for g, s in zip(GENERATIONS, more.split(), strict=True) if s != "-"}
        header.structs.append(StructRow(name, sizes))
        _rows[:] = [header.structs[-1]]
    else:
        kind, label, arguments = _call(rest)
        (header.callbacks if word == "callback" else header.calls).append((kind, label, arguments))


def _call(text: str) -> tuple[str, str, str]:
    """Split `type name arguments`; types of two words are `unsigned int` and `const …`."""
    words = text.split(" ")
    count = 2 if words[0] in ("const", "unsigned") else 1
    return " ".join(words[:count]), words[count], " ".join(words[count + 1 :])


def _add_row(header: Header, line: str) -> None:
    owner = _rows[0]
    if isinstance(owner, Enum):
        name, _, value = line.partition(" ")
        owner.values.append((name, value))
    elif match := _FIELD.match(line):
        owner.fields.append(StructField(match[1], match[2], match[3] or ""))


@cache
def struct_rows() -> dict[str, StructRow]:
    """Return all structures of the table by name."""
    return {s.name: s for header in table() for s in header.structs}


@cache
def _integers() -> frozenset[str]:
    """Names of types that are integers of 32 bits: enumerations."""
    return frozenset(e.name for header in table() for e in header.enums)


@cache
def _pointers() -> frozenset[str]:
    """Names of types that are pointers: callbacks and handles."""
    names = {name for header in table() for _, name, _ in header.callbacks}
    return frozenset(names | {n for h in table() for n, kind in h.types if kind.endswith("*")})


def c_type(kind: str, generation: str = NEWEST) -> Any:
    """Return the type of `ctypes` of a type in C.

    Raises:
        KeyError: the table does not have it.
    """
    base, bracket, rest = kind.partition("[")
    if bracket:
        result = c_type(base, generation)
        for size in reversed(rest.rstrip("]").split("][")):
            result = result * int(size)
        return result
    if kind.endswith("*") or kind in _pointers():
        return ctypes.c_void_p
    if kind in ("GRecMutex", "GstMeta"):
        return _WORDS
    if kind in _PLAIN:
        return _PLAIN[kind]
    if kind in _integers() or kind in ("NvDsInferDataType", "NvBufSurfaceGPUL2SyncCacheOps"):
        return ctypes.c_int32
    if kind == "NvDsInferNetworkInfo":
        return ctypes.c_uint32 * 3
    return structure(kind, generation)


def structure(name: str, generation: str = NEWEST) -> type[ctypes.Structure]:
    """Return the structure of `ctypes` in the layout of a generation.

    Raises:
        KeyError: the table does not have it.
    """
    return _structure(name, generation)


@cache
def _structure(name: str, generation: str) -> type[ctypes.Structure]:
    rows = struct_rows()[name].fields
    fields = [(r.name, c_type(r.kind, generation)) for r in rows if r.since <= generation]
    return type(name, (ctypes.Structure,), {"_fields_": fields})
