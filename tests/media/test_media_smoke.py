"""A clip goes in, a video and its boxes come out."""

from __future__ import annotations

import json
from pathlib import Path

from headrace.media import open_sink, open_source
from headrace.media.draw import Painter


def test_source_to_sinks(clip: Path, tmp_path: Path, make_meta) -> None:
    video, lines = tmp_path / "out" / "v.mp4", tmp_path / "out" / "boxes.jsonl"
    painter = Painter()
    with (
        open_source(str(clip)) as source,
        open_sink(str(video), fps=source.fps) as mp4,
        open_sink(str(lines)) as jsonl,
    ):
        for frame in source:
            meta = make_meta(frame, (10, 10, 20, 20, 0.5, 0))
            mp4.write(painter.draw(frame, meta), meta)
            jsonl.write(frame, meta)
    with open_source(str(video)) as again:
        assert [f.pts_ns for f in again] == [i * 40_000_000 for i in range(12)]
    rows = [json.loads(line) for line in lines.read_text().splitlines()]
    assert [row["frame"] for row in rows] == list(range(12))
    assert rows[3]["objects"][0]["label"] == "car"
