"""Line charts as SVG, drawn in the colours of the page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from markupsafe import Markup, escape

WIDTH, HEIGHT = 480, 320  # units of the view box; the page scales it
_LEFT, _RIGHT, _TOP, _BOTTOM = 56, 12, 12, 40
_COLOURS = 6  # `--c0` … `--c5` of the style sheet
_MOST_POINTS = 400  # more than a screen can show


@dataclass(frozen=True, slots=True)
class Series:
    """One line of a chart.

    Attributes:
        name: for the legend.
        x, y: (N,) each; points with NaN are left out.
    """

    name: str
    x: npt.ArrayLike
    y: npt.ArrayLike


def line_chart(
    series: Sequence[Series],
    *,
    x_label: str,
    y_label: str,
    x_range: tuple[float, float] = (0.0, 1.0),
    y_range: tuple[float, float] = (0.0, 1.0),
) -> Markup:
    """Draw lines over two axes.

    Args:
        series: drawn in turn; colours repeat after six, dashes tell the rounds apart.
        x_label, y_label: names of the axes, with units.
        x_range, y_range: least and greatest value of each axis.

    Raises:
        ValueError: a range is empty, or `x` and `y` of a series differ in length.
    """
    for low, high in (x_range, y_range):
        if not low < high:
            raise ValueError(f"an axis from {low} to {high} has no length")
    parts = [_axes(x_label, y_label, x_range, y_range)]
    parts += [_line(number, one, x_range, y_range) for number, one in enumerate(series)]
    legend = Markup("").join(
        Markup('<li><span class="key" style="background:var(--c{})"></span>{}</li>').format(
            number % _COLOURS, one.name
        )
        for number, one in enumerate(series)
    )
    label = f"{y_label} over {x_label}: {', '.join(one.name for one in series)}"
    return Markup(
        '<figure class="chart"><svg viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>'
        '<ul class="legend">{}</ul></figure>'
    ).format(WIDTH, HEIGHT, label, Markup("").join(parts), legend)


def _place(
    values: npt.NDArray[np.float64], span: tuple[float, float], start: float, end: float
) -> npt.NDArray[np.float64]:
    share = (np.clip(values, *span) - span[0]) / (span[1] - span[0])
    return start + share * (end - start)


def _line(
    number: int, one: Series, x_range: tuple[float, float], y_range: tuple[float, float]
) -> Markup:
    x, y = np.asarray(one.x, np.float64), np.asarray(one.y, np.float64)
    if x.shape != y.shape or x.ndim != 1:
        raise ValueError(f"{one.name}: x is {x.shape} and y {y.shape}; both must be (N,)")
    known = np.isfinite(x) & np.isfinite(y)
    x, y = x[known], y[known]
    if len(x) > _MOST_POINTS:
        kept = np.linspace(0, len(x) - 1, _MOST_POINTS).round().astype(int)
        x, y = x[kept], y[kept]
    columns = _place(x, x_range, _LEFT, WIDTH - _RIGHT)
    rows = _place(y, y_range, HEIGHT - _BOTTOM, _TOP)
    points = " ".join(f"{c:.1f},{r:.1f}" for c, r in zip(columns, rows, strict=True))
    dash = ' stroke-dasharray="6 4"' if number // _COLOURS % 2 else ""
    return Markup('<polyline points="{}" style="stroke:var(--c{})"{}/>').format(
        points, number % _COLOURS, Markup(dash)
    )


def _axes(
    x_label: str, y_label: str, x_range: tuple[float, float], y_range: tuple[float, float]
) -> Markup:
    right, bottom = WIDTH - _RIGHT, HEIGHT - _BOTTOM
    axes = f"M{_LEFT:.1f} {_TOP}V{bottom}M{_LEFT} {bottom:.1f}H{right}"
    parts = [f'<path class="grid" d="{axes}"/>']
    ticks = _ticks(x_range)
    for value, column in zip(ticks, _place(ticks, x_range, _LEFT, right), strict=True):
        parts.append(
            f'<path class="grid" d="M{column:.1f} {_TOP}V{bottom}"/>'
            f'<text x="{column:.1f}" y="{bottom + 16}" text-anchor="middle">{_tick(value)}</text>'
        )
    ticks = _ticks(y_range)
    for value, row in zip(ticks, _place(ticks, y_range, bottom, _TOP), strict=True):
        parts.append(
            f'<path class="grid" d="M{_LEFT} {row:.1f}H{right}"/>'
            f'<text x="{_LEFT - 6}" y="{row + 4:.1f}" text-anchor="end">{_tick(value)}</text>'
        )
    middle = (_TOP + bottom) / 2
    parts.append(
        f'<text x="{(_LEFT + right) / 2:.0f}" y="{HEIGHT - 6}" text-anchor="middle">'
        f'{escape(x_label)}</text><text transform="translate(12 {middle:.0f}) rotate(-90)" '
        f'text-anchor="middle">{escape(y_label)}</text>'
    )
    return Markup("".join(parts))


def _ticks(span: tuple[float, float]) -> npt.NDArray[np.float64]:
    """Where lines of the grid are: three to six multiples of 1, 2 or 5 times a power of ten."""
    step = (span[1] - span[0]) / 5
    power = 10.0 ** np.floor(np.log10(step))
    step = power * next(n for n in (1, 2, 5, 10) if n * power >= step * (1 - 1e-9))
    first, last = np.ceil(span[0] / step - 1e-9), np.floor(span[1] / step + 1e-9)
    ticks: npt.NDArray[np.float64] = np.arange(first, last + 1) * step + 0.0  # no -0
    return ticks


def _tick(value: float) -> str:
    """The number at a line of the grid in at most six characters: 0.25, 890, 2.56k, 13M."""
    for unit in ("", "k", "M", "G", "T"):
        if abs(value) < 999.5 or unit == "T":
            break
        value /= 1000
    return f"{value:.3g}{unit}"
