"""Files that are no loadable library: what they are is said, and what to do."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from headrace.custom import open_library
from headrace.errors import CustomLibraryError
from tests.custom.conftest import Compile


def refusal(path: Path) -> str:
    with pytest.raises(CustomLibraryError) as caught:
        open_library(path)
    message = str(caught.value)
    assert str(path) in message
    return message


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "the file is empty"),
        (b"#include <vector>\nint main() {}\n", "the file is text, not a library"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:1\n", "git lfs pull"),
        (b"MZ\x90\0\3", "a Windows library"),
        (b"!<arch>\n\0", "a static library"),
        (b"\x00\x01\x02\x03", "not an ELF shared library"),
        (b"\x7fELF", "truncated ELF file"),
        (b"RKNN" + bytes(60), "this is a Rockchip model (RKNN), in spite of its name"),
        (b"\x7fELF\x09\x01\x01" + bytes(60), "damaged ELF header"),
    ],
)
def test_what_is_not_elf(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "libparser.so"
    path.write_bytes(content)
    assert words in refusal(path)


@pytest.mark.parametrize("part", [0.01, 0.3, 0.7])
def test_truncated_library(tmp_path: Path, zoo28: Path, part: float) -> None:
    content = zoo28.read_bytes()
    path = tmp_path / "libparser.so"
    path.write_bytes(content[: int(len(content) * part)])
    message = refusal(path)
    assert "truncated ELF file" in message
    assert "downloaded completely" in message


@pytest.mark.parametrize(
    ("machine", "bits", "words"),
    [
        (183, 2, "built for AArch64 (ARM 64 bit, as in Jetson), this machine is x86-64"),
        (3, 1, "built for x86 (32 bit)"),
    ],
)
def test_other_architecture_names_both(
    tmp_path: Path, zoo28: Path, machine: int, bits: int, words: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    import platform

    monkeypatch.setenv("HEADRACE_AARCH64_ROOT", str(tmp_path))  # no emulator's libraries are there

    if platform.machine() != "x86_64":
        pytest.skip("written for an x86-64 machine")
    content = bytearray(zoo28.read_bytes())
    if bits == 1:
        content = bytearray(b"\x7fELF\x01\x01\x01" + bytes(9) + b"\x03\0\x03\0" + bytes(64))
    content[18:20] = machine.to_bytes(2, "little")
    path = tmp_path / "libparser.so"
    path.write_bytes(content)
    message = refusal(path)
    assert words in message
    assert "headrace compile parser.cpp" in message


def test_object_file_and_source(tmp_path: Path) -> None:
    source = tmp_path / "p.cpp"
    source.write_text('extern "C" int f() { return 1; }\n')
    assert "C++ source" in refusal(source)
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("no g++")
    subprocess.run([compiler, "-c", str(source), "-o", str(tmp_path / "p.so")], check=True)
    message = refusal(tmp_path / "p.so")
    assert "an object file (.o), not a shared library" in message
    assert "-shared" in message


def test_absent_file_folder_and_unreadable_kind(tmp_path: Path) -> None:
    assert "does not exist" in refusal(tmp_path / "nothing.so")
    (tmp_path / "folder.so").mkdir()
    assert "is not a file" in refusal(tmp_path / "folder.so")


def test_undefined_symbol_is_named_before_any_call(compile_parser: Compile) -> None:
    message = refusal(compile_parser("broken_links.cpp"))
    assert "nothing defines headrace_test_function_of_nobody" in message


def test_undefined_cpp_symbol_is_readable(tmp_path: Path) -> None:
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("no g++")
    source = tmp_path / "p.cpp"
    source.write_text("namespace geo { int clamp(float); }\nint f() { return geo::clamp(1); }\n")
    library = tmp_path / "p.so"
    subprocess.run([compiler, "-shared", "-fPIC", str(source), "-o", str(library)], check=True)
    message = refusal(library)
    assert "nothing defines geo::clamp(float)" in message
    assert "every source file" in message


@pytest.mark.parametrize(
    ("soname", "words"),
    [
        ("libnvinfer.so.8", "a parser does not need them: compile its source without -lnvinfer"),
        ("libsomething_else.so.3", "LD_LIBRARY_PATH"),
    ],
)
def test_all_missing_libraries_are_named(
    tmp_path: Path, soname: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where nothing stands in for NVIDIA's."""
    for module in ("load_errors", "stand_ins"):
        monkeypatch.setattr(f"headrace.custom.{module}.supported", lambda: False)
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("no g++")
    empty = tmp_path / "empty.cpp"
    empty.write_text("")
    stand_ins = []
    for name in (soname, "libcudart.so.11.0"):
        target = tmp_path / name
        command = [compiler, "-shared", "-fPIC", "-nostdlib", str(empty), f"-Wl,-soname,{name}"]
        subprocess.run([*command, "-o", str(target)], check=True)
        stand_ins.append(target)
    library = tmp_path / "libparser.so"
    command = [compiler, "-shared", "-nostdlib", "-Wl,--no-as-needed", *map(str, stand_ins)]
    subprocess.run([*command, "-o", str(library)], check=True)
    for target in stand_ins:
        target.unlink()
    message = refusal(library)
    assert f"linked against {soname}, libcudart.so.11.0, not found" in message
    assert ("NVIDIA" in message) or soname.startswith("libsome")
    if soname.startswith("libnvinfer"):
        assert words in message


def test_newer_c_library_is_told_by_version(tmp_path: Path, zoo28: Path) -> None:
    content = zoo28.read_bytes()
    # The same length, so that only the version's name changes; the loader compares names.
    needed = next(v for v in (b"GLIBC_2.2.5\0", b"GLIBC_2.14\0") if v in content)
    newer = needed.replace(b"2.2.5", b"2.9.9").replace(b"2.14", b"2.99")
    path = tmp_path / "libparser.so"
    patched = content.replace(needed, newer)
    # and its hash, which the loader looks at first
    patched = patched.replace(elf_hash(needed), elf_hash(newer))
    path.write_bytes(patched)
    message = refusal(path)
    assert newer.rstrip(b"\0").decode() in message
    assert "ends at GLIBC_2." in message


def elf_hash(name: bytes) -> bytes:
    value = 0
    for byte in name.rstrip(b"\0"):
        value = (value << 4) + byte
        high = value & 0xF0000000
        value ^= high >> 24
        value &= ~high & 0xFFFFFFFF
    return value.to_bytes(4, "little")
