"""Libraries of tests, compiled once per session, by whichever process asks first."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from headrace.custom import include_dir
from tests.session import made_once

__all__ = ["built_once", "library_of"]


def built_once(factory: pytest.TempPathFactory, source: Path, command: Sequence[str]) -> Path:
    """The library that `command SOURCE -o LIBRARY` makes; equal calls make it once.

    It is everybody's: a test that changes a library, or needs one that no process has open yet,
    takes a copy.
    """
    key = hashlib.sha256("\0".join([*command, str(source)]).encode()).hexdigest()[:16]
    name = f"lib{source.stem}.so"

    def make(folder: Path) -> None:
        done = subprocess.run(
            [*command, str(source), "-o", str(folder / name)], capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr

    return made_once(factory, f"library-{key}", make) / name


def library_of(factory: pytest.TempPathFactory, source: Path, *flags: str) -> Path:
    """The library of a source, made with the headers of Headrace; no compiler skips the test."""
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("no g++")
    command = [compiler, "-std=c++17", "-O1", "-shared", "-fPIC", f"-I{include_dir()}", *flags]
    return built_once(factory, source, command)
