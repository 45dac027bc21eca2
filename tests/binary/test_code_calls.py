"""The vectors that a parser fills show in its machine code, whatever its name."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.binary.code_calls import CodeCalls
from headrace.binary.elf import ElfError, ElfFile
from headrace.binary.entry_points import entry_points, filled_by
from headrace.config import ModelConfig
from headrace.custom import open_library
from headrace.errors import CustomLibraryError
from headrace.infer.model.library_source import library_source

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="no g++")
INCLUDE = Path(__file__).parents[2] / "native" / "include"
CODE = """
#include "nvdsinfer_custom_impl.h"
#define LAYERS const std::vector<NvDsInferLayerInfo> &l, const NvDsInferNetworkInfo &n
#define PARAMS const NvDsInferParseDetectionParams &p
template <class T> static void more(std::vector<T> &to, unsigned i) {
    to.push_back(T{});
    to[i] = T{};
}
extern "C" bool ParseOne(LAYERS, PARAMS, std::vector<NvDsInferObjectDetectionInfo> &o) {
    for (unsigned i = 0; i < l.size() * n.width + p.numClassesConfigured; i++) more(o, i);
    return true;
}
extern "C" bool ParseTwo(LAYERS, PARAMS, std::vector<NvDsInferInstanceMaskInfo> &o) {
    for (unsigned i = 0; i < l.size() * n.width + p.numClassesConfigured; i++) more(o, i);
    return true;
}
extern "C" bool ParseThree(LAYERS, float t, std::vector<NvDsInferAttribute> &a, std::string &s) {
    for (unsigned i = 0; i < l.size() * n.width + t; i++) more(a, i);
    s += "x";
    return true;
}
extern "C" bool ParseBoth(LAYERS, PARAMS, std::vector<NvDsInferObjectDetectionInfo> &o) {
    std::vector<NvDsInferInstanceMaskInfo> own;
    for (unsigned i = 0; i < l.size() * n.width + p.numClassesConfigured; i++) {
        more(own, i);
        more(o, i);
    }
    return true;
}
extern "C" bool ParseNone(LAYERS, PARAMS, std::vector<NvDsInferObjectDetectionInfo> &) {
    return l.size() + n.width + p.numClassesConfigured > 0;
}
bool ParseMangled(LAYERS, PARAMS, std::vector<NvDsInferInstanceMaskInfo> &o) {
    return ParseTwo(l, n, p, o);
}
bool ParseRightButMangled(LAYERS, PARAMS, std::vector<NvDsInferObjectDetectionInfo> &o) {
    return ParseOne(l, n, p, o);
}
"""
KINDS = {
    "ParseOne": ("detector",),
    "ParseTwo": ("instance segmentation",),
    "ParseThree": ("classifier",),
    "ParseBoth": ("detector", "instance segmentation"),
    "ParseNone": (),
}


@pytest.fixture(
    scope="module", params=["-O0", "-O2", "-O2 -fno-plt", "-O2 -fcf-protection=none -s"]
)
def library(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("calls")
    (folder / "l.cpp").write_text(CODE)
    command = ["g++", "-std=c++17", "-shared", "-fPIC", f"-I{INCLUDE}", *request.param.split()]
    subprocess.run([*command, str(folder / "l.cpp"), "-o", str(folder / "libl.so")], check=True)
    return folder / "libl.so"


@pytest.mark.sampled
def test_kinds_are_those_of_the_vectors(library: Path) -> None:
    elf = ElfFile.read(library)
    assert {name: filled_by(CodeCalls(elf), name) for name in KINDS} == KINDS
    points = {p.name: (p.kind, p.certain) for p in entry_points(elf)}
    assert points["ParseTwo"] == ("instance segmentation", True)
    assert points["ParseNone"] == ("detector", False)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("aarch64-linux-gnu-g++") is None, reason="no compiler for it")
@pytest.mark.parametrize("flags", ["-O0", "-O2", "-O2 -s -mbranch-protection=standard"])
@pytest.mark.sampled
def test_kinds_in_a_library_for_arm(tmp_path: Path, flags: str) -> None:
    (tmp_path / "l.cpp").write_text(CODE)
    command = ["aarch64-linux-gnu-g++", "-std=c++17", "-shared", "-fPIC", f"-I{INCLUDE}"]
    files = [str(tmp_path / "l.cpp"), "-o", str(tmp_path / "libl.so")]
    subprocess.run([*command, *flags.split(), *files], check=True)
    calls = CodeCalls(ElfFile.read(tmp_path / "libl.so"))
    assert {name: filled_by(calls, name) for name in KINDS} == KINDS


@pytest.mark.sampled
def test_a_function_of_another_kind_is_refused_before_it_is_called(library: Path) -> None:
    opened = open_library(library, guard="never")
    with pytest.raises(CustomLibraryError) as refused:
        opened.bbox_parser("ParseTwo")
    text = str(refused.value)
    assert "it is an instance segmentation parser" in text
    assert "parse-bbox-instance-mask-func-name, with network-type=3" in text
    assert "bool ParseTwo(const std::vector<NvDsInferLayerInfo>&" in text
    with pytest.raises(CustomLibraryError, match="it is a detector parser"):
        opened.classifier_parser("ParseOne")
    with pytest.raises(CustomLibraryError, match="it is a classifier parser"):
        opened.segmentation_parser("ParseThree")
    for right in ("ParseOne", "ParseBoth", "ParseNone"):
        opened.bbox_parser(right)
    opened.instance_parser("ParseTwo")
    opened.classifier_parser("ParseThree")


@pytest.mark.sampled
def test_a_wrong_signature_is_refused_with_the_right_one(library: Path) -> None:
    opened = open_library(library, guard="never")
    with pytest.raises(CustomLibraryError) as refused:
        opened.bbox_parser("ParseMangled")
    text = str(refused.value)
    assert "change its parameters, too: it is ParseMangled(std::vector<NvDsInferLayerInfo" in text
    assert 'expected extern "C" bool ParseMangled(const std::vector<NvDsInferLayerInfo>&' in text
    with pytest.raises(CustomLibraryError) as refused:
        opened.bbox_parser("ParseRightButMangled")
    assert "expected a function with C linkage" in str(refused.value)
    assert "change its parameters" not in str(refused.value)


@pytest.mark.sampled
def test_hints_name_functions_of_the_kind_first(library: Path) -> None:
    opened = open_library(library, guard="never")
    with pytest.raises(CustomLibraryError, match="did you mean ParseOne") as refused:
        opened.bbox_parser("ParseOn")
    assert "ParseThree, for parse-classifier-func-name by its code" not in str(refused.value)


CHECKED = """
#include "nvdsinfer_custom_impl.h"
extern "C" bool ClassMap(LAYERS, float, unsigned, int *map, float *&) { return *map = 0, true; }
CHECK_CUSTOM_SEM_SEGMENTATION_PARSE_FUNC_PROTOTYPE(ClassMap)
CHECK_CUSTOM_SEM_SEGMENTATION_PARSE_FUNC_PROTOTYPE(ClassMap);  // twice, as headers do
extern "C" bool ParseOnce(LAYERS, float, std::vector<NvDsInferAttribute> &a, std::string &) {
    a.emplace_back();
    return true;
}
CHECK_CUSTOM_CLASSIFIER_PARSE_FUNC_PROTOTYPE(ParseOnce)
extern "C" bool Boxes(LAYERS, PARAMS, std::vector<NvDsInferObjectDetectionInfo> &) { return true; }
CHECK_CUSTOM_PARSE_FUNC_PROTOTYPE(Boxes)
"""
DEFINED = (
    "-DLAYERS=const std::vector<NvDsInferLayerInfo> &, const NvDsInferNetworkInfo &",
    "-DPARAMS=const NvDsInferParseDetectionParams &",
)


@pytest.mark.slow
def test_the_kind_that_a_source_checks_counts_whatever_code_and_name_say(tmp_path: Path) -> None:
    """Segmentation fills no vector."""
    (tmp_path / "l.cpp").write_text(CHECKED)
    path = tmp_path / "libl.so"
    command = ["g++", "-shared", "-fPIC", "-O3", "-s", f"-I{INCLUDE}", *DEFINED]
    subprocess.run([*command, str(tmp_path / "l.cpp"), "-o", str(path)], check=True)
    elf = ElfFile.read(path)
    assert {p.name: p.kind for p in entry_points(elf) if p.checked and p.certain} == {
        "Boxes": "detector",
        "ClassMap": "segmentation",
        "ParseOnce": "classifier",
    }
    opened = open_library(path, guard="never")
    find = {
        "Boxes": opened.bbox_parser,
        "ClassMap": opened.segmentation_parser,
        "ParseOnce": opened.classifier_parser,
    }
    for name in find:
        for right, finder in find.items():
            if name == right:
                finder(name)
                continue
            with pytest.raises(CustomLibraryError, match=f"{name} is a .*, as its source checks"):
                finder(name)
    config = tmp_path / "config.txt"
    lines = f"[property]\ncustom-lib-path={path}\nengine-create-func-name=Boxes\nnetwork-type=100\n"
    config.write_text(lines)
    with pytest.raises(CustomLibraryError, match="Boxes is a detector parser, as its source"):
        library_source(ModelConfig.load(config), [])


@pytest.mark.sampled
@given(data=st.data())
def test_damaged_code_is_no_crash(library: Path, data: st.DataObject) -> None:
    content = bytearray(library.read_bytes())
    for _ in range(data.draw(st.integers(1, 30))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    try:
        elf = ElfFile.parse(bytes(content), library)
    except ElfError:
        return
    for name in KINDS:
        assert all(isinstance(found, str) for found in CodeCalls(elf).reached(name))
