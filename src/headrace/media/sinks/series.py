"""Names of the files that an output writes one after the other, as `rec.mp4`, `rec.0001.mp4`."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

PART, UNFINISHED = ".part", ".unfinished"
_ENDS = f"(?:{re.escape(PART)}|{re.escape(UNFINISHED)}(?:\\.\\d+)?)?"


def numbered(path: Path, number: int) -> Path:
    """The name of a file of a series; number 0 is the output's own name."""
    return path if not number else path.with_name(f"{path.stem}.{number:04d}{path.suffix}")


def files_of(path: Path) -> list[tuple[int, Path]]:
    """List the files of a series with their numbers, oldest first: parts and unfinished ones too.

    A folder without anything in it is not there yet.
    """
    stem = re.sub(r"%0?\d*d", r"\\d+", re.escape(path.stem))  # of numbered images
    pattern = re.compile(rf"{stem}(?:\.(\d{{4,}}))?{re.escape(path.suffix)}{_ENDS}")
    try:
        names = os.listdir(path.parent)
    except OSError:  # there is no such folder yet
        return []
    matches = ((pattern.fullmatch(name), name) for name in names)
    files = sorted((int(m[1] or 0), path.with_name(name)) for m, name in matches if m is not None)
    return [(number, file) for number, file in files if not _is_empty_folder(file)]


def _is_empty_folder(path: Path) -> bool:
    try:
        return path.is_dir() and not any(path.iterdir())
    except OSError:
        return False


def next_number(path: Path) -> int:
    """The number behind all that there are; 0 for the first."""
    return max((number for number, _ in files_of(path)), default=-1) + 1


def newest_number(path: Path) -> int:
    """The largest number that there is; 0 for none."""
    return max((number for number, _ in files_of(path)), default=0)


def unfinished(path: Path) -> Path:
    """Choose a name in `.unfinished` that no file has."""
    plain = path.with_name(f"{path.name.removesuffix(PART)}{UNFINISHED}")
    target, again = plain, 1
    while target.exists():
        again += 1
        target = plain.with_name(f"{plain.name}.{again}")
    return target


def size_of(path: Path) -> int:
    """Count the bytes of a file, or of the files right in a folder; a missing one has 0."""
    try:
        if path.is_dir():
            return sum(_sizes(path))
        return path.stat().st_size
    except OSError:
        return 0


def _sizes(folder: Path) -> Iterator[int]:
    with os.scandir(folder) as entries:
        for entry in entries:
            yield entry.stat(follow_symlinks=False).st_size
