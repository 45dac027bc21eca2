"""The ELF reader against nm and readelf's own view, and against damaged files."""

from __future__ import annotations

import contextlib
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace._core import _native
from headrace.binary.elf import ElfError, ElfFile, version_key
from tests.custom.conftest import Compile
from tests.profiles import examples


@pytest.fixture(scope="module")
def tiny(compile_parser: Compile) -> bytes:
    """A whole library of a few kilobytes."""
    return compile_parser("broken_links.cpp", "-nostdlib", "-Wl,-z,noseparate-code").read_bytes()


@pytest.mark.parametrize("style", ["gnu", "sysv", "both"])
def test_symbols_are_those_that_nm_lists(compile_parser: Compile, style: str) -> None:
    path = compile_parser("broken_links.cpp", f"-Wl,--hash-style={style}")
    listed = subprocess.run(["nm", "-D", str(path)], capture_output=True, text=True).stdout
    names = {line.split()[-1].split("@")[0]: line.split()[-2] for line in listed.splitlines()}
    elf = ElfFile.read(path)
    defined = {n for n, kind in names.items() if kind not in "Uw"}
    assert elf.exported() == defined
    assert "ParseAnything" in elf.functions()
    if style != "gnu":  # the GNU table leaves out what is not defined, wherever it may
        assert {s.name for s in elf.symbols if s.name} == set(names)


def test_real_library_tells_needs_and_versions() -> None:
    elf = ElfFile.read(Path(_native.__file__))
    assert (elf.bits, elf.file_type) == (64, 3)
    assert any(n.startswith("libc.so") for n in elf.needed)
    assert any(v.startswith("GLIBC_") for v in elf.version_needs["libc.so.6"])
    assert "PyInit__native" in elf.functions()


def test_libc_offers_the_versions_that_libraries_need() -> None:
    libc = next(
        Path(line.split()[-1])
        for line in Path("/proc/self/maps").read_text().splitlines()
        if "libc.so.6" in line
    )
    needs = ElfFile.read(Path(_native.__file__)).version_needs["libc.so.6"]
    assert set(needs) <= ElfFile.read(libc).version_defs


def test_versions_compare_by_number() -> None:
    assert version_key("GLIBC_2.4") < version_key("GLIBC_2.34") < version_key("GLIBC_2.34.1")


@settings(max_examples=examples(300))
@given(data=st.data())
def test_damaged_files_raise_nothing_but_elf_errors(tiny: bytes, data: st.DataObject) -> None:
    damaged = bytearray(tiny)
    for _ in range(data.draw(st.integers(1, 6))):
        at = data.draw(st.integers(0, len(tiny) - 1) | st.integers(0, 0x400))
        damaged[at] = data.draw(st.integers(0, 255))
    cut = data.draw(st.just(len(tiny)) | st.integers(0, len(tiny)))
    with contextlib.suppress(ElfError):
        ElfFile.parse(bytes(damaged[:cut]), Path("x.so"))


@given(data=st.binary(max_size=600), wide=st.booleans(), big=st.booleans())
def test_noise_raises_nothing_but_elf_errors(data: bytes, wide: bool, big: bool) -> None:
    header = b"\x7fELF" + bytes([1 + wide, 1 + big, 1])
    with contextlib.suppress(ElfError):
        ElfFile.parse(header + data, Path("x.so"))


def test_truncation_anywhere_in_the_loaded_part_is_noticed(tiny: bytes) -> None:
    whole = ElfFile.parse(tiny, Path("x.so"))
    for cut in range(0, whole.loaded_bytes, 7):  # a loader would be killed by touching the rest
        with pytest.raises(ElfError, match="ELF"):
            ElfFile.parse(tiny[:cut], Path("x.so"))
    ElfFile.parse(tiny[: whole.loaded_bytes], Path("x.so"))
