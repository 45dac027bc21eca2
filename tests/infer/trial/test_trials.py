"""Changed keys on frames at hand: what a trial says is what a run gives."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headrace.config.enums import TensorOrder
from headrace.infer.inferencer import Inferencer
from headrace.infer.preprocess import Preprocessor
from headrace.infer.trial import ConfigTrials, change_text, changed_config
from headrace.infer.trial.samples import packed
from headrace.media.sources.arrays import ArraySource
from tests.infer.watch.detectors import config_for, frames

UNIT = "0.00392156862745098"
ALL = "class-attrs-all."


@contextmanager
def opened(folder: Path, *args: Any, count: int = 5, **keys: Any) -> Iterator[ConfigTrials]:
    with Inferencer.from_config(config_for(folder, *args, **keys)) as model:
        yield ConfigTrials.of_model(model.model, frames(count=count))


def run_boxes(config: Path, count: int = 5) -> list[int]:
    with Inferencer.from_config(config) as model:
        return [len(model(frame).objects) for frame in frames(count=count)]


@pytest.mark.parametrize("order", [TensorOrder.NCHW, TensorOrder.NHWC])
@pytest.mark.parametrize(
    "levels",
    [
        {"scale": 1.0},
        {"scale": float(UNIT), "offsets": (0.1, 77.7, 123.675)},
        {"scale": 0.017, "mean": np.linspace(0, 255, 30 * 40 * 3).reshape(30, 40, 3)},
    ],
)
def test_an_input_is_kept_as_its_bytes_to_the_bit(
    order: TensorOrder, levels: dict[str, Any]
) -> None:
    pre = Preprocessor(40, 30, order=order, **levels)
    image = np.random.default_rng(1).integers(0, 256, (60, 80, 3), np.uint8)
    tensor = np.empty(pre.shape, np.float32)
    pre(ArraySource((), format="rgb").frame_of(image), tensor)
    kept = packed(tensor, pre)
    assert kept is not None
    assert np.array_equal(kept.unpacked(), tensor)
    assert np.array_equal(kept.thinned(7).unpacked(), tensor.reshape(-1)[::7])
    assert kept.levels.nbytes * 4 == tensor.nbytes
    tensor[0, 0, 0] += 0.4 * pre.scale
    assert packed(tensor, pre) is None  # not made of bytes


@pytest.mark.parametrize(
    ("wrong", "change"),
    [
        ({"net_scale_factor": 1}, {"net-scale-factor": UNIT}),
        ({"model_color_format": 1}, {"model-color-format": "0"}),
        ({"offsets": "90;90;90"}, {"offsets": None}),
        ({"parse_bbox_func_name": "HeadraceParseYoloX"},
         {"parse-bbox-func-name": "HeadraceParseYoloV8"}),
        ({"cluster_mode": 4}, {"cluster-mode": "2"}),
        ({"text": "[class-attrs-all]\npre-cluster-threshold=0.999\nnms-iou-threshold=0.4\n"},
         {f"{ALL}pre-cluster-threshold": "0.4"}),
    ],
)  # fmt: skip
def test_a_change_gives_what_the_right_config_gives(
    tmp_path: Path, wrong: dict[str, Any], change: dict[str, str | None]
) -> None:
    right = run_boxes(config_for(tmp_path))
    assert sum(right) > 5
    with opened(tmp_path, **wrong) as trials:
        outcome = trials(change)
        assert [reading.objects for reading in outcome.readings] == right
        assert trials.present.total != outcome.total
        assert outcome.sound
        assert outcome.data["boxes"] == outcome.boxes


def test_a_letterbox_is_made_of_the_frames_themselves(tmp_path: Path) -> None:
    with opened(tmp_path, maintain_aspect_ratio=1) as trials:
        assert trials({"maintain-aspect-ratio": "0"}).boxes == trials.present.boxes  # square frames


def test_without_frames_an_input_is_turned_back_into_its_image(tmp_path: Path) -> None:
    with opened(tmp_path, net_scale_factor=1) as trials:
        by_frame = trials({"net-scale-factor": UNIT})
        for sample in trials.samples:
            sample.frame = None
        other = ConfigTrials(
            trials.cfg, trials.network, trials.labels, trials.samples, run=trials.run
        )({"net-scale-factor": UNIT})  # fmt: skip
        assert [r.objects for r in other.readings] == [r.objects for r in by_frame.readings]


def test_a_refused_value_is_an_outcome(tmp_path: Path) -> None:
    with opened(tmp_path) as trials:
        refused = trials({"cluster-mode": "9"})
        assert refused.refused is not None
        assert "cluster-mode" in refused.refused
        assert not refused.sound
        assert refused.data == {"refused": refused.refused, "untried": None}


def test_what_the_budget_does_not_pay_is_not_tried(tmp_path: Path) -> None:
    with opened(tmp_path) as trials:
        trials.budget.left_s = 0
        outcome = trials({"net-scale-factor": "1"})
        assert outcome.untried is not None
        assert not outcome.readings
        assert trials({f"{ALL}pre-cluster-threshold": "0.3"}).untried is None  # needs no network


def test_a_budget_for_fewer_frames_tries_those(tmp_path: Path) -> None:
    with opened(tmp_path) as trials:
        trials.budget.run_s, trials.budget.left_s = 10.0, 25.0
        assert len(trials({"net-scale-factor": "1"}).readings) == 2


def test_steadiness_is_of_frames_that_follow_each_other(tmp_path: Path) -> None:
    with Inferencer.from_config(config_for(tmp_path)) as model:
        still = ConfigTrials.of_model(model.model, frames("still", count=4)).present
        moving = ConfigTrials.of_model(model.model, frames("noisy", count=4)).present
    assert still.steady == 1.0
    assert str(still).endswith("steady")
    assert moving.steady is None


def test_changes_in_words_and_in_configs(tmp_path: Path) -> None:
    with opened(tmp_path, offsets="9;9;9") as trials:
        cfg = changed_config(trials.cfg, {"offsets": None, f"{ALL}topk": "7"})
        assert not cfg.offsets
        assert {attrs.topk for attrs in cfg.per_class} == {7}
        assert len(trials.cfg.offsets) == 3
    assert change_text({"net-scale-factor": "1", "offsets": None}) == (
        "net-scale-factor=1 without offsets"
    )


@pytest.mark.filterwarnings("ignore::headrace.HeadraceWarning")
def test_class_counts_that_outputs_leave_open_are_tried(tmp_path: Path) -> None:
    config = config_for(tmp_path, "ssd", num_detected_classes=5, labelfile_path=None)
    with Inferencer.from_config(config) as model:
        (before,) = [n for n in model.notices if n.code == "class-count"]
        assert "guesses, not tried" in str(before)
        for frame in frames(count=6):
            model(frame)
        model.conclude()
        after = {n.code: n for n in model.notices}
    for code in ("class-count", "parser-failed"):
        rows = after[code].data["advice"]
        assert [row["set"]["num-detected-classes"] for row in rows] == ["2", "3"]
        assert all(row["basis"] == "tried" and row["boxes"] for row in rows)
        assert "set" not in after[code].data


@pytest.mark.filterwarnings("ignore::headrace.HeadraceWarning")
def test_labels_decide_between_two_class_counts(tmp_path: Path) -> None:
    with Inferencer.from_config(config_for(tmp_path, "ssd", num_detected_classes=5)) as model:
        (notice,) = [n for n in model.notices if n.code == "class-count"]
    assert notice.data["set"] == {"num-detected-classes": "3"}  # with the background's name
