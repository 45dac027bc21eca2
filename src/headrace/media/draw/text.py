"""Captions: short names of sources, and text boxes drawn once by Pillow and kept as pixels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from headrace._core import _native
from headrace._core.findings import Finding
from headrace.media.draw.fonts import draws_apart, font_for

Pixels = npt.NDArray[np.uint8]
Rgba = tuple[int, int, int, float]
_MOST_GLYPHS = 1000  # kept of one font at one size


@dataclass(frozen=True, slots=True, eq=False)
class TextBox:
    """A rendered text with its background; width and height are even.

    Attributes:
        cover: (h, w) how much of each pixel the text covers, 0..255.
        color: r, g, b in 0..255 and opacity in 0..1 of the text.
        background: likewise; None is no background.
        width, height: in pixels.
        missing: characters that no font at hand has.
    """

    cover: Pixels
    color: Rgba
    background: Rgba | None
    width: int
    height: int
    missing: str = ""


@lru_cache(maxsize=1024)  # some thousand bytes each, and tracked objects have new ones for ever
def render_text(
    text: str, family: str, size_px: int, color: Rgba, background: Rgba | None, padding: int
) -> TextBox:
    """Text on a box that fits it.

    Args:
        text: one line; control characters are drawn as blanks.
        family: as `font_for` takes it.
        size_px: size of the font in pixels.
        color: r, g, b in 0..255 and opacity in 0..1.
        background: likewise; None is no background.
        padding: free pixels left and right of the text.
    """
    if not text.isprintable():
        text = "".join(c if c.isprintable() else " " for c in text)
    font, missing = font_for(text, family, size_px)
    cover = None if missing or not draws_apart(font) else _composed(text, font, padding)
    if cover is None:
        cover = _drawn(text, font, padding)
    height, width = cover.shape
    return TextBox(cover, color, background, width, height, missing)


def _line(font: Any, padding: int) -> tuple[int, int]:
    """Height of a text's box, even, and of its baseline in it."""
    ascent, descent = font.getmetrics()
    height = ascent + descent + max(1, padding // 2)
    height = max(2, height + height % 2)
    return height, (height - ascent - descent) // 2 + ascent


def _drawn(text: str, font: Any, padding: int) -> Pixels:
    """Cover of a text, drawn as a whole: letters of most fonts are shaped by their neighbours."""
    from PIL import Image, ImageDraw

    width = round(font.getlength(text)) + 2 * padding
    height, baseline = _line(font, padding)
    image = Image.new("L", (max(2, width + width % 2), height))
    ImageDraw.Draw(image).text((padding, baseline), text, fill=255, font=font, anchor="ls")
    return np.asarray(image)


def _composed(text: str, font: Any, padding: int) -> Pixels | None:
    """The same, put together of single letters; None if there are too many different ones."""
    glyphs = _glyphs(font, *_line(font, padding))
    cover = glyphs.drawn.cover(text, padding)
    if cover is None:
        if len(glyphs.known) > _MOST_GLYPHS:
            return None
        glyphs.add(text)
        cover = glyphs.drawn.cover(text, padding)
    return cover


@dataclass(slots=True)
class _Glyphs:
    """Letters of a font in a line of some height."""

    font: Any
    height: int
    baseline: int
    drawn: _native.Glyphs = field(default_factory=_native.Glyphs)
    known: set[str] = field(default_factory=set)

    def add(self, text: str) -> None:
        from PIL import Image, ImageDraw

        margin = 2 * self.height  # letters reach beyond their advance
        for letter in set(text) - self.known:
            advance = int(self.font.getlength(letter))
            image = Image.new("L", (advance + 2 * margin, self.height))
            place = (margin, self.baseline)
            ImageDraw.Draw(image).text(place, letter, fill=255, font=self.font, anchor="ls")
            strip = np.asarray(image)
            inked = np.flatnonzero(strip.any(axis=0))
            first, last = (inked[0], inked[-1] + 1) if len(inked) else (margin, margin + 1)
            part = np.ascontiguousarray(strip[:, first:last])
            self.drawn.add(ord(letter), part, int(margin - first), advance)
            self.known.add(letter)


_glyphs = lru_cache(maxsize=64)(_Glyphs)


def missing_glyphs(characters: str) -> Finding:
    """A warning about characters of labels that no font at hand has."""
    text = "no installed font has the characters {characters}: boxes are drawn in their place"
    fix = (
        "install a font that has them (Debian: fonts-noto-cjk, fonts-noto-core), or name its file "
    )
    fix += "as osd.font of a pipeline file, or `Painter(font=…)`"
    data = {"characters": " ".join(characters[:12]) + (" …" if len(characters) > 12 else "")}
    return Finding("glyphs-missing", "warning", text, None, data, remedies=(fix,))


def captions(names: Mapping[int, str], longest: int) -> dict[int, str]:
    """Name sources by the end of their paths, with as many folders as tell them apart.

    Args:
        names: the full name of each source, by its id.
        longest: most characters; longer names lose their beginning. Sources that cannot be told
            apart within them get their id in front.
    """
    paths = {number: [p for p in name.split("/") if p] or [""] for number, name in names.items()}
    shown = {number: path[-1] or f"source {number}" for number, path in paths.items()}
    for depth in range(2, 1 + max(map(len, paths.values()), default=0)):
        for number in _repeated(shown):
            shown[number] = "/".join(paths[number][-depth:])
    shown = {number: cut(text, longest) for number, text in shown.items()}
    for number in _repeated(shown):
        mark = f"{number}: "
        shown[number] = mark + cut(paths[number][-1], max(2, longest - len(mark)))
    return shown


def cut(text: str, longest: int) -> str:
    """The end of a text that is too long."""
    return text if len(text) <= longest else "…" + text[1 - longest :]


def _repeated(shown: Mapping[int, str]) -> list[int]:
    counts = Counter(shown.values())
    return [number for number, text in shown.items() if counts[text] > 1]
