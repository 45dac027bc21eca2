"""Files of deployment tools beside a model: images, classes and thresholds come from them."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headrace.config import ModelConfig
from headrace.config.enums import ColorFormat, NetworkType
from headrace.infer.recognise import exporters
from headrace.infer.recognise.deployments import HEAD, kind_of_head
from headrace.infer.recognise.recognise import Recognition, recognise
from headrace.infer.recognise.sidecars import texts_beside
from tests.infer.recognise.models import rows_of

LOGITS = np.float32([[3, -2, 1]])
PIPELINE: dict[str, Any] = {
    "pipeline": {
        "tasks": [
            {"module": "Transform", "transforms": [
                {"type": "LoadImageFromFile"},
                {"type": "Resize", "keep_ratio": True, "size": [64, 64]},
                {"type": "Normalize", "to_rgb": False, "mean": [103.53, 116.28, 123.675],
                 "std": [57.375, 57.12, 58.395]},
            ]},
            {"module": "Net", "name": "yolox"},
            {"module": "ResizeBBox", "params": {"score_thr": 0.05, "nms": None}},
        ]
    }
}  # fmt: skip
ARCHIVE: dict[str, Any] = {
    "config_version": "1.0",
    "model": {
        "metadata": {"name": "net", "path": "model.onnx"},
        "inputs": [{"name": "images", "preprocessing": {
            "mean": [127.5, 127.5, 127.5], "scale": [127.5, 127.5, 127.5],
            "reverse_channels": False, "dai_type": "BGR888p"}}],
        "heads": [{"parser": "ClassificationParser", "metadata": {
            "classes": ["cat", "dog", "cow"], "conf_threshold": 0.4}}],
    },
}  # fmt: skip
MODELINFO = """[modelinfo]
version=1.0
group-id=mobilenet-out

[images]
id=images
type=float32
dims=1,3,64,64
dir=input
ranges=-1.0,1.0;-1.0,1.0;-1.0,1.0

