"""TensorRT in a pipeline: images on the GPU, scaled into the memory that the engine reads."""

from __future__ import annotations

import ctypes
import importlib.util
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

import headrace
from headrace._core.errors import EngineError
from headrace._core.gpu.cuda_tensors import CudaTensor
from headrace.config import ModelConfig
from headrace.engine.backends import (
    RunnerOptions,
    get_backend,
    installed_backends,
    onnxruntime_package,
)
from headrace.engine.backends import onnxruntime_cuda as ort_cuda
from headrace.engine.device import choose_device
from headrace.infer.gpu import scaler
from headrace.infer.items import FramePiece
from headrace.infer.model.planning import load_or_build
from headrace.infer.runners import GpuRunner
from headrace.media.frame import Frame
from tests.infer.gpu.fake_tensorrt import Builder, Engine, package, rtx_package
from tests.infer.gpu.test_gpu_runs import boxes, frames
from tests.infer.gpu.test_scaler import on_gpu
from tests.infer.recognise.test_recognise import yolov8
from tests.infer.watch.detectors import config_for
from tests.infer.watch.detectors import frames as frames_of

Config = Callable[..., Path]
Chips = Callable[..., None]
_NAME = "headrace.engine.backends.tensorrt"


@pytest.fixture
def tensorrt(driver: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch) -> None:
    """A GPU with TensorRT, and an onnxruntime for the CPU alone."""
    install(monkeypatch, tensorrt=package())
    monkeypatch.setattr(Engine, "runs", [])


def install(monkeypatch: pytest.MonkeyPatch, **packages: ModuleType | None) -> None:
    """Import the backend anew over `packages`, beside an onnxruntime for the CPU alone."""
    for name, made in packages.items():
        monkeypatch.setitem(sys.modules, name, made)
    found = importlib.util.find_spec(_NAME)
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    monkeypatch.setitem(sys.modules, _NAME, module)
    runtime = SimpleNamespace(get_available_providers=lambda: ["CPUExecutionProvider"])
    monkeypatch.setattr(ort_cuda, "ort", runtime)
    monkeypatch.setattr(onnxruntime_package, "packages", lambda: {"onnxruntime": "1.0"})


@pytest.fixture
def rtx(
    driver: ctypes.CDLL, gpus: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Chips]:
    """`rtx(chip, …)`: GPUs of these compute capabilities with TensorRT-RTX alone."""
    monkeypatch.setitem(sys.modules, "tensorrt_rtx", rtx_package())
    monkeypatch.setattr(Builder, "chips", [])

    def have(*chips: int) -> None:
        gpus(len(chips))
        for number, chip in enumerate(chips):
            driver.headrace_test_chip(number, chip)
        install(monkeypatch, tensorrt=None)

    yield have
    for number in range(2):
        driver.headrace_test_chip(number, 90)


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
    images = frames(6)
    known, _ = boxes(config, images, "cpu")
    assert choose_device().is_gpu
    if saved:
        load_or_build(ModelConfig.load(config), backend="tensorrt")
    assert boxes(config, [on_gpu(f) for f in images], "cuda")[0] == known
    assert scaled
    assert {run["image"] for run in Engine.runs} <= scaled


def test_a_bare_model_is_built_once(tensorrt: None, tmp_path: Path) -> None:
    model = yolov8(tmp_path / "m.onnx")
    source = headrace.media.ArraySource(frames(2))
    with headrace.open_pipeline(model, sources=source, device="cuda") as pipeline:
        assert len(list(pipeline)) == 2
        texts = [notice.sentence for notice in pipeline.report.notices]
    assert [text for text in texts if "built" in text] == ["built from m.onnx"]


@pytest.mark.slow
@pytest.mark.parametrize("head", ["columns", "objectness"])
def test_a_pipeline_finds_candidates_in_the_engines_memory(
    tensorrt: None, scaled: set[int], tmp_path: Path, head: str
) -> None:
    config = config_for(tmp_path, head)
    images = frames_of()
    expected = found(config, images, "cpu")
    assert any(rects for rects, _ in expected)
    assert found(config, images, "cuda") == expected
    assert {next(iter(run.values())) for run in Engine.runs} <= scaled


def found(config: Path, images: list[Frame], device: str) -> list[tuple[object, object]]:
    with headrace.Inferencer.from_config(config, device=device) as inferencer:
        runner = inferencer.model.runner
        finds = isinstance(runner, GpuRunner) and runner.finder is not None
        assert finds == (device == "cuda")
        pipeline = headrace.Pipeline(headrace.media.ArraySource(images), inferencer)
        return [
            (meta.objects.rects.tolist(), meta.objects.confidences.tolist()) for _, meta in pipeline
        ]


