"""Readings that names alone would get wrong: DETR and RF-DETR, ids from 1, sizes as inputs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from headrace.config.enums import NetworkType
from headrace.errors import ModelError
from headrace.infer.recognise import exporters
from headrace.infer.recognise.recognise import recognise
from tests.infer.recognise.models import rows_of, save

DOC = "RGB / 255"


def tables(classes: int, queries: int = 30) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    boxes = rng.uniform(0.1, 0.9, (1, queries, 4)).astype("f4")
    return boxes, rng.normal(-4, 1, (1, queries, classes)).astype("f4")


def test_dets_of_four_columns_beside_logits_are_rf_detr(tmp_path: Path) -> None:
    path = rows_of(tmp_path / "m.onnx", list(tables(91)), names=["dets", "labels"])
    known = recognise(path)
    assert known.exporter is exporters.RFDETR
    assert known.config.parse_bbox_func_name == "HeadraceParseDetr"
    assert known.config.num_detected_classes == 91
    assert (known.names[1], known.names[3], known.names[90]) == ("person", "car", "toothbrush")


def test_masks_of_rf_detr(tmp_path: Path) -> None:
    masks = np.zeros((1, 30, 16, 16), "f4")
    path = rows_of(tmp_path / "m.onnx", [*tables(5), masks], names=["dets", "labels", "masks"])
    cfg = recognise(path).config
    assert cfg.parse_bbox_instance_mask_func_name == "HeadraceParseDetrSeg"
    assert cfg.network_type is NetworkType.INSTANCE_SEGMENTATION


def test_the_last_logit_of_detr_wins_nearly_everywhere(tmp_path: Path) -> None:
    boxes, logits = tables(7)
    logits[..., -1] = 5
    path = rows_of(tmp_path / "m.onnx", [logits, boxes], names=["logits", "pred_boxes"], doc=DOC)
    assert recognise(path).config.parse_bbox_func_name == "HeadraceParseDetrSoftmax"


def test_logits_that_both_may_be_are_asked_about(tmp_path: Path) -> None:
    boxes, logits = tables(7)
    path = rows_of(tmp_path / "m.onnx", [logits, boxes], names=["logits", "pred_boxes"], doc=DOC)
    with pytest.raises(ModelError) as caught:
        recognise(path)
    assert "HeadraceParseDetrSoftmax" in str(caught.value)
    assert "HeadraceParseDetr " in str(caught.value) + " "


def test_ids_of_tensorflow_are_never_offered_as_the_80_of_coco(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    arrays = [rng.uniform(0, 1, (1, 10, 4)), np.ones((1, 10)), np.ones((1, 10)), np.ones((1,))]
    names = ["detection_boxes", "detection_classes", "detection_scores", "num_detections"]
    path = rows_of(
        tmp_path / "m.onnx", [a.astype("f4") for a in arrays], names=names, producer="tf2onnx",
        doc=DOC,
    )  # fmt: skip
    with pytest.raises(ModelError) as caught:
        recognise(path)
    assert "num-detected-classes=91" in str(caught.value)
    assert "num-detected-classes=80" not in str(caught.value)


def test_boxes_in_the_size_that_an_input_has_are_in_pixels(tmp_path: Path) -> None:
    boxes = np.float32([[[0, 0, 0.4, 0.4], [0.1, 0.1, 0.9, 0.9]]])
    parts = [np.array([[0, 2]]), boxes, np.float32([[0.9, 0.8]])]
    path = rows_of(
        tmp_path / "m.onnx", parts, names=["labels", "boxes", "scores"], doc=DOC,
        metadata={"names": "['a', 'b', 'c']"},
    )  # fmt: skip
    model = onnx.load(path)
    next(n for n in model.graph.node if n.output == ["boxes"]).output[0] = "fractions"
    sizes = "orig_target_sizes"
    model.graph.input.append(helper.make_tensor_value_info(sizes, TensorProto.INT64, [1, 2]))
    model.graph.node.extend([
        helper.make_node("Cast", [sizes], ["size"], to=TensorProto.FLOAT),
        helper.make_node("Concat", ["size", "size"], ["ends"], axis=1),
        helper.make_node("Mul", ["fractions", "ends"], ["boxes"]),
    ])  # fmt: skip
    onnx.save(model, path)
    cfg = recognise(path).config
    assert cfg.parse_bbox_func_name == "HeadraceParseBoxesLabels"
    assert cfg.num_detected_classes == 3


@pytest.mark.parametrize("unit", [False, True])
def test_boxes_beside_labels_are_told_by_their_reach(tmp_path: Path, unit: bool) -> None:
    boxes = np.float32([[[0, 0, 30, 30], [5, 5, 60, 60]]]) / (64 if unit else 1)
    parts = [boxes, np.array([[0, 2]]), np.float32([[0.9, 0.8]])]
    names = ["detected_boxes", "detected_classes", "detected_scores"]
    path = rows_of(tmp_path / "m.onnx", parts, names=names, doc=DOC)
    with pytest.raises(ModelError) as caught:
        recognise(path)
    assert "detected_boxes, detected_classes" in str(caught.value)
    assert "headrace init" in str(caught.value)
    for count in (80, 91):  # ids from 0, and those of programs that count from 1
        assert f"num-detected-classes={count} " in str(caught.value)
    (tmp_path / "labels.txt").write_text("a\nb\nc\n")
    cfg = recognise(path, {"labelfile_path": tmp_path / "labels.txt"}).config
    assert cfg.parse_bbox_func_name == "HeadraceParseBoxesLabels" + ("Unit" if unit else "")
    assert cfg.num_detected_classes == 3


def test_final_rows_in_unit_of_an_unknown_writer_are_not_taken_for_pixels(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rows = rng.uniform(0, 1, (1, 100, 6)).astype("f4")
    rows[..., 5] = rng.integers(0, 5, (1, 100))
    with pytest.raises(ModelError, match="no built-in parser"):
        recognise(rows_of(tmp_path / "m.onnx", rows, doc=DOC))


@pytest.mark.parametrize(("end", "width", "kind"), [
    ("GlobalAveragePool", 16, NetworkType.OTHER), ("Gemm", 16, NetworkType.CLASSIFIER),
    ("GlobalAveragePool", 1000, NetworkType.CLASSIFIER),  # SqueezeNet ends so
    ("GlobalAveragePool", 10, NetworkType.CLASSIFIER),
    ("HardSwish", 16, NetworkType.OTHER),  # MobileNetV3 without its classes
])  # fmt: skip
def test_a_vector_of_features_is_no_list_of_classes(
    tmp_path: Path, end: str, width: int, kind: NetworkType
) -> None:
    weights = np.random.default_rng(0).normal(0, 0.3, (width, 3, 3, 3)).astype("f4")
    nodes = [helper.make_node("Conv", ["images", "w"], ["seen"], pads=[1, 1, 1, 1])]
    nodes += [
        helper.make_node("GlobalAveragePool", ["seen"], ["pooled"]),
        helper.make_node("Flatten", ["pooled"], ["flat"]),
    ]
    constants = {"w": weights}
    if end == "Gemm":
        nodes.append(helper.make_node("Gemm", ["flat", "b"], ["features"]))
        constants["b"] = np.eye(width, dtype="f4")
    elif end == "HardSwish":
        nodes.append(helper.make_node(end, ["flat"], ["features"]))
    else:
        nodes[-1].output[0] = "features"
    path = save(
        tmp_path / "m.onnx", nodes, {"images": (1, 3, 64, 64)}, {"features": (1, width)},
        constants=constants, doc=DOC,
    )  # fmt: skip
    assert recognise(path).config.network_type is kind


@pytest.mark.parametrize("divided", [False, True])
def test_boxes_that_are_divided_at_the_end(tmp_path: Path, divided: bool) -> None:
    rng = np.random.default_rng(1)
    constants = {
        "w": rng.normal(0, 0.3, (8, 3, 3, 3)).astype("f4"),
        "boxes": rng.uniform(0, 60, (1, 4, 84)).astype("f4"),
        "scores": rng.uniform(0, 1, (1, 3, 84)).astype("f4"),
        "size": np.float32(64),
        "zero": np.float32(0),
    }
    nodes = [
        helper.make_node("Conv", ["images", "w"], ["seen"], pads=[1, 1, 1, 1]),
        helper.make_node("ReduceMean", ["seen"], ["mean"], keepdims=0),
        helper.make_node("Mul", ["mean", "zero"], ["none"]),
        helper.make_node("Add", ["boxes", "none"], ["pixels"]),
        helper.make_node("Div" if divided else "Mul", ["pixels", "size" if divided else "one"],
                         ["placed"]),
        helper.make_node("Add", ["scores", "none"], ["chances"]),
        helper.make_node("Concat", ["placed", "chances"], ["output0"], axis=1),
    ]  # fmt: skip
    if not divided:
        constants["one"] = np.float32(1)
    metadata = {"author": "Ultralytics", "task": "detect", "names": "{0: 'a', 1: 'b', 2: 'c'}"}
    path = save(
        tmp_path / "m.onnx", nodes, {"images": (1, 3, 64, 64)}, {"output0": (1, 7, 84)},
        constants=constants, metadata=metadata,
    )  # fmt: skip
    expected = "HeadraceParseYoloV8Unit" if divided else "HeadraceParseYoloV8"
    assert recognise(path).config.parse_bbox_func_name == expected
