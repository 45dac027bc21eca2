"""The public headers: layouts, linkage, prototype checks, plain C."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from headrace.binary.elf import ElfFile
from headrace.custom import include_dir
from tests.custom.conftest import Compile

STRICT = ("-Wall", "-Wextra", "-Wpedantic", "-Werror")


@pytest.mark.parametrize(
    "flags",
    [
        (),
        ("-DHEADRACE_BOX_BYTES=24", "-fvisibility=hidden"),
        ("-DHEADRACE_NVDSINFER_GENERATION=6",),
    ],
)
@pytest.mark.sampled
def test_layouts_linkage_and_checks(compile_parser: Compile, flags: tuple[str, ...]) -> None:
    path = compile_parser("layouts.cpp", "-Wno-invalid-offsetof", *STRICT, *flags)
    exported = ElfFile.read(path).exported()
    layout = 24 if flags else 28
    assert f"headrace_abi_box_bytes_{layout}" in exported  # hidden visibility does not hide it
    assert f"headrace_abi_box_bytes_{52 - layout}" not in exported
    if not flags:
        assert {"NvDsInferInitializeInputLayers", "NvDsInferCreateModelParser"} <= exported


def test_installed_headers_are_those_of_the_sources() -> None:
    folder = Path(__file__).parents[2] / "native" / "include"
    for source in (p for p in folder.rglob("*") if p.is_file()):
        installed = include_dir() / source.relative_to(folder)
        assert installed.read_text() == source.read_text(), "run make build"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("declaration", "words"),
    [
        ('extern "C" bool Mine(int);', "Mine"),
        (
            "bool Mine(const std::vector<NvDsInferLayerInfo> &, const NvDsInferNetworkInfo &, "
            "const NvDsInferParseDetectionParams &, std::vector<NvDsInferObjectDetectionInfo> &);",
            "with 'C' linkage",
        ),
    ],
)
@pytest.mark.sampled
def test_prototype_check_stops_compilation(tmp_path: Path, declaration: str, words: str) -> None:
    source = tmp_path / "mine.cpp"
    source.write_text(
        '#include "nvdsinfer_custom_impl.h"\n'
        f"{declaration}\nCHECK_CUSTOM_PARSE_FUNC_PROTOTYPE(Mine);\n"
    )
    done = compile_only("g++", source)
    assert done.returncode != 0
    assert words in done.stderr


def test_basic_types_are_c(tmp_path: Path) -> None:
    source = tmp_path / "plain.c"
    source.write_text('#include "nvdsinfer.h"\n#include "nvdsinfer_context.h"\n')
    done = compile_only("gcc", source, "-Wall", "-Wextra", "-Werror")
    assert done.returncode == 0, done.stderr


def compile_only(compiler: str, source: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    if shutil.which(compiler) is None:
        pytest.skip(f"no {compiler}")
    command = [compiler, *flags, "-fsyntax-only", f"-I{include_dir()}", str(source)]
    english = {**os.environ, "LC_ALL": "C"}
    return subprocess.run(command, capture_output=True, text=True, env=english)
