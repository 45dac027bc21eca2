"""Models exported for one item take several, where that is right."""

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from headrace.config import ModelConfig
from headrace.engine import BuildOptions, build
from headrace.infer.model import load_or_build
from headrace.network import network_from_onnx
from tests.network.onnx_models import image_model, model_of, save

FLOAT = TensorProto.FLOAT


def ints(name, *values):
    return numpy_helper.from_array(np.array(values, np.int64), name)


def floats(name, array):
    return numpy_helper.from_array(np.asarray(array, np.float32), name)


def image(shape=(1, 3, 4, 6)):
    return helper.make_tensor_value_info("x", FLOAT, list(shape))


def result(*shape):
    return helper.make_tensor_value_info("y", FLOAT, list(shape))


def node(op, inputs, outputs=("y",), **attributes):
    return helper.make_node(op, inputs, list(outputs), f"{op} of {inputs[0]}", **attributes)


rng = np.random.default_rng(0)
GOOD = {
    "nothing baked in": lambda: image_model((1, 3, 4, 6)),
    "reshape keeps the batch": lambda: model_of(
        [node("Reshape", ["x", "s"])], [image()], [result(1, 72)], [ints("s", 1, 72)]
    ),
    "reshape keeps the batch and one free": lambda: model_of(
        [node("Reshape", ["x", "s"])], [image()], [result(1, 3, 24)], [ints("s", 1, 3, -1)]
    ),
    "reshape is free already": lambda: model_of(
        [node("Reshape", ["x", "s"])], [image()], [result(1, 72)], [ints("s", -1, 72)]
    ),
    "rows of all items in one axis, and back": lambda: model_of(
        [
            node("Transpose", ["x"], ["t"], perm=[0, 2, 3, 1]),
            node("Reshape", ["t", "rows"], ["r"]),
            node("MatMul", ["r", "w"], ["m"]),
            node("Reshape", ["m", "back"], ["y"]),
        ],
        [image()],
        [result(1, 24, 5)],
        [ints("rows", 24, 3), floats("w", rng.random((3, 5))), ints("back", 1, 24, 5)],
    ),
    "a shape in a node": lambda: model_of(
        [
            helper.make_node("Constant", [], ["s"], "c", value=ints("v", 1, 72)),
            node("Reshape", ["x", "s"]),
        ],
        [image()],
        [result(1, 72)],
    ),
    "a size to resize to": lambda: model_of(
        [node("Resize", ["x", "", "", "sizes"], mode="nearest")],
        [image()],
        [result(1, 3, 8, 12)],
        [ints("sizes", 1, 3, 8, 12)],
    ),
    "a constant that is not of the batch": lambda: model_of(
        [node("Reshape", ["c", "s"], ["p"]), node("Add", ["x", "p"])],
        [image()],
        [result(1, 3, 4, 6)],
        [floats("c", rng.random(3)), ints("s", 1, 3, 1, 1)],
    ),
}
BAD = {
    "items see each other": (
        lambda: model_of(
            [node("ReduceMean", ["x"], ["m"], axes=[0]), node("Add", ["x", "m"])],
            [image()], [result(1, 3, 4, 6)],
        ),
        "other results than single runs",
    ),
    "only the first item comes out": (
        lambda: model_of(
            [node("Slice", ["x", "a", "b", "c"])], [image()], [result(1, 3, 4, 6)],
            [ints("a", 0), ints("b", 1), ints("c", 0)],
        ),
        "of a batch of 2 is 1x3x4x6, not 2x3x4x6",
    ),
    "something of one item is put beside": (
        lambda: model_of(
            [node("Concat", ["x", "c"], axis=1)], [image()], [result(1, 4, 4, 6)],
            [floats("c", rng.random((1, 1, 4, 6)))],
        ),
        "Concat",
    ),
    "an output without a batch": (
        lambda: model_of([node("ReduceMean", ["x"], keepdims=0)], [image()], [result()]),
        "has no batch of 1 in front",
    ),
    "nothing to be told apart": (
        lambda: model_of(
            [node("Mul", ["x", "zero"])], [image()], [result(1, 3, 4, 6)], [floats("zero", [0])]
        ),
        "cannot be told apart",
    ),
    "no axis is left": (
        lambda: model_of(
            [node("Reshape", ["x", "s"], ["r"]), node("Reshape", ["r", "t"])],
            [image()], [result(1, 72)], [ints("s", 3, -1), ints("t", 1, 72)],
        ),
        "leaves no axis for the batch",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", GOOD)
def test_the_batch_becomes_free_and_right(name, tmp_path):
    network = network_from_onnx(save(GOOD[name](), tmp_path / "m.onnx"))
    fixed = build(network, BuildOptions(max_batch=5))
    free = build(network, BuildOptions(max_batch=5, dynamic_batch=True))
    assert fixed.header.fixed_batch == 1
    assert free.header.fixed_batch is None, free.decisions
    assert "a batch of 2 gives what two runs of 1 give" in str(free.decisions)
    x = rng.random((5, 3, 4, 6), np.float32)
    with fixed.open_session() as one, free.open_session() as many:
        for items in (5, 3, 1):
            want, got = one.run({"x": x[:items]}), many.run({"x": x[:items]})
            for output in want:
                np.testing.assert_allclose(got[output], want[output], 1e-4, 1e-6)


@pytest.mark.parametrize("name", BAD)
def test_what_would_be_wrong_stays_fixed_and_is_told(name, tmp_path):
    make, reason = BAD[name]
    network = network_from_onnx(save(make(), tmp_path / "m.onnx"))
    plan = build(network, BuildOptions(max_batch=4, dynamic_batch=True))
    assert plan.header.fixed_batch == 1
    (warning,) = [n.sentence for n in plan.decisions if n.level == "warning"]
    assert warning.startswith("the batch stays fixed at 1: ")
    assert reason in warning


def test_a_saved_engine_with_a_fixed_batch_is_built_anew_once(tmp_path):
    for name, make in (
        ("good", GOOD["a shape in a node"]),
        ("bad", BAD["items see each other"][0]),
    ):
        path = save(make(), tmp_path / f"{name}.onnx")
        cfg = ModelConfig(onnx_file=path, batch_size=4)
        load_or_build(cfg)
        first = load_or_build(cfg, dynamic_batch=True)
        assert "its batch is fixed at 1" in str(first.decisions)
        assert "loaded" in str(load_or_build(cfg, dynamic_batch=True).decisions)
        assert load_or_build(cfg).header.fixed_batch == first.header.fixed_batch
    assert network_from_onnx(path).inputs[0].shape[0] == 1


def test_a_real_detector(data_dir):
    network = network_from_onnx(data_dir / "models" / "version-RFB-320.onnx")
    plan = build(network, BuildOptions(max_batch=3, dynamic_batch=True))
    assert plan.header.fixed_batch is None, plan.decisions
