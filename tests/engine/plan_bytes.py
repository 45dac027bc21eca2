"""Taking plan files apart and putting changed ones together with hashes that fit."""

from __future__ import annotations

import hashlib
import json
import struct
from typing import Any

PREFIX = struct.Struct("<8sIIQ32s")


def split(data: bytes) -> tuple[bytes, bytes, bytes]:
    """Prefix, header, blobs."""
    size = PREFIX.unpack_from(data)[2]
    return data[: PREFIX.size], data[PREFIX.size : PREFIX.size + size], data[PREFIX.size + size :]


def build_header(data: bytes) -> dict[str, Any]:
    """The header as JSON says it."""
    header: dict[str, Any] = json.loads(split(data)[1])
    return header


def reseal(data: bytes, header: dict[str, Any] | bytes, blobs: bytes | None = None) -> bytes:
    """`data` with another header (and blobs), sizes and hash of the header made to fit."""
    raw = header if isinstance(header, bytes) else json.dumps(header).encode()
    magic, version, *_ = PREFIX.unpack_from(data)
    rest = split(data)[2] if blobs is None else blobs
    size = PREFIX.size + len(raw) + len(rest)
    return PREFIX.pack(magic, version, len(raw), size, hashlib.sha256(raw).digest()) + raw + rest
