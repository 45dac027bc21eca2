"""The Python on the page about profiles runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.copies import copied_example

ROOT = Path(__file__).parents[2]


def test_the_page_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    copied_example("conveyor", tmp_path / "conveyor")
    monkeypatch.chdir(tmp_path / "conveyor")
    (block,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs/profiles.md").read_text(), re.S)
    exec(compile(block, "profiles.md", "exec"), {})
    assert capsys.readouterr().out == "modern\n"
