"""Parsers for AArch64, compiled once per session."""

from __future__ import annotations

import platform
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from headrace.custom import include_dir
from headrace.custom.emulated.emulator import Emulator, find_emulator
from tests.custom.built import built_once
from tests.custom.conftest import SOURCES

CROSS = "aarch64-linux-gnu-g++"


def require_cross_compiler() -> None:
    """Skip the test where nothing compiles or runs libraries of AArch64."""
    if platform.machine() != "x86_64" or not isinstance(found := find_emulator(), Emulator):
        pytest.skip(f"nothing runs libraries of AArch64: {found}")
    if shutil.which(CROSS) is None:
        pytest.skip(f"no {CROSS}")


@pytest.fixture(scope="session")
def compile_foreign(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """`compile_foreign(source, *flags) -> .so` for AArch64."""
    require_cross_compiler()
    flags_of_all = ["-std=c++11", "-O0", "-shared", "-fPIC", f"-I{include_dir()}"]

    def compile_(source: str | Path, *flags: str) -> Path:
        return built_once(tmp_path_factory, SOURCES / source, [CROSS, *flags_of_all, *flags])

    return compile_
