"""Configs share engines, whose outputs are kept by their inputs, and raise nothing."""

from __future__ import annotations

import numpy as np

from headrace.config import ModelConfig
from headrace.diagnose.repair.setup_runs import SetupRuns, blank_frames
from headrace.media import open_source
from tests.diagnose.repair.conftest import Write
from tests.mistakes.scene import SIDE, squares
from tests.mistakes.setups import YOLOV8


def test_the_engine_runs_once_for_each_distinct_input(write: Write) -> None:
    path = write(YOLOV8)
    frames, cfg = list(open_source(str(path.parent / "images")))[:6], ModelConfig.load(path)
    with SetupRuns(frames) as runs:
        before = runs.run(cfg)
        assert runs.engine_runs == len(frames)
        runs.run(cfg.with_overrides(cluster_mode=4))
        runs.run(cfg.with_overrides(conf=0.5))
        assert runs.engine_runs == len(frames)
        runs.run(cfg.with_overrides(model_color_format=1))
        assert runs.engine_runs == 2 * len(frames)
    assert before.error is None
    assert not before.findings
    for number, meta in enumerate(before.metas):
        corners = sorted((round(box[0]), round(box[1])) for box in meta.objects.rects.tolist())
        truth = sorted((s.left, s.top) for s in squares(number))
        assert np.abs(np.array(corners) - truth).max() <= 2
        assert np.abs(meta.objects.rects[:, 2:] - SIDE).max() <= 2


def test_findings_tell_a_mistake_and_errors_are_results(write: Write) -> None:
    path = write(YOLOV8)
    frames, cfg = list(open_source(str(path.parent / "images")))[:6], ModelConfig.load(path)
    with SetupRuns(frames) as runs:
        swapped = runs.run(cfg.with_overrides(model_color_format=1))
        assert "input-colors" in [finding.code for finding in swapped.findings]
        refused = runs.run(cfg.with_overrides(parse_bbox_func_name="HeadraceParseRTDETR"))
        assert refused.error is None
        assert not any(len(m.objects) for m in refused.metas)
        lost = runs.run(cfg.with_overrides(onnx_file=path.parent / "other.onnx"))
        assert lost.error is not None
        assert not lost.metas
        assert runs.run(cfg).error is None


def test_a_wrong_range_finds_things_in_blank_images_and_nothing_is_saved(write: Write) -> None:
    path = write(YOLOV8)
    files = sorted(path.parent.iterdir())
    frames, cfg = list(open_source(str(path.parent / "images")))[:2], ModelConfig.load(path)
    with SetupRuns(frames) as runs:
        right, wrong = (
            runs.run(c, thorough=True, blanks=True)
            for c in (cfg, cfg.with_overrides(net_scale_factor=1.0))
        )
    assert not any(len(meta.objects) for meta in right.blanks)
    assert any(len(meta.objects) for meta in wrong.blanks)
    assert len(blank_frames(frames[0])) == len(right.blanks)
    assert sorted(path.parent.iterdir()) == files
