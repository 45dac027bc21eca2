"""The page of the plausibility watch has every rule, and no other."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from headrace._core.notices import HeadraceWarning
from headrace.infer.watch.rules import WATCH_RULES
from tests.copies import copied_example

ROOT = Path(__file__).parents[2]


def test_the_table_has_every_rule() -> None:
    table = (ROOT / "docs" / "watch.md").read_text().split("## Rules")[1]
    rows = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    told = {name for row in rows for name in re.findall(r"`([^`]+)`", row)}
    code = (ROOT / "src" / "headrace" / "infer" / "watch").glob("*.py")
    made = {
        name for path in code for name in re.findall(r'Finding\(\s*"([^"]+)"', path.read_text())
    }
    assert told == made == WATCH_RULES


def test_the_example_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    copied_example("conveyor", tmp_path / "conveyor")
    monkeypatch.chdir(tmp_path / "conveyor")
    page = (ROOT / "docs" / "watch.md").read_text()
    (block,) = re.findall(r"```python\n(.*?)```", page, re.S)
    with pytest.warns(HeadraceWarning) as said:
        exec(compile(block, "watch.md", "exec"), {})
    assert capsys.readouterr().out.startswith("overlaps ")
    (line,) = [str(w.message) for w in said if "found several times" in str(w.message)]
    _, _, words = line.partition("the same objects")
    shown = " ".join(re.findall(r"^    (.*)", page, re.M))
    assert re.sub(r"\d+%", "", f"the same objects{words}") in re.sub(r"\d+%", "", shown)
