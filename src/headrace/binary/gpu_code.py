"""Whether the plugins of a library work in a GPU's memory, by the content of its file.

The plugins of a library without anything of CUDA compute on the processor, as do those that were
compiled with Headrace's own headers in the place of CUDA's: their calls of CUDA work on host
memory, and nothing of CUDA is linked.
"""

from __future__ import annotations

import mmap
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from headrace._core.findings import Finding
from headrace._core.gpu.cuda import why_no_gpu
from headrace.binary.elf import ElfError, ElfFile
from headrace.binary.entry_points import ON_HOST
from headrace.binary.fat_binary import MAGIC, SEARCHED
from headrace.binary.library_search import find_elsewhere, find_library, loaded_libraries
from headrace.binary.regular_files import open_regular

ON_DEVICE = "its plugins are given the GPU's memory"
_CALL = re.compile(r"(__cuda|cuda|cublas|cudnn|cu)[A-Z]")
_CUDA = re.compile(r"lib(cuda|cudart|cublas|cublasLt|cudnn)\.so")
_NVIDIA = re.compile(
    r"lib(cuda|cudart|cudadevrt|cublas|cublasLt|cudnn\w*|cufft\w*|curand|cusolver\w*|cusparse\w*|"
    r"cutensor\w*|cupti|nccl|npp\w*|nvblas|nvrtc[\w-]*|nvjpeg|nvJitLink|nvToolsExt|"
    r"nvinfer|nvinfer_plugin|nvonnxparser|nvparsers|nvcaffe_parser|nvbufsurf\w*|nvds_\w+)\.so"
)
_evidence: dict[int, str | None] = {}  # where a library begins in memory -> what it says


def gpu_evidence(path: Path) -> str | None:
    """Return the evidence that plugins of a library work in a GPU's memory; None without any.

    The library has code for a GPU, or calls CUDA; or it calls another library that has such code,
    but for NVIDIA's own. One that was compiled for the host (`headrace compile --cuda host`) does
    not. Files that cannot be read say nothing.
    """
    try:
        with _mapped(path) as data:
            if _has_code(data):
                return f"{path.name} has code for a GPU"
            elf = ElfFile.parse(data, path)
            if ON_HOST in elf.exported():
                return None
            asked = {s.name for s in elf.symbols if not s.defined and not s.weak}
            calls = sorted(n for n in asked if _CALL.match(n))
            if calls and any(_CUDA.match(n) and _is_there(n, elf) for n in elf.needed):
                return f"{path.name} calls {calls[0]}"
            loaded = loaded_libraries()
            beside = [find_library(n, elf, loaded) for n in elf.needed if not _NVIDIA.match(n)]
    except (ElfError, OSError, ValueError):
        return None
    others = (f"{p.name} has code for a GPU" for p in beside if p and _answers(p, asked))
    return next(others, None)


@contextmanager
def _mapped(path: Path) -> Iterator[Any]:
    """The bytes of a file, which take no memory."""
    with open_regular(path) as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        yield data


def _has_code(data: mmap.mmap) -> bool:
    return data.find(MAGIC, 0, SEARCHED) >= 0


def _is_there(name: str, elf: ElfFile) -> bool:
    return find_library(name, elf) is not None or find_elsewhere(name) is not None


def _answers(path: Path, asked: set[str]) -> bool:
    """Whether a library has code for a GPU, and functions that are asked for."""
    try:
        with _mapped(path) as data:
            return _has_code(data) and not asked.isdisjoint(ElfFile.parse(data, path).exported())
    except (ElfError, OSError, ValueError):
        return False


def look_at(image: int, library: str) -> str | None:
    """Look for GPU code in a library that was loaded just now, and remember the result.

    Its file may be replaced, or out of reach, when its plugins run.
    """
    if image not in _evidence:
        _evidence[image] = gpu_evidence(Path(library))
    return _evidence[image]


def forget(image: int) -> None:
    """A library is being unloaded."""
    _evidence.pop(image, None)


def works_on_device(image: int, library: str) -> bool:
    """Whether the plugins of a loaded library are given addresses of the GPU's memory."""
    return look_at(image, library) is not None and why_no_gpu() is None


def note_pointers(
    image: int, path: Path, decisions: list[Finding], *, compiled: bool = False
) -> None:
    """Add a notice about plugins that are given, or should be given, the GPU's memory.

    `compiled`: against TensorRT's own headers: without a GPU they do not compute.
    """
    evidence = look_at(image, str(path))
    if evidence is None:
        return
    reason = why_no_gpu()
    if reason is None:
        decisions.append(Finding("function-on-gpu", "info", f"{evidence}: {ON_DEVICE}", str(path)))
        return
    instead = "are built, but compute nothing" if compiled else "are given the host's memory"
    text = f"{evidence}, and {reason}: its plugins {instead}"
    decisions.append(Finding("function-for-gpu", "warning", text, str(path)))
