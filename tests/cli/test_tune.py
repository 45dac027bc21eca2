"""`headrace tune tracker` on the demo scene."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from headrace.cli import main
from headrace.pipeline.track import open_tracker
from tests.copies import copied_example
from tests.pipeline.track.scenes import needs_library

SCENE = Path(__file__).parents[2] / "examples" / "conveyor"


@needs_library
@pytest.mark.slow
def test_the_demo_is_tuned_and_its_tracker_written(tmp_path: Path) -> None:
    copied_example("conveyor", tmp_path / "scene")
    scene, out = tmp_path / "scene", tmp_path / "tracker.yml"
    words = ["tune", "tracker", str(scene / "config_infer_primary.txt"),
             str(scene / "conveyor.mp4"), "--truth", str(scene / "truth.json"), "--trials", "3",
             "--key", "min_hits", "-o", str(out), "--json", "-q"]  # fmt: skip
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, done.output
    report = json.loads(done.stdout)
    assert report["tracker"] == "iou"
    assert report["start"]["tuned"]["hota"] > 0.8
    assert report["best"]["held_out"]["hota"] >= report["start"]["held_out"]["hota"]
    assert len(report["trials"]) == 4
    assert open_tracker(out).name == "iou"
    again = CliRunner().invoke(main, words)
    assert again.exit_code == 3
    assert "there is a file of that name" in again.output
