"""Places of headers and link libraries, for compilers and Makefiles."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, get_args

from headrace._core import _native
from headrace._core.errors import CustomLibraryError

GSTREAMER = (
    "gstreamer-1.0", "gstreamer-base-1.0", "gstreamer-video-1.0", "gstreamer-app-1.0",
    "gstreamer-rtsp-server-1.0", "glib-2.0", "json-glib-1.0", "yaml-cpp", "uuid", "x11",
)  # fmt: skip
"""Packages that applications over GStreamer are compiled with, where they are installed."""
APPLICATION = (
    "nvdsgst_meta", "nvds_meta", "nvdsgst_helper", "nvbufsurface", "nvbufsurftransform",
    "nvds_yml_parser", "nvds_utils",
    "nvds_logger", "nvds_inferutils",
)  # fmt: skip
"""Names of the libraries that applications are linked to."""

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


def run_folders() -> list[Path]:
    """Folders of the libraries that C applications load when they start."""
    return [link_dir(), link_dir() / "run"]


def application_flags(what: str) -> list[str]:
    """Flags with which C applications find GStreamer, and headrace's headers and libraries.

    Args:
        what: `--cflags` or `--libs`.

    Raises:
        CustomLibraryError: see `package_flags`.
    """
    own = (
        header_flags()
        if what == "--cflags"
        else [f"-L{link_dir()}", *(f"-l{name}" for name in APPLICATION)]
    )
    return [*own, *package_flags(GSTREAMER, what)]


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


def c_compiler(cxx: str) -> str:
    """The C compiler for sources named `.c`: `$CC`, else gcc, else the C++ compiler `cxx`."""
    name = os.environ.get("CC") or "gcc"
    return shutil.which(name.split()[0]) or cxx


def has_gstreamer() -> bool:
    """True where applications and plugins of GStreamer can be compiled."""
    tool = shutil.which("pkg-config")
    command = [tool or "", "--exists", GSTREAMER[0]]
    return tool is not None and subprocess.run(command, check=False).returncode == 0


def package_flags(packages: Sequence[str], what: str) -> list[str]:
    """Ask pkg-config for packages that C applications are compiled with.

    Args:
        packages: names; those that are not installed are left out.
        what: `--cflags` or `--libs`.

    Raises:
        CustomLibraryError: there is no pkg-config, or no GStreamer to compile against.
    """
    tool = shutil.which("pkg-config")
    flags: list[str] = []
    for package in packages if tool else ():
        done = subprocess.run(
            [tool or "", what, package], capture_output=True, text=True, check=False
        )
        if done.returncode == 0:
            flags += done.stdout.split()
        elif package == GSTREAMER[0]:
            tool = None
            break
    if tool is None:
        raise CustomLibraryError(
            "an application over GStreamer needs its headers, and pkg-config to find them",
            fix="Debian, Ubuntu: apt install pkg-config libgstreamer1.0-dev "
            "libgstreamer-plugins-base1.0-dev",
        )
    return list(dict.fromkeys(flags))


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
