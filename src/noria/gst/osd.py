"""nvdsosd: rectangles, masks, texts, lines, arrows and circles on the pictures of a batch."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from noria.draw.canvas import Canvas, canvas_for
from noria.draw.figures import PX_PER_PT, Strokes, arrow_strokes, byte_color, draw_strokes
from noria.draw.overlays import mask_overlay
from noria.draw.text import render_text
from noria.gst.bindings import BaseTransform, Gst
from noria.gst.element import (
    COMMON,
    NO_EFFECT,
    NVMM,
    NvElement,
    Property,
    gproperties,
    guarded,
    pad,
)
from noria.gst.tree import frames_of, picture_of
from noria.meta import Detections, FrameMeta, Space
from noria.meta.masks import object_mask
from noria.pyds.bridge import bridge
from noria.pyds.meta import NvDsFrameMeta, items
from noria.pyds.osd import NvOSD_Arrow_Head_Direction as Head
from noria.pyds.struct import text_at

_FAR = 1e4
_MASK_OPACITY = 0.45

PROPERTIES = {key: COMMON[key] for key in ("gpu-id", "qos")} | {
    "process-mode": Property("int", 1, "accepted; drawn by the CPU"),
    "display-text": Property("bool", True, "draw texts"),
    "display-bbox": Property("bool", True, "draw rectangles of objects"),
    "display-mask": Property("bool", False, "draw masks of objects"),
    "display-clock": Property("bool", False, NO_EFFECT),
    "clock-font": Property("str", "Serif", "accepted"),
    "clock-font-size": Property("uint", 12, "accepted"),
    "x-clock-offset": Property("uint", 0, "accepted"),
    "y-clock-offset": Property("uint", 0, "accepted"),
    "clock-color": Property("uint", 0, "accepted"),
    "blur-bbox": Property("uint", 0, NO_EFFECT),
    "blur-on-gie-class-ids": Property("str", "", NO_EFFECT),
    "hw-blend-color-attr": Property("str", "", "accepted"),
}


class NvDsOsd(NvElement, BaseTransform):
    """Draws the metadata of a batch on its pictures."""

    __gtype_name__ = "GstNvDsOsd"
    __gstmetadata__ = ("NvDsOsd plugin", "Filter/Video", "Draws metadata on pictures", "Noria")
    __gsttemplates__ = (pad("sink", "sink", "always", NVMM), pad("src", "src", "always", NVMM))
    PROPERTIES = PROPERTIES
    __gproperties__ = gproperties(PROPERTIES)

    def __init__(self) -> None:
        super().__init__()
        self.set_in_place(True)
        self.set_passthrough(True)  # the pictures are not in the buffer
        self.setup()

    def _process(self, buffer: Any) -> Any:
        batch = bridge().get(hash(buffer))
        if batch is None:
            return Gst.FlowReturn.OK
        for frame in frames_of(batch):
            if items(frame, "obj_meta_list") or items(frame, "display_meta_list"):
                canvas = canvas_for(picture_of(batch, frame))
                draw_frame(canvas, frame, self.values)
                batch.surfaces[frame.batch_id].draw(canvas.frame())
        return Gst.FlowReturn.OK

    do_transform_ip = guarded(_process, Gst.FlowReturn.ERROR)


def draw_frame(canvas: Canvas, frame: NvDsFrameMeta, options: dict[str, Any]) -> None:
    """Draw all metadata of a frame, in the original's order.

    Args:
        canvas: over its picture.
        frame: metadata.
        options: values of the properties `display-bbox`, `display-mask` and `display-text`.
    """
    objects = list(items(frame, "obj_meta_list"))
    displays = list(items(frame, "display_meta_list"))
    if options["display-bbox"]:
        for obj in objects:
            _rectangle(canvas, obj.rect_params)
        for display in displays:
            for i in range(display.num_rects):
                _rectangle(canvas, display.rect_params[i])
    if options["display-mask"]:
        for obj in objects:
            _mask(canvas, obj)
    if options["display-text"]:
        for obj in objects:
            _text(canvas, obj.text_params)
        for display in displays:
            for i in range(display.num_labels):
                _text(canvas, display.text_params[i])
    for display in displays:
        for i in range(display.num_lines):
            line = display.line_params[i]
            ends = [(line.x1, line.y1), (line.x2, line.y2)]
            _strokes(canvas, [ends], line.line_width, line.line_color)
        for i in range(display.num_arrows):
            _arrow(canvas, display.arrow_params[i])
        for i in range(display.num_circles):
            _circle(canvas, display.circle_params[i])


def _color(params: Any) -> tuple[int, int, int, float]:
    return byte_color((params.red, params.green, params.blue, params.alpha))


def _rectangle(canvas: Canvas, rect: Any) -> None:
    sides = (rect.left, rect.top, rect.width, rect.height)
    if not all(map(math.isfinite, sides)) or rect.width <= 0 or rect.height <= 0:
        return
    left, top = max(-_FAR, rect.left), max(-_FAR, rect.top)
    box = (
        int(left), int(top),
        math.ceil(min(_FAR, rect.left + rect.width)), math.ceil(min(_FAR, rect.top + rect.height)),
    )  # fmt: skip
    if rect.has_bg_color:
        *color, alpha = _color(rect.bg_color)
        canvas.fill(box, (color[0], color[1], color[2]), alpha)
    if rect.border_width:
        red, green, blue, alpha = _color(rect.border_color)
        canvas.outline(box, int(rect.border_width), (red, green, blue), alpha)


def _text(canvas: Canvas, params: Any) -> None:
    text = text_at(params.display_text)
    if not text:
        return
    font = params.font_params
    size = max(6, round((font.font_size or 11) * PX_PER_PT))
    paper = _color(params.text_bg_clr) if params.set_bg_clr else None
    box = render_text(
        text, text_at(font.font_name) or "Serif", size, _color(font.font_color), paper, 2
    )
    canvas.paste(box, max(0, int(params.x_offset)) // 2 * 2, max(0, int(params.y_offset)) // 2 * 2)


def _mask(canvas: Canvas, obj: Any) -> None:
    params, rect = obj.mask_params, obj.rect_params
    if params.data is None or not params.size or params.width * params.height * 4 != params.size:
        return
    meta = FrameMeta("", 0, 0, 0, canvas.width, canvas.height)
    values = np.asarray(params.data, np.float32).reshape(params.height, params.width)
    box = np.array([[rect.left, rect.top, rect.width, rect.height]], np.float32)
    found = Detections.unchecked(
        box, np.ones(1, np.float32), np.zeros(1, np.int32), masks=[values], space=Space.FRAME
    )
    meta.objects.append(found, 1, mask_threshold=params.threshold)
    placed = object_mask(meta.objects, 0, canvas.width, canvas.height)
    if placed is not None:
        red, green, blue, _ = _color(rect.border_color)
        canvas.blend(mask_overlay(placed, (red, green, blue), _MASK_OPACITY, 0))


def _strokes(canvas: Canvas, strokes: Strokes, width: int, color: Any, fill: bool = False) -> None:
    red, green, blue, alpha = _color(color)
    draw_strokes(canvas, strokes, int(width), (red, green, blue), alpha, fill=fill)


def _arrow(canvas: Canvas, arrow: Any) -> None:
    ends = (float(arrow.x1), float(arrow.y1)), (float(arrow.x2), float(arrow.y2))
    heads = (
        arrow.arrow_head in (Head.START_HEAD, Head.BOTH_HEAD),
        arrow.arrow_head in (Head.END_HEAD, Head.BOTH_HEAD),
    )
    strokes = arrow_strokes(*ends, int(arrow.arrow_width), heads)
    _strokes(canvas, strokes, arrow.arrow_width, arrow.arrow_color)


def _circle(canvas: Canvas, circle: Any) -> None:
    angles = np.linspace(0, 2 * math.pi, 65)
    places = [
        (circle.xc + circle.radius * math.cos(a), circle.yc + circle.radius * math.sin(a))
        for a in angles.tolist()
    ]
    if circle.has_bg_color:
        _strokes(canvas, [places], 1, circle.bg_color, fill=True)
    _strokes(canvas, [places], circle.circle_width, circle.circle_color)
