"""Plans without a batch: whatever the model takes."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest
from onnx import TensorProto, helper

from headrace.engine.builder import BuildOptions, build
from headrace.engine.plan import Plan
from headrace.engine.tuning.tune import TuneOptions
from headrace.errors import EngineError
from headrace.network.network import Network

FLOAT = TensorProto.FLOAT
RUNTIMES = ("onnxruntime", "openvino")


def network(nodes, inputs, outputs) -> Network:
    graph = helper.make_graph(
        nodes,
        "free",
        [helper.make_tensor_value_info(*i) for i in inputs],
        [helper.make_tensor_value_info(*o) for o in outputs],
    )
    opset = [helper.make_opsetid("", 17)]
    return Network(ir.from_proto(helper.make_model(graph, opset_imports=opset, ir_version=8)))


def matmul() -> Network:
    return network(
        [helper.make_node("MatMul", ["a", "b"], ["c"])],
        [("a", FLOAT, ["m", "k"]), ("b", FLOAT, ["k", "n"])],
        [("c", FLOAT, ["m", "n"])],
    )


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_free_axes_take_any_size_again_and_again(runtime: str) -> None:
    plan = build(matmul(), BuildOptions(batched=False, runtime=runtime))
    rng = np.random.default_rng(0)
    with plan.open_session(threads=1) as session:
        for m, k, n in ((2, 3, 4), (1, 7, 1), (5, 2, 6), (2, 3, 4)):
            a, b = rng.random((m, k), np.float32), rng.random((k, n), np.float32)
            np.testing.assert_allclose(session.run({"a": a, "b": b})["c"], a @ b, rtol=1e-5)


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_saved_plan_does_the_same(runtime: str, tmp_path) -> None:
    build(matmul(), BuildOptions(batched=False, runtime=runtime)).save(tmp_path / "m.engine")
    plan = Plan.load(tmp_path / "m.engine")
    assert not plan.header.batched
    a, b = np.eye(3, dtype=np.float32), np.arange(9, dtype=np.float32).reshape(3, 3)
    with plan.open_session() as session:
        np.testing.assert_array_equal(session.run({"a": a, "b": b})["c"], b)


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_scalars_stay_scalars(runtime: str) -> None:
    nodes = [helper.make_node("Add", ["a", "b"], ["c"])]
    added = network(nodes, [("a", FLOAT, []), ("b", FLOAT, [])], [("c", FLOAT, [])])
    with build(added, BuildOptions(batched=False, runtime=runtime)).open_session() as session:
        out = session.run({"a": np.float32(2).reshape(()), "b": np.array(3, np.float32)})["c"]
    assert out.shape == ()
    assert out == 5


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_network_may_have_no_inputs(runtime: str) -> None:
    value = helper.make_tensor("v", FLOAT, [2], [1.5, 2.5])
    constant = network(
        [helper.make_node("Constant", [], ["c"], value=value)], [], [("c", FLOAT, [2])]
    )
    with build(constant, BuildOptions(batched=False, runtime=runtime)).open_session() as session:
        assert session.run({})["c"].tolist() == [1.5, 2.5]
    with pytest.raises(EngineError, match="the graph has no inputs"):
        build(constant)


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("unused", [(), ("r",)])
def test_an_input_that_is_handed_on_keeps_its_name(runtime: str, unused: tuple[str, ...]) -> None:
    names = ["x", *unused]
    nodes = [helper.make_node("Dropout", names, ["h"]), helper.make_node("Identity", ["h"], ["y"])]
    shapes = {"x": [2, 3], "r": []}
    handed = network(nodes, [(n, FLOAT, shapes[n]) for n in names], [("y", FLOAT, [2, 3])])
    with build(handed, BuildOptions(batched=False, runtime=runtime)).open_session() as session:
        feeds = {n: np.full(shapes[n], 0.5, np.float32) for n in names}
        assert session.run(feeds)["y"].tolist() == feeds["x"].tolist()


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize(
    ("feeds", "told"),
    [
        ({"a": (2, 3), "b": (4, 5)}, "shape 4x5"),  # k is 3 already
        ({"a": (2, 3, 1), "b": (3, 5)}, "shape 2x3x1"),
        ({"a": (2, 3)}, "missing input 'b'"),
        ({"a": (2, 3), "b": (3, 1), "c": (1,)}, "no input is called 'c'"),
    ],
)
def test_what_does_not_fit_is_refused(runtime: str, feeds, told: str) -> None:
    plan = build(matmul(), BuildOptions(batched=False, runtime=runtime))
    arrays = {name: np.ones(shape, np.float32) for name, shape in feeds.items()}
    with plan.open_session() as session, pytest.raises(EngineError, match=told):
        session.run(arrays)


def test_another_type_is_refused_not_converted() -> None:
    plan = build(matmul(), BuildOptions(batched=False))
    with plan.open_session() as session, pytest.raises(EngineError, match="is float64"):
        session.run({"a": np.ones((1, 1)), "b": np.ones((1, 1), np.float32)})


def test_tuning_needs_fixed_shapes() -> None:
    with pytest.raises(EngineError, match="leave axes free"):
        build(matmul(), BuildOptions(batched=False, tuning=TuneOptions(budget_s=1)))


def test_a_plan_without_a_batch_serves_no_config(tmp_path) -> None:
    from headrace.config import ModelConfig
    from headrace.infer.model.planning import load_or_build

    plan = build(matmul(), BuildOptions(batched=False))
    plan.save(tmp_path / "m.engine")
    (tmp_path / "c.txt").write_text("[property]\nmodel-engine-file=m.engine\n")
    with pytest.raises(EngineError, match="its first axis is no batch"):
        load_or_build(ModelConfig.load(tmp_path / "c.txt"))