[output]
dir=output
ranges=0.0,7.0
"""
TAO = """[property]
net-scale-factor=0.01735207357
offsets=123.675;116.28;103.53
model-color-format=1
maintain-aspect-ratio=1
"""


def write(folder: Path, **files: object) -> None:
    for name, content in files.items():
        text = content if isinstance(content, str) else json.dumps(content)
        (folder / name.replace("__", ".")).write_text(text)


def known(folder: Path, logits: Any = LOGITS) -> Recognition:
    return recognise(rows_of(folder / "model.onnx", logits, names=["output"]))


def test_pipeline_of_mmdeploy(tmp_path: Path) -> None:
    write(tmp_path, pipeline__json=PIPELINE, detail__json={"classes": ["cat", "dog", "cow"]})
    found = known(tmp_path)
    assert found.config.model_color_format is ColorFormat.BGR
    assert found.config.offsets == pytest.approx((103.53, 116.28, 123.675))
    assert found.config.net_scale_factor == pytest.approx(1 / 57.63)
    assert found.names == ("cat", "dog", "cow")
    assert found.images.fit == "corner"
    assert not found.images.assumed
    assert "pipeline.json of mmdeploy beside the model" in found.lines[2]


@pytest.mark.parametrize(
    ("edge", "crop", "cut"), [({"scale": 256}, 224, 0.875), ({"scale": [128, 128]}, [96, 96], 0.75),
                              ({"scale": 256, "edge": "long"}, 224, 0), ({}, 224, 0)],
)  # fmt: skip
def test_a_pipeline_of_mmdeploy_cuts_the_centre_out(
    tmp_path: Path, edge: dict[str, Any], crop: Any, cut: float
) -> None:
    steps = [{"type": "ResizeEdge", **edge}, {"type": "CenterCrop", "crop_size": crop}]
    tasks = [{"module": "Transform", "transforms": [*steps, {"type": "Normalize", "mean": [0] * 3,
              "std": [255] * 3, "to_rgb": True}]}]  # fmt: skip
    write(tmp_path, pipeline__json={"pipeline": {"tasks": tasks}})
    assert known(tmp_path).config.centre_crop == cut


def test_thresholds_of_mmdeploy(tmp_path: Path) -> None:
    write(tmp_path, pipeline__json=PIPELINE)
    rows = np.zeros((1, 20, 5), "f4"), np.zeros((1, 20), "i8")
    path = rows_of(tmp_path / "end2end.onnx", list(rows), names=["dets", "labels"])
    found = recognise(path, {"num_detected_classes": 2})
    assert found.config.all_classes.pre_cluster_threshold == 0.05


def test_a_pipeline_of_another_model_is_left(tmp_path: Path) -> None:
    write(tmp_path, pipeline__json=PIPELINE, deploy__json={"models": [{"net": "end2end.onnx"}]})
    assert texts_beside(tmp_path / "model.onnx") == {}
    assert texts_beside(tmp_path / "end2end.onnx") != {}


def test_an_unpacked_archive_of_luxonis(tmp_path: Path) -> None:
    write(tmp_path, config__json=ARCHIVE)
    found = known(tmp_path)
    assert found.config.model_color_format is ColorFormat.BGR
    assert found.config.offsets == pytest.approx((127.5, 127.5, 127.5))
    assert found.config.net_scale_factor == pytest.approx(1 / 127.5)
    assert found.names == ("cat", "dog", "cow")
    assert texts_beside(tmp_path / "other.onnx") == {}


@pytest.mark.parametrize("name", ["model__onnx__modelinfo", "model__modelinfo"])
def test_modelinfo_of_gstreamer(tmp_path: Path, name: str) -> None:
    write(tmp_path, **{name: MODELINFO})
    found = known(tmp_path)
    assert found.config.net_scale_factor == pytest.approx(2 / 255)
    assert found.config.offsets == pytest.approx((127.5, 127.5, 127.5))


def test_keys_of_tao(tmp_path: Path) -> None:
    write(tmp_path, nvinfer_config__txt=TAO, labels__txt="cat;dog;cow\n")
    found = known(tmp_path)
    assert found.config.net_scale_factor == pytest.approx(0.01735207357)
    assert found.config.offsets == pytest.approx((123.675, 116.28, 103.53))
    assert found.config.model_color_format is ColorFormat.BGR
    assert found.images.fit == "corner"
    assert found.names == ("cat", "dog", "cow")


def test_config_of_timm(tmp_path: Path) -> None:
    images = {"mean": [0.5] * 3, "std": [0.5] * 3, "input_size": [3, 96, 64]}
    write(tmp_path, config__json={"architecture": "vit_tiny", "pretrained_cfg": images,
                                  "label_names": ["cat", "dog", "cow"]})  # fmt: skip
    path = rows_of(tmp_path / "model.onnx", LOGITS, names=["output"], size=("h", "w"))
    found = recognise(path)
    assert found.exporter is exporters.TIMM
    assert found.config.centre_crop == 0
    assert (found.images.height, found.images.width) == (96, 64)
    assert found.config.offsets == pytest.approx((127.5, 127.5, 127.5))
    assert found.names == ("cat", "dog", "cow")


@pytest.mark.parametrize(
    ("mode", "share", "cut"), [("center", 0.875, 0.875), ("squash", 0.875, 0), ("center", "x", 0)]
)
def test_the_crop_of_timm(tmp_path: Path, mode: str, share: object, cut: float) -> None:
    images = {"crop_pct": share, "crop_mode": mode}
    write(tmp_path, config__json={"architecture": "resnet18", "pretrained_cfg": images})
    found = known(tmp_path)
    assert found.config.centre_crop == cut
    assert found.images.fit == "stretch"


def test_a_model_that_says_all_itself_is_not_changed_by_its_neighbours(tmp_path: Path) -> None:
    write(tmp_path, pipeline__json=PIPELINE)
    metadata = {"author": "Ultralytics", "task": "classify", "names": "{0: 'a', 1: 'b', 2: 'c'}"}
    path = rows_of(tmp_path / "m.onnx", np.float32([[0.7, 0.2, 0.1]]), metadata=metadata)
    found = recognise(path)
    assert found.config.model_color_format is ColorFormat.RGB
    assert found.config.centre_crop == 1.0
    assert found.names == ("a", "b", "c")


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("pipeline.json", '{"pipeline": {"tasks": [3, {"transforms": 4}, null]}}'),
        ("pipeline.json", '{"pipeline": {"tasks": "x"}}'),
        ("pipeline.json", '{"pipeline": [1]}'),
        ("deploy.json", '{"models": [1, {"net": 3}]}'),
        ("config.json", '{"model": {"metadata": {"path": "model.onnx"}, "inputs": [3]}}'),
        ("config.json", '{"model": {"metadata": {"path": "model.onnx"}, "inputs": "x"}}'),
        ("model.onnx.modelinfo", "[images]\ndir=input\nranges=1,0;a\n"),
        ("model.onnx.modelinfo", "no group\n\x00[\n"),
        ("nvinfer_config.txt", "[property\nnet-scale-factor=-1"),
        ("nvinfer_config.txt", "[property]\nnet-scale-factor=nan\noffsets=x;;"),
    ],
)
def test_broken_files_are_no_error(tmp_path: Path, file: str, text: str) -> None:
    (tmp_path / file).write_text(text)
    texts = texts_beside(tmp_path / "model.onnx")
    assert "mean" not in texts
    assert "names" not in texts


def test_an_archive_of_luxonis_runs_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    write(tmp_path, config__json=ARCHIVE)
    known(tmp_path)
    with tarfile.open(tmp_path / "a.tar.xz", "w:xz") as archive:
        for name in ("config.json", "model.onnx"):
            archive.add(tmp_path / name, name)
    cfg = ModelConfig.load(tmp_path / "a.tar.xz")
    assert cfg.onnx_file is not None
    assert cfg.onnx_file.read_bytes() == (tmp_path / "model.onnx").read_bytes()
    assert cfg.offsets == pytest.approx((127.5, 127.5, 127.5))


@pytest.mark.parametrize(("parser", "kind"), [
    ("ClassificationParser", NetworkType.CLASSIFIER),
    ("SegmentationParser", NetworkType.SEGMENTATION), ("YOLO", None), ("", None),
])  # fmt: skip
def test_the_parser_of_an_archive_names_the_kind(parser: str, kind: NetworkType | None) -> None:
    assert kind_of_head({HEAD: parser}) is kind
