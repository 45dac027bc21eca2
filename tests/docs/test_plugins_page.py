"""The Python of the page on plugins runs, from top to bottom."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from headrace.plugins import get_plugin_registry
from tests.creators import registry_as_before

ROOT = Path(__file__).parents[2]


def test_the_python_of_the_page_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(
        r"```(?:python|ini)\n(.*?)```", (ROOT / "docs" / "plugins.md").read_text(), re.S
    )
    rest, files = [], []
    for block in blocks:
        named = re.match(r"# (\w+\.\w+)\n", block)
        if named:  # a file
            Path(named[1]).write_text(block)
            files.append(named[1])
        elif not block.startswith("[property]"):
            rest.append(block)
    assert files == ["swish_plugin.py", "detector_lib.py", "detector.txt"]
    names: dict[str, object] = {"__name__": "page"}
    with registry_as_before():
        for block in rest:
            exec(compile(block, "docs/plugins.md", "exec"), names)
        assert get_plugin_registry().find("hard_swish", "1", "docs") is not None
    said = capsys.readouterr().out
    assert "difference True" in said
    assert "found [[24.0, 16.0, 16.0, 32.0]]" in said
    assert "('SwishCreator#1', 'create_plugin')" in said
