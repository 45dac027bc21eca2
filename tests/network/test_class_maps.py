"""Outputs of ZipMap: tables in the place of maps."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper

from headrace import Frame, Inferencer
from headrace.engine import BuildOptions, build
from headrace.errors import ConfigError
from headrace.network import network_from_onnx

ML = "ai.onnx.ml"


def classifier(path: Path, labels: list[str] | list[int]) -> Path:
    """scikit-learn's logistic regression as its converter writes it: label, and maps."""
    texts = isinstance(labels[0], str)
    kind = "strings" if texts else "int64s"
    named = {f"classlabels_{'strings' if texts else 'ints'}": labels}
    nodes = [
        helper.make_node("LinearClassifier", ["x"], ["label", "p"], domain=ML, multi_class=1,
                         coefficients=np.arange(-4, 5) / 10.0, intercepts=[0.0, 0.1, 0.2],
                         post_transform="SOFTMAX", **named),
        helper.make_node("ZipMap", ["p"], ["maps"], domain=ML, **{f"classlabels_{kind}": labels}),
    ]  # fmt: skip
    key = TensorProto.STRING if texts else TensorProto.INT64
    of_class = helper.make_map_type_proto(key, helper.make_tensor_type_proto(TensorProto.FLOAT, []))
    maps = helper.make_value_info("maps", helper.make_sequence_type_proto(of_class))
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3])],
        [helper.make_tensor_value_info("label", key, ["n"]), maps],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid(ML, 3)], ir_version=8)
    onnx.save(model, path)
    return path


@pytest.mark.parametrize("labels", [["cat", "dog", "fox"], [7, 8, 9]])
def test_maps_are_read_as_the_table_behind_them(
    labels: list[str] | list[int], tmp_path: Path
) -> None:
    path = classifier(tmp_path / "m.onnx", labels)
    x = np.random.default_rng(0).random((2, 3)).astype(np.float32)
    classes, maps = ort.InferenceSession(path).run(None, {"x": x})
    network = network_from_onnx(path)
    assert network.class_maps.names == {"maps": tuple(map(str, labels))}
    texts = ("label",) if isinstance(labels[0], str) else ()
    assert network_from_onnx(path, of_images=True).class_maps.texts == texts
    with build(network, BuildOptions(batched=False)).open_session() as session:
        results = session.run({"x": x})
    np.testing.assert_allclose(results["maps"], [[m[name] for name in labels] for m in maps], 1e-6)
    assert results["label"].tolist() == classes.tolist()


def colours(path: Path, *, texts_alone: bool = False) -> Path:
    """A classifier of images that says the name of its class beside the scores."""
    names = {"keys_int64s": [0, 1, 2], "values_strings": ["red", "green", "blue"]}
    nodes = [
        helper.make_node("ReduceMean", ["image"], ["means"], axes=[2, 3], keepdims=0),
        helper.make_node("ArgMax", ["means"], ["best"], axis=1, keepdims=0),
        helper.make_node("LabelEncoder", ["best"], ["label"], domain=ML, **names),
    ]
    ends = [
        helper.make_tensor_value_info("label", TensorProto.STRING, ["n"]),
        helper.make_tensor_value_info("means", TensorProto.FLOAT, ["n", 3]),
    ]
    image = helper.make_tensor_value_info("image", TensorProto.FLOAT, ["n", 3, 16, 16])
    graph = helper.make_graph(nodes, "g", [image], ends[:1] if texts_alone else ends)
    opsets = [helper.make_opsetid("", 13), helper.make_opsetid(ML, 2)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)
    return path


def test_texts_beside_numbers_are_left_to_those_who_ask_for_them(tmp_path: Path) -> None:
    path = colours(tmp_path / "m.onnx")
    labels = tmp_path / "labels.txt"
    labels.write_text("r;g;b\n")
    config = tmp_path / "c.txt"
    config.write_text(f"[property]\nonnx-file={path}\nnetwork-type=1\nlabelfile-path={labels}\n")
    green = np.zeros((8, 8, 3), np.uint8)
    green[..., 1] = 200
    with Inferencer.from_config(config) as model:
        (meta,) = model.process([Frame.from_array(green, format="rgb")])
        (told,) = [n for n in model.notices if n.code == "texts-left-out"]
    assert meta.objects.display_text(0).strip() == "g"
    assert told.data["outputs"] == "label"
    images = np.zeros((2, 3, 16, 16), np.float32)
    images[0, 1], images[1, 2] = 1, 1
    with build(network_from_onnx(path), BuildOptions(max_batch=2)).open_session() as session:
        out = session.run({"image": images})
    assert out["label"].ravel().tolist() == ["green", "blue"]


def test_a_model_of_texts_alone_is_refused_for_images(tmp_path: Path) -> None:
    path = colours(tmp_path / "m.onnx", texts_alone=True)
    config = tmp_path / "c.txt"
    config.write_text(f"[property]\nonnx-file={path}\nnetwork-type=100\n")
    with pytest.raises(ConfigError, match="output label holds texts"):
        Inferencer.from_config(config)
