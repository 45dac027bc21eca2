"""Rates of sources while a pipeline runs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from headrace.pipeline.rate_lines import RateLines


def batch(*ids: int, ended: Sequence[int] = ()) -> Any:
    return SimpleNamespace(metas=[SimpleNamespace(source_id=i) for i in ids], ended=ended)


def test_lines_have_the_original_form() -> None:
    lines: list[str] = []
    rates = RateLines(2, 3600, lines.append)
    rates(batch(0, 1))
    rates(batch(0))
    rates(batch(0, 2))  # a source that came while it ran
    rates.close()
    rates.close()
    assert lines[0] == "\n**PERF:  FPS 0 (Avg)\tFPS 1 (Avg)\tFPS 2 (Avg)\t"
    found = re.fullmatch(r"\*\*PERF:  ((?:\d+\.\d\d \(\d+\.\d\d\)\t){3})", lines[1])
    assert found
    assert len(lines) == 2


def test_the_header_comes_again() -> None:
    lines: list[str] = []
    rates = RateLines(1, 3600, lines.append)
    rates(batch(0))
    for _ in range(21):
        rates._line()
    rates.close()
    assert sum("FPS 0" in line for line in lines) == 2


def test_columns_follow_sources_that_come_and_go() -> None:
    lines: list[str] = []
    rates = RateLines(1, 3600, lines.append, leave=True)
    for one in (batch(0), batch(0, 2), batch(2, ended=[0]), batch(ended=[2])):
        rates(one)
        rates._line()
    rates.close()
    heads = [line.split("PERF:")[1].split("\t")[:-1] for line in lines if "FPS" in line]
    assert heads == [["  FPS 0 (Avg)"], ["  FPS 0 (Avg)", "FPS 2 (Avg)"], ["  FPS 2 (Avg)"]]
    shown = [line.count("\t") for line in lines if "FPS" not in line]
    assert shown == [1, 2, 1, 1, 1]


def test_nothing_is_printed_before_the_first_frame() -> None:
    lines: list[str] = []
    RateLines(1, 0.001, lines.append).close()
    assert lines == []
