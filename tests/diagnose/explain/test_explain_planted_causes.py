"""Causes planted in a config: the explanation of one frame names each, with its line and change."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headrace._core.text import counted
from headrace.diagnose.explain import ModelExplanation, explain
from tests.infer.scenes import classifier
from tests.infer.tally.test_box_losses import detector, own_parser
from tests.infer.watch.detectors import config_for, frames
from tests.mistakes.cases import Case
from tests.mistakes.models import MODELS
from tests.mistakes.scene import write_scenes
from tests.mistakes.setups import YOLOV8

pytestmark = pytest.mark.filterwarnings("ignore::headrace.HeadraceWarning")
Config = Callable[..., Path]
IMAGE = np.full((64, 64, 3), 60, np.uint8)
# two cars side by side whose boxes overlap with an IoU of 0.25
NEIGHBOURS = [(20, 20, 10, 20, 1, 0.9, 0), (26, 20, 10, 20, 1, 0.8, 0)]
LOW = "Detections([[15, 50, 10, 20]], [0.9], [0])"


def explained(folder: Path, attrs: str = "", **keys: Any) -> ModelExplanation:
    with detector(folder, attrs, **keys) as model:
        (found,) = explain(model, IMAGE).data.models
    return found


@pytest.mark.parametrize(
    ("attrs", "keys", "key", "text", "fix"),
    [
        (
            "pre-cluster-threshold=0.95", {}, "pre-cluster-threshold",
            "score 0.9 < pre-cluster-threshold=0.95", "set 0.89",
        ),
        (
            "[class-attrs-1]\npre-cluster-threshold=0.65", {}, "pre-cluster-threshold",
            "score 0.6 < pre-cluster-threshold=0.65", "set 0.6",
        ),
        (
            "nms-iou-threshold=0.2", {"rows": NEIGHBOURS}, "nms-iou-threshold",
            "IoU 0.25 with car 0.9 > nms-iou-threshold=0.2", "set 0.25",
        ),
        ("topk=1", {}, "topk", "number 2 by score of its class, topk=1", "set 2"),
        (
            "detected-min-h=15", {}, "detected-min-h",
            "8 pixels high < detected-min-h=15", "set 8",
        ),
        (
            "roi-top-offset=30", {}, "roi-top-offset",
            "top at 10 < roi-top-offset=30", "set 10",
        ),
        (
            "", {"filter_out_class_ids": "0"}, "filter-out-class-ids",
            "class 0 is in filter-out-class-ids=0", "leave 0 out",
        ),
    ],
    ids=["threshold", "class-threshold", "iou", "topk", "size", "roi", "class"],
)  # fmt: skip
def test_a_filter_of_the_config(
    tmp_path: Path, attrs: str, keys: dict[str, Any], key: str, text: str, fix: str
) -> None:
    found = explained(tmp_path, attrs, **keys)
    lines = (tmp_path / "config.txt").read_text().splitlines()
    verdict = found.dropped[0].verdict
    assert (verdict.key, verdict.text) == (key, text)
    assert verdict.fix.split()[0] == fix.split()[0]
    if fix.startswith("set"):
        assert float(verdict.fix.split()[1]) == pytest.approx(float(fix.split()[1]), abs=0.011)
    file, _, line = str(verdict.where).rpartition(":")
    assert Path(file) == tmp_path / "config.txt"
    assert lines[int(line) - 1].startswith(key)
    assert key in found.verdict
    if fix.startswith("set"):  # the change is tried
        mended = f"{attrs.rpartition('=')[0]}={verdict.fix.removeprefix('set ')}"
        objects = explained(tmp_path, mended, **keys).objects
        assert objects > found.objects
        assert verdict.outcome.startswith(f"{counted(objects, 'object')} in 1 frame instead")
    else:
        assert verdict.outcome


def test_a_filter_behind_the_threshold(tmp_path: Path) -> None:
    found = explained(tmp_path, "pre-cluster-threshold=0.95", filter_out_class_ids="0;1")
    assert "score 0.9 < pre-cluster-threshold=0.95" in found.verdict
    assert "then class 0 is in filter-out-class-ids=0;1" in found.verdict


def test_a_trial_says_that_filters_drop_what_it_gives(tmp_path: Path) -> None:
    found = explained(tmp_path, "pre-cluster-threshold=0.95\ndetected-min-h=25")
    words = "(with it: 3 boxes in 1 frame, scores up to 0.90, none of which pass the filters)"
    assert words in found.verdict
    assert explained(tmp_path, "pre-cluster-threshold=0.25\ndetected-min-h=25").objects == 0


def test_the_edge_of_the_frame(tmp_path: Path) -> None:
    keys = own_parser(tmp_path, LOW)
    found = explained(tmp_path, **keys)
    verdict = found.dropped[0].verdict
    assert (verdict.stage, verdict.key, verdict.where) == ("filter", "edge", None)
    assert verdict.text == "reaches 6 pixels below the frame"
    assert "profile=modern" in verdict.fix
    assert explained(tmp_path, **keys, profile="modern").objects == 1


def test_a_parser_that_returns_nothing(tmp_path: Path) -> None:
    found = explained(tmp_path, **own_parser(tmp_path, "Detections.empty()"))
    assert found.verdict.startswith("0 objects: parse in own.py finds nothing")
    assert "set parse-bbox-func-name=HeadraceParseYoloV5" in found.verdict
    assert "(with it: 3 boxes in 1 frame, scores up to 0.90) (config.txt:" in found.verdict
    assert found.reasons[0].startswith("the parser (parse in own.py) returned no boxes")
    assert found.classes == ()


def test_a_parser_for_other_outputs(tmp_path: Path) -> None:
    found = explained(tmp_path, parse_bbox_func_name="HeadraceParseEfficientNMS")
    assert found.verdict.startswith("0 objects: built-in HeadraceParseEfficientNMS")
    assert "set parse-bbox-func-name=HeadraceParseYoloV5" in found.verdict
    assert "(with it: 3 boxes in 1 frame, scores up to 0.90) (config.txt:" in found.verdict
    assert found.reasons[0].startswith("parse-bbox-func-name=HeadraceParseEfficientNMS: ")


@pytest.fixture(scope="module")
def squares(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Images of coloured squares, and a network that finds them."""
    folder = tmp_path_factory.mktemp("explained") / "store"
    write_scenes(folder, ["images"])
    MODELS["yolov8.onnx"](folder / "yolov8.onnx")
    return folder


