"""Plugins whose class knows fixed axes only, behind shapes that the model computes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import helper

from headrace.engine.builder import BuildOptions, build
from headrace.errors import PluginError
from tests.plugins.models import FLOAT, model, network, registry

X = np.random.default_rng(0).standard_normal((4, 3, 8, 6)).astype(np.float32)
CONSTANTS = {"zero": np.array(0), "rest": np.array([-1]), "last": np.array([3])}


def old_view(batch: Any, op: str, first: str = "x") -> Any:
    """x.view(x.size(0), -1, 3) as exporters wrote it, which inference does not see through."""
    node = helper.make_node
    nodes = [
        node("Shape", [first], ["s"]),
        node("Gather", ["s", "zero"], ["size"]),
        node("Unsqueeze", ["size"], ["size1"], axes=[0]),
        node("Concat", ["size1", "rest", "last"], ["wish"], axis=0),
        node("Reshape", [first, "wish"], ["rows"]),
        node(op, ["rows"], ["y"], name="it", scale=2.0),
    ]
    shape = [batch, 3, 8, 6]
    if first != "x":
        nodes.insert(0, node("Compress", ["x", "odd"], [first], axis=2))
    return model(
        nodes,
        [helper.make_tensor_value_info("x", FLOAT, shape)],
        [helper.make_tensor_value_info("y", FLOAT, None)],
        CONSTANTS,
        opset=11,
    )


@pytest.mark.parametrize("batch", [1, "N"])
@pytest.mark.parametrize("most", [1, 4])
def test_axes_that_every_run_has_are_fixed(batch: Any, most: int, tmp_path: Path) -> None:
    made = network(old_view(batch, "ScaleV2Ext"), tmp_path)
    plan = build(made, BuildOptions(max_batch=most, registry=registry("V2Ext")))
    assert plan.header.outputs[0].shape[1:] == (48, 3)
    if batch == 1 and most > 1:  # what plugins rule out is not advised
        assert "an export with a free batch" in str(plan.decisions)
        assert "--dynamic-batch" not in str(plan.decisions)
    with plan.open_session() as session:
        for items in range(1, most + 1):
            got = session.run({"x": X[:items]})["y"]
            np.testing.assert_array_equal(got, X[:items].reshape(items, 48, 3) * 2)


def test_axes_that_a_run_decides_are_refused(tmp_path: Path) -> None:
    made = old_view(1, "ScaleV2Ext", "part")
    made.graph.node.insert(0, helper.make_node("Greater", ["row", "none"], ["odd"]))
    made.graph.node.insert(
        0, helper.make_node("ReduceMax", ["x"], ["row"], axes=[0, 1, 3], keepdims=0)
    )
    made.graph.initializer.append(helper.make_tensor("none", FLOAT, [], [0.0]))
    with pytest.raises(PluginError, match="every axis but the batch"):
        build(network(made, tmp_path), BuildOptions(registry=registry("V2Ext")))
