"""Result of a comparison: stages, drift of boxes, layers, times, and the verdict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, nan
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from headrace._core.findings import Finding
from headrace._core.json_record import finite
from headrace.diagnose.compare.chain import ChainStage
from headrace.diagnose.compare.keys import KeyChange
from headrace.diagnose.compare.layers import LayerDrift, TensorDrift
from headrace.diagnose.compare.matching import Drift, Tolerance
from headrace.diagnose.compare.stage_drift import FrameDrift, StageDrift, StageTime, signal

SAME_ABOVE_DB = 40.0
"""Outputs of networks without boxes are the same from here on: errors of 1 % of the signal."""


@dataclass(slots=True, eq=False, repr=False)
class Comparison:
    """Two models on the same frames.

    Attributes:
        a, b: titles.
        source: name of the images.
        tolerance: differences that do not count.
        unit: `boxes` or `attributes`, which both find; empty: networks are compared by outputs.
        frames: how many were compared.
        total: objects of A against those of B.
        stages: in order; see `StageDrift`.
        outputs_db: signal to noise of the worst output, each side from its own input; NaN if
            shapes differ.
        layers: of the engines, on the same input; None where their outputs agree to 80 dB.
        times: of the stages.
        lost: config key or `no candidate` -> number of A's boxes that B lacks for it.
        new: the same for B's boxes that A lacks.
        looked_up: number of frames in which `lost` and `new` were counted, at most 20.
        worst: frames that differ most.
        labels: class id -> name on each side.
        notices: of loading and running.
    """

    a: str
    b: str
    source: str
    tolerance: Tolerance
    unit: str = "boxes"
    frames: int = 0
    total: Drift = field(default_factory=Drift)
    stages: list[StageDrift] = field(default_factory=list)
    outputs_db: float = nan
    layers: LayerDrift | None = None
    times: list[StageTime] = field(default_factory=list)
    lost: Counter[str] = field(default_factory=Counter)
    new: Counter[str] = field(default_factory=Counter)
    looked_up: int = 0
    worst: list[FrameDrift] = field(default_factory=list)
    labels: tuple[Mapping[int, str], Mapping[int, str]] = field(default_factory=lambda: ({}, {}))
    notices: list[Finding] = field(default_factory=list)

    @property
    def by_boxes(self) -> bool:
        """True if there are boxes or attributes to judge by."""
        return bool(self.unit) and bool(self.total.boxes_a or self.total.boxes_b)

    @property
    def same(self) -> bool:
        """True if nothing differs by more than the tolerance."""
        if self.by_boxes:
            return not self.total.beyond(self.tolerance)
        return self.outputs_db >= SAME_ABOVE_DB

    @property
    def blamed(self) -> list[StageDrift]:
        """Stages that depart by themselves, the greatest effect first."""
        if not self.by_boxes:
            return [] if self.same else self._noisy()
        drifts = [s for s in self.stages if s.departs(self.tolerance)]
        return sorted(drifts, key=lambda s: -s.effect.beyond(self.tolerance))

    def state_of(self, stage: StageDrift) -> str:
        """`same`, `within tolerance` or `departs`."""
        if stage in self.blamed:
            return "departs"
        return "same" if stage.same else "within tolerance"

    @property
    def verdict(self) -> str:
        """One line: the same, or the stage to blame with its effect."""
        if self.same:
            return self._sameness()
        blamed = self.blamed
        if not blamed:
            changed = ", ".join(s.name for s in self.stages if not s.same)
            effect = _effect(self.total, self.unit)
            return f"no stage alone departs, together they do ({changed}): {effect}"
        text = self._blame(blamed[0])
        if not self.by_boxes:
            return f"{text}: outputs keep {_db(self.outputs_db)}"
        return f"{text}: {_effect(blamed[0].effect, self.unit)}"

    @property
    def also(self) -> list[str]:
        """One line for each further stage that departs."""
        return [f"{self._blame(stage)}: {self._loss(stage)}" for stage in self.blamed[1:]]

    def _loss(self, stage: StageDrift) -> str:
        return _effect(stage.effect, self.unit) if self.by_boxes else _db(stage.decibels)

    def _noisy(self) -> list[StageDrift]:
        """Stages with other tensors: joined ones first, then those with the least signal."""
        joined = [s for s in self.stages if len(s.stages) > 1]
        noisy = sorted((s for s in self.stages if s.decibels < inf), key=lambda s: s.decibels)
        low = [s for s in noisy if s.decibels < SAME_ABOVE_DB]
        return joined + (low or noisy[: not joined])

    def _sameness(self) -> str:
        frames = f"{self.frames} frame{'s' * (self.frames != 1)}"
        if not self.by_boxes:
            of = f"no {self.unit} on either side, and " if self.unit else ""
            return f"{of}same outputs: {_db(self.outputs_db)} in {frames}"
        ious, scores = self.total.ious, np.abs(self.total.score_changes)
        text = f"same {self.unit}: "
        if self.unit == "boxes":
            text += f"IoU ≥ {np.floor(ious.min() * 1e4) / 1e4:.4f}, "
        text += f"scores within {scores.max():.1g}"
        return f"{text} ({self.total.matched} {self.unit} in {frames})"

    def _blame(self, stage: StageDrift) -> str:
        verb = "depart" if len(stage.stages) > 1 else "departs"
        if stage.stages == (ChainStage.LABELS,):
            verb = "depart"
        name = stage.name.replace(ChainStage.ATTACH, "attach filter")
        text = f"the {name} {verb}"
        node = None if self.layers is None else self.layers.first
        if ChainStage.ENGINE in stage.stages and node is not None:
            text += f" first at {node}"
        return f"{text} ({changes_text(stage.keys)})" if stage.keys else text

    def to_html(self) -> str:
        """The report as one HTML page with its images inside."""
        from headrace.diagnose.compare.report import comparison_page

        return comparison_page(self)

    def write_html(self, path: str | PathLike[str]) -> Path:
        """Write the report as one HTML file.

        Raises:
            MediaError: it cannot be written.
        """
        from headrace._core.pages import write_page

        return write_page(path, self.to_html())

    def __repr__(self) -> str:
        return f"Comparison({self.a} with {self.b}: {self.verdict})"

    def to_dict(self) -> dict[str, Any]:
        """All figures as plain data, the `--json` form of `headrace compare`."""
        node = None if self.layers is None else self.layers.first
        worst = None if self.layers is None else self.layers.worst
        return {
            "verdict": self.verdict,
            "also": self.also,
            "same": self.same,
            "blamed": [s.name for s in self.blamed],
            "a": self.a,
            "b": self.b,
            "source": self.source,
            "frames": self.frames,
            "tolerance": self.tolerance._asdict(),
            "unit": self.unit,
            "objects": self.total.to_dict() if self.unit else None,
            "outputs_db": finite(self.outputs_db),
            "stages": [
                {
                    "stage": s.name,
                    "same": s.same,
                    "departs": s in self.blamed,
                    "decibels": finite(s.decibels),
                    "largest": finite(s.largest),
                    "keys": [k._asdict() for k in s.keys],
                    "effect": s.effect.to_dict() if self.unit else None,
                    "candidates": None if s.candidates is None else s.candidates.to_dict(),
                    "note": s.note,
                }
                for s in self.stages
            ],
            "lost": dict(self.lost.most_common()),
            "new": dict(self.new.most_common()),
            "looked_up": self.looked_up,
            "first_layer": None if node is None else layer_row(node),
            "worst_layer": None if worst is None else layer_row(worst),
            "layers": [layer_row(t) for t in self.layers.tensors] if self.layers else [],
            "no_layers": self.layers.missing if self.layers else "",
            "times_ms": [
                {"stage": t.stage.value, "a": finite(t.a_ms), "b": finite(t.b_ms),
                 "ratio": finite(t.ratio)}
                for t in self.times
            ],
        }  # fmt: skip


def changes_text(keys: Sequence[KeyChange], most: int = 3) -> str:
    """The first few settings that differ, and the number of the others."""
    more = len(keys) - most
    return ", ".join(map(str, keys[:most])) + (f" and {more} more" if more > 0 else "")


def layer_row(tensor: TensorDrift) -> dict[str, Any]:
    """A tensor for JSON."""
    return {
        "tensor": tensor.name,
        "node": tensor.node,
        "operator": tensor.operator,
        "precision": tensor.precision,
        "shape": list(tensor.shape),
        "decibels": finite(tensor.decibels),
        "largest": finite(tensor.largest),
        "loss": finite(tensor.loss),
    }


def _db(value: float) -> str:
    return signal(value) or "other shapes"


def _effect(drift: Drift, unit: str) -> str:
    counts = (
        (drift.only_a, f"of {drift.boxes_a} {unit} lost"), (drift.only_b, "new"),
        (drift.class_changed, "of another class"), (drift.label_changed, "of another label"),
    )  # fmt: skip
    parts = [f"{count} {text}" for count, text in counts if count]
    scores, ious = drift.score_changes, drift.ious
    if len(scores):
        middle = float(np.median(scores))
        if abs(middle) >= 5e-4:
            parts.append(f"scores {'rise' if middle > 0 else 'fall'} by {abs(middle):.2g}"
                         " in the median")  # fmt: skip
        elif (largest := float(np.abs(scores).max())) >= 5e-4:
            parts.append(f"scores move by up to {largest:.2g}")
        if (least := float(ious.min())) < 0.9995:
            parts.append(f"IoU down to {least:.2f}")
    return ", ".join(parts) or "no change that can be seen"
