"""Each row of the operators' table names tests that there are."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "security.md"
ROWS = [line for line in PAGE.read_text().splitlines() if line.startswith("| ")][1:]


def test_every_row_says_who_what_and_what_not() -> None:
    assert len(ROWS) >= 15
    for row in ROWS:
        who, what, stops, open_, tried = (cell.strip() for cell in row.strip("|").split(" | "))
        assert who
        assert what
        assert stops
        assert open_
        assert tried.startswith("`"), who


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[2:40])
def test_every_row_is_tried(row: str) -> None:
    path = ""
    for file, name in re.findall(r"`([\w/.]*)::(\w+)`", row):
        path = file or path
        assert f"\ndef {name}(" in (ROOT / "tests" / path).read_text(), f"{path}::{name}"
    assert path
