"""Layouts of the table, against the sizes of the public headers and a compiler."""

from __future__ import annotations

import ctypes
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from headrace.custom.compile.toolchain import include_dir
from headrace.gstreamer import pyds
from headrace.gstreamer.cmeta.layout import GENERATIONS, NEWEST, struct_rows, structure, table
from headrace.gstreamer.pyds.meta import MetaField
from headrace.gstreamer.pyds.struct import Struct

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("generation", GENERATIONS)
def test_sizes_are_those_of_the_public_headers(generation: str) -> None:
    sizes = {name: row.sizes[generation] for name, row in struct_rows().items()
             if generation in row.sizes}  # fmt: skip
    assert len(sizes) > 60
    assert {name: ctypes.sizeof(structure(name, generation)) for name in sizes} == sizes


def test_fields_move_where_the_public_headers_moved_them() -> None:
    offsets = {g: structure("NvDsObjectMeta", g).obj_label.offset for g in GENERATIONS}
    assert offsets == {"6.2": 336, "7.1": 336, "9.1": 344}
    assert structure("NvDsEventMsgMeta", "6.2").extMsg.offset == 168
    assert structure("NvDsEventMsgMeta", "9.1").extMsg.offset == 13848


@pytest.mark.parametrize(("compiler", "language"), [("gcc", "c"), ("g++", "c++")])
def test_the_compiler_lays_the_headers_out_as_the_table_does(
    compiler: str, language: str, tmp_path: Path
) -> None:
    lines = [f"#include <{header.name}>" for header in table()]
    word = "_Static_assert" if language == "c" else "static_assert"
    for name in struct_rows():
        kind = structure(name)
        lines.append(f'{word}(sizeof({name}) == {ctypes.sizeof(kind)}, "{name}");')
        for field, *_ in kind._fields_:
            offset = getattr(kind, field).offset
            lines.append(f'{word}(offsetof({name}, {field}) == {offset}, "{name}.{field}");')
    (tmp_path / "layout.c").write_text("\n".join(["#include <stddef.h>", *lines]))
    command = [compiler, "-x", language, "-fsyntax-only", "-I", include_dir(),
               tmp_path / "layout.c"]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:2000]


def test_the_headers_are_those_of_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["c_headers.py", "--check"])
    main = runpy.run_path(str(ROOT / "scripts" / "c_headers.py"))["main"]
    assert main() == 0, "python scripts/c_headers.py writes them anew"


@pytest.mark.parametrize(
    "name", [n for n in struct_rows() if isinstance(getattr(pyds, n, 0), type)]
)
def test_fields_of_pyds_are_in_the_table(name: str) -> None:
    kind: type[Struct] = getattr(pyds, name)
    fields = {n for n, v in vars(kind).items() if n[0] != "_" and not callable(v)}
    fields -= {n for n, v in vars(kind).items() if isinstance(v, property)}
    own = {"NvDsMetaPool": {"type"}}  # an alias of pyds
    rows = {field.name for field in struct_rows()[name].fields}
    assert fields - rows - own.get(name, set()) == set()


def test_lists_are_named_alike() -> None:
    lists = {n for k in (pyds.NvDsFrameMeta, pyds.NvDsObjectMeta, pyds.NvDsBatchMeta)
             for n, v in vars(k).items() if isinstance(v, MetaField)}  # fmt: skip
    rows = {f.name for n in ("NvDsFrameMeta", "NvDsObjectMeta", "NvDsBatchMeta")
            for f in struct_rows()[n].fields}  # fmt: skip
    assert lists <= rows
    assert NEWEST == "9.1"
