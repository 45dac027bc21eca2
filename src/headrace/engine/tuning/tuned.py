"""The outcome of a tuning, and the notices about it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from headrace._core.findings import Finding
from headrace.engine.machine import Machine
from headrace.engine.plan_header import TacticRecord, TuningRecord
from headrace.engine.tactic import Objective, Tactic

_MUCH_FOREIGN = 0.15  # of the cores: differences between tactics are smaller
_TIMED = ("measured", "ok")
_WORTH = 1.05  # times as fast as what is chosen: less is no offer


@dataclass(frozen=True, slots=True)
class Tuning:
    """The outcome.

    Attributes:
        tactic: the best one; None if nothing could be measured, `why` says why.
        version: number of the version that it runs.
        records: all tries, in the order of the candidates.
        foreign: share of the cores that other programs used meanwhile.
    """

    tactic: Tactic | None
    records: tuple[TacticRecord, ...]
    machine: Machine
    spent_s: float
    cached: bool
    why: str = ""
    version: int = 0
    foreign: float = 0.0

    def notices(self, objective: Objective) -> list[Finding]:
        """Report the best tactic for `objective`, and each tactic that is not to be trusted."""
        if self.tactic is None:
            text = f"not tuned: {self.why}"
            return [Finding("not-tuned", "warning", text), *self._suspects()]
        best = next(t for t in self.records if t.chosen)
        measured = sum(t.latency_ms is not None for t in self.records)
        text = (
            f"tuned for {objective}: {self.tactic}{self._of(best)}, "
            f"{best.items_per_s:.4g} items/s, {best.latency_ms:.4g} ms a run; best of {measured} "
        )
        text += "known from the timing cache" if self.cached else f"in {self.spent_s:.1f} s"
        late = sum(t.outcome == "untried" for t in self.records)
        if late:
            text += f"; {late} were not tried for lack of time"
        tuned = Finding("engine-tuned", "info", text)
        return [tuned, *self._offer(best, objective), *self._noise(), *self._suspects()]

    def _offer(self, best: TacticRecord, objective: Objective) -> list[Finding]:
        """Report BF16 where it would be faster; it changes results, so only a user takes it."""
        records = (t for t in self.records if t.precision == "bf16" != best.precision)
        gains = [(_gain(t, best, objective), t) for t in records if t.outcome in _TIMED]
        gain, record = max(gains, key=lambda pair: pair[0], default=(0.0, best))
        if gain < _WORTH:
            return []
        text = "bf16 would be {factor:.2g} times as fast: --precision bf16 --tactic {tactic} "
        text += "builds its engine, and model-engine-file takes that"
        data = {"factor": round(gain, 3), "tactic": str(record.tactic)}
        return [Finding("bf16-offered", "info", text, data=data)]

    def _noise(self) -> list[Finding]:
        if self.foreign < _MUCH_FOREIGN:
            return []
        text = "other programs used {share:.0%} of the cores while tactics were measured: their "
        text += "times are noise; --retime measures again when those are done"
        return [Finding("tuning-noise", "info", text, data={"share": round(self.foreign, 3)})]

    def _suspects(self) -> list[Finding]:
        return [
            Finding(
                "tactic-skipped",
                "info",
                f"tactic {t.tactic}{self._of(t)} skipped, {t.outcome}: {t.note}",
            )
            for t in self.records
            if t.outcome in ("wrong", "failed", "crashed", "hung")
        ]

    def _of(self, record: TacticRecord) -> str:
        several = len({t.precision for t in self.records}) > 1
        return f" in {record.precision}" if several else ""

    def summary(self, objective: Objective, budget_s: float, items: int) -> TuningRecord:
        """For the plan's header."""
        return TuningRecord(
            objective=objective,
            items=items,
            machine=self.machine.cpu,
            cores=self.machine.cores,
            budget_s=budget_s,
            spent_s=round(self.spent_s, 3),
            cached=self.cached,
        )


def _gain(record: TacticRecord, than: TacticRecord, objective: Objective) -> float:
    """How many times as fast one tactic is as another; 0 where that is not known."""
    if objective == "latency":
        return (than.latency_ms or 0.0) / (record.latency_ms or math.inf)
    return (record.items_per_s or 0.0) / (than.items_per_s or math.inf)
