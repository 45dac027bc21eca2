"""Watching a run of a plugin: inputs that stay, outputs that are written.

The first run of each shape is watched, and all of them after `watch_every_run`: in workers, in
`headrace trace-plugins` and `headrace check-plugin`. Source: tensorrt-plugins spec 2 (enqueue).
"""

from __future__ import annotations

from collections.abc import Sequence

from headrace._core._native import address_of, checksum, count_elements, fill_elements
from headrace._core.types import Array
from headrace.plugins.types import DataType

PATTERNS: dict[DataType, int] = {
    DataType.FLOAT: 0x7FA5A5A5,
    DataType.HALF: 0x7DA5,
    DataType.BF16: 0x7FA5,
}
"""NaNs that no computation makes, by type of float."""
_REST = 0xA5A5A5A5A5A5A5A5
_AMBIGUOUS_BYTES = 1
"""Elements of so few bytes may have the pattern as a value."""
LEAST_ELEMENTS = 16
"""As many elements of one byte do not have the pattern by chance."""


class _Every:
    run = False


def watch_every_run() -> None:
    """Watch every run of every plugin in this process from now on."""
    _Every.run = True


def every_run() -> bool:
    """Whether every run is watched."""
    return _Every.run


def pattern_of(kind: DataType, itemsize: int) -> int:
    """The bits that memory of an output is filled with, for elements of `itemsize` bytes."""
    return PATTERNS.get(kind, _REST & ((1 << (8 * itemsize)) - 1))


def fill(array: Array, kind: DataType) -> None:
    """Fill dense memory of an output."""
    if array.size:
        pattern = pattern_of(kind, array.itemsize)
        fill_elements(address_of(array), array.size, array.itemsize, pattern)


def unwritten(array: Array, kind: DataType) -> int:
    """How many elements of a dense array are as `fill` left them.

    Those of one byte count only if all are.
    """
    if not array.size or not array.flags.c_contiguous:
        return 0
    pattern = pattern_of(kind, array.itemsize)
    count = count_elements(address_of(array), array.size, array.itemsize, pattern)
    if array.itemsize == _AMBIGUOUS_BYTES and (count < array.size or count < LEAST_ELEMENTS):
        return 0
    return count


def checksums(tensors: Sequence[tuple[int, int]]) -> list[int]:
    """Checksums of memory, each by its address and bytes."""
    return [checksum(address, size) if size else 0 for address, size in tensors]
