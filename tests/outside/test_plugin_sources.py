"""Sources of public plugins compile unchanged, and what becomes of each is known."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.outside.conftest import checkout
from tests.outside.plugin_sources import COMPUTES, OTHERS, REFUSED, Row, table, tried_sources

LEAST = 60
"""Sources that run, where the checkouts of `plugin-sources` have so many."""


@pytest.mark.slow
def test_public_plugin_sources_compile_and_run(
    outside: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = checkout(outside, "plugin-sources")
    rows = list(tried_sources(folder))
    with capsys.disabled():
        print(table(rows))
    assert sum(row.runs for row in rows) >= LEAST


def test_a_row_runs_where_a_plugin_computes_or_is_refused_by_name() -> None:
    rows = [
        Row("a.cu", plugins={"A": REFUSED}, release="8"),
        Row("b.cpp", ["c.cpp"], plugins={"B": OTHERS, "C": COMPUTES}),
        Row("d.cpp", plugins={"D": OTHERS}, said=["it takes none"]),
        Row("e.cpp", error="error: e.cpp: the source does not compile:\n  e.cpp:1: error: what"),
    ]
    assert [row.runs for row in rows] == [True, True, False, False]
    lines = table(rows).splitlines()
    assert "| d.cpp |  |  | D: not made with inputs that were tried (it takes none) |" in lines
    assert lines[-1] == "4 sources, 3 compiled, 2 run"
    assert lines[5].endswith("not compiled: e.cpp:1: error: what  |")
