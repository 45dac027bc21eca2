"""Inputs of plugins that are left out, and what is told of plugins and graphs that fail."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

from headrace.engine.builder import BuildOptions, build
from headrace.errors import EngineError, PluginError
from headrace.plugins import DataType, PluginRegistry, array_at
from tests.engine.plugin_graph.test_split import Base, Creator, X, built, info, one_node, run
from tests.plugins.models import FLOAT, model, network


@pytest.mark.parametrize("inputs", [["x", "", "w"], ["", "x", "w"], ["x", "w", ""]])
@pytest.mark.parametrize("runtime", ["onnxruntime", "openvino"])
def test_inputs_may_be_left_out(tmp_path: Path, inputs: list[str], runtime: str) -> None:
    class Adds(Base):
        def get_output_data_types(self, input_types: Any) -> Any:
            return [DataType.FLOAT]

        def get_output_shapes(self, shapes: Any, shape_inputs: Any, make: Any) -> Any:
            return [shapes[inputs.index("x")]]

        def enqueue(self, ins: Any, outs: Any, given: Any, outputs: Any, ws: int, s: int) -> None:
            a, b = (
                array_at(p, d.dims, np.float32)
                for p, d, n in zip(given, ins, inputs, strict=True)
                if n
            )
            array_at(outputs[0], outs[0].dims, np.float32, writable=True)[...] = a + b

    nodes = [helper.make_node("P", inputs, ["y"])]
    shape = ["N", 3, 4, 4]
    weights = {"w": np.full((1, 3, 4, 4), 2, np.float32)}
    made = model(nodes, [info("x", FLOAT, shape)], [info("y", FLOAT, shape)], weights)
    plan = built(Adds, made, tmp_path, runtime=runtime)
    np.testing.assert_allclose(run(plan, X[:1]), X[:1] + 2, rtol=1e-6)


@pytest.mark.parametrize("answer", [1, -3, "bad"])
def test_an_enqueue_that_computes_nothing_fails_whatever_it_returns(
    tmp_path: Path, answer: Any
) -> None:
    class Fails(Base):
        def enqueue(self, ins: Any, outs: Any, inputs: Any, outputs: Any, ws: int, s: int) -> Any:
            return answer

    with pytest.raises(PluginError, match="enqueue returned without an error and wrote nothing"):
        run(built(Fails, one_node(), tmp_path), X[:1])


@pytest.mark.parametrize("domain", ["", "mine"])
@pytest.mark.parametrize(
    "kind", [TensorProto.DOUBLE, TensorProto.INT16, TensorProto.UINT32, TensorProto.BFLOAT16]
)
def test_a_registered_plugin_is_not_unknown_where_the_fault_is_another(
    tmp_path: Path, kind: int, domain: str
) -> None:
    class Any32(Base):
        types = (DataType.FLOAT, DataType.INT32, DataType.INT64)

    class Placed(Creator):
        def __init__(self) -> None:
            super().__init__(Any32)
            self.plugin_namespace = domain

    nodes = [
        helper.make_node("P", ["x"], ["p"], domain=domain),
        helper.make_node("Add", ["p", "x"], ["y"]),
    ]
    shape = ["N", 3, 4, 4]
    made = model(nodes, [info("x", kind, shape)], [info("y", kind, shape)])
    if domain:
        made.opset_import.append(helper.make_opsetid(domain, 1))
    registry = PluginRegistry()
    registry.register_creator(Placed(), domain)
    with pytest.raises(EngineError) as caught:
        build(network(made, tmp_path), BuildOptions(registry=registry))
    told = str(caught.value)
    assert "does not know" not in told
    assert "Optype (Add) bound to different types" in told
