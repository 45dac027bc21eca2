"""nvdsosd: rectangles, masks, texts, lines, arrows and circles on the images of a batch."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from headrace._core.errors import ConfigError
from headrace.gstreamer.elements.bindings import Gst
from headrace.gstreamer.elements.element import NVMM, InPlace, through
from headrace.gstreamer.elements.geometry import Box, blurred
from headrace.gstreamer.elements.properties import COMMON, NO_EFFECT, Property, choice
from headrace.gstreamer.elements.tree import frames_of, image_of
from headrace.gstreamer.pyds.bridge import bridge
from headrace.gstreamer.pyds.meta import NvDsFrameMeta, items
from headrace.gstreamer.pyds.osd import NvOSD_Arrow_Head_Direction as Head
from headrace.gstreamer.pyds.struct import text_at
from headrace.media.draw.canvas import Canvas
from headrace.media.draw.clock import Clock, write_text
from headrace.media.draw.device_canvas import canvas_for
from headrace.media.draw.figures import Strokes, arrow_strokes, byte_color, draw_strokes
from headrace.media.draw.overlays import mask_overlay
from headrace.media.draw.text import missing_glyphs
from headrace.media.frame import Frame
from headrace.meta import Detections, FrameMeta, Space
from headrace.meta.masks import PlacedMask, object_mask

if TYPE_CHECKING:
    from headrace.gstreamer.pyds.meta import NvDsObjectMeta
    from headrace.gstreamer.pyds.osd import (
        NvOSD_ArrowParams,
        NvOSD_CircleParams,
        NvOSD_ColorParams,
        NvOSD_RectParams,
        NvOSD_TextParams,
    )

Area = tuple[Box, npt.NDArray[np.bool_] | None]

_FAR = 1e4
_MASK_OPACITY = 0.45
_BLUR_MASKS = 2  # blur-bbox

PROPERTIES = {key: COMMON[key] for key in ("gpu-id", "qos")} | {
    "process-mode": choice(
        1, "accepted; drawn by the CPU", "GstNvDsOsdMode", "MODE_CPU", "MODE_GPU", "MODE_NONE"
    ),
    "display-text": Property("bool", True, "draw texts"),
    "display-bbox": Property("bool", True, "draw rectangles of objects"),
    "display-mask": Property("bool", False, "draw masks of objects"),
    "display-clock": Property("bool", False, "write date and time; needs display-text"),
    "clock-font": Property("str", "Serif", "of the clock"),
    "clock-font-size": Property("uint", 12, "of the clock, in points", 0, 60),
    "x-clock-offset": Property("uint", 0, "left edge of the clock, in pixels"),
    "y-clock-offset": Property("uint", 0, "upper edge of the clock, in pixels"),
    "clock-color": Property("uint", 0xFF0000FF, "of the clock: 0xRRGGBBAA"),
    "blur-bbox": Property(
        "uint", 0, "blur objects: 1 their boxes, 2 their masks if they have any", 0, 2
    ),
    "blur-on-gie-class-ids": Property("str", None, "blur these alone: model,class;model,class"),
    "hw-blend-color-attr": Property("str", "", NO_EFFECT),
}


class NvDsOsd(InPlace):
    """Draws the metadata of a batch on its images."""

    __gtype_name__ = "GstNvDsOsd"
    ABOUT = ("NvDsOsd plugin", "Filter/Video", "Draws metadata on images")
    __gsttemplates__ = through(NVMM)
    PROPERTIES = PROPERTIES

    def process(self, buffer: Gst.Buffer) -> Gst.FlowReturn:
        """Draw the metadata of a batch on its images."""
        batch = bridge().get(hash(buffer))
        if batch is None:
            return Gst.FlowReturn.OK
        blurs, clock = self.values["blur-bbox"], self.values["display-clock"]
        for frame in frames_of(batch):
            objects = items(frame, "obj_meta_list")
            if objects or items(frame, "display_meta_list") or clock:
                image = image_of(batch, frame)
                if blurs and objects:
                    image = blurred(image, self._areas(image, objects))
                canvas = canvas_for(image)
                draw_frame(canvas, frame, self.values)
                if canvas.missing:
                    self.post_notices([missing_glyphs(canvas.missing)])
                batch.surfaces[frame.batch_id].draw(canvas.frame())
        return Gst.FlowReturn.OK

    def _areas(self, image: Frame, objects: Iterable[NvDsObjectMeta]) -> Iterator[Area]:
        """The blurred areas: the box or mask of each object that the properties choose."""
        text = self.values["blur-on-gie-class-ids"] or ""
        chosen = [_pair(part) for part in text.split(";") if part.strip()]
        for obj in objects:
            if chosen and (int(obj.unique_component_id), int(obj.class_id)) not in chosen:
                continue
            placed = None
            if self.values["blur-bbox"] == _BLUR_MASKS:
                placed = _placed(obj, image.width, image.height)
            if placed is not None:
                height, width = placed.pixels.shape
                if width and height:
                    yield (placed.left, placed.top, width, height), placed.pixels
                continue
            rect = obj.rect_params
            if not all(map(math.isfinite, (rect.left, rect.top, rect.width, rect.height))):
                continue
            left, top = max(0, int(rect.left)), max(0, int(rect.top))
            right = min(image.width, math.ceil(rect.left + rect.width))
            bottom = min(image.height, math.ceil(rect.top + rect.height))
            if left < right and top < bottom:
                yield (left, top, right - left, bottom - top), None


def _pair(text: str) -> tuple[int, int]:
    model, _, class_id = text.partition(",")
    try:
        return int(model), int(class_id)
    except ValueError:
        raise ConfigError(
            f"blur-on-gie-class-ids has {text!r}", where="nvdsosd",
            expected="model,class;model,class, such as 1,0;1,2",
        ) from None  # fmt: skip


def draw_frame(canvas: Canvas, frame: NvDsFrameMeta, options: dict[str, Any]) -> None:
    """Draw all metadata of a frame, in the original's order.

    Args:
        canvas: over its image.
        frame: metadata.
        options: values of the properties `display-…` and `…clock…`.
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
        if options["display-clock"]:
            _clock(canvas, options)
    for display in displays:
        for i in range(display.num_lines):
            line = display.line_params[i]
            ends = [(line.x1, line.y1), (line.x2, line.y2)]
            _strokes(canvas, [ends], line.line_width, line.line_color)
        for i in range(display.num_arrows):
            _arrow(canvas, display.arrow_params[i])
        for i in range(display.num_circles):
            _circle(canvas, display.circle_params[i])


