"""A library of another processor gives what the same source gives here: every kind of function."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from headrace.custom import CustomLibrary, include_dir, open_library
from headrace.custom.emulated.emulator import Emulator, find_emulator
from headrace.custom.guard import GuardOptions, keeper
from headrace.custom.inspect import inspect_library
from headrace.errors import CustomLibraryError, ParserError
from headrace.meta import Layer, NetworkInfo
from tests.custom.conftest import SOURCES, Compile
from tests.custom.emulated.conftest import CROSS
from tests.custom.guard.test_library import BOXES, KIND_OF, NETWORK, SKIPPED, outcome
from tests.profiles import slow

LIBRARIES = {"zoo28": ("zoo.cpp",), "zoo24": ("zoo.cpp", "-DHEADRACE_BOX_BYTES=24"),
             "items": ("items.cpp",)}  # fmt: skip
ABOUT_THE_WAY = ("worker process", "is built for AArch64")


def named(values: object, library: CustomLibrary) -> str:
    return repr(values).replace(str(library.path.parent), "FOLDER")


@pytest.mark.parametrize("guard", ["never", "always"])
@pytest.mark.parametrize("source", LIBRARIES)
@pytest.mark.sampled
def test_every_parser_of_the_test_libraries(
    compile_parser: Compile, compile_foreign: Callable[..., Path], source: str, guard: str
) -> None:
    if guard == "always" and keeper.can_guard() is not None:
        pytest.skip("no workers here")
    here = open_library(compile_parser(*LIBRARIES[source]))
    options = GuardOptions(restarts=100)
    there = open_library(compile_foreign(*LIBRARIES[source]), guard=guard, guard_options=options)
    assert there.symbols() == here.symbols()
    seen = 0
    for name in here.symbols():
        kind = next((k for word, k in KIND_OF.items() if word in name), "bbox")
        if name in SKIPPED or any(word in name for word in ("Label", "Cuda", "TenMillion")):
            continue
        expected, found = outcome(here, kind, name), outcome(there, kind, name)
        assert named(found, there) == named(expected, here), name
        seen += 1
    assert seen > 8
    found = [str(n) for n in there.decisions if not any(w in str(n) for w in ABOUT_THE_WAY)]
    assert named(found, there) == named([str(n) for n in here.decisions], here)


@pytest.mark.parametrize("guard", ["never", "always"])
def test_inputs_are_filled(compile_foreign: Callable[..., Path], guard: str) -> None:
    if guard == "always" and keeper.can_guard() is not None:
        pytest.skip("no workers here")
    fill = open_library(compile_foreign("inputs.cpp"), guard=guard).input_initializer()
    assert fill is not None
    inputs = {"im_info": np.zeros((2, 3), np.float32), "anchors": np.zeros((2, 1, 2), np.int64)}
    fill(inputs, NetworkInfo(64, 48, 3), 2)
    assert inputs["im_info"].tolist() == [[48, 64, 3]] * 2
    assert inputs["anchors"].reshape(-1).tolist() == [2120] * 4


@pytest.mark.slow
@pytest.mark.sampled
@pytest.mark.parametrize("guard", ["never", slow("always")])
def test_libraries_that_are_missing_are_stood_in_for(
    compile_foreign: Callable[..., Path], tmp_path: Path, guard: str
) -> None:
    """Also those that are not NVIDIA's: there is no other system to install them in."""
    if guard == "always" and keeper.can_guard() is not None:
        pytest.skip("no workers here")
    path = link_foreign(tmp_path)
    library = open_library(path, guard=guard)
    notices = " ".join(map(str, library.decisions))
    assert "not installed: libcudart.so.12, libnvinfer.so.8, libopencv_core.so.3.2" in notices
    assert "while it was loaded, it called cudaFirst of libcudart.so.12" in notices
    rows = {"rows": Layer("rows", np.zeros((1, 6), np.float32))}
    for function, called in (
        ("ParseCall", "cudaFirst"),
        ("ParseNoexcept", "cudaFirst"),
        ("ParsePath", "setInternalLibraryPath"),
        ("ParseMember", "plain"),
        ("ParseVirtual", "virtual function"),
    ):
        parser = library.bbox_parser(function)
        for _ in range(2):
            with pytest.raises(ParserError, match=called):
                parser(rows, NETWORK, BOXES)


def link_foreign(folder: Path) -> Path:
    (folder / "nodes").write_text("libcudart.so.12 { global: *; };\n")
    (folder / "other.c").write_text("int cvRound_(double v) { return (int)v; }\n")
    command = [CROSS, "-shared", "-fPIC", "-O1", f"-I{include_dir()}"]
    parts = (
        ("libcudart.so.12", ["-DPART=1", f"-Wl,--version-script={folder / 'nodes'}"], "sdk.cpp"),
        ("libnvinfer.so.8", ["-DPART=2"], "sdk.cpp"),
        ("libopencv_core.so.3.2", [], folder / "other.c"),
    )
    for name, flags, source in parts:
        more = [f"-Wl,-soname,{name}", str(SOURCES / source), "-o", str(folder / name)]
        subprocess.run([*command, *flags, *more], check=True)
        (folder / f"{name.partition('.')[0]}.so").symlink_to(name)
    target = folder / "own" / "liblinked.so"
    target.parent.mkdir()
    links = [f"-L{folder}", "-Wl,--no-as-needed", "-lcudart", "-lnvinfer", "-lopencv_core"]
    source = str(SOURCES / "linked.cpp")
    subprocess.run([*command, source, *links, "-o", str(target)], check=True)
    return target


def test_its_own_symbols_that_nothing_defines_are_named(tmp_path: Path) -> None:
    if shutil.which(CROSS) is None or not isinstance(find_emulator(), Emulator):
        pytest.skip("no compiler or emulator")
    source = tmp_path / "a.cpp"
    source.write_text(
        'int nobody_has_this(int);\nextern "C" int f() { return nobody_has_this(1); }'
    )
    library = tmp_path / "liba.so"
    subprocess.run([CROSS, "-shared", "-fPIC", source, "-o", library], check=True)
    with pytest.raises(CustomLibraryError, match="nothing defines nobody_has_this"):
        open_library(library)


@pytest.mark.slow
def test_inspect_reads_it(compile_foreign: Callable[..., Path]) -> None:
    report = inspect_library(compile_foreign("zoo.cpp"))
    assert {linked.state for linked in report.linked} == {"found"}
    assert report.load is not None
    assert report.load.ok
