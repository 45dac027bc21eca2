"""The examples of the page on explanations print what it says, and its Python runs."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from headrace.cli import main

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "cli" / "explain.md").read_text()


def samples() -> dict[str, list[str]]:
    """Return each command that output follows, with the lines shown before an ellipsis."""
    found: dict[str, list[str]] = {}
    command = ""
    for line in PAGE.splitlines():
        text = line.strip()
        if text.startswith("$ headrace explain"):
            command = text[2:]
        elif line.startswith("    ") and command and text != "…":
            found.setdefault(command, []).append(text)
        elif line.startswith("#"):
            command = ""
    return found


@pytest.mark.slow
def test_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = shutil.copytree(ROOT / "examples" / "conveyor", tmp_path / "conveyor")
    monkeypatch.chdir(folder)
    assert len(samples()) == 2
    for command, shown in samples().items():
        done = CliRunner().invoke(main, shlex.split(command)[1:])
        assert done.exit_code == 0, done.output
        printed = [" ".join(line.split()) for line in done.stdout.splitlines()]
        assert [x for x in shown if " ".join(x.split()) not in printed] == []
    (block,) = re.findall(r"```python\n(.*?)```", PAGE, re.S)
    exec(compile(block, "explain.md", "exec"), {})
    assert "frame 40 of conveyor.mp4, 640x384" in capsys.readouterr().out
    assert Path("report.html").read_text().startswith("<!DOCTYPE html>")
