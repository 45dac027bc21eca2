"""Answers of earlier tunings."""

from __future__ import annotations

import pytest

from headrace.engine.plan_header import TacticRecord
from headrace.engine.tuning.timing_cache import TimingCache, TimingEntry

ASKED = {"model": "5f", "machine": "two cores"}


@pytest.mark.parametrize(
    ("complete", "given", "wanted", "serves"),
    [(True, 2, 15, True), (False, 15, 15, True), (False, 15, 2, True), (False, 2, 15, False)],
)
def test_an_answer_cut_short_serves_no_larger_budget(tmp_path, complete, given, wanted, serves):
    tactic = TacticRecord(
        runtime="quick", threads=1, streams=1, precision="fp32", outcome="measured", load_s=0.1,
        chosen=True,
    )  # fmt: skip
    entry = TimingEntry(
        question=ASKED, tactics=(tactic,), spent_s=1.0, budget_s=given, complete=complete
    )
    cache = TimingCache(tmp_path / "timings")
    cache.put(entry)
    assert cache.get(ASKED, budget_s=wanted) == (entry if serves else None)
    assert cache.get({**ASKED, "machine": "four cores"}, budget_s=wanted) is None
