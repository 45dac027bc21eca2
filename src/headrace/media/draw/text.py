"""Captions: short names of sources, and text boxes drawn once by Pillow and kept as pixels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

Pixels = npt.NDArray[np.uint8]
Rgba = tuple[int, int, int, float]

# Tried in this order for glyphs that Pillow's own font lacks; found by name on most systems.
_WIDE_FONTS = (
    "NotoSansCJK-Regular.ttc",
    "NotoSans-Regular.ttf",
    "wqy-zenhei.ttc",
    "DejaVuSans.ttf",
    "Arial Unicode.ttf",
)
_SERIF_FONTS = ("DejaVuSerif.ttf", "LiberationSerif-Regular.ttf", "Times New Roman.ttf")


@dataclass(frozen=True, slots=True, eq=False)
class TextBox:
    """A rendered text with its background; width and height are even.

    Attributes:
        rgb: (h, w, 3) colours.
        alpha: (h, w) opacity 0..255, or None if opaque everywhere.
    """

    rgb: Pixels
    alpha: Pixels | None

    @property
    def width(self) -> int:
        """In pixels."""
        return int(self.rgb.shape[1])

    @property
    def height(self) -> int:
        """In pixels."""
        return int(self.rgb.shape[0])


@lru_cache(maxsize=64)
def _font(family: str, size_px: int, wide: bool) -> Any:
    from PIL import ImageFont

    names = [family] if family.endswith((".ttf", ".otf", ".ttc")) else []
    if wide:
        names += _WIDE_FONTS
    elif family.casefold() == "serif":
        names += _SERIF_FONTS
    for name in names:
        try:
            return ImageFont.truetype(name, size_px)
        except OSError:
            continue
    return ImageFont.load_default(size_px)


@lru_cache(maxsize=2048)
def render_text(
    text: str, family: str, size_px: int, color: Rgba, background: Rgba | None, padding: int
) -> TextBox:
    """Text on a box that fits it.

    Args:
        text: one line; control characters are drawn as blanks.
        family: font file, `Serif`, or anything else for the built-in sans font.
        size_px: size of the font in pixels.
        color: r, g, b in 0..255 and opacity in 0..1.
        background: likewise; None is no background.
        padding: free pixels left and right of the text.
    """
    from PIL import Image, ImageDraw

    text = "".join(c if c.isprintable() else " " for c in text)
    font = _font(family, size_px, not all(ord(c) < 0x180 for c in text))
    ascent, descent = font.getmetrics()
    width = round(font.getlength(text)) + 2 * padding
    height = ascent + descent + max(1, padding // 2)
    width, height = max(2, width + width % 2), max(2, height + height % 2)
    image = Image.new("L", (width, height))
    baseline = (height - ascent - descent) // 2 + ascent
    ImageDraw.Draw(image).text((padding, baseline), text, fill=255, font=font, anchor="ls")
    cover = np.asarray(image, np.float32)[:, :, None] / 255 * color[3]
    back = background or (0, 0, 0, 0.0)
    alpha = cover + back[3] * (1 - cover)
    ink, paper = np.array(color[:3], np.float32), np.array(back[:3], np.float32)
    weight = np.divide(cover, alpha, out=np.zeros_like(cover), where=alpha > 0)
    rgb = np.rint(paper + (ink - paper) * weight).astype(np.uint8)
    opaque = back[3] >= 1
    return TextBox(rgb, None if opaque else np.rint(alpha[:, :, 0] * 255).astype(np.uint8))


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
