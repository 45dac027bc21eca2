"""Files beside a model: names, size and normalisation that Hugging Face writes there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headrace.infer.recognise import exporters
from headrace.infer.recognise.exporters import MODEL_TYPE
from headrace.infer.recognise.recognise import recognise
from headrace.infer.recognise.sidecars import texts_beside
from tests.infer.recognise.models import rows_of

CONFIG = {"model_type": "resnet", "id2label": {"0": "cat", "1": "dog", "2": "cow"}}
PROCESSOR = {
    "image_processor_type": "ConvNextImageProcessor",
    "image_mean": [0.5, 0.5, 0.5],
    "image_std": [0.25, 0.25, 0.25],
    "size": {"height": 96, "width": 64},
}


def write(folder: Path, config: Any = CONFIG, processor: Any = PROCESSOR) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "preprocessor_config.json").write_text(json.dumps(processor))


@pytest.mark.parametrize("below", [False, True])
def test_a_classifier(tmp_path: Path, below: bool) -> None:
    folder = tmp_path / "onnx" if below else tmp_path
    folder.mkdir(exist_ok=True)
    write(tmp_path)
    logits = np.float32([[3, -2, 1]])
    path = rows_of(folder / "model.onnx", logits, names=["logits"], size=("h", "w"))
    known = recognise(path)
    assert known.exporter is exporters.TRANSFORMERS
    assert known.names == ("cat", "dog", "cow")
    assert (known.images.height, known.images.width) == (96, 64)
    assert known.config.offsets == (127.5, 127.5, 127.5)
    assert known.config.net_scale_factor == pytest.approx(1 / (255 * 0.25))


def test_images_that_are_only_rescaled(tmp_path: Path) -> None:
    write(tmp_path, processor=PROCESSOR | {"do_normalize": False})
    path = rows_of(tmp_path / "model.onnx", np.float32([[3, -2, 1]]), names=["logits"])
    known = recognise(path)
    assert known.images.scaling is exporters.UNIT
    assert known.config.offsets == ()


def test_colours_in_the_other_order(tmp_path: Path) -> None:
    write(tmp_path, processor=PROCESSOR | {"do_flip_channel_order": True})
    path = rows_of(tmp_path / "model.onnx", np.float32([[3, -2, 1]]), names=["logits"])
    assert recognise(path).images.order == "BGR"


@pytest.mark.parametrize(
    ("kind", "parser"),
    [("VitPoseForPoseEstimation", "HeadraceParseHeatmapPose"),
     ("SegformerForSemanticSegmentation", None)],
)  # fmt: skip
def test_labels_of_points_are_no_classes(tmp_path: Path, kind: str, parser: str | None) -> None:
    labels = {str(i): f"label {i}" for i in range(17)}
    write(tmp_path, {"model_type": "vitpose", "architectures": [kind], "id2label": labels})
    maps = np.zeros((1, 17, 64, 48), np.float32)
    path = rows_of(tmp_path / "model.onnx", maps, names=["heatmaps"], size=(256, 192))
    assert recognise(path).config.parse_bbox_func_name == parser


@pytest.mark.parametrize(
    ("more", "cut"),
    [
        ({"size": {"shortest_edge": 256}, "crop_size": {"height": 224}, "do_center_crop": True},
         0.875),
        ({"size": 256, "crop_size": 224, "do_center_crop": True}, 0.875),
        ({"size": 256, "crop_size": 224, "do_center_crop": False}, 0),
        ({"size": {"shortest_edge": 224}, "crop_pct": 0.9}, 0.9),
        ({"size": {"shortest_edge": 384}, "crop_pct": 0.9}, 0),
        ({"size": {"shortest_edge": 0}, "crop_pct": 0.9}, 0),
        ({"size": {"shortest_edge": 256}, "crop_size": "large", "do_center_crop": True}, 0),
    ],
)  # fmt: skip
def test_the_centre_that_is_cut_out(tmp_path: Path, more: dict[str, Any], cut: float) -> None:
    write(tmp_path, processor=PROCESSOR | more)
    found = recognise(rows_of(tmp_path / "m.onnx", np.float32([[3, -2, 1]]), names=["logits"]))
    assert found.config.centre_crop == cut
    assert found.images.fit == "stretch"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        '{"model_type": 3}',
        '{"architectures": ["X"]}',
        "[" * 5000,
        "\x00\xff",
    ],
)
def test_other_files_are_left(tmp_path: Path, text: str) -> None:
    (tmp_path / "config.json").write_text(text, encoding="latin-1")
    assert texts_beside(tmp_path / "model.onnx") == {}


@pytest.mark.parametrize(
    "processor",
    [
        [],
        {"image_mean": 0.5, "image_std": [1]},
        {"image_mean": ["a"], "image_std": [1]},
        {"do_rescale": False, "image_mean": [1, 1, 1], "image_std": [1, 1, 1]},
        {"size": 224},
        {"size": {"shortest_edge": 800}},
        {"size": {"height": True, "width": 3}},
    ],
)
def test_settings_that_say_nothing(tmp_path: Path, processor: Any) -> None:
    write(tmp_path, processor=processor)
    assert texts_beside(tmp_path / "m.onnx").keys() == {MODEL_TYPE, "id2label"}
