"""Choice among the readings of outputs that look alike: by values, graph and names.

What nothing tells stays in the list, and is asked.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from headrace.infer.recognise import exporters
from headrace.infer.recognise.exporters import MODEL_TYPE
from headrace.infer.recognise.heads import (
    DETR,
    DETR_SOFTMAX,
    ROWS_6,
    TAO_QUERIES,
    YOLOV5,
    YOLOV8,
    HeadReading,
    View,
)
from headrace.infer.recognise.names import COCO, COCO_IDS
from headrace.infer.recognise.values import (
    FCOS,
    ROWS_7,
    YOLOV8_UNIT,
    candidates_of,
    class_numbers_last,
    corners,
)

if TYPE_CHECKING:
    Readings = dict[str, HeadReading]

_CORNERS = "HeadraceParseYoloCorners"
_MOSTLY = 0.8
TWINS = {
    "NvDsInferParseYoloV11": YOLOV8,
    "NvDsInferParseCustomYoloV8": YOLOV8,
    YOLOV8_UNIT: "HeadraceParseRTDETR",
    "NvDsInferParseCustomYoloV4": "NvDsInferParseCustomBatchedNMSTLT",
    "NvDsInferParseYoloV5CustomBatchedNMSTLT": "HeadraceParseEfficientNMS",
    "HeadraceParseEfficientNMSUnit": "NvDsInferParseCustomBatchedNMSTLT",
    "NvDsInferParseCustomSSD": "NvDsInferParseCustomSSDTLT",
    "NvDsInferParseCustomSSDTLT": "NvDsInferParseCustomNMSTLT",
    "NvDsInferParseCustomYoloV2Tiny": "NvDsInferParseCustomYoloV2",
}
"""Heads that find the same boxes -> the one that is taken."""
_SOFTMAX_TYPES = ("detr", "yolos", "table-transformer")
_SIGMOID_TYPES = ("conditional_detr", "deformable_detr", "rt_detr", "rt_detr_v2", "d_fine",
                  "dab-detr", "deta", "rf_detr", "lw_detr", "deim")  # fmt: skip


def told_apart(view: View, kept: Readings) -> Readings:
    """The readings that are left; parser -> reading."""
    for twin, of in TWINS.items():
        if of in kept:
            kept.pop(twin, None)
    for step in _STEPS:
        kept = step(view, kept)
    return kept


def _rows_of_six(view: View, kept: Readings) -> Readings:
    """Rows with a class number are no rows of one or two scores."""
    if ROWS_6 in kept and class_numbers_last(view):
        return {ROWS_6: kept[ROWS_6]}
    told = {name: r for name, r in kept.items() if name in ROWS_7 and "column" in r.why}
    return told or kept


def _queries(view: View, kept: Readings) -> Readings:
    """Logits beside boxes: TAO's, or with and without a logit for no object."""
    tao = view.exporter is exporters.TAO_DETR
    kept = {name: r for name, r in kept.items() if name not in TAO_QUERIES or tao}
    if tao and any(name in kept for name in TAO_QUERIES):
        kept = {name: r for name, r in kept.items() if name not in (DETR, DETR_SOFTMAX)}
        count = kept[next(n for n in TAO_QUERIES if n in kept)].classes
        known = {len(COCO_IDS): TAO_QUERIES[0], len(COCO): TAO_QUERIES[1]}.get(count or 0)
        if known is not None and known in kept:
            why = f"{count} logits: COCO's {'ids' if known == TAO_QUERIES[0] else 'classes'}"
            return {known: replace(kept[known], why=why)}
    if {DETR, DETR_SOFTMAX} <= kept.keys() and (other := _not_of_detr(view)):
        kept.pop(other)
    return kept


def _not_of_detr(view: View) -> str | None:
    """Which of the two readings of logits does not fit; None if both may.

    The last logit of DETR means no object, and wins for most queries of any image. Deformable
    attention and the selection of queries came with the models that have no such logit.
    """
    kind = view.evidence.metadata.get(MODEL_TYPE)
    if kind in _SOFTMAX_TYPES or kind in _SIGMOID_TYPES:
        return DETR if kind in _SOFTMAX_TYPES else DETR_SOFTMAX
    logits = max(view.probe().values(), key=lambda a: np.shape(a)[-1])
    rows = np.asarray(logits, np.float64).reshape(-1, np.shape(logits)[-1])
    last = float((rows.argmax(axis=1) == rows.shape[1] - 1).mean())
    if last > _MOSTLY or rows.shape[1] == len(COCO_IDS) + 1:  # COCO's ids and no object
        return DETR
    return DETR_SOFTMAX if view.evidence.operators & {"GridSample", "TopK"} else None


def _unused_column(view: View, kept: Readings) -> Readings:
    """Column 4 of candidates: always 1, the level of a pyramid, an objectness, or a first class."""
    if FCOS in kept:
        return {FCOS: kept[FCOS]}
    if YOLOV8 not in kept or len(view.items) != 1:
        return kept
    rows = candidates_of(view)
    ordered = corners(rows)
    five = rows[:, 4]
    if YOLOV5 in kept:
        if (five == 1).all():  # YOLOv6
            return {YOLOV5: replace(kept[YOLOV5], why="column 4 is always 1, as YOLOv6 writes it")}
        pair = (YOLOV5, YOLOV8)
        coco = (n for n in pair if kept[n].classes == len(COCO) and not (n == YOLOV5 and ordered))
        if (taken := next(coco, None)) is not None:
            kept = {name: r for name, r in kept.items() if name not in pair or name == taken}
    return kept


def _corners(view: View, kept: Readings) -> Readings:
    """Candidates with corners, where the shapes say centres."""
    if YOLOV8 not in kept:
        return kept
    ordered = corners(candidates_of(view))
    if ordered is False:
        return kept
    old = kept[YOLOV8]
    why = "second corners right of and below the first"
    other = replace(old, parser=_CORNERS, why=why, words="detector of corner boxes")
    rest = {name: r for name, r in kept.items() if name not in (YOLOV8, YOLOV5)}
    return {**rest, _CORNERS: other} if ordered else {**kept, _CORNERS: other}


def _eighty(view: View, kept: Readings) -> Readings:
    """Without names: 80 classes are COCO's, and no accident of another reading."""
    counts = {name: r.classes for name, r in kept.items()}
    if view.names or None in counts.values() or len(COCO) not in counts.values():
        return kept
    return {name: r for name, r in kept.items() if r.classes == len(COCO)}


_STEPS: tuple[Callable[[View, Readings], Readings], ...] = (
    _rows_of_six,
    _queries,
    _unused_column,
    _corners,
    _eighty,
)
