"""Figures that an application draws: texts, rectangles, lines, arrows, circles."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from headrace.gstreamer.pyds import osd
from headrace.gstreamer.servicemaker.view import Alias, MetaView, ViewField

ArrowHead = osd.NvOSD_Arrow_Head_Direction


class FontFamily(StrEnum):
    """Fonts by their family."""

    Serif = "Serif"
    Sans = "Sans"
    Mono = "Mono"


class Color(MetaView):
    """A colour; red, green, blue and alpha from 0 to 1."""

    KIND = osd.NvOSD_ColorParams
    red, green, blue, alpha = Alias("red"), Alias("green"), Alias("blue"), Alias("alpha")

    def __init__(
        self, red: float = 0.0, green: float = 0.0, blue: float = 0.0, alpha: float = 1.0
    ) -> None:
        super().__init__()
        self.meta.set(red, green, blue, alpha)


class Font(MetaView):
    """A font: its family or name, its size in points, its colour."""

    KIND = osd.NvOSD_FontParams
    name, size = Alias("font_name"), Alias("font_size")
    color = ViewField("font_color", Color)


class Text(MetaView):
    """A text and the upper left corner of its box, in pixels; bytes are read as UTF-8."""

    KIND = osd.NvOSD_TextParams
    display_text = Alias("display_text")
    x_offset, y_offset = Alias("x_offset"), Alias("y_offset")
    font = ViewField("font_params", Font)
    set_bg_color = Alias("set_bg_clr")
    bg_color = ViewField("text_bg_clr", Color)


class Rect(MetaView):
    """A rectangle in pixels; a border of width 0 is none."""

    KIND = osd.NvOSD_RectParams
    left, top, width, height = Alias("left"), Alias("top"), Alias("width"), Alias("height")
    border_width = Alias("border_width")
    border_color = ViewField("border_color", Color)
    has_bg_color = Alias("has_bg_color")
    bg_color = ViewField("bg_color", Color)


class Line(MetaView):
    """A line between two points, in pixels."""

    KIND = osd.NvOSD_LineParams
    x1, y1, x2, y2 = Alias("x1"), Alias("y1"), Alias("x2"), Alias("y2")
    width = Alias("line_width")
    color = ViewField("line_color", Color)


class Arrow(MetaView):
    """A line with a head at one end or both, in pixels."""

    KIND = osd.NvOSD_ArrowParams
    x1, y1, x2, y2 = Alias("x1"), Alias("y1"), Alias("x2"), Alias("y2")
    width, head = Alias("arrow_width"), Alias("arrow_head")
    color = ViewField("arrow_color", Color)


class Circle(MetaView):
    """A circle about a point, in pixels."""

    KIND = osd.NvOSD_CircleParams
    xc, yc, radius, width = Alias("xc"), Alias("yc"), Alias("radius"), Alias("circle_width")
    color = ViewField("circle_color", Color)
    has_bg_color = Alias("has_bg_color")
    bg_color = ViewField("bg_color", Color)


class Mask(MetaView):
    """The mask of an object, stretched over its rectangle."""

    KIND = osd.NvOSD_MaskParams
    width, height, threshold = Alias("width"), Alias("height"), Alias("threshold")
    size = Alias("size")

    @property
    def mask_array(self) -> Any:
        """The values, (height, width) float32; a view."""
        values = self.meta.get_mask_array()
        area = int(self.meta.height) * int(self.meta.width)
        return values.reshape(self.meta.height, self.meta.width) if values.size == area else values


class EventHandler:
    """Reacts to the mouse on a display in the original; here it notes that it was started.

    Attributes:
        started: True after `start`.
    """

    def __init__(self, osd: object = None, tiler: object = None, renderer: object = None) -> None:
        self.started = False

    def start(self) -> None:
        """Note the start; a click has no effect."""
        self.started = True
