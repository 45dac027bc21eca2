"""Rules about places in the images of a source, as files and programs give them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from typing import Any, Literal

from headrace._core.errors import ConfigError
from headrace._core.findings import Finding
from headrace.meta.figures import Point

ALL_SOURCES = -1
Corners = tuple[Point, ...]
Drawn = Literal["nothing", "shapes", "counts"]


class CrossingMode(StrEnum):
    """The way in which a crossing is found.

    `exact` looks at the last step alone: every object that passes the line is counted, each time.
    The others are the original's: the way over up to ten frames must be long, seen for long and go
    in the line's direction; each object counts once.
    """

    EXACT = "exact"
    STRICT = "strict"
    BALANCED = "balanced"
    LOOSE = "loose"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rule:
    """A rule.

    Attributes:
        name: as in results.
        classes: only objects of these classes; empty is all.
    """

    name: str
    classes: tuple[int, ...] = ()

    def applies(self, class_id: int) -> bool:
        """Whether it is about objects of a class."""
        return not self.classes or -1 in self.classes or class_id in self.classes

    def scaled(self, x: float, y: float) -> Any:
        """The rule on an image that is `x` times as wide and `y` times as high."""
        moved = {
            f.name: _scaled(getattr(self, f.name), x, y)
            for f in fields(self)
            if f.name in ("points", "start", "end", "toward")
        }
        return replace(self, **moved)


def _scaled(value: Any, x: float, y: float) -> Any:
    if value is None or not value:
        return value
    if isinstance(value[0], tuple):
        return tuple((px * x, py * y) for px, py in value)
    return value[0] * x, value[1] * y


@dataclass(frozen=True, slots=True, kw_only=True)
class Region(_Rule):
    """A polygon in which objects are counted; a box counts by the middle of its lower edge.

    Attributes:
        points: 3 or more corners.
        inverse: True counts objects outside of it.
    """

    points: Corners
    inverse: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Crowd(_Rule):
    """A polygon that is crowded from a number of objects on.

    Attributes:
        points: 3 or more corners.
        threshold: that number.
    """

    points: Corners
    threshold: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Line(_Rule):
    """A line that tracked objects cross.

    Attributes:
        start, end: of the line.
        toward: start and end of an arrow; crossings in its direction count. None: both ways do.
        extended: the line goes on without end on both sides.
        mode: how a crossing is found.
    """

    start: Point
    end: Point
    toward: tuple[Point, Point] | None = None
    extended: bool = False
    mode: CrossingMode = CrossingMode.EXACT

    @property
    def direction(self) -> Point:
        """The vector of `toward`; (0, 0) without one."""
        if self.toward is None:
            return 0.0, 0.0
        (x0, y0), (x1, y1) = self.toward
        return x1 - x0, y1 - y0

    @property
    def side(self) -> int:
        """The wanted sign of `crossing`; 0 for both, or if the arrow goes along the line."""
        x, y = self.direction
        cross = (self.end[0] - self.start[0]) * y - (self.end[1] - self.start[1]) * x
        return (cross > 0) - (cross < 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Heading(_Rule):
    """A direction in which tracked objects move, within 60 degrees.

    Attributes:
        start, end: of an arrow.
    """

    start: Point
    end: Point


@dataclass(frozen=True, slots=True)
class SourceRules:
    """The rules of one source."""

    regions: tuple[Region, ...] = ()
    crowds: tuple[Crowd, ...] = ()
    lines: tuple[Line, ...] = ()
    headings: tuple[Heading, ...] = ()

    def __post_init__(self) -> None:
        for f in fields(self):
            names = set()
            for rule in getattr(self, f.name):
                _check(rule, rule.name in names)
                names.add(rule.name)

    @property
    def need_tracker(self) -> bool:
        """Whether there are rules about the way of an object."""
        return bool(self.lines or self.headings)

    def scaled(self, x: float, y: float) -> SourceRules:
        """The rules on an image that is `x` times as wide and `y` times as high."""
        return SourceRules(
            *(tuple(r.scaled(x, y) for r in getattr(self, f.name)) for f in fields(self))
        )


def _check(rule: _Rule, repeated: bool) -> None:
    """Refuse a rule that cannot work.

    Raises:
        ConfigError: it cannot.
    """

    def refuse(problem: str, expected: str) -> ConfigError:
        kind = type(rule).__name__.lower()
        return ConfigError(problem, where=f"{kind} {rule.name!r}", expected=expected)

    if repeated:
        raise refuse("the name is given twice", "a name for each rule of a kind")
    positions = [p for f in fields(rule) for p in _places(getattr(rule, f.name))]
    if not all(math.isfinite(v) for position in positions for v in position):
        raise refuse("a coordinate is not finite", "pixels")
    if isinstance(rule, Region | Crowd) and len(rule.points) < 3:
        raise refuse(f"a polygon of {len(rule.points)} corner(s)", "3 corners or more")
    if isinstance(rule, Crowd) and rule.threshold < 0:
        raise refuse(f"threshold={rule.threshold}", "0 objects or more")
    if isinstance(rule, Line | Heading) and rule.start == rule.end:
        raise refuse("it begins and ends at one place", "two places")
    if isinstance(rule, Line) and rule.toward is not None and not rule.side:
        raise refuse("its direction goes along the line", "an arrow from one side to the other")


def _places(value: object) -> list[Point]:
    if not isinstance(value, tuple) or not value:
        return []
    if isinstance(value[0], tuple):
        return list(value)
    return [value] if len(value) == 2 and isinstance(value[0], int | float) else []


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalyticsRules:
    """All rules of a pipeline.

    Attributes:
        sources: by source id; `ALL_SOURCES` for those that have none of their own.
        size: width and height of the images that the coordinates are for; None: as they come.
        drawn: what is shown of the rules on images.
        text_size: of their texts, in points.
        draw_classes: also draw the number of objects of each class.
        window_ms: time over which the number of objects of a class is smoothed; 0 is not at all.
        where: the file, for messages.
        notices: parts of it that are not applied as written.
    """

    sources: Mapping[int, SourceRules]
    size: tuple[int, int] | None = None
    drawn: Drawn = "counts"
    text_size: int = 12
    draw_classes: bool = False
    window_ms: int = 0
    where: str | None = None
    notices: tuple[Finding, ...] = field(default=(), compare=False)

    def of(self, source_id: int, width: int, height: int) -> SourceRules:
        """The rules of a source in pixels of its images."""
        rules = self.sources.get(source_id, self.sources.get(ALL_SOURCES))
        if rules is None:
            return SourceRules()
        if self.size is None or self.size == (width, height):
            return rules
        return rules.scaled(width / self.size[0], height / self.size[1])
