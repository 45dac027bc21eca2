"""Date and time, and the name of the source, written on images."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headrace.media.draw.canvas import Canvas
from headrace.media.draw.figures import PX_PER_PT, byte_color
from headrace.media.draw.text import Rgba, render_text

if TYPE_CHECKING:
    from headrace.config import OsdSpec

_FORM = "%a %b %d %H:%M:%S %Y"
_RED: Rgba = (255, 0, 0, 1.0)
_WHITE: Rgba = (255, 255, 255, 1.0)
_DARK: Rgba = (16, 18, 22, 0.66)
_SMALLEST_PX = 6


@dataclass(frozen=True, slots=True)
class Clock:
    """The time of this machine, as the original's element writes it.

    Attributes:
        left, top: upper left corner in pixels.
        points: size of the text.
        color: r, g, b in 0..255 and opacity in 0..1.
        family: of the font.
    """

    left: int = 0
    top: int = 0
    points: int = 12
    color: Rgba = _RED
    family: str = "Serif"

    @classmethod
    def from_spec(cls, spec: OsdSpec) -> Clock:
        """The clock that the `osd` part of a pipeline file describes."""
        values: dict[str, Any] = {"left": spec.clock_x, "top": spec.clock_y}
        if spec.clock_size is not None:
            values["points"] = spec.clock_size
        if spec.clock_color is not None:
            values["color"] = byte_color(spec.clock_color)
        if spec.font is not None:
            values["family"] = spec.font
        return cls(**values)

    def draw(self, canvas: Canvas) -> None:
        """Write the time of now."""
        text = time.strftime(_FORM)
        write_text(canvas, text, self.family, self.points, self.color, None, (self.left, self.top))


def write_text(
    canvas: Canvas,
    text: str,
    family: str,
    points: int,
    color: Rgba,
    paper: Rgba | None,
    position: tuple[int, int],
) -> None:
    """Write one line with its upper left corner at an even place near `position`."""
    size = max(_SMALLEST_PX, round(points * PX_PER_PT))
    box = render_text(text, family, size, color, paper, 2)
    canvas.paste(box, position[0] // 2 * 2, position[1] // 2 * 2)


def write_name(canvas: Canvas, name: str, font_px: int, family: str) -> None:
    """Write the name of a source into the lower left corner."""
    box = render_text(name, family, font_px, _WHITE, _DARK, max(3, font_px // 4))
    canvas.paste(box, 0, max(0, canvas.height - box.height) // 2 * 2)
