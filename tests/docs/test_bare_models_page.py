"""The commands and the Python of the page about bare models do what it shows."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import numpy as np
import pytest

from tests.cli.test_init import center_face
from tests.infer.recognise.models import pixel_rows, rows_of
from tests.infer.recognise.test_recognise import ULTRALYTICS
from tests.inside import headrace

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "bare-models.md").read_text()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A video, and models like those on the page."""
    shutil.copy(ROOT / "examples" / "conveyor" / "conveyor.mp4", tmp_path / "video.mp4")
    names = str({i: f"class{i}" for i in range(80)})
    table = np.ascontiguousarray(pixel_rows(8400, 84, size=640).transpose(0, 2, 1))
    metadata = ULTRALYTICS | {"version": "8.3.0", "names": names}
    rows_of(tmp_path / "yolov8n.onnx", table, size=(640, 640), metadata=metadata)
    rows_of(tmp_path / "net.onnx", np.float32([[0.5, 0.5]]), spread=137)
    center_face(tmp_path / "centerface.onnx")
    return tmp_path


def commands() -> list[tuple[str, list[str]]]:
    """Each command of the page with the lines that it shows."""
    found = []
    for block in re.findall(r"```console\n(.*?)```", PAGE, re.S):
        first, *shown = block.splitlines()
        found.append((first.removeprefix("$ "), shown))
    return found


@pytest.mark.slow
def test_the_commands_print_what_is_shown(folder: Path) -> None:
    for line, shown in commands():
        done = headrace(*shlex.split(line)[1:], cwd=folder)
        said = [text.replace(f"{folder}/", "") for text in (done.stdout + done.stderr).splitlines()]
        fails = any(text.startswith("error: ") for text in shown)
        assert done.returncode == (4 if fails else 0), f"{line}\n{done.stderr}"
        for text in shown:
            # names and the numbers of the first layer are those of other models
            start = re.split(r"person|size: fixed|: on images in 0", text)[0]
            assert any(start in other for other in said), (text, said)


@pytest.mark.slow
def test_the_python_runs(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    (block,) = re.findall(r"```python\n(.*?)```", PAGE, re.S)
    exec(compile(block, "bare-models.md", "exec"), {})
