"""FP16's roundings where a processor has no FP16: the same values as NumPy's float16."""

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from headrace.engine.builder import BuildOptions, build
from headrace.engine.layers import layers_of
from headrace.engine.precision import export
from headrace.engine.precision.prepare import prepare
from headrace.engine.precision.rounded import round_halves
from tests.engine.precision.graphs import model, network_of, run, small_net, sqnr

VALUES = arrays(np.float32, 16, elements=st.floats(-7e4, 7e4, width=32))


def rounded(proto):
    """The answers of a model in FP16 on a processor without it, as a function of its input."""
    plan = build(network_of(proto), BuildOptions(precision="fp16", exact=True, batched=False))
    session = plan.open_session(threads=1)
    return plan, session


def chain(operators):
    """x -> operators -> y; each has a constant beside it where its tuple names one."""
    nodes, weights, name = [], {}, "x"
    for index, (operator, *constant) in enumerate(operators):
        out = "y" if index == len(operators) - 1 else f"t{index}"
        inputs = [name]
        if constant:
            weights[f"w{index}"] = np.float32(constant)
            inputs.append(f"w{index}")
        nodes.append(helper.make_node(operator, inputs, [out], f"{operator}_{index}"))
        name = out
    return model(nodes, {"x": [16]}, {"y": [16]}, weights)


CHAINS = {
    "scale": (("Mul", 0.37), ("Add", 11.3), ("Relu",), ("Sub", 3.3), ("Div", 7.7)),
    "large": (("Mul", 93.0), ("Sub", 1.0), ("Mul", 0.01), ("Sigmoid",)),
    "small": (("Mul", 1e-4), ("Mul", 1e-4), ("Mul", 1e4), ("Mul", 1e4)),
    "abs": (("Abs",), ("Sqrt",), ("Neg",), ("Mul", 3.1), ("Relu",)),
}


@pytest.mark.parametrize("name", CHAINS)
def test_each_layer_rounds_as_numpy_does(name):
    proto = chain(CHAINS[name])
    half = ReferenceEvaluator(onnx.load_from_string(export(network_of(proto), "fp16").to_bytes()))
    _, session = rounded(proto)

    @given(VALUES)
    def check(x):
        with np.errstate(all="ignore"):
            expected = half.run(None, {"x": x})[0]
        got = session.run({"x": x})["y"]
        assert got.dtype == expected.dtype == np.float32
        close = np.isclose(got, expected, rtol=2**-10, atol=0, equal_nan=True)  # Sigmoid's last bit
        assert close.all(), (x[~close], got[~close], expected[~close])
        if name in ("scale", "small"):
            np.testing.assert_array_equal(got, expected)

    with session:
        check()


def test_what_is_beyond_fp16_becomes_infinite_and_what_is_below_becomes_0():
    x = np.zeros(16, np.float32)
    x[:6] = 700, 704.5, 705, -800, 1, 3e-4
    with rounded(chain((("Mul", 93.0), ("Relu",), ("Mul", 1.0))))[1] as session:
        y = session.run({"x": x})["y"]
    assert y[:3].tolist() == [65088, 65504, np.inf]
    assert y[3:5].tolist() == [0, 93]
    with rounded(chain((("Mul", 1e-4), ("Mul", 1e4), ("Mul", 1.0))))[1] as session:
        assert session.run({"x": x})["y"][5] == pytest.approx(5.96e-4, rel=1e-3)  # of 2^-24
        assert session.run({"x": x * np.float32(1e-2)})["y"][5] == 0
        assert session.run({"x": x})["y"][4] == pytest.approx(1, rel=1e-3)


def test_a_network_of_convolutions_is_that_of_fp16_with_sums_in_fp32():
    """By hand: inputs and weights of FP16, products and sums of float64, one rounding."""
    rng = np.random.default_rng(0)
    image = rng.random((2, 3, 8, 8)).astype(np.float32)
    w1, w2 = (rng.normal(0, 0.5, s).astype(np.float32) for s in ((3, 4), (4, 5)))
    nodes = [
        helper.make_node("MatMul", ["x", "w1"], ["a"], "first"),
        helper.make_node("Relu", ["a"], ["b"], "relu"),
        helper.make_node("MatMul", ["b", "w2"], ["y"], "second"),
    ]
    proto = model(nodes, {"x": [64, 3]}, {"y": [64, 5]}, {"w1": w1, "w2": w2})
    x = image.transpose(0, 2, 3, 1).reshape(-1, 3)[:64]

    def half(values):
        return values.astype(np.float16).astype(np.float64)

    expected = half(half(np.maximum(half(half(x) @ half(w1)), 0)) @ half(w2))
    plan, session = rounded(proto)
    with session:
        got = session.run({"x": x})["y"]
    off = got != expected
    assert off.mean() < 0.02  # sums of FP32 in another order, next to the middle of two halves
    np.testing.assert_allclose(got, expected, rtol=2**-9, atol=2**-12)
    assert plan.header.precision == "fp16"
    layers = {layer.name: layer.precision for layer in layers_of(plan)}
    assert (layers["relu"], layers["second"]) == ("fp16", "fp16")