def _color(params: NvOSD_ColorParams) -> tuple[int, int, int, float]:
    return byte_color((params.red, params.green, params.blue, params.alpha))


def _rectangle(canvas: Canvas, rect: NvOSD_RectParams) -> None:
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


def _text(canvas: Canvas, params: NvOSD_TextParams) -> None:
    text = text_at(params.display_text)
    if not text:
        return
    font = params.font_params
    paper = _color(params.text_bg_clr) if params.set_bg_clr else None
    family = text_at(font.font_name) or "Serif"
    position = max(0, int(params.x_offset)), max(0, int(params.y_offset))
    write_text(canvas, text, family, font.font_size or 11, _color(font.font_color), paper, position)


def _clock(canvas: Canvas, options: dict[str, Any]) -> None:
    red, green, blue, alpha = options["clock-color"].to_bytes(4, "big")
    Clock(
        options["x-clock-offset"],
        options["y-clock-offset"],
        options["clock-font-size"],
        (red, green, blue, alpha / 255),
        options["clock-font"] or "Serif",
    ).draw(canvas)


def _placed(obj: NvDsObjectMeta, width: int, height: int) -> PlacedMask | None:
    """The pixels of an object's mask; None if it has none."""
    params, rect = obj.mask_params, obj.rect_params
    if params.data is None or not params.size or params.width * params.height * 4 != params.size:
        return None
    meta = FrameMeta("", 0, 0, 0, width, height)
    values = np.asarray(params.data, np.float32).reshape(params.height, params.width)
    box = np.array([[rect.left, rect.top, rect.width, rect.height]], np.float32)
    detections = Detections.unchecked(
        box, np.ones(1, np.float32), np.zeros(1, np.int32), masks=[values], space=Space.FRAME
    )
    meta.objects.append(detections, 1, mask_threshold=params.threshold)
    return object_mask(meta.objects, 0, width, height)


def _mask(canvas: Canvas, obj: NvDsObjectMeta) -> None:
    placed = _placed(obj, canvas.width, canvas.height)
    if placed is not None:
        red, green, blue, _ = _color(obj.rect_params.border_color)
        canvas.blend(mask_overlay(placed, (red, green, blue), _MASK_OPACITY, 0))


def _strokes(
    canvas: Canvas, strokes: Strokes, width: int, color: NvOSD_ColorParams, fill: bool = False
) -> None:
    red, green, blue, alpha = _color(color)
    draw_strokes(canvas, strokes, int(width), (red, green, blue), alpha, fill=fill)


def _arrow(canvas: Canvas, arrow: NvOSD_ArrowParams) -> None:
    ends = (float(arrow.x1), float(arrow.y1)), (float(arrow.x2), float(arrow.y2))
    heads = (
        arrow.arrow_head in (Head.START_HEAD, Head.BOTH_HEAD),
        arrow.arrow_head in (Head.END_HEAD, Head.BOTH_HEAD),
    )
    strokes = arrow_strokes(*ends, int(arrow.arrow_width), heads)
    _strokes(canvas, strokes, arrow.arrow_width, arrow.arrow_color)


def _circle(canvas: Canvas, circle: NvOSD_CircleParams) -> None:
    points = [
        (circle.xc + circle.radius * math.cos(a), circle.yc + circle.radius * math.sin(a))
        for a in np.linspace(0, 2 * math.pi, 65).tolist()
    ]
    if circle.has_bg_color:
        _strokes(canvas, [points], 1, circle.bg_color, fill=True)
    _strokes(canvas, [points], circle.circle_width, circle.circle_color)
