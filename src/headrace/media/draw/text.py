"""Captions: short names of sources, and text boxes drawn once by Pillow and kept as pixels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from headrace._core.findings import Finding
from headrace.media.draw.fonts import font_for

Pixels = npt.NDArray[np.uint8]
Rgba = tuple[int, int, int, float]


@dataclass(frozen=True, slots=True, eq=False)
class TextBox:
    """A rendered text with its background; width and height are even.

    Attributes:
        rgb: (h, w, 3) colours.
        alpha: (h, w) opacity 0..255, or None if opaque everywhere.
        missing: characters that no font at hand has.
    """

    rgb: Pixels
    alpha: Pixels | None
    missing: str = ""

    @property
    def width(self) -> int:
        """In pixels."""
        return int(self.rgb.shape[1])

    @property
    def height(self) -> int:
        """In pixels."""
        return int(self.rgb.shape[0])


@lru_cache(maxsize=2048)
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
    from PIL import Image, ImageDraw

    text = "".join(c if c.isprintable() else " " for c in text)
    font, missing = font_for(text, family, size_px)
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
    shown = None if opaque else np.rint(alpha[:, :, 0] * 255).astype(np.uint8)
    return TextBox(rgb, shown, missing)


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
