"""Libraries linked against NVIDIA's, on a machine without: they load; missing calls are said."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from headrace.binary.elf import ElfFile
from headrace.custom import CustomLibrary, open_library
from headrace.custom.compile.toolchain import include_dir
from headrace.custom.stand_in_image import AARCH64, ANCHOR, X86_64, build, elf_hash
from headrace.custom.stand_ins import demands, supported
from headrace.errors import CustomLibraryError, ParserError
from headrace.meta import DetectionParams, Layer, NetworkInfo

SOURCES = Path(__file__).parent / "sources"
pytestmark = [
    pytest.mark.skipif(not supported(), reason="no stand-ins for this machine"),
    pytest.mark.skipif(shutil.which("g++") is None, reason="no g++"),
]
Arguments = tuple[Mapping[str, Layer], NetworkInfo, DetectionParams]


def gxx(*arguments: str | Path) -> None:
    subprocess.run(["g++", "-shared", "-fPIC", "-O1", *map(str, arguments)], check=True)


@pytest.fixture(scope="session")
def sdk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """libcudart.so.12 with version nodes and libnvinfer.so.8 without, to link against."""
    folder = tmp_path_factory.mktemp("sdk")
    (folder / "nodes").write_text("libcudart.so.12 { global: *; };\n")
    for part, name, more in (
        (1, "libcudart.so.12", [f"-Wl,--version-script={folder / 'nodes'}"]),
        (2, "libnvinfer.so.8", []),
    ):
        flags = [f"-DPART={part}", f"-Wl,-soname,{name}", *more, "-o", folder / name]
        gxx(SOURCES / "sdk.cpp", *flags)
        (folder / f"{name.partition('.')[0]}.so").symlink_to(name)
    return folder


def link(target: Path, sdk: Path, *flags: str | Path) -> Path:
    source = [SOURCES / "linked.cpp", f"-I{include_dir()}", f"-L{sdk}"]
    gxx(*source, *flags, "-lcudart", "-lnvinfer", "-o", target)
    return target


@pytest.fixture(scope="session")
def linked(tmp_path_factory: pytest.TempPathFactory, sdk: Path) -> Path:
    return link(tmp_path_factory.mktemp("linked") / "liblinked.so", sdk)


@pytest.fixture(scope="session")
def library(linked: Path) -> CustomLibrary:
    return open_library(linked)


@pytest.fixture
def frame(layers: Mapping[str, Layer], network: NetworkInfo, params: DetectionParams) -> Arguments:
    return layers, network, params


def test_it_loads_and_says_how(library: CustomLibrary, frame: Arguments) -> None:
    said = " ".join(notice.sentence for notice in library.decisions)
    assert "not installed: libcudart.so.12, libnvinfer.so.8; headrace stands in" in said
    assert "while it was loaded, it called cudaFirst of libcudart.so.12: the answer was 0" in said
    assert library.bbox_parser("ParseMemory")(*frame).boxes[0, 3] == 1  # memory taken at load


@pytest.mark.parametrize(
    ("parser", "function"),
    [
        ("ParseCall", "cudaFirst of libcudart.so.12"),
        ("ParseNoexcept", "cudaFirst of libcudart.so.12"),
        ("ParseOwnTerminate", "cudaFirst of libcudart.so.12"),
        ("ParsePath", "setInternalLibraryPath of libnvinfer.so.8"),
        ("ParseMember", "nvinfer1::IPluginV2::plain() const of libnvinfer.so.8"),
        ("ParseVirtual", "a virtual function of nvinfer1::IPluginV2 of libnvinfer.so.8"),
    ],
)
def test_a_call_is_an_error_that_names_it(
    library: CustomLibrary, frame: Arguments, parser: str, function: str
) -> None:
    for _ in range(2):
        with pytest.raises(ParserError, match="not installed on this machine") as caught:
            library.bbox_parser(parser)(*frame)
        assert f"{parser}: the code called {function}" in str(caught.value)
    # Nothing is left behind: destructors ran where they may, the next frame is as good.
    assert library.bbox_parser("ParseSound")(*frame).boxes.tolist() == [[2, 3, 4, 0]]


def test_code_may_catch_it(library: CustomLibrary, frame: Arguments) -> None:
    assert library.bbox_parser("ParseCatching")(*frame).boxes[0, 3] == 9


def test_vtables_and_type_infos_are_harmless(library: CustomLibrary, frame: Arguments) -> None:
    assert len(library.bbox_parser("ParseBase")(*frame)) == 1


def test_a_thread_of_the_library_gets_0(library: CustomLibrary, frame: Arguments) -> None:
    """No exception could reach anyone from there: it would end the process."""
    assert library.bbox_parser("ParseThread")(*frame).boxes[0, 3] == 5


@pytest.mark.slow
def test_a_later_library_asks_for_more(
    library: CustomLibrary, tmp_path: Path, sdk: Path, frame: Arguments
) -> None:
    assert "cudaSecond" not in {s.name for s in ElfFile.read(library.path).symbols}
    later = open_library(link(tmp_path / "liblater.so", sdk, "-DNAME=cudaSecond"))
    with pytest.raises(ParserError, match="cudaSecond"):
        later.bbox_parser("ParseCall")(*frame)
    with pytest.raises(ParserError, match="cudaFirst"):
        library.bbox_parser("ParseCall")(*frame)


@pytest.mark.slow
def test_an_installed_library_is_never_replaced_but_for_tensorrt(
    tmp_path: Path, sdk: Path, frame: Arguments
) -> None:
    """In a process of its own: in this one the names are taken."""
    path = link(tmp_path / "libreal.so", sdk, f"-Wl,-rpath,{sdk}", "-DREAL")
    assert [d.soname for d in demands(ElfFile.read(path))] == ["libnvinfer.so.8"]
    path = link(tmp_path / "libthere.so", sdk, f"-Wl,-rpath,{tmp_path}")
    shutil.copy(sdk / "libcudart.so.12", tmp_path)
    assert [d.soname for d in demands(ElfFile.read(path))] == ["libnvinfer.so.8"]
    code = (
        "import sys, numpy as np; from headrace.custom import open_library; from headrace.meta "
        "import *\n"
        "library = open_library(sys.argv[1]); params = DetectionParams(3, np.zeros(3, 'f4'))\n"
        "layer = {'a': Layer('a', np.zeros((1, 6), 'f4'))}\n"
        "print(library.bbox_parser('ParseThread')(layer, NetworkInfo(9, 9, 3), params).boxes[0, 3])"
    )
    command = [sys.executable, "-c", code, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["82.0"]  # 5 + 77, what the installed one answers


@pytest.mark.slow
def test_the_process_ends_well(linked: Path) -> None:
    """Static destructors of the library call CUDA once more."""
    code = f"from headrace.custom import open_library; library = open_library({str(linked)!r})"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_what_is_not_nvidias_stays_an_error(tmp_path: Path, sdk: Path) -> None:
    source = tmp_path / "forgot.cpp"
    source.write_text(
        'float clamp(float v);\nextern "C" int cudaFirst(int);\n'
        'extern "C" bool Parse() { return clamp(1.0f) > 0 && cudaFirst(1); }\n'
    )
    path = tmp_path / "libforgot.so"
    gxx(source, f"-L{sdk}", "-lcudart", "-o", path)
    with pytest.raises(CustomLibraryError, match=r"nothing defines clamp\(float\)"):
        open_library(path)


@pytest.mark.slow
def test_what_the_originals_process_has_loaded_need_not_be_linked(
    tmp_path: Path, sdk: Path, frame: Arguments
) -> None:
    source = tmp_path / "unlinked.cpp"
    source.write_text(
        '#include "nvdsinfer_custom_impl.h"\nextern "C" int cudaFirst(int), createReorgPlugin(int);'
        '\nextern "C" bool Parse(std::vector<NvDsInferLayerInfo> const &,'
        " NvDsInferNetworkInfo const &, NvDsInferParseDetectionParams const &,"
        " std::vector<NvDsInferObjectDetectionInfo> &)"
        " { return createReorgPlugin(1) && cudaFirst(1); }\n"
    )
    path = tmp_path / "libunlinked.so"
    gxx(source, f"-I{include_dir()}", f"-L{sdk}", "-lcudart", "-o", path)
    asked = {demand.soname: demand.names for demand in demands(ElfFile.read(path))}
    assert asked["libnvinfer_plugin.so"] == [("createReorgPlugin", None)]
    with pytest.raises(ParserError, match=r"createReorgPlugin of libnvinfer_plugin\.so"):
        open_library(path).bbox_parser("Parse")(*frame)


def test_demands_name_function_version_and_library(linked: Path) -> None:
    asked = {demand.soname: demand for demand in demands(ElfFile.read(linked))}
    assert asked["libcudart.so.12"].versions == ("libcudart.so.12",)
    assert ("cudaFirst", "libcudart.so.12") in asked["libcudart.so.12"].names
    names = {name for name, version in asked["libnvinfer.so.8"].names if version is None}
    assert {"getPluginRegistry", "_ZTIN8nvinfer19IPluginV2E", "_ZTVN8nvinfer19IPluginV2E"} <= names
    assert not names & {"memcpy", "_Znwm", "__cxa_finalize"}


@pytest.mark.parametrize("machine", [X86_64, AARCH64])
@pytest.mark.parametrize("nodes", [(), ("libcudart.so.12",), ("A_1", "A_2")])
def test_an_image_is_a_sound_library(nodes: tuple[str, ...], machine: int) -> None:
    elf = ElfFile.parse(build("libcudart.so.12", nodes, machine), Path("image"))
    assert (elf.machine, elf.file_type, elf.soname) == (machine, 3, "libcudart.so.12")
    assert elf.version_defs == {"libcudart.so.12", *nodes}
    assert ANCHOR in {s.name for s in elf.symbols if s.defined}


def test_hash_of_symbol_tables() -> None:
    """Values of the System V ABI's function for common names."""
    assert elf_hash("") == 0
    assert elf_hash("printf") == 0x077905A6
    assert elf_hash("exit") == 0x0006CF04
    assert elf_hash("a" * 40) < 1 << 28


def test_an_installed_tensorrt_is_not_loaded(
    linked: Path, sdk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its objects would not be headrace's; of CUDA an installed library is taken."""
    monkeypatch.setenv("LD_LIBRARY_PATH", str(sdk))
    assert [d.soname for d in demands(ElfFile.read(linked))] == ["libnvinfer.so.8"]
