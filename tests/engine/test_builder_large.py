"""Models over 2 GiB and over 64 MiB, with other ideas of how much that is; memory of a build."""

import os
import subprocess
import sys
from itertools import pairwise

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from headrace.config import ModelConfig
from headrace.engine import Plan
from headrace.engine.backends import installed_backends
from headrace.engine.layers import layers_of
from headrace.engine.plan import WEIGHTS_BLOB
from headrace.engine.tactic import Tactic
from headrace.engine.tuning.tune import TuneOptions
from headrace.errors import EngineError, ModelError
from headrace.infer.model import load_or_build

BACKENDS = [b for b in ("onnxruntime", "openvino") if b in installed_backends()]


def dense(path, side, layers, **how):
    """Flatten, then matrices one after the other."""
    rng = np.random.default_rng(0)
    sizes = [48] + [side] * layers
    weights = [
        numpy_helper.from_array(rng.standard_normal(s).astype(np.float32) / s[0] ** 0.5, f"w{i}")
        for i, s in enumerate(pairwise(sizes))
    ]
    nodes = [helper.make_node("Flatten", ["x"], ["v0"])]
    nodes += [helper.make_node("MatMul", [f"v{i}", f"w{i}"], [f"v{i + 1}"]) for i in range(layers)]
    x = helper.make_tensor_value_info("x", 1, ["n", 3, 4, 4])
    y = helper.make_tensor_value_info(f"v{layers}", 1, ["n", side])
    graph = helper.make_graph(nodes, "dense", [x], [y], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, path, **how)
    return path


@pytest.fixture(params=["inside", "outside"])
def model(request, tmp_path):
    how = {}
    if request.param == "outside":
        how = {"save_as_external_data": True, "location": "m.bin", "size_threshold": 1024}
    return dense(tmp_path / "m.onnx", 256, 3, **how)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_large_model_is_built_kept_loaded_and_right(model, backend, monkeypatch):
    x = np.random.default_rng(1).random((2, 3, 4, 4), np.float32)
    cfg = ModelConfig(onnx_file=model, batch_size=2, input_tensor_from_meta=True)
    with load_or_build(cfg, backend=backend).open_session() as session:
        (expected,) = session.run({"x": x}).values()
    monkeypatch.setattr("headrace.network.network.MAX_MODEL_BYTES", 1000)
    plan = load_or_build(cfg, backend=backend, rebuild=True)
    assert WEIGHTS_BLOB in plan.blobs
    assert len(plan.blobs["model"]) < 60_000
    loaded = load_or_build(cfg, backend=backend)
    assert any(n.code == "engine-loaded" for n in loaded.decisions)
    for made in (plan, loaded, Plan.from_bytes(b"".join(map(bytes, loaded.to_chunks())))):
        with made.open_session() as session:
            np.testing.assert_allclose(next(iter(session.run({"x": x}).values())), expected, 1e-4)


def test_weights_of_a_model_of_some_size_are_mapped(model, monkeypatch):
    x = np.random.default_rng(1).random((2, 3, 4, 4), np.float32)
    cfg = ModelConfig(onnx_file=model, batch_size=2, input_tensor_from_meta=True)
    plain = load_or_build(cfg, backend="onnxruntime")
    with plain.open_session() as session:
        (expected,) = session.run({"x": x}).values()
    monkeypatch.setattr("headrace.engine.whole_model.MAPPED_BYTES", 100_000)
    built = load_or_build(cfg, backend="onnxruntime", rebuild=True)
    loaded = load_or_build(cfg, backend="onnxruntime")
    assert any(n.code == "engine-loaded" for n in loaded.decisions)
    for plan in (built, loaded):
        assert len(plan.blobs["model"]) < 60_000
        assert not plan.is_large
        assert onnx.ModelProto.FromString(plan.whole_model()) == onnx.ModelProto.FromString(
            plain.blobs["model"]
        )
        assert layers_of(plan) == layers_of(plain)
        with plan.open_session() as session:
            np.testing.assert_array_equal(next(iter(session.run({"x": x}).values())), expected)
    assert np.frombuffer(loaded.blobs[WEIGHTS_BLOB], np.uint8).ctypes.data % 64 == 0
    for runtime in BACKENDS:  # also one that takes whole models only
        with loaded.open_session(tactic=Tactic(runtime)) as session:
            np.testing.assert_allclose(next(iter(session.run({"x": x}).values())), expected, 1e-4)


