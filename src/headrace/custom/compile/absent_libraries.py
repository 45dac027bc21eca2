"""Libraries of NVIDIA's toolkit that kernels are linked against and this machine lacks."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

from headrace._core.findings import Finding

_LIBRARIES = (
    (r"cublasLt[A-Z]", "libcublasLt.so.{cuda}"),
    (r"cublas[A-Z]", "libcublas.so.{cuda}"),
    (r"cudnn[A-Z]", "libcudnn.so.8"),
    (r"curand[A-Z]", "libcurand.so.10"),
    (r"nvml[A-Z]", "libnvidia-ml.so.1"),
    (r"cu[A-Z]", "libcuda.so.1"),
)
"""Names of functions, and the library that a toolkit of CUDA's release `cuda` has them in."""


def link_stubs(undefined: Sequence[str], home: Path, compiler: str, folder: Path) -> list[Path]:
    """Make libraries that a linker finds functions of NVIDIA's in; their code is never run.

    What is linked asks for the real ones by their names where it is loaded.

    Args:
        undefined: names that the linker misses; those of no library of NVIDIA's are left.
        home: of the toolkit.
        compiler: which calls assembler and linker.
        folder: where they are made.
    """
    found = re.search(
        r"define\s+CUDART_VERSION\s+(\d+)", Path(home, "include/cuda_runtime_api.h").read_text()
    )
    cuda = int(found[1]) // 1000 if found else 12
    made = []
    for pattern, name in _LIBRARIES:
        # of C alone: a source's own `cublasGemmWrap<float>(int)` is not NVIDIA's
        functions = [f for f in undefined if re.fullmatch(rf"{pattern}\w*", f)]
        undefined = [f for f in undefined if f not in functions]
        if not functions:
            continue
        path = folder / name.format(cuda=cuda)
        text = "".join(f".globl {f}\n.type {f}, %function\n{f}:\n" for f in functions)
        source = folder / f"{path.name}.s"
        source.write_text(f'.text\n{text}.section .note.GNU-stack,"",%progbits\n')
        soname = f"-Wl,-soname,{path.name}"
        command = [compiler, "-shared", "-nostdlib", soname, str(source), "-o", str(path)]
        subprocess.run(command, check=True, capture_output=True)
        made.append(path)
    return made


def notice_of(stubs: Sequence[Path], library: Path) -> Finding:
    """The notice that a library asks for others that are not here."""
    names = [path.name for path in stubs]
    text = f"asks for {', '.join(names)} of NVIDIA's, which this machine lacks"
    return Finding("toolkit-absent", "warning", text, str(library), {"libraries": names})