@pytest.mark.parametrize("chip", [70, 90, 100])
def test_a_chip_that_tensorrt_rtx_does_not_serve(rtx: Chips, chip: int) -> None:
    rtx(chip)
    why = f"tensorrt_rtx 1.7 does not serve compute capability {chip // 10}.{chip % 10}, only 7.5"
    device = choose_device()
    assert not device.is_gpu
    (notice,) = device.notices
    assert notice.code == "gpu-unused"
    assert "built without CUDA; " + why in notice.sentence
    assert "onnxruntime-gpu[cuda,cudnn]" in notice.sentence
    with pytest.raises(EngineError, match=f"--device cuda: .*{why}"):
        choose_device("cuda")
    with pytest.raises(EngineError, match=f"tensorrt cannot run here: {why}") as caught:
        get_backend("tensorrt").open(b"", RunnerOptions())
    assert "for this GPU: pip install tensorrt, or pip uninstall" in str(caught.value)


@pytest.mark.parametrize(("chip", "built_for"), [(75, [75]), (86, []), (120, []), (130, [])])
def test_a_chip_that_tensorrt_rtx_serves(
    rtx: Chips, mean_config: Config, chip: int, built_for: list[int]
) -> None:
    rtx(chip)
    assert choose_device().is_gpu
    config = mean_config(batch_size=4)
    assert boxes(config, frames(2), "cuda")[0] == boxes(config, frames(2), "cpu")[0]
    assert Builder.chips == built_for  # newer ones than Turing are served by any engine


def test_the_chip_of_the_chosen_gpu_decides(rtx: Chips) -> None:
    rtx(90, 89)
    assert choose_device("cuda:1").gpu == 1
    assert choose_device("auto", 1).gpu == 1
    assert not choose_device("auto", 0).is_gpu
    with pytest.raises(EngineError, match=r"does not serve compute capability 9\.0"):
        choose_device("cuda:0")


def test_an_engine_of_tensorrt_is_of_its_chip(
    tensorrt: None, driver: ctypes.CDLL, gpus: Callable[[int], None], mean_config: Config
) -> None:
    gpus(2)
    config = mean_config(batch_size=4)
    try:
        driver.headrace_test_chip(1, 89)
        known = boxes(config, frames(2), "cuda:0")
        assert any("built from" in text for text in known[1])
        again = boxes(config, frames(2), "cuda:1")
        assert again[0] == known[0]
        told = "\n".join(again[1])
        assert "11.0 for compute capability 9.0 ≠ tensorrt 11.0 for compute capability 8.9" in told
        assert "loaded" in "\n".join(boxes(config, frames(2), "cuda:1")[1])
    finally:
        driver.headrace_test_chip(1, 90)


def test_an_error_of_tensorrt_has_no_names_of_its_source(
    rtx: Chips, monkeypatch: pytest.MonkeyPatch
) -> None:
    rtx(90)
    log = sys.modules[_NAME]._log
    log.log(1, "IRuntime::deserializeCudaEngine: Error Code 6: API Usage Error (The engine (of\n"
            "batch 4) cannot run. In throwUnlessServed at /_src/runtime.cpp:84)")  # fmt: skip
    assert sys.modules[_NAME]._said("") == "The engine (of batch 4) cannot run."
    log.log(1, "odd")
    assert sys.modules[_NAME]._said("").endswith("run.; odd")


@pytest.mark.parametrize(
    "text",
    [
        "raise FileNotFoundError('Could not find: libnvinfer')",
        "raise ImportError('libnvinfer.so.10: cannot open shared object file')",
        "raise SystemExit('libnvinfer')",
        "libnvinfer = 1 / 0",
        "libnvinfer =",
        "",
    ],
)
def test_a_package_that_cannot_be_loaded_is_no_runtime(
    driver: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str
) -> None:
    (tmp_path / "tensorrt.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(sys.modules, "tensorrt", None)
    monkeypatch.delitem(sys.modules, "tensorrt")
    forget(monkeypatch)
    assert not choose_device().is_gpu
    assert "tensorrt" not in installed_backends()
    with pytest.raises(EngineError, match="the runtime tensorrt cannot be loaded: ") as caught:
        get_backend("tensorrt")
    assert "libnvinfer" in str(caught.value) or text in ("", "libnvinfer = 1 / 0", "libnvinfer =")


def test_headraces_own_module_under_that_name_is_no_runtime(
    driver: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch
) -> None:
    import headrace.trt

    monkeypatch.setitem(sys.modules, "tensorrt", headrace.trt)
    forget(monkeypatch)
    assert not choose_device().is_gpu
    with pytest.raises(EngineError, match="tensorrt is not installed"):
        get_backend("tensorrt")


def forget(monkeypatch: pytest.MonkeyPatch) -> None:
    """Import the backend anew, beside an onnxruntime for the CPU alone."""
    monkeypatch.delitem(sys.modules, _NAME, raising=False)
    runtime = SimpleNamespace(get_available_providers=lambda: ["CPUExecutionProvider"])
    monkeypatch.setattr(ort_cuda, "ort", runtime)
