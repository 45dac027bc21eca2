"""Lines and texts that are drawn on a frame beside its objects."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeAlias

from headrace._core.plain_record import PlainRecord

Rgba: TypeAlias = tuple[float, float, float, float]
Point: TypeAlias = tuple[float, float]


class Stroke(PlainRecord, frozen=True):
    """A line through places.

    Attributes:
        points: x, y in frame pixels.
        color: r, g, b, a in 0..1.
        width: pixels on an image of 1080 lines.
        closed: join the last place with the first.
        arrow: the line ends in an arrow head.
    """

    points: tuple[Point, ...]
    color: Rgba
    width: int = 2
    closed: bool = False
    arrow: bool = False

    def moved(self, left: float, top: float, scale_x: float, scale_y: float) -> Stroke:
        """The stroke on a larger image that shows the frame at left, top."""
        points = tuple((left + x * scale_x, top + y * scale_y) for x, y in self.points)
        return replace(self, points=points)


class Caption(PlainRecord, frozen=True):
    """A text at a place.

    Attributes:
        text: one line.
        left, top: its corner in frame pixels.
        color: r, g, b, a in 0..1.
        size: points on an image of 1080 lines.
        background: colour behind the text, or None.
    """

    text: str
    left: float
    top: float
    color: Rgba
    size: int = 12
    background: Rgba | None = (0.0, 0.0, 0.0, 1.0)

    def moved(self, left: float, top: float, scale_x: float, scale_y: float) -> Caption:
        """The caption on a larger image that shows the frame at left, top."""
        return replace(self, left=left + self.left * scale_x, top=top + self.top * scale_y)


Figure: TypeAlias = Stroke | Caption
