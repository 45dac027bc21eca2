"""Rates of sources while a pipeline runs."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

from headrace.pipeline.rate_lines import RateLines


def batch(*ids: int) -> Any:
    return SimpleNamespace(metas=[SimpleNamespace(source_id=i) for i in ids])


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


def test_nothing_is_printed_before_the_first_frame() -> None:
    lines: list[str] = []
    RateLines(1, 0.001, lines.append).close()
    assert lines == []
