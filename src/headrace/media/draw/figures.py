"""Lines, arrows and texts of the metadata on a canvas."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np

from headrace.media.draw.canvas import Canvas
from headrace.media.draw.colors import Rgb
from headrace.media.draw.overlays import Overlay, smooth_overlay
from headrace.media.draw.text import render_text
from headrace.meta.figures import Caption, Figure, Point, Rgba, Stroke

_FAR = 1e4
PX_PER_PT = 96 / 72
_HEAD = 4  # length of an arrow head in widths of its line
_HEAD_TURN = 0.45  # radians between the arrow and each side of its head
Strokes = Sequence[Sequence[Point]]


def draw_figures(canvas: Canvas, figures: Sequence[Figure], scale: float) -> None:
    """Draw figures in their order, their widths and sizes multiplied by `scale`."""
    for figure in figures:
        color = byte_color(figure.color)
        if isinstance(figure, Caption):
            paper = None if figure.background is None else byte_color(figure.background)
            size = max(9, round(figure.size * PX_PER_PT * scale))
            text = render_text(figure.text, "", size, color, paper, 2)
            left = min(max(0, round(figure.left)), max(0, canvas.width - text.width))
            top = min(max(0, round(figure.top)), max(0, canvas.height - text.height))
            canvas.paste(text, left // 2 * 2, top // 2 * 2)
        else:
            overlay = _stroke_overlay(figure, max(2, round(figure.width * scale)), canvas.size)
            if overlay is not None:
                canvas.blend(overlay)


@lru_cache(256)
def _stroke_overlay(stroke: Stroke, width: int, size: tuple[int, int]) -> Overlay | None:
    """Overlay of a stroke; most stay where they are from frame to frame."""
    points = stroke.points + (stroke.points[:1] if stroke.closed else ())
    strokes: Strokes = [points]
    if stroke.arrow and len(points) > 1:
        strokes = [points, *arrow_strokes(points[-2], points[-1], width, (False, True))[1:]]
    red, green, blue, alpha = byte_color(stroke.color)
    return strokes_overlay(strokes, width, (red, green, blue), alpha, size)


def draw_strokes(
    canvas: Canvas, strokes: Strokes, width: int, color: Rgb, alpha: float, *, fill: bool = False
) -> None:
    """Draw lines through places, or fill the area that they enclose."""
    overlay = strokes_overlay(strokes, width, color, alpha, canvas.size, fill=fill)
    if overlay is not None:
        canvas.blend(overlay)


def strokes_overlay(
    strokes: Strokes,
    width: int,
    color: Rgb,
    alpha: float,
    size: tuple[int, int],
    *,
    fill: bool = False,
) -> Overlay | None:
    """Overlay of lines through places.

    Args:
        strokes: x, y in frame pixels of each line.
        width: of the lines in pixels.
        color: r, g, b.
        alpha: opacity, 0 to 1.
        size: width, height of the frame.
        fill: fill the area that they enclose.
    """
    width = max(1, width)
    points = [(min(_FAR, max(-_FAR, x)), min(_FAR, max(-_FAR, y))) for s in strokes for x, y in s]
    ends = np.cumsum([0, *map(len, strokes)]).tolist()

    def draw(ink: Any, vertices: Any) -> None:
        for start, end in pairwise(ends):
            if fill:
                ink.polygon(vertices[start:end], fill=255)
            else:
                ink.line(vertices[start:end], fill=255, width=2 * width, joint="curve")

    return smooth_overlay(points, draw, (_HEAD + 1) * width + 1, color, alpha, size)


def arrow_strokes(
    start: Point, end: Point, width: int, heads: tuple[bool, bool]
) -> list[list[Point]]:
    """Lines of an arrow: its shaft, then a head at the start, at the end, or at both.

    Args:
        start, end: x, y in frame pixels.
        width: of its line in pixels.
        heads: True where there is one: at the start, at the end.
    """
    strokes: list[list[Point]] = [[start, end]]
    size = _HEAD * max(1, width)
    for tip, other, there in ((start, end, heads[0]), (end, start, heads[1])):
        if there:
            angle = math.atan2(other[1] - tip[1], other[0] - tip[0])
            wings = [
                (tip[0] + size * math.cos(angle + turn), tip[1] + size * math.sin(angle + turn))
                for turn in (_HEAD_TURN, -_HEAD_TURN)
            ]
            strokes.append([wings[0], tip, wings[1]])
    return strokes


@lru_cache(maxsize=256)  # every object asks, and most have the same few
def byte_color(color: Rgba) -> tuple[int, int, int, float]:
    """Bytes r, g, b, and the opacity, each clipped to its range."""
    r, g, b = (min(255, max(0, round(255 * c))) for c in color[:3])
    return r, g, b, min(1.0, max(0.0, color[3]))
