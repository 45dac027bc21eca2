"""Every installed runtime against the same models: what one gives, the others give."""

import importlib.util
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from headrace.engine import BuildOptions, Plan, build
from headrace.engine.backends import BACKENDS, RunnerOptions, get_backend, installed_backends
from headrace.errors import EngineError
from headrace.infer.model import load_or_build
from headrace.network import network_from_onnx
from tests.network.onnx_models import image_model, model_of, save

INSTALLED = installed_backends()
value = helper.make_tensor_value_info
node = helper.make_node

each_backend = pytest.mark.parametrize("backend", INSTALLED)


def opened(model, backend, **options):
    return get_backend(backend).open(model.SerializeToString(), RunnerOptions(threads=1, **options))


def convolutions(*, batch="batch", seed=0):
    """Two convolutions with batch norm between, as detectors have: what runtimes fuse."""
    rng = np.random.default_rng(seed)

    def weight(name, *shape):
        return numpy_helper.from_array(rng.normal(0, 0.2, shape).astype(np.float32), name)

    weights = [weight("w1", 16, 3, 3, 3), weight("w2", 8, 16, 1, 1), weight("b2", 8)]
    weights += [weight(name, 16) for name in ("scale", "bias", "mean")]
    weights.append(numpy_helper.from_array(rng.uniform(0.5, 2, 16).astype(np.float32), "var"))
    nodes = [
        node("Conv", ["x", "w1"], ["c"], pads=[1, 1, 1, 1], strides=[2, 2]),
        node("BatchNormalization", ["c", "scale", "bias", "mean", "var"], ["n"]),
        node("Sigmoid", ["n"], ["s"]),
        node("Mul", ["n", "s"], ["swish"]),
        node("Conv", ["swish", "w2", "b2"], ["y"]),
        node("GlobalAveragePool", ["y"], ["pooled"]),
        node("Flatten", ["pooled"], ["flat"]),
        node("Softmax", ["flat"], ["p"], axis=1),
    ]
    outputs = [value("y", 1, [batch, 8, 8, 12]), value("p", 1, [batch, 8])]
    return model_of(nodes, [value("x", 1, [batch, 3, 16, 24])], outputs, weights)


def images(count, *, seed=0):
    return np.random.default_rng(seed).uniform(-1, 1, (count, 3, 16, 24)).astype(np.float32)


def test_the_default_comes_first():
    assert INSTALLED[0] == "onnxruntime"
    assert set(INSTALLED) <= set(BACKENDS)


@each_backend
def test_an_open_model_keeps_no_copy_of_its_file(backend):
    data = convolutions().SerializeToString()
    users = sys.getrefcount(data)
    runner = get_backend(backend).open(data, RunnerOptions(threads=1))
    assert sys.getrefcount(data) == users
    runner.close()


@pytest.mark.parametrize("batch", ["batch", 4])
@each_backend
def test_all_give_what_unoptimised_onnxruntime_gives(backend, batch):
    model = convolutions(batch=batch)
    reference = opened(model, "onnxruntime", optimization="none")
    runner = opened(model, backend, max_batch=4)
    for count in (4, 1, 3) if batch == "batch" else (4,):
        feeds = {"x": images(count, seed=count)}
        for ours, theirs in zip(runner.run(feeds), reference.run(feeds), strict=True):
            assert ours.dtype == theirs.dtype
            assert ours.shape == theirs.shape
            np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)
    runner.close()


@pytest.mark.parametrize("level", ["none", "basic", "extended", "all"])
@each_backend
def test_rewriting_the_graph_changes_no_result(backend, level):
    feeds = {"x": images(2)}
    expected = opened(convolutions(), "onnxruntime", optimization="none").run(feeds)
    got = opened(convolutions(), backend, optimization=level).run(feeds)
    np.testing.assert_allclose(got[0], expected[0], rtol=1e-4, atol=1e-5)


@each_backend
def test_names_types_and_order_of_bindings(backend):
    kinds = {"y": "INT64", "d": "DOUBLE", "h": "FLOAT16", "b": "BOOL", "i": "INT8", "f": "FLOAT"}
    types = {name: getattr(TensorProto, kind) for name, kind in kinds.items()}
    nodes = [node("Cast", ["x"], [name], to=t) for name, t in types.items()]
    model = model_of(
        nodes,
        [value("x", TensorProto.FLOAT, ["n", 3])],
        [value(name, t, ["n", 3]) for name, t in types.items()],
    )
    runner = opened(model, backend, max_batch=2)
    assert [s.name for s in runner.inputs] == ["x"]
    assert [s.name for s in runner.outputs] == list(kinds)
    assert [s.dtype.name for s in runner.outputs] == [
        "int64", "float64", "float16", "bool", "int8", "float32",
    ]  # fmt: skip
    x = np.array([[1, 2, 3], [4, 5, 0]], np.float32)
    outputs = runner.run({"x": x})
    for spec, array in zip(runner.outputs, outputs, strict=True):
        assert array.dtype == spec.dtype
        assert np.array_equal(array, x.astype(spec.dtype)), spec


