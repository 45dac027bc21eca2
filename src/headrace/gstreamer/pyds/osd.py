"""Figures of the on-screen display: rectangles, texts, lines, arrows, circles, masks."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from headrace.gstreamer.pyds.struct import Nested, Struct, Text

if TYPE_CHECKING:
    from collections.abc import Iterator


MAX_ELEMENTS_IN_DISPLAY_META = 16


class NvOSD_Mode(IntEnum):
    """Process modes of the display."""

    MODE_CPU = 0
    MODE_GPU = 1
    MODE_NONE = 2


class NvOSD_Arrow_Head_Direction(IntEnum):
    """End of an arrow that has the head."""

    START_HEAD = 0
    END_HEAD = 1
    BOTH_HEAD = 2


class NvOSD_ColorParams(Struct):
    """A colour, each part 0 to 1."""

    red = 0.0
    green = 0.0
    blue = 0.0
    alpha = 0.0

    def set(self, red: float, green: float, blue: float, alpha: float) -> None:
        """Set all parts."""
        self.red, self.green, self.blue, self.alpha = red, green, blue, alpha


class NvOSD_FontParams(Struct):
    """A font: its name for fontconfig, its size in points."""

    font_name = Text()
    font_size = 0
    font_color = Nested(NvOSD_ColorParams)


class NvOSD_TextParams(Struct):
    """A text and the upper left corner of its box, in pixels."""

    display_text = Text()
    x_offset = 0
    y_offset = 0
    font_params = Nested(NvOSD_FontParams)
    set_bg_clr = 0
    text_bg_clr = Nested(NvOSD_ColorParams)


class NvOSD_RectParams(Struct):
    """A rectangle in pixels; a border of width 0 is none."""

    left = 0.0
    top = 0.0
    width = 0.0
    height = 0.0
    border_width = 0
    border_color = Nested(NvOSD_ColorParams)
    has_bg_color = 0
    reserved = 0
    bg_color = Nested(NvOSD_ColorParams)
    has_color_info = 0
    color_id = 0


class NvOSD_LineParams(Struct):
    """A line between two points, in pixels."""

    x1 = 0
    y1 = 0
    x2 = 0
    y2 = 0
    line_width = 0
    line_color = Nested(NvOSD_ColorParams)


class NvOSD_ArrowParams(Struct):
    """A line with a head at one end or both."""

    x1 = 0
    y1 = 0
    x2 = 0
    y2 = 0
    arrow_width = 0
    arrow_head = NvOSD_Arrow_Head_Direction.START_HEAD
    arrow_color = Nested(NvOSD_ColorParams)
    reserved = 0


class NvOSD_CircleParams(Struct):
    """A circle about a point, in pixels."""

    xc = 0
    yc = 0
    radius = 0
    circle_color = Nested(NvOSD_ColorParams)
    has_bg_color = 0
    bg_color = Nested(NvOSD_ColorParams)
    circle_width = 2
    reserved = 0


class NvOSD_Color_info(Struct):
    """A colour of the hardware's table, and its number."""

    id = 0
    color = Nested(NvOSD_ColorParams)


class NvOSD_FrameTextParams(Struct):
    """Texts of one image; Headrace's display takes them from display metadata instead."""

    buf_ptr: Any = None
    mode: int = NvOSD_Mode.MODE_CPU
    num_strings = 0
    text_params_list: Any = None


class NvOSD_FrameRectParams(Struct):
    """Rectangles of one image, as the texts above."""

    buf_ptr: Any = None
    mode: int = NvOSD_Mode.MODE_CPU
    num_rects = 0
    rect_params_list: Any = None


class NvOSD_FrameLineParams(Struct):
    """Lines of one image, as the texts above."""

    buf_ptr: Any = None
    mode: int = NvOSD_Mode.MODE_CPU
    num_lines = 0
    line_params_list: Any = None


class NvOSD_FrameArrowParams(Struct):
    """Arrows of one image, as the texts above."""

    buf_ptr: Any = None
    mode: int = NvOSD_Mode.MODE_CPU
    num_arrows = 0
    arrow_params_list: Any = None


class NvOSD_FrameCircleParams(Struct):
    """Circles of one image, as the texts above."""

    buf_ptr: Any = None
    mode: int = NvOSD_Mode.MODE_CPU
    num_circles = 0
    circle_params_list: Any = None


class NvOSD_MaskParams(Struct):
    """A mask that is stretched over the rectangle of its object; `size` in bytes."""

    data: npt.NDArray[np.float32] | None = None
    size = 0
    threshold = 0.0
    width = 0
    height = 0

    def get_mask_array(self) -> npt.NDArray[np.float32]:
        """Return the values, (size / 4,) float32; a view."""
        return np.empty(0, np.float32) if self.data is None else self.data.reshape(-1)

    def alloc_mask_array(self) -> npt.NDArray[np.float32]:
        """Make room for width * height values of 0 and return it."""
        self.data = np.zeros(int(self.width) * int(self.height), np.float32)
        self.size = self.data.nbytes
        return self.data


class _Sixteen(list[Any]):
    """The structures of a display meta, each made when first touched."""

    def __init__(self, kind: type[Struct]) -> None:
        super().__init__([None] * MAX_ELEMENTS_IN_DISPLAY_META)
        self._kind = kind

    def __getitem__(self, index: Any) -> Any:
        element = super().__getitem__(index)
        if element is None:
            element = self._kind()
            super().__setitem__(index, element)
        return element

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))


class Elements:
    """A field of a display meta with sixteen structures, made when first touched."""

    def __init__(self, kind: type[Struct]) -> None:
        self.kind = kind

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, struct: Struct | None, owner: type) -> Any:
        if struct is None:
            return self
        elements = struct.__dict__.get(self._name)
        if elements is None:
            elements = struct.__dict__[self._name] = _Sixteen(self.kind)
        return elements

    def __set__(self, struct: Struct, value: object) -> None:
        raise AttributeError(f"{self._name} cannot be set; its sixteen elements can be changed")
