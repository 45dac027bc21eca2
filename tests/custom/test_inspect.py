"""headrace inspect: entry points, ABI evidence, links, what happens at load."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from headrace.custom import open_library
from headrace.custom.inspect import inspect_library
from headrace.custom.inspect_load import Creator
from headrace.errors import CustomLibraryError
from tests.custom.conftest import Compile
from tests.custom.test_stand_ins import linked, sdk
from tests.inside import headrace

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="no g++")
__all__ = ["linked", "sdk"]  # fixtures


def build(folder: Path, code: str, *flags: str) -> Path:
    source, library = folder / "l.cpp", folder / "libl.so"
    source.write_text(code)
    command = ["g++", "-shared", "-fPIC", str(source), *flags, "-o", str(library)]
    subprocess.run(command, check=True)
    return library


@pytest.mark.slow
@pytest.mark.parametrize("size", [24, 28])
@pytest.mark.sampled
def test_a_library_of_our_headers(compile_parser: Compile, size: int) -> None:
    report = inspect_library(compile_parser("zoo.cpp", f"-DHEADRACE_BOX_BYTES={size}"))
    assert (report.machine, report.headers, report.box_bytes) == ("x86-64", "headrace", size)
    assert report.evidence[0].kind == "marker"
    assert report.evidence[1].layout == size  # the code says the same
    assert "detector" in report.fills
    assert any(note.startswith("GCC") for note in report.built_with)
    assert {x.state for x in report.linked} == {"found"}
    assert report.load is not None
    assert report.load.ok
    assert not report.undefined + report.too_new


def test_kinds_and_keys_of_functions(compile_parser: Compile) -> None:
    code = compile_parser("layouts.cpp", "-Wno-invalid-offsetof")
    found = {p.name: p for p in inspect_library(code, load=False).entry_points}
    assert found["NvDsInferInitializeInputLayers"].kind == "input initialiser"
    assert found["NvDsInferCreateModelParser"].certain
    assert found["NvDsInferCreateModelParser"].about.key is None


def test_functions_of_any_name_are_told_by_what_they_fill(compile_parser: Compile) -> None:
    report = inspect_library(compile_parser("counting.cpp"), load=False)
    found = {p.name: p for p in report.entry_points}
    for name, kind in (
        ("BoxesFine", "detector"),
        ("InstancesFine", "instance segmentation"),
        ("AttributesFine", "classifier"),
    ):
        assert (found[name].kind, found[name].certain) == (kind, True)
    assert "MapFine" not in found  # it fills no vector
    assert not report.hints


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("NvDsInferParseYolo", "detector"),
        ("NvDsInferParseCustomMrcnnTLTV2", "instance segmentation"),
        ("NvDsInferClassiferParseCustomSoftmax", "classifier"),
        ("NvDsInferParseCustomNVPlate", "classifier"),
        ("NvDsInferParseCustomSegformerTAO", "segmentation"),
        ("NvDsInferParseCustomPeopleSemSegNet", "segmentation"),
        ("NvDsInferYoloCudaEngineGet", "engine creator"),
        ("NvDsInferCudaEngineGet", "old engine creator"),
        ("NvDsInferParseCustomYoloV7_cuda", "detector"),
        ("helper", None),
    ],
)  # fmt: skip
@pytest.mark.sampled
def test_kinds_by_name(tmp_path: Path, name: str, kind: str | None) -> None:
    report = inspect_library(build(tmp_path, f'extern "C" bool {name}() {{ return 1; }}'))
    assert [(p.name, p.kind) for p in report.entry_points] == ([(name, kind)] if kind else [])
    assert [p.device for p in report.entry_points if p.device] == [True] * name.endswith("_cuda")


@pytest.mark.slow
@pytest.mark.sampled
def test_a_prebuilt_library(linked: Path) -> None:
    report = inspect_library(linked)
    states = {x.name: x for x in report.linked}
    assert states["libcudart.so.12"].state == "stand-in"
    assert "cudaFirst" in states["libcudart.so.12"].functions
    assert "nvinfer1::IPluginV2::plain() const" in states["libnvinfer.so.8"].functions
    assert states["libstdc++.so.6"].path
    assert report.load is not None
    assert report.load.creators == (Creator("YoloLayer_TRT", "1", "mine"),)
    assert report.load.release == 8000
    assert report.tensorrt is not None
    assert report.tensorrt.releases == "TensorRT 8.0.0"
    assert report.tensorrt.needs == ("libcudart.so.12",)


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("#include <cstdlib>\nint x = (abort(), 1);", "it aborted (SIGABRT) while it was loaded"),
        (
            "int x = *(volatile int *)8;",
            "it crashed (SIGSEGV), reading a null pointer while it was loaded",
        ),
        (
            "#include <cstdlib>\nint x = (exit(3), 1);",
            "it ended its process by exit(3) while it was loaded",
        ),
        ("#include <unistd.h>\nint x = (pause(), 1);", "did not end within 1 s"),
        (
            "#include <cstdlib>\nstruct S { ~S() { abort(); } } s;",
            "it aborted (SIGABRT) when its process ended",
        ),
        ("int f(); int x = f();", "nothing defines f()"),
    ],
)
@pytest.mark.sampled
def test_how_loading_fails(tmp_path: Path, code: str, words: str) -> None:
    report = inspect_library(build(tmp_path, code, "-g"), timeout_s=1 if "pause" in code else 60)
    assert report.load is not None
    assert not report.load.ok
    assert words in (report.load.error or "")
    assert any(f"gdb -ex run --args {sys.executable} -c '" in hint for hint in report.hints)
    ended = "while it was" in words or "when its process" in words
    assert bool(report.load.trace) == ended
    if ended and shutil.which("addr2line"):
        assert "l.cpp:" in "".join(report.load.trace)
        assert "libc" not in report.load.trace[0]


VECTORS = """
#include <vector>
struct Field { double a, b, c; };
std::vector<Field> fields;
extern "C" void NAME(double x) { fields.push_back({x, x, x}); }
"""


@pytest.mark.parametrize("name", ["parseMine", "enlist"])
@pytest.mark.slow
def test_boxes_are_spoken_of_where_a_parser_returns_them(tmp_path: Path, name: str) -> None:
    """Vectors of 24-byte elements in a library of plugins are no boxes."""
    library = build(tmp_path, VECTORS, f"-DNAME={name}")
    report = inspect_library(library)
    parses = name == "parseMine"
    assert report.load is not None
    assert bool(report.load.decisions) == bool(report.evidence) == report.returns_boxes == parses
    assert report.box_bytes == (24 if parses else None)
    opened = open_library(library, guard="never")
    opened.bbox_parser(name)  # whoever names it takes it for a parser
    assert ["boxes have 24 bytes" in d.sentence for d in opened.decisions] == [True]
    shown = headrace("inspect", "--no-load", library)
    assert shown.returncode == 0, shown.stderr
    assert ("\nboxes " in shown.stdout) == parses


@pytest.mark.parametrize(
    ("code", "hint"),
    [
        ('extern "C" bool MyMaker(int) { return true; }', "what MyMaker is, the config tells"),
        ("static int nothing;", 'is extern "C" missing?'),
    ],
)
def test_functions_of_unusual_names_are_named(tmp_path: Path, code: str, hint: str) -> None:
    (found,) = inspect_library(build(tmp_path, code)).hints
    assert hint in found


def test_what_it_prints_does_not_disturb(tmp_path: Path) -> None:
    code = '#include <cstdio>\nint x = printf("headrace-inspect:{}\\nhello\\n");'
    report = inspect_library(build(tmp_path, code))
    assert report.load is not None
    assert report.load.ok
    assert "hello" in report.load.output


def test_undefined_and_missing(tmp_path: Path) -> None:
    other = build(tmp_path, "int helper() { return 1; }", "-Wl,-soname,libother.so.4")
    other = other.rename(tmp_path / "libother.so")
    code = "int helper(); namespace geo { int area(float); }\n"
    code += "int f() { return helper() + geo::area(1); }"
    report = inspect_library(build(tmp_path, code, str(other)), load=False)
    assert set(report.undefined) == {"helper()", "geo::area(float)"}
    assert [x.state for x in report.linked if x.name == "libother.so.4"] == ["missing"]
    assert any("LD_LIBRARY_PATH" in hint for hint in report.hints)


def test_another_machine_is_shown_not_loaded(
    tmp_path: Path, zoo28: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADRACE_AARCH64_ROOT", str(tmp_path))  # no emulator's libraries are there
    content = bytearray(zoo28.read_bytes())
    content[18:20] = (183).to_bytes(2, "little")
    path = tmp_path / "libjetson.so"
    path.write_bytes(content)
    report = inspect_library(path)
    assert "AArch64" in report.machine
    assert report.load is None
    assert {linked.state for linked in report.linked} == {"not looked for"}
    assert report.entry_points


def test_no_library(tmp_path: Path) -> None:
    path = tmp_path / "a.so"
    path.write_text("text")
    with pytest.raises(CustomLibraryError, match="the file is text"):
        inspect_library(path)


def test_the_command(linked: Path, tmp_path: Path) -> None:
    shown = headrace("inspect", linked, "--signatures")
    assert shown.returncode == 0
    assert "registers     plugin YoloLayer_TRT version 1 in 'mine'" in shown.stdout
    assert "const NvDsInferParseDetectionParams&" in shown.stdout
    told = json.loads(headrace("inspect", linked, "--json").stdout)
    assert told["load"]["creators"][0]["name"] == "YoloLayer_TRT"
    assert told["entry_points"][0]["key"] == "parse-bbox-func-name"
    broken = build(tmp_path, "int f(); int g() { return f(); }")
    assert headrace("inspect", broken, "--no-load").returncode == 5
