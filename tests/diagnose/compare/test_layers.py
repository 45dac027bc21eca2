"""Graphs tensor by tensor."""

from __future__ import annotations

import math

import numpy as np
import onnx
import pytest

from headrace.diagnose.compare import SideSpec, Tolerance, compare, layers
from headrace.diagnose.compare.layers import compare_layers, decibels
from headrace.diagnose.compare.sides import open_sides
from headrace.errors import EngineError
from headrace.infer.model import load_or_build
from headrace.infer.run_options import RunOptions


def test_decibels():
    a = np.array([3.0, 4.0], np.float32)
    assert decibels(a, a.copy()) == math.inf
    assert decibels(a, a * 1.1) == pytest.approx(20, abs=1e-4)
    assert decibels(np.zeros(2), a) == -math.inf
    assert decibels(np.array([np.nan, 1]), np.array([np.nan, 1])) == math.inf
    assert decibels(np.array([1.0, np.inf]), np.array([1.0, np.inf])) == math.inf
    assert decibels(np.array([1.0, np.nan]), np.array([1.0, 2.0])) == -math.inf


@pytest.fixture
def renamed(scene, tmp_path):
    """The detector with other names for all tensors but its input and outputs."""
    model = onnx.load(scene / "detector.onnx")
    kept = {v.name for v in (*model.graph.input, *model.graph.output)}
    kept |= {t.name for t in model.graph.initializer}
    for node in model.graph.node:
        node.input[:] = [n if n in kept or not n else f"x_{n}" for n in node.input]
        node.output[:] = [n if n in kept else f"x_{n}" for n in node.output]
    del model.graph.value_info[:]
    onnx.save(model, tmp_path / "renamed.onnx")
    return tmp_path / "renamed.onnx"


@pytest.mark.slow
def test_other_names_are_paired_by_place(scene, renamed, monkeypatch):
    from tests.diagnose.compare.test_run import changed

    config = scene / "config_infer_primary.txt"
    monkeypatch.setattr(layers, "_MAX_BYTES", 2**20)  # several runs
    a, b = open_sides(SideSpec(config), changed(scene, onnx_file=renamed), RunOptions())
    feeds = {"image": np.random.default_rng(0).random((1, 3, 192, 320)).astype(np.float32)}
    try:
        found = compare_layers(a, b, feeds)
    finally:
        a.close()
        b.close()
    assert not found.by_name
    assert len(found.tensors) == 78
    assert all(t.decibels > 100 for t in found.tensors)
    assert all(t.other in (t.name, f"x_{t.name}") for t in found.tensors)
    assert found.first is None


@pytest.mark.slow
def test_another_runtime_is_compared_by_layers_of_its_own(scene, frames):
    pytest.importorskip("openvino")
    config = scene / "config_infer_primary.txt"
    other = SideSpec(config, precision="fp16", backend="openvino")
    found = compare(config, other, frames[:1], tolerance=Tolerance(0.9, 0.1))
    assert found.same
    assert "openvino" in found.b
    changes = {k.key: (k.a, k.b) for k in next(s for s in found.stages if "engine" in s.name).keys}
    assert changes["runtime"] == ("onnxruntime", "openvino")


def test_an_engine_without_a_graph_has_no_layers(scene):
    config = SideSpec(scene / "config_infer_primary.txt")
    a, b = open_sides(config, config, RunOptions())
    b.plan.blobs["model"] = b""
    found = compare_layers(a, b, {})
    assert "TensorRT" in found.missing
    assert not found.tensors
    a.close()
    b.close()
    assert load_or_build(a.model.config).blobs["model"]


def test_a_runtime_that_fails_leaves_the_layers_out(scene, monkeypatch):
    def fails(*_):
        raise EngineError("no memory", where="gpu")

    config = SideSpec(scene / "config_infer_primary.txt")
    a, b = open_sides(config, config, RunOptions())
    monkeypatch.setattr(layers._Graph, "run", fails)
    feeds = {"image": np.zeros((1, 3, 192, 320), np.float32)}
    assert compare_layers(a, b, feeds).missing == "gpu: no memory"
    a.close()
    b.close()
