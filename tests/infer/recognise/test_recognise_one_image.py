"""Bare models of one image: torchvision's ids count from 1."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from headrace.errors import HeadraceError
from headrace.infer.inferencer import Inferencer
from headrace.infer.recognise.recognise import recognise
from headrace.media import Frame

NAMES = ("boxes", "labels", "scores")
SCALE = {"net_scale_factor": 1 / 255}


@pytest.fixture
def detector(tmp_path: Path) -> Path:
    """Three boxes in pixels, of which those with a score above 0.5 come out."""
    return lists_of_one(tmp_path, 0.5)


def lists_of_one(tmp_path: Path, least: float, names: tuple[str, ...] = NAMES) -> Path:
    nodes = [
        helper.make_node("ReduceSum", ["images"], ["sum"], keepdims=0),
        helper.make_node("Mul", ["sum", "zero"], ["nothing"]),
        helper.make_node("Add", ["table", "nothing"], ["likely"]),
        helper.make_node("Greater", ["likely", "half"], ["kept"]),
        helper.make_node("Compress", ["corners", "kept"], ["boxes"], axis=0),
        helper.make_node("Compress", ["ids", "kept"], ["labels"], axis=0),
        helper.make_node("Compress", ["likely", "kept"], ["scores"], axis=0),
    ]
    weights = {
        "zero": np.float32(0), "half": np.float32(least),
        "table": np.array([0.9, 0.1, 0.8], np.float32),
        "corners": np.array([[10, 20, 50, 60], [0, 0, 9, 9], [60, 10, 100, 80]], np.float32),
        "ids": np.array([1, 5, 3]),
    }  # fmt: skip
    graph = helper.make_graph(
        nodes, "g",
        [helper.make_tensor_value_info("images", TensorProto.FLOAT, [3, 96, 128])],
        [helper.make_tensor_value_info("boxes", TensorProto.FLOAT, ["n", 4]),
         helper.make_tensor_value_info("labels", TensorProto.INT64, ["n"]),
         helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["n"])],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in weights.items()],
    )  # fmt: skip
    for node in graph.node:
        node.output[:] = [names[NAMES.index(x)] if x in NAMES else x for x in node.output]
    for output in graph.output:
        output.name = names[NAMES.index(output.name)]
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(made, tmp_path / "m.onnx")
    return tmp_path / "m.onnx"


def test_ids_count_from_one(detector: Path) -> None:
    with pytest.raises(HeadraceError, match="num-detected-classes=91") as failure:
        recognise(detector, SCALE)
    assert "num-detected-classes=80" not in str(failure.value)


def test_it_finds_what_the_model_gives(detector: Path) -> None:
    keys = {"net_scale_factor": 1 / 255, "num_detected_classes": 91}
    with Inferencer.from_config(recognise(detector, keys).config) as model:
        (meta,) = model.process([Frame.from_array(np.zeros((96, 128, 3), np.uint8))])
    objects = meta.objects
    assert objects.class_ids.tolist() == [1, 3]
    assert [objects[i].label for i in range(2)] == ["person", "car"]
    assert objects.rects.tolist() == [[10, 20, 40, 40], [60, 10, 40, 70]]


def test_lists_are_read_when_noise_finds_nothing(tmp_path: Path) -> None:
    """Numbers for names, as PyTorch writes them, and no box to look at."""
    known = recognise(lists_of_one(tmp_path, 0.95, ("2627", "2596", "2597")),
                      {**SCALE, "num_detected_classes": 91})  # fmt: skip
    assert known.config.parse_bbox_func_name == "HeadraceParseBoxesLabels"
    assert "torchvision" in known.lines[0]
