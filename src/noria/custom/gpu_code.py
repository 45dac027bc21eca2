"""Whether the plugins of a library work in a GPU's memory: told by what its file has.

The plugins of a library without anything of CUDA compute on the processor, as do those that were
compiled with Noria's own headers in the place of CUDA's: their calls of CUDA work on host memory,
and nothing of CUDA is linked.
"""

from __future__ import annotations

import mmap
import re
from pathlib import Path

from noria.cuda import why_no_gpu
from noria.custom.elf import ElfError, ElfFile
from noria.custom.resolve import find_elsewhere, find_library
from noria.notices import Notice

__all__ = ["ON_DEVICE", "gpu_evidence", "look_at", "note_pointers", "works_on_device"]

FAT_BINARY = bytes.fromhex("50ed55ba 0100 1000")
"""How code for a GPU begins: magic number, version 1, a header of 16 bytes. Source: CUDA's
fatbinary_section.h."""
_CALL = re.compile(r"(__cuda|cuda|cublas|cudnn|cu)[A-Z]")
_CUDA = re.compile(r"lib(cuda|cudart|cublas|cublasLt|cudnn)\.so")
_NVIDIA = re.compile(r"lib(cu|nv|npp|nccl)")
_SYSTEM = ("/lib", "/lib64", "/usr/lib", "/usr/lib64")
_DEPTH = 4
ON_DEVICE = "its plugins are given the GPU's memory"
_on_device: dict[str, bool] = {}  # library -> whether its plugins work there


def gpu_evidence(path: Path) -> str | None:
    """Why plugins of a library work in a GPU's memory, in words; None if nothing says so.

    It is looked for in the file, and in those that it is linked against, but for NVIDIA's own and
    the system's. Files that cannot be read say nothing.
    """
    return _evidence(path, _DEPTH, set())


def _evidence(path: Path, depth: int, seen: set[Path]) -> str | None:
    seen.add(path)
    try:
        with (
            path.open("rb") as file,
            mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data,
        ):
            return _evidence_in(data, path, depth, seen)
    except (ElfError, OSError, ValueError):
        return None


def _evidence_in(data: mmap.mmap, path: Path, depth: int, seen: set[Path]) -> str | None:
    # the reader takes any buffer; a mapped one keeps large files out of memory
    elf = ElfFile.parse(data, path)  # type: ignore[arg-type]
    if data.find(FAT_BINARY) >= 0:
        return f"{path.name} has code for a GPU"
    calls = [s.name for s in elf.symbols if not s.defined and not s.weak and _CALL.match(s.name)]
    if calls and any(_CUDA.match(n) and _found(n, elf) for n in elf.needed):
        return f"{path.name} calls {calls[0]}"
    for name in elf.needed if depth else ():
        found = None if _NVIDIA.match(name) else find_library(name, elf)
        if found is None or found in seen or any(map(found.is_relative_to, _SYSTEM)):
            continue
        if evidence := _evidence(found, depth - 1, seen):
            return evidence
    return None


def _found(name: str, elf: ElfFile) -> bool:
    return find_library(name, elf) is not None or find_elsewhere(name) is not None


def look_at(library: str) -> str | None:
    """Find out about a library that is being loaded, and remember it: its file may be replaced, or
    out of reach, when its plugins run.

    Returns:
        what `gpu_evidence` says.
    """
    evidence = gpu_evidence(Path(library))
    _on_device[library] = evidence is not None and why_no_gpu() is None
    return evidence


def works_on_device(library: str) -> bool:
    """Whether the plugins of a loaded library are given addresses of the GPU's memory."""
    if library not in _on_device:
        look_at(library)
    return _on_device[library]


def note_pointers(path: Path, decisions: list[Notice]) -> None:
    """Say what memory the plugins of a library are given, where that is not the host's as ever."""
    evidence = look_at(str(path))
    if evidence is None:
        return
    if works_on_device(str(path)):
        text = f"{evidence}: {ON_DEVICE}"
        decisions.append(Notice("info", text, str(path)))
        return
    text = f"{evidence}, and {why_no_gpu()}: its plugins are given the host's memory"
    decisions.append(Notice("warning", text, str(path)))
