"""docs/parsers.md says what the code does: its example runs, its table is the catalogue."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from noria.infer.parsers.catalogue import HEADS
from noria.meta import DetectionParams, Detections, Layer, NetworkInfo

PAGE = Path(__file__).parents[3] / "docs" / "parsers.md"


def table() -> str:
    """The table of built-in heads; paste it between the marks when this test says so."""
    lines = ["| name | outputs | boxes and scores |", "|---|---|---|"]
    for head in sorted(HEADS, key=lambda h: (not h.name.startswith("Noria"), h.name.lower())):
        needs = "<br>or ".join(
            ", ".join(
                "`" + re.sub(r"^'|'(?= \[)|'(?= or)|(?<=or )'", "", str(out)).strip() + "`"
                for out in layout.outs
            )
            for layout in head.layouts
        )
        lines.append(f"| `{head.name}` | {needs} | {head.summary} |")
    return "\n".join(lines)


def test_the_table_is_the_catalogue():
    page = PAGE.read_text(encoding="utf-8")
    written = page.split("<!-- heads -->")[1].split("<!-- /heads -->")[0].strip()
    assert written == table(), f"the table should be:\n{table()}"


@pytest.fixture
def example():
    page = PAGE.read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    code = next(b for b in blocks if "def parse_pairs" in b)
    namespace: dict[str, object] = {}
    exec(compile(code, str(PAGE), "exec"), namespace)
    return namespace["parse_pairs"]


def test_the_example_parses(example):
    layers = {
        "boxes": Layer("boxes", np.array([[0.1, 0.2, 0.5, 0.6], [0, 0, 1, 1]], np.float32)),
        "scores": Layer("scores", np.array([[0.1, 0.9], [0.1, 0.05]], np.float32)),
    }
    params = DetectionParams(2, np.array([0.5, 0.25], np.float32))
    found = example(layers, NetworkInfo(100, 50, 3), params)
    assert isinstance(found, Detections)
    np.testing.assert_allclose(found.boxes, [[10, 10, 40, 20]], atol=1e-5)
    assert found.class_ids.tolist() == [1]
