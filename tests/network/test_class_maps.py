"""Outputs of ZipMap: tables in the place of maps."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper

from headrace.engine import BuildOptions, build
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
    assert network.class_maps.texts == (("label",) if isinstance(labels[0], str) else ())
    with build(network, BuildOptions(batched=False)).open_session() as session:
        results = session.run({"x": x})
    np.testing.assert_allclose(results["maps"], [[m[name] for name in labels] for m in maps], 1e-6)
    if "label" in results:
        assert results["label"].tolist() == classes.tolist()
