import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from headrace.engine import BuildOptions, build
from headrace.errors import EngineError, HeadraceError
from headrace.network import network_from_onnx
from tests.network.onnx_models import FLOAT, external_model, image_model, model_of, save


def built(model, tmp_path, **options):
    network = network_from_onnx(save(model, tmp_path / "m.onnx"))
    return build(network, BuildOptions(**options))


def test_free_axes_are_fixed_by_infer_dims(tmp_path):
    plan = built(image_model(("n", 3, "h", "w")), tmp_path, max_batch=2, infer_dims=(3, 8, 10))
    assert plan.inputs[0].shape == (None, 3, 8, 10)
    assert plan.header.infer_dims == (3, 8, 10)
    assert plan.outputs[0].shape[1:] == (3, 8, 10)
    proto = onnx.load_from_string(plan.blobs["model"])
    dims = proto.graph.input[0].type.tensor_type.shape.dim
    assert [d.dim_value for d in dims] == [0, 3, 8, 10]


def test_free_axes_of_an_nhwc_model_take_infer_dims_in_chw_order(tmp_path):
    plan = built(
        image_model(("n", "h", "w", 3)),
        tmp_path,
        infer_dims=(3, 8, 10),
        input_order="NHWC",
    )
    assert plan.inputs[0].shape == (None, 8, 10, 3)


def test_axes_of_minus_one_are_free(tmp_path):
    plan = built(image_model((-1, 3, -1, -1)), tmp_path, max_batch=2, infer_dims=(3, 4, 6))
    assert plan.inputs[0].shape == (None, 3, 4, 6)
    with plan.open_session() as session:
        x = np.ones((2, 3, 4, 6), np.float32)
        assert session.run({"x": x})["doubled"].shape == (2, 3, 4, 6)


def test_one_name_for_axes_of_two_sizes_says_nothing_about_outputs(tmp_path):
    """Paddle's exporter calls height and width "?" alike; here the height of `y` is found late."""
    model = model_of(
        [
            helper.make_node("ReduceMax", ["x"], ["most"], axes=[0, 1, 3], keepdims=0),
            helper.make_node("Greater", ["most", "limit"], ["bright"]),
            helper.make_node("Compress", ["x", "bright"], ["y"], axis=2),
        ],
        [helper.make_tensor_value_info("x", FLOAT, ["n", 3, "?", "?"])],
        [helper.make_tensor_value_info("y", FLOAT, ["n", 3, "?", "?"])],
        [helper.make_tensor("limit", FLOAT, [], [0.5])],
    )
    plan = built(model, tmp_path, infer_dims=(3, 4, 6))
    assert plan.inputs[0].shape == (None, 3, 4, 6)
    assert plan.outputs[0].shape[2] not in (4, 6)


@pytest.mark.parametrize("dims", [None, (3, 0, 10)])
def test_free_axes_without_infer_dims_are_named(tmp_path, dims):
    with pytest.raises(EngineError, match=r"leaves free: height \(h\), width") as caught:
        built(image_model(("n", 3, "h", None)), tmp_path, infer_dims=dims)
    assert "infer-dims=" in str(caught.value)


def test_infer_dims_that_contradict_the_model(tmp_path):
    with pytest.raises(EngineError, match=r"infer-dims=3;8;6 .*height 4 \(infer-dims says 8\)"):
        built(image_model(), tmp_path, infer_dims=(3, 8, 6))


def test_infer_dims_that_repeat_the_model(tmp_path):
    assert built(image_model(), tmp_path, infer_dims=(3, 4, 6)).inputs[0].shape[1:] == (3, 4, 6)


def test_infer_dims_need_four_axes(tmp_path):
    model = model_of(
        [helper.make_node("Relu", ["x"], ["y"], "relu")],
        [helper.make_tensor_value_info("x", FLOAT, ["n", 10])],
        [helper.make_tensor_value_info("y", FLOAT, ["n", 10])],
    )
    assert built(model, tmp_path).inputs[0].shape == (None, 10)
    with pytest.raises(EngineError, match="has 2"):
        built(model, tmp_path, infer_dims=(3, 4, 6))


def test_an_input_without_batch_axis(tmp_path):
    model = model_of(
        [helper.make_node("Relu", ["x"], ["y"], "relu")],
        [helper.make_tensor_value_info("x", FLOAT, [10])],
        [helper.make_tensor_value_info("y", FLOAT, [10])],
    )
    with pytest.raises(EngineError, match="no batch axis"):
        built(model, tmp_path)


def two_inputs(second):
    return model_of(
        [helper.make_node("Add", ["x", "more"], ["y"], "add")],
        [
            helper.make_tensor_value_info("x", FLOAT, ["n", 3, 4, 6]),
            helper.make_tensor_value_info("more", FLOAT, second),
        ],
        [helper.make_tensor_value_info("y", FLOAT, ["n", 3, 4, 6])],
    )


@pytest.mark.parametrize(
    ("second", "shape"),
    [(["n", 1, 1, 1], (None, 1, 1, 1)), ([1, 3, 1, 1], (1, 3, 1, 1)), ([6], (6,)), ([], ())],
)
def test_further_inputs_are_kept(tmp_path, second, shape):
    plan = built(two_inputs(second), tmp_path, max_batch=4)
    assert [s.name for s in plan.inputs] == ["x", "more"]
    assert plan.inputs[1].shape == shape


