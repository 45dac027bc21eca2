"""Structures of the interface for low-level trackers, in the layout of each generation."""

from __future__ import annotations

import ctypes
import re
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

GENERATIONS = ("5.0", "6.0", "6.3", "6.4", "7.0", "8.0", "9.0", "9.1")
"""Releases that changed a structure; one that is not among them is as the one before."""
NEWEST = GENERATIONS[-1]

_PLAIN: dict[str, Any] = {
    "uint8_t": ctypes.c_uint8, "uint16_t": ctypes.c_uint16, "uint32_t": ctypes.c_uint32,
    "int32_t": ctypes.c_int32, "uint64_t": ctypes.c_uint64, "float": ctypes.c_float,
    "double": ctypes.c_double, "bool": ctypes.c_bool, "char": ctypes.c_char,
    "time_t": ctypes.c_int64, "NvMOTCompute": ctypes.c_uint8, "NvMOTStreamId": ctypes.c_uint64,
    "NvMOTContextHandle": ctypes.c_void_p, "NvMOTConfigStatus": ctypes.c_int32,
    "NvMOTBatchMode": ctypes.c_int32, "NvBufSurfaceMemType": ctypes.c_int32,
    "NvBufSurfaceColorFormat": ctypes.c_int32,
}  # fmt: skip
_ROW = re.compile(r"(\S+) (\S+)(?: ([\d.]*)(-?)([\d.]*))?$")


@dataclass(frozen=True)
class Member:
    """A field: its name, its type in C, the first and the last generation that have it."""

    name: str
    kind: str
    since: str = GENERATIONS[0]
    until: str = NEWEST

    def is_in(self, generation: str) -> bool:
        """Whether a generation has it."""
        return self.since <= generation <= self.until


@dataclass(frozen=True)
class StructLayout:
    """A structure; those of another header are not `own`."""

    name: str
    own: bool
    since: str
    members: list[Member] = field(default_factory=list)


@cache
def layouts() -> dict[str, StructLayout]:
    """All structures by name, each behind those that it holds or own ones that it points at."""
    found: dict[str, StructLayout] = {}
    last: StructLayout | None = None
    for raw in Path(__file__).with_name("structures.txt").read_text().splitlines():
        if raw.startswith("#") or not raw:
            continue
        if raw.startswith("  "):
            match = _ROW.match(raw.strip())
            assert match is not None
            assert last is not None
            since = match[3] or GENERATIONS[0]
            until = match[5] or NEWEST
            last.members.append(Member(match[1], match[2], since, until))
        else:
            word, name, *since_of = raw.split()
            last = StructLayout(name, word == "struct", since_of[0] if since_of else GENERATIONS[0])
            found[name] = last
    return found


def _type(kind: str, generation: str) -> Any:
    base, bracket, rest = kind.partition("[")
    if bracket:
        result = _type(base, generation)
        for size in reversed(rest.rstrip("]").split("][")):
            result = result * int(size)
        return result
    if kind.endswith("*"):
        return ctypes.c_void_p
    return _PLAIN.get(kind) or structure(kind, generation)


@cache
def structure(name: str, generation: str = NEWEST) -> type[ctypes.Structure]:
    """Return the structure of `ctypes` in the layout of a generation.

    Raises:
        KeyError: there is none of that name.
    """
    members = [m for m in layouts()[name].members if m.is_in(generation)]
    fields = [(m.name, _type(m.kind, generation)) for m in members]
    return type(name, (ctypes.Structure,), {"_fields_": fields})


def generation_of(release: str) -> str:
    """Return the generation with the layout of a release, such as 6.3 of 6.3.1.

    Raises:
        ValueError: it is no release.
    """
    major, minor, *_ = [*(int(part) for part in release.split(".")), 0, 0]
    fitting = [g for g in GENERATIONS if tuple(map(int, g.split("."))) <= (major, minor)]
    return fitting[-1] if fitting else GENERATIONS[0]
