"""What a file tells of the TensorRT that it was compiled against, without running it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from headrace.binary.elf import ElfFile
from headrace.binary.tensorrt_line import brings_plugins, line_of, served, tensorrt_use

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="no g++")
CODE = """
extern "C" void *getPluginRegistry();
void *here = getPluginRegistry();
"""
NEWER = """
namespace nvinfer1 { namespace v_1_0 { struct IPluginCreator { virtual ~IPluginCreator(); }; } }
struct Own : nvinfer1::v_1_0::IPluginCreator {};
nvinfer1::v_1_0::IPluginCreator::~IPluginCreator() {}
Own own;
"""


def build(folder: Path, code: str, soname: str | None) -> ElfFile:
    link = []
    if soname:
        stub = folder / "libstub.so"
        command = ["g++", "-shared", "-x", "c", "/dev/null", f"-Wl,-soname,{soname}"]
        subprocess.run([*command, "-o", stub], check=True)
        link = ["-Wl,--no-as-needed", str(stub)]
    (folder / "l.cpp").write_text(code)
    library = folder / "libl.so"
    subprocess.run(["g++", "-shared", "-fPIC", folder / "l.cpp", *link, "-o", library], check=True)
    return ElfFile.read(library)


@pytest.mark.parametrize(
    ("soname", "line"),
    [
        ("libnvinfer.so.5", 7),
        ("libnvinfer.so.7", 7),
        ("libnvinfer.so.8", 8),
        ("libnvinfer.so.9", 8),
        ("libnvinfer_plugin.so.10", 10),
        ("libnvinfer.so.11", 11),
    ],
)
@pytest.mark.sampled
def test_the_soname_tells_the_line(tmp_path: Path, soname: str, line: int) -> None:
    use = served(build(tmp_path, CODE, soname))
    assert use is not None
    assert (use.line, use.soname, use.mixed) == (line, soname, None)


def test_without_a_soname_classes_tell_it(tmp_path: Path) -> None:
    use = tensorrt_use(build(tmp_path, CODE + NEWER, None))
    assert use is not None
    assert (use.line, use.soname, use.bases) == (10, None, ("IPluginCreator",))


def test_two_lines_in_one_library_are_told(tmp_path: Path) -> None:
    use = tensorrt_use(build(tmp_path, CODE + NEWER, "libnvinfer.so.8"))
    assert use is not None
    assert use.mixed is not None
    assert "linked against libnvinfer.so.8" in use.mixed


def test_other_libraries_ask_for_nothing(tmp_path: Path) -> None:
    elf = build(tmp_path, 'extern "C" int answer() { return 42; }', "libnvinfer.so.8")
    assert tensorrt_use(elf) is None
    assert not brings_plugins(elf)
    assert line_of(4) is line_of(12) is None
