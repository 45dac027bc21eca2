"""`.cu` files: compiled to a GPU's machine code, or replaced by a C++ file beside them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from noria._core.errors import CustomLibraryError
from noria._core.notices import Notice
from noria.custom.compile.toolchain import cuda_home, find_nvcc, gpu_present

CudaMode = Literal["auto", "host", "nvcc"]

HOST_SUFFIXES = (".cpp", ".cc", ".cxx")


@dataclass(frozen=True)
class Unit:
    """One file to compile.

    Attributes:
        device: whether nvcc compiles it, or it is linked with what nvcc compiled.
        nvcc: the program, for `.cu` files.
    """

    source: Path
    device: bool = False
    nvcc: str | None = None

    def command(
        self,
        compiler: str,
        common: Sequence[str],
        folders: Sequence[str],
        headers: Sequence[str],
        target: Path,
    ) -> list[str]:
        """The command that makes the object file `target` of it."""
        if self.source.suffix in (".o", ".a"):
            return ["cp", str(self.source), str(target)]
        cuda = [f"-I{self._home() / 'include'}"] if self.device else []
        if self.nvcc and self.source.suffix == ".cu":
            for_host = [f for f in common if f != "-fPIC" and not f.startswith("-std=")]
            command = [self.nvcc, "-ccbin", compiler, "-std=c++17", "-Xcompiler"]
            command += [",".join(["-fPIC", *[f for f in for_host if f.startswith("-W")]])]
            rest = [f for f in for_host if not f.startswith(("-W", "-fsanitize", "-fno-omit"))]
            return [
                *command,
                *rest,
                *folders,
                *cuda,
                *headers,
                "-c",
                str(self.source),
                "-o",
                str(target),
            ]
        return [
            compiler,
            *common,
            *folders,
            *cuda,
            *headers,
            "-c",
            str(self.source),
            "-o",
            str(target),
        ]

    def link_flags(self) -> list[str]:
        """Linker flags beside a device unit's object."""
        home = self._home()
        return [f"-L{home / 'lib64'}", "-lcudart"]

    def _home(self) -> Path:
        home = cuda_home(self.nvcc or "nvcc")
        if home is None:
            raise CustomLibraryError(
                "CUDA's headers are not beside nvcc", fix="name the toolkit's folder in CUDA_HOME"
            )
        return home


def host_file(source: Path) -> Path | None:
    """The C++ file that stands for `x.cu` on a CPU: `x_host.cpp` beside it."""
    for suffix in HOST_SUFFIXES:
        if (path := source.with_name(f"{source.stem}_host{suffix}")).is_file():
            return path
    return None


def compile_units(sources: Sequence[Path], mode: CudaMode) -> tuple[list[Unit], list[Notice]]:
    """Choose the files to compile for these sources; with notices about `.cu` files.

    Raises:
        CustomLibraryError: a `.cu` file can be compiled neither way.
    """
    if mode not in ("auto", "host", "nvcc"):
        raise CustomLibraryError(f"cuda={mode!r} is none", expected="auto, host or nvcc")
    kernels = [s for s in sources if s.suffix == ".cu"]
    if not kernels:
        return [Unit(s) for s in sources], []
    nvcc = find_nvcc() if mode != "host" else None
    if mode == "nvcc" and nvcc is None:
        raise CustomLibraryError(
            "there is no nvcc on this machine",
            where=str(kernels[0]),
            fix=["install NVIDIA's CUDA toolkit", _host_hint(kernels[0])],
        )
    lacking = [s for s in kernels if host_file(s) is None]
    if nvcc and (mode == "nvcc" or gpu_present() or lacking):
        found = [Notice("info", f"compiled with {nvcc}", where=str(s)) for s in kernels]
        if not gpu_present():
            text = "this machine has no GPU to run it"
            found.append(Notice("warning", text, where=str(kernels[0])))
        return [Unit(s, device=True, nvcc=nvcc) for s in sources], found
    if lacking:
        raise CustomLibraryError(
            "CUDA code cannot be compiled for the CPU",
            where=str(lacking[0]),
            fix=[
                _host_hint(lacking[0]),
                "or leave the file out: parsers for host memory do not need it",
            ],
        )
    units, notices, given = [], [], {s.absolute() for s in sources}
    for source in sources:
        beside = host_file(source) if source.suffix == ".cu" else None
        if beside is None:
            units.append(Unit(source))
            continue
        notices.append(Notice("info", f"{beside.name} is compiled instead", where=str(source)))
        if beside.absolute() not in given:
            units.append(Unit(beside))
    return units, notices


def _host_hint(source: Path) -> str:
    return (
        f"write its functions for the CPU in {source.stem}_host.cpp beside it: "
        "that file is compiled instead"
    )
