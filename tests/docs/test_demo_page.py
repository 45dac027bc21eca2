"""The page on the demo scene: its Python runs, and its changes of the files are possible."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest

from headrace.config import ModelConfig
from tests.copies import copied_example

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "demo.md").read_text()
CONFIGS = ("config_infer_primary.txt", "config_infer_secondary_characters.txt")


@pytest.mark.slow
def test_its_python_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    copied_example("conveyor", tmp_path / "examples" / "conveyor")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    names: dict[str, Any] = {}
    for block in re.findall(r"```python\n(.*?)```", PAGE, re.S):
        exec(
            compile(block.replace('"found.jsonl"', '"found.jsonl", limit=30'), "demo.md", "exec"),
            names,
        )
    said = capsys.readouterr().out.splitlines()
    assert "#1 HS33" in said
    assert any(line.startswith(("box (", "crate (", "drum (")) for line in said)


def test_the_files_it_names_exist() -> None:
    folder = ROOT / "examples" / "conveyor"
    names = re.findall(r"^- (.*?)[,;.]$", PAGE, re.M)
    files = re.findall(r"`([\w.]+\.(?:yml|txt|onnx|py|mp4|json))`", " ".join(names) + PAGE)
    assert {"pipeline.yml", *CONFIGS} <= set(files)
    for name in files:
        assert (folder / name).is_file(), name


def test_what_it_says_of_the_configs_is_so() -> None:
    detector, reader = (ModelConfig.load(ROOT / "examples" / "conveyor" / n) for n in CONFIGS)
    assert reader.secondary_reinfer_interval == 4
    assert reader.parse_classifier_func_name == "parse_code"
    assert detector.parse_bbox_func_name == "parse_conveyor"
    tracker = re.search(
        r"^tracker: (\S+)$", (ROOT / "examples/conveyor/pipeline.yml").read_text(), re.M
    )
    assert tracker is not None
    assert f"--tracker {tracker[1]} " in PAGE
