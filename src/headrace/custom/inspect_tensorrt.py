"""Inspection of libraries that were compiled against TensorRT's own headers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from headrace._core import _native
from headrace._core.gpu.cuda import why_no_gpu
from headrace.binary.elf import ElfFile, is_foreign
from headrace.binary.entry_points import EntryPoint
from headrace.binary.fat_binary import GpuCode, gpu_code_of
from headrace.binary.tensorrt_line import tensorrt_use

_CUDA = re.compile(r"lib(cudart|cublas|cublasLt|cudnn|cufft|curand)\.so\.\d+")
_CREATORS = ("engine creator", "old engine creator", "model parser")


@dataclass(frozen=True)
class TensorrtReport:
    """The demands of a library on TensorRT and CUDA.

    Attributes:
        line: 7 (5.1 to 7.2), 8 (8.0 to 9.3), 10, 11; None if its file does not tell.
        releases: the same as text, exact where a creator told it when it was loaded.
        soname: the libnvinfer that it is linked against.
        bases: plugin and creator classes that it derives from.
        factories: functions of the old libnvinfer_plugin that it calls.
        mixed: what contradicts the line.
        gpu: architectures of its code for GPUs; None without such code.
        needs: libraries of CUDA that it is linked against.
        runs: what of it runs on this machine, and what does not and why.
    """

    line: int | None
    releases: str
    soname: str | None
    bases: tuple[str, ...]
    factories: tuple[str, ...]
    mixed: str | None
    gpu: GpuCode | None
    needs: tuple[str, ...]
    runs: tuple[str, ...]


def tensorrt_report(
    elf: ElfFile, points: Sequence[EntryPoint], release: int, *, here: bool
) -> TensorrtReport | None:
    """Make the report; None for a library that asks nothing of TensorRT.

    Args:
        elf: its file.
        points: its entry points.
        release: what a creator told, packed as getTensorRTVersion has it; 0 without.
        here: something on this machine runs it.
    """
    use = tensorrt_use(elf)
    if use is None:
        return None
    code = gpu_code_of(elf.data)
    known = use.line is not None or release > 0
    releases = _native.foreign_release_text(use.line or 0, release) if known else use.releases
    return TensorrtReport(
        line=use.line,
        releases=releases,
        soname=use.soname,
        bases=use.bases,
        factories=use.factories,
        mixed=use.mixed,
        gpu=code,
        needs=tuple(name for name in elf.needed if _CUDA.match(name)),
        runs=tuple(_runs(code, points, use.line, emulated=is_foreign(elf))) if here else (),
    )


def _runs(
    code: GpuCode | None, points: Sequence[EntryPoint], line: int | None, *, emulated: bool
) -> list[str]:
    runs = []
    if code is None:
        runs.append("plugins compute on this machine: they have no code for a GPU")
    elif emulated:
        runs.append(
            f"plugins are built and saved, but compute on a GPU ({code}), and an emulator has none"
        )
    elif reason := why_no_gpu():
        runs.append(f"plugins are built and saved, but compute on a GPU ({code}): {reason}")
    else:
        runs.append(f"plugins compute on the GPU ({code})")
    makers = [p.name for p in points if p.kind in _CREATORS]
    if makers:
        names = ", ".join(makers)
        if line is None:
            runs.append(f"{names}: not called, the file does not tell its release")
        elif code is not None and (emulated or why_no_gpu()):
            runs.append(f"{names}: makes the network where no model file is named")
        else:
            runs.append(f"{names}: makes the network")
    parsers = [p for p in points if p.kind not in (*_CREATORS, "plugin factory") and not p.device]
    if parsers:
        runs.append(f"{len(parsers)} functions for outputs run on this machine")
    return runs
