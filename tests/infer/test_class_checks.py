"""Labels, num-detected-classes and the outputs of the model, held against each other."""

# ruff: noqa: E501 (tables: one case per line)

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headrace._core.findings import Finding
from headrace.config import ModelConfig
from headrace.diagnose.lint.dry_run import dry_run
from headrace.errors import ConfigError
from headrace.infer.inferencer import Inferencer
from headrace.infer.parser_choice import choose_parser
from headrace.infer.parser_fit import check_outputs
from headrace.infer.parsers.labels import load_labels
from headrace.meta import NetworkInfo
from headrace.network.tensor_spec import TensorSpec
from tests.infer.watch.detectors import config_for

COCO = NetworkInfo(640, 640, 3)
V8 = {"parse_bbox_func_name": "HeadraceParseYoloV8"}
V11 = {"parse_bbox_func_name": "NvDsInferParseYoloV11"}
SSD = {"parse_bbox_func_name": "HeadraceParseSSDCorners"}
ROWS = [("output0", (84, 8400))]


def told(
    folder: Path,
    labels: list[str] | None,
    outputs: list[tuple[str, tuple[int, ...]]],
    **keys: Any,
) -> list[str]:
    """Warnings about a config with these keys, labels and outputs (of one item)."""
    keys = {"gie_unique_id": 1, "onnx_file": "m.onnx", **keys}
    if labels is not None:
        (folder / "l.txt").write_text("".join(f"{line}\n" for line in labels))
        keys["labelfile_path"] = "l.txt"
    lines = [f"{key.replace('_', '-')}={value}\n" for key, value in keys.items()]
    (folder / "c.txt").write_text("[property]\n" + "".join(lines))
    cfg = ModelConfig.load(folder / "c.txt")
    specs = [TensorSpec(name, np.dtype(np.float32), ("n", *axes)) for name, axes in outputs]
    found = load_labels(folder / "l.txt") if labels is not None else load_labels("/dev/null")
    notices: list[Finding] = []
    try:
        check_outputs(cfg, choose_parser(cfg), specs, COCO, found, notices)
    except ConfigError as error:  # a head that reads no other number of classes
        notices.append(error.finding)
    assert {n.level for n in notices} <= {"warning", "error"}
    return [str(n) for n in notices]


def names(count: int) -> list[str]:
    return [f"thing {n}" for n in range(count)]


@pytest.mark.parametrize(
    ("keys", "classes", "labels", "outputs"),
    [
        (V8, 80, 80, ROWS),
        (V11, 80, 80, ROWS),
        (V11, 80, None, ROWS),
        (SSD, 2, 2, [("scores", (4420, 3)), ("boxes", (4420, 4))]),  # a background score
        (SSD, 3, ["background", "a", "b"], [("scores", (4420, 3)), ("boxes", (4420, 4))]),
        (V8, 80, [f"{i % 7} {i}" for i in range(80)], ROWS),
        (SSD, 2, 2, [("scores", (4420, 2)), ("boxes", (4420, 4))]),
        ({"parse_bbox_func_name": "NvDsInferParseYolo"}, 3, 3, [("o", (300, 6))]),
        ({"parse_bbox_func_name": "HeadraceParseDetrSoftmax"}, 91, 91, [("a", (100, 92)), ("b", (100, 4))]),
        ({}, 4, 4, [("conv2d_cov", (4, 34, 60)), ("conv2d_bbox", (16, 34, 60))]),
        ({"network_type": 2}, 21, 21, [("o", (21, 64, 64))]),
        ({"network_type": 2, "segmentation_output_order": 1}, 3, None, [("o", (64, 64, 3))]),
        ({"network_type": 100}, 3, 9, [("o", (21, 64, 64))]),
    ],
)  # fmt: skip
def test_what_belongs_together_is_no_news(
    tmp_path: Path, keys: Any, classes: int, labels: Any, outputs: Any
) -> None:
    lines = names(labels) if isinstance(labels, int) else labels
    assert told(tmp_path, lines, outputs, num_detected_classes=classes, **keys) == []