@each_backend
def test_an_input_that_nothing_uses(tmp_path, backend):
    model = model_of(
        [node("Relu", ["x"], ["y"])],
        [value("x", 1, ["n", 3, 4, 6]), value("unused", 1, ["n", 2])],
        [value("y", 1, ["n", 3, 4, 6])],
    )
    network = network_from_onnx(save(model, tmp_path / "m.onnx"))
    plan = build(network, BuildOptions(max_batch=2, runtime=backend))
    assert [s.name for s in plan.inputs] == ["x", "unused"]
    with plan.open_session() as session:
        x = np.ones((2, 3, 4, 6), np.float32)
        assert (session.run({"x": x, "unused": np.zeros((2, 2), np.float32)})["y"] == 1).all()


@each_backend
def test_an_output_that_is_an_input_and_one_that_is_another_output(backend):
    model = model_of(
        [node("Identity", ["x"], ["same"]), node("Identity", ["same"], ["again"])],
        [value("x", 1, ["n", 3])],
        [value("again", 1, ["n", 3]), value("same", 1, ["n", 3])],
    )
    x = np.ones((2, 3), np.float32)
    runner = opened(model, backend)
    outputs = runner.run({"x": x})
    x[:] = 7  # outputs are arrays of their own
    assert [s.name for s in runner.outputs] == ["again", "same"]
    assert all((array == 1).all() for array in outputs)


@each_backend
def test_outputs_of_earlier_runs_stay(backend):
    runner = opened(convolutions(), backend)
    first = runner.run({"x": images(1, seed=1)})
    copies = [array.copy() for array in first]
    runner.run({"x": images(1, seed=2)})
    for array, copy in zip(first, copies, strict=True):
        assert np.array_equal(array, copy)


@pytest.mark.parametrize("streams", [1, 2])
@each_backend
def test_several_threads_run_at_once(backend, streams):
    runner = opened(convolutions(), backend, streams=streams, max_batch=2)
    feeds = [{"x": images(1 + i % 2, seed=i)} for i in range(24)]
    expected = [runner.run(feed) for feed in feeds]
    together = threading.Barrier(6)

    def run(start):
        together.wait(20)
        return [runner.run(feeds[i]) for i in range(start, 24, 6)]

    with ThreadPoolExecutor(6) as pool:
        for start, results in enumerate(pool.map(run, range(6))):
            for i, result in zip(range(start, 24, 6), results, strict=True):
                for ours, theirs in zip(result, expected[i], strict=True):
                    np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


@each_backend
def test_a_closed_runner_says_so(backend):
    runner = opened(convolutions(), backend)
    runner.close()
    with pytest.raises(EngineError, match="the session is closed"):
        runner.run({"x": images(1)})


@each_backend
def test_a_node_that_fails_is_named(backend):
    shape = numpy_helper.from_array(np.array([5, 3], np.int64), "shape")
    model = model_of(
        [node("Reshape", ["x", "shape"], ["y"], "fold")],
        [value("x", 1, ["n", 3])],
        [value("y", 1, [5, 3])],
        [shape],
    )
    runner = opened(model, backend)
    assert len(runner.run({"x": np.ones((5, 3), np.float32)})[0]) == 5
    for _ in range(2):
        with pytest.raises(EngineError, match=f"{backend} failed") as caught:
            runner.run({"x": np.ones((2, 3), np.float32)})
    assert "shape" in str(caught.value)
    assert "/src/" not in str(caught.value)


@each_backend
def test_operators_it_does_not_know_are_named(tmp_path, backend):
    model = model_of(
        [node("EfficientNMS_TRT", ["x"], ["y"], "nms")],
        [value("x", 1, ["n", 3, 4, 6])],
        [value("y", 1, ["n", 3])],
    )
    network = network_from_onnx(save(model, tmp_path / "m.onnx"))
    with pytest.raises(EngineError, match="EfficientNMS_TRT") as caught:
        build(network, BuildOptions(runtime=backend))
    assert "Exception from" not in str(caught.value)


