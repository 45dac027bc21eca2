"""Right set-ups of every kind, on images of every kind: the watch has nothing to say."""

from __future__ import annotations

import shutil
from itertools import islice
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from headrace.infer.inferencer import Inferencer
from headrace.infer.watch.rules import is_finding
from headrace.media import Frame, open_source
from tests.infer.watch.detectors import HEADS, RANGES, config_for, frames
from tests.profiles import slow

SCENES = ("objects", "crowded", "still", "plain", "dark", "noisy", "empty")
# A third at every push: each head and each range of pixels is among them.
PAIRS = [
    pytest.param(head, pixels, marks=[pytest.mark.slow] * ((i + k) % 3 > 0))
    for i, head in enumerate(HEADS)
    for k, pixels in enumerate(RANGES)
]


def findings(model: Inferencer, images: list[Frame]) -> list[str]:
    """Rules that speak after these images."""
    for frame in images:
        model.process([frame])
    model.conclude()
    return [str(n) for n in model.notices if is_finding(n)]


@pytest.mark.parametrize(("head", "pixels"), PAIRS)
@pytest.mark.sampled
def test_detectors(head: str, pixels: str, tmp_path: Path) -> None:
    config = config_for(tmp_path, head, pixels)
    for scene in SCENES:
        with Inferencer.from_config(config) as model:
            assert findings(model, frames(scene)) == [], scene
            found = model.results["attached"]
        assert (found >= 10) == (scene in ("objects", "crowded", "still")), (scene, found)


ULTRALYTICS = {
    "author": "Ultralytics",
    "task": "detect",
    "stride": "8",
    "names": "{0: 'red', 1: 'green'}",
}


@pytest.mark.parametrize(
    ("pixels", "keys", "model"),
    [
        ("unit", {}, {"metadata": ULTRALYTICS}),
        ("unit", {"maintain_aspect_ratio": 1, "symmetric_padding": 1}, {"metadata": ULTRALYTICS}),
        ("bytes", {}, {"stem": True}),
        ("unit", {"scaling_filter": 1, "interval": 2}, {}),
        ("unit", {"filter_out_class_ids": 1}, {}),
    ],
    ids=["ultralytics", "letterbox", "stem", "interval", "filter"],
)
@pytest.mark.parametrize("scene", ["objects", "dark", "noisy", "empty"])
@pytest.mark.sampled
def test_detectors_with_other_keys(
    pixels: str, keys: dict[str, object], model: dict[str, object], scene: str, tmp_path: Path
) -> None:
    config = config_for(tmp_path, "columns", pixels, model=model, **keys)
    with Inferencer.from_config(config) as detector:
        assert findings(detector, frames(scene)) == []


def test_a_parser_in_python(mean_config) -> None:
    with Inferencer.from_config(mean_config()) as model:
        assert findings(model, frames("objects", count=20)) == []


def write_head(path: Path, nodes: list[onnx.NodeProto], shape: list[int]) -> None:
    """Three mean colours in 0..1, and what `nodes` make of them."""
    pool = [helper.make_node("AveragePool", ["image"], ["cells"], kernel_shape=[16, 16],
                             strides=[16, 16])]  # fmt: skip
    constants = [numpy_helper.from_array(np.array(20, np.float32), "gain")]
    graph = helper.make_graph(
        [*pool, *nodes],
        "head",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 3, 64, 64])],
        [helper.make_tensor_value_info("output", TensorProto.FLOAT, shape)],
        constants,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, path)


CLASSIFY = [
    helper.make_node("GlobalMaxPool", ["cells"], ["mean"]),
    helper.make_node("Flatten", ["mean"], ["three"]),
    helper.make_node("Mul", ["three", "gain"], ["logits"]),
    helper.make_node("Softmax", ["logits"], ["output"], axis=1),
]
SEGMENT = [
    helper.make_node("Mul", ["cells", "gain"], ["logits"]),
    helper.make_node("Softmax", ["logits"], ["output"], axis=1),
]


