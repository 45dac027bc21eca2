"""What NVRTC compiled once is read from then on, and is what it would compile."""

from __future__ import annotations

import ctypes
import subprocess
from ctypes import byref, c_char_p, c_int, c_size_t, c_void_p
from pathlib import Path
from typing import Any

import pytest

from headrace._core.gpu import kept_kernels
from headrace._core.gpu.kept_kernels import KeptKernels

HERE = Path(__file__).parent
PASSING = HERE.parents[2] / "native" / "nvrtc" / "passing.cpp"
HEADERS = {"a.h": "int a;"}


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The stand-in, and what is put in its place."""
    folder = tmp_path_factory.mktemp("nvrtc")
    made = []
    for source in (HERE / "stand_in_nvrtc.cpp", PASSING):
        out = folder / f"{source.stem}.so"
        command = ["g++", "-std=c++17", "-O1", "-fPIC", "-shared", str(source), "-o", str(out)]
        subprocess.run(command, check=True)
        made.append(out)
    return made[0], made[1]


class Nvrtc:
    """A process's calls, through the library in NVRTC's place."""

    def __init__(self, libraries: tuple[Path, Path], folder: Path, version: str = "13.0") -> None:
        self.real = ctypes.CDLL(str(libraries[0]))
        self.use = ctypes.CDLL(str(libraries[1]))
        self.kept = KeptKernels(self.real, folder, version)
        self.kept.serve(self.use, kept_kernels._names(self.use))

    def __enter__(self) -> Nvrtc:
        self.before = int(self.real.headrace_test_compilations())
        return self

    def __exit__(self, *_: object) -> None:
        assert self.real.headrace_test_alive() == 0

    @property
    def compilations(self) -> int:
        return int(self.real.headrace_test_compilations()) - self.before

    def program(self, source: str = "kernel", names: tuple[str, ...] = ("f<int>",)) -> c_void_p:
        program = c_void_p()
        texts = (c_char_p * 1)(*(text.encode() for text in HEADERS.values()))
        includes = (c_char_p * 1)(*(name.encode() for name in HEADERS))
        status = self.use.nvrtcCreateProgram(
            byref(program), source.encode(), b"k.cu", c_int(1), texts, includes
        )
        assert status == 0
        for name in names:
            assert self.use.nvrtcAddNameExpression(program, name.encode()) == 0
        return program

    def compile(self, program: c_void_p, *options: str) -> int:
        array = (c_char_p * len(options))(*(option.encode() for option in options))
        return int(self.use.nvrtcCompileProgram(program, len(options), array))

    def image(self, program: c_void_p, kind: str) -> bytes:
        size = c_size_t()
        assert getattr(self.use, f"nvrtcGet{kind}Size")(program, byref(size)) == 0
        data = ctypes.create_string_buffer(size.value)
        assert getattr(self.use, f"nvrtcGet{kind}")(program, data) == 0
        return data.raw

    def all(self, source: str = "kernel", options: tuple[str, ...] = ("-arch=sm_90a",)) -> Any:
        """Everything a caller asks for of a program."""
        program, name = self.program(source), c_char_p()
        assert self.compile(program, *options) == 0
        found = [self.image(program, kind) for kind in ("CUBIN", "PTX", "ProgramLog")]
        assert self.use.nvrtcGetLoweredName(program, b"f<int>", byref(name)) == 0
        found.append(name.value or b"")
        assert self.use.nvrtcDestroyProgram(byref(program)) == 0
        return found


@pytest.fixture
def nvrtc(libraries: tuple[Path, Path], tmp_path: Path) -> Any:
    def begin(version: str = "13.0") -> Nvrtc:
        return Nvrtc(libraries, tmp_path / "kernels", version)

    return begin


def test_a_program_is_compiled_once_for_all_processes(nvrtc: Any) -> None:
    with nvrtc() as first:
        wanted = first.all()
        assert first.compilations == 1
        assert wanted[0] == b"CUBIN:kernel|k.cu|int a;|a.h|-arch=sm_90a\0"
        assert wanted[3] == b"_Zf<int>"
    with nvrtc() as second:
        assert second.all() == wanted
        assert second.compilations == 0


@pytest.mark.parametrize("change", ["source", "options", "header", "names", "version"])
def test_what_differs_is_compiled(nvrtc: Any, change: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with nvrtc() as first:
        first.all()
    with nvrtc("13.1" if change == "version" else "13.0") as second:
        if change == "header":
            monkeypatch.setitem(HEADERS, "a.h", "int b;")
        if change == "names":
            program = second.program(names=("g<int>",))
            assert second.compile(program, "-arch=sm_90a") == 0
            second.use.nvrtcDestroyProgram(byref(program))
        else:
            source = "other" if change == "source" else "kernel"
            options = ("-arch=sm_80",) if change == "options" else ("-arch=sm_90a",)
            found = second.all(source, options)
            assert found[0].startswith(f"CUBIN:{source}|k.cu|{HEADERS['a.h']}".encode())
            assert found[0].endswith(f"{options[0]}\0".encode())
        assert second.compilations == 1


def test_programs_that_read_files_are_not_kept(nvrtc: Any) -> None:
    for _ in range(2):
        with nvrtc() as each:
            each.all(options=("--include-path=/usr/include",))
            assert each.compilations == 1


def test_an_error_is_not_kept(nvrtc: Any) -> None:
    for _ in range(2):
        with nvrtc() as each:
            program = each.program("error")
            assert each.compile(program) == 6
            each.use.nvrtcDestroyProgram(byref(program))
            assert each.compilations == 1


def test_what_is_not_kept_is_compiled_when_it_is_asked_for(nvrtc: Any) -> None:
    with nvrtc() as first:
        first.all()
    with nvrtc() as second:
        program = second.program()
        assert second.compile(program, "-arch=sm_90a") == 0
        assert second.compilations == 0
        assert second.image(program, "LTOIR") == b"LTOIR:kernel|k.cu|int a;|a.h|-arch=sm_90a\0"
        assert second.compilations == 1
        second.use.nvrtcDestroyProgram(byref(program))


def test_a_damaged_file_is_compiled_anew(nvrtc: Any, tmp_path: Path) -> None:
    with nvrtc() as first:
        wanted = first.all()
    (file,) = (tmp_path / "kernels").iterdir()
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    with nvrtc() as second:
        assert second.all() == wanted
        assert second.compilations == 1


def test_where_nothing_can_be_written_it_compiles(nvrtc: Any, tmp_path: Path) -> None:
    (tmp_path / "kernels").write_text("a file")
    with nvrtc() as each:
        each.all()
        assert each.compilations == 1


def test_functions_that_are_only_passed_on(nvrtc: Any) -> None:
    with nvrtc() as each:
        major, minor = c_int(), c_int()
        assert each.use.nvrtcVersion(byref(major), byref(minor)) == 0
        assert (major.value, minor.value) == (13, 0)
        assert each.use.nvrtcGetOptiXIRSize(None, None) == 11  # the stand-in has none
