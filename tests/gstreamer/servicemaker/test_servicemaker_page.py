"""The Python of docs/service-maker.md runs, and prints what the page shows."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.copies import copied_example

PAGE = Path(__file__).parents[3] / "docs" / "service-maker.md"


@pytest.mark.slow
def test_the_page_runs(gst: Any, tmp_path: Path) -> None:
    folder = copied_example("conveyor", tmp_path / "conveyor")
    text = PAGE.read_text()
    blocks = re.findall(r"```python\n(.*?)```", text, re.S)
    assert len(blocks) == 3
    (folder / "page.py").write_text("\n".join(blocks))
    done = subprocess.run(
        [sys.executable, "page.py"], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    first, last = re.findall(r"```text\n(.*?)```", text, re.S)
    assert done.stdout.startswith(first), done.stdout
    assert done.stdout.endswith(last), done.stdout
    assert (folder / "o.mp4").stat().st_size > 10_000
