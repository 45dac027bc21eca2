"""Fonts for texts: Pillow's own for Latin letters, else an installed one that has the glyphs."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import cache, lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

SUFFIXES = (".ttf", ".otf", ".ttc")
# Tried in this order for glyphs that Pillow's own font lacks; found by name on most systems.
_WIDE = (
    "NotoSansCJK-Regular.ttc",
    "NotoSans-Regular.ttf",
    "wqy-zenhei.ttc",
    "DejaVuSans.ttf",
    "Arial Unicode.ttf",
)
_SERIF = ("DejaVuSerif.ttf", "LiberationSerif-Regular.ttf", "Times New Roman.ttf")
_LATIN = 0x180  # letters below it are in the built-in font
_NO_GLYPH = "\U0010fffe"  # no character: every font draws its box for it
_MOST_FILES = 2000
_FOLDERS = {
    "linux": ("/usr/share/fonts", "/usr/local/share/fonts", "~/.fonts", "~/.local/share/fonts"),
    "darwin": ("/System/Library/Fonts", "/Library/Fonts", "~/Library/Fonts"),
    "win32": ("C:/Windows/Fonts",),
}


def font_for(text: str, family: str, size_px: int) -> tuple[Any, str]:
    """Choose the font that draws a text.

    Args:
        text: of one line.
        family: font file, `Serif`, name of an installed family, or anything else for the built-in
            sans font.
        size_px: size in pixels.

    Returns:
        Pillow's font, and the characters that it has no glyph for: none but where no installed font
        has them all.
    """
    wide = "".join(sorted({c for c in text if ord(c) >= _LATIN and not c.isspace()}))
    if not wide:
        return _plain(family, size_px), ""
    return _covering(wide, family, size_px)


def draws_apart(font: Any) -> bool:
    """Whether a font draws each letter as if it stood alone: no kerning, whole pixels.

    That holds for Pillow's own font, which comes from memory and is laid out plainly.
    """
    return not isinstance(font.path, str) and font.layout_engine == 0


@lru_cache(maxsize=64)
def _plain(family: str, size_px: int) -> Any:
    from PIL import ImageFont

    names = [family] if family.endswith(SUFFIXES) else []
    if family.casefold() == "serif":
        names += _SERIF
    fonts = (_opened(name, size_px) for name in names)
    return next((font for font in fonts if font), None) or ImageFont.load_default(size_px)


@lru_cache(maxsize=256)
def _covering(wide: str, family: str, size_px: int) -> tuple[Any, str]:
    """The first font with all these characters, or else the one that lacks the fewest."""
    best, lacking = _plain(family, size_px), wide
    for name in _candidates(family):
        font = _opened(name, size_px)
        if font is None:
            continue
        missing = "".join(c for c in wide if not _has(font, c))
        if len(missing) < len(lacking):
            best, lacking = font, missing
        if not missing:
            break
    return best, lacking


def _candidates(family: str) -> Iterator[str]:
    if family.endswith(SUFFIXES):
        yield family
    elif family and family.casefold() != "serif":
        yield from (path for path, names in _installed().items() if family.casefold() in names)
    yield from _WIDE
    yield from _installed()


@lru_cache(maxsize=64)
def _opened(name: str, size_px: int) -> Any:
    from PIL import ImageFont

    try:
        return ImageFont.truetype(name, size_px)
    except OSError:
        return None


def _has(font: Any, character: str) -> bool:
    """Whether a font draws a character, and not its box for those that it lacks."""
    drawn, box = font.getmask(character), font.getmask(_NO_GLYPH)
    return drawn.size != box.size or bytes(drawn) != bytes(box)


@cache
def _installed() -> dict[str, tuple[str, ...]]:
    """Files of installed fonts, and the names of the family that each is of."""
    folders = (Path(f).expanduser() for f in _FOLDERS.get(sys.platform, _FOLDERS["linux"]))
    files = (f for folder in folders for f in sorted(folder.rglob("*")) if f.suffix in SUFFIXES)
    named: dict[str, tuple[str, ...]] = {}
    for path in islice(files, _MOST_FILES):
        font = _opened(str(path), 12)
        if font is not None:
            family, style = (part or "" for part in font.getname())
            named[str(path)] = (family.casefold(), f"{family} {style}".casefold())
    return named
