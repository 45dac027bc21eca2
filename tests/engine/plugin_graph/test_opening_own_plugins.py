"""Runtimes that have plugins themselves are given networks whole."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from onnx import helper

from headrace.engine import Plan
from headrace.engine.backends import BACKENDS
from headrace.engine.tactic import Tactic
from headrace.errors import PluginError
from headrace.plugins import PluginRegistry
from tests.engine.fakes import owning
from tests.engine.plugin_graph.test_split import Base, built
from tests.plugins.models import FLOAT, model

info = helper.make_tensor_value_info
X = np.linspace(-1, 1, 48, dtype=np.float32).reshape(1, 3, 4, 4)
COPIED, DOUBLED = np.maximum(-X, 0), np.maximum(-2 * X, 0)  # by `Base`; by the runtime


@pytest.fixture
def runtime(monkeypatch: pytest.MonkeyPatch) -> Iterator[owning.Owning]:
    monkeypatch.setitem(BACKENDS, "owning", "tests.engine.fakes.owning")
    yield owning.backend
    owning.backend.forget()


def plan_of(folder: Path, kind: str = "P", runtime: str = "owning") -> Any:
    nodes = [
        helper.make_node("Neg", ["x"], ["n"]),
        helper.make_node(kind, ["n"], ["p"], a=3),
        helper.make_node("Relu", ["p"], ["y"]),
    ]
    shape = ["N", 3, 4, 4]
    made = model(nodes, [info("x", FLOAT, shape)], [info("y", FLOAT, shape)])
    return built(Base, made, folder, runtime=runtime)


def run(plan: Plan, runtime: str | None = None) -> Any:
    with plan.open_session(tactic=Tactic(runtime) if runtime else None) as session:
        return session.run({"x": X})["y"]


def said(plan: Any) -> str:
    return "\n".join(f"{n.level}: {n.sentence}" for n in plan.decisions)


def test_all_of_them_known_the_network_stays_whole(runtime: owning.Owning, tmp_path: Path) -> None:
    plan = plan_of(tmp_path)
    assert runtime.compiled == [["Neg", "P", "Relu"]]
    assert "info: owning computes P version 1 itself: the network is built whole" in said(plan)
    np.testing.assert_allclose(run(plan), DOUBLED)


def test_such_a_plan_needs_creators_for_other_runtimes_only(
    runtime: owning.Owning, tmp_path: Path
) -> None:
    made = plan_of(tmp_path)
    made.save(tmp_path / "m.engine")
    plan = Plan.load(tmp_path / "m.engine")
    plan.registry = PluginRegistry()
    np.testing.assert_allclose(run(plan), DOUBLED)
    assert len(runtime.compiled) == 1
    with pytest.raises(PluginError, match="P"):
        run(plan, "onnxruntime")
    plan.registry = made.registry
    np.testing.assert_allclose(run(plan, "onnxruntime"), COPIED)


def test_with_one_that_is_not_known_it_is_cut(runtime: owning.Owning, tmp_path: Path) -> None:
    runtime.has = {("P", "2", ""), ("P", "1", "other"), ("Q", "1", "")}
    plan = plan_of(tmp_path)
    assert runtime.compiled == [["Neg"], ["Relu"]]
    assert "info: owning has no plugins P: the graph is split" in said(plan)
    np.testing.assert_allclose(run(plan), COPIED)


def test_a_refusal_is_told_and_it_is_cut(runtime: owning.Owning, tmp_path: Path) -> None:
    runtime.refuses = True
    plan = plan_of(tmp_path)
    assert "warning: owning has P version 1, but the graph is split" in said(plan)
    assert "P takes other fields here" in said(plan)
    np.testing.assert_allclose(run(plan), COPIED)


def tensorrt_like(monkeypatch: pytest.MonkeyPatch, **more: Any) -> ModuleType:
    """`headrace.engine.backends.tensorrt` on top of a package with these names."""
    package = ModuleType("tensorrt")
    names = {"ILogger": object, "__version__": "0", **more}
    for name, value in names.items():
        setattr(package, name, value)
    monkeypatch.setitem(sys.modules, "tensorrt", package)
    found = importlib.util.find_spec("headrace.engine.backends.tensorrt")
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


@pytest.mark.parametrize("call", ["get_creator", "get_plugin_creator"])
def test_tensorrt_is_asked_for_creators_with_its_own_registered(
    monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    registered: set[tuple[str, str, str]] = set()

    def find(kind: str, version: str, namespace: str = "") -> object | None:
        return object() if (kind, version, namespace) in registered else None

    module = tensorrt_like(
        monkeypatch,
        init_libnvinfer_plugins=lambda log, ns: registered.add(("EfficientNMS_TRT", "1", ns)),
        get_plugin_registry=lambda: SimpleNamespace(**{call: find}),
    )
    keys = [("EfficientNMS_TRT", "1", ""), ("EfficientNMS_TRT", "2", ""), ("Mine", "1", "own")]
    assert module.backend.lacks(keys) == keys[1:]


def test_tensorrt_rtx_has_no_plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    module = tensorrt_like(monkeypatch)
    assert module.backend.lacks([("EfficientNMS_TRT", "1", "")]) == [("EfficientNMS_TRT", "1", "")]
