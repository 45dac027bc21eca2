"""One stage, one frame and one time of a comparison."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import isinf, isnan, nan

from headrace.diagnose.compare.chain import ChainStage
from headrace.diagnose.compare.keys import KeyChange
from headrace.diagnose.compare.matching import BoxPairs, Drift, Tolerance
from headrace.diagnose.evaluate.box_matching import Scored
from headrace.media.frame import Frame


@dataclass(slots=True, eq=False)
class StageDrift:
    """One stage, or several that cannot be exchanged one by one.

    Attributes:
        stages: in order.
        keys: settings of these stages that differ.
        effect: A's objects against those with this stage alone taken from B.
        candidates: of the parser: all its boxes, in network pixels.
        decibels: signal to noise of the worst tensor of the input or the engine, the same data
            before it; NaN for other stages, and for tensors of different shapes.
        largest: greatest absolute difference in it.
        note: why the stage could not be compared.
    """

    stages: tuple[ChainStage, ...]
    keys: list[KeyChange] = field(default_factory=list)
    effect: Drift = field(default_factory=Drift)
    candidates: Drift | None = None
    decibels: float = nan
    largest: float = nan
    note: str = ""

    @property
    def name(self) -> str:
        """`engine`, or `input, engine and parser`."""
        return " and ".join(filter(None, (", ".join(self.stages[:-1]), self.stages[-1])))

    @property
    def same(self) -> bool:
        """True if the stage gives the same: bits of tensors, boxes to the last digit."""
        tensors = isnan(self.decibels) or (isinf(self.decibels) and self.decibels > 0)
        exact = Tolerance(1.0 - 1e-9, 0.0)
        return tensors and not self.effect.beyond(exact) and not self.note

    def departs(self, tolerance: Tolerance) -> bool:
        """True if the stage alone changes objects by more than the tolerance."""
        return self.effect.beyond(tolerance) > 0


@dataclass(frozen=True, slots=True, eq=False)
class FrameDrift:
    """A frame with its objects on both sides, and the number that differ beyond the tolerance."""

    frame: Frame
    a: Scored
    b: Scored
    pairs: BoxPairs
    beyond: int


@dataclass(frozen=True, slots=True)
class StageTime:
    """Median milliseconds of a stage per frame; both sides took turns."""

    stage: ChainStage
    a_ms: float
    b_ms: float

    @property
    def ratio(self) -> float:
        """B by A."""
        return self.b_ms / self.a_ms if self.a_ms else nan

    @property
    def row(self) -> tuple[str, str, str, str]:
        """Stage, both times and the ratio for a table; empty where a side never ran it."""
        figures = ((self.a_ms, 3), (self.b_ms, 3), (self.ratio, 2))
        a, b, ratio = ("" if isnan(x) else f"{x:.{digits}f}" for x, digits in figures)
        return self.stage.value, a, b, ratio


def signal(value: float) -> str:
    """Decibels for a table; empty where there are none."""
    if isnan(value):
        return ""
    if isinf(value):
        return "same bits" if value > 0 else "no signal"
    return f"{value:.1f} dB"
