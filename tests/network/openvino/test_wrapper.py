"""OpenVINO models as networks, and what OpenVINO itself makes of them."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

from headrace.config import ModelConfig
from headrace.engine.plan import WEIGHTS_BLOB
from headrace.engine.tuning.tune import TuneOptions
from headrace.errors import EngineError, ModelError
from headrace.infer.model import load_or_build
from headrace.network import network_from_onnx
from tests.network.openvino.models import TEXT, WEIGHTS, answers, written

IMAGES = np.random.default_rng(0).random((2, 3, 8, 8), np.float32)


def built(path: Path, **how):
    cfg = ModelConfig(onnx_file=path, batch_size=2, input_tensor_from_meta=True)
    return load_or_build(cfg, **how)


def test_a_model_is_one_node_of_its_runtime(tmp_path: Path) -> None:
    network = network_from_onnx(written(tmp_path))
    assert network.only_runtime == "openvino"
    assert network.summary().producer == "OpenVINO 2026.4.1"
    assert network.external_locations == {"net.bin": tmp_path / "net.bin"}
    assert network.inputs[0].shape == (None, 3, 8, 8)


def test_it_runs_as_openvino_runs_it(tmp_path: Path) -> None:
    path = written(tmp_path)
    (truth,) = answers(path, [IMAGES])
    plan = built(path)
    assert plan.header.runtime.name == "openvino"
    with plan.open_session() as session:
        (scores,) = session.run({"images": IMAGES}).values()
    np.testing.assert_allclose(scores, truth, atol=1e-6)
    expected = np.einsum("oi,nihw->nohw", WEIGHTS[:, :, 0, 0], IMAGES)
    np.testing.assert_allclose(scores, expected, atol=1e-5)


def test_a_saved_engine_holds_the_weights(tmp_path: Path) -> None:
    pytest.importorskip("openvino")
    path = written(tmp_path / "a")
    built(path)
    (engine,) = (tmp_path / "a").glob("*.engine")
    path.with_suffix(".bin").unlink()
    path.unlink()
    cfg = ModelConfig(model_engine_file=engine, batch_size=2, input_tensor_from_meta=True)
    with load_or_build(cfg).open_session() as session:
        (scores,) = session.run({"images": IMAGES}).values()
    expected = np.einsum("oi,nihw->nohw", WEIGHTS[:, :, 0, 0], IMAGES)
    np.testing.assert_allclose(scores, expected, atol=1e-5)


def test_a_changed_model_or_other_weights_build_anew(tmp_path: Path) -> None:
    pytest.importorskip("openvino")
    path = written(tmp_path)
    built(path)
    assert any(n.code == "engine-loaded" for n in built(path).decisions)
    written(tmp_path, weights=(WEIGHTS * 2).tobytes())
    plan = built(path)
    with plan.open_session() as session:
        (scores,) = session.run({"images": IMAGES}).values()
    expected = np.einsum("oi,nihw->nohw", WEIGHTS[:, :, 0, 0] * 2, IMAGES)
    np.testing.assert_allclose(scores, expected, atol=1e-5)


def test_over_2_gib_the_weights_are_a_blob_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("openvino")
    path = written(tmp_path)
    monkeypatch.setattr("headrace.network.network.MAX_MODEL_BYTES", 10)
    built(path)
    plan = built(path)
    assert WEIGHTS_BLOB in plan.blobs
    with plan.open_session() as session:
        (scores,) = session.run({"images": IMAGES}).values()
    expected = np.einsum("oi,nihw->nohw", WEIGHTS[:, :, 0, 0], IMAGES)
    np.testing.assert_allclose(scores, expected, atol=1e-5)


def test_options_that_it_cannot_use_are_named(tmp_path: Path) -> None:
    pytest.importorskip("openvino")
    path = written(tmp_path)
    codes = {n.code for n in built(path, precision="fp16", tuning=TuneOptions()).decisions}
    assert {"precision-not-used", "not-tuned"} <= codes


def test_a_fixed_batch_is_run_in_parts(tmp_path: Path) -> None:
    pytest.importorskip("openvino")
    text = TEXT.replace("?,3,8,8", "1,3,8,8").replace("<dim>-1</dim>", "<dim>1</dim>")
    plan = built(written(tmp_path, text), dynamic_batch=True)
    assert "the batch stays fixed at 1: it is a model of openvino's own format" in str(
        [*plan.decisions]
    )
    with plan.open_session() as session:
        (scores,) = session.run({"images": IMAGES}).values()
    expected = np.einsum("oi,nihw->nohw", WEIGHTS[:, :, 0, 0], IMAGES)
    np.testing.assert_allclose(scores, expected, atol=1e-5)


def test_missing_and_short_weights(tmp_path: Path) -> None:
    path = written(tmp_path, weights=b"1234")
    with pytest.raises(ModelError, match=r"net\.bin break off: 4 of 48 bytes"):
        network_from_onnx(path)
    path.with_suffix(".bin").unlink()
    with pytest.raises(ModelError, match=r"net\.bin are not beside it"):
        network_from_onnx(path)
    shutil.copy(path, tmp_path / "other.xml")
    with pytest.raises(ModelError, match=r"other\.bin"):
        network_from_onnx(tmp_path / "other.xml")


def test_numbers_without_a_place_and_names_twice(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="'w' does not say where its numbers are"):
        network_from_onnx(written(tmp_path, TEXT.replace('offset="0"', 'offset="-1"')))
    start, end = TEXT.index('  <layer id="3"'), TEXT.index(" </layers>")
    text = TEXT.replace(" </layers>", TEXT[start:end].replace('id="3"', 'id="4"') + " </layers>")
    edge = '<edge from-layer="2" from-port="2" to-layer="3" to-port="0" />'
    text = text.replace(edge, edge + edge.replace('"3"', '"4"'))
    with pytest.raises(ModelError, match="have one name"):
        network_from_onnx(written(tmp_path, text))


def test_another_runtime_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path)
    with pytest.raises(EngineError, match="onnxruntime does not read it") as caught:
        built(path, backend="onnxruntime")
    assert "export to ONNX" in str(caught.value)


def test_without_openvino_the_error_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "openvino", None)
    monkeypatch.delitem(sys.modules, "headrace.engine.backends.openvino", raising=False)
    with pytest.raises(EngineError, match="the runtime openvino is not installed") as caught:
        built(written(tmp_path))
    assert "openvino" in str(caught.value)