def test_ends_and_answers_of_a_network_stay():
    image = np.random.default_rng(1).random((2, 3, 8, 8)).astype(np.float32)
    proto = small_net()
    plan = build(network_of(proto), BuildOptions(precision="fp16", exact=True, max_batch=2))
    with plan.open_session(threads=1) as session:
        got = session.run({"image": image})
    reference = run(proto.SerializeToString(), {"image": image})
    for expected, (name, values) in zip(reference, got.items(), strict=True):
        assert values.dtype == np.float32
        assert 40 < sqnr(expected, values) < 90, name
    told = [n for n in plan.decisions if n.code == "layers-precision"]
    assert len(told) == 1
    assert "onnxruntime computes them in FP32 here and rounds each result" in f"{told[0]}"


def half_model():
    """FP16 at both ends, a plugin and an exact layer inside."""
    nodes = [
        helper.make_node("Mul", ["x", "w"], ["a"], "times"),
        helper.make_node("Transpose", ["a"], ["b"], "turn"),
        helper.make_node("Own", ["b"], ["c"], "own", domain="mine"),
        helper.make_node("Add", ["c", "w"], ["y"], "plus"),
        helper.make_node("Cast", ["y"], ["z"], "widen", to=TensorProto.FLOAT),
        helper.make_node("Constant", [], ["k"], "k", value=numpy_helper.from_array(np.float16(2))),
        helper.make_node("ConstantOfShape", ["n"], ["f"], "fill",
                         value=numpy_helper.from_array(np.float16([3]))),
        helper.make_node("Mul", ["f", "k"], ["g"], "product"),
    ]  # fmt: skip
    half, single = TensorProto.FLOAT16, TensorProto.FLOAT
    graph = helper.make_graph(
        nodes, "g",
        [helper.make_tensor_value_info("x", half, [2, 2])],
        [helper.make_tensor_value_info("y", half, [2, 2]),
         helper.make_tensor_value_info("z", single, [2, 2]),
         helper.make_tensor_value_info("g", half, [1])],
        [numpy_helper.from_array(np.float16([[1000, 3], [2, 1]]), "w"),
         numpy_helper.from_array(np.int64([1]), "n")],
        value_info=[helper.make_tensor_value_info("c", half, [2, 2])],
    )  # fmt: skip
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("mine", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def test_a_model_of_fp16_keeps_its_ends_and_the_types_of_its_plugins():
    proto = prepare(half_model())
    layers = round_halves(proto)
    assert layers == ["times", "turn", "plus", "fill", "product"]
    onnx.checker.check_model(proto)
    kinds = {
        v.name: v.type.tensor_type.elem_type for v in (*proto.graph.input, *proto.graph.output)
    }
    half = TensorProto.FLOAT16
    assert kinds == {"x": half, "y": half, "z": TensorProto.FLOAT, "g": half}
    own = next(n for n in proto.graph.node if n.op_type == "Own")
    makers = {name: n for n in proto.graph.node for name in n.output}
    assert makers[own.input[0]].attribute[0].i == half
    own.op_type, own.domain = "Identity", ""
    x = np.float16([[1, 100], [70, 3]])
    y, z, g = run(proto.SerializeToString(), {"x": x})
    expected = (x * np.float16([[1000, 3], [2, 1]])).T + np.float16([[1000, 3], [2, 1]])
    np.testing.assert_array_equal(y, expected)
    assert (z.dtype, z.tolist(), g.tolist()) == (np.float32, expected.tolist(), [6])


def test_a_graph_inside_a_node_that_uses_fp16_stays_as_it_is():
    inner = helper.make_graph(
        [helper.make_node("Identity", ["a"], ["i"])], "i", [],
        [helper.make_tensor_value_info("i", TensorProto.FLOAT16, [2])],
    )  # fmt: skip
    nodes = [
        helper.make_node("Add", ["x", "x"], ["a"], "twice"),
        helper.make_node("If", ["c"], ["y"], "if", then_branch=inner, else_branch=inner),
    ]
    graph = helper.make_graph(
        nodes, "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT16, [2]),
         helper.make_tensor_value_info("c", TensorProto.BOOL, [])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT16, [2])],
    )  # fmt: skip
    proto = prepare(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]))
    before = proto.SerializeToString()
    assert round_halves(proto) == []
    assert proto.SerializeToString() == before
