"""Readings of models of Ultralytics: the metadata name the task, the outputs tell the form.

A file holds either a column for each anchor, or the rows of a selection in the graph (`nms=True`,
and the end-to-end form of YOLO26 and YOLOv10). The metadata do not tell which: `end2end` came with
8.4.0, and a row of six columns is no proof where a model has two classes.
"""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np

from headrace.infer.recognise.exporters import selects
from headrace.infer.recognise.heads import (
    HeadReading,
    View,
    class_reading,
    headed,
    judged,
    scores_counted,
)
from headrace.infer.recognise.maps import depth_map, maps
from headrace.infer.recognise.names import names_in

_MOST_ROWS = 1000  # a selection keeps at most 300 by default
_UNIT = 2.0  # boxes in 0..1 reach a little further than 1


def by_task(view: View) -> list[HeadReading]:
    """Readings of the task that the metadata name; empty if no built-in parser has one."""
    task = view.evidence.metadata.get("task", "detect")
    why = f"metadata task: {task}"
    shape = view.items[0].shape
    match task:
        case "classify":
            one = len(view.items) == 1 and view.items[0].dtype.kind == "f"
            return [class_reading(view, why)] if one and len(shape) == 1 else []
        case "segment":
            if _selected(view, 6 + _prototypes(view)):
                return _final(view, "HeadraceParseYoloEndSeg", "YOLO segmentation", why)
            return headed(view, "HeadraceParseYoloV8Seg", "YOLO segmentation", why)
        case "obb":
            words = "YOLO, rotated boxes"
            if _selected(view, 7):
                return _final(view, "HeadraceParseYoloEndObb", words, why, rotated=True)
            return headed(view, "HeadraceParseYoloObb", words, why, rotated=True)
        case "pose":
            return _poses(view, why)
        case "semantic":
            return [_with_background(view, reading) for reading in maps(view) or []]
        case "depth":
            return [depth_map(why)]
        case "detect":
            return _boxes(view, why)
    return []


def _selected(view: View, width: int) -> bool:
    """Whether the first output holds the rows of a selection, each of so many values."""
    shape = view.items[0].shape
    if len(shape) != 2 or shape[1] != width or not isinstance(shape[0], int):
        return False
    return shape[0] <= _MOST_ROWS or bool(view.evidence.operators & {"TopK", "NonMaxSuppression"})


def _final(view: View, parser: str, words: str, why: str, **more: bool) -> list[HeadReading]:
    """The reading of rows that are final boxes; their classes are those that the metadata name."""
    found = headed(view, parser, f"{words} with NMS inside", why, **more)
    count = view.names or None
    return [replace(r, classes=count, counted="", suppressed=True) for r in found]


def _prototypes(view: View) -> int:
    """How many maps the masks are weighted sums of; 0 without a second output of maps."""
    maps = [item.shape for item in view.items[1:] if len(item.shape) == 3]
    return int(maps[0][0] or 0) if maps else 0


def _with_background(view: View, reading: HeadReading) -> HeadReading:
    """A map of one class holds 1 where it is, and 0 elsewhere."""
    named = names_in(view.evidence.metadata)
    if reading.parser != "HeadraceParseClassMap" or named is None or len(named[0]) != 1:
        return reading
    why = f"{reading.why}, of one class: 0 is no object"
    return replace(reading, classes=2, own_names=("background", *named[0]), why=why)


def _boxes(view: View, why: str) -> list[HeadReading]:
    shape = view.items[0].shape
    final = selects(view.evidence.metadata) or view.names != 2
    if len(shape) == 2 and shape[1] == 6 and final:
        rows = np.asarray(view.probe()[view.items[0].name], np.float64)
        reach = float(np.percentile(np.abs(rows[:, :4]), 95)) if rows.size else _UNIT + 1
        if reach <= _UNIT:
            why += f", boxes reach {reach:.3g}"
            return _final(view, "HeadraceParseRTDETREnd", "RT-DETR", why)
        return _final(view, "NvDsInferParseYolo", "YOLO", why)
    if view.names and shape[-1] == 5 + view.names and shape[0] != 4 + view.names:
        return headed(view, "HeadraceParseYoloV5", "YOLOv5 detector", why)
    if view.names and len(shape) == 2 and shape[1] == 4 + view.names != shape[0]:
        queries = judged(view, "HeadraceParseRTDETR")
        if queries is not None:
            words = f"{why}; {queries.why}"
            return [replace(queries, words="RT-DETR", why=words, suppressed=True)]
    if view.evidence.joined.get(view.items[0].name, ("",))[0] == "Div":
        return headed(
            view, "HeadraceParseYoloV8Unit", "YOLO detector", f"{why}, boxes are divided at the end"
        )
    return headed(view, "HeadraceParseYoloV8", "YOLO detector", why)


def _poses(view: View, why: str) -> list[HeadReading]:
    """A pose model; its metadata name points and values of each: `[17, 3]`."""
    text = view.evidence.metadata.get("kpt_shape", "")
    points = [int(number) for number in re.findall(r"\d+", text)]
    if len(points) != 2 or points[1] not in (2, 3):
        return []
    count, each = points
    if each == 2 and count % 3 == 0:  # the parsers take 3 numbers a point where they can
        return []
    why = f"{why}, {count} points of {'x, y, score' if each == 3 else 'x, y'}"
    if _selected(view, 6 + count * each):
        return _final(view, "HeadraceParseYoloEndPose", "YOLO pose", why)
    found = headed(view, "HeadraceParseYoloV8Pose", "YOLO pose", why)
    rows = min((axis for axis in view.items[0].shape if isinstance(axis, int)), default=0)
    classes = rows - 4 - count * each
    if not found or classes < 1:
        return []
    return [replace(found[0], classes=classes, counted=scores_counted(classes))]
