"""One model of each exporter: the head, the classes, the names and the images are right."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headrace.config import ModelConfig
from headrace.config.enums import ClusterMode, ColorFormat, NetworkType
from headrace.config.profile import with_profile
from headrace.errors import HeadraceError, ModelError
from headrace.infer.recognise.names import COCO
from headrace.infer.recognise.recognise import Recognition, recognise
from tests.infer.recognise.models import cells, node, pixel_rows, rows_of, save

DATA = Path(os.environ.get("HEADRACE_TEST_DATA", "/nowhere")) / "models"
ULTRALYTICS = {"author": "Ultralytics", "version": "8.3", "task": "detect", "stride": "32",
               "names": "{0: 'cat', 1: 'dog', 2: 'a;b'}", "imgsz": "[64, 64]"}  # fmt: skip


def yolov8(path: Path, *, classes: int = 3, size: tuple[int | str, int | str] = (64, 64),
           **metadata: str) -> Path:  # fmt: skip
    table = np.ascontiguousarray(pixel_rows(cells(), 4 + classes).transpose(0, 2, 1))
    return rows_of(path, table, size=size, metadata=ULTRALYTICS | metadata)


def parser_of(found: Recognition) -> str | None:
    cfg = found.config
    return cfg.parse_bbox_func_name or cfg.parse_classifier_func_name


def test_ultralytics_says_everything(tmp_path: Path) -> None:
    cfg = recognise(yolov8(tmp_path / "m.onnx")).config
    assert cfg.parse_bbox_func_name == "HeadraceParseYoloV8"
    assert cfg.num_detected_classes == 3
    assert [record[0] for record in cfg.labels] == ["cat", "dog", "a;b"]
    assert cfg.model_color_format is ColorFormat.RGB
    assert cfg.net_scale_factor == pytest.approx(1 / 255)
    assert cfg.maintain_aspect_ratio
    assert cfg.symmetric_padding
    assert cfg.cluster_mode is ClusterMode.NMS
    assert cfg.all_classes.pre_cluster_threshold == 0.25
    assert cfg.all_classes.nms_iou_threshold == 0.7
    assert cfg.profile == "modern"
    assert cfg.infer_dims is None  # the model fixes it


def test_three_lines_say_it_and_where_it_comes_from(tmp_path: Path) -> None:
    path = yolov8(tmp_path / "m.onnx")
    model, images, source = recognise(path).lines
    for word in ("YOLO detector", "HeadraceParseYoloV8", "3 classes", "cat, dog", "metadata"):
        assert word in model
    for word in ("64x64", "RGB", "/ 255", "bars around"):
        assert word in images
    for word in ("author: Ultralytics 8.3", "task: detect", "scaling, order, fit: as Ultralytics"):
        assert word in source
    assert "assumed" not in source


def test_every_value_has_its_reason(tmp_path: Path) -> None:
    cfg = recognise(yolov8(tmp_path / "m.onnx")).config
    origin = cfg.origin("net_scale_factor")
    assert (origin.kind, origin.text) == ("model", "as Ultralytics does")
    assert cfg.origin("interval").kind == "default"


def test_free_axes_take_the_size_of_the_metadata(tmp_path: Path) -> None:
    found = recognise(yolov8(tmp_path / "m.onnx", size=("h", "w"), imgsz="[64, 64]"))
    assert found.config.infer_dims == (3, 64, 64)
    assert found.reasons["infer_dims"] == "metadata imgsz"


@pytest.mark.parametrize("task", ["pose", "unheard of"])
def test_a_task_without_a_parser_is_not_taken_for_boxes(tmp_path: Path, task: str) -> None:
    with pytest.raises(ModelError, match="no built-in parser reads") as caught:
        recognise(yolov8(tmp_path / "m.onnx", task=task))
    assert "headrace init m.onnx" in str(caught.value)


@pytest.mark.parametrize(("shape", "values"), [("[17, 3]", 51), ("[5, 2]", 10)])
def test_ultralytics_poses(tmp_path: Path, shape: str, values: int) -> None:
    table = pixel_rows(cells(), 4 + 1 + values).transpose(0, 2, 1)
    metadata = ULTRALYTICS | {"task": "pose", "kpt_shape": shape, "names": "{0: 'person'}"}
    path = rows_of(tmp_path / "m.onnx", np.ascontiguousarray(table), metadata=metadata)
    cfg = recognise(path).config
    assert cfg.parse_bbox_func_name == "HeadraceParseYoloV8Pose"
    assert cfg.num_detected_classes == 1
    assert cfg.labels == (("person",),)


def test_pairs_that_would_be_read_as_triples_are_refused(tmp_path: Path) -> None:
    metadata = ULTRALYTICS | {"task": "pose", "kpt_shape": "[9, 2]", "names": "{0: 'person'}"}
    table = np.ascontiguousarray(pixel_rows(cells(), 4 + 1 + 18).transpose(0, 2, 1))
    with pytest.raises(ModelError, match="no built-in parser reads"):
        recognise(rows_of(tmp_path / "m.onnx", table, metadata=metadata))


def test_ultralytics_with_nms_inside(tmp_path: Path) -> None:
    rows = pixel_rows(300, 6)
    path = rows_of(tmp_path / "m.onnx", rows, metadata=ULTRALYTICS | {"end2end": "True"})
    cfg = recognise(path).config
    assert cfg.parse_bbox_func_name == "NvDsInferParseYolo"
    assert cfg.cluster_mode is ClusterMode.NONE
    assert cfg.num_detected_classes == 3


def test_ultralytics_classifier_and_segmentation(tmp_path: Path) -> None:
    likely = np.float32([[0.7, 0.2, 0.1]])
    path = rows_of(tmp_path / "c.onnx", likely, metadata=ULTRALYTICS | {"task": "classify"})
    cfg = recognise(path).config
    assert cfg.network_type is NetworkType.CLASSIFIER
    assert cfg.parse_classifier_func_name is None
    assert cfg.labels == (("cat", "dog", "a;b"),)
    table = np.ascontiguousarray(pixel_rows(cells(), 4 + 3 + 32).transpose(0, 2, 1))
    masks = np.zeros((1, 32, 16, 16), np.float32)
    path = rows_of(tmp_path / "s.onnx", [table, masks], names=["output0", "output1"],
                   metadata=ULTRALYTICS | {"task": "segment"})  # fmt: skip
    cfg = recognise(path).config
    assert cfg.network_type is NetworkType.INSTANCE_SEGMENTATION
    assert cfg.parse_bbox_instance_mask_func_name == "HeadraceParseYoloV8Seg"
    assert cfg.num_detected_classes == 3
    assert cfg.segmentation_threshold == 0.5


def test_yolov5_is_known_by_names_and_stride(tmp_path: Path) -> None:
    metadata = {"names": "['cat', 'dog', 'owl']", "stride": "32"}
    path = rows_of(tmp_path / "m.onnx", pixel_rows(3 * cells(), 8), metadata=metadata)
    cfg = recognise(path).config
    assert cfg.parse_bbox_func_name == "HeadraceParseYoloV5"
    assert cfg.num_detected_classes == 3
    assert cfg.all_classes.nms_iou_threshold == 0.45


@pytest.mark.parametrize("decoded", [False, True])
def test_yolox_is_decoded_or_not_as_its_values_show(tmp_path: Path, decoded: bool) -> None:
    rows = pixel_rows(cells(128), 85, size=128 if decoded else 1)
    path = rows_of(tmp_path / "m.onnx", rows, size=(128, 128), spread=1.0, focus=True)
    cfg = recognise(path).config
    assert cfg.parse_bbox_func_name == f"HeadraceParseYolo{'V5' if decoded else 'X'}"
    assert cfg.num_detected_classes == 80
    assert [record[0] for record in cfg.labels] == list(COCO)
    assert cfg.model_color_format is ColorFormat.BGR
    assert cfg.net_scale_factor == 1
    assert cfg.maintain_aspect_ratio
    assert not cfg.symmetric_padding


def test_an_old_yolox_was_trained_on_imagenet_s_scaling(tmp_path: Path) -> None:
    path = rows_of(tmp_path / "m.onnx", pixel_rows(cells(), 85, size=1), spread=200, focus=True)
    cfg = recognise(path).config
    assert cfg.model_color_format is ColorFormat.RGB
    assert len(cfg.offsets) == 3
    assert cfg.net_scale_factor == pytest.approx(1 / (255 * 0.226))


def test_mmdetection(tmp_path: Path) -> None:
    path = rows_of(tmp_path / "m.onnx", [pixel_rows(20, 5), np.zeros((1, 20), np.int64)],
                   names=["dets", "labels"], metadata={"classes": "car, bus"})  # fmt: skip
    cfg = recognise(path).config
    assert cfg.parse_bbox_func_name == "HeadraceParseDetsLabels"
    assert cfg.num_detected_classes == 2
    assert cfg.cluster_mode is ClusterMode.NONE


def test_classes_that_nothing_counts_are_asked_for(tmp_path: Path) -> None:
    path = rows_of(tmp_path / "m.onnx", [pixel_rows(20, 5), np.zeros((1, 20), np.int64)],
                   names=["dets", "labels"])  # fmt: skip
    with pytest.raises(ModelError, match="do not say how many classes") as caught:
        recognise(path)
    assert "--set num-detected-classes=80" in str(caught.value)
    cfg = recognise(path, {"num_detected_classes": 7}).config
    assert cfg.num_detected_classes == 7


def test_tao_grid(tmp_path: Path) -> None:
    cover, boxes = np.zeros((1, 3, 4, 4), np.float32), np.zeros((1, 12, 4, 4), np.float32)
    path = rows_of(tmp_path / "m.onnx", [cover, boxes],
                   names=["output_cov/Sigmoid", "output_bbox/BiasAdd"])  # fmt: skip
    cfg = recognise(path).config
    assert cfg.parse_bbox_func_name == "NvDsInferParseCustomResnet"
    assert cfg.num_detected_classes == 3
    assert not cfg.maintain_aspect_ratio


def test_a_detector_of_tensorflow_takes_bytes(tmp_path: Path) -> None:
    names = ["detection_boxes", "detection_scores", "detection_classes", "num_detections"]
    tables = [np.zeros((1, 10, 4)), np.zeros((1, 10)), np.zeros((1, 10)), np.zeros((1, 1))]
    path = rows_of(tmp_path / "m.onnx", [t.astype(np.float32) for t in tables], names=names,
                   producer="tf2onnx", metadata={"labels": '["cat", "dog"]'})  # fmt: skip
    cfg = recognise(path, {"net_scale_factor": 1.0}).config
    assert cfg.parse_bbox_func_name == "NvDsInferParseCustomTfSSD"
    assert cfg.num_detected_classes == 2


def paddle(path: Path, operator: str, shape: tuple[int, ...], **more: object) -> Path:
    """A constant behind a Sigmoid or Softmax, in a graph of Paddle's exporter."""
    nodes = [
        node("ReduceMean", ["x"], ["mean"], keepdims=0),
        node("Mul", ["mean", "zero"], ["none"]),
        node("Add", ["values", "none"], ["logits"]),
        node(operator, ["logits"], ["out"]),
    ]
    constants = {"values": np.zeros(shape, np.float32), "zero": np.float32(0)}
    return save(path, nodes, {"x": [1, 3, "h", "w"]}, {"out": shape}, constants=constants,
                producer="", graph="Model from PaddlePaddle.", **more)  # type: ignore[arg-type] # fmt: skip


