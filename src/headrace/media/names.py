"""Names of media files: suffixes, patterns, near names, and the kind of a file."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterator
from pathlib import Path

from headrace._core.files import os_reason
from headrace._core.near import near_names
from headrace.binary.regular_files import open_regular

IMAGE_SUFFIXES = frozenset(
    f".{name}"
    for name in (
        *("jpg", "jpeg", "jpe", "png", "bmp", "dib", "webp"),
        *("tif", "tiff", "ppm", "pgm", "pbm", "pnm"),
    )
)
VIDEO_SUFFIXES = frozenset(
    f".{name}"
    for name in (
        *("mp4", "m4v", "mov", "mkv", "webm", "avi", "ts", "mts", "m2ts", "mpg", "mpeg"),
        *("flv", "wmv", "3gp", "mxf", "ogv", "vob", "h264", "264", "h265", "hevc", "ivf"),
    )
)
_DEEP = re.compile(r"(?:^|(?<=/))\*\*(?:/+|$)")


def is_media(name: str) -> bool:
    """Return whether the name is that of a video or image: True if its suffix is known."""
    suffix = os.path.splitext(name)[1].lower()
    return suffix in VIDEO_SUFFIXES or suffix in IMAGE_SUFFIXES


def natural_key(path: Path) -> tuple[tuple[int, int | str], ...]:
    """Sorts `frame_2` before `frame_10`."""
    parts = re.split(r"(\d+)", path.name.casefold())
    return tuple((0, int(p)) if p.isdecimal() else (1, p) for p in parts if p)


def matching_files(pattern: str) -> Iterator[str]:
    """The files that a shell pattern matches, without hidden ones; `**` is any depth of folders.

    `**` does not enter linked folders: their links may lead in circles without an end.
    """
    deep = _DEEP.search(pattern)
    if deep is None:
        yield from filter(os.path.isfile, glob.iglob(pattern))
        return
    rest = pattern[deep.end() :] or "*"
    for top in glob.glob(pattern[: deep.start()]) if deep.start() else [""]:
        for folder, folders, _ in os.walk(top or "."):
            folders[:] = [name for name in folders if not name.startswith(".")]
            here = folder if top else folder[2:]
            yield from matching_files(os.path.join(glob.escape(here), rest))


def nearest_file(path: Path) -> str | None:
    """The file or folder beside a missing `path` with the most similar name."""
    try:
        names = [entry.name for entry in path.parent.iterdir()]
    except OSError:
        return None
    close = near_names(path.name, names, 1)
    return str(path.parent / close[0]) if close else None


_MAGIC: tuple[tuple[bytes, str], ...] = (
    (b"\x89PNG", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"BM", "a BMP image"),
    (b"II*\0", "a TIFF image"),
    (b"MM\0*", "a TIFF image"),
    (b"8BPS", "a Photoshop document"),
    (b"\0\0\0\x0cjP  ", "a JPEG 2000 image"),
    (b"%!", "PostScript"),
    (b"\xc5\xd0\xd3\xc6", "PostScript"),
    (b"%PDF", "a PDF document"),
    (b"PK\x03\x04", "a ZIP archive"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"7z\xbc\xaf", "a 7-Zip archive"),
    (b"\x7fELF", "a program or shared library"),
    (b"\x1aE\xdf\xa3", "a Matroska or WebM file whose content is damaged"),
    (b"\x93NUMPY", "a NumPy array"),
    (b"#EXTM3U", "an HLS playlist"),
    (b"ffconcat version", "a list of files for FFmpeg"),
)
_BRANDS = {b"avif": "an AVIF image", b"avis": "an AVIF image", b"heic": "a HEIF image"}
_TEXTS = (
    ("version https://git-lfs", "a pointer of Git LFS: git lfs pull fetches the file"),
    ("<!doctype html", "an HTML page"),
    ("<html", "an HTML page"),
    ("<svg", "an SVG image"),
    ("<?xml", "XML"),
    ("v=0", "a description of a session (SDP)"),
)


def sniff(path: Path) -> str:
    """Kind of the file at `path`, in words, for an error about it.

    Nothing of its content: whoever may name a file need not be one who may read it.
    """
    if path.is_dir():
        return "a folder"
    try:
        size = path.stat().st_size
        with open_regular(path) as file:
            head = file.read(512)
    except OSError as error:
        return f"unreadable ({os_reason(error)})"
    except ValueError:
        return "a device, a pipe or a socket"
    if not head:
        return "empty (0 bytes)"
    if head[4:8] == b"ftyp":
        return _BRANDS.get(head[8:12]) or _mp4(path, size)
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "a WebP image"
    for magic, what in _MAGIC:
        if head.startswith(magic):
            return what
    try:
        text = head.decode()
    except UnicodeDecodeError as error:
        text = head[: error.start].decode() if error.start > len(head) - 4 else ""
    if text and all(c.isprintable() or c.isspace() for c in text):
        begin = text.lstrip("\ufeff \t\r\n").lower()
        kinds = (what for words, what in _TEXTS if begin.startswith(words))
        return next(kinds, "text")
    return f"{size} bytes of unknown content"


def _mp4(path: Path, size: int) -> str:
    """Walk the top-level boxes of an MP4 file for its index."""
    at = 0
    with path.open("rb") as file:
        while at + 8 <= size:
            file.seek(at)
            head = file.read(16)
            length, kind = int.from_bytes(head[:4], "big"), head[4:8]
            if length == 1:
                length = int.from_bytes(head[8:16], "big")
            if kind == b"moov":
                whole = at + length <= size
                return (
                    "an MP4 file that is damaged" if whole else "an MP4 file cut off in its index"
                )
            if length < 8:
                break
            at += length
    return "an MP4 file without its index (moov): the recording or copy was cut off"
