"""The Python of the page on pipelines runs, from top to bottom."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


def test_the_page_on_pipelines_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(ROOT / "examples" / "conveyor", tmp_path / "conveyor")
    monkeypatch.chdir(tmp_path / "conveyor")
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs/pipelines.md").read_text(), re.S)
    assert len(blocks) >= 5
    names: dict[str, Any] = {}
    for block in blocks:
        exec(compile(block, "docs/pipelines.md", "exec"), names)
    names["detector"].close()
    said = capsys.readouterr().out
    assert "RunReport(20 frames of conveyor.mp4" in said
    assert "shades 4 800000000" in said
    assert [line.split()[-1] for line in said.splitlines()[-3:]] == ["stopped"] * 3
    assert Path("described.mp4").stat().st_size > 1000
