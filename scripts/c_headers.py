"""Write the headers of native/include that C applications include, from the table of structures.

`python scripts/c_headers.py` writes them; with `--check` it fails where one is not up to date.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from headrace.custom.nvmot.structures import GENERATIONS, NEWEST, Member, StructLayout, layouts
from headrace.gstreamer.cmeta.layout import Header, StructRow, table

FOLDER = Path(__file__).parents[1] / "native" / "include"


def field_text(name: str, kind: str) -> str:
    """Return a field's declaration: `gint64[4]` and its name as `gint64 name[4]`."""
    base, bracket, rest = kind.partition("[")
    return f"{base} {name}{bracket}{rest};"


def include_text(name: str) -> str:
    """Return the line of an include; `? NAME` is the application's own, if it is there."""
    if not name.startswith("? "):
        return f'#include "{name}"'
    own = f'"{name[2:]}"'
    return f"#ifdef __has_include\n#if __has_include({own})\n#include {own}\n#endif\n#endif"


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
        *(include_text(name) for name in header.includes),
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


TRACKER = "nvdstracker.h"
_MACRO = "HEADRACE_NVMOT"
_TRACKER_HEAD = f"""/* The interface for low-level trackers, in the layout of 9.1, or of {_MACRO}:
 * compile with -D{_MACRO}=630 for 6.3 ({{releases}}).
 *
 * Part of headrace, Apache-2.0. Made by scripts/c_headers.py from its table. */
#ifndef HEADRACE_NVDSTRACKER_H
#define HEADRACE_NVDSTRACKER_H

#ifndef {_MACRO}
#define {_MACRO} {{newest}}
#endif

#include <stdint.h>
#include <time.h>
#ifdef __cplusplus
#include <string>
#endif

#include "nvbufsurface.h"
#include "nvds_tracker_meta.h"
{{older}}
#ifdef __cplusplus
extern "C" {{{{
#endif

#define NVMOT_MAX_TRANSFORMS 4
#define NVMOTCOMP_GPU 0x01
#define NVMOTCOMP_CPU 0x02
#define NVMOTCOMP_PVA 0x04
#define NVMOTCOMP_ANY 0xff
#define NVMOTCOMP_DEFAULT NVMOTCOMP_ANY

typedef uint64_t NvMOTStreamId;
typedef uint32_t NvMOTFrameNum;
typedef uint16_t NvMOTClassId;
typedef uint8_t NvMOTCompute;
typedef struct NvMOTContext *NvMOTContextHandle;

typedef enum {{{{
    NvMOTConfigStatus_OK,
    NvMOTConfigStatus_Error,
    NvMOTConfigStatus_Invalid,
    NvMOTConfigStatus_Unsupported
}}}} NvMOTConfigStatus;

typedef enum {{{{
    NvMOTBatchMode_Error = 0,
    NvMOTBatchMode_Batch = 1,
    NvMOTBatchMode_NonBatch = 2,
    NvMOTBatchMode_MaxValue = 3
}}}} NvMOTBatchMode;

typedef enum {{{{ NvMOTStatus_OK, NvMOTStatus_Error, NvMOTStatus_Invalid_Path }}}} NvMOTStatus;
"""
_TRACKER_CALLS = f"""
NvMOTStatus NvMOT_Query(uint16_t length, char *config, NvMOTQuery *query);
NvMOTStatus NvMOT_Init(NvMOTConfig *config, NvMOTContextHandle *context,
                       NvMOTConfigResponse *response);
void NvMOT_DeInit(NvMOTContextHandle context);
NvMOTStatus NvMOT_Process(NvMOTContextHandle context, NvMOTProcessParams *params,
                          NvMOTTrackedObjBatch *tracked);
#if {_MACRO} < 630
NvMOTStatus NvMOT_ProcessPast(NvMOTContextHandle context, NvMOTProcessParams *params,
                              NvDsPastFrameObjBatch *past);
#else
NvMOTStatus NvMOT_RetrieveMiscData(NvMOTContextHandle context, NvMOTProcessParams *params,
                                   NvMOTTrackerMiscData *data);
#endif
#if {_MACRO} < 600
void NvMOT_RemoveStreams(NvMOTContextHandle context, NvMOTStreamId mask);
#else
NvMOTStatus NvMOT_RemoveStreams(NvMOTContextHandle context, NvMOTStreamId mask);
#endif

#ifdef __cplusplus
}}
#if {_MACRO} >= 800
extern "C" NvMOTStatus NvMOT_UpdateParams(NvMOTContextHandle context, const std::string &text);
#endif
#endif

#endif
"""


