"""Libraries of tests, compiled by whichever process asks first, again only where they changed.

They stay in build/libraries/, which `make clean` removes.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path

import pytest

from headrace.custom import include_dir
from tests.session import filled_once, session_folder

__all__ = ["built_once", "kept", "library_of"]

_ROOT = Path(__file__).parents[2]
_READ = {".h", ".hpp", ".c", ".cpp", ".cu", ".so", ""}
"""Endings of files that a compiler reads."""


def built_once(factory: pytest.TempPathFactory, source: Path, command: Sequence[str]) -> Path:
    """The library that `command SOURCE -o LIBRARY` makes; equal calls make it once.

    It is everybody's: a test that changes a library, or needs one that no process has open yet,
    takes a copy.
    """
    session, words = session_folder(factory), [*command, str(source)]
    key = _digest(word.replace(str(session), "") for word in words)[:16]
    # What `headrace compile` makes depends on all of Headrace.
    stays = command[0] != sys.executable and os.access(_ROOT, os.W_OK)
    folder = (_ROOT / "build" / "libraries" if stays else session / "shared") / key
    name = f"lib{source.stem}.so"

    def make(folder: Path) -> None:
        done = subprocess.run([*words, "-o", str(folder / name)], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr

    made_of = _digest(_read_by(word) for word in [*words, f"-I{source.parent}"])
    return filled_once(folder, make, made_of) / name


def kept(make: Callable[[Path], object], about: Sequence[str]) -> Path:
    """A folder of build/libraries/ that `make(folder)` fills, again where what it reads changed.

    Args:
        make: fills an empty folder.
        about: words of its commands, and each file and each `-Ifolder` that it reads.
    """
    folder = _ROOT / "build" / "libraries" / _digest(about)[:16]
    return filled_once(folder, make, _digest(map(_read_by, about)))


@cache
def _read_by(word: str) -> str:
    """A digest of what a compiler reads because of a word of its command; "" if nothing."""
    path = Path(word.removeprefix("-I").removeprefix("-L"))
    program = "" if path.is_absolute() or word.startswith("-") else shutil.which(word)
    if program or (path.is_absolute() and path.is_file() and os.access(path, os.X_OK)):
        about = Path(program or path).resolve().stat()
        return f"{about.st_size} {about.st_mtime_ns}"
    if not path.is_absolute():
        return ""
    files = sorted(p for p in path.rglob("*") if p.suffix in _READ) if path.is_dir() else [path]
    return _digest(p.name + p.read_bytes().hex() for p in files if p.is_file())


def _digest(parts: Iterable[str]) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def library_of(factory: pytest.TempPathFactory, source: Path, *flags: str) -> Path:
    """The library of a source, made with the headers of Headrace; no compiler skips the test."""
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("no g++")
    command = [compiler, "-std=c++17", "-O0", "-shared", "-fPIC", f"-I{include_dir()}", *flags]
    return built_once(factory, source, command)