@each_backend
def test_garbage_is_refused_in_one_line(backend):
    with pytest.raises(EngineError, match=f"{backend} refuses the model") as caught:
        get_backend(backend).open(b"garbage", RunnerOptions())
    assert "Exception from" not in caught.value.finding.sentence


@each_backend
def test_a_plan_goes_through_a_file(config, backend):
    cfg = config(batch_size=4)
    built = load_or_build(cfg, backend=backend)
    assert built.header.runtime.name == backend
    loaded = Plan.load(built.path)
    assert loaded.header == built.header
    x = np.random.default_rng(0).random((3, 3, 4, 6), np.float32)
    for plan in (built, loaded):
        with plan.open_session(threads=1, streams=2) as session:
            got = session.run({"x": x})
            assert list(got) == ["doubled", "mean"]
            np.testing.assert_allclose(got["doubled"], x * 2, rtol=1e-6)
            np.testing.assert_allclose(got["mean"][:, 0], x.mean((1, 2, 3)), rtol=1e-5)


@each_backend
def test_a_saved_engine_is_used_whatever_it_was_built_for(config, backend):
    load_or_build(config(), backend=backend)
    plan = load_or_build(config())
    assert plan.header.runtime.name == backend
    assert [n.sentence for n in plan.decisions] == ["loaded"]


@pytest.mark.skipif(len(INSTALLED) < 2, reason="one runtime is installed")
def test_asking_for_another_backend_builds_anew(config):
    load_or_build(config(), backend="onnxruntime")
    plan = load_or_build(config(), backend=INSTALLED[1])
    assert plan.header.runtime.name == INSTALLED[1]
    assert f"built for onnxruntime, not {INSTALLED[1]}" in str(plan.decisions[0])


def test_a_runtime_that_is_there_is_found():
    """Tests skip a runtime that is not, so all would pass if none were ever found."""
    assert ("openvino" in INSTALLED) == (importlib.util.find_spec("openvino") is not None)


def test_a_runtime_that_is_not_installed_names_the_extra(monkeypatch, config):
    monkeypatch.setitem(BACKENDS, "openvino", "headrace.engine.backends.not_there")
    with pytest.raises(EngineError, match=r"pip install 'openvino>=[0-9.]+'"):
        load_or_build(config(), backend="openvino")


def test_no_such_runtime(config):
    with pytest.raises(EngineError, match="no runtime is called 'tvm'") as caught:
        load_or_build(config(), backend="tvm")
    assert "onnxruntime" in str(caught.value)


@pytest.mark.parametrize("backend", [b for b in INSTALLED if b != "onnxruntime"])
@pytest.mark.slow
def test_real_models_agree(data_dir, backend):
    for name in ("version-RFB-320.onnx", "yolox_nano.onnx"):
        network = network_from_onnx(data_dir / "models" / name)
        sessions = [
            build(network, BuildOptions(runtime=runtime, threads=2)).open_session()
            for runtime in ("onnxruntime", backend)
        ]
        spec = sessions[0].inputs[0]
        x = np.random.default_rng(0).uniform(0, 255, (1, *spec.shape[1:])).astype(np.float32)
        ours, theirs = (session.run({spec.name: x}) for session in sessions)
        assert list(ours) == list(theirs)
        for key, expected in ours.items():
            scale = np.abs(expected).max()
            np.testing.assert_allclose(theirs[key], expected, rtol=1e-3, atol=1e-4 * scale)


def test_weights_listed_as_inputs_are_taken_off(tmp_path):
    path = save(image_model(list_weight_as_input=True), tmp_path / "m.onnx")
    model = onnx.load_from_string(build(network_from_onnx(path)).blobs["model"])
    assert [i.name for i in model.graph.input] == ["x"]


def test_the_runtime_leaves_no_file_of_its_own_in_the_users_cache(tmp_path):
    """onnxruntime writes a device's id there unless it is kept from it."""
    onnx.save(convolutions(), tmp_path / "a.onnx")
    lines = (
        "import headrace.engine.backends.onnxruntime, onnxruntime, sys;"
        "onnxruntime.InferenceSession(sys.argv[1], providers=['CPUExecutionProvider'])"
    )
    home = tmp_path / "home"
    home.mkdir()
    known = {k: v for k, v in os.environ.items() if k != "ORT_DISABLE_TELEMETRY"}
    subprocess.run(
        [sys.executable, "-c", lines, str(tmp_path / "a.onnx")],
        env=known | {"HOME": str(home), "XDG_CACHE_HOME": str(home / ".cache")}, check=True,
    )  # fmt: skip
    assert [p for p in home.rglob("*") if p.is_file()] == []
