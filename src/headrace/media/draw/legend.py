"""The legend of class maps: their classes with the share of the image that each covers."""

from __future__ import annotations

from headrace._core.text import shortened
from headrace.media.draw.canvas import Canvas
from headrace.media.draw.colors import Rgb
from headrace.media.draw.overlays import Overlay, is_background
from headrace.media.draw.text import render_text
from headrace.meta import SegmentationMeta

_INK, _PAPER = (255, 255, 255, 1.0), (16, 18, 22)
_MAX_ROWS = 8


class Legend:
    """Collects the classes of a frame's class maps and draws a panel in the top right corner."""

    def __init__(self) -> None:
        self._areas: dict[tuple[int, int], float] = {}
        self._known: dict[tuple[int, int], tuple[str, Rgb]] = {}

    def add(self, segmentation: SegmentationMeta, overlay: Overlay) -> None:
        """Count the pixels of each class of `overlay`, but not of background."""
        for class_id, area in enumerate(overlay.class_areas().tolist()[1:]):
            if not area or is_background(segmentation, class_id):
                continue
            key = (segmentation.component_id, class_id)
            self._areas[key] = self._areas.get(key, 0.0) + area
            named = class_id < len(segmentation.labels) and segmentation.labels[class_id].strip()
            self._known[key] = (named or f"class {class_id}", overlay.colors[class_id + 1])

    def rows(self, pixels: int) -> list[tuple[Rgb, str, str]]:
        """Colour, name and share of `pixels` as text, the largest first."""
        order = sorted(self._areas, key=lambda key: (-self._areas[key], key))
        rows = []
        for key in order[:_MAX_ROWS]:
            name, color = self._known[key]
            share = round(100 * self._areas[key] / pixels)
            rows.append((color, shortened(name, 24), f"{share} %" if share else "<1 %"))
        return rows

    def draw(self, canvas: Canvas, font_px: int, family: str) -> None:
        """Draw the panel; nothing without classes, or where there is no room for a row."""
        rows = self.rows(canvas.width * canvas.height)
        hidden = len(self._areas) - len(rows)
        if not rows:
            return
        gap = font_px // 4 * 2
        texts = [
            (color, render_text(name, family, font_px, _INK, None, 2), share)
            for color, name, share in rows
        ]
        shares = [render_text(share, family, font_px, _INK, None, 2) for _, _, share in rows]
        more = render_text(f"and {hidden} more", family, font_px, _INK, None, 2) if hidden else None
        line = texts[0][1].height
        swatch = font_px * 3 // 8 * 2
        names = max([text.width for _, text, _ in texts] + ([more.width] if more else []))
        numbers = max(text.width for text in shares)
        width = gap + swatch + gap + names + gap + numbers + gap
        right = (canvas.width - gap) // 2 * 2
        left, top = right - width, gap
        if left < 0:
            return
        room = (canvas.height - 2 * gap - gap) // line
        shown = min(len(texts), room)
        if shown < 1:
            return
        last = more is not None and shown < room
        bottom = top + gap + (shown + last) * line + gap
        canvas.fill((left, top, right, bottom), _PAPER, 0.66)
        y = top + gap
        for (color, text, _), share in list(zip(texts, shares, strict=True))[:shown]:
            inset = (line - swatch) // 4 * 2
            x = left + gap
            canvas.fill((x, y + inset, x + swatch, y + inset + swatch), color)
            canvas.paste(text, x + swatch + gap, y)
            canvas.paste(share, right - gap - share.width, y)
            y += line
        if last and more is not None:
            canvas.paste(more, left + gap + swatch + gap, y)
