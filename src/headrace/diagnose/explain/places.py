"""The question about one place of the frame: the best candidate there, and its history."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from headrace.diagnose.explain.lost import candidate_fate
from headrace.diagnose.explain.records import (
    Box,
    CandidateFate,
    ItemResult,
    PlaceAnswer,
    SkippedObject,
)
from headrace.diagnose.explain.verdicts import SAME
from headrace.infer.parsers.labels import class_name

if TYPE_CHECKING:
    from headrace.infer.candidates import Candidates
    from headrace.infer.geometry import Rect
    from headrace.infer.inferencer import Inferencer
    from headrace.infer.trace import FrameTrace, ItemTrace

_MOST = 5
_LOOKED_AT = 300  # candidates of an item at one place, most of them doubles


def answer(
    model: Inferencer,
    trace: FrameTrace,
    at: Box,
    skipped: Sequence[SkippedObject],
    results: Sequence[ItemResult],
    floor: float,
) -> PlaceAnswer:
    """Find the decisions of a model at one place.

    Args:
        model: the model.
        trace: the frame.
        at: left, top, width, height in frame pixels; a point has no size.
        skipped: objects that a secondary model left out.
        results: of its items, for classifiers and segmentation networks.
        floor: the lowest score of a candidate.
    """
    location = f"{at[0]:g},{at[1]:g}" + (f" {at[2]:g}x{at[3]:g}" if at[2] > 0 and at[3] > 0 else "")
    left_out = tuple(one for one in skipped if _touches(one.box, at))
    best: list[tuple[float, int, int]] = []  # score, item, row
    detects = False
    for number, item in enumerate(trace.items):
        if item.candidates is None:
            continue
        detects = True
        rows = item.candidates.at(*at)[:_LOOKED_AT].tolist()
        best += [(-place_, number, row) for place_, row in enumerate(rows)]
    best.sort(key=lambda one: (-one[0], -_score(trace, one)))
    history: list[CandidateFate] = []
    for _, number, row in best:
        if len(history) >= _MOST:
            break
        for one in _chain(model, trace, number, row):
            if not _is_double(one) and not any(_same(one, known) for known in history):
                history.append(one)
    return PlaceAnswer(
        _sentence(location, history, left_out, results, model, trace, at, floor, detects=detects),
        tuple(history),
        left_out,
    )


def _score(trace: FrameTrace, one: tuple[float, int, int]) -> float:
    candidates = trace.items[one[1]].candidates
    assert candidates is not None
    return float(candidates.detections.scores[one[2]])


def _chain(model: Inferencer, trace: FrameTrace, number: int, row: int) -> Iterator[CandidateFate]:
    """A candidate, the one that suppressed it, and so on."""
    item, seen = trace.items[number], set[int]()
    candidates: Candidates | None = item.candidates
    assert candidates is not None
    while row >= 0 and row not in seen:
        seen.add(row)
        yield candidate_fate(model.config, candidates, row, model.labels, item=item.object)
        row = candidates.fate(row).by


def _is_double(one: CandidateFate) -> bool:
    """Whether the candidate that suppressed it shows the same object: that one explains more."""
    last = one.next or one.verdict
    return last.key == "nms-iou-threshold" and last.value is not None and last.value >= SAME


def _same(one: CandidateFate, other: CandidateFate) -> bool:
    """Whether two are one candidate, or were merged into one object."""
    if (one.item, one.row) == (other.item, other.row):
        return True
    both = (one.verdict, other.verdict)
    return both[0] == both[1] and all(verdict.stage == "object" for verdict in both)


def _touches(box: Box | Rect, at: Box) -> bool:
    left, top, width, height = box
    x, y, w, h = at
    across = left < x + max(w, 1e-6) and x < left + width
    return across and top < y + max(h, 1e-6) and y < top + height


def _sentence(
    location: str,
    history: Sequence[CandidateFate],
    skipped: Sequence[SkippedObject],
    results: Sequence[ItemResult],
    model: Inferencer,
    trace: FrameTrace,
    at: Box,
    floor: float,
    *,
    detects: bool,
) -> str:
    if history:
        first = history[0]
        text = f"the best candidate at {location} is {first.name}: {first.verdict}"
        if first.next is not None:
            text += f"; then {first.next}"
        if len(history) > 1 and first.verdict.key == "nms-iou-threshold":
            text += f"; that one: {history[1].verdict}"
        elif first.verdict.stage == "object":
            lost = next((one for one in history[1:] if one.telling), None)
            text += "" if lost is None else f"; dropped there: {lost}"
        return text
    if skipped:
        return f"the model does not look at {skipped[0]}"
    if detects:
        text = f"no candidate of at least {floor:g} is at {location}: the model sees nothing there"
        return f"{text}, or the parser gives nothing"
    there = [item for item in trace.items if item.crop is None or _touches(item.crop, at)]
    if not there:
        return f"the model does not look at {location}"
    item = min(there, key=lambda one: np.inf if one.crop is None else one.crop[2] * one.crop[3])
    if item.error is not None:
        return f"the parser refuses the outputs: {item.error:brief}"
    if item.segmentation is not None and item.transform is not None:
        return _pixel(model, item, at)
    text = next((one.text for one in results if one.object == item.object), "no result")
    return f"{'the whole frame' if item.object < 0 else f'object {item.object}'}: {text}"


def _pixel(model: Inferencer, item: ItemTrace, at: Box) -> str:
    """The class of the pixel in the middle of the place."""
    segmentation, transform = item.segmentation, item.transform
    assert segmentation is not None
    assert transform is not None
    x, y = at[0] + at[2] / 2, at[1] + at[3] / 2
    if item.crop is not None:
        x, y = x - item.crop.left, y - item.crop.top
    column, row = transform.to_network([[x, y, 0, 0]])[0, :2].tolist()
    column = min(
        max(0, int(column * segmentation.width / model.network.width)), segmentation.width - 1
    )
    row = min(
        max(0, int(row * segmentation.height / model.network.height)), segmentation.height - 1
    )
    class_id = int(segmentation.class_map[row, column])
    if class_id < 0:
        limit = model.config.segmentation_threshold
        return f"no class there is above segmentation-threshold={limit:g}"
    return f"the class there is {class_name(segmentation.labels, class_id)}"
