"""Charts put values where the axes say, and names as text."""

from __future__ import annotations

import re

import numpy as np
import pytest

from headrace._core.pages import Series, line_chart
from headrace._core.pages.charts import HEIGHT, WIDTH


def _points(svg: str) -> list[list[tuple[float, float]]]:
    lines = re.findall(r'points="([^"]*)"', svg)
    return [[tuple(map(float, p.split(","))) for p in line.split()] for line in lines]  # type: ignore[misc]


def test_corners_of_the_ranges_are_corners_of_the_axes() -> None:
    chart = line_chart(
        [Series("a", [0, 10], [5, 15])], x_label="x", y_label="y", x_range=(0, 10), y_range=(5, 15)
    )
    ((left, bottom), (right, top)) = _points(chart)[0]
    assert 0 < left < right < WIDTH
    assert 0 < top < bottom < HEIGHT
    assert f"M{left:.1f} " in chart
    assert f" {bottom:.1f}H" in chart


def test_values_outside_stay_on_the_edge_and_nan_is_left_out() -> None:
    chart = line_chart([Series("a", [-1, np.nan, 2], [0, 0, 0])], x_label="x", y_label="y")
    inside = line_chart([Series("a", [0, 1], [0, 0])], x_label="x", y_label="y")
    assert _points(chart) == _points(inside)


def test_long_lines_keep_their_ends() -> None:
    x = np.linspace(0, 1, 10_000)
    points = _points(line_chart([Series("a", x, x)], x_label="x", y_label="y"))[0]
    ends = _points(line_chart([Series("a", [0, 1], [0, 1])], x_label="x", y_label="y"))[0]
    assert len(points) <= 400
    assert [points[0], points[-1]] == ends


def test_names_are_text() -> None:
    chart = line_chart([Series("<b>", [0], [0])], x_label='"x"', y_label="a&b")
    assert "<b>" not in chart
    assert "&lt;b&gt;" in chart
    assert "a&amp;b" in chart


@pytest.mark.parametrize("span", [(1.0, 1.0), (2.0, 1.0)])
def test_an_empty_axis_is_refused(span: tuple[float, float]) -> None:
    with pytest.raises(ValueError, match="no length"):
        line_chart([], x_label="x", y_label="y", x_range=span)


def test_unequal_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match=r"\(2,\) and y \(1,\)"):
        line_chart([Series("a", [0, 1], [0])], x_label="x", y_label="y")


@pytest.mark.parametrize(
    ("most", "ticks"),
    [
        (1, ["0", "0.2", "0.4", "0.6", "0.8", "1"]),
        (9.96, ["0", "2", "4", "6", "8"]),
        (12_800, ["0", "5k", "10k"]),
        (4_999_000, ["0", "1M", "2M", "3M", "4M"]),
    ],
)
def test_ticks_are_short(most: float, ticks: list[str]) -> None:
    chart = line_chart([], x_label="x", y_label="y", y_range=(0, most))
    assert re.findall(r'text-anchor="end">([^<]+)<', chart) == ticks
