"""Figures of rules: regions, lines, arrows, and counts beside them, as the original draws them."""

from __future__ import annotations

from functools import lru_cache

from headrace.meta.analytics import FrameAnalytics
from headrace.meta.figures import Caption, Figure, Point, Rgba, Stroke
from headrace.pipeline.analytics.rules import AnalyticsRules, Line, SourceRules

_YELLOW: Rgba = (1.0, 1.0, 0.0, 1.0)
_ORANGE: Rgba = (1.0, 0.5, 0.0, 1.0)
_RED: Rgba = (1.0, 0.0, 0.0, 1.0)
_GREEN: Rgba = (0.0, 1.0, 0.0, 1.0)
_MARGIN = 5


def figures_of(rules: AnalyticsRules, here: SourceRules, analytics: FrameAnalytics) -> list[Figure]:
    """Figures of one frame.

    Args:
        rules: say what is drawn.
        here: the rules of its source, in its pixels.
        analytics: the counts.
    """
    figures: list[Figure] = []
    if rules.drawn != "nothing":
        figures += shapes_of(here)
        figures += _captions(here, analytics, rules.text_size, counts=rules.drawn == "counts")
    if rules.draw_classes:
        numbers = "".join(f" ClassId{class_id}={n}" for class_id, n in analytics.classes.items())
        figures.append(Caption(f"Count for{numbers}", _MARGIN, _MARGIN, _YELLOW, rules.text_size))
    return figures


@lru_cache(64)
def shapes_of(here: SourceRules) -> tuple[Stroke, ...]:
    """Polygons, lines and arrows of the rules of a source."""
    shapes = [Stroke(r.points, _YELLOW, closed=True) for r in here.regions]
    shapes += [Stroke(c.points, _ORANGE, closed=True) for c in here.crowds]
    shapes += [Stroke((h.start, h.end), _RED, arrow=True) for h in here.headings]
    for line in here.lines:
        shapes.append(Stroke((line.start, line.end), _GREEN))
        if line.toward is not None:
            shapes.append(Stroke(line.toward, _GREEN, arrow=True))
    return tuple(shapes)


def _captions(
    here: SourceRules, analytics: FrameAnalytics, size: int, *, counts: bool
) -> list[Caption]:
    captions = []

    def add(text: str, position: Point, color: Rgba) -> None:
        captions.append(Caption(text, *position, color, size))

    for region in here.regions:
        number = f"={analytics.inside[region.name]}" if counts else ""
        add(f"{region.name}{number}", _corner(region.points), _YELLOW)
    for crowd in here.crowds:
        state = (
            f" OverCrowding={analytics.crowded[crowd.name]}, Count={analytics.inside[crowd.name]}"
        )
        add(f"{crowd.name}{state if counts else ''}", _corner(crowd.points), _ORANGE)
    for heading in here.headings:
        add(heading.name, heading.start, _RED)
    for line in here.lines:
        number = f"={analytics.crossed_total.get(line.name, 0)}" if counts else ""
        add(f"{line.name}{number}", _end(line), _GREEN)
    return captions


def _corner(points: tuple[Point, ...]) -> Point:
    """Where the original puts the text of a polygon."""
    return points[0][0], points[1][1]


def _end(line: Line) -> Point:
    return line.end
