"""FP16 and BF16 in the graph: same answers, same ends, reasons for what stays."""

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from headrace.engine.precision import export
from tests.engine.precision.graphs import model, network_of, run, small_net, sqnr

IMAGE = np.random.default_rng(1).random((2, 3, 8, 8)).astype(np.float32)


@pytest.mark.parametrize("opset", [11, 17, 21])
def test_fp16_answers_as_fp32_does(opset):
    proto = small_net(opset)
    done = export(network_of(proto), "fp16")
    data = done.to_bytes()
    onnx.checker.check_model(data, full_check=True)
    for a, b in zip(run(proto.SerializeToString(), {"image": IMAGE}), run(data, {"image": IMAGE}),
                    strict=True):  # fmt: skip
        assert b.dtype == np.float32
        assert sqnr(a, b) > 45
    assert not done.kept
    made = onnx.load_from_string(data)
    kinds = {t.name: t.data_type for t in made.graph.initializer}
    # the scales of Resize have no FP16 form
    assert kinds["scales"] == TensorProto.FLOAT
    assert all(kind != TensorProto.FLOAT for name, kind in kinds.items() if name != "scales")


def test_ends_keep_names_types_and_order():
    network = network_of(small_net())
    done = export(network, "fp16").network
    assert done.inputs == network.inputs
    assert [o.name for o in done.outputs] == [o.name for o in network.outputs]
    assert [o.dtype for o in done.outputs] == [o.dtype for o in network.outputs]


def test_the_given_network_is_not_changed():
    network = network_of(small_net())
    before = network.to_proto().SerializeToString(deterministic=True)
    export(network, "fp16")
    assert network.to_proto().SerializeToString(deterministic=True) == before


def test_a_kept_node_gets_casts_around_it():
    proto = small_net()
    done = export(network_of(proto), "fp16", keep=["add"])
    assert done.kept == {"add": "asked for"}
    made = onnx.load_from_string(done.to_bytes())
    add = next(n for n in made.graph.node if n.name == "add")
    producers = {name: n for n in made.graph.node for name in n.output}
    for name in add.input:
        assert producers[name].op_type == "Cast"
        assert producers[name].attribute[0].i == TensorProto.FLOAT
    reference = run(proto.SerializeToString(), {"image": IMAGE})
    assert sqnr(reference[1], run(done.to_bytes(), {"image": IMAGE})[1]) > 45


def test_weights_and_ranges_beyond_fp16_stay():
    nodes = [
        helper.make_node("Mul", ["x", "big"], ["y"], "times"),
        helper.make_node("Mul", ["y", "small"], ["z"], "back"),
        helper.make_node("ReduceSumSquare", ["z"], ["s"], "energy", keepdims=0),
        helper.make_node("Clip", ["z", "low", "high"], ["out"], "clip"),
    ]
    top = np.float32(3.4e38)
    proto = model(
        nodes, {"x": [4]}, {"out": [4], "s": []},
        {"big": np.float32([1e5]), "small": np.float32([1e-5]), "low": -top, "high": top},
    )  # fmt: skip
    done = export(network_of(proto), "fp16", {"y": 1e5 / 127})
    assert set(done.kept) == {"times", "back", "energy"}
    assert "big" in done.kept["times"]
    assert "'y'" in done.kept["back"]
    assert "squares" in done.kept["energy"]
    assert "clip" in done.converted
    x = np.float32([0.5, -1, 2, 3])
    assert np.allclose(run(done.to_bytes(), {"x": x})[0], x, rtol=1e-3)