@pytest.mark.parametrize(
    ("keys", "key"),
    [
        ({}, ""),
        ({"net-scale-factor": 1}, "net-scale-factor"),
        ({"model-color-format": 1}, "model-color-format"),
    ],
    ids=["right", "scale", "colours"],
)
def test_images_that_are_not_those_of_the_training(
    squares: Path, tmp_path: Path, keys: dict[str, Any], key: str
) -> None:
    folder = tmp_path / "case"
    Case("case", YOLOV8, keys).write(folder, squares)
    (found,) = explain(folder / "config.txt", str(folder / "images")).data.models
    if not key:
        assert found.findings == ()
        assert found.objects
        return
    assert any(key in one["message"] for one in found.findings)
    if not found.objects:
        assert key in found.verdict


def test_advice_that_gave_nothing_is_no_cause(tmp_path: Path) -> None:
    names = {"description": "Ultralytics YOLOv8n model", "names": "{0: 'red', 1: 'green'}"}
    config = config_for(
        tmp_path, net_scale_factor=1, filter_out_class_ids="0;1", model={"metadata": names}
    )
    told = explain(config, frames("empty")[0].to_bgr())
    (found,) = told.data.models
    assert found.verdict.startswith("0 objects: filter-out-class-ids=0;1 dropped all")
    assert [one["code"] for one in found.findings] == ["input-range"]
    assert "images have the wrong range" in told.summary()


@pytest.mark.parametrize(
    ("keys", "key", "text"),
    [
        ({"operate_on_class_ids": "3"}, "operate-on-class-ids", "is not in operate-on-class-ids=3"),
        ({"operate_on_gie_id": 5}, "operate-on-gie-id", "not of operate-on-gie-id=5"),
        (
            {"input_object_min_height": 30}, "input-object-min-height",
            "pixels high < input-object-min-height=30",
        ),
    ],
)  # fmt: skip
def test_a_secondary_model_that_does_not_look(
    tmp_path: Path, mean_config: Config, keys: dict[str, Any], key: str, text: str
) -> None:
    secondary = classifier(mean_config, **keys)
    secondary = Path(shutil.move(secondary, secondary.with_name("secondary.txt")))
    (tmp_path / "first").mkdir()
    with detector(tmp_path / "first") as model:
        found = explain([model, secondary], IMAGE, at=(20, 20)).data.models[1]
    assert found.items == 0
    assert len(found.skipped) == 3
    verdict = found.skipped[0].verdict
    assert (verdict.stage, verdict.key) == ("skipped", key)
    assert text in verdict.text
    assert str(verdict.where).startswith(f"{secondary}:")
    assert found.verdict.startswith(f"nothing inferred: {key}=")
    assert found.place is not None
    assert "does not look at object 0 (car)" in found.place.sentence
