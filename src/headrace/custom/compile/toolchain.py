"""Places of headers and link libraries, for compilers and Makefiles."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Literal, get_args

from headrace._core import _native
from headrace._core.errors import CustomLibraryError

Generation = Literal["6.x", "9.x"]
"""The view of the headers: 6.x (24-byte boxes, Caffe and UFF members) or 9.x (28-byte boxes)."""

GENERATIONS: tuple[Generation, ...] = get_args(Generation)


def include_dir() -> Path:
    """The folder of headers to compile a C++ parser against: `g++ -I <this folder> ...`."""
    return Path(_native.__file__).parents[1] / "include"


def link_dir() -> Path:
    """The folder of link libraries that satisfy `-lnvinfer`, `-lcudart` and their companions.

    They are linker scripts that add nothing: a parser calls none of their functions.
    """
    return Path(_native.__file__).parents[1] / "lib"


def include_folders(generation: Generation = "9.x") -> list[Path]:
    """Folders of headers that give sources the view of a generation, first to last."""
    newest = include_dir()
    return [newest] if generation == "9.x" else [newest / "generation-6", newest]


def header_flags(generation: Generation = "9.x") -> list[str]:
    """Compiler flags with which sources find the headers."""
    return [f"-I{folder}" for folder in include_folders(generation)]


def make_variables(generation: Generation = "9.x") -> dict[str, str]:
    """Variables with which an unchanged Makefile of a custom library runs here.

    `CUDA_VER` and `NVDS_VERSION` only satisfy the Makefile's checks. The compiler reads CPATH after
    the Makefile's own -I flags, so NVIDIA's headers win where they are installed. `CUDA_VER` names
    no toolkit, so NVCC is set as well: the nvcc of this machine if it has a GPU, and the toolkit's
    folders first. Without a GPU, a script takes its place that compiles `x_host.cpp` for `x.cu`,
    and calls nvcc, if there is one, for files without such a counterpart.
    """
    headers, libraries = include_folders(generation), [link_dir()]
    nvcc = find_nvcc() if gpu_present() else None
    if nvcc is not None and (home := cuda_home(nvcc)) is not None:
        headers, libraries = [home / "include", *headers], [home / "lib64", *libraries]
    return {
        "CUDA_VER": "none",
        "NVDS_VERSION": "9.1" if generation == "9.x" else "6.2",
        "CPATH": ":".join(map(str, headers)),
        "LIBRARY_PATH": ":".join(map(str, libraries)),
        "NVCC": nvcc or str(include_dir().parent / "bin" / "nvcc-host"),
    }


def find_compiler(name: str | None = None) -> str:
    """The C++ compiler: `name`, else `$CXX`, else g++.

    Raises:
        CustomLibraryError: there is none.
    """
    compiler = name or os.environ.get("CXX") or "g++"
    if path := shutil.which(compiler.split()[0]):
        return path
    raise CustomLibraryError(
        f"there is no C++ compiler {compiler!r} on this machine",
        expected="g++ (GNU) or a compiler that takes its flags",
        fix=[
            "Debian, Ubuntu: apt install g++; Fedora: dnf install gcc-c++",
            "or compile where there is one, and copy the .so here",
        ],
    )


def find_nvcc() -> str | None:
    """NVIDIA's compiler for .cu files: on the path, or in CUDA's usual folders."""
    for home in (os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda"):
        if home and Path(home, "bin", "nvcc").is_file():
            return str(Path(home, "bin", "nvcc"))
    return shutil.which("nvcc")


def cuda_home(nvcc: str) -> Path | None:
    """The toolkit's folder, which has `include/` and `lib64/`."""
    for folder in (os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda"):
        if folder and Path(folder, "include", "cuda_runtime.h").is_file():
            return Path(folder)
    near = Path(nvcc).resolve().parent.parent
    return near if (near / "include" / "cuda_runtime.h").is_file() else None


def gpu_present() -> bool:
    """Whether an NVIDIA GPU can be used here."""
    return Path("/dev/nvidiactl").exists() or Path("/dev/nvhost-gpu").exists()
