"""The report of an evaluation as one HTML page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from headrace._core.pages import Series, line_chart, render_page
from headrace.diagnose.evaluate.classification import ClassificationScores
from headrace.diagnose.evaluate.confusion import Confusion
from headrace.diagnose.evaluate.detection import ClassDetection, DetectionScores
from headrace.diagnose.evaluate.figures import class_rows, figure_text
from headrace.diagnose.evaluate.operating import OperatingPoint
from headrace.diagnose.evaluate.worst import WorstImages

if TYPE_CHECKING:
    from markupsafe import Markup

    from headrace.diagnose.evaluate.report import ConfigScores, EvaluationReport

_RECALLS = np.linspace(0, 1, 101)
_LINES = 6  # a chart's; further ones would repeat the colours
_MOST_CELLS = 25  # a wider matrix cannot be read
_MISTAKES = 10


def evaluation_page(report: EvaluationReport) -> str:
    """Render figures, curves, confusions and worst images of every config.

    Raises:
        MediaError: an image cannot be read any more.
    """
    several = len(report.results) > 1
    worst = WorstImages(report)
    curves = [
        Series(r.name, _RECALLS, r.scores.coco.curve())
        for r in report.results
        if isinstance(r.scores, DetectionScores)
    ]
    class_heads, by_class = class_rows(report.results)
    first = report.results[0].scores if report.results else None
    return render_page(
        "evaluate.html",
        title=f"Evaluation on {Path(report.dataset.name).name}",
        dataset=report.dataset,
        notices=report.dataset.notices,
        heads=["", *(r.name for r in report.results)],
        rows=report.rows(),
        class_heads=class_heads,
        class_rows=by_class if several else [],
        class_figure=_class_figure(first),
        curves=_chart(curves) if several and curves else None,
        sections=[_section(r, worst) for r in report.results],
    )


def _class_figure(scores: object) -> str:
    if isinstance(scores, DetectionScores):
        return "AP50-95"
    return "accuracy" if isinstance(scores, ClassificationScores) else "IoU"


def _section(result: ConfigScores, worst: WorstImages) -> dict[str, object]:
    scores = result.scores
    heads, rows = _classes(result)
    section: dict[str, object] = {
        "name": result.name,
        "path": str(result.path),
        "profile": result.profile,
        "notices": result.notices,
        "heads": heads,
        "rows": rows,
        "charts": [],
        "threshold": None,
        "total": None,
        "matrix": _matrix(scores.confusion),
        "mistakes": scores.confusion.mistakes(_MISTAKES),
        "worst": worst.of(result),
    }
    if isinstance(scores, DetectionScores):
        section["charts"] = _curves(scores, result)
        section["threshold"] = scores.threshold
        section["total"] = scores.at_config
    return section


def _classes(result: ConfigScores) -> tuple[list[str], list[list[str]]]:
    """The table of the classes: heads, and texts."""
    scores = result.scores
    if isinstance(scores, DetectionScores):
        heads = ["class", "objects", "AP50-95", "AP50", "small", "medium", "large"]
        heads += ["threshold", "precision", "recall", "F1", "best threshold", "best F1"]
        return heads, [_detection_row(one) for one in scores.seen]
    answers = isinstance(scores, ClassificationScores)
    heads = ["class", "images", "accuracy", "precision"]  # as `ClassAnswers` has them
    rows = [astuple(one) for one in scores.classes]
    texts = [[name, f"{n:,}", *map(figure_text, shares)] for name, n, *shares in rows]
    return heads if answers else ["class", "pixels", "IoU", "accuracy"], texts


def _detection_row(one: ClassDetection) -> list[str]:
    shares = (one.ap, one.ap50, one.small, one.medium, one.large)
    at, best = one.at_config, one.best
    return [
        one.name,
        f"{one.objects:,}",
        *map(figure_text, shares),
        _threshold(at),
        *map(figure_text, (at.precision, at.recall, at.f1)),
        _threshold(best),
        figure_text(best.f1 if best else None),
    ]


def _threshold(point: OperatingPoint | None) -> str:
    return "—" if point is None or point.threshold is None else f"{point.threshold:.3g}"


def _chart(series: Sequence[Series]) -> Markup:
    return line_chart(series, x_label="recall", y_label="precision at IoU 0.5")


def _curves(scores: DetectionScores, result: ConfigScores) -> list[Markup]:
    """The mean curve with the first classes, then the others, at most six lines a chart."""
    lines = [Series("mean of classes", _RECALLS, scores.coco.curve())]
    known = result.classes.known.tolist()
    for one, class_id in zip(scores.classes, known, strict=True):
        if one.objects:
            lines.append(Series(one.name, _RECALLS, scores.coco.curve(class_id)))
    charts = -(-len(lines) // _LINES)
    return [_chart(lines[i * len(lines) // charts : (i + 1) * len(lines) // charts])
            for i in range(charts)]  # fmt: skip


def _matrix(confusion: Confusion) -> dict[str, object] | None:
    """Names, and for each true class a name and (count, per cent of the row); None if too wide."""
    used = np.flatnonzero(confusion.counts.any(axis=0) | confusion.counts.any(axis=1))
    if not len(used) or len(used) > _MOST_CELLS:
        return None
    counts = confusion.counts[np.ix_(used, used)]
    sums = counts.sum(axis=1, keepdims=True).clip(1)
    names = [confusion.names[i] for i in used]
    rows = [
        (name, [(n, round(100 * n / total)) for n in row])
        for name, row, total in zip(names, counts.tolist(), sums[:, 0].tolist(), strict=True)
    ]
    return {"names": names, "rows": rows}
