"""Architectures of the code for GPUs in a file, by made headers of such code."""

from __future__ import annotations

import struct

import pytest

from headrace.binary.fat_binary import MAGIC, GpuCode, gpu_code_of


def piece(kind: int, architecture: int, size: int = 24, header: int = 64) -> bytes:
    head = struct.pack("<HHIQIIHHI", kind, 0x101, header, size, 0, 0, 6, 4, architecture)
    return head.ljust(header, b"\0") + bytes(size)


def fat(*pieces: bytes) -> bytes:
    content = b"".join(pieces)
    return MAGIC + struct.pack("<Q", len(content)) + content


def test_pieces_of_all_parts_are_read() -> None:
    data = b"\x7fELF" + fat(piece(2, 52), piece(1, 52)) + b"between" + fat(piece(2, 86))
    code = gpu_code_of(data)
    assert code == GpuCode((52, 86), (52,))
    assert str(code) == "sm_52, sm_86, PTX of compute_52"


def test_no_code_is_none() -> None:
    assert gpu_code_of(b"nothing here") is None


@pytest.mark.parametrize(
    "data",
    [MAGIC + b"\xff" * 100, fat(piece(2, 52))[:30], fat(piece(2, 0)), fat(piece(2, 52, header=0))],
)
def test_damaged_headers_end_the_reading(data: bytes) -> None:
    code = gpu_code_of(data.ljust(64, b"\0"))
    assert code == GpuCode((), ())
    assert str(code) == "of no known form"
