"""Exact plane geometry: on which side, inside or not, crossed or not.

Every place belongs to exactly one side of a line and, where regions share edges, to exactly one
region, so that no object is counted twice or never. Coordinates are pixels, y points down.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise

from headrace.meta.figures import Point

# Above this part of its terms, a rounded cross product has the sign of the exact one. Source:
# Shewchuk 1997, the first filter of `orient2d`: (3 + 16 * 2^-53) * 2^-53.
_ROUNDING = 3.4e-16


def turn(start: Point, end: Point, point: Point) -> int:
    """Side of the line from `start` to `end` on which a place lies: 1, -1, or 0 on the line.

    Seen on the image, 1 is right of the direction of travel.
    """
    left = (end[0] - start[0]) * (point[1] - start[1])
    right = (end[1] - start[1]) * (point[0] - start[0])
    value = left - right
    if abs(value) > _ROUNDING * (abs(left) + abs(right)):
        return 1 if value > 0 else -1
    (x0, y0), (x1, y1), (x, y) = (tuple(map(Fraction, p)) for p in (start, end, point))
    exact = (x1 - x0) * (y - y0) - (y1 - y0) * (x - x0)
    return (exact > 0) - (exact < 0)


def is_inside(corners: Sequence[Point], point: Point) -> bool:
    """Whether a place lies in a polygon, by the even-odd rule.

    Edges on the left and upper side belong to it, those on the right and lower side do not.
    """
    inside = False
    for a, b in pairwise((*corners, corners[0])):
        if (a[1] <= point[1]) != (b[1] <= point[1]):
            upper, lower = (a, b) if a[1] < b[1] else (b, a)
            inside ^= turn(upper, lower, point) <= 0
    return inside


def crossing(start: Point, end: Point, before: Point, after: Point, *, extended: bool) -> int:
    """Direction in which a step crosses the segment from `start` to `end`.

    A place on the line counts as on its right side. A step through an end of the segment crosses
    one of two segments that join there without turning back.

    Args:
        start, end: of the segment.
        before, after: ends of the step.
        extended: the segment goes on without end on both sides.

    Returns:
        1 from left to right, -1 from right to left, 0 for none.
    """
    was, now = turn(start, end, before) >= 0, turn(start, end, after) >= 0
    if was == now:
        return 0
    if not extended and (turn(before, after, start) >= 0) == (turn(before, after, end) >= 0):
        return 0
    return 1 if now else -1


def cosine(a: Point, b: Point) -> float:
    """Cosine of the angle between two vectors; 0 if one has no length."""
    lengths = math.hypot(*a) * math.hypot(*b)
    return (a[0] * b[0] + a[1] * b[1]) / lengths if lengths else 0.0


def distance(start: Point, end: Point, point: Point) -> float:
    """Distance of a place from the line through two others, positive on its right; NaN for none."""
    length = math.hypot(end[0] - start[0], end[1] - start[1])
    if not length:
        return math.nan
    cross = (end[0] - start[0]) * (point[1] - start[1]) - (end[1] - start[1]) * (
        point[0] - start[0]
    )
    return cross / length


def meets_segment(start: Point, end: Point, before: Point, after: Point) -> bool:
    """Whether the line of a step, without ends, meets the inside of a segment."""
    ends = distance(before, after, start), distance(before, after, end)
    return ends[0] * ends[1] < 0