def number_of(release: str) -> int:
    """Return a release as the macro has it: 630 of 6.3."""
    major, minor = release.split(".")
    return int(major) * 100 + int(minor) * 10


def member_lines(member: Member) -> list[str]:
    """Return a field's declaration, for the releases that have it."""
    line = f"    {field_text(member.name, member.kind)}"
    limits = []
    if member.since != GENERATIONS[0]:
        limits.append(f"{_MACRO} >= {number_of(member.since)}")
    if member.until != NEWEST:
        after = GENERATIONS[GENERATIONS.index(member.until) + 1]
        limits.append(f"{_MACRO} < {number_of(after)}")
    return [f"#if {' && '.join(limits)}", line, "#endif"] if limits else [line]


def own_struct(layout: StructLayout, name: str) -> list[str]:
    """Return a structure of the tracker's header under a name."""
    rows = [row for member in layout.members for row in member_lines(member)]
    return ["", f"typedef struct _{name} {{", *rows, f"}} {name};"]


def tracker_text() -> str:
    """Return nvdstracker.h."""
    releases = ", ".join(str(number_of(g)) for g in GENERATIONS)
    lines: list[str] = []
    for layout in layouts().values():
        if layout.own:
            rows = own_struct(layout, layout.name)
            if layout.since != GENERATIONS[0]:
                rows = ["", f"#if {_MACRO} >= {number_of(layout.since)}", *rows[1:], "#endif"]
            lines += rows
    head = _TRACKER_HEAD.format(releases=releases, newest=number_of(NEWEST), older=older_records())
    return head + "\n".join(lines) + "\n" + _TRACKER_CALLS


def older_records() -> str:
    """Return the records of past frames as releases before 6.4 name and lay them out."""
    lines = ["", f"#if {_MACRO} < 900", "/* Records without what came with 9.0. */"]
    names = {"RectParams": "HeadraceOldRect"}
    stems = ("Frame", "Object", "Stream", "Batch")
    old = {"Frame": "", "Object": "List", "Stream": "Stream", "Batch": "Batch"}
    for stem in stems:
        names[f"NvDsTargetMiscData{stem}"] = f"HeadraceOld{stem}"
    for name, short in names.items():
        kept = [m for m in layouts()[name].members if m.since < "9.0"]
        text = "\n".join(own_struct(StructLayout(name, True, "5.0", kept), short)[1:])
        for known, other in names.items():
            text = re.sub(rf"\b{known}\b", other, text)
        lines += text.split("\n")
    lines += [f"#define NvDsTargetMiscData{stem} HeadraceOld{stem}" for stem in stems]
    lines += ["#endif", f"#if {_MACRO} < 640"]
    lines += [f"#define NvDsPastFrameObj{old[stem]} NvDsTargetMiscData{stem}" for stem in stems]
    return "\n".join([*lines, "#endif", ""])


def main() -> int:
    """Write or check the headers; 1 where one is out of date."""
    stale = 0
    texts = {header.name: text_of(header) for header in table()}
    texts[TRACKER] = tracker_text()
    view = (
        "/* See ../nvdstracker.h. */\n#ifndef HEADRACE_NVMOT\n#define HEADRACE_NVMOT 600\n#endif\n"
    )
    texts[f"generation-6/{TRACKER}"] = f'{view}#include "../{TRACKER}"\n'
    for name, text in texts.items():
        path = FOLDER / name
        if path.is_file() and path.read_text() == text:
            continue
        stale += 1
        if "--check" not in sys.argv:
            path.write_text(text)
    return int(bool(stale) and "--check" in sys.argv)


if __name__ == "__main__":
    raise SystemExit(main())
