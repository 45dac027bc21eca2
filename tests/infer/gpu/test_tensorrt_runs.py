"""TensorRT in a pipeline: pictures on the GPU, scaled into the memory that the engine reads."""

from __future__ import annotations

import ctypes
import importlib.util
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

import noria
from noria._core.cuda_tensors import CudaTensor
from noria._core.errors import EngineError
from noria.config import ModelConfig
from noria.engine.backends import get_backend
from noria.engine.backends import onnxruntime_cuda as ort_cuda
from noria.engine.device import choose_device
from noria.infer.gpu import scaler
from noria.infer.items import FramePiece
from noria.media.frame import Frame
from noria.model.planning import load_or_build
from tests.infer.gpu.fake_tensorrt import Engine, package
from tests.infer.gpu.test_runs import boxes, frames
from tests.infer.gpu.test_scaler import on_gpu
from tests.infer.watch.detectors import config_for
from tests.infer.watch.detectors import frames as frames_of

Config = Callable[..., Path]
_NAME = "noria.engine.backends.tensorrt"


@pytest.fixture
def tensorrt(driver: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch) -> None:
    """A GPU with TensorRT, and an onnxruntime for the CPU alone."""
    monkeypatch.setitem(sys.modules, "tensorrt", package())
    found = importlib.util.find_spec(_NAME)
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    monkeypatch.setitem(sys.modules, _NAME, module)
    runtime = SimpleNamespace(get_available_providers=lambda: ["CPUExecutionProvider"])
    monkeypatch.setattr(ort_cuda, "ort", runtime)
    monkeypatch.setattr(Engine, "runs", [])


@pytest.fixture
def scaled(monkeypatch: pytest.MonkeyPatch) -> set[int]:
    """Addresses of the tensors that the scaler has filled."""
    seen: set[int] = set()
    call = scaler.GpuScaler.__call__

    def noted(self: scaler.GpuScaler, pieces: Sequence[FramePiece], rows: int) -> CudaTensor:
        tensor = call(self, pieces, rows)
        seen.add(tensor.pointer)
        return tensor

    monkeypatch.setattr(scaler.GpuScaler, "__call__", noted)
    return seen


@pytest.mark.parametrize("saved", [True, False])
def test_the_engine_reads_what_the_scaler_wrote(
    tensorrt: None, scaled: set[int], mean_config: Config, saved: bool
) -> None:
    config = mean_config(batch_size=4)
    pictures = frames(6)
    known, _ = boxes(config, pictures, "cpu")
    assert choose_device().is_gpu
    if saved:
        load_or_build(ModelConfig.load(config), backend="tensorrt")
    assert boxes(config, [on_gpu(f) for f in pictures], "cuda")[0] == known
    assert scaled
    assert {run["image"] for run in Engine.runs} <= scaled


@pytest.mark.parametrize("head", ["columns", "objectness"])
def test_a_pipeline_finds_candidates_in_the_engines_memory(
    tensorrt: None, scaled: set[int], tmp_path: Path, head: str
) -> None:
    config = config_for(tmp_path, head)
    pictures = frames_of()
    expected = found(config, pictures, "cpu")
    assert any(rects for rects, _ in expected)
    assert found(config, pictures, "cuda") == expected
    assert {next(iter(run.values())) for run in Engine.runs} <= scaled


def found(config: Path, pictures: list[Frame], device: str) -> list[tuple[object, object]]:
    with noria.Inferencer.from_config(config, device=device) as inferencer:
        assert (inferencer.model.gpu_hits is not None) == (device == "cuda")
        pipeline = noria.Pipeline(noria.media.ArraySource(pictures), inferencer)
        return [
            (meta.objects.rects.tolist(), meta.objects.confidences.tolist()) for _, meta in pipeline
        ]


def test_a_package_that_cannot_be_loaded_is_no_runtime(
    driver: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "tensorrt.py").write_text("raise FileNotFoundError('Could not find: libnvinfer')")
    monkeypatch.syspath_prepend(tmp_path)
    forget(monkeypatch)
    device = choose_device()
    assert not device.is_gpu
    with pytest.raises(EngineError, match=r"tensorrt cannot be loaded: .*libnvinfer"):
        get_backend("tensorrt")


def test_norias_own_module_under_that_name_is_no_runtime(
    driver: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch
) -> None:
    import noria.trt

    monkeypatch.setitem(sys.modules, "tensorrt", noria.trt)
    forget(monkeypatch)
    assert not choose_device().is_gpu
    with pytest.raises(EngineError, match="tensorrt is not installed"):
        get_backend("tensorrt")


def forget(monkeypatch: pytest.MonkeyPatch) -> None:
    """Import the backend anew, beside an onnxruntime for the CPU alone."""
    monkeypatch.delitem(sys.modules, _NAME, raising=False)
    runtime = SimpleNamespace(get_available_providers=lambda: ["CPUExecutionProvider"])
    monkeypatch.setattr(ort_cuda, "ort", runtime)
