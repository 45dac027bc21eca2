"""Made scenes with exact truth: looks pay where objects hide, and cost little elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.track_scenes import made_model, play, scenes
from tests.pipeline.track.scenes import needs_library

pytestmark = needs_library


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "gain"),
    [("occlusion 60", 0.10), ("meeting 5", 0.10), ("meeting 30", 0.10), ("crossings", -0.01)],
)
def test_looks_beat_overlap_behind_posts(tmp_path: Path, name: str, gain: float) -> None:
    model = made_model(tmp_path)
    looks = f"nvdcf-perf:reid={model},reid_pixels=signed,reid_similarity=0.85"
    scores = play(scenes()[name], ["iou", looks])
    assert scores[looks][0].hota >= scores["iou"][0].hota + gain


@pytest.mark.slow
@pytest.mark.parametrize(("name", "gain"), [("meeting 5", 0.3), ("meeting 15", 0.1)])
def test_filters_alone_beat_overlap_behind_posts(name: str, gain: float) -> None:
    scores = play(scenes()[name], ["iou", "nvdcf-accuracy"])
    assert scores["nvdcf-accuracy"][0].hota >= scores["iou"][0].hota + gain