def test_free_axes_of_further_inputs_are_refused(tmp_path):
    with pytest.raises(EngineError, match=r"more float32.*axis free other than the batch"):
        built(two_inputs(["n", 1, 1, "any"]), tmp_path)


@pytest.mark.parametrize("batch", [0, 1025])
def test_batch_range(tmp_path, batch):
    with pytest.raises(EngineError, match="1 to 1024"):
        built(image_model(), tmp_path, max_batch=batch)


def test_a_fixed_batch_is_said(tmp_path):
    plan = built(image_model((3, 3, 4, 6)), tmp_path, max_batch=8)
    assert plan.header.fixed_batch == 3
    assert any("batch 8 runs as 3 runs of 3" in n.sentence for n in plan.decisions)
    plan = built(image_model((3, 3, 4, 6)), tmp_path, max_batch=2)
    assert any("batches of 2 are padded" in n.sentence for n in plan.decisions)
    assert built(image_model((3, 3, 4, 6)), tmp_path, max_batch=3).decisions == []


def test_a_huge_fixed_batch_is_refused(tmp_path):
    with pytest.raises(EngineError, match="fixes its batch at 5000"):
        built(image_model((5000, 3, 4, 6)), tmp_path)


@pytest.mark.parametrize(
    ("precision", "level"), [("fp16", "info"), ("int8", "warning"), ("best", "warning")]
)
def test_what_is_not_built_as_asked_is_told_once(tmp_path, precision, level):
    """FP32 in the place of FP16 costs nothing; in the place of INT8 it may."""
    plan = built(image_model(), tmp_path, precision=precision)
    assert plan.header.precision == "fp32"
    assert [n.level for n in plan.decisions] == [level]
    assert "FP16" in plan.decisions[0].sentence


def test_external_data_is_inside_the_plan(tmp_path):
    weights = np.arange(72, dtype=np.float32)
    (tmp_path / "w.bin").write_bytes(weights.tobytes())
    plan = built(external_model("w.bin"), tmp_path)
    (tmp_path / "w.bin").unlink()
    (tmp_path / "m.onnx").unlink()
    assert [f.name for f in plan.header.model.external] == ["w.bin"]
    x = np.ones((1, 3, 4, 6), np.float32)
    with plan.open_session() as session:
        assert (session.run({"x": x})["y"].ravel() == weights + 1).all()


def test_operators_the_runtime_lacks_are_listed(tmp_path):
    model = model_of(
        [helper.make_node("Unheard_TRT", ["x"], ["y"], "nms", domain="TRT")],
        [helper.make_tensor_value_info("x", FLOAT, [1, 3, 4, 6])],
        [helper.make_tensor_value_info("y", FLOAT, [1, 3, 4, 6])],
        domains=["TRT"],
    )
    with pytest.raises(EngineError, match=r"TRT::Unheard_TRT \(node 'nms', version 1"):
        built(model, tmp_path)


def test_what_the_runtime_refuses_names_the_node(tmp_path):
    model = model_of(
        [helper.make_node("Conv", ["x", "w"], ["y"], "broken_conv")],
        [helper.make_tensor_value_info("x", FLOAT, [1, 3, 4, 6])],
        [helper.make_tensor_value_info("y", FLOAT, [1, 3, 4, 6])],
        [helper.make_tensor("w", FLOAT, [2], [1.0, 2.0])],
    )
    with pytest.raises(EngineError, match="broken_conv") as caught:
        built(model, tmp_path)
    assert "onnxruntime refuses the model" in str(caught.value)
    assert "ONNXRuntimeError" not in str(caught.value)


def test_undefined_values_are_refused(tmp_path):
    model = image_model()
    model.graph.node[1].input[0] = "nowhere"
    with pytest.raises(HeadraceError, match="nowhere"):
        built(model, tmp_path)


def test_inputs_that_are_neither_real_numbers_nor_texts_are_refused(tmp_path):
    ends = [helper.make_tensor_value_info(n, TensorProto.COMPLEX64, ["n", 4]) for n in "xy"]
    model = model_of([helper.make_node("Identity", ["x"], ["y"], "same")], ends[:1], ends[1:])
    with pytest.raises(EngineError, match="tensor\\("):
        built(model, tmp_path)


def test_an_opset_newer_than_the_runtime_is_worded(tmp_path, monkeypatch):
    model = image_model()
    model.opset_import[0].version = 40
    monkeypatch.setattr(onnx.defs, "onnx_opset_version", lambda: 50)
    with pytest.raises(EngineError, match="opset"):
        built(model, tmp_path)


def test_building_leaves_the_network_as_it_was(tmp_path):
    network = network_from_onnx(save(image_model(("n", 3, "h", "w")), tmp_path / "m.onnx"))
    build(network, BuildOptions(infer_dims=(3, 8, 10)))
    assert network.inputs[0].shape == ("n", 3, "h", "w")
    assert build(network, BuildOptions(infer_dims=(3, 4, 6))).inputs[0].shape == (None, 3, 4, 6)
