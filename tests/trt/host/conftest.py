"""Libraries of networks and plugins, compiled once per session and generation."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from headrace.custom import CustomLibrary, include_dir, open_library
from headrace.plugins import get_plugin_registry
from tests.custom.built import built_once
from tests.session import made_once

SOURCES = Path(__file__).parent / "sources"
Compile = Callable[..., Path]


@pytest.fixture(scope="session")
def compile_host(tmp_path_factory: pytest.TempPathFactory) -> Compile:
    """`compile_host(source, major) -> .so`; the same call compiles once."""
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("no g++")

    def compile_(source: str, major: int = 10, *flags: str) -> Path:
        command = [compiler, "-std=c++14", "-O0", "-Wall", "-Wextra", "-Werror", "-shared"]
        command += ["-fPIC", f"-DNV_TENSORRT_MAJOR={major}", f"-I{include_dir()}", *flags]
        if "HEADRACE_SANITIZED" in os.environ:  # `make sanitize`: both sides are watched
            command += ["-fsanitize=address,undefined", "-fno-sanitize=vptr", "-g1"]
        return built_once(tmp_path_factory, SOURCES / source, command)

    return compile_


ROOT = Path(__file__).parents[3]
LINES = (7, 8, 10, 11)


def author_header(folder: Path, line: int) -> Path:
    """Write `NvInfer.h` of a line of TensorRT, and a library of its name to link against."""
    script = ROOT / "scripts" / "tensorrt_author.py"
    subprocess.run([sys.executable, script, str(line), folder / "NvInfer.h"], check=True)
    link = ["g++", "-shared", "-x", "c", "/dev/null", f"-Wl,-soname,libnvinfer.so.{line}"]
    subprocess.run([*link, "-o", folder / "libnvinfer.so"], check=True)
    return folder


@pytest.fixture(scope="session")
def compile_for_tensorrt(tmp_path_factory: pytest.TempPathFactory) -> Compile:
    """`compile_for_tensorrt(source, line, *flags) -> .so` that knows nothing of headrace.

    It is linked against libnvinfer of its line, of another, `link`, or of none, not `named`.
    """
    if shutil.which("g++") is None:
        pytest.skip("no g++")

    def folder_of(line: int) -> Path:
        return made_once(
            tmp_path_factory, f"tensorrt-{line}", lambda f: author_header(f, line) and None
        )

    def compile_(
        source: str, line: int = 8, *flags: str, link: int = 0, named: bool = True
    ) -> Path:
        folder, linked = folder_of(line), folder_of(link or line)
        how = "--no-as-needed" if named else "--as-needed"
        command = ["g++", "-std=c++14", "-O0", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
        command += [f"-I{folder}", *flags]
        return built_once(
            tmp_path_factory,
            SOURCES / source,
            ["sh", "-c", f'exec "$@" -Wl,{how} -L"$0" -lnvinfer', str(linked), *command],
        )

    return compile_


@pytest.fixture(autouse=True)
def _registry_as_before() -> Iterator[None]:
    """Creators of a test's libraries are taken back after it."""
    registry = get_plugin_registry()
    before = set(map(id, registry.all_creators))
    yield
    for creator in registry.all_creators:
        if id(creator) not in before and hasattr(creator, "library"):
            registry.deregister_creator(creator)


@pytest.fixture
def opened() -> Callable[[Path], CustomLibrary]:
    """`opened(path)`: a library that stays open during the test."""
    held: list[CustomLibrary] = []

    def open_(path: Path) -> CustomLibrary:
        held.append(open_library(path))
        return held[-1]

    return open_