def head_config(
    folder: Path, nodes: list[onnx.NodeProto], shape: list[int], **keys: object
) -> Path:
    write_head(folder / "head.onnx", nodes, shape)
    (folder / "names.txt").write_text("red;green;blue\n")
    values = {
        "gie_unique_id": 2, "onnx_file": "head.onnx", "labelfile_path": "names.txt",
        "net_scale_factor": 1 / 255, "network_mode": 0,
    } | keys  # fmt: skip
    path = folder / "head.txt"
    text = "".join(f"{k.replace('_', '-')}={v}\n" for k, v in values.items())
    path.write_text("[property]\n" + text)
    return path


@pytest.mark.parametrize("scene", SCENES)
def test_classifiers(scene: str, tmp_path: Path) -> None:
    config = head_config(tmp_path, CLASSIFY, [1, 3], network_type=1, classifier_threshold=0.2)
    with Inferencer.from_config(config) as model:
        assert findings(model, frames(scene, ("red", "blue"))) == []


@pytest.mark.parametrize("scene", SCENES)
def test_segmentation(scene: str, tmp_path: Path) -> None:
    (tmp_path / "classes.txt").write_text("red\ngreen\nblue\n")
    config = head_config(tmp_path, SEGMENT, [1, 3, 4, 4], network_type=2, num_detected_classes=3,
                         labelfile_path="classes.txt")  # fmt: skip
    with Inferencer.from_config(config) as model:
        assert findings(model, frames(scene)) == []


@pytest.mark.parametrize("second", ["classifier", "detector"])
def test_secondary_models(second: str, tmp_path: Path) -> None:
    for folder in ("first", "second"):
        (tmp_path / folder).mkdir()
    first = config_for(tmp_path / "first")
    keys = {"process_mode": 2, "operate_on_gie_id": 1, "gie_unique_id": 2}
    if second == "classifier":
        config = head_config(tmp_path / "second", CLASSIFY, [1, 3], network_type=1, **keys)
    else:
        config = config_for(tmp_path / "second", **keys)
    with Inferencer.from_config(first) as a, Inferencer.from_config(config) as b:
        for frame in frames("objects", count=20):
            (meta,) = a.process([frame])
            b(frame, meta)
        for model in (a, b):
            model.conclude()
            assert [str(n) for n in model.notices if is_finding(n)] == []
        assert b.inferred_items > 20


REAL = {
    "yolox": (
        "yolox_nano.onnx",
        "net-scale-factor=1\nmodel-color-format=1\nmaintain-aspect-ratio=1\n"
        "num-detected-classes=80\nparse-bbox-func-name=HeadraceParseYoloX\n",
    ),
    "faces": (
        "version-RFB-320.onnx",
        "net-scale-factor=0.0078125\noffsets=127;127;127\nnum-detected-classes=2\n"
        "filter-out-class-ids=0\nparse-bbox-func-name=HeadraceParseSSDCorners\n",
    ),
}


@pytest.mark.parametrize("model", [slow("yolox"), *(m for m in REAL if m != "yolox")])
@pytest.mark.slow
def test_real_models_on_real_and_empty_images(model: str, data_dir: Path, tmp_path: Path) -> None:
    name, keys = REAL[model]
    shutil.copy(data_dir / "models" / name, tmp_path)  # its engine is saved beside it
    config = tmp_path / "config.txt"
    config.write_text(
        f"[property]\ngie-unique-id=1\nonnx-file={name}\nnetwork-mode=0\n{keys}"
        "[class-attrs-all]\npre-cluster-threshold=0.3\nnms-iou-threshold=0.5\n"
    )
    for video in sorted((data_dir / "videos").glob("*.mp4")):
        with Inferencer.from_config(config) as detector, open_source(str(video)) as source:
            assert findings(detector, list(islice(source, 12))) == [], video.name
    for scene in ("plain", "dark", "noisy", "empty"):
        with Inferencer.from_config(config) as detector:
            assert findings(detector, frames(scene)) == [], scene
