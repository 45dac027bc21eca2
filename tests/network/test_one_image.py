"""Models of one image: a batch is put in front of what has none, and nothing else is touched."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from headrace.config import ModelConfig
from headrace.engine import BuildOptions, build
from headrace.infer.model.source import model_source
from headrace.network import network_from_onnx
from headrace.network.one_image import with_batch

BOXES = np.float32([[1, 2, 5, 6], [6, 1, 10, 8], [0, 0, 3, 3]])


def model(
    path: Path,
    image: list[Any],
    *,
    opset: int = 17,
    ends: dict[str, list[Any]] | None = None,
    before: tuple[str, ...] = (),
) -> Path:
    """Rows of the boxes whose index is below the sum of the image: as many as it says."""
    nodes = [
        helper.make_node("Flatten", ["image"], ["flat"], axis=0),
        helper.make_node("MatMul", ["flat", "ones"], ["sum"]),
        helper.make_node("Less", ["rank", "sum"], ["kept"]),
        helper.make_node("Compress", ["table", "flags"], ["boxes"], axis=0),
        helper.make_node("Compress", ["ids", "flags"], ["labels"], axis=0),
        helper.make_node("ReduceMax", ["boxes"], ["largest"], keepdims=1),
    ]
    nodes.insert(3, helper.make_node("Reshape", ["kept", "all"], ["flags"]))
    count = int(np.prod([d for d in image if isinstance(d, int)]))
    weights = {
        "ones": np.ones((count, 1), np.float32), "rank": np.float32([[0.5, 1.5, 2.5]]),
        "table": BOXES, "ids": np.int64([3, 1, 2]), "all": np.int64([-1]),
    }  # fmt: skip
    ends = ends or {"boxes": ["n", 4], "labels": ["n"]}
    types = {"labels": TensorProto.INT64}
    more = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 2]) for name in before]
    nodes += [helper.make_node("Identity", [name], [f"{name}_out"]) for name in before]
    graph = helper.make_graph(
        nodes,
        "g",
        [*more, helper.make_tensor_value_info("image", TensorProto.FLOAT, image)],
        [
            helper.make_tensor_value_info(name, types.get(name, TensorProto.FLOAT), dims)
            for name, dims in ends.items()
        ],
        [numpy_helper.from_array(value, name) for name, value in weights.items()],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    onnx.checker.check_model(made)
    onnx.save(made, path)
    return path


def image_of(rows: int, shape: tuple[int, ...]) -> Any:
    pixels = np.zeros(shape, np.float32)
    pixels.flat[0] = rows
    return pixels


@pytest.mark.parametrize("opset", [12, 17])
@pytest.mark.parametrize("image", [[3, 16, 16], [1, 3, 16, 16], ["b", 3, 16, 16]])
def test_each_image_runs_alone(tmp_path: Path, image: list[Any], opset: int) -> None:
    path = model(tmp_path / "m.onnx", image, opset=opset)
    network = network_from_onnx(path, of_images=True)
    assert network.of_one_image == ("boxes", "labels")
    assert network.inputs[0].shape == (1, 3, 16, 16)
    assert [o.shape for o in network.outputs] == [(1, "n", 4), (1, "n")]
    with build(network, BuildOptions(max_batch=4)).open_session() as session:
        for rows in (0, 2, 3):
            outputs = session.run({"image": image_of(rows, (1, 3, 16, 16))})
            np.testing.assert_array_equal(outputs["boxes"], BOXES[None, :rows])
            np.testing.assert_array_equal(outputs["labels"], [[3, 1, 2][:rows]])
        both = np.concatenate([image_of(1, (1, 3, 16, 16)), image_of(3, (1, 3, 16, 16))])
        outputs = session.run({"image": both})
    np.testing.assert_array_equal(outputs["boxes"][0], [BOXES[0], [0] * 4, [0] * 4])
    np.testing.assert_array_equal(outputs["boxes"][1], BOXES)
    np.testing.assert_array_equal(outputs["labels"], [[3, 0, 0], [3, 1, 2]])


@pytest.mark.parametrize(
    ("image", "ends"),
    [
        (["b", 3, 16, 16], {"boxes": ["b", 4]}),  # the batch by its name
        ([2, 3, 16, 16], {"boxes": ["n", 4]}),  # a batch of two
        (["b", 3, 16, 16], {"largest": [1, 1]}),
        ([1, 1024, 3], {"boxes": ["n", 4]}),  # points in space
        ([None, 40, 3], {"boxes": ["n", 4]}),
    ],
)
def test_other_graphs_stay_as_they_are(
    tmp_path: Path, image: list[Any], ends: dict[str, list[Any]]
) -> None:
    path = model(tmp_path / "m.onnx", image, ends=ends)
    plain, network = network_from_onnx(path), network_from_onnx(path, of_images=True)
    assert network.of_one_image == ()
    assert network.to_proto() == plain.to_proto()


def test_a_count_that_is_fixed_is_no_batch(tmp_path: Path) -> None:
    path = model(tmp_path / "m.onnx", [1, 3, 16, 16], ends={"boxes": [3, 4]})
    assert network_from_onnx(path, of_images=True).outputs[0].shape == (1, 3, 4)


@pytest.mark.parametrize("name", ["scale_factor", "meta"])
def test_the_image_is_the_first_input(tmp_path: Path, name: str) -> None:
    path = model(tmp_path / "m.onnx", [1, 3, 16, 16], before=(name,))
    assert [i.name for i in network_from_onnx(path, of_images=True).inputs] == ["image", name]
    assert [i.name for i in network_from_onnx(path).inputs] == [name, "image"]


def test_a_config_says_so(tmp_path: Path) -> None:
    path = model(tmp_path / "m.onnx", [3, 16, 16])
    source = model_source(ModelConfig(onnx_file=path))
    assert source is not None
    source.network()
    (notice,) = source.notices
    assert notice.code == "outputs-of-one-image"
    assert "boxes, labels have no batch axis" in notice.sentence


@pytest.mark.parametrize("named", ["scale_factor", "other"])
def test_rows_of_all_images_beside_their_counts(named: str) -> None:
    """Paddle's RT-DETR folds the batch into its rows, and no operator counts boxes at run time."""
    inputs = {"image": ["a", 3, 64, 64], named: ["b", 2]}
    graph = helper.make_graph(
        [helper.make_node("Identity", [named], ["spare"]),
         helper.make_node("Identity", ["table"], ["rows"]),
         helper.make_node("Identity", ["number"], ["count"])],
        "g",
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, d) for n, d in inputs.items()],
        [helper.make_tensor_value_info("rows", TensorProto.FLOAT, ["c", 6]),
         helper.make_tensor_value_info("count", TensorProto.INT32, ["d"])],
        [helper.make_tensor("shape", TensorProto.INT64, [1], [0])],
    )  # fmt: skip
    for name, kind in (("table", TensorProto.FLOAT), ("number", TensorProto.INT32)):
        graph.input.append(helper.make_tensor_value_info(name, kind, None))
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    assert set(with_batch(proto)) == ({"rows", "count"} if named == "scale_factor" else set())


def test_inputs_that_nothing_reads_go() -> None:
    """tf2onnx folds the constants of Keras' EfficientNet, and leaves their inputs behind."""
    names = ["image", "model/normalization/Sub/y:0", "inside"]
    inner = helper.make_graph(
        [helper.make_node("Identity", ["inside"], ["z"])], "then", [],
        [helper.make_tensor_value_info("z", TensorProto.FLOAT, None)],
    )  # fmt: skip
    graph = helper.make_graph(
        [helper.make_node("Greater", ["image", "image"], ["any"]),
         helper.make_node("If", ["any"], ["y"], then_branch=inner, else_branch=inner)],
        "g",
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, [1, 3, 32, 32]) for n in names],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 3, 32, 32])],
    )  # fmt: skip
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    with_batch(proto)
    assert [value.name for value in proto.graph.input] == ["image", "inside"]
