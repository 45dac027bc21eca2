"""Figures of several configs side by side, as texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from headrace._core.json_record import finite

if TYPE_CHECKING:
    from headrace.diagnose.evaluate.report import ConfigScores


def compared(values: Sequence[float | None]) -> list[str]:
    """`0.812`, from the second on as `0.843 (+0.031)`; a dash for an unknown value."""
    texts, first = [], finite(values[0] if values else None, 6)
    for index, value in enumerate(values):
        known = finite(value, 6)
        text = "—" if known is None else f"{known:.3f}"
        if index and known is not None and first is not None:
            text += f" ({known - first:+z.3f})"
        texts.append(text)
    return texts


def figure_text(value: float | None) -> str:
    """`0.812`; a dash for an unknown value."""
    return "—" if value is None or value != value else f"{value:.3f}"


def class_rows(results: Sequence[ConfigScores]) -> tuple[list[str], list[list[str]]]:
    """The main figure of each known class by config: the heads, and a row of texts for each."""
    names = list(dict.fromkeys(c.name for r in results for c in r.scores.classes))
    columns = [{c.name: class_figure(c) for c in r.scores.classes} for r in results]
    values = {name: [column.get(name) for column in columns] for name in names}
    known = {n: v for n, v in values.items() if any(finite(x, 6) is not None for x in v)}
    rows = [[name, *compared(row)] for name, row in known.items()]
    return ["class", *(r.name for r in results)], rows


def class_figure(one: object) -> float:
    """Average precision, accuracy or intersection over union of a class."""
    for name in ("ap", "iou", "accuracy"):
        if hasattr(one, name):
            return float(getattr(one, name))
    raise TypeError(type(one).__name__)
