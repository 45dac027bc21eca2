"""Every fault of `scripts/mutations.toml` has a place in the sources, and tests that are there."""

from __future__ import annotations

import re
import runpy
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = runpy.run_path(str(ROOT / "scripts" / "mutations.py"))


@pytest.fixture(scope="module")
def faults() -> list[Any]:
    rows = tomllib.loads((ROOT / "scripts" / "mutations.toml").read_text())["mutation"]
    return [SCRIPT["Mutation"](**{**row, "tests": tuple(row["tests"])}) for row in rows]


def test_each_fault_has_one_place(faults: list[Any]) -> None:
    texts = "\0".join(path.read_text() for path in SCRIPT["_sources"](ROOT))
    counts = {fault.fault: texts.count(fault.find) for fault in faults}
    assert {name: n for name, n in counts.items() if n != 1} == {}


def test_each_file_and_each_word_selects_a_test(faults: list[Any]) -> None:
    files = [p.relative_to(ROOT) for p in (ROOT / "tests").rglob("*")]
    ends = {f"/{'/'.join(p.parts[n:])}" for p in files for n in range(1, len(p.parts))}
    nothing = [(f.fault, test) for f in faults for test in f.tests if f"/{test}" not in ends]
    for fault in faults:
        if fault.select:
            names = [name for file in fault.chosen(ROOT) for name in _tests(ROOT / file)]
            words = fault.select.split(" or ")
            nothing += [(fault.fault, w) for w in words if not any(w in name for name in names)]
    assert nothing == [], "no test has this file or this word"


def _tests(path: Path) -> list[str]:
    return [path.stem, *re.findall(r"def (test_\w+)", path.read_text())] if path.is_file() else []
