"""What docs/formats.md and docs/sources-and-sinks.md show is what is written and runs."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from headrace.media import SINK_KINDS, open_sink
from headrace.meta import ClassifierMeta, Detections, LabelInfo, Space
from headrace.meta.fields import FIELDS
from headrace.meta.table import COLUMNS
from tests.media.conftest import MakeMeta, gray_frame

DOCS = Path(__file__).parents[2] / "docs"
FORMATS = (DOCS / "formats.md").read_text()


def shown(kind: str) -> str:
    block = re.search(rf"```{{code-block}} \w+\n:class: {kind}\n(.*?)```", FORMATS, re.S)
    assert block is not None
    return block[1]


@pytest.mark.parametrize(
    ("kind", "name"),
    [("jsonl", "x.jsonl"), ("coco", "x.json"), ("kitti", "x"), ("dota", "x.dota")],
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
    if kind in ("kitti", "dota"):
        path = path / "000012.txt"
    assert path.read_text() == shown(kind)


def test_rich_examples_are_what_is_written(tmp_path: Path, make_meta: MakeMeta) -> None:
    frame = gray_frame(12, (640, 360), source="belt.mp4")
    meta = make_meta(frame, (100.25, 42, 64.5, 48.125, 0.9125, 1), labels=["belt", "parcel"])
    meta.objects.object_ids[0] = 7
    with open_sink(f"kitti-track:{tmp_path}") as sink:
        sink.write(frame, meta)
    assert (tmp_path / "0000.txt").read_text() == shown("kitti-track")
    stamp = Detections([[110, 50, 9, 9]], [0.5], [0], space=Space.FRAME)  # type: ignore[arg-type]
    meta.objects.append(stamp, 2, labels=["stamp"], parent=0)
    meta.objects.tracker_confidences = np.array([0.88, 0], np.float32)
    found = (LabelInfo(0, 10, 0.97, "A7"),)
    meta.objects.add_classifier(0, ClassifierMeta(3, found, "A7 ", "character"))
    with open_sink(str(tmp_path / "x.jsonl")) as sink:
        sink.write(frame, meta)
    assert (tmp_path / "x.jsonl").read_text() == shown("jsonl-rich")


def test_columns_of_tables_are_those_documented() -> None:
    section = (DOCS / "tables.md").read_text().split("## One row")[1].split("## ")[0]
    rows = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    assert [name for row in rows for name in re.findall(r"`(\w+)`", row)] == list(COLUMNS)


def test_keys_of_objects_are_those_documented() -> None:
    section = FORMATS.split("## JSON Lines")[1].split("## COCO")[0]
    keys = set(re.findall(r"`(\w+)`", section))
    assert {name for row in FIELDS for name in row.names} - keys == set()


def test_every_kind_of_output_is_documented() -> None:
    text = (DOCS / "sources-and-sinks.md").read_text()
    assert all(f"`{kind}`" in text for kind in SINK_KINDS)


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