def test_paddle_s_three_models(tmp_path: Path) -> None:
    cfg = recognise(paddle(tmp_path / "det.onnx", "Sigmoid", (1, 1, 736, 1280))).config
    assert cfg.parse_bbox_func_name == "HeadraceParseTextRegions"
    assert cfg.infer_dims == (3, 736, 1280)
    assert cfg.model_color_format is ColorFormat.BGR
    cfg = recognise(paddle(tmp_path / "cls.onnx", "Softmax", (1, 2))).config
    assert cfg.network_type is NetworkType.CLASSIFIER
    assert cfg.infer_dims == (3, 48, 192)
    assert cfg.labels == (("0", "180"),)
    metadata = {"character": "a\nb\n;\nd"}
    path = paddle(tmp_path / "rec.onnx", "Softmax", (1, 40, 6), metadata=metadata)
    cfg = recognise(path).config
    assert cfg.parse_classifier_func_name == "HeadraceParseCtc"
    assert cfg.labels == (("a",), ("b",), (";",), ("d",))
    assert cfg.offsets == (127.5,) * 3


@pytest.mark.parametrize(("sums", "parser"), [
    (True, None), (False, "NvDsInferClassiferParseNonSoftmax"),
])  # fmt: skip
def test_logits_are_told_from_probabilities(tmp_path: Path, sums: bool, parser: str | None) -> None:
    values = np.float32([[0.5, 0.25, 0.25]]) if sums else np.float32([[4.0, -2.0, 0.5]])
    path = rows_of(tmp_path / "m.onnx", values, names=["output0"], image="input0")
    found = recognise(path)
    assert found.config.parse_classifier_func_name == parser
    assert "timm" in found.lines[2]
    assert found.config.labels == (("class 0", "class 1", "class 2"),)


