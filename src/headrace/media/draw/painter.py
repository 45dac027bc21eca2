"""Objects, masks and class maps on frames: how each looks, where it goes, and the legend."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from headrace._core import _native
from headrace._core.findings import Finding
from headrace._core.notices import note_once
from headrace._core.text import shortened
from headrace._core.types import Array
from headrace.media import Frame, as_frame
from headrace.media.draw.canvas import Box, Canvas
from headrace.media.draw.clock import Clock, write_name
from headrace.media.draw.colors import component_color, readable_on
from headrace.media.draw.device_canvas import canvas_for
from headrace.media.draw.figures import PX_PER_PT, byte_color, draw_figures
from headrace.media.draw.legend import Legend
from headrace.media.draw.output_images import shown_image
from headrace.media.draw.overlays import (
    class_map_overlay,
    mask_overlay,
    polygon_overlay,
)
from headrace.media.draw.skeleton import skeleton_overlays
from headrace.media.draw.text import TextBox, missing_glyphs, render_text
from headrace.meta import (
    UNTRACKED_OBJECT_ID,
    ClassStyle,
    FrameMeta,
    Objects,
    SegmentationMeta,
    mask_border_colors,
)
from headrace.meta.figures import Rgba
from headrace.meta.masks import object_mask
from headrace.meta.shapes import skeleton_of_object, turned

if TYPE_CHECKING:
    from headrace.config import OsdSpec

WHOLE_FRAME = -1
"""Class of a primary classifier's object. Source: spec C.3."""
MAX_TEXT = 48
_DEFAULT_STYLE = ClassStyle()
_DEFAULT_BORDER = _DEFAULT_STYLE.border_color
_FRAME_STYLE = ClassStyle(border_width=6)


Byte4 = tuple[int, int, int, float]


@dataclass(frozen=True, slots=True)
class Look:
    """How objects of one kind are drawn, in pixels and bytes.

    Attributes:
        border, border_width: of the box; no border if 0.
        fill: inside of the box.
        text: family, size in pixels, colour, background and padding of texts.
    """

    border: Byte4
    border_width: int
    fill: Byte4 | None
    text: tuple[str, int, Byte4, Byte4 | None, int]


