"""Vectors and maps: classes, features, segmentation, one value a pixel."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from headrace.config.enums import NetworkType, TensorOrder
from headrace.errors import ModelError
from headrace.infer.inferencer import Inferencer
from headrace.infer.recognise.recognise import Recognition, recognise_for_init
from tests.infer.recognise.models import filters, node, rows_of, save

DOC = "RGB / 255"


def ending(
    path: Path, op: str, shape: tuple[int, ...], name: str = "output", **fields: Any
) -> Recognition:
    """A model whose output of this shape comes from this operator."""
    nodes = [node("Conv", ["images", "w"], ["seen"], pads=[1, 1, 1, 1]),
             node("ReduceMean", ["seen"], ["mean"], axes=[1, 2, 3], keepdims=0),
             node("Mul", ["mean", "zero"], ["nothing"]), node("Add", ["nothing", "values"], ["x"]),
             node(op, ["x"], [name], **fields)]  # fmt: skip
    values = np.random.default_rng(0).normal(0, 1, shape).astype("f4")
    constants = {"w": filters(3, 500.0), "zero": np.float32(0), "values": values}
    size = [1, 3, 64, 64]
    save(path / "m.onnx", nodes, {"images": size}, {name: shape}, constants=constants, doc=DOC)
    return recognise_for_init(path / "m.onnx", {}, save=False)


def test_a_map_behind_a_sigmoid_is_one_class(tmp_path: Path) -> None:
    recognition = ending(tmp_path, "Sigmoid", (1, 1, 64, 64))
    cfg = recognition.config
    assert cfg.network_type is NetworkType.SEGMENTATION
    assert (cfg.num_detected_classes, cfg.segmentation_threshold) == (1, 0.5)


@pytest.mark.parametrize(("op", "name", "kind"), [
    ("Identity", "predicted_depth", NetworkType.OTHER), ("Identity", "output", None),
])  # fmt: skip
def test_a_map_of_values(tmp_path: Path, op: str, name: str, kind: NetworkType | None) -> None:
    reading = ending(tmp_path, op, (1, 1, 64, 64), name).reading
    assert (reading and reading.kind) == kind


def test_channels_last(tmp_path: Path) -> None:
    nodes = [node("Transpose", ["images"], ["planes"], perm=[0, 3, 1, 2]),
             node("Conv", ["planes", "w"], ["seen"], pads=[1, 1, 1, 1]),
             node("Transpose", ["seen"], ["output"], perm=[0, 2, 3, 1])]  # fmt: skip
    path = save(tmp_path / "m.onnx", nodes, {"images": [1, 64, 64, 3]}, {"output": [1, 64, 64, 8]},
                constants={"w": filters(3, 500.0)}, doc=DOC)  # fmt: skip
    cfg = recognise_for_init(path, {}, save=False).config
    assert cfg.network_type is NetworkType.SEGMENTATION
    assert (cfg.num_detected_classes, cfg.segmentation_output_order) == (8, TensorOrder.NHWC)


@pytest.mark.parametrize(("op", "kind"), [
    ("Relu", NetworkType.OTHER), ("Softmax", NetworkType.CLASSIFIER),
    ("Identity", NetworkType.CLASSIFIER),
])  # fmt: skip
def test_vectors(tmp_path: Path, op: str, kind: NetworkType) -> None:
    assert ending(tmp_path, op, (1, 128)).config.network_type is kind


def test_four_probabilities_are_classes(tmp_path: Path) -> None:
    assert ending(tmp_path, "Softmax", (1, 4)).config.network_type is NetworkType.CLASSIFIER


def read(path: Path, output: Any, size: tuple[int, int]) -> Recognition:
    model = rows_of(path / "m.onnx", output.astype("f4"), names=("output",), doc=DOC, size=size)
    return recognise_for_init(model, {}, save=False)


def test_maps_of_a_crop_of_a_person_are_points(tmp_path: Path) -> None:
    maps = np.random.default_rng(1).normal(0, 1, (1, 17, 64, 48))
    cfg = read(tmp_path, maps, (256, 192)).config
    assert (cfg.parse_bbox_func_name, cfg.num_detected_classes) == ("HeadraceParseHeatmapPose", 1)
    with pytest.raises(ModelError, match="HeatmapPose"):  # a square crop, or a scene of classes
        read(tmp_path, maps[:, :, :, :48][:, :, :48], (192, 192))


def test_a_vector_of_a_crop_of_a_face_is_features(tmp_path: Path) -> None:
    vector = np.random.default_rng(2).normal(0, 1, (1, 512))
    assert read(tmp_path, vector, (112, 112)).config.network_type is NetworkType.OTHER
    assert read(tmp_path, vector, (224, 224)).config.network_type is NetworkType.CLASSIFIER


def test_maps_of_anomalib_are_attached_as_they_are(tmp_path: Path) -> None:
    outputs = [np.zeros((1, 1), "f4"), np.zeros((1, 1, 64, 64), "f4")]
    path = rows_of(tmp_path / "m.onnx", outputs, names=["pred_score", "anomaly_map"], doc=DOC)
    cfg = recognise_for_init(path, {}, save=False).config
    assert cfg.network_type is NetworkType.OTHER
    assert cfg.output_tensor_meta


def vector(
    path: Path, shape: list[Any] | None, count: int = 10, op: str = "Softmax"
) -> Recognition:
    """A model that ends in a vector, its output of this shape in the file."""
    nodes = [node("GlobalAveragePool", ["images"], ["pool"]), node("Flatten", ["pool"], ["row"]),
             node("MatMul", ["row", "w"], ["x"]), node(op, ["x"], ["output"])]  # fmt: skip
    weights = np.random.default_rng(0).normal(0, 1, (3, count)).astype("f4")
    save(path / "m.onnx", nodes, {"images": ["n", 3, 64, 64]}, {"output": shape or []},
         constants={"w": weights}, doc=DOC)  # fmt: skip
    if shape is None:
        model = onnx.load(path / "m.onnx")
        model.graph.output[0].type.tensor_type.ClearField("shape")
        onnx.save(model, path / "m.onnx")
    return recognise_for_init(path / "m.onnx", {}, save=False)


@pytest.mark.parametrize("shape", [["n", "classes"], ["n", 10], None])
def test_classes_are_counted_where_the_file_leaves_them_open(
    tmp_path: Path, shape: list[Any] | None
) -> None:
    recognition = vector(tmp_path, shape)
    assert recognition.reading is not None
    assert recognition.reading.classes == 10
    (labels,) = recognition.config.labels
    assert labels == tuple(f"class {i}" for i in range(10))


def test_an_axis_of_features_is_known_by_its_name(tmp_path: Path) -> None:
    reading = vector(tmp_path, ["n", "embedding_dim"], 96, "Identity").reading
    assert reading is not None
    assert (reading.kind, reading.words) == (NetworkType.OTHER, "embedding")


def test_a_sequence_of_letters_is_no_map_of_classes(tmp_path: Path) -> None:
    nodes = [node("Conv", ["images", "w"], ["seen"], kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
             node("ReduceMean", ["seen"], ["row"], axes=[2], keepdims=0),
             node("Transpose", ["row"], ["logits"], perm=[2, 0, 1])]  # fmt: skip
    save(tmp_path / "m.onnx", nodes, {"images": ["n", 3, 64, 64]}, {"logits": [64, "n", 8]},
         constants={"w": filters(3, 500.0)}, doc=DOC)  # fmt: skip
    assert recognise_for_init(tmp_path / "m.onnx", {}, save=False).reading is None


def test_numbers_of_no_map_are_no_classes(tmp_path: Path) -> None:
    nodes = [node("Conv", ["images", "w"], ["seen"], pads=[1, 1, 1, 1]),
             node("NonZero", ["seen"], ["output"])]  # fmt: skip
    save(tmp_path / "m.onnx", nodes, {"images": [1, 3, 64, 64]}, {"output": [4, "count"]},
         constants={"w": filters(3, 500.0)}, doc=DOC, dtypes={"output": 7})  # fmt: skip
    assert recognise_for_init(tmp_path / "m.onnx", {}, save=False).reading is None


def test_an_image_in_pixels_is_asked_about(tmp_path: Path) -> None:
    nodes = [node("Conv", ["images", "w"], ["seen"], pads=[1, 1, 1, 1]),
             node("Transpose", ["seen"], ["output"], perm=[0, 2, 3, 1])]  # fmt: skip
    path = save(tmp_path / "m.onnx", nodes, {"images": [1, 3, 64, 64]}, {"output": [1, 64, 64, 3]},
                constants={"w": filters(3, 5.0, 3)}, doc=DOC)  # fmt: skip
    with pytest.raises(ModelError) as caught:
        recognise_for_init(path, {}, save=False)
    text = str(caught.value)
    assert "--set network-type=2 --set segmentation-output-order=1" in text
    assert "--set network-type=100 --set output-image=image" in text


def test_planes_behind_a_turn_are_channels_last(tmp_path: Path) -> None:
    """Planes go in, and the map comes out with its classes last: tf2onnx turns Keras' so."""
    known = ending(tmp_path, "Identity", (1, 64, 64, 5))
    assert known.config.segmentation_output_order is TensorOrder.NHWC
    assert known.config.num_detected_classes == 5
    assert ending(tmp_path, "Identity", (1, 5, 64, 64)).config.num_detected_classes == 5


