"""The way of one object over the last frames."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from headrace.meta.figures import Point
from headrace.pipeline.analytics.geometry import cosine, distance, meets_segment
from headrace.pipeline.analytics.rules import CrossingMode, Heading, Line

FRAMES = 10
"""Frames that are remembered. Source: the original's LAST_N_FRAMES."""

_STOPPED_X, _STOPPED_Y = 400.0, 0.01  # variance of x; variance of y, in heights
_HEADING_STEP, _HEADING_COSINE = 3000.0, 0.5


@dataclass(frozen=True, slots=True)
class _Demands:
    """Least squared way in pixels, cosine to the direction and number of frames of a crossing."""

    way: float
    cosine: float
    frames: int


_DEMANDS = {
    CrossingMode.STRICT: _Demands(6000, 0.8, 20),
    CrossingMode.BALANCED: _Demands(3000, 0.5, 10),
    CrossingMode.LOOSE: _Demands(1000, 0.1, 3),
}


@dataclass(frozen=True, slots=True)
class _Box:
    """A box by its middle and its size, in frame pixels."""

    x: float
    y: float
    width: float
    height: float


@dataclass(slots=True)
class Motion:
    """The boxes of one tracked object.

    Attributes:
        last_ns: time of its last box.
        frames: boxes so far.
        crossed: lines that have counted it, of those that count each object once.
    """

    last_ns: int
    frames: int = 0
    crossed: set[str] = field(default_factory=set)
    _boxes: deque[_Box] = field(default_factory=lambda: deque(maxlen=FRAMES))

    def add(self, rect: tuple[float, float, float, float], pts_ns: int) -> Point:
        """Note the box of the next frame; return the place it counts by."""
        left, top, width, height = rect
        self._boxes.append(_Box(left + width / 2, top + height / 2, width, height))
        self.frames += 1
        self.last_ns = pts_ns
        return self.place

    @property
    def place(self) -> Point:
        """The middle of the lower edge of the last box."""
        return _foot(self._boxes[-1])

    @property
    def step(self) -> tuple[Point, Point] | None:
        """The same in the frame before and in the last one; None with a single frame."""
        if len(self._boxes) < 2:
            return None
        return _foot(self._boxes[-2]), self.place

    def _begin(self) -> _Box | None:
        """Where it was: the mean of the oldest boxes that are remembered; None: seen too shortly.

        Source: the original takes four of ten boxes, and the first two of fewer.
        """
        if self.frames <= 3:
            return None
        oldest = list(self._boxes)[: 4 if self.frames >= FRAMES else 2]
        return _Box(
            _mean([b.x for b in oldest]),
            _mean([b.y for b in oldest]),
            _mean([b.width for b in oldest]),
            _mean([b.height for b in oldest]),
        )

    @property
    def _height(self) -> float:
        """Mean height of the remembered boxes."""
        return _mean([b.height for b in self._boxes])

    @property
    def stopped(self) -> bool:
        """True if its boxes have hardly moved for more than ten frames."""
        if self.frames <= FRAMES:
            return False
        across, down = _variance([b.x for b in self._boxes]), _variance([b.y for b in self._boxes])
        return across <= _STOPPED_X and down <= _STOPPED_Y * self._height

    def heads(self, heading: Heading) -> bool:
        """Whether it moves in a direction."""
        begin = self._begin()
        if begin is None or self.frames <= FRAMES:
            return False
        now = self._boxes[-1]
        way = (now.x - begin.x, now.y - begin.y)
        direction = (heading.end[0] - heading.start[0], heading.end[1] - heading.start[1])
        return _length(begin, now) > _HEADING_STEP and cosine(way, direction) >= _HEADING_COSINE

    def passed(self, line: Line) -> bool:
        """Whether its way over the remembered frames passes a line, by the original's rules."""
        demands, begin = _DEMANDS[line.mode], self._begin()
        if begin is None or self.frames <= demands.frames:
            return False
        now = self._boxes[-1]
        if _length(begin, now) <= demands.way:
            return False
        before = begin.x, begin.y + self._height / 2
        way = self.place[0] - before[0], self.place[1] - before[1]
        was = distance(line.start, line.end, before)
        at = distance(line.start, line.end, self.place)
        if line.mode is CrossingMode.LOOSE:
            over = (was < 0 <= at and line.side >= 0) or (at <= 0 < was and line.side <= 0)
        else:  # whole pixels on both sides
            over = (at >= 1 and was <= -1) or (at <= -1 and was >= 1)
            directed = line.toward is None or cosine(line.direction, way) >= demands.cosine
            over = over and directed
        if not over or line.extended:
            return over
        return any(
            meets_segment(
                line.start,
                line.end,
                (before[0] + part * begin.width / 2, before[1]),
                (self.place[0] + part * now.width / 2, self.place[1]),
            )
            for part in (0, 1, -1)
        )


def _foot(box: _Box) -> Point:
    return box.x, box.y + box.height / 2


def _length(begin: _Box, now: _Box) -> float:
    """Squared way of the middle of the lower edge."""
    down = now.y - begin.y + (now.height - begin.height) / 2
    return (now.x - begin.x) ** 2 + down**2


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _variance(values: Sequence[float]) -> float:
    mean = _mean(values)
    return _mean([(v - mean) ** 2 for v in values])
