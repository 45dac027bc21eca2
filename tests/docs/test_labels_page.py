"""The example of the page on labels prints what it says."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from tests.copies import copied_example
from tests.inside import headrace

ROOT = Path(__file__).parents[2]


def test_the_command_prints_what_the_page_shows(tmp_path: Path) -> None:
    scene = copied_example("conveyor", tmp_path / "conveyor")
    names = (scene / "labels.txt").read_text()
    (scene / "background_first.txt").write_text(f"background\n{names}")
    page = (ROOT / "docs" / "labels.md").read_text()
    ((command, shown),) = re.findall(r"```console\n\$ (.*?)\n(.*?)```", page, re.S)
    done = headrace(*shlex.split(command)[1:], cwd=scene)
    assert done.returncode == 0, done.stderr
    told = [line for line in done.stderr.splitlines() if line.startswith("warning: ")]
    assert [line.replace(f"{scene}/", "") for line in told] == shown.splitlines()
    assert headrace(*shlex.split(command)[1:], "--strict", cwd=scene).returncode != 0
