"""A GPU for tests: the one that there is, or a driver that stands in for one.

The stand-in (tests/trt/host/sources/fake_gpu.cpp) has memory the host cannot touch; it works late.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from headrace.custom import include_dir
from headrace.custom.compile.toolchain import find_nvcc, gpu_present
from tests.custom.built import built_once
from tests.session import made_once

__all__ = ["BROKEN", "KINDS", "Gpu", "driver", "gpu_library"]

KINDS = ["stand-in", "gpu"]
BROKEN = "left the GPU unusable: an illegal memory access was encountered"
SOURCES = Path(__file__).parent
ROOT = SOURCES.parents[1]


class Gpu(NamedTuple):
    """A library for a GPU, and the folder of the driver that stands in for one."""

    library: Path
    driver: Path | None

    def run(self, code: str, *arguments: object, cwd: Path, **more: str) -> Any:
        """What a program prints last, as JSON. The library is its first argument; `more` is for its
        environment."""
        folders = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(folders), **more}
        if self.driver is not None:
            env["LD_LIBRARY_PATH"] = str(self.driver)
        done = subprocess.run(
            [sys.executable, "-c", code, *map(str, (self.library, *arguments))],
            cwd=cwd, env=env, capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.splitlines()[-1])


def driver(factory: pytest.TempPathFactory) -> Path:
    """A folder with a libcuda.so.1 that needs no GPU."""
    if shutil.which("g++") is None:
        pytest.skip("no g++")

    def make(folder: Path) -> None:
        flags = ["-std=c++14", "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
        source = str(ROOT / "tests" / "trt" / "host" / "sources" / "fake_gpu.cpp")
        target = ["-Wl,-soname,libcuda.so.1", "-o", str(folder / "libcuda.so.1")]
        subprocess.run(["g++", *flags, source, *target], check=True)

    return made_once(factory, "fake-gpu", make)


def gpu_library(kind: str, source: Path, factory: pytest.TempPathFactory) -> Gpu:
    """A source, compiled with FAKE_GPU for the stand-in, or by nvcc for a real one."""
    if kind == "stand-in":
        folder = driver(factory)
        command = ["g++", "-std=c++14", "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
        command += [f"-I{include_dir()}", "-DFAKE_GPU"]
        command += ["-Wl,--no-as-needed", f"-L{folder}", "-l:libcuda.so.1"]
        return Gpu(built_once(factory, source, command), folder)
    if not gpu_present() or find_nvcc() is None or shutil.which("g++") is None:
        pytest.skip("no GPU, or no nvcc")
    folder = made_once(
        factory,
        f"gpu-{source.stem}",
        lambda draft: shutil.copy(source, draft / f"{source.stem}.cu"),
    )
    command = [sys.executable, "-m", "headrace", "compile", "--cuda", "nvcc"]
    command += ["-I", str(source.parent)]
    return Gpu(built_once(factory, folder / f"{source.stem}.cu", command), None)
