"""How each object is drawn: colours, line width, text."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import Literal

import numpy as np

from noria.draw.colors import component_color, readable_on
from noria.draw.text import TextBox, render_text
from noria.meta import UNTRACKED_OBJECT_ID, ClassStyle, Objects, mask_border_colors
from noria.meta.objects import Rgba

WHOLE_FRAME = -1
"""Class of a primary classifier's object. Source: spec C.3."""
PX_PER_PT = 96 / 72
MAX_TEXT = 48
_DEFAULT_STYLE = ClassStyle()
_DEFAULT_BORDER = _DEFAULT_STYLE.border_color
_FRAME_STYLE = ClassStyle(border_width=6)


@dataclass(frozen=True, slots=True)
class Look:
    """How one object is drawn, in pixels and bytes."""

    border: tuple[int, int, int, float]
    border_width: int
    fill: tuple[int, int, int, float] | None
    text: TextBox | None


@dataclass(frozen=True, kw_only=True)
class Looks:
    """Makes the look of objects; the attributes are the options of `Painter`."""

    palette: Literal["auto", "config"] = "auto"
    confidence: bool = True
    labels: bool = True
    ids: bool = True
    boxes: bool = True
    font: str | None = None
    border_width: int | None = None
    text_size: int | None = None
    text_color: Rgba | None = None
    text_bg_color: Rgba | None = None

    def colored(self, objects: Objects) -> bool:
        """Whether the colours of the metadata count for these objects.

        In `auto` they do if the config set one for any class: all-red is what it is without.
        """
        return self.palette == "config" or any(
            style.border_color != _DEFAULT_BORDER
            for styles in objects.styles.values()
            for style in styles.values()
        )

    def border(self, objects: Objects, index: int, colored: bool) -> tuple[int, int, int, float]:
        """The colour of an object."""
        if objects.border_colors is not None:
            r, g, b, a = own = tuple(objects.border_colors[index].tolist())
            # Colours that only say that there is a mask change with every frame.
            if not math.isnan(sum(own)) and (
                self.palette == "config" or own not in _seeded_colors()
            ):
                return _bytes((r, g, b, a))
        if colored:
            return _bytes(_style(objects, index).border_color)
        component = int(objects.component_ids[index])
        return (*component_color(component, int(objects.class_ids[index])), 1.0)

    def look(self, objects: Objects, index: int, scale: float, colored: bool) -> Look:
        """The look of object `index` on a picture where sizes are multiplied by `scale`."""
        style = _style(objects, index)
        exact = self.palette == "config"
        border = self.border(objects, index, colored)
        wanted = style.border_width if self.border_width is None else self.border_width
        width = max(1, round(wanted * scale))
        if not exact:
            if objects.parents[index] >= 0:
                scale *= 0.85  # within another object
                width = 2
            else:
                width = max(2, round(wanted * scale / 2) * 2)
        if not (wanted and self.boxes):
            width = 0
        points = style.font_size if self.text_size is None else self.text_size
        size = max(6 if exact else 11, round(points * PX_PER_PT * scale))
        text = self.text(objects, index)
        if not text:
            box = None
        else:
            if exact:
                family, padding = self.font or style.font, 2
                ink = _bytes(style.font_color)
                paper = None if style.text_bg_color is None else _bytes(style.text_bg_color)
            else:
                family, padding = self.font or "", max(3, size // 4)
                ink, paper = (*readable_on(border[:3]), 1.0), (*border[:3], 1.0)
            if self.text_color is not None:
                ink = _bytes(self.text_color)
            if self.text_bg_color is not None:
                paper = _bytes(self.text_bg_color)
            box = render_text(text, family, size, ink, paper, padding)
        fill = None if style.bg_color is None or not self.boxes else _bytes(style.bg_color)
        return Look(border, width, fill, box)

    def text(self, objects: Objects, index: int) -> str:
        """Text beside object `index`, or nothing."""
        if not self.labels:
            return ""
        exact = self.palette == "config"
        text = objects.display_text(index)
        class_id = int(objects.class_ids[index])
        if not exact:
            # Texts of classifiers end with a blank each.
            text = " ".join(text.split())
            if len(text) > MAX_TEXT:
                text = text[: MAX_TEXT - 1] + "…"
            if not text and class_id != WHOLE_FRAME:
                text = f"class {class_id}"
        tracked = int(objects.object_ids[index])
        if text and self.ids and tracked != UNTRACKED_OBJECT_ID:
            text += f" {tracked}" if exact else f" #{tracked}"
        if text and self.confidence and class_id != WHOLE_FRAME:
            gap = " " if exact else "  "  # the small font has narrow blanks
            text += f"{gap}{float(objects.confidences[index]):.2f}"
        return text


def _style(objects: Objects, index: int) -> ClassStyle:
    class_id = int(objects.class_ids[index])
    default = _FRAME_STYLE if class_id == WHOLE_FRAME else _DEFAULT_STYLE
    return objects.styles.get(int(objects.component_ids[index]), {}).get(class_id, default)


@cache
def _seeded_colors() -> frozenset[tuple[float, ...]]:
    """The colours that masked objects get one after the other. Source: spec C.1."""
    masks = [np.ones((1, 1), np.float32)] * 2048
    return frozenset(tuple(color) for color in mask_border_colors(masks).tolist())


def _bytes(color: tuple[float, float, float, float]) -> tuple[int, int, int, float]:
    r, g, b = (min(255, max(0, round(255 * c))) for c in color[:3])
    return r, g, b, min(1.0, max(0.0, color[3]))
