"""How plausible the results of a set-up are, in figures that multiply, each with its words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace._core.text import counted
from headrace.config.enums import NetworkType
from headrace.diagnose.repair.usual import DIMENSIONS
from headrace.infer.trial.outcome import FrameReading, steadiness
from headrace.meta.detections import overlaps

if TYPE_CHECKING:
    from headrace._core.findings import Finding
    from headrace.diagnose.repair.setup_runs import SetupRun
    from headrace.meta import FrameMeta

TRUE_BOX = "true box"
"""Name of the terms of boxes that the user gives."""

CERTAIN = 0.5
"""Score of a box that proves a reading right."""

_MANY = 60  # more boxes of a frame prove nothing
_TWINS = 0.85  # overlap of boxes that are one object found twice
_TINY = 3.0  # pixels of the network input
_HUGE = 0.9  # of the frame's area
_WEAK = 0.15
_ODD = 0.2  # share of boxes that a right set-up may have, too
_MATCH = 0.5  # overlap with a true box, and factor of one that is found under its label
_LITTLE, _ON_BLANK = 0.05, 0.5  # of a frame's value, in images that show nothing
_DOUBT, _LOST, _REMARK = 0.5, 0.8, 0.93
"""Factors of a finding on boxes or images, of filters that drop most, of a finding on labels."""


@dataclass(frozen=True, slots=True)
class TrueBox:
    """A true box that the user gives.

    Attributes:
        frame: its number in the source.
        label: name or number of its class; empty if it does not matter.
        box: left, top, width, height in frame pixels.
    """

    frame: int
    label: str
    box: tuple[float, float, float, float]


@dataclass(frozen=True, slots=True)
class Term:
    """One factor of a score.

    Attributes:
        name: what is measured.
        factor: 1 changes nothing, less speaks against the set-up.
        words: the reason.
    """

    name: str
    factor: float
    words: str

    @property
    def missed(self) -> bool:
        """Whether it is of a true box that is not found, or under another label."""
        return self.name == TRUE_BOX and self.factor < _MATCH

    def to_dict(self) -> dict[str, Any]:
        """The term as JSON data."""
        return {"name": self.name, "factor": round(self.factor, 4), "words": self.words}


@dataclass(frozen=True, slots=True)
class Plausibility:
    """The score of a set-up: the product of its terms.

    Attributes:
        terms: the factors; the first is the value of what was found.
        boxes: how many objects all frames have.
        frames: in how many some are.
        certain: in how many frames a sound box has a score of `CERTAIN`.
        sound: some boxes are certain, and hardly any can be no object.
        odd: share of boxes that can be no object, or are found twice.
        on_blanks: what images that show nothing have, as a share of that.
        steady: share of objects that are in two frames which follow each other; None if none do.
        mean: score of all boxes.
    """

    terms: tuple[Term, ...]
    boxes: int = 0
    frames: int = 0
    certain: int = 0
    sound: bool = False
    odd: float = 0.0
    on_blanks: float = 0.0
    steady: float | None = None
    mean: float = 0.0

    @property
    def ordinary(self) -> bool:
        """Whether the boxes may be objects, be they few or none."""
        swarm = self.boxes > _MANY * self.frames and self.mean < _WEAK
        return not self.boxes or (self.certain > 0 and self.odd <= _ODD and not swarm)

    @property
    def clean(self) -> bool:
        """Whether hardly anything is found in images that show nothing."""
        return self.on_blanks < _ON_BLANK

    @property
    def score(self) -> float:
        """The product of the factors."""
        return float(np.prod([term.factor for term in self.terms]))

    def to_dict(self) -> dict[str, Any]:
        """The figures as JSON data."""
        return {
            "score": round(self.score, 4),
            "boxes": self.boxes,
            "frames_with_boxes": self.frames,
            "sound": self.sound,
            "on_blanks": round(self.on_blanks, 3),
            "steady": None if self.steady is None else round(self.steady, 3),
            "terms": [term.to_dict() for term in self.terms],
        }


def plausibility(run: SetupRun, truths: Sequence[TrueBox] = ()) -> Plausibility:
    """Score the results of a set-up.

    Boxes count by the square of their score; those that cannot be objects (tiny, as large as the
    frame, of no probability, found twice) count against it. What is found in images that show
    nothing, and findings of a run, make it less; a true box decides.
    """
    if run.error is not None:
        return Plausibility((Term("runs", 0.0, f"it does not run: {run.error:brief}"),))
    if run.config.network_type not in (
        NetworkType.DETECTOR,
        NetworkType.INSTANCE_SEGMENTATION,
    ):
        return _of_results(run)
    frames = [_measured(meta, run) for meta in run.metas]
    values = [frame.value for frame in frames]
    value = sum(values) / max(1, len(values))
    count = sum(frame.count for frame in frames)
    odd = sum(frame.odd for frame in frames)
    twins = sum(frame.twins for frame in frames)
    scores = np.concatenate(
        [meta.objects.confidences for meta in run.metas] or [np.empty(0, np.float32)]
    )
    mean = float(np.nan_to_num(np.clip(scores, 0, 1)).mean()) if count else 0.0
    words = f"{counted(count, 'box')} in {counted(len(frames), 'frame')}"
    words += f", mean score {mean:.2f}" if count else ""
    words += f", {odd} of them no objects" if odd else ""
    words += f", {twins} found twice" if twins else ""
    share = (odd + twins) / count if count else 0.0
    clean = max(0.0, value) / (1 + max(0.0, value)) * mean * (1 - share) ** 2
    terms = [Term("objects", clean, words)]
    on_blanks = _on_blanks(run, value)
    if on_blanks >= _LITTLE:
        words = f"images that show nothing have {on_blanks:.0%} of that"
        terms.append(Term("blank images", max(0.02, 1 - on_blanks), words))
    steady = _steadiness(run.metas) if run.moving else None
    if steady is not None:
        words = f"{steady:.0%} of the objects are in the next frame, too"
        terms.append(Term("steadiness", 0.9 + 0.1 * steady, words))
    terms += _findings(run)
    terms += [_true_box(truth, run) for truth in truths]
    certain = sum(frame.certain for frame in frames)
    seen = sum(frame.count > 0 for frame in frames)
    sound = certain >= max(1, min(2, len(frames))) and share <= _ODD
    sound &= all(frame.count <= _MANY for frame in frames)
    return Plausibility(tuple(terms), count, seen, certain, sound, share, on_blanks, steady, mean)


@dataclass(frozen=True, slots=True)
class _Measured:
    """Figures of one frame."""

    count: int
    odd: int
    twins: int
    value: float
    certain: bool


def _measured(meta: FrameMeta, run: SetupRun) -> _Measured:
    rects, raw = meta.objects.rects, meta.objects.confidences
    if not len(rects):
        return _Measured(0, 0, 0, 0.0, False)
    scores = np.nan_to_num(raw.astype(np.float64), nan=0.0)
    w, h = rects[:, 2].astype(np.float64), rects[:, 3].astype(np.float64)
    least = _TINY
    if run.network is not None:
        ratio = max(meta.width / run.network.width, meta.height / run.network.height)
        least = max(1.0, _TINY * ratio * 0.9)
    odd = (w * h > _HUGE * meta.width * meta.height) | (w < least) | (h < least)
    odd |= (scores > 1.001) | (scores <= 0) | ~np.isfinite(raw)
    if len(scores) > 1 and (scores == 1).all():
        odd[:] = True  # class numbers that are read as scores
    order = np.argsort(-scores, kind="stable")[: 4 * _MANY]
    ious = np.triu(overlaps(rects[order].astype(np.float64), rects[order].astype(np.float64)), 1)
    twins = np.zeros(len(rects), np.bool_)
    if meta.objects.angles is None:
        twins[order] = (ious > _TWINS).any(axis=0)
    good = ~odd & ~twins
    value = float((np.clip(scores[good], 0, 1) ** 2).sum())
    weak = int((good & (scores < _WEAK)).sum())
    value -= 0.5 * int(odd.sum()) + 0.3 * int((twins & ~odd).sum()) + 0.1 * weak
    if len(rects) > _MANY:
        value = 0.0
    certain = bool((good & (scores >= CERTAIN)).any())
    return _Measured(len(rects), int(odd.sum()), int((twins & ~odd).sum()), value, certain)


def _on_blanks(run: SetupRun, value: float) -> float:
    """The value of boxes in images that show nothing, as a share of that of a frame."""
    if not run.blanks or value <= 0:
        return 0.0
    scores = (np.clip(meta.objects.confidences, 0, 1) for meta in run.blanks)
    return float(max(float((s**2).sum()) for s in scores)) / value


def _steadiness(metas: Sequence[FrameMeta]) -> float | None:
    """The share of objects that are there in the following frame, too; None if no frames follow."""
    readings = [
        FrameReading(len(o), len(o), rects=o.rects, class_ids=o.class_ids)
        for o in (meta.objects for meta in metas)
    ]
    rows = enumerate(pairwise(metas))
    pairs = [(i, i + 1) for i, (one, other) in rows if other.frame == one.frame + 1]
    return steadiness(readings, pairs, "boxes")


def against(run: SetupRun) -> list[Finding]:
    """The findings of a run that speak of its results, the first of each rule."""
    first = {finding.code: finding for finding in reversed(run.findings)}
    return [first[c] for c in dict.fromkeys(f.code for f in run.findings) if c in DIMENSIONS]


def _findings(run: SetupRun) -> list[Term]:
    """A term for each rule that found something, and one for boxes that filters drop."""
    terms = []
    for finding in against(run):
        factor = _REMARK if DIMENSIONS[finding.code] == "labels" else _DOUBT
        terms.append(Term("finding", factor, f"a run finds {finding.code}"))
    if run.losses.reasons:
        terms.append(Term("losses", _LOST, run.losses.reasons[0]))
    return terms


def _true_box(truth: TrueBox, run: SetupRun) -> Term:
    """The term of a box that the user gives."""
    words = f"frame {truth.frame}: no box is where the true one is"
    meta = next((meta for meta in run.metas if meta.frame == truth.frame), None)
    if meta is None or not len(meta.objects):
        return Term(TRUE_BOX, 0.05, words)
    ious = overlaps(np.array([truth.box]), meta.objects.rects.astype(np.float64))[0]
    best = int(ious.argmax())
    if ious[best] < _MATCH:
        return Term(TRUE_BOX, 0.05, f"{words} (overlap {ious[best]:.2f})")
    label = meta.objects.label(best)
    named = truth.label.casefold() in ("", label.casefold(), str(meta.objects.class_ids[best]))
    words = f"frame {truth.frame}: the true box is found (overlap {ious[best]:.2f})"
    if named:
        return Term(TRUE_BOX, float(ious[best]), words)
    return Term(TRUE_BOX, 0.3 * float(ious[best]), f"{words}, as {label or 'another class'}")


def _of_results(run: SetupRun) -> Plausibility:
    """Labels, class maps and raw tensors: that there are some; a network is sure of nonsense."""
    count = 0
    for meta in run.metas:
        count += len(meta.objects.classifiers) + sum(
            bool((one.class_map >= 0).any()) for one in meta.segmentations
        )
    frames = len(run.metas)
    share = min(1.0, count / max(1, frames))
    words = f"{counted(count, 'result')} in {counted(frames, 'frame')}"
    terms = (Term("results", 0.05 + 0.95 * share, words), *_findings(run))
    return Plausibility(terms, count, count, count, sound=share > 0.5)
