"""One mistake each, as users make them: the watch names it, with figures and the key to change."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headrace.infer.inferencer import Inferencer
from headrace.infer.watch.rules import is_finding
from headrace.media import Frame, PixelFormat
from tests.infer.watch.detectors import config_for, frames
from tests.infer.watch.test_watch_correct_setups import CLASSIFY, ULTRALYTICS, head_config


def found(config: Path, images: Sequence[Frame]) -> dict[str, str]:
    """Rules and sentences after these images."""
    with Inferencer.from_config(config) as model:
        for frame in images:
            model.process([frame])
        model.conclude()
        return {n.code: str(n) for n in model.notices if is_finding(n)}


UNIT = 1 / 255
SHIFTED = ULTRALYTICS | {"names": "{0: 'red', 1: 'green', 2: 'blue', 3: 'dark'}"}
# setup, keys, model, rule, words of the sentence
WRONG: dict[str, tuple[dict[str, Any], dict[str, Any], str, str]] = {
    "scaled twice": (
        {"pixels": "bytes", "net_scale_factor": UNIT},
        {},
        "input-range",
        r"0 to 1 of net-scale-factor=0.0039\d* give no boxes: set net-scale-factor=1 .with it: 30 ",
    ),
    "scaled twice, the graph tells": (
        {"pixels": "bytes", "net_scale_factor": UNIT},
        {"stem": True},
        "input-range",
        "the model itself multiplies by 0.003922: it expects 0 to 255: set net-scale-factor=1",
    ),
    "bytes where metadata says units": (
        {"net_scale_factor": 1},
        {"metadata": ULTRALYTICS},
        "input-range",
        "net-scale-factor=1 gives the network 0 to 255; the model's metadata",
    ),
    "swapped, metadata": (
        {"model_color_format": 1},
        {"metadata": ULTRALYTICS},
        "input-colors",
        "model-color-format=0",
    ),
    "swapped": (
        {"colors": ("red",), "model_color_format": 1},
        {},
        "input-colors",
        "model-color-format=1 gives no boxes .* set model-color-format=0 .with it: 29 boxes",
    ),
    "no sigmoid": ({}, {"logits": True}, "scores-above-1", "up to 10"),
    "threshold above all": (
        {"text": "[class-attrs-all]\npre-cluster-threshold=0.999\n"},
        {"gain": 8},
        "threshold-above-all",
        "pre-cluster-threshold=0.999 is above all scores: the best of 6 images is 0.9",
    ),
    "parser of boxes in 0..1": (
        {"head": "rows", "parse_bbox_func_name": "HeadraceParseRTDETR"},
        {},
        "parser-silent",
        "set parse-bbox-func-name=HeadraceParseYoloV8 .with it: 30 boxes in 6 frames",
    ),
    "parser of other columns": (
        {"head": "rows", "parse_bbox_func_name": "NvDsInferParseYolo"},
        {},
        "parser-silent",
        "HeadraceParseYoloV8",
    ),
}


@pytest.mark.parametrize("case", WRONG)
@pytest.mark.sampled
def test_one_mistake(case: str, tmp_path: Path) -> None:
    setup, model, rule, words = WRONG[case]
    config = config_for(tmp_path, model=model, **setup)
    said = found(config, frames("objects", setup.get("colors", ("red", "green"))))
    first = next(iter(said.items()), ("nothing", ""))
    assert re.fullmatch(rule, first[0]), said
    assert re.search(words, first[1]), first
    assert "\n" not in first[1]
    assert first[1].startswith(str(config))


def test_one_image_is_enough_for_what_is_certain(tmp_path: Path) -> None:
    config = config_for(tmp_path, "columns", "bytes", net_scale_factor=UNIT)
    assert list(found(config, frames(count=1))) == ["input-range"]


def one_patch(places: Sequence[tuple[int, int]]) -> list[Frame]:
    """A red patch of one cell in each image, at these cells of the network."""
    made = []
    for i, (x, y) in enumerate(places):
        image = np.full((128, 128, 3), 110, np.uint8)
        image[y * 16 : y * 16 + 16, x * 16 : x * 16 + 16] = (255, 0, 0)
        made.append(Frame.from_array(image, PixelFormat.RGB, frame=i, source="patch"))
    return made


def test_one_object_an_image_shows_that_corners_are_read_as_centres(tmp_path: Path) -> None:
    inside = one_patch([(2, 4), (4, 2), (3, 5), (5, 3)] * 2)
    config = config_for(tmp_path, "ssd", parse_bbox_func_name="HeadraceParseSSDCenters")
    said = found(config, inside)["boxes-cut"]
    assert "100% of the boxes are cut" in said
    assert "parse-bbox-func-name=HeadraceParseSSDCorners: 6 boxes in 6 frames" in said
    assert found(config_for(tmp_path, "ssd"), inside) == {}


@pytest.mark.slow
def test_objects_at_the_edges_alone_say_nothing(tmp_path: Path) -> None:
    for places in ([(0, 0)], [(0, 3)], [(7, 7)], [(3, 0), (0, 4), (7, 2), (4, 7)]):
        for head in ("ssd", "centres"):
            assert found(config_for(tmp_path, head), one_patch(places * 10)) == {}, places


def test_a_background_line_moves_the_labels(tmp_path: Path) -> None:
    config = config_for(tmp_path, colors=("red", "green", "blue"), model={"metadata": SHIFTED})
    (tmp_path / "labels.txt").write_text("background\nred\ngreen\nblue\n")
    said = found(config, frames())
    assert "take out the line before ('background')" in said["labels-moved"]


def test_images_squeezed_where_metadata_says_letterbox(tmp_path: Path) -> None:
    config = config_for(tmp_path, model={"metadata": ULTRALYTICS})
    wide = [
        Frame.from_array(f.planes[0][:56], f.format, frame=f.frame, source="w") for f in frames()
    ]
    assert "set maintain-aspect-ratio=1" in found(config, wide)["aspect-ratio"]


def test_a_classifier_without_softmax_and_labels_of_another(tmp_path: Path) -> None:
    nodes = [*CLASSIFY[:-1]]
    nodes[-1].output[0] = "output"
    try:
        config = head_config(tmp_path, nodes, [1, 3], network_type=1)
    finally:
        nodes[-1].output[0] = "logits"
    (tmp_path / "names.txt").write_text("red;green\n")
    said = found(config, frames("objects", ("blue",)))
    assert "up to 20" in said["scores-above-1"]
    assert "class 2 wins and has no label" in said["class-without-label"]
