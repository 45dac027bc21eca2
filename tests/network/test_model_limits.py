"""Small files that ask for endless work are refused, with the number that is too large."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from headrace.errors import ModelError
from headrace.network import model_limits
from headrace.network.onnx_file import network_from_onnx_bytes
from headrace.network.shapes import growth
from headrace.network.shapes.graph_shapes import without_weights
from headrace.network.shapes.growth import growth_problem

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64
OPSETS = [helper.make_opsetid("", 17), helper.make_opsetid("f", 1)]


def model(nodes: list[Any], functions: Any = (), constants: Any = (), kind: int = FLOAT) -> Any:
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", kind, ["n", 3, 8, 8])],
        [helper.make_tensor_value_info("y", kind, None)],
        [onnx.numpy_helper.from_array(np.asarray(v), name) for name, v in dict(constants).items()],
    )
    return helper.make_model(graph, opset_imports=OPSETS, functions=functions, ir_version=9)


def read(proto: Any) -> Any:
    return network_from_onnx_bytes(proto.SerializeToString(), Path("a.onnx"))


def function(name: str, *calls: str) -> Any:
    names = [f"t{i}" for i in range(len(calls) - 1)]
    nodes = [
        helper.make_node(call, [a], [b], domain="" if call == "Relu" else "f")
        for call, a, b in zip(calls, ["a", *names], [*names, "b"], strict=True)
    ]
    return helper.make_function("f", name, ["a"], ["b"], nodes, OPSETS)


LAST = function("F8", "Relu")


def call(name: str) -> list[Any]:
    return [helper.make_node(name, ["x"], ["y"], domain="f")]


def chain(op: str, count: int, *more: str, **attributes: Any) -> list[Any]:
    names = ["x", *(f"t{i}" for i in range(count - 1)), "y"]
    pairs = pairwise(names)
    return [
        helper.make_node(op, [a, *(a if m == "same" else m for m in more)], [b], **attributes)
        for a, b in pairs
    ]


def with_listed(field: str, count: int, **entry: Any) -> Any:
    proto = model(chain("Relu", 1))
    owner, _, name = field.rpartition(".")
    entries = getattr(proto.graph if owner else proto, name)
    entries.extend([entries.add(**entry)] * count)
    return proto


def branch(depth: int, wide: bool) -> Any:
    out = helper.make_tensor_value_info("z", FLOAT, None)
    if depth == 0:
        return helper.make_graph([helper.make_node("Relu", ["x"], ["z"])], "b", [], [out])
    inner = branch(depth - 1, wide)
    other = inner if wide else branch(0, wide)
    node = helper.make_node("If", ["c"], ["z"], then_branch=inner, else_branch=other)
    return helper.make_graph([node], "b", [], [out])


def conditional(depth: int, wide: bool) -> Any:
    node = branch(depth, wide).node[0]
    node.output[0] = "y"
    return model([node], constants={"c": np.array(True)})


ENDLESS = {
    "ten calls, nine deep": lambda: model(
        call("F0"), [function(f"F{i}", *[f"F{i + 1}"] * 10) for i in range(8)] + [LAST]
    ),
    "a function that calls itself": lambda: model(call("A"), [function("A", "A")]),
    "two that call each other": lambda: model(
        call("A"), [function("A", "B"), function("B", "Relu", "A")]
    ),
    "a long chain of functions": lambda: model(
        call("F0"), [function(f"F{i}", f"F{i + 1}") for i in range(900)]
    ),
    "functions": lambda: model(chain("Relu", 1), [function("A", "Relu")] * 10_001),
    "operator sets": lambda: with_listed("opset_import", 10_001, domain="a", version=1),
    "properties": lambda: with_listed("metadata_props", 10_001, key="a", value="b"),
    "weights": lambda: with_listed("graph.initializer", 100_001, name="a", data_type=FLOAT),
    "outputs": lambda: with_listed("graph.output", 10_001, name="a"),
    "graphs in graphs": lambda: conditional(20, wide=False),
    "nodes": lambda: model(chain("Relu", model_limits.MAX_NODES + 1)),
    "attributes": lambda: model(
        [helper.make_node("Relu", ["x"], ["y"], **dict.fromkeys(map(str, range(1_001)), 1))]
    ),
    "inputs of a node": lambda: model([helper.make_node("Concat", ["x"] * 400_001, ["y"], axis=0)]),
    "numbers": lambda: model([helper.make_node("Relu", ["x"], ["y"], k=[1] * 4_000_001)]),
    "axes that double": lambda: model(chain("Gather", 40, "same"), kind=INT64),
    "numbers that double": lambda: model(
        [
            helper.make_node("Shape", ["x"], ["t"]),
            *(helper.make_node("Concat", ["t" + "_" * i] * 2, ["t" + "_" * (i + 1)], axis=0)
              for i in range(40)),
            helper.make_node("Reshape", ["x", "t" + "_" * 40], ["y"]),
        ]
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", ENDLESS)
@pytest.mark.sampled
def test_endless_work_is_refused(kind: str) -> None:
    with pytest.raises(ModelError) as caught:
        read(ENDLESS[kind]())
    assert caught.value.code == "model-too-large"
    assert caught.value.where == "a.onnx"


def test_usual_models_are_read() -> None:
    assert read(model(chain("Relu", 2000))) is not None
    assert read(conditional(5, wide=True)) is not None
    functions = [function("A", "B", "B"), function("B", *["Relu"] * 20)]
    assert read(model(call("A"), functions)) is not None


def test_shapes_that_only_might_grow_are_tried() -> None:
    nodes, name = [], "x"
    for i in range(20):  # two slices of a shape, joined: four numbers, but a bound that doubles
        nodes += [
            helper.make_node("Shape", [name], [f"s{i}"]),
            helper.make_node("Slice", [f"s{i}", "zero", "two"], [f"a{i}"]),
            helper.make_node("Slice", [f"s{i}", "two", "four"], [f"b{i}"]),
            helper.make_node("Concat", [f"a{i}", f"b{i}"], [f"c{i}"], axis=0),
            helper.make_node("Reshape", [name, f"c{i}"], ["y" if i == 19 else f"r{i}"]),
        ]
        name = f"r{i}"
    constants = {"zero": np.array([0]), "two": np.array([2]), "four": np.array([4])}
    assert growth_problem(model(nodes, constants=constants)) == ""
    assert read(model(nodes, constants=constants)) is not None


@pytest.mark.slow
def test_weights_in_constant_nodes_are_no_growth(monkeypatch: pytest.MonkeyPatch) -> None:
    """Paddle writes them so: 80 MB of them passed for shapes that grow."""
    monkeypatch.setattr(growth, "_BOUND", 2)
    monkeypatch.setattr(growth, "_BYTES", 1 << 29)  # more than 32 MB of an answer would be growth
    weight = onnx.numpy_helper.from_array(np.zeros((9_000_000,), np.float32), "w")
    nodes = [
        helper.make_node("Constant", [], ["w"], value=weight),
        helper.make_node("Add", ["x", "w"], ["y"]),
    ]
    proto = model(nodes)
    proto.graph.input[0].type.tensor_type.shape.dim[3].dim_value = 9_000_000
    assert growth_problem(proto) == ""
    small = without_weights(proto)
    assert len(small.SerializeToString()) < 1000
    assert [i.name for i in small.graph.input] == ["x", "w"]
