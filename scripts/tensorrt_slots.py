"""Write C++ declarations from the tables of virtual functions in `native/foreign/slots`.

usage: tensorrt_slots.py LINE TARGET

CMake runs it for each LINE: 7 (TensorRT 5.1 to 7.2), 8 (8.0 to 9.3), 10 and 11. The library's side
of the same tables is written by tensorrt_author.py; tensorrt_check.py asks a compiler about them.

Line 8 becomes `struct Line8`, which holds a struct for each class of the table. One that a library
implements is called through it: `static_cast<Line8::IPluginV2 *>(self)->getNbOutputs()`.
One that the host implements is derived from it and given to the library: `struct Builder :
Line8::VBuilder { void *createNetworkV2(unsigned) override; };`. From line 8 on the library's
pointer is not to that object but to a public one, `Line8::Public{object}`: virtual destructors,
then the implementation; layers have two, VLayer's and their own. A function that is not overridden
calls `refused`, which tells the host, and gives zero. Objects of classes are `void *`, references
too, enumerations `int`; of two functions of one name and equal arguments the second has its place
behind its name (`registerCreator_12`).
"""

from __future__ import annotations

import re
import sys
import tomllib
from dataclasses import dataclass, replace
from pathlib import Path

TABLES = Path(__file__).resolve().parent.parent / "native" / "foreign" / "slots"
LINES = (7, 8, 10, 11)
_SLOT = re.compile(r"(.*?[\s*&])(\w+)\((.*)\)( const)?( = 0)?( throws)?$")
_PLAIN = frozenset([
    "void", "bool", "float", "double", "int", "long", "short", "char", "unsigned int",
    "unsigned long", "unsigned char", "unsigned short",
])  # fmt: skip
_STRUCTS = dict.fromkeys([f"Dims{n}" for n in ("", "HW", "2", "3", "4", "32", "64")], "Dims") | {
    name: name
    for name in (
        "Weights", "Permutation", "PluginField", "PluginFieldCollection", "PluginTensorDesc",
        "DynamicPluginTensorDesc", "DimsExprs", "InterfaceInfo", "TimingCacheKey",
        "TimingCacheValue",
    )
}  # fmt: skip
_POINTED_ENUMS = frozenset(("DataType", "WeightsRole"))


@dataclass(frozen=True)
class Slot:
    """A virtual function, or a destructor, which has two places.

    Attributes:
        result, name, arguments, const: of its declaration; the name of a destructor is `~`.
        pure: it has no body.
        throws: it is not noexcept.
        since: the release that appended it; empty for the line's first.
    """

    result: str
    name: str
    arguments: tuple[str, ...]
    const: bool
    pure: bool
    throws: bool
    since: str = ""

    @property
    def places(self) -> int:
        return 2 if self.name == "~" else 1

    @property
    def key(self) -> tuple[object, ...]:
        return self.name, self.arguments, self.const


@dataclass(frozen=True)
class Interface:
    """A class: its base, and what it appends to or gives bodies of the base's functions."""

    name: str
    base: str
    since: str
    slots: tuple[Slot, ...]
    overrides: tuple[Slot, ...]


@dataclass(frozen=True)
class Line:
    """The classes of neighbouring releases, in an order in which bases come first."""

    number: int
    first: str
    last: str
    newest: int
    noexcept: bool
    interfaces: dict[str, Interface]

    def all_slots(self, name: str) -> list[Slot]:
        """List the functions of a class from its first place on."""
        one = self.interfaces[name]
        own = {slot.key: slot for slot in one.overrides}
        inherited = self.all_slots(one.base) if one.base else []
        return [replace(own.get(s.key, s), since=s.since) for s in inherited] + list(one.slots)


def read(number: int) -> Line:
    """Read the table of a line."""
    table = tomllib.loads((TABLES / f"{number}.toml").read_text())
    noexcept = table.get("noexcept", True)
    interfaces = {
        name: Interface(
            name,
            rows.get("base", ""),
            rows.get("since", ""),
            tuple(_slot(text, noexcept) for text in rows["slots"].splitlines()),
            tuple(_slot(text, noexcept) for text in rows.get("overrides", "").splitlines()),
        )
        for name, rows in table.items()
        if isinstance(rows, dict) and "slots" in rows
    }
    return Line(number, table["first"], table["last"], table["newest"], noexcept, interfaces)


def _slot(text: str, noexcept: bool) -> Slot:
    since, mark, rest = text.partition(": ")
    if not mark or not re.fullmatch(r"[\d.]+", since):
        since, rest = "", text
    if rest == "~":
        return Slot("", "~", (), False, False, True, since)
    parts = _SLOT.match(rest)
    if parts is None:
        raise ValueError(f"not a virtual function: {text!r}")
    result, name, arguments, const, pure, throws = parts.groups()
    return Slot(
        result.strip(), name, tuple(_arguments(arguments)), bool(const), bool(pure),
        bool(throws) or not noexcept, since,
    )  # fmt: skip


