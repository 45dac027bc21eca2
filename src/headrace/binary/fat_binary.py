"""Code for GPUs in a library: for which architectures, as machine code or as PTX.

nvcc puts it behind headers that tell so: one of 16 bytes for all that belongs together, and one for
each piece. Read with the offsets that the CUDA driver's own loaders are seen to use; a piece that
does not fit them is left out.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

MAGIC = bytes.fromhex("50ed55ba 0100 1000")
"""How code for a GPU begins: magic number, version 1, a header of 16 bytes. Source: CUDA's
fatbinary_section.h."""
SEARCHED = 1 << 30
"""Bytes of a file in which it is looked for."""
_PTX, _MACHINE = 1, 2
_PIECE = struct.Struct("<HHIQIIHHI")
"""kind, -, bytes of its header, of what follows, packed, -, minor, major, architecture"""
_MOST_PIECES = 10_000


@dataclass(frozen=True)
class GpuCode:
    """The GPUs that a library's code is for.

    Attributes:
        machine: architectures of machine code, `sm_52` as 52, sorted.
        ptx: architectures whose PTX a driver can compile for any newer GPU, sorted.
    """

    machine: tuple[int, ...]
    ptx: tuple[int, ...]

    def __str__(self) -> str:
        names = [f"sm_{n}" for n in self.machine] + [f"PTX of compute_{n}" for n in self.ptx]
        return ", ".join(names) or "of no known form"


def gpu_code_of(data: Any) -> GpuCode | None:
    """Return the code for GPUs in a file's bytes; None without any."""
    at = data.find(MAGIC, 0, SEARCHED)
    if at < 0:
        return None
    machine: set[int] = set()
    ptx: set[int] = set()
    for _ in range(_MOST_PIECES):
        if at < 0:
            break
        end = min(at + 16 + struct.unpack_from("<Q", data, at + 8)[0], len(data))
        piece = at + 16
        while piece + _PIECE.size <= end:
            kind, _, header, size, _, _, _, _, architecture = _PIECE.unpack_from(data, piece)
            if header < _PIECE.size or not 0 < architecture < 1000:
                break
            if kind in (_PTX, _MACHINE):
                (ptx if kind == _PTX else machine).add(architecture)
            piece += header + size
        at = data.find(MAGIC, at + 16, SEARCHED)
    return GpuCode(tuple(sorted(machine)), tuple(sorted(ptx)))
