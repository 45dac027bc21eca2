"""An inferencer on a GPU gives what it gives on the CPU; driver and runtime are stand-ins."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnxruntime as ort
import pytest
from click.testing import CliRunner

import headrace
from headrace._core.errors import ConfigError, DeviceMemoryError, EngineError
from headrace._core.gpu.cuda import entered
from headrace._core.gpu.cuda_tensors import CudaTensor
from headrace.cli import main
from headrace.config import ModelConfig
from headrace.engine.backends import onnxruntime_cuda as ort_cuda
from headrace.engine.device import choose_device
from headrace.engine.tuning import precisions
from headrace.engine.tuning.tune import TuneOptions
from headrace.infer.gpu import hits
from headrace.infer.model.planning import load_or_build
from headrace.infer.run_options import RunOptions
from headrace.infer.watch.watch import Watch
from headrace.media.frame import Frame
from headrace.media.pixel_format import ColorSpace, PixelFormat
from headrace.pipeline.assembly import open_model
from tests.engine.backends.test_backends_gpu import FakeBinding, FakeSession
from tests.infer.gpu.test_scaler import image, on_gpu
from tests.infer.watch.detectors import config_for
from tests.infer.watch.detectors import frames as frames_of
from tests.pipeline.fakes import FakeSource

Config = Callable[..., Path]


class Binding(FakeBinding):
    """Fails like a full GPU when it is given more items than fit."""

    most = 99

    def bind_ortvalue_input(self, name: str, value: CudaTensor) -> None:
        if value.shape[0] > self.most:
            raise RuntimeError("CUDA error cudaErrorMemoryAllocation:out of memory")
        assert value.memory.gpu == self.session.gpu
        self.feeds[name] = value.numpy()

    def get_outputs(self) -> list[object]:
        if self.places:
            return super().get_outputs()
        with entered(self.session.gpu):
            return [OnDevice(array) for array in self.results]


class OnDevice:
    """An output that the runtime left in the GPU's memory."""

    def __init__(self, array: np.ndarray) -> None:
        self._tensor = CudaTensor.of(array)

    def shape(self) -> tuple[int, ...]:
        return self._tensor.shape

    def data_ptr(self) -> int:
        return self._tensor.pointer


class Session(FakeSession):
    def __init__(self, model: bytes, settings: object, providers: list[Any]) -> None:
        super().__init__(model, settings, providers)
        self.gpu = providers[0][1]["device_id"]

    def io_binding(self) -> Binding:
        return Binding(self, self.log)


@pytest.fixture
def gpu(driver: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch) -> None:
    """A GPU with onnxruntime-gpu, as far as headrace can tell."""
    fake = SimpleNamespace(
        __version__=ort.__version__,
        InferenceSession=Session,
        OrtValue=SimpleNamespace(from_dlpack=lambda tensor: tensor),
        set_default_logger_severity=lambda level: None,
        RunOptions=ort.RunOptions,
        get_available_providers=lambda: ["CUDAExecutionProvider", "CPUExecutionProvider"],
    )
    monkeypatch.setattr(ort_cuda, "ort", fake)
    monkeypatch.setattr(Binding, "most", 99)


def frames(count: int) -> list[Frame]:
    rng = np.random.default_rng(7)
    return [image(rng, PixelFormat.NV12, 64, 48, ColorSpace.BT709) for _ in range(count)]


def boxes(config: Path, images: list[Frame], device: str) -> tuple[list[object], list[str]]:
    with headrace.Inferencer.from_config(config, device=device) as inferencer:
        assert inferencer.session.device == {"cuda": "cuda:0"}.get(device, device)
        size = inferencer.config.batch_size
        starts = range(0, len(images), size)
        metas = [m for i in starts for m in inferencer.process(images[i : i + size])]
        found = [(m.objects.rects.tolist(), m.objects.confidences.tolist()) for m in metas]
        assert any(rects for rects, _ in found)
        return list(found), [str(notice) for notice in inferencer.notices]


