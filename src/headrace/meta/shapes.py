"""Shapes of objects beyond upright boxes: corners of rotated ones, skeletons of keypoints."""

from __future__ import annotations

import math

from headrace.meta.objects import DEFAULT_STYLE, Objects
from headrace.meta.skeletons import KNOWN, Bones, Skeleton


def rotated_corners(objects: Objects, index: int) -> list[tuple[float, float]]:
    """Return the corners of a rotated object in frame pixels, clockwise; none if it is upright.

    Its rectangle is turned clockwise about its middle by its angle.
    """
    angle = 0.0 if objects.angles is None else float(objects.angles[index])
    left, top, width, height = objects.rects[index].tolist()
    if not angle % 360 or not math.isfinite(angle + left + top + width + height):
        return []
    return turned(left, top, width, height, angle)


def turned(
    left: float, top: float, width: float, height: float, angle: float
) -> list[tuple[float, float]]:
    """Return the corners of a rectangle turned clockwise about its middle by `angle` degrees."""
    sin, cos = math.sin(math.radians(angle)), math.cos(math.radians(angle))
    x, y, a, b = left + width / 2, top + height / 2, width / 2, height / 2
    signs = ((-a, -b), (a, -b), (a, b), (-a, b))
    return [(x + u * cos - v * sin, y + u * sin + v * cos) for u, v in signs]


def skeleton_of_object(objects: Objects, index: int) -> Skeleton:
    """Return names and bones of the keypoints of an object."""
    points = objects.keypoints
    styles = objects.styles.get(int(objects.component_ids[index]), {})
    style = styles.get(int(objects.class_ids[index]), DEFAULT_STYLE)
    return skeleton_of(0 if points is None else len(points[index]), style.bones)


def skeleton_of(count: int, bones: Bones | None = None) -> Skeleton:
    """Return the skeleton of objects with `count` keypoints.

    Args:
        count: points of an object; 17 are a person's, 5 a face's.
        bones: those that the configuration names; None takes the usual ones of that count.
    """
    known = KNOWN.get(count) or Skeleton(tuple(f"point_{i}" for i in range(count)))
    if bones is None:
        return known
    return Skeleton(known.names, tuple(b for b in bones if max(b) < count))