def test_queries_with_masks_are_one_map(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    tables = [rng.normal(0, 1, shape).astype("f4") for shape in ((1, 7, 4), (1, 7, 16, 16))]
    names = ["class_queries_logits", "masks_queries_logits"]
    path = rows_of(tmp_path / "m.onnx", tables, names=names, spread=500.0, doc=DOC)
    cfg = recognise_for_init(path, {}, save=False).config
    assert cfg.network_type is NetworkType.SEGMENTATION
    assert cfg.num_detected_classes == 3
    (seen,) = Inferencer.from_config(cfg)(np.zeros((64, 64, 3), np.uint8)).segmentations
    chances = np.exp(tables[0][0]) / np.exp(tables[0][0]).sum(axis=1, keepdims=True)
    sums = np.einsum("qc,qhw->chw", chances[:, :-1], 1 / (1 + np.exp(-tables[1][0])))
    np.testing.assert_array_equal(seen.class_map, sums.argmax(axis=0))


@pytest.mark.parametrize("op", ["Relu", "LeakyRelu", "BatchNormalization", "MaxPool", "Tanh"])
@pytest.mark.parametrize("shape", [(1, 64, 32, 32), (1, 21, 16, 16), (1, 4, 64, 64)])
def test_maps_behind_an_activation_are_no_classes(
    tmp_path: Path, op: str, shape: tuple[int, ...]
) -> None:
    if op == "BatchNormalization":
        path = normalised(tmp_path / "m.onnx", shape)
        reading = recognise_for_init(path, {}, save=False).reading
    elif op == "MaxPool":
        reading = ending(tmp_path, op, shape, kernel_shape=[1, 1]).reading
    else:
        reading = ending(tmp_path, op, shape).reading
    assert reading is not None
    assert (reading.kind, reading.words) == (NetworkType.OTHER, "feature map")


def normalised(path: Path, shape: tuple[int, ...]) -> Path:
    """Maps behind a batch normalisation."""
    nodes = [node("Conv", ["images", "w"], ["seen"], pads=[1, 1, 1, 1]),
             node("ReduceMean", ["seen"], ["mean"], axes=[1, 2, 3], keepdims=0),
             node("Mul", ["mean", "zero"], ["nothing"]), node("Add", ["nothing", "values"], ["x"]),
             node("BatchNormalization", ["x", "one", "none", "none", "one"], ["y"])]  # fmt: skip
    values = np.random.default_rng(0).normal(0, 1, shape).astype("f4")
    constants = {"w": filters(3, 500.0), "zero": np.float32(0), "values": values,
                 "one": np.ones(shape[1], "f4"), "none": np.zeros(shape[1], "f4")}  # fmt: skip
    save(path, nodes, {"images": [1, 3, 64, 64]}, {"y": shape}, constants=constants, doc=DOC)
    return path


@pytest.mark.parametrize(("shape", "other"), [
    ((1, 64, 32, 32), "network-type=100"), ((1, 256, 16, 16), "network-type=100"),
    ((1, 17, 16, 16), "HeadraceParseHeatmapPose"), ((1, 16, 16, 16), "HeadraceParseHeatmapPose"),
])  # fmt: skip
def test_maps_of_weights_that_may_be_features_or_points_are_asked_about(
    tmp_path: Path, shape: tuple[int, ...], other: str
) -> None:
    with pytest.raises(ModelError, match="network-type=2") as failure:
        ending(tmp_path, "Identity", shape)
    assert other in str(failure.value)


@pytest.mark.parametrize(("op", "shape"), [
    ("Identity", (1, 19, 16, 16)), ("Softmax", (1, 17, 16, 16)), ("Sigmoid", (1, 64, 32, 32)),
    ("Identity", (1, 64, 64, 64)), ("Identity", (1, 17, 32, 32)),
])  # fmt: skip
def test_classes_stay_classes(tmp_path: Path, op: str, shape: tuple[int, ...]) -> None:
    assert ending(tmp_path, op, shape).config.network_type is NetworkType.SEGMENTATION
