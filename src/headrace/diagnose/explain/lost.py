"""Candidates that did not become objects, each object once: doubles are left out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from headrace._core.json_record import finite
from headrace.diagnose.explain.records import CandidateFate, ClassStages
from headrace.diagnose.explain.verdicts import SAME, fate_verdict
from headrace.infer.candidates import Candidates, FateStage
from headrace.infer.parsers.labels import class_name
from headrace.meta.detections import overlaps

if TYPE_CHECKING:
    from headrace.config import ModelConfig

_FAINT = 0.25  # scores below this part of their threshold are noise

_THRESHOLD, _TOPK, _OBJECT = map(
    list(FateStage).index, (FateStage.THRESHOLD, FateStage.TOPK, FateStage.OBJECT)
)


def lost_rows(candidates: Candidates, most: int) -> list[tuple[int, int]]:
    """Find dropped candidates that overlap no object and no better dropped one of their class.

    Those that the threshold let pass come first, then the hidden ones, by score.

    Args:
        candidates: of one item.
        most: how many are wanted at most.

    Returns:
        For each its row, and the number of dropped candidates that it stands for beside itself.
    """
    stages, detections = candidates.stages(), candidates.detections
    scores = np.nan_to_num(detections.scores, nan=-1.0)
    hidden = stages == _THRESHOLD
    order = np.lexsort((-scores, hidden, stages != _OBJECT))
    left = np.ones(len(detections), np.bool_)
    lost: list[tuple[int, int]] = []
    for row in order.tolist():
        if not left[row] or len(lost) >= most:
            continue
        same = left & (detections.class_ids == detections.class_ids[row])
        indices = np.flatnonzero(same)
        near = indices[overlaps(detections.boxes[indices], detections.boxes[[row]])[:, 0] >= SAME]
        left[near] = False
        left[row] = False
        if stages[row] != _OBJECT:
            lost.append((row, max(0, len(near) - 1)))
    return lost


def candidate_fate(
    cfg: ModelConfig,
    candidates: Candidates,
    row: int,
    labels: Sequence[str],
    *,
    item: int = -1,
    others: int = 0,
) -> CandidateFate:
    """Put one candidate into a record.

    Args:
        cfg: of the detector.
        candidates: of one item.
        row: the candidate.
        labels: names of the classes.
        item: the object in whose crop it was found, or -1.
        others: dropped candidates around it.
    """
    fate = candidates.fate(row)
    after = None
    if fate.stage is FateStage.THRESHOLD and candidates.lowered.objects[row] < 0:
        lowered = candidates.fate(row, lowered=True)
        if lowered.stage is not FateStage.THRESHOLD:
            after = fate_verdict(cfg, candidates, row, lowered, labels)
    detections, telling = candidates.detections, fate.stage is not FateStage.OBJECT
    if fate.key == "pre-cluster-threshold":
        # from a limit of 1 on it hides a class on purpose
        limit, value = fate.limit or 0.0, fate.value or 0.0
        telling = limit < 1 and value >= _FAINT * limit and after is None
    left, top, width, height = (finite(v) or 0.0 for v in candidates.rects[row].tolist())
    return CandidateFate(
        item,
        row,
        int(detections.class_ids[row]),
        class_name(labels, int(detections.class_ids[row])),
        finite(float(detections.scores[row])) or 0.0,
        (left, top, width, height),
        fate_verdict(cfg, candidates, row, fate, labels),
        after,
        others,
        telling,
    )


def class_stages(every: Sequence[Candidates], labels: Sequence[str]) -> tuple[ClassStages, ...]:
    """Count the boxes left after each step, by class.

    A box made of several counts once from clustering on.

    Args:
        every: the candidates of each item.
        labels: names of the classes.
    """
    counts: dict[int, list[int]] = {}
    for candidates in every:
        stages, decided = candidates.stages(), candidates.actual
        class_ids = candidates.detections.class_ids
        clustered = np.zeros(len(candidates), np.bool_)  # one row for each output
        outputs = np.flatnonzero(decided.outputs >= 0)
        clustered[outputs[np.unique(decided.outputs[outputs], return_index=True)[1]]] = True
        steps = (
            np.ones(len(candidates), np.bool_),
            stages > _THRESHOLD,
            clustered | (stages == _TOPK),
            clustered,
            clustered & (decided.objects >= 0),
        )
        for index, left in enumerate(steps):
            for class_id, number in zip(
                *np.unique(class_ids[left], return_counts=True), strict=True
            ):
                counts.setdefault(int(class_id), [0] * len(steps))[index] += int(number)
    return tuple(
        ClassStages(class_id, class_name(labels, class_id), *numbers)
        for class_id, numbers in sorted(counts.items())
    )
