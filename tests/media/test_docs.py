"""What docs/formats.md and docs/sources-and-sinks.md show is what is written and runs."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from noria.media import open_sink
from tests.media.conftest import MakeMeta, gray_frame

DOCS = Path(__file__).parents[2] / "docs"
FORMATS = (DOCS / "formats.md").read_text()


def shown(kind: str) -> str:
    block = re.search(rf"```{{code-block}} \w+\n:class: {kind}\n(.*?)```", FORMATS, re.S)
    assert block is not None
    return block[1]


@pytest.mark.parametrize(
    ("kind", "name"), [("jsonl", "x.jsonl"), ("coco", "x.json"), ("kitti", "x")]
)
def test_example_is_what_is_written(
    tmp_path: Path, make_meta: MakeMeta, kind: str, name: str
) -> None:
    with open_sink(f"{kind}:{tmp_path / name}") as sink:
        for i in (12, 13):
            frame = gray_frame(i, (640, 360), source="belt.mp4")
            boxes = [(100.25, 42, 64.5, 48.125, 0.9125, 1)] if i == 12 else []
            sink.write(frame, replace(make_meta(frame, *boxes, labels=["belt", "parcel"])))
    path = tmp_path / name
    if kind == "kitti":
        path = path / "000012.txt"
    assert path.read_text() == shown(kind)


@pytest.mark.parametrize(
    "code",
    re.findall(r"```python\n(.*?)```", FORMATS + (DOCS / "sources-and-sinks.md").read_text(), re.S),
)
def test_python_examples_run(
    code: str, clip: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(clip.parent)
    (clip.parent / "boxes.jsonl").write_text(shown("jsonl"))
    exec(compile(code, "docs", "exec"), {})
    assert capsys.readouterr().out or (clip.parent / "sheet.png").exists()
