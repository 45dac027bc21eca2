"""Boxes and labels on frames."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from noria.draw.canvas import Box, Canvas, canvas_for
from noria.draw.colors import class_color, readable_on
from noria.draw.text import TextBox, render_text
from noria.media.frame import Frame
from noria.meta import UNTRACKED_OBJECT_ID, ClassStyle, FrameMeta, Objects

__all__ = ["Painter"]

Rgb = tuple[int, int, int]
PX_PER_PT = 96 / 72
_DEFAULT_BORDER = ClassStyle().border_color
_DEFAULT_STYLE = ClassStyle()


@dataclass(frozen=True, slots=True)
class _Look:
    """How one object is drawn, in pixels and bytes."""

    border: tuple[int, int, int, float]
    border_width: int
    fill: tuple[int, int, int, float] | None
    text: TextBox | None


class Painter:
    """Draws the objects of a frame on a copy of it.

    Args:
        palette: `auto` gives every class its own colour, unless the config sets a colour for any
            class; lines and text grow with the frame and the label sits on the box. `config` draws
            exactly what the metadata say: colours, a 3 pixel border, Serif 11 text on black whose
            corner is at (left, top - 10) (spec B.7).
        confidence: add the confidence to the label ("car 0.87").
        labels: draw labels at all.
        scale: factor on line width and text size; None means by frame height for `auto` and 1 for
            `config`.
        font: a font file, instead of the built-in font or the one in the metadata.

    One painter may be used from several threads.
    """

    def __init__(
        self,
        *,
        palette: Literal["auto", "config"] = "auto",
        confidence: bool = True,
        labels: bool = True,
        scale: float | None = None,
        font: str | None = None,
    ) -> None:
        self.palette = palette
        self.confidence = confidence
        self.labels = labels
        self.scale = scale
        self.font = font

    def draw(self, frame: Frame, meta: FrameMeta) -> Frame:
        """A new frame with the objects drawn: RGB and BGR stay what they are, others become I420.

        Objects are drawn in attach order, in `auto` the most confident last; labels lie above all
        boxes. `frame` is only read.
        """
        canvas = canvas_for(frame)
        objects = meta.objects
        rects = objects.rects
        if not len(rects):
            return canvas.frame()
        scale = self._scale(frame.height)
        order = range(len(objects))
        if self.palette == "auto":
            order = np.argsort(objects.confidences, kind="stable").tolist()
        colored = self.palette == "config" or _has_colors(objects)
        placed: list[tuple[TextBox, int, int]] = []
        for i in order:
            if not np.isfinite(rects[i]).all():
                continue
            look = self._look(objects, i, scale, colored)
            box = self._box(rects[i].tolist(), canvas)
            if box is None:
                continue
            if look.fill is not None:
                canvas.fill(box, look.fill[:3], look.fill[3])
            if look.border_width:
                canvas.outline(box, look.border_width, look.border[:3], look.border[3])
            if look.text is not None:
                placed.append((look.text, *self._place(look.text, box, canvas)))
        for text, left, top in placed:
            canvas.paste(text, left, top)
        return canvas.frame()

    def _scale(self, height: int) -> float:
        if self.scale is not None:
            return self.scale
        # Metadata sizes are made for 1080p; below about 700 lines text would not be readable.
        return max(0.65, height / 1080) if self.palette == "auto" else 1.0

    def _box(self, rect: list[float], canvas: Canvas) -> Box | None:
        """Whole pixels of a rectangle; in `auto` even ones, which keeps I420 colours clean."""
        left, top, width, height = rect
        # far outside is as good as outside; huge values must not overflow
        x0, y0 = max(-1e6, left), max(-1e6, top)
        x1, y1 = min(1e6, left + width), min(1e6, top + height)
        if x1 <= x0 or y1 <= y0:
            return None
        if self.palette == "config":
            return int(x0), int(y0), math.ceil(x1), math.ceil(y1)
        even = (2 * round(x0 / 2), 2 * round(y0 / 2), 2 * round(x1 / 2), 2 * round(y1 / 2))
        box = (even[0], even[1], max(even[0] + 2, even[2]), max(even[1] + 2, even[3]))
        return box if canvas.clip(box) else None

    def _place(self, text: TextBox, box: Box, canvas: Canvas) -> tuple[int, int]:
        """Left and top of a label, even."""
        left, top = box[0], box[1]
        if self.palette == "config":
            return max(0, left) // 2 * 2, max(0, top - 10) // 2 * 2
        y = top - text.height if top >= text.height else max(0, top)
        x = max(0, min(left, (canvas.width - text.width) // 2 * 2))
        return x, min(y, max(0, (canvas.height - text.height) // 2 * 2))

    def _look(self, objects: Objects, index: int, scale: float, colored: bool) -> _Look:
        class_id = int(objects.class_ids[index])
        styles = objects.styles.get(int(objects.component_ids[index]), {})
        style = styles.get(class_id, _DEFAULT_STYLE)
        exact = self.palette == "config"
        border = _bytes(style.border_color) if colored else (*class_color(class_id), 1.0)
        width = max(1, round(style.border_width * scale))
        if not exact:
            width = max(2, round(style.border_width * scale / 2) * 2)
        size = max(6 if exact else 11, round(style.font_size * PX_PER_PT * scale))
        text = self._text(objects, index)
        if not text:
            box = None
        elif exact:
            back = style.text_bg_color
            box = render_text(
                text,
                self.font or style.font,
                size,
                _bytes(style.font_color),
                None if back is None else _bytes(back),
                2,
            )
        else:
            ink = (*readable_on(border[:3]), 1.0)
            paper = (*border[:3], 1.0)
            box = render_text(text, self.font or "", size, ink, paper, max(3, size // 4))
        fill = None if style.bg_color is None else _bytes(style.bg_color)
        return _Look(border, width, fill, box)

    def _text(self, objects: Objects, index: int) -> str:
        if not self.labels:
            return ""
        text = objects.label(index)
        if not text and self.palette == "auto":
            text = f"class {int(objects.class_ids[index])}"
        tracked = int(objects.object_ids[index])
        if text and tracked != UNTRACKED_OBJECT_ID:
            text += f" {tracked}"
        if text and self.confidence:
            gap = " " if self.palette == "config" else "  "  # the small font has narrow blanks
            text += f"{gap}{float(objects.confidences[index]):.2f}"
        return text


def _has_colors(objects: Objects) -> bool:
    """Whether the config set a colour for any class: all-red is what it is without one."""
    return any(
        style.border_color != _DEFAULT_BORDER
        for styles in objects.styles.values()
        for style in styles.values()
    )


def _bytes(color: tuple[float, float, float, float]) -> tuple[int, int, int, float]:
    r, g, b = (min(255, max(0, round(255 * c))) for c in color[:3])
    return r, g, b, min(1.0, max(0.0, color[3]))
