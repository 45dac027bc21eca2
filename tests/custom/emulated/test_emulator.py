"""Where nothing runs a library of another processor, the error names what to install."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from headrace.custom import open_library
from headrace.custom.emulated.emulator import Emulator, find_emulator
from headrace.errors import CustomLibraryError


@pytest.mark.slow
def test_what_is_missing_for_it_is_said(
    compile_foreign: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = compile_foreign("zoo.cpp")
    monkeypatch.setenv("HEADRACE_AARCH64_ROOT", str(tmp_path))
    with pytest.raises(CustomLibraryError, match="there are no libraries for AArch64") as caught:
        open_library(path)
    assert caught.value.code == "library-machine"
    assert "apt install qemu-user" in str(caught.value)
    monkeypatch.delenv("HEADRACE_AARCH64_ROOT")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CustomLibraryError, match="there is no emulator, qemu-aarch64"):
        open_library(path)


def test_the_program_says_who_starts_it() -> None:
    if not isinstance(found := find_emulator(), Emulator):
        pytest.skip(f"nothing runs it: {found}")
    done = subprocess.run(found.command(), capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "headrace starts this program" in done.stderr
