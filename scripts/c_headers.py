"""Write the headers of native/include that C applications include, from the table of structures.

`python scripts/c_headers.py` writes them; with `--check` it fails where one is not up to date.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from headrace.gstreamer.cmeta.layout import Header, StructRow, table

FOLDER = Path(__file__).parents[1] / "native" / "include"


def field_text(name: str, kind: str) -> str:
    """Return a field's declaration: `gint64[4]` and its name as `gint64 name[4]`."""
    base, bracket, rest = kind.partition("[")
    return f"{base} {name}{bracket}{rest};"


def needs(struct: StructRow, names: set[str]) -> list[str]:
    """List the structures that must stand before a structure, since it holds them."""
    kinds = {re.sub(r"\[.*", "", field.kind) for field in struct.fields}
    return [name for name in names if name in kinds]


def ordered(structs: list[StructRow]) -> list[StructRow]:
    """Sort structures so that each stands behind those that it holds."""
    left, names, done = list(structs), {s.name for s in structs}, []
    while left:
        for struct in left:
            if not set(needs(struct, names)) - {s.name for s in done}:
                done.append(struct)
                left.remove(struct)
                break
    return done


def text_of(header: Header) -> str:
    """Return a header's text."""
    guard = "HEADRACE_" + re.sub(r"\W", "_", header.name).upper()
    lines = [
        f"/* {header.about}, in the layout of 9.1.",
        " *",
        " * Part of headrace, Apache-2.0. Made by scripts/c_headers.py from its table. */",
        f"#ifndef {guard}",
        f"#define {guard}",
        "",
        *(f'#include "{name}"' for name in header.includes),
    ]
    if not header.includes:
        lines.append('#include "headrace/glib.h"')
    lines += ["", "#ifdef __cplusplus", 'extern "C" {', "#endif", ""]
    lines += [f"#define {name} {value}" for name, value in header.defines]
    for enum in header.enums:
        rows = ",\n".join(f"    {name} = {value}" for name, value in enum.values)
        lines += ["", f"typedef enum {{\n{rows}\n}} {enum.name};"]
    lines += [""] + [f"struct _{name};" for name in header.forwards]
    lines += [f"typedef struct _{s.name} {s.name};" for s in header.structs]
    lines += [f"typedef {kind} {name};" for name, kind in header.types]
    lines += [f"typedef {kind} (*{name})({args});" for kind, name, args in header.callbacks]
    for struct in ordered(header.structs):
        rows = "\n".join(f"    {field_text(f.name, f.kind)}" for f in struct.fields)
        lines += ["", f"struct _{struct.name} {{\n{rows}\n}};"]
    lines += [""] + [f"{kind} {name}({args});" for kind, name, args in header.calls]
    lines += ["", "#ifdef __cplusplus", "}", "#endif", "", "#endif"]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)) + "\n"


def main() -> int:
    """Write or check the headers; 1 where one is out of date."""
    stale = 0
    for header in table():
        path, text = FOLDER / header.name, text_of(header)
        if path.is_file() and path.read_text() == text:
            continue
        stale += 1
        if "--check" not in sys.argv:
            path.write_text(text)
    return int(bool(stale) and "--check" in sys.argv)


if __name__ == "__main__":
    raise SystemExit(main())
