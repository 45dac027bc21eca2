"""How much of a broken-off video can be played: whole fragments (MP4) or clusters (Matroska)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

_CONTAINERS = {b"moof": {b"traf"}, b"traf": {b"trun"}}  # the way to the counts of samples

_SEGMENT, _CLUSTER, _BLOCK_GROUP, _SIMPLE_BLOCK = 0x18538067, 0x1F43B675, 0xA0, 0xA3
_UNKNOWN = {(1 << 7 * n) - 1 for n in range(1, 9)}  # sizes of elements that are still written


def cut_to_whole(path: Path, format: str, *, if_any: bool = False) -> int:
    """Cut a broken-off video behind the last part that plays.

    Args:
        path: the file.
        format: `mp4`, `mov` or `matroska`.
        if_any: True leaves a file as it is of which nothing plays.

    Returns:
        The frames in it; 0 where nothing plays.

    Raises:
        OSError: as the system says.
    """
    with path.open("r+b") as file:
        end, frames = (whole_matroska if format == "matroska" else whole_mp4)(file)
        if frames or not if_any:
            file.truncate(end)
    return frames


def whole_mp4(file: BinaryIO) -> tuple[int, int]:
    """Find the end of the last whole fragment of a fragmented MP4 or MOV.

    Returns:
        Bytes up to there, and the frames in them; (0, 0) without a whole fragment.
        Source: ISO/IEC 14496-12, 4.2 and 8.8.
    """
    end = frames = waiting = 0
    for kind, start, stop in _boxes(file, 0, _length(file)):
        if kind == b"moof":
            waiting = _samples(file, kind, start, stop)
        elif kind == b"mdat" and waiting:
            end, frames, waiting = stop, frames + waiting, 0
    return end, frames


def whole_matroska(file: BinaryIO) -> tuple[int, int]:
    """Find the end of the last whole cluster of a Matroska file.

    Returns:
        Bytes up to there, and the frames in them; (0, 0) without a whole cluster.
        Source: RFC 8794 (EBML), RFC 9559 (Matroska).
    """
    end = frames = 0
    for name, start, stop in _elements(file, 0, _length(file)):
        if name != _SEGMENT:
            continue
        for inner, first, last in _elements(file, start, stop):
            if inner == _CLUSTER:
                kinds = [kind for kind, _, _ in _elements(file, first, last)]
                frames += sum(kind in (_BLOCK_GROUP, _SIMPLE_BLOCK) for kind in kinds)
                end = last
    return end, frames


def _length(file: BinaryIO) -> int:
    return file.seek(0, os.SEEK_END)


def _boxes(file: BinaryIO, at: int, end: int) -> Iterator[tuple[bytes, int, int]]:
    """Whole boxes between two places: type, start and end of the content."""
    while at + 8 <= end:
        file.seek(at)
        head = file.read(16)
        size, start = int.from_bytes(head[:4]), at + 8
        if size == 1:
            size, start = int.from_bytes(head[8:16]), at + 16
        if size < start - at or at + size > end:
            return
        yield head[4:8], start, at + size
        at += size


def _samples(file: BinaryIO, kind: bytes, start: int, stop: int) -> int:
    """Samples that a `moof` lists: the counts of its `trun` boxes."""
    if kind == b"trun":
        file.seek(start + 4)  # behind version and flags
        return int.from_bytes(file.read(4))
    kinds = _CONTAINERS.get(kind, set())
    inner = [box for box in _boxes(file, start, stop) if box[0] in kinds]
    return sum(_samples(file, *box) for box in inner)


def _elements(file: BinaryIO, at: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Whole EBML elements between two places: id, start and end of the content."""
    while at < end:
        file.seek(at)
        head = file.read(12)
        name_bytes = _vint_length(head)
        size_bytes = _vint_length(head[name_bytes:]) if name_bytes else 0
        if not size_bytes or len(head) < name_bytes + size_bytes:
            return
        name = int.from_bytes(head[:name_bytes])
        size = int.from_bytes(head[name_bytes : name_bytes + size_bytes])
        size &= (1 << 7 * size_bytes) - 1
        start = at + name_bytes + size_bytes
        stop = end if size in _UNKNOWN and name == _SEGMENT else start + size
        if stop > end:
            return
        yield name, start, stop
        at = stop


def _vint_length(data: bytes) -> int:
    """Bytes of the variable-length number that `data` begins with; 0 if it is none."""
    return 9 - data[0].bit_length() if data and data[0] else 0