@pytest.mark.parametrize("batch", ["n", 1])
def test_boxes_are_those_of_the_cpu(gpu: None, mean_config: Config, batch: int | str) -> None:
    config = mean_config(batch=batch, batch_size=4)
    images = frames(6)
    known, _ = boxes(config, images, "cpu")
    assert boxes(config, [on_gpu(f) for f in images], "cuda")[0] == known
    assert boxes(config, [images[0], *map(on_gpu, images[1:])], "cuda")[0] == known


def test_a_full_gpu_takes_smaller_runs(
    gpu: None, mean_config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = mean_config(batch_size=8)
    images = frames(8)
    known, _ = boxes(config, images, "cpu")
    monkeypatch.setattr(Binding, "most", 3)
    found, notices = boxes(config, images, "cuda")
    assert found == known
    (text,) = [n for n in notices if "no memory for 8 items" in n]
    assert "runs are smaller" in text
    monkeypatch.setattr(Binding, "most", 0)
    with pytest.raises(EngineError, match="out of memory"):
        boxes(config, images, "cuda")


def test_inputs_that_somebody_wants_to_see_are_those_of_the_cpu(
    gpu: None, mean_config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = mean_config(batch_size=5)
    images = frames(5)
    seen: dict[str, np.ndarray] = {}
    for device, most in (("cpu", 99), ("cuda", 99), ("cuda", 2)):
        monkeypatch.setattr(Binding, "most", most)
        with headrace.Inferencer.from_config(config, device=device) as inferencer:
            name = f"{device} {most}"
            inferencer.runs.on_steps = lambda steps, name=name: seen.update(
                {name: steps.inputs["image"]}
            )
            inferencer.process(images)
    assert seen["cuda 99"].tobytes() == seen["cpu 99"].tobytes() == seen["cuda 2"].tobytes()


def test_auto_takes_the_gpu_and_its_own_engine(gpu: None, mean_config: Config) -> None:
    config = mean_config(batch_size=2)
    assert boxes(config, frames(2), "cpu")[0]
    with headrace.Inferencer.from_config(config) as inferencer:
        assert inferencer.session.device == "cuda:0"
        assert inferencer.engine_path is not None
    text = " ".join(map(str, inferencer.model.notices))
    assert "which does not run on cuda" in text


def test_an_engine_built_ahead_is_the_one_that_runs(gpu: None, mean_config: Config) -> None:
    config = mean_config(batch=1, batch_size=4)
    command = CliRunner().invoke(main, ["build", str(config)])
    assert command.exit_code == 0, command.output
    with headrace.Inferencer.from_config(config) as inferencer:
        assert inferencer.session.device == "cuda:0"
        assert any("engine: loaded" in str(n) for n in inferencer.notices)
        assert not any("not used" in str(n) for n in inferencer.notices)
        assert str(inferencer.engine_path) in command.output


def test_tuning_for_a_gpu_tries_its_runtimes_alone(
    gpu: None, mean_config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[str, ...]] = []

    def noted(*args: object, options: TuneOptions, **rest: object) -> None:
        seen.append(tuple(options.runtimes or ()))
        raise EngineError("seen")

    monkeypatch.setattr(precisions, "tune", noted)
    cfg = ModelConfig.load(mean_config(batch=1, batch_size=4))
    for device in ("cuda", "cpu"):
        with pytest.raises(EngineError, match="seen"):
            load_or_build(cfg, tuning=TuneOptions(budget_s=1), device=device)
    assert seen[0] == ("onnxruntime-cuda",)
    assert "onnxruntime" in seen[1]
    assert "onnxruntime-cuda" not in seen[1]


def test_a_gpu_without_its_runtime_is_said(
    driver: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime = SimpleNamespace(get_available_providers=lambda: ["CPUExecutionProvider"])
    monkeypatch.setattr(ort_cuda, "ort", runtime)
    device = choose_device()
    assert not device.is_gpu
    (notice,) = device.notices
    assert "built without CUDA" in notice.sentence
    assert "onnxruntime-gpu" in notice.sentence
    with pytest.raises(EngineError, match="built without CUDA"):
        choose_device("cuda")
    assert choose_device("cpu").notices == ()


def test_devices_that_are_none() -> None:
    for name in ("gpu", "cuda:", "cuda:x", "CUDA:0", "0", "", "cuda:00", "cuda:٣", None, 0):
        with pytest.raises(ConfigError, match="no device is called"):
            choose_device(name)


@pytest.mark.parametrize("head", ["columns", "rows", "objectness", "corners"])
def test_candidates_of_built_in_heads_are_found_on_the_gpu(
    gpu: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, head: str
) -> None:
    config, images = config_for(tmp_path, head), frames_of("objects", count=4)
    monkeypatch.setattr(Watch, "due", lambda watch: False)
    known, _ = boxes(config, images, "cpu")
    asked: list[tuple[int, ...]] = []
    real = hits.HitFinder.__call__

    def find(self: hits.HitFinder, tables: Any, *more: Any) -> Any:
        asked.append(tables.shape)
        return real(self, tables, *more)

    monkeypatch.setattr(hits.HitFinder, "__call__", find)
    assert boxes(config, images, "cuda")[0] == known
    assert len(asked) == (0 if head == "corners" else len(images))
    with headrace.Inferencer.from_config(config, device="cuda") as inferencer:
        raw: list[type] = []
        inferencer.on_raw_output = lambda out: raw.extend(map(type, out.outputs.values()))
        inferencer.process(images[:1])
        assert raw == [np.ndarray]  # somebody looks: they come to the host


def test_a_gpu_without_memory_for_candidates_gives_them_to_the_host(
    gpu: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config, images = config_for(tmp_path), frames_of("objects", count=4)
    monkeypatch.setattr(Watch, "due", lambda watch: False)
    known, _ = boxes(config, images, "cpu")

    def full(*_: Any) -> Any:
        raise DeviceMemoryError("out of memory")

    monkeypatch.setattr(hits._Lane, "run", full)
    found, notices = boxes(config, images, "cuda")
    assert found == known
    assert len([n for n in notices if "no memory for candidates" in n]) == 1


def test_a_pipeline_on_a_gpu_fills_its_runs(gpu: None, mean_config: Config) -> None:
    config = mean_config(batch_size=4)
    with headrace.Inferencer.from_config(config, device="cuda") as inferencer:
        assert inferencer.run_rows == 4
        many = [FakeSource(8, source_id=n) for n in range(6)]
        pipeline = headrace.Pipeline(many, inferencer)
        sizes: list[int] = []
        begin = inferencer.begin
        inferencer.begin = lambda batch: sizes.append(len(batch.frames)) or begin(batch)  # type: ignore
        pipeline.run()
    assert [n for n in sizes if n] == [4] * 12


@pytest.mark.parametrize("live", [True, False])
def test_kernels_are_planned_before_live_frames_come(
    gpu: None,
    mean_config: Config,
    monkeypatch: pytest.MonkeyPatch,
    live: bool,
) -> None:
    rows: list[int] = []
    bind = Binding.bind_ortvalue_input

    def seen(self: Binding, name: str, value: CudaTensor) -> None:
        rows.append(value.shape[0])
        bind(self, name, value)

    with headrace.Inferencer.from_config(
        mean_config(batch_size=8), device="cuda", streams=2
    ) as model:
        sources = [FakeSource(3, source_id=n) for n in range(4)]
        for source in sources:
            source.live = live
        pipeline = headrace.Pipeline(sources, model)
        monkeypatch.setattr(Binding, "bind_ortvalue_input", seen)
        start = pipeline._mux.start
        monkeypatch.setattr(pipeline._mux, "start", lambda: rows.append(-1) or start())  # type: ignore
        pipeline.run()
    before = rows[: rows.index(-1)]
    if live:
        assert before == [4, 4]  # one run of each thread
    else:  # beside the decoders
        assert [n for n in rows if n > 0][:2] == [8, 8]
    assert not live or set(rows) == {4, -1}


@pytest.mark.parametrize(("processes", "lanes"), [(1, 4), (2, 4), (4, 4), (6, 2), (40, 2)])
def test_processes_that_share_a_gpu_have_fewer_lanes_each(
    gpu: None, mean_config: Config, processes: int, lanes: int
) -> None:
    options = RunOptions(device="cuda", sharing=processes)
    with open_model(ModelConfig.load(mean_config()), options) as model:
        assert model.streams == lanes
    with open_model(ModelConfig.load(mean_config()), replace(options, streams=3)) as model:
        assert model.streams == 3
