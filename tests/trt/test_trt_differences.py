"""Each rule of TensorRT's open sources has a test; what is ours on purpose has a reason."""

from __future__ import annotations

import tomllib
from pathlib import Path

TESTS = Path(__file__).parents[1]
ROWS = tomllib.loads(Path(__file__).with_name("differences.toml").read_text("utf-8"))["row"]


def test_each_row_names_a_test_that_is_there() -> None:
    for row in ROWS:
        file, _, name = row["test"].partition("::")
        assert f"def {name}(" in (TESTS / file).read_text("utf-8"), row["test"]


def test_what_is_ours_has_a_reason() -> None:
    assert len(ROWS) >= 40
    assert all(row["why"] for row in ROWS if "ours" in row)
    assert sum("ours" in row for row in ROWS) == 10  # as docs/trt.md says
