"""The Python of the pages on Python runs, from top to bottom; the reference names everything."""

from __future__ import annotations

import inspect
import re
import shutil
import warnings
from pathlib import Path
from typing import Any

import pytest

import headrace
from headrace.cli import main
from tests.profiles import slow

ROOT = Path(__file__).parents[2]


def run(page: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Run the Python of a page in a copy of the demo scene."""
    shutil.copytree(ROOT / "examples" / "conveyor", folder / "conveyor")
    monkeypatch.chdir(folder / "conveyor")
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.S)
    assert len(blocks) >= 5
    names: dict[str, Any] = {}
    for block in blocks:
        exec(compile(block, page, "exec"), names)
    names["detector"].close()
    return names


@pytest.mark.slow
def test_the_page_on_python_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        names = run("docs/python.md", tmp_path, monkeypatch)
    names["reader"].close()
    said = capsys.readouterr().out
    assert "FrameMeta(frame 39 of 'conveyor.mp4'" in said
    assert "5 frames of shades" in said
    assert "(6, 24, 40) ['scores', 'distances']" in said
    assert "10 frames of 2 sources" in said
    assert "{'drum': 16, 'envelope': 11, 'box': 10}\n[]\n" in said
    for path in ("out.mp4", "out.jsonl", "changed.mp4"):
        assert Path(path).stat().st_size > 1000


def test_the_reference_names_everything_public() -> None:
    text = (ROOT / "docs" / "reference.md").read_text()
    listed = set(re.findall(r"auto\w+:: headrace\.(\w+)$", text, re.M))
    public = {n for n in headrace.__all__ if not inspect.ismodule(getattr(headrace, n))}
    assert public - listed <= {"HeadraceError"}  # that comes with all errors
    assert listed - public <= {"errors"}


@pytest.mark.slow
def test_the_page_on_pipelines_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run("docs/pipelines.md", tmp_path, monkeypatch)
    said = capsys.readouterr().out
    assert "RunReport(20 frames of conveyor.mp4" in said
    assert "shades 4 800000000" in said
    assert [line.split()[-1] for line in said.splitlines()[-3:]] == ["stopped"] * 3
    assert Path("described.mp4").stat().st_size > 1000


@pytest.mark.parametrize(
    ("page", "words"),
    [
        slow("docs/analytics.md", ["box crossed passed", "{'passed': "]),
        slow("docs/live.md", ["http://127.0.0.1:", "conveyor.mp4 added", "conveyor.mp4 removed"]),
    ],
)
def test_pages_with_some_python(
    page: str, words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    shutil.copytree(ROOT / "examples" / "conveyor", tmp_path / "conveyor")
    monkeypatch.chdir(tmp_path / "conveyor")
    text = (ROOT / page).read_text()
    if rules := re.search(r"```ini\n(.*?)```", text, re.S):
        Path("counting.txt").write_text(rules[1])
        command = re.search(r"headrace (run .*--analytics .*)\n", text)
        assert command is not None
        with pytest.raises(SystemExit) as end:
            main(command[1].split())
        assert end.value.code == 0
        assert "over PASSED" in capsys.readouterr().out
    names: dict[str, Any] = {}
    for block in re.findall(r"```python\n(.*?)```", text, re.S):
        exec(compile(block, page, "exec"), names)
    said = capsys.readouterr().out
    assert all(word in said for word in words), said
