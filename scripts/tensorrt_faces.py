"""Write the host's builders, networks, layers and engines as TensorRT's classes, of slot tables.

usage: tensorrt_faces.py LINE TARGET

Each class of `native/foreign/slots` that headrace's own headers have, too, becomes a face: a class
whose functions call those of the same name of the headers, with arguments and results turned by
`native/foreign/facing.h`. What the headers lack is refused by name when it is called: the compiler
finds out. Functions that take or give objects of the library's own classes (loggers, plugins,
calibrators) are left to `native/foreign/faces.h`, which derives from the faces in `BY_HAND`.
"""

from __future__ import annotations

import re
import sys
import tomllib
from functools import cache
from pathlib import Path

from tensorrt_slots import (
    _PLAIN,
    _STRUCTS,
    TABLES,
    Line,
    Slot,
    _host_key,
    identifier,
    plain_type,
    public_name,
    read,
    write,
)  # fmt: skip

HEADERS = TABLES.parent.parent / "include"
BY_HAND = {
    "INetworkDefinition": "NetworkFace",
    "IBuilder": "BuilderFace",
    "IBuilderConfig": "ConfigFace",
    "IRuntime": "RuntimeFace",
    "IPluginV2Layer": "PluginV2LayerFace",
    "IPluginV3Layer": "PluginV3LayerFace",
    "nvonnxparser::IParser": "ParserFace",
}
"""Class -> the face that `native/foreign/faces.h` gives it."""
FIXED = {
    "setErrorRecorder": "set_recorder(own, a0);",
    "getErrorRecorder": "return recorder_of(own);",
    "getLogger": "return logger_of(own);",
    "getPluginRegistry": "return registry();",
    "getPImpl": "return shown(own);",
    "destroy": "release(this);",
    "setGpuAllocator": "(void)a0;",
}
"""Functions that are the same in every class. Allocators are not asked: memory is the host's."""
_CONDITIONAL = re.compile(r"^IConditional(Boundary|Input|Output)")
GROWING = frozenset([
    "INetworkDefinition", "IBuilder", "IBuilderConfig", "ILayer", "ITensor", "IRuntime",
    "ICudaEngine", "IExecutionContext", "IOptimizationProfile",
])  # fmt: skip
"""Classes that releases to come of lines 10 and 11 add functions to."""
SPARE = 16
"""Functions behind the last known one of such a class that are refused by their number."""
_LEFT_OUT = ("IHostMemory", "IDimensionExpr", "IExprBuilder", "IPluginLayer")


@cache
def _headers() -> str:
    files = [*sorted(HEADERS.glob("headrace/*.h")), HEADERS / "NvOnnxParser.h"]
    return re.sub(r"//[^\n]*", "", "\n".join(file.read_text() for file in files))


@cache
def classes() -> frozenset[str]:
    """Classes of headrace's headers that stand for objects of the host."""
    bases = re.findall(r"class (I\w+)(?: final)? : public ([\w:]+)", _headers())
    found = {name for name, base in bases if base == "headrace::Object"}
    while more := {name for name, base in bases if base in found} - found:
        found |= more
    return frozenset(found)


@cache
def _enums() -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for name, body in re.findall(r"enum class (\w+)[^{;]*\{(.*?)\}", _headers(), re.S):
        members = re.findall(r"k(\w+)\s*=\s*(\d+)", body)
        found.setdefault(name, {member: int(number) for member, number in members})
    return found


def numbers(line: Line) -> dict[str, list[int]]:
    """Enum -> the number that headrace's headers give each of a line's; -1 for what they lack.

    Enums whose numbers are the same are not among it.
    """
    table = tomllib.loads((TABLES / f"{line.number}.toml").read_text())
    ours = _enums()
    return {
        name: [ours[name].get(member, -1) for member in text.split()]
        for name, text in table.get("enums", {}).items()
    }


def _base(text: str) -> str:
    return re.sub(r"\bconst\b|\bvolatile\b|[&*\[\]]", "", text.partition("<")[0]).strip()


def _given(text: str, index: int) -> str | None:
    """Turn an argument of a function of a line; None for what only code by hand can."""
    name, base = f"a{index}", _base(text).removeprefix("nvonnxparser::")
    pointed = "*" in text or "&" in text
    if "<" in text or (base == "void" and text.count("*") > 1 and "[" in text):
        return None
    if base == "CUstream_st" or base == "CUevent_st":
        return f"stream({name})" if text.count("*") == 1 else None
    if base in classes() and pointed:
        if text.count("*") > 1:
            return f"Objects({name}, a{index + 1})"
        return f"{'Reference' if '&' in text else 'Pointer'}{{{name}}}"
    if base in ("TimingCacheKey", "TimingCacheValue", "PluginField", "InterfaceInfo"):
        return None
    if base in _STRUCTS:
        return f"Struct{{{'' if pointed else '&'}{name}}}"
    if base in _PLAIN:
        return f"*{name}" if "&" in text else name
    if not pointed:
        return f"Enum{{{name}}}"
    return f"Numbered{{{name}}}" if base == "WeightsRole" else None


