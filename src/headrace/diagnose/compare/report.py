"""The HTML report of a comparison."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace._core.pages import Series, image_uri, line_chart, render_page
from headrace.diagnose.compare.layers import DEPARTS_BELOW_DB
from headrace.diagnose.compare.matching import Spread
from headrace.diagnose.compare.stage_drift import FrameDrift, StageDrift, signal
from headrace.diagnose.evaluate.box_matching import Scored

if TYPE_CHECKING:
    from headrace.diagnose.compare.comparison import Comparison

_TOP_DB = 150.0  # equal bits, in the chart
_MOST_LAYERS = 20


def comparison_page(result: Comparison) -> str:
    """The report as one HTML page, images inside."""
    return render_page(
        "compare.html",
        title="Comparison of two models",
        result=result,
        spreads=[
            (name, *(f"{v:.4f}" for v in Spread.of(values)))
            for name, values in (
                ("score difference", result.total.score_changes),
                ("1 − IoU", 1 - result.total.ious),
            )
        ],
        stages=[_stage_row(result, stage) for stage in result.stages],
        layers=_layer_rows(result),
        chart=_chart(result),
        times=[t.row for t in result.times],
        frames=[_frame(result, entry) for entry in result.worst],
        reasons=[(title, counts.most_common()) for title, counts in
                 (("Boxes that B lacks", result.lost), ("Boxes that A lacks", result.new))
                 if counts],
    )  # fmt: skip


def _stage_row(result: Comparison, stage: StageDrift) -> dict[str, object]:
    effect = stage.effect
    moved = effect.beyond(result.tolerance) - effect.only_a - effect.only_b
    return {
        "name": stage.name,
        "state": result.state_of(stage),
        "signal": signal(stage.decibels),
        "lost": effect.only_a,
        "new": effect.only_b,
        "moved": moved,
        "keys": [(k.key, k.a or "—", k.b or "—") for k in stage.keys],
        "note": stage.note,
    }


def _layer_rows(result: Comparison) -> list[tuple[str, ...]]:
    if result.layers is None:
        return []
    tensors, first = result.layers.tensors, result.layers.first
    most = sorted(tensors, key=lambda t: (t is not first, -t.loss))[:_MOST_LAYERS]
    return [
        (
            t.name, t.node, t.operator, t.precision, "x".join(map(str, t.shape)),
            signal(t.decibels), f"{t.loss:.1f}", f"{t.largest:.3g}",
        )
        for t in tensors if t in most
    ]  # fmt: skip


def _chart(result: Comparison) -> Any:
    tensors = () if result.layers is None else result.layers.tensors
    if len(tensors) < 2:
        return ""
    values = [min(max(t.decibels, 0.0), _TOP_DB) for t in tensors]
    end = float(len(tensors) - 1)
    return line_chart(
        [
            Series("B against A", np.arange(len(tensors)), values),
            Series(f"departs below {DEPARTS_BELOW_DB:.0f} dB", [0, end], [DEPARTS_BELOW_DB] * 2),
        ],
        x_label="tensor, in the order of the graph",
        y_label="signal to noise, dB",
        x_range=(0, end),
        y_range=(0, _TOP_DB),
    )


def _frame(result: Comparison, entry: FrameDrift) -> dict[str, Any]:
    frame = entry.frame
    alone_a, alone_b = set(entry.pairs.only_a.tolist()), set(entry.pairs.only_b.tolist())
    caption = f"{frame.source or 'image'}, frame {frame.frame}: {entry.beyond} differ, "
    caption += f"{len(alone_a)} only in A, {len(alone_b)} only in B"
    boxes = [*_boxes(entry.a, alone_a, result.labels[0], "a"),
             *_boxes(entry.b, alone_b, result.labels[1], "b")]  # fmt: skip
    if result.unit != "boxes":  # attributes have no place in the image
        caption, boxes = "; ".join([caption, *(one["text"] for one in boxes)]), []
    return {
        "uri": image_uri(frame.to_rgb()),
        "width": frame.width,
        "height": frame.height,
        "boxes": boxes,
        "caption": caption,
    }


def _boxes(
    objects: Scored, alone: set[int], labels: Mapping[int, str], side: str
) -> Iterator[dict[str, Any]]:
    for row, (box, class_id, score) in enumerate(
        zip(objects.boxes.tolist(), objects.class_ids.tolist(), objects.scores.tolist(),
            strict=True)
    ):  # fmt: skip
        if not np.isfinite(box).all():
            continue
        name = labels.get(class_id) or f"class {class_id}"
        yield {
            "side": side,
            "alone": row in alone,
            "box": [round(v, 1) for v in (*box[:2], max(box[2], 0.0), max(box[3], 0.0))],
            "text": f"{side.upper()}: {name} {score:.2f}",
        }
