"""Keypoints of an object as an overlay: bones between them, and a dot on each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from headrace.media.draw.colors import Rgb
from headrace.media.draw.overlays import Overlay, Points, smooth_overlay
from headrace.meta.detections import FloatArray
from headrace.meta.skeletons import VISIBLE, Bones

if TYPE_CHECKING:
    from PIL.ImageDraw import ImageDraw

_FAR = 1e4  # pixels; beyond, the drawing library runs out of numbers
_INK: Rgb = (255, 255, 255)


def skeleton_overlays(
    keypoints: FloatArray, bones: Bones, line: int, color: Rgb, size: tuple[int, int]
) -> Iterator[Overlay]:
    """Draw the points of one object that are sure enough to be seen.

    Args:
        keypoints: (K, 3) x, y in frame pixels and score.
        bones: pairs of points that a line joins, where both are seen.
        line: width of the bones in pixels.
        color: r, g, b of bones, and of the rims of dots.
        size: width, height of the frame.

    Yields:
        Bones, rims and dots, in the order in which they are blended.
    """
    seen = (keypoints[:, 2] >= VISIBLE) & np.isfinite(keypoints).all(axis=1)
    positions: Points = [(x, y) for x, y in keypoints[:, :2].clip(-_FAR, _FAR).tolist()]
    ends = [
        position
        for a, b in bones
        if seen[a] and seen[b]
        for position in (positions[a], positions[b])
    ]

    def draw_bones(ink: ImageDraw, ends: Points) -> None:
        for start, end in zip(ends[::2], ends[1::2], strict=True):
            ink.line([start, end], fill=255, width=2 * line)

    if ends and (overlay := smooth_overlay(ends, draw_bones, line, color, 1.0, size)):
        yield overlay
    dots = [position for position, is_seen in zip(positions, seen.tolist(), strict=True) if is_seen]
    for radius, paint in ((1.5 * line, color), (0.8 * line, _INK)):

        def draw_dots(ink: ImageDraw, dots: Points, r: float = 2 * radius) -> None:
            for x, y in dots:
                ink.ellipse((x - r, y - r, x + r, y + r), fill=255)

        if dots and (overlay := smooth_overlay(dots, draw_dots, 2 * line, paint, 1.0, size)):
            yield overlay