def _gives(text: str) -> bool:
    base = _base(text).removeprefix("nvonnxparser::")
    known = base in _PLAIN or base in _STRUCTS or base in classes() or base == "CUstream_st"
    return known or base == "IHostMemory" or not ("*" in text or "&" in text)


def _function(line: Line, owner: str, slot: Slot, name: str) -> str | None:
    """Write one function of a face; None for what stays refused, or is written by hand."""
    arguments = [f"{plain_type(a)} a{i}" for i, a in enumerate(slot.arguments)]
    result = plain_type(slot.result)
    head = f"    {result} {name}({', '.join(arguments)}) override"
    if slot.name in FIXED:
        return f"{head} {{ {FIXED[slot.name]} }}"
    given = [_given(a, i) for i, a in enumerate(slot.arguments)]
    if None in given or not _gives(slot.result):
        return None
    call = f"o.{slot.name}({', '.join(map(str, given))})"
    said = f'"{public_name(owner).removeprefix("nvonnxparser::")}", "{slot.name}"'
    return (
        f"{head} {{ return ask<{result}>(own, [&](auto &o) -> decltype({call}) "
        f"{{ return {call}; }}, {said}); }}"
    )


def _names(line: Line, owner: str) -> list[tuple[Slot, str]]:
    """The functions of a class with the names that tensorrt_slots.py gives them."""
    one = line.interfaces[owner]
    rows = _names(line, one.base) if one.base else []
    used = {_host_key(slot) for slot, _ in rows}
    place = sum(slot.places for slot, _ in rows)
    for slot in one.slots:
        name = slot.name
        if slot.name != "~":
            name = f"{slot.name}_{place}" if _host_key(slot) in used else slot.name
            used.add(_host_key(slot))
        rows.append((slot, name))
        place += slot.places
    return rows


def _face(line: Line, owner: str) -> str:
    own = _CONDITIONAL.sub(r"IIfConditional\1", public_name(owner))
    space = "nvonnxparser" if own.startswith("nvonnxparser::") else "nvinfer1"
    plain = own.removeprefix("nvonnxparser::")
    name = f"{plain}Face"
    out = [
        f"struct {name} : Line{line.number}::{identifier(owner)} {{",
        f"    using Own = {space}::{plain};",
        "    Own *own = nullptr;",
    ]
    for slot, called in _names(line, owner):
        if slot.name == "~":
            if not owner.startswith("V"):
                out.append("    void complete() override { release(this); }")
                out.append("    void deleting() override { release(this); }")
            continue
        if (text := _function(line, owner, slot, called)) is not None:
            out.append(text)
    if line.number >= 10 and plain in GROWING:
        known = sum(slot.places for slot, _ in _names(line, owner))
        for place in range(known, known + SPARE):
            said = f'"{plain}", "function {place}, newer than TensorRT {line.last}"'
            out.append(f"    virtual void *newer_{place}() {{ refused({said}); return nullptr; }}")
    out.append("};")
    hand = BY_HAND.get(own)
    if hand:
        out.append(f"struct {hand};")
    out.append(f"template <> struct FaceOf<{space}::{plain}> {{ using type = {hand or name}; }};")
    return "\n".join(out)


def _layers(line: Line, faced: list[str]) -> str:
    """The class of each type of layers, for those that a network is asked for."""
    types = {name.replace("_", ""): name for name in _enums()["LayerType"]}
    out = ["template <typename F> void *by_type(nvinfer1::LayerType type, F shown) {",
           "    switch (type) {"]  # fmt: skip
    for name in faced:
        key = name.removeprefix("IIf" if name.startswith("IIf") else "I").removesuffix("Layer")
        if name.endswith("Layer") and (member := types.get(key.upper())):
            case = f"nvinfer1::LayerType::k{member}"
            out.append(f"    case {case}: return shown.template operator()<nvinfer1::{name}>();")
    out.append("    default: return shown.template operator()<nvinfer1::ILayer>();")
    return "\n".join([*out, "    }", "}"])


def faces_text(line: Line) -> str:
    """Write the faces of a line, see the module."""
    known, faced = classes(), []
    out = [
        f"// Faces of TensorRT {line.first} to {line.last}, of native/foreign/slots by "
        "scripts/tensorrt_faces.py.",
        "// Included by foreign/facing.h, in its namespace.",
        "#pragma GCC system_header",
    ]
    for name, values in numbers(line).items():
        out.append(f"template <> struct Numbers<nvinfer1::{name}> {{")
        out.append(f"    static constexpr int all[] = {{{', '.join(map(str, values))}}};")
        out.append(f"    static constexpr int count = {len(values)};\n}};")
    for owner in line.interfaces:
        own = _CONDITIONAL.sub(r"IIfConditional\1", public_name(owner))
        plain = own.removeprefix("nvonnxparser::")
        thin = owner.startswith("V") or "::" in owner or line.number < 8
        if "@" in owner or not thin or plain in _LEFT_OUT or plain not in known:
            continue
        out.append(_face(line, owner))
        faced.append(plain)
    return "\n".join([*out, _layers(line, faced), ""])


if __name__ == "__main__":
    write(Path(sys.argv[2]), faces_text(read(int(sys.argv[1]))))
