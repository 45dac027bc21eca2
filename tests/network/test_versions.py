"""Models marked as newer than they are."""

from __future__ import annotations

import onnx
import onnx_ir as ir
import pytest
from onnx import TensorProto, helper

from headrace.engine.builder import BuildOptions, build
from headrace.network.network import Network
from headrace.network.versions import SURE_IR, SURE_OPSET, stamp_older

NEWEST_OPSET = onnx.defs.onnx_opset_version()
NEWEST_IR = int(onnx.IR_VERSION)


def model(
    op: str = "Relu", opset: int = NEWEST_OPSET, ir_version: int = NEWEST_IR, kind: int = 1, **extra
) -> onnx.ModelProto:
    node = helper.make_node(op, ["x"], ["y"], **extra)
    ends = [helper.make_tensor_value_info(n, kind, ["n", 3, 2, 2]) for n in "xy"]
    graph = helper.make_graph([node], "g", ends[:1], ends[1:])
    return helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=ir_version
    )


def test_an_old_operator_makes_the_model_old() -> None:
    proto = model()
    told = stamp_older(proto)
    assert told is not None
    assert told[0] == f"IR {NEWEST_IR}, opset {NEWEST_OPSET}"
    assert proto.ir_version == SURE_IR
    assert proto.opset_import[0].version == SURE_OPSET
    onnx.checker.check_model(proto)


@pytest.mark.parametrize(("opset", "ir_version"), [(11, 6), (SURE_OPSET, SURE_IR)])
def test_what_everybody_knows_stays(opset: int, ir_version: int) -> None:
    proto = model(opset=opset, ir_version=ir_version)
    before = proto.SerializeToString()
    assert stamp_older(proto) is None
    assert proto.SerializeToString() == before


def test_a_plugin_does_not_keep_the_model_new() -> None:
    """Tools that add plugin nodes stamp the newest version of all; no runtime knows it."""
    proto = model("Relu")
    proto.graph.node.append(helper.make_node("EfficientNMS_TRT", ["y"], ["z"]))
    assert stamp_older(proto) is not None
    assert (proto.ir_version, proto.opset_import[0].version) == (SURE_IR, SURE_OPSET)
    newer = model("Relu", opset=NEWEST_OPSET + 1)
    newer.graph.node[0].op_type = "FromTheFuture"
    assert stamp_older(newer) is None


@pytest.mark.parametrize("op", ["Swish", "RotaryEmbedding", "TensorScatter", "Attention"])
def test_an_operator_keeps_the_version_it_came_with(op: str) -> None:
    schema = onnx.defs.get_schema(op)
    proto = model(op)
    stamp_older(proto)
    assert proto.opset_import[0].version >= schema.since_version
    assert onnx.defs.get_schema(op, proto.opset_import[0].version).since_version == (
        schema.since_version
    )


def test_an_operator_in_a_branch_counts() -> None:
    proto = model("Swish")
    inner = helper.make_graph(
        list(proto.graph.node), "branch", [], [helper.make_tensor_value_info("y", 1, None)]
    )
    node = helper.make_node("If", ["c"], ["z"], then_branch=inner, else_branch=inner)
    graph = helper.make_graph(
        [node],
        "g",
        [
            helper.make_tensor_value_info("c", TensorProto.BOOL, []),
            helper.make_tensor_value_info("x", 1, [1]),
        ],
        [helper.make_tensor_value_info("z", 1, None)],
    )
    outer = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", NEWEST_OPSET)], ir_version=NEWEST_IR
    )
    stamp_older(outer)
    needed = {onnx.defs.get_schema(op).since_version for op in ("Swish", "If")}
    assert outer.opset_import[0].version == max(SURE_OPSET, *needed)


def test_a_new_type_keeps_the_ir_version() -> None:
    proto = model("Cast", to=TensorProto.FLOAT4E2M1)
    stamp_older(proto)
    assert proto.ir_version == NEWEST_IR


def test_functions_are_left_alone() -> None:
    proto = model()
    proto.functions.add(name="f", domain="d")
    assert stamp_older(proto) is None


@pytest.mark.parametrize("runtime", ["onnxruntime", "openvino"])
def test_a_model_of_tomorrow_runs_and_is_told(runtime: str) -> None:
    plan = build(Network(ir.from_proto(model())), BuildOptions(runtime=runtime))
    told = [d.sentence for d in plan.decisions if "newer" in d.sentence]
    assert told == [
        f"the model is marked IR {NEWEST_IR}, opset {NEWEST_OPSET}; nothing in it is newer than "
        f"IR {SURE_IR}, opset {SURE_OPSET}, and so it is run"
    ]