def test_segmentation(tmp_path: Path) -> None:
    path = rows_of(tmp_path / "m.onnx", np.zeros((1, 21, 32, 32), np.float32),
                   metadata={"mean": "[0.5, 0.5, 0.5]", "std": "[0.5, 0.5, 0.5]"})  # fmt: skip
    cfg = recognise(path).config
    assert cfg.network_type is NetworkType.SEGMENTATION
    assert cfg.num_detected_classes == 21
    assert cfg.offsets == (127.5,) * 3
    assert cfg.net_scale_factor == pytest.approx(1 / 127.5)


def test_ssd_tables_by_their_values(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    low = rng.random((1, 1500, 2), np.float32) / 2
    boxes = np.concatenate([low, low + rng.random((1, 1500, 2), np.float32) / 2], axis=2)
    chance = np.float32([0.8, 0.1, 0.1])
    scores = np.broadcast_to(chance, (1, 1500, 3)).copy()
    path = rows_of(tmp_path / "m.onnx", [scores, boxes], names=["scores", "boxes"], doc="RGB / 255")
    cfg = recognise(path).config
    assert cfg.parse_bbox_func_name == "HeadraceParseSSDCorners"
    assert cfg.num_detected_classes == 2  # the first column is background
    assert not cfg.rotated_boxes
    boxes = np.stack([low[..., 0], low[..., 1], *[np.full((1, 1500), 0.05, np.float32)] * 2], -1)
    path = rows_of(tmp_path / "c.onnx", [scores, boxes], names=["scores", "boxes"], doc="RGB / 255")
    assert recognise(path).config.parse_bbox_func_name == "HeadraceParseSSDCenters"


def test_undecided_scaling_names_its_candidates(tmp_path: Path) -> None:
    path = rows_of(tmp_path / "m.onnx", np.float32([[0.5, 0.5]]), spread=400)
    with pytest.raises(ModelError, match="how values are scaled is undecided") as caught:
        recognise(path)
    text = str(caught.value)
    assert "--set net-scale-factor=0.003921568627   (/ 255)" in text
    assert text.count("--set net-scale-factor") == 3
    cfg = recognise(path, {"net_scale_factor": 1 / 255}).config
    assert cfg.net_scale_factor == pytest.approx(1 / 255)


def test_an_open_size_names_its_candidates(tmp_path: Path) -> None:
    path = rows_of(tmp_path / "m.onnx", np.float32([[0.5, 0.5]]), size=("h", "w"))
    with pytest.raises(ModelError, match="leaves the size of images open") as caught:
        recognise(path)
    assert "--set 'infer-dims=3;224;224'" in str(caught.value)


def test_what_nothing_tells_is_said_to_be_assumed(tmp_path: Path) -> None:
    path = rows_of(tmp_path / "m.onnx", np.float32([[0.5, 0.5]]), spread=1.0)
    source = recognise(path).lines[2]
    assert "assumed, for nothing in the file tells: order (model-color-format)" in source


def test_outputs_that_nobody_knows_lead_to_init(tmp_path: Path) -> None:
    path = rows_of(tmp_path / "odd.onnx", np.zeros((1, 7, 3, 2, 5), np.float32), doc="BGR / 255")
    with pytest.raises(ModelError, match="no built-in parser reads these outputs") as caught:
        recognise(path)
    assert "headrace init odd.onnx -o odd" in str(caught.value)
    assert "--set network-type=100 --set output-tensor-meta=1" in str(caught.value)
    assert recognise(path, {"network_type": NetworkType.OTHER}).reading is None


def test_a_model_of_two_inputs_or_none_of_images_is_refused(tmp_path: Path) -> None:
    nodes = [node("Add", ["a", "b"], ["c"])]
    shapes = {"a": [1, 3, 8, 8], "b": [1, 3, 8, 8]}
    with pytest.raises(ModelError, match="further inputs"):
        recognise(save(tmp_path / "two.onnx", nodes, shapes, {"c": [1, 3, 8, 8]}))
    nodes = [node("Relu", ["a"], ["c"])]
    with pytest.raises(ModelError, match="is no image"):
        recognise(save(tmp_path / "flat.onnx", nodes, {"a": [1, 9]}, {"c": [1, 9]}))
    with pytest.raises(ModelError, match="has 5 channels"):
        recognise(save(tmp_path / "five.onnx", nodes, {"a": [1, 5, 9, 9]}, {"c": [1, 5, 9, 9]}))


def test_pixels_side_by_side(tmp_path: Path) -> None:
    nodes = [node("ReduceMean", ["a"], ["mean"], axes=[1, 2], keepdims=0),
             node("Softmax", ["mean"], ["out"])]  # fmt: skip
    path = save(tmp_path / "m.onnx", nodes, {"a": [1, 24, 32, 3]}, {"out": [1, 3]}, doc="x / 255")
    cfg = recognise(path).config
    assert cfg.infer_dims == (3, 24, 32)
    assert int(cfg.network_input_order) == 1


@pytest.mark.parametrize(
    "names", ["{0: 'x'", "[[[[", "{1e400: 'x'}", "{-5: 'a'}", "{999999999: 'b'}"]
)
def test_names_that_cannot_be_read_are_none(tmp_path: Path, names: str) -> None:
    try:
        cfg = recognise(yolov8(tmp_path / "m.onnx", names=names)).config
    except HeadraceError:
        return
    assert cfg.num_detected_classes == 3
    assert cfg.labels == ()


def test_load_takes_a_model_for_its_config(tmp_path: Path) -> None:
    path = yolov8(tmp_path / "m.onnx")
    cfg = ModelConfig.load(path)
    assert cfg == recognise(path).config
    assert cfg.path == path
    changed = cfg.with_overrides(batch_size=2)
    assert changed.labels == cfg.labels


@pytest.mark.skipif(not DATA.is_dir(), reason="no HEADRACE_TEST_DATA")
def test_real_models(tmp_path: Path) -> None:
    for name in ("yolox_nano.onnx", "version-RFB-320.onnx"):
        (tmp_path / name).write_bytes((DATA / name).read_bytes())
    found = recognise(tmp_path / "yolox_nano.onnx")
    assert parser_of(found) == "HeadraceParseYoloX"
    assert found.config.model_color_format is ColorFormat.BGR
    assert found.config.net_scale_factor == 1
    found = recognise(tmp_path / "version-RFB-320.onnx")
    assert parser_of(found) == "HeadraceParseSSDCorners"
    assert found.config.offsets == (127.0,) * 3
    assert found.names == ("face",)
    raw = tmp_path / "raw.onnx"
    raw.write_bytes((DATA / "version-RFB-320_without_postprocessing.onnx").read_bytes())
    found = recognise(raw)
    assert parser_of(found) == "HeadraceParseUltraFacePriors"
    assert found.names == ("face",)


def test_the_profile_keeps_what_the_trainer_uses(tmp_path: Path) -> None:
    boxes, scores = np.zeros((1, 4420, 4), np.float32), np.zeros((1, 4420, 2), np.float32)
    boxes[..., 2:], scores[..., 0] = 0.5, 1
    path = rows_of(tmp_path / "m.onnx", [scores, boxes], names=["scores", "boxes"])
    attrs = with_profile(recognise(path).config).all_classes
    # the default of nvinfer, which the profile would replace were it not set
    assert attrs.nms_iou_threshold == 0.3
    assert attrs.pre_cluster_threshold == 0.6


def test_names_of_another_number_are_not_taken(tmp_path: Path) -> None:
    found = recognise(yolov8(tmp_path / "m.onnx", names="{0: 'cat', 1: 'dog'}"))
    assert found.config.num_detected_classes == 3
    assert found.config.labels == ()
    assert "which nothing names (the metadata name 2 in names)" in found.lines[0]
    (unused,) = (n for n in found.config.notices if n.level == "warning")
    assert "the metadata name 2 classes in names, and the outputs hold 3" in unused.sentence
    assert found.notices[3:] == [unused]


def test_names_that_a_label_file_replaces_need_no_warning(tmp_path: Path) -> None:
    path = yolov8(tmp_path / "m.onnx", names="{0: 'cat', 1: 'dog'}")
    (tmp_path / "labels.txt").write_text("a\nb\nc\n")
    found = recognise(path, {"labelfile_path": tmp_path / "labels.txt"})
    assert [n for n in found.config.notices if n.level == "warning"] == []


def test_a_given_label_file_names_the_classes(tmp_path: Path) -> None:
    labels = tmp_path / "labels.txt"
    labels.write_text("a\nb\nc\n")
    found = recognise(yolov8(tmp_path / "m.onnx"), {"labelfile_path": labels})
    assert "a, b, c (named in the label file)" in found.lines[0]
    assert found.config.labelfile_path == labels


def test_a_parser_of_one_s_own_leaves_the_classes_that_the_outputs_count(tmp_path: Path) -> None:
    rows = pixel_rows(cells(128), 85, size=1)
    path = rows_of(tmp_path / "m.onnx", rows, size=(128, 128), spread=1.0, focus=True)
    found = recognise(path, {"parse_bbox_func_name": "mine"})
    assert found.config.parse_bbox_func_name == "mine"
    assert found.config.num_detected_classes == 80
    assert found.names == COCO
    assert found.reasons["num_detected_classes"] == "the outputs hold 80 scores for each box"


def test_the_number_of_classes_has_its_own_reason(tmp_path: Path) -> None:
    rows = pixel_rows(cells(128), 85, size=1)
    path = rows_of(tmp_path / "m.onnx", rows, size=(128, 128), spread=1.0, focus=True)
    reasons = recognise(path).reasons
    assert reasons["num_detected_classes"] == "the outputs hold 80 scores for each box"
    assert "not decoded" in reasons["parse_bbox_func_name"]


def test_a_face_detector_is_named_once(tmp_path: Path) -> None:
    boxes, scores = np.zeros((1, 4420, 4), np.float32), np.zeros((1, 4420, 2), np.float32)
    boxes[..., 2:], scores[..., 0] = 0.5, 1
    path = rows_of(tmp_path / "m.onnx", [scores, boxes], names=["scores", "boxes"])
    line = recognise(path).lines[0]
    assert line.startswith(
        "the model: Ultra-Light-Fast face detector, parser HeadraceParseSSDCorners"
    )


@pytest.mark.parametrize(("given", "words"), [
    ({"net_scale_factor": 1 / 255}, "RGB / 255 (set by you)"),
    ({"net_scale_factor": 0.5}, "RGB x * 0.5 (set by you)"),
    ({"net_scale_factor": 0.01, "offsets": (1.0, 2.0, 3.0)},
     "RGB (x - 1, 2, 3) * 0.01 (set by you)"),
])  # fmt: skip
def test_a_given_scaling_is_said(tmp_path: Path, given: dict[str, Any], words: str) -> None:
    assert words in recognise(yolov8(tmp_path / "m.onnx"), given).lines[1]
