"""The examples of the page on missing boxes print what it says; its table has every filter."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest

from noria.infer.attach import EDGE, DropReason
from noria.infer.box_losses import CLUSTER_FILTERS
from tests.warm import noria

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "no-boxes.md").read_text()


@pytest.fixture
def scene(tmp_path: Path) -> Path:
    return Path(shutil.copytree(ROOT / "examples" / "conveyor", tmp_path / "conveyor"))


def test_the_commands_print_what_the_page_shows(scene: Path) -> None:
    blocks = re.findall(r"```console\n\$ (.*?)\n(.*?)```", PAGE, re.S)
    assert len(blocks) == 4
    for command, shown in blocks:
        done = noria(*shlex.split(command)[1:], cwd=scene)
        assert done.returncode == 0, done.stderr
        if command.startswith("noria explain"):  # the page has the first lines
            assert done.stdout.startswith(shown)
        else:
            before, done_line, _ = done.stdout.partition("done: ")
            assert before == shown
            assert done_line


def test_the_python_prints_what_the_page_shows(
    scene: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(scene)
    (block,) = re.findall(r"```python\n(.*?)```", PAGE, re.S)
    exec(compile(block, "no-boxes.md", "exec"), {})
    assert capsys.readouterr().out == "{'drum': 16, 'envelope': 11, 'box': 10}\n[]\n"


def test_every_filter_has_a_row() -> None:
    named = " ".join(re.findall(r"^\| (`.*?) \|", PAGE, re.M)).replace(", `-h`", "")
    named += " `detected-min-h` `detected-max-h`"
    attach = {drop.key for drop in DropReason if drop and not drop.edge}
    filters = {*CLUSTER_FILTERS, EDGE, *attach}
    assert {name for name in filters if f"`{name}`" not in named} == set()