def test_a_tensor_that_no_message_holds_is_taken_from_memory(model, monkeypatch):
    x = np.random.default_rng(1).random((2, 3, 4, 4), np.float32)
    cfg = ModelConfig(onnx_file=model, batch_size=2, input_tensor_from_meta=True)
    with load_or_build(cfg, save=False).open_session() as session:
        (expected,) = session.run({"x": x}).values()
    monkeypatch.setattr("headrace.network.network.MAX_MODEL_BYTES", 1000)
    monkeypatch.setattr("headrace.engine.backends.onnxruntime._MAX_EMBEDDED_BYTES", 100_000)
    with load_or_build(cfg, save=False).open_session() as session:
        np.testing.assert_allclose(next(iter(session.run({"x": x}).values())), expected, 1e-5)


def test_what_is_not_done_for_large_models_is_told(model, monkeypatch):
    monkeypatch.setattr("headrace.network.network.MAX_MODEL_BYTES", 1000)
    cfg = ModelConfig(onnx_file=model, input_tensor_from_meta=True)
    plan = load_or_build(cfg, tuning=TuneOptions(budget_s=5), precision="fp16")
    warnings = "\n".join(n.sentence for n in plan.decisions if n.level == "warning")
    assert "not tuned" in warnings
    assert "precision is left as it is" in warnings


def test_damaged_weights_are_refused(model, monkeypatch):
    monkeypatch.setattr("headrace.network.network.MAX_MODEL_BYTES", 1000)
    path = load_or_build(ModelConfig(onnx_file=model, input_tensor_from_meta=True)).path
    data = bytearray(path.read_bytes())
    data[-100] ^= 1
    path.write_bytes(data)
    with pytest.raises(EngineError, match="blob 'weights' does not match"):
        Plan.load(path)


def test_external_data_that_shrinks_is_refused(tmp_path, monkeypatch):
    from headrace.engine import BuildOptions, build
    from headrace.network import network_from_onnx

    path = dense(tmp_path / "m.onnx", 256, 2, save_as_external_data=True, location="m.bin")
    monkeypatch.setattr("headrace.network.network.MAX_MODEL_BYTES", 1000)
    network = network_from_onnx(path)
    os.truncate(tmp_path / "m.bin", 1000)
    with pytest.raises(ModelError, match=r"m\.bin"):
        build(network, BuildOptions())


PEAK = """
import sys
from pathlib import Path
import onnx, onnx_ir, onnxruntime
from headrace.config import ModelConfig
from headrace.infer.model import load_or_build
path = Path(sys.argv[1])
small = Path(sys.argv[2])
load_or_build(ModelConfig(onnx_file=small, input_tensor_from_meta=True))  # everything is imported
def peak():
    return int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0])
before = peak()
if sys.argv[3] == "headrace":
    load_or_build(ModelConfig(onnx_file=path, input_tensor_from_meta=True), rebuild=True)
else:
    onnxruntime.InferenceSession(str(path))
print((peak() - before) * 1024)
"""


@pytest.mark.slow
def test_a_build_takes_at_most_four_times_the_model(tmp_path):
    path = dense(tmp_path / "m.onnx", 2048, 5)
    small = dense(tmp_path / "small.onnx", 16, 1)
    peak, own = (
        int(subprocess.run([sys.executable, "-c", PEAK, str(path), str(small), who],
                           capture_output=True, text=True, timeout=120, check=True).stdout)
        for who in ("headrace", "raw")
    )  # fmt: skip
    size = path.stat().st_size
    assert size > 60e6
    assert own > size  # or it measures nothing
    assert peak <= 4 * size + own
    assert peak <= 5.5 * size