@pytest.mark.parametrize(
    ("keys", "classes", "labels", "outputs", "words"),
    [
        (V8, 3, names(3), ROWS, ["num-detected-classes=3, but the model's outputs hold 80 classes"]),
        (V11, 81, names(81), ROWS, ["num-detected-classes=81, but the model's outputs hold 80"]),
        (V11, 81, ["background", *names(80)], ROWS, ["=81, but", "81 labels for 80 classes of the model: the first one, 'background'"]),
        (V11, 80, ["Background", *names(80)], ROWS, ["81 labels for num-detected-classes=80: the first one, 'Background'"]),
        (V11, 80, names(91), ROWS, ["91 labels for num-detected-classes=80: the file is that of another model"]),
        (V11, 80, names(20), ROWS, ["20 labels for num-detected-classes=80: objects of the other classes have no name"]),
        (V11, 80, names(79), ROWS, ["if class 0 of the model is background, its line is missing"]),
        (V11, 80, [";".join(names(80))], ROWS, ["one line of 80 labels for num-detected-classes=80"]),
        (SSD, 4, names(4), [("scores", (4420, 3)), ("boxes", (4420, 4))], ["outputs hold 2 classes"]),
        ({}, 2, names(2), [("conv2d_cov", (4, 34, 60)), ("conv2d_bbox", (16, 34, 60))], ["outputs hold 4 classes"]),
        ({"network_type": 2}, 20, names(20), [("o", (21, 64, 64))], ["outputs hold 21 classes"]),
        ({"parse_bbox_func_name": "NvDsInferParseCustomYoloV2"}, 80, names(80), [("o", (125, 13, 13))], ["outputs hold 20 classes"]),
        (V8, 80, ["__background__", *names(79)], ROWS, ["the first label, '__background__', names class 0, and HeadraceParseYoloV8 has no background"]),
        ({"parse_bbox_func_name": "NvDsInferParseYolo"}, 3, names(5), [("o", (300, 6))], ["5 labels for num-detected-classes=3"]),
    ],
)  # fmt: skip
def test_what_does_not_is_told(
    tmp_path: Path, keys: Any, classes: int, labels: Any, outputs: Any, words: list[str]
) -> None:
    messages = told(tmp_path, labels, outputs, num_detected_classes=classes, **keys)
    assert len(messages) == len(words), messages
    assert all(word in message for word, message in zip(words, messages, strict=True)), messages


@pytest.mark.parametrize(
    ("labels", "outputs", "words"),
    [
        (["a;b;c"], [("o", (3,))], None),
        (["a;b;c;"], [("o", (3, 1, 1))], None),
        (["a;b", "c;d;e"], [("o", (2,)), ("p", (3,))], None),
        (["a;b"], [("o", (2,)), ("features", (512,))], None),
        (["background;a;b;c"], [("o", (3,))], "the first one, 'background'"),
        (["a;b;c;d"], [("o", (3,))], "4 labels for the output, which holds 3 classes: the file is"),
        (["a;b"], [("o", (3,))], "if class 0 of the model is background, its line is missing"),
        (["a;b", "c"], [("o", (2,)), ("p", (3,))], "line 2 has 1 label for output 1, which holds 3"),
        (["a", "b"], [("o", (2,))], "2 lines of one label each"),
    ],
)  # fmt: skip
def test_labels_of_a_classifier(
    tmp_path: Path, labels: list[str], outputs: Any, words: str | None
) -> None:
    messages = told(tmp_path, labels, outputs, network_type=1)
    assert len(messages) == (words is not None)
    assert words is None or words in messages[0]


def test_yolo_has_no_background(tmp_path: Path) -> None:
    labels = ["__background__", *names(79)]
    (text,) = told(tmp_path, labels, ROWS, num_detected_classes=80, **V8)
    assert "HeadraceParseYoloV8 has no background class" in text
    outputs = [("scores", (4420, 3)), ("boxes", (4420, 4))]
    assert not told(tmp_path, ["background", *names(2)], outputs, num_detected_classes=3, **SSD)


@pytest.mark.parametrize("number", [1, 7])
def test_a_head_that_needs_just_that_number_refuses_another_at_the_start(
    tmp_path: Path, number: int
) -> None:
    path = config_for(tmp_path, "columns")
    cfg = ModelConfig.load(path)
    held = cfg.num_detected_classes
    Inferencer.from_config(cfg).close()
    other = cfg.with_overrides(num_detected_classes=held + number)
    with pytest.raises(ConfigError) as caught:
        Inferencer.from_config(other)
    assert f"num-detected-classes={held + number}, but the model's outputs hold" in str(
        caught.value
    )
    assert f"set num-detected-classes={held}" in str(caught.value)
    (problem,) = dry_run(other).problems
    assert str(problem) == str(caught.value)