def _arguments(text: str) -> list[str]:
    """Split at commas that are in no brackets."""
    parts, depth = [""], 0
    for char in text:
        depth += (char in "(<") - (char in ")>")
        if char == "," and not depth:
            parts.append("")
        else:
            parts[-1] += char
    return [part.strip() for part in parts if part.strip()]


# ---- host


def identifier(name: str) -> str:
    """Make a class's name one of C++: `nvonnxparser::IParser`, `IPluginRegistry@8.6.0`."""
    return re.sub(r"\W+", "_", name.removeprefix("nvonnxparser::"))


def plain_type(text: str) -> str:
    """Turn a type into one of the same form in memory: classes are void, enumerations int."""
    text = text.replace("&", "*").replace("[]", "*")
    base = re.sub(r"\bconst\b|\bvolatile\b|[*\s]+$", "", text.split("*")[0]).strip()
    pointers = text[len(text.split("*")[0]) :]
    if not pointers:
        return base if base in _PLAIN else _STRUCTS.get(base, "int")
    const = "const " if re.search(r"\bconst\b", text.split("*")[0]) else ""
    if base in _PLAIN or base in _STRUCTS:
        own = _STRUCTS.get(base, base)
    else:
        own = "int" if base in _POINTED_ENUMS else "void"
    return const + own + " " + re.sub(r"\s*const$", "", re.sub(r"\s+(?=\*)", "", pointers))


_HOST_TYPES = """    struct Dims { int32_t nbDims; %(extent)s d[8]; %(kinds)s};
    struct Weights { int32_t type; const void *values; int64_t count; };
    struct Permutation { int32_t order[8]; };
    struct PluginField { const char *name; const void *data; int32_t type; int32_t length; };
    struct PluginFieldCollection { int32_t nbFields; const PluginField *fields; };
    struct PluginTensorDesc { Dims dims; int32_t type; int32_t format; float scale; };
    struct DynamicPluginTensorDesc { PluginTensorDesc desc; Dims min; Dims max; %(opt)s};
    struct DimsExprs { int32_t nbDims; const void *d[8]; };
    struct InterfaceInfo { const char *kind; int32_t major; int32_t minor; };
    struct TimingCacheKey { unsigned char data[16]; };
    struct TimingCacheValue { uint64_t tacticHash; float timingMSec; };
    // A library's pointer to an object of the host, from line 8 on; layers have a second face.
    struct Public {
        virtual ~Public() = default;
        void *face;
        void *own;
        explicit Public(void *face = nullptr, void *own = nullptr) : face(face), own(own) {}
    };"""


def host_text(line: Line) -> str:
    """Declare every class of a line, see the module."""
    wide = line.number >= 10
    types = _HOST_TYPES % {
        "extent": "int64_t" if wide else "int32_t",
        "kinds": "int32_t type[8]; " if line.number < 8 else "",
        "opt": "Dims opt; " if wide else "",
    }
    out = [
        f"// TensorRT {line.first} to {line.last}, of native/foreign/slots by "
        "scripts/tensorrt_slots.py.",
        "#pragma once",
        "#pragma GCC system_header",
        "#include <cstdint>",
        '#include "foreign/refused.h"',
        "namespace headrace::foreign {",
        f"struct Line{line.number} {{",
        f"    static constexpr int number = {line.number};",
        f"    static constexpr int newest = {line.newest};",
        types,
    ]
    for name, one in line.interfaces.items():
        base = f" : {identifier(one.base)}" if one.base else ""
        out.append(f"    struct {identifier(name)}{base} {{")
        place = sum(s.places for s in line.all_slots(one.base)) if one.base else 0
        used = {_host_key(s) for s in (line.all_slots(one.base) if one.base else [])}
        for slot in one.slots:
            out.append("        " + _host_slot(name, slot, place, used))
            place += slot.places
        out.append("    };")
    return "\n".join([*out, "};", "}  // namespace headrace::foreign", ""])


def _host_key(slot: Slot) -> tuple[object, ...]:
    return slot.name, tuple(map(plain_type, slot.arguments))


def _host_slot(owner: str, slot: Slot, place: int, used: set[tuple[object, ...]]) -> str:
    if slot.name == "~":
        return "virtual void complete() {} virtual void deleting() {}"
    name = f"{slot.name}_{place}" if _host_key(slot) in used else slot.name
    used.add(_host_key(slot))
    result = plain_type(slot.result)
    arguments = ", ".join(map(plain_type, slot.arguments))
    body = f'refused("{public_name(owner)}", "{slot.name}"); return Zero<{result}>::of();'
    return f"virtual {result} {name}({arguments}) {{ {body} }}"


def public_name(owner: str) -> str:
    """Name a class as its headers do: what implements IBuilder is VBuilder."""
    return re.sub(r"^V(?=[A-Z])", "I", owner.partition("@")[0])


def write(target: Path, text: str) -> None:
    """Write a file unless it has that text: what includes it would be compiled again."""
    if not target.exists() or target.read_text() != text:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)


if __name__ == "__main__":
    write(Path(sys.argv[2]), host_text(read(int(sys.argv[1]))))
