"""Bytes that a builder or an engine made."""

from __future__ import annotations

from noria.plugins.types import DataType


class IHostMemory(bytes):
    """Read-only bytes: `bytes(m)`, `len(m)`, slices, `file.write(m)` and any buffer consumer.

    Source: tensorrt-api spec 4.4.
    """

    @property
    def nbytes(self) -> int:
        """Length."""
        return len(self)

    @property
    def dtype(self) -> DataType:
        """Type of the elements: bytes."""
        return DataType.INT8

    def __enter__(self) -> IHostMemory:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def __repr__(self) -> str:
        return f"IHostMemory({len(self)} bytes)"

    def __str__(self) -> str:
        return repr(self)
