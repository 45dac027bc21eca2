"""Recognise engines that TensorRT built, and who built them."""

from __future__ import annotations

import struct
from pathlib import Path

from noria.network.model_bytes import HEAD_BYTES, is_tensorrt_engine

_TAGS = (b"ftrt", b"ptrt", b"vtrt")


def is_tensorrt_file(path: Path) -> bool:
    """Whether `path` is an engine of TensorRT, bare or behind the metadata some exporters add."""
    try:
        with open(path, "rb") as file:
            head = file.read(HEAD_BYTES)
            if head[:4] in _TAGS or is_tensorrt_engine(head, path.stat().st_size):
                return True
            start = _wrapped_at(head, path.stat().st_size)
            file.seek(start)
            return bool(start) and file.read(4) in _TAGS
    except OSError:
        return False


def _wrapped_at(head: bytes, size: int) -> int:
    """Where the engine begins behind a length and JSON; 0 if there is no such thing."""
    if len(head) < 5 or head[4:5] != b"{":
        return 0
    start = 4 + int(struct.unpack_from("<I", head)[0])
    return start if start < min(size, 1 << 20) else 0


def without_wrapper(data: bytes) -> bytes:
    """Strip the metadata in front of an engine, if there are any."""
    start = _wrapped_at(data[:HEAD_BYTES], len(data))
    return data[start:] if start and data[start : start + 4] in _TAGS else data


def built_by(data: bytes) -> str:
    """Name the TensorRT that built an engine, by its first bytes. Source: TensorRT facts 5."""
    if data[:4] == b"vtrt":
        return "TensorRT-RTX"
    if data[:4] == b"ftrt" and len(data) >= 28:
        return "TensorRT " + ".".join(map(str, data[24:28]))
    return "TensorRT 8.5 or older"