@dataclass(frozen=True, kw_only=True)
class Looks:
    """Makes the look of objects; the attributes are the options of `Painter`."""

    palette: Literal["auto", "config"] = "auto"
    confidence: bool = True
    labels: bool = True
    ids: bool = True
    boxes: bool = True
    font: str | None = None
    notices: list[Finding] = field(default_factory=list, repr=False)
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
                return byte_color((r, g, b, a))
        if colored:
            return byte_color(_style(objects, index).border_color)
        component = int(objects.component_ids[index])
        return (*component_color(component, int(objects.class_ids[index])), 1.0)

    def look(self, objects: Objects, index: int, scale: float, colored: bool) -> Look:
        """The look of object `index` on an image where sizes are multiplied by `scale`."""
        style = _style(objects, index)
        exact = self.palette == "config"
        border = self.border(objects, index, colored)
        line_width = style.border_width if self.border_width is None else self.border_width
        width = max(1, round(line_width * scale))
        if not exact:
            if objects.parents[index] >= 0:
                scale *= 0.85  # within another object
                width = 2
            else:
                width = max(2, round(line_width * scale / 2) * 2)
        if not (line_width and self.boxes):
            width = 0
        points = style.font_size if self.text_size is None else self.text_size
        size = max(6 if exact else 11, round(points * PX_PER_PT * scale))
        paper: Byte4 | None
        if exact:
            family, padding = self.font or style.font, 2
            ink = byte_color(style.font_color)
            paper = None if style.text_bg_color is None else byte_color(style.text_bg_color)
        else:
            family, padding = self.font or "", max(3, size // 4)
            ink, paper = (*readable_on(border[:3]), 1.0), (*border[:3], 1.0)
        if self.text_color is not None:
            ink = byte_color(self.text_color)
        if self.text_bg_color is not None:
            paper = byte_color(self.text_bg_color)
        fill = None if style.bg_color is None or not self.boxes else byte_color(style.bg_color)
        return Look(border, width, fill, (family, size, ink, paper, padding))

    def text_box(self, look: Look, text: str) -> TextBox | None:
        """A text in the look of its object; None if there is none."""
        if not text:
            return None
        family, *form = look.text
        return render_text(text, family, *form)

    def text(self, objects: Objects, index: int) -> str:
        """Text beside object `index`, or nothing."""
        if not self.labels:
            return ""
        exact = self.palette == "config"
        text = objects.display_text(index)
        class_id = int(objects.class_ids[index])
        if not exact:
            text = _tidied(text)
            if not text and class_id != WHOLE_FRAME:
                text = f"class {class_id}"
        tracked = int(objects.object_ids[index])
        if text and self.ids and tracked != UNTRACKED_OBJECT_ID:
            text += f" {tracked}" if exact else f" #{tracked}"
        if text and self.confidence and class_id != WHOLE_FRAME:
            gap = " " if exact else "  "  # the small font has narrow blanks
            text += f"{gap}{float(objects.confidences[index]):.2f}"
        return text


@lru_cache(maxsize=1024)
def _tidied(text: str) -> str:
    """Texts of classifiers end with a blank each."""
    return shortened(" ".join(text.split()), MAX_TEXT)


def _style(objects: Objects, index: int) -> ClassStyle:
    class_id = int(objects.class_ids[index])
    default = _FRAME_STYLE if class_id == WHOLE_FRAME else _DEFAULT_STYLE
    return objects.styles.get(int(objects.component_ids[index]), {}).get(class_id, default)


@cache
def _seeded_colors() -> frozenset[tuple[float, ...]]:
    """The colours that masked objects get one after the other. Source: spec C.1."""
    masks = [np.ones((1, 1), np.float32)] * 2048
    return frozenset(tuple(color) for color in mask_border_colors(masks).tolist())


@dataclass(frozen=True, slots=True)
class _Label:
    """A text and where it goes."""

    text: TextBox
    left: int
    top: int

    def hides(self, other: _Label) -> bool:
        return (
            self.left < other.left + other.text.width
            and other.left < self.left + self.text.width
            and self.top < other.top + other.text.height
            and other.top < self.top + self.text.height
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class Painter(Looks):
    """Draws the metadata of a frame on a copy of it.

    From below to above: class maps, instance masks in their object's colour, backgrounds and
    borders, labels, figures, the legend of the class maps.

    Args:
        palette: `auto` gives every class its own colour, unless the config sets a colour for any
            class; lines and text grow with the frame, the label sits on the box, objects found in
            others have thin borders. `config` draws exactly what the metadata say: colours, a 3
            pixel border, Serif 11 text on black whose corner is at (left, top - 10) (spec B.7).
        confidence: add the confidence to the label ("car 0.87").
        labels: draw labels at all.
        scale: factor on line width and text size; None means by frame height for `auto` and 1 for
            `config`.
        font: a font file, instead of the built-in font or the one in the metadata.
        masks: draw instance masks and class maps.
        keypoints: draw the keypoints of objects, with their bones; `auto` alone does.
        boxes: draw borders and backgrounds of objects.
        ids: add the tracking id to the label.
        figures: draw the lines and texts of the metadata.
        legend: name the classes of class maps with their share of the frame.
        opacity: of masks and class maps, 0..1.
        border_width: in pixels, instead of that in the metadata; it grows with the frame like that.
        text_size: in points, likewise.
        text_color: r, g, b, a in 0..1.
        text_bg_color: likewise.
        clock: date and time, above all others; None for none.
        names: write the name of each source into its images.

    One painter may be used from several threads.
    """

    scale: float | None = None
    masks: bool = True
    keypoints: bool = True
    figures: bool = True
    legend: bool = True
    clock: Clock | None = None
    names: bool = False
    opacity: float = 0.45

    @classmethod
    def from_spec(cls, spec: OsdSpec, **options: object) -> Painter:
        """A painter as the `osd` part of a pipeline file wants it; `options` win over it."""
        shown = spec.show
        asked: dict[str, Any] = {
            "boxes": shown and spec.show_boxes,
            "labels": shown and spec.show_text,
            "masks": shown and spec.show_masks,
            "ids": spec.show_ids,
            "confidence": spec.show_confidence,
        }
        if shown and spec.show_clock:
            asked["clock"] = Clock.from_spec(spec)
        asked["names"] = shown and spec.show_names
        same = ("font", "border_width", "text_size", "text_color", "text_bg_color")
        asked |= {name: getattr(spec, name) for name in same}
        return cls(**(asked | options))

    def draw(self, frame: Frame, meta: FrameMeta) -> Frame:
        """A new frame with the objects drawn: RGB and BGR stay, others become I420.

        Objects are drawn in attach order, in `auto` the most confident last and children after all
        others; labels lie above all boxes. `frame` is only read.
        """
        canvas = canvas_for(frame)
        objects = meta.objects
        scale = self._scale(frame.height)
        legend = Legend()
        for output in meta.tensors if self.masks else ():
            image = shown_image(output, frame.width, frame.height)
            if image is not None:
                canvas.show(image)
        if self.masks and (meta.segmentations or objects.segmentations):
            self._draw_class_maps(canvas, meta, legend)
        if len(objects):
            self._draw_objects(canvas, objects, scale)
        if self.figures and meta.figures:
            draw_figures(canvas, meta.figures, scale)
        if self.legend:
            legend.draw(canvas, max(12, round(12 * PX_PER_PT * scale)), self.font or "")
        if self.names and meta.source:
            write_name(canvas, meta.source, max(12, round(12 * PX_PER_PT * scale)), self.font or "")
        if self.clock is not None:
            self.clock.draw(canvas)
        if canvas.missing:
            note_once(self.notices, missing_glyphs(canvas.missing))
        return canvas.frame()

    def _draw_class_maps(self, canvas: Canvas, meta: FrameMeta, legend: Legend) -> None:
        whole = (0.0, 0.0, float(canvas.width), float(canvas.height))
        shown: list[tuple[SegmentationMeta, tuple[float, ...]]] = [
            (segmentation, whole) for segmentation in meta.segmentations
        ]
        for index, several in meta.objects.segmentations.items():
            rect = tuple(meta.objects.rects[index].tolist())
            shown += [(segmentation, rect) for segmentation in several]
        for segmentation, (left, top, width, height) in shown:
            overlay = class_map_overlay(
                segmentation, (left, top, width, height), canvas.width, canvas.height, self.opacity
            )
            if overlay is not None:
                canvas.blend(overlay)
                legend.add(segmentation, overlay)

    def _draw_objects(self, canvas: Canvas, objects: Objects, scale: float) -> None:
        rects = objects.rects
        parents = objects.parents.tolist()
        nested = max(parents) >= 0
        order = range(len(objects))
        if self.palette == "auto":
            keys = (objects.confidences, objects.parents >= 0) if nested else (objects.confidences,)
            order = np.lexsort(keys).tolist()
        colored = self.colored(objects)
        if self.masks and objects.masks is not None:
            for i in order:
                mask = object_mask(objects, i, canvas.width, canvas.height)
                if mask is not None:
                    color = self.border(objects, i, colored)[:3]
                    line = max(1, round(1.5 * scale))
                    canvas.blend(mask_overlay(mask, color, self.opacity, line))
        placed: dict[int, _Label] = {}
        boxes = self._boxes(rects, canvas)
        looks: dict[tuple[int, int, bool], Look] = {}
        ids = (objects.component_ids.tolist(), objects.class_ids.tolist())
        kinds = list(zip(*ids, (parent >= 0 for parent in parents), strict=True))
        shows_points = self.keypoints and self.palette == "auto"
        stacks: dict[tuple[int, int], int] = {}  # heights of full-frame texts at one place
        for i in order:
            box = boxes[i]
            if box is None and not math.isfinite(rects[i].sum()):
                continue
            look = looks.get(kinds[i])
            if look is None:
                look = self.look(objects, i, scale, colored)
                if objects.border_colors is None:  # else each object may have its own
                    looks[kinds[i]] = look
            angle = 0.0 if objects.angles is None else float(objects.angles[i])
            if angle % 360 and math.isfinite(angle):
                box = self._draw_rotated(canvas, rects[i].tolist(), angle, look)
            elif box is not None:
                if look.fill is not None:
                    canvas.fill(box, look.fill[:3], look.fill[3])
                if look.border_width:
                    canvas.outline(box, look.border_width, look.border[:3], look.border[3])
            if shows_points and objects.keypoints is not None and len(objects.keypoints[i]):
                bones = skeleton_of_object(objects, i).bones
                line = max(2, round(3 * scale))
                for overlay in skeleton_overlays(
                    objects.keypoints[i], bones, line, look.border[:3], canvas.size
                ):
                    canvas.blend(overlay)
            text = None if box is None else self.text_box(look, self.text(objects, i))
            if text is None or box is None:
                continue
            label = _Label(text, *self._place(text, box, canvas))
            if self.palette == "auto":
                if kinds[i][1] == WHOLE_FRAME:
                    corner = (label.left, label.top)
                    label = _Label(text, corner[0], corner[1] + stacks.get(corner, 0))
                    stacks[corner] = stacks.get(corner, 0) + text.height
                elif nested:
                    label = self._beside_parent(objects, i, label, box, canvas, placed)
            placed[i] = label
        for label in placed.values():
            canvas.paste(label.text, label.left, label.top)

    def _draw_rotated(
        self, canvas: Canvas, rect: list[float], angle: float, look: Look
    ) -> Box | None:
        """Draw a rectangle turned clockwise about its middle by `angle` degrees; its bounds."""
        left, top, width, height = (max(-1e4, min(1e4, v)) for v in rect)
        if width <= 0 or height <= 0:
            return None

        def corners(inset: float) -> list[tuple[float, float]]:
            a, b = min(inset, width / 2), min(inset, height / 2)
            return turned(left + a, top + b, width - 2 * a, height - 2 * b, angle)

        parts = []
        if look.fill is not None:
            parts.append(polygon_overlay(corners(0), 0, look.fill[:3], look.fill[3], canvas.size))
        if look.border_width:
            inset = corners(look.border_width / 2)
            border = look.border
            parts.append(
                polygon_overlay(inset, look.border_width, border[:3], border[3], canvas.size)
            )
        for overlay in parts:
            if overlay is not None:
                canvas.blend(overlay)
        points = corners(0)
        low = (min(u for u, _ in points), min(v for _, v in points))
        high = (max(u for u, _ in points), max(v for _, v in points))
        bounds = np.array([[*low, high[0] - low[0], high[1] - low[1]]])
        (bounding,) = self._boxes(bounds, canvas)
        return bounding

    def _beside_parent(
        self,
        objects: Objects,
        index: int,
        label: _Label,
        box: Box,
        canvas: Canvas,
        placed: dict[int, _Label],
    ) -> _Label:
        """A child's label, below its box if it would hide its parent's."""
        parent = placed.get(int(objects.parents[index]))
        if parent is None or not label.hides(parent):
            return label
        lower = _Label(label.text, label.left, box[3])
        if box[3] + label.text.height > canvas.height or lower.hides(parent):
            return label
        return lower

    def _scale(self, height: int) -> float:
        if self.scale is not None:
            return self.scale
        # Metadata sizes are made for 1080p; below about 700 lines text would not be readable.
        return max(0.65, height / 1080) if self.palette == "auto" else 1.0

    def _boxes(self, rects: Array, canvas: Canvas) -> list[Box | None]:
        """Whole pixels of rectangles; in `auto` even ones, which keeps I420 colours clean."""
        return _native.whole_boxes(rects.astype(np.float64), *canvas.size, self.palette == "auto")

    def _place(self, text: TextBox, box: Box, canvas: Canvas) -> tuple[int, int]:
        """Left and top of a label, even."""
        left, top = box[0], box[1]
        if self.palette == "config":
            return max(0, left) // 2 * 2, max(0, top - 10) // 2 * 2
        y = top - text.height if top >= text.height else max(0, top)
        x = max(0, min(left, (canvas.width - text.width) // 2 * 2))
        return x, min(y, max(0, (canvas.height - text.height) // 2 * 2))


def show(frame: Any, meta: FrameMeta, **options: Any) -> Frame:
    """The frame with its objects drawn, which a notebook shows as an image.

    Args:
        frame: a `Frame`, or what a model was called with: an array in BGR order, or a path.
        meta: what is known of it.
        options: those of `Painter`.
    """
    return Painter(**options).draw(as_frame(frame), meta)
