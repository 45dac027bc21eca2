"""Engine creators that load engines, calibrate by their own classes, and call the parsers."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headrace.config import ModelConfig
from headrace.custom import open_library
from headrace.engine import Plan
from headrace.engine import builder as engine_builder
from headrace.engine.tactic import Tactic
from headrace.errors import CustomLibraryError
from headrace.infer.model import load_or_build
from tests.network.caffe.models import caffemodel, layer, text_of
from tests.network.onnx_models import image_model, save
from tests.network.uff.models import const, node, source, uff
from tests.trt.host.conftest import Compile

CONFIG = """[property]
gie-unique-id=1
num-detected-classes=1
network-type=100
batch-size=2
custom-lib-path={library}
custom-lib-guard=never
engine-create-func-name={function}
{more}
"""
KERNEL = np.array([[1, 0, 0], [0, 0.5, 0], [0, 0, -1], [0.25, 0.25, 0.5]], np.float32)
BIAS = np.array([0.1, 0.2, 0.3, 0.4], np.float32)
IMAGES = np.random.default_rng(3).uniform(-0.5, 0.5, (2, 3, 8, 8)).astype(np.float32)


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HEADRACE_TEST_ENGINE", str(tmp_path / "own.engine"))


@pytest.fixture
def builds(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """One entry for each time that a network is really built."""
    seen: list[Any] = []
    run = engine_builder._Build.run

    def counted(self: Any) -> Plan:
        seen.append(self.options)
        return run(self)

    monkeypatch.setattr(engine_builder._Build, "run", counted)
    return seen


def _config(library: Path, function: str, more: str = "") -> ModelConfig:
    Path("config.txt").write_text(CONFIG.format(library=library, function=function, more=more))
    return ModelConfig.load("config.txt")


def _expected(images: np.ndarray = IMAGES) -> np.ndarray:
    made = np.einsum("kc,nchw->nkhw", KERNEL, images) + BIAS[:, None, None]
    return np.maximum(made, 0)


def _run(plan: Plan, images: np.ndarray = IMAGES) -> np.ndarray:
    with plan.open_session() as session:
        (found,) = session.run({session.inputs[0].name: images}).values()
    return found


def _calls(library: Path) -> list[str]:
    opened = ctypes.CDLL(str(library))
    opened.builder_calls.restype = ctypes.c_char_p
    return opened.builder_calls().decode().splitlines()


@pytest.fixture
def library(compile_host: Compile, tmp_path: Path) -> Path:
    path = tmp_path / "libbuilders.so"
    path.write_bytes(compile_host("builders.cpp", 8).read_bytes())
    return path


@pytest.mark.slow
def test_the_functions_engine_is_not_built_again(library: Path, builds: list[Any]) -> None:
    cfg = _config(library, "SavesItsEngine")
    plan = load_or_build(cfg)
    assert len(builds) == 1
    np.testing.assert_allclose(_run(plan), _expected(), atol=1e-6)
    assert any(n.code == "engine-built" for n in plan.decisions)
    again = load_or_build(cfg)
    assert len(builds) == 1
    assert any(n.code == "engine-loaded" for n in again.decisions)
    np.testing.assert_allclose(_run(again), _expected(), atol=1e-6)
    np.testing.assert_allclose(_run(again, IMAGES[:1]), _expected()[:1], atol=1e-6)


@pytest.mark.slow
def test_another_way_to_run_is_built_from_its_network(library: Path, builds: list[Any]) -> None:
    plan = load_or_build(_config(library, "SavesItsEngine"), tactic=Tactic("onnxruntime"))
    assert len(builds) == 2
    np.testing.assert_allclose(_run(plan), _expected(), atol=1e-6)


def test_a_function_that_only_loads_an_engine(library: Path, builds: list[Any]) -> None:
    load_or_build(_config(library, "SavesItsEngine"))
    assert Path("own.engine").stat().st_size > 1000
    Path("model_b2_gpu0_fp32.engine").unlink()
    plan = load_or_build(_config(library, "LoadsAnEngine"))
    assert len(builds) == 1
    np.testing.assert_allclose(_run(plan), _expected(), atol=1e-6)
    assert Path("model_b2_gpu0_fp32.engine").exists()


def test_a_loaded_engine_that_is_none(library: Path) -> None:
    Path("own.engine").write_bytes(b"nothing of the kind" * 100)
    with pytest.raises(CustomLibraryError, match="it returned false"):
        load_or_build(_config(library, "LoadsAnEngine"))


@pytest.mark.parametrize("function", ["CalibratesByEntropy", "CalibratesByRange"])
def test_a_calibrator_in_cpp_is_asked(library: Path, function: str) -> None:
    plan = load_or_build(_config(library, function))
    batches = 3 if function == "CalibratesByEntropy" else 1
    calls = _calls(library)
    assert calls[0] == "getBatchSize" or calls[0] == "readCalibrationCache"
    assert calls.count("readCalibrationCache") == 1
    assert calls.count("getBatch 1 image") == batches + 1
    (at,) = [i for i, text in enumerate(calls) if text.startswith("writeCalibrationCache TRT-")]
    names = [line.partition(": ")[0] for line in calls[at + 1 :] if ": " in line]
    assert {"image", "scores"} <= set(names)
    assert plan.header.precision == "int8"
    np.testing.assert_allclose(_run(plan), _expected(), atol=0.02)
    assert not np.array_equal(_run(plan), _expected())  # it is INT8
    again = load_or_build(_config(library, function))
    assert any(n.code == "engine-loaded" for n in again.decisions)


def test_a_calibrators_cache_is_enough(library: Path) -> None:
    plan = load_or_build(_config(library, "ReadsItsCache"))
    assert not [c for c in _calls(library) if c.startswith("getBatch ")]
    assert plan.header.precision == "int8"
    # what lies beyond 127 scales is cut
    assert _run(plan).max() <= np.float32(127 * 0.01574803) + 1e-4


def test_what_a_calibrator_throws_is_told(library: Path) -> None:
    with pytest.raises(CustomLibraryError, match="no images today"):
        load_or_build(_config(library, "CalibratorThrows"))


def test_an_onnx_parser_in_cpp(library: Path, builds: list[Any]) -> None:
    path = save(image_model(), Path("net.onnx"))
    plan = load_or_build(_config(library, "ParsesOnnx", f"onnx-file={path}"))
    assert len(builds) == 1
    assert _calls(library)[0].startswith("layers ")
    images = np.random.default_rng(5).normal(size=(2, *plan.inputs[0].shape[1:]))
    with plan.open_session() as session:
        found = session.run({"x": images.astype(np.float32)})
    np.testing.assert_allclose(found["doubled"], images * 2, atol=1e-5)
    np.testing.assert_allclose(found["mean"].ravel(), images.mean((1, 2, 3)), atol=1e-5)


def test_an_onnx_parser_tells_its_errors(library: Path) -> None:
    Path("net.onnx").write_bytes(b"\x08\x07nonsense")
    with pytest.raises(CustomLibraryError, match="it returned false"):
        load_or_build(_config(library, "ParsesOnnx", "onnx-file=net.onnx"))
    assert _calls(library)[0].startswith("error 3 ")


def test_a_caffe_parser_with_a_factory_in_cpp(library: Path) -> None:
    text = layer("ReLU", top="r", name="relu")
    text += layer("Whatever", bottom="r", top="t", name="times")
    text += layer("Power", "power_param { shift: 1 }", bottom="t", top="out", name="plus")
    Path("net.prototxt").write_text(text_of(text))
    Path("net.caffemodel").write_bytes(caffemodel({"times": [np.array([7.0])]}))
    more = "model-file=net.caffemodel\nproto-file=net.prototxt\noutput-blob-names=out"
    plan = load_or_build(_config(library, "ParsesCaffe", more))
    assert _calls(library) == ["createPlugin times 1 7.000000"]
    images = np.random.default_rng(5).normal(size=(2, 3, 6, 7)).astype(np.float32)
    np.testing.assert_allclose(_run(plan, images), np.maximum(images, 0) * 4 + 1, rtol=1e-6)


def test_a_uff_parser_with_a_plugin_in_cpp(library: Path) -> None:
    Path("net.uff").write_bytes(
        uff(
            source((-1, 3, 5, 6)),
            const("w", np.array([3.0], np.float32)),
            node("four", "_Times4", ["x"]),
            node("y", "Binary", ["four", "w"], func="add"),
            node("m", "MarkOutput", ["y"]),
        )
    )
    more = "uff-file=net.uff\nuff-input-blob-name=x\ninfer-dims=3;5;6\noutput-blob-names=y"
    plan = load_or_build(_config(library, "ParsesUff", more))
    images = np.random.default_rng(5).normal(size=(2, 3, 5, 6)).astype(np.float32)
    np.testing.assert_allclose(_run(plan, images), images * 4 + 3, rtol=1e-6)


@pytest.mark.parametrize(("how", "wanted"), [(2, 6.0), (1, -1.0)])
def test_old_plugins_in_a_network_by_code(library: Path, how: int, wanted: float) -> None:
    """`addPlugin`, and `deserializeCudaEngine` with the factory of its layers, or without."""
    opened = open_library(library)
    run = ctypes.CDLL(str(library)).old_plugins
    run.restype = ctypes.c_float
    assert run(how) == wanted
    made = ["createPlugin mine"] if how == 2 else []
    assert [c for c in _calls(library) if c.startswith("createPlugin")] == made
    del opened
