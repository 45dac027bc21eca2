"""Plugins of each class, in C++ and Python, that take one element type and one format alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import helper

from headrace.custom import CustomLibrary
from headrace.engine import BuildOptions, Plan, build
from headrace.engine.precision import CalibrationTable
from headrace.engine.precision.rules import PrecisionRules
from headrace.errors import PluginError
from headrace.plugins import DataType, PluginRegistry, TensorFormat, get_plugin_registry
from headrace.plugins.forms import ORDERS
from tests.plugins.forms import FORMS, computed, send
from tests.plugins.models import model, network
from tests.plugins.samples import creator_for
from tests.trt.host.conftest import Compile

CLASSES = ("IoForm", "DynamicForm", "ThirdForm", *FORMS)
ELEMENTS = {"INT32": "int32", "INT64": "int64", "UINT8": "uint8", "BOOL": "bool"}
FORMATS = ("LINEAR", *(format.name for format in ORDERS))


@pytest.fixture
def library(compile_host: Compile, opened: Callable[[Path], CustomLibrary]) -> CustomLibrary:
    return opened(compile_host("forms.cpp"))


def tensor(name: str, kind: str, shape: tuple[int, ...]) -> Any:
    elem = helper.np_dtype_to_tensor_dtype(np.dtype(ELEMENTS.get(kind, "float32")))
    return helper.make_tensor_value_info(name, elem, ["N", *shape[1:]])


def built(op: str, kind: str, format: str, shape: tuple[int, ...], folder: Path) -> Plan:
    numbers = {"type": int(DataType[kind]), "format": int(TensorFormat[format])}
    if op in FORMS:
        numbers = {"factor": 16 * numbers["type"] + numbers["format"]}
    node = helper.make_node(op, ["x"], ["y"], name="form", **numbers)
    made = model([node], [tensor("x", kind, shape)], [tensor("y", kind, shape)])
    options = BuildOptions(max_batch=4, registry=registry_of(op))
    if kind != "INT8":
        return build(network(made, folder), options)
    rules = PrecisionRules(table=CalibrationTable.of({"x": 0.5, "y": 0.25}))
    return build(network(made, folder), replace(options, precision="int8", rules=rules))


def registry_of(op: str) -> PluginRegistry:
    if op not in FORMS:
        return get_plugin_registry()
    registry = PluginRegistry()
    registry.register_creator(creator_for(FORMS[op]))
    return registry


def _forms() -> list[Any]:
    """Each class with each type and format; at every push each type and each format once."""
    kinds = ["FLOAT", "HALF", "BF16", "INT8", *ELEMENTS]
    return [
        pytest.param(op, kind, format, marks=[pytest.mark.slow] * bool((k + f) % 7 or (f + c) % 3))
        for c, op in enumerate(CLASSES)
        for k, kind in enumerate(kinds)
        for f, format in enumerate(FORMATS)
    ]


@pytest.mark.parametrize(("op", "kind", "format"), _forms())
def test_a_plugin_of_one_form_computes_as_numpy_does(
    library: CustomLibrary, op: str, kind: str, format: str, tmp_path: Path
) -> None:
    deep = op.endswith("IoForm") and format in ("DHWC8", "CDHW32", "DHWC")
    shape = (2, 5, 3, 4, 2) if deep else (2, 5, 3, 4)
    rng = np.random.default_rng(5)
    x = rng.integers(0, 2 if kind == "BOOL" else 15, shape).astype(ELEMENTS.get(kind, "float32"))
    send(x)
    plan = built(op, kind, format, shape, tmp_path)
    (record,) = plan.header.plugins
    assert record.input_types == (kind,)
    assert record.formats == (() if format == "LINEAR" else (format, format))
    again = Plan.from_bytes(b"".join(plan.to_chunks()))
    for one in (plan, again):
        one.registry = registry_of(op)
        with one.open_session() as session:
            for count in (2, 1):
                y = session.run({"x": x[:count]})["y"]
                np.testing.assert_array_equal(y, computed(DataType[kind], x[:count]))


def test_forms_are_decisions_of_the_plan(library: CustomLibrary, tmp_path: Path) -> None:
    plan = built("ThirdForm", "HALF", "CHW32", (2, 5, 3, 4), tmp_path)
    (finding,) = [d for d in plan.decisions if d.code == "plugin-forms"]
    assert "input 0 HALF kCHW32, output 0 HALF kCHW32" in finding.sentence


def test_forms_of_a_dla_are_named(library: CustomLibrary, tmp_path: Path) -> None:
    with pytest.raises(PluginError, match="kDLA_HWC4 is a format of DLAs"):
        built("DynamicForm", "HALF", "DLA_HWC4", (2, 5, 3, 4), tmp_path)


def test_int8_without_scales_says_so(library: CustomLibrary, tmp_path: Path) -> None:
    node = helper.make_node("DynamicForm", ["x"], ["y"], name="form", type=2, format=0)
    shape = (2, 5, 3, 4)
    made = model([node], [tensor("x", "FLOAT", shape)], [tensor("y", "FLOAT", shape)])
    with pytest.raises(PluginError, match="INT8, which was not tried: the tensor has no scale"):
        build(network(made, tmp_path), BuildOptions(max_batch=4))


def test_scales_come_from_the_pairs_around_a_plugin(library: CustomLibrary, tmp_path: Path) -> None:
    pairs = {"s": np.float32(0.5), "z": np.int8(0), "t": np.float32(0.25)}
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["a"]),
        helper.make_node("DynamicForm", ["a"], ["b"], name="form", type=2, format=5),
        helper.make_node("QuantizeLinear", ["b", "t", "z"], ["r"]),
        helper.make_node("DequantizeLinear", ["r", "t", "z"], ["y"]),
    ]
    shape = (2, 5, 3, 4)
    made = model(nodes, [tensor("x", "FLOAT", shape)], [tensor("y", "FLOAT", shape)], pairs)
    plan = build(network(made, tmp_path), BuildOptions(max_batch=2))
    assert plan.header.plugins[0].scales == (0.5, 0.25)
    x = np.random.default_rng(1).integers(0, 15, shape).astype(np.float32)
    with plan.open_session() as session:
        np.testing.assert_array_equal(session.run({"x": x})["y"], 2 * x + 1)
