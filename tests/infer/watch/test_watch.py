"""When the watch looks, and where its findings go."""

from __future__ import annotations

import json
from pathlib import Path

import cv2
import numpy as np
import pytest

import headrace
from headrace._core.notices import HeadraceWarning
from headrace.errors import StrictError
from headrace.infer.inferencer import Inferencer
from headrace.infer.watch import Watch
from headrace.infer.watch.rules import is_finding
from tests.infer.watch.detectors import config_for, frames
from tests.infer.watch.test_watch_wrong_setups import found
from tests.inside import headrace as command

TWICE = 1 / 255  # bytes of a network that expects them, scaled all the same


@pytest.fixture
def wrong(tmp_path: Path) -> Path:
    return config_for(tmp_path, "columns", "bytes", net_scale_factor=TWICE)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "images"
    path.mkdir()
    for frame in frames():
        cv2.imwrite(str(path / f"{frame.frame:02}.png"), np.asarray(frame.planes[0])[..., ::-1])
    return path


def test_it_looks_at_the_first_runs_and_ever_more_rarely(wrong: Path) -> None:
    with Inferencer.from_config(wrong) as model:
        watch = model.model.watch
        assert isinstance(watch, Watch)
        due = [run for run in range(3000) if watch.due()]
    assert due[:14] == [0, 1, 2, 3, 4, 5, 6, 7, 16, 24, 32, 40, 48, 56]
    assert max(np.diff(due)) == 512
    assert len(due) < 150


def test_a_run_that_starts_empty_is_looked_at_where_boxes_come(tmp_path: Path) -> None:
    with Inferencer.from_config(config_for(tmp_path)) as model:
        for scene, count in (("empty", 58), ("objects", 24), ("empty", 80)):
            for frame in frames(scene, count=count):
                model.process([frame])
        watch = model.model.watch
        assert isinstance(watch, Watch)
        assert watch._boxes.found >= 4
        assert watch._boxes.looks < 24
        assert sum(sample.found for sample in watch._samples) >= 4  # the empty ones went first
        assert len(watch._samples) <= 6


def test_a_parser_of_other_rows_is_named_in_a_run_that_starts_empty(tmp_path: Path) -> None:
    config = config_for(tmp_path, "rows", parse_bbox_func_name="NvDsInferParseYolo")
    assert "parser-silent" in found(config, [*frames("empty", count=58), *frames(count=24)])


def test_findings_are_notices_of_the_report_and_of_the_model(wrong: Path, folder: Path) -> None:
    with (
        pytest.warns(HeadraceWarning, match="images have the wrong range"),
        headrace.open_pipeline(wrong, sources=str(folder)) as pipeline,
    ):
        report = pipeline.run()
    (found,) = [n for n in report.notices if is_finding(n)]
    assert (found.level, found.code) == ("warning", "input-range")
    assert found.where is not None
    assert found.where.startswith(f"{wrong}:")
    assert found in pipeline.notices
    assert "input-range" in {n["code"] for n in report.to_dict()["notices"]}


def test_each_rule_speaks_once(wrong: Path) -> None:
    with Inferencer.from_config(wrong) as model:
        for _ in range(3):
            for frame in frames(count=12):
                model.process([frame])
            model.conclude()
        assert [n.code for n in model.notices if is_finding(n)] == ["input-range"]


def test_the_command_says_it_and_strict_refuses(wrong: Path, folder: Path) -> None:
    done = command("run", wrong, folder)
    assert done.returncode == 0
    (line,) = [x for x in done.stderr.splitlines() if x.startswith("warning: ")]
    assert "set net-scale-factor=1 (with it: 30 boxes in 6 frames, scores up to 1.00)" in line
    told = json.loads(command("run", wrong, folder, "--json").stdout)
    assert [n["code"] for n in told["notices"] if n["level"] == "warning"] == ["input-range"]
    refused = command("run", wrong, folder, "--strict")
    assert refused.returncode == StrictError.exit_code
    assert "images have the wrong range" in refused.stderr


def test_a_call_with_an_image_is_watched_too(tmp_path: Path) -> None:
    config = config_for(tmp_path, model={"logits": True})
    with Inferencer.from_config(config) as model:
        for frame in frames(count=5):
            model(frame)
        assert [n.code for n in model.notices if is_finding(n)] == ["scores-above-1"]


def test_a_closed_session_says_nothing(wrong: Path) -> None:
    with Inferencer.from_config(wrong) as model:
        for frame in frames():
            model.process([frame])
    model.conclude()
    assert [n.code for n in model.notices if is_finding(n)] == []


def test_what_nobody_scales_here_is_not_watched(tmp_path: Path) -> None:
    config = config_for(tmp_path, network_type=100, input_tensor_from_meta=1)
    with Inferencer.from_config(config) as model:
        assert model.model.watch is None