def test_what_is_used_inside_a_branch_stays():
    inner = helper.make_graph(
        [helper.make_node("Add", ["y", "y"], ["twice"])], "then", [],
        [helper.make_tensor_value_info("twice", TensorProto.FLOAT, [4])],
    )  # fmt: skip
    other = helper.make_graph(
        [helper.make_node("Identity", ["y"], ["same"])], "else", [],
        [helper.make_tensor_value_info("same", TensorProto.FLOAT, [4])],
    )  # fmt: skip
    nodes = [
        helper.make_node("Relu", ["x"], ["y"], "relu"),
        helper.make_node("If", ["yes"], ["z"], "branch", then_branch=inner, else_branch=other),
        helper.make_node("Relu", ["z"], ["out"], "last"),
    ]
    proto = model(nodes, {"x": [4]}, {"out": [4]}, {"yes": np.array(True)})
    done = export(network_of(proto), "fp16")
    assert set(done.kept) == {"relu", "branch"}
    assert "graph" in done.kept["branch"]
    assert run(done.to_bytes(), {"x": np.float32([1, -1, 2, 3])})[0].tolist() == [2, 0, 4, 6]


def test_a_plugin_stays():
    nodes = [
        helper.make_node("Relu", ["x"], ["y"], "relu"),
        helper.make_node("Magic", ["y"], ["out"], "magic", domain="their.own"),
    ]
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4])],
        [helper.make_tensor_value_info("out", TensorProto.FLOAT, [4])],
    )  # fmt: skip
    proto = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("their.own", 1)]
    )
    done = export(network_of(proto), "fp16")
    assert done.converted == ("relu",)
    assert "no operator of ONNX" in done.kept["magic"]


def test_casts_to_float_become_casts_to_half():
    nodes = [
        helper.make_node("Shape", ["x"], ["n"], "shape"),
        helper.make_node("Cast", ["n"], ["f"], "cast", to=TensorProto.FLOAT),
        helper.make_node("Div", ["x", "f"], ["out"], "div"),
    ]
    proto = model(nodes, {"x": [4]}, {"out": [4]}, {})
    done = export(network_of(proto), "fp16")
    assert not done.kept
    made = onnx.load_from_string(done.to_bytes())
    assert [n.op_type for n in made.graph.node].count("Cast") == 3  # in, the model's own, out
    assert run(done.to_bytes(), {"x": np.float32([4, 8, 2, 0])})[0].tolist() == [1, 2, 0.5, 0]


def test_bf16_is_valid_and_computes_in_bf16():
    nodes = [
        helper.make_node("Mul", ["x", "w"], ["y"], "mul"),
        helper.make_node("Add", ["y", "b"], ["out"], "add"),
    ]
    w, b = np.float32([1.01, 3.3, 1e20]), np.float32([1, 2, 3])
    proto = model(nodes, {"x": [3]}, {"out": [3]}, {"w": w, "b": b})
    done = export(network_of(proto), "bf16")
    assert set(done.converted) == {"mul", "add"}  # 1e20 fits BF16
    made = onnx.load_from_string(done.to_bytes())
    onnx.checker.check_model(made, full_check=True)
    x = np.float32([0.7, -2.5, 1])
    (out,) = ReferenceEvaluator(made).run(None, {"x": x})
    half = ml_dtypes.bfloat16
    expected = (x.astype(half) * w.astype(half) + b.astype(half)).astype(np.float32)
    assert np.allclose(out, expected, rtol=1e-2)


def test_bf16_of_convolutions_passes_the_checker():
    data = export(network_of(small_net()), "bf16").to_bytes()
    made = onnx.load_from_string(data)
    onnx.checker.check_model(made, full_check=True)
    kinds = {t.data_type for t in made.graph.initializer if t.name.endswith("bf16")}
    assert kinds == {TensorProto.BFLOAT16}


def test_constants_are_weights():
    value = numpy_helper.from_array(np.float32([2.0]))
    nodes = [
        helper.make_node("Constant", [], ["two"], value=value),
        helper.make_node("Mul", ["x", "two"], ["out"], "mul"),
    ]
    done = export(network_of(model(nodes, {"x": [3]}, {"out": [3]}, {})), "fp16")
    made = onnx.load_from_string(done.to_bytes())
    assert [t.data_type for t in made.graph.initializer] == [TensorProto.FLOAT16]
    assert run(done.to_bytes(), {"x": np.float32([1, 2, 3])})[0].tolist() == [2, 4, 6]
