"""Models and sources on several GPUs of one process, by `gpu-id`; driver and runtime are stand-ins.

The stand-in refuses a launch whose kernel, queue or memory is not of the current GPU.
"""

from __future__ import annotations

import ctypes
import gc
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import headrace
from headrace._core.errors import EngineError
from headrace._core.gpu import cuda
from headrace._core.gpu.cuda import Memory, Stream, current_gpu, entered
from headrace._core.gpu.cuda_tensors import CudaTensor
from headrace._core.gpu.visible_gpus import environment_for
from headrace.config.pipeline_spec import SourceSpec
from headrace.engine.device import CPU, Device, choose_device
from headrace.engine.tuning.worker import TuningWorker
from headrace.infer.gpu.hits import HitFinder
from headrace.infer.parsers.device_tables import DeviceTables
from headrace.media.pixel_format import PixelFormat
from headrace.pipeline.source_opening import decoding_device
from tests.infer.gpu.test_gpu_runs import boxes, frames, gpu
from tests.infer.gpu.test_scaler import on_gpu
from tests.infer.watch.detectors import config_for
from tests.infer.watch.detectors import frames as frames_of

__all__ = ["gpu"]  # a fixture
Gpus = Callable[[int], None]
Config = Callable[..., Path]


def _told(number: int, there: str) -> str:
    asked = f"gpu-id={number} asks for a GPU that is not there ({there})"
    return f"{asked}: GPU 0 computes; gpu-id=0 asks for that one"


@pytest.mark.parametrize(
    ("count", "gpu_id", "name", "told"),
    [
        (3, 2, "cuda:2", ""),
        (2, 0, "cuda:0", ""),
        (2, 2, "cuda:0", _told(2, "there are 2 GPUs, numbers 0 to 1")),
        (1, 3, "cuda:0", _told(3, "there is 1 GPU, number 0")),
    ],
)
def test_a_model_computes_on_the_gpu_of_its_config(
    gpu: None, gpus: Gpus, monkeypatch: pytest.MonkeyPatch, count: int, gpu_id: int, name: str,
    told: str,
) -> None:  # fmt: skip
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    gpus(count)
    for asked in ("auto", "cuda"):
        device = choose_device(asked, gpu_id)
        assert device.name == name
        assert [n.sentence for n in device.notices] == [told] * bool(told)
        assert [n.code for n in device.notices] == ["gpu-other"] * bool(told)
    assert choose_device("cpu", gpu_id) == Device(required=True)


def test_a_number_of_the_command_goes_before_that_of_a_config(gpu: None, gpus: Gpus) -> None:
    gpus(3)
    assert choose_device("cuda:1", 2) == Device(1, required=True)


@pytest.mark.parametrize(
    ("count", "visible", "found", "expected"),
    [
        (1, None, "cuda:1: there is 1 GPU, number 0", "cuda:0"),
        (
            2,
            "4,6",
            "cuda:2: CUDA_VISIBLE_DEVICES='4,6' leaves 2 GPUs, numbers 0 to 1",
            "cuda:0 to cuda:1",
        ),
    ],
)
def test_a_gpu_that_is_not_there(
    gpu: None, gpus: Gpus, monkeypatch: pytest.MonkeyPatch, count: int, visible: str | None,
    found: str, expected: str,
) -> None:  # fmt: skip
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    gpus(count)
    with pytest.raises(EngineError) as caught:
        choose_device(found.partition(": ")[0])
    assert found in caught.value.finding.sentence
    assert caught.value.finding.expectation == expected


def test_hidden_gpus_are_named_as_the_cause(
    gpu: None, gpus: Gpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "-1")
    gpus(0)
    (notice,) = choose_device("auto").notices
    assert "CUDA_VISIBLE_DEVICES='-1' may hide it: unset it" in notice.sentence
    with pytest.raises(EngineError) as caught:
        choose_device("cuda:0")
    assert "CUDA_VISIBLE_DEVICES='-1' may hide it" in str(caught.value)


def test_each_model_has_its_gpu(
    gpu: None, gpus: Gpus, driver: ctypes.CDLL, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gpus(2)
    monkeypatch.setattr("headrace.infer.watch.watch.Watch.due", lambda watch: False)
    config, images = config_for(tmp_path), frames_of("objects", count=4)
    known, _ = boxes(config, images, "cpu")
    before = [driver.headrace_test_launches(n) for n in (0, 1)]
    assert boxes(config, images, "cuda:1")[0] == known
    assert driver.headrace_test_launches(0) == before[0]
    after = driver.headrace_test_launches(1)
    assert after > before[1]
    with (
        headrace.Inferencer.from_config(config, unique_id=1) as first,
        headrace.Inferencer.from_config(config, unique_id=2, gpu_id=1) as second,
    ):
        assert [m.session.device for m in (first, second)] == ["cuda:0", "cuda:1"]
        pipeline = headrace.Pipeline(headrace.media.ArraySource(images), [first, second])
        report = pipeline.run()
    assert [m.device for m in report.models] == ["cuda:0", "cuda:1"]
    attached = [m.results["attached"] for m in report.models]
    assert attached == [attached[0]] * 2
    assert driver.headrace_test_launches(0) > before[0]
    assert driver.headrace_test_launches(1) > after
    assert current_gpu() == 0


@pytest.mark.parametrize("head", ["columns", "corners"])
def test_another_gpu_is_left_alone(
    gpu: None, gpus: Gpus, driver: ctypes.CDLL, tmp_path: Path, head: str
) -> None:
    config, images = config_for(tmp_path, head), frames_of("objects", count=4)
    gpus(2)
    before = driver.headrace_test_retained(0)
    with headrace.Inferencer.from_config(config, device="cuda:1") as model:
        there = [on_gpu(f, gpu=1) if f.format is PixelFormat.NV12 else f for f in images]
        headrace.Pipeline(headrace.media.ArraySource([*there, *images]), model).run()
        model.process(frames(2))
    del model, there
    gc.collect()
    assert driver.headrace_test_retained(0) == before
    assert driver.headrace_test_retained(1)


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("decoder", [0, 1])
def test_images_of_another_gpu_are_copied_to_the_models(
    gpu: None, gpus: Gpus, mean_config: Config, decoder: int, wide: bool
) -> None:
    gpus(2)
    config, images = mean_config(batch_size=4), frames(6)
    known, _ = boxes(config, images, "cpu")
    there = [on_gpu(f, wide=wide, gpu=decoder) for f in images]
    expected = boxes(config, [on_gpu(f, wide=wide) for f in images], "cuda:0")[0]
    assert boxes(config, there, "cuda:1")[0] == expected
    assert wide or expected == known
    assert not any(f.on_device.downloaded for f in there if f.on_device is not None)
    mixed = [*there[:2], *images[2:4], *(on_gpu(f, gpu=1 - decoder) for f in images[4:])]
    assert wide or boxes(config, mixed, "cuda:1")[0] == known


def test_memory_is_of_the_gpu_that_was_entered(driver: ctypes.CDLL, gpus: Gpus) -> None:
    gpus(2)
    with entered(1):
        tensor, stream = CudaTensor.of(np.arange(6, dtype=np.float32)), Stream()
        with entered(0):
            assert (current_gpu(), Memory(8).gpu) == (0, 0)
        assert current_gpu() == 1
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(current_gpu).result() == 0  # each thread has its own
    assert (current_gpu(), tensor.memory.gpu, stream.gpu) == (0, 1, 1)
    assert tensor.__dlpack_device__() == (2, 1)
    assert repr(tensor).endswith("cuda:1)")
    np.testing.assert_array_equal(tensor.numpy(), np.arange(6))
    with pytest.raises(EngineError, match="cuDeviceGet"), entered(2):
        pass
    assert current_gpu() == 0


def test_planes_and_tables_know_their_gpu(driver: ctypes.CDLL, gpus: Gpus) -> None:
    gpus(2)
    planes = on_gpu(frames(1)[0], gpu=1).on_device
    assert planes is not None
    assert planes.surfaces[0].__dlpack_device__() == (2, 1)
    with entered(1):
        finder = HitFinder()
        tables = DeviceTables.of(CudaTensor.of(np.ones((1, 3, 6), np.float32)), finder)
    assert finder.gpu == 1
    assert len(finder(tables, 4, np.full(2, 0.5, np.float32)).scores) == 3
    np.testing.assert_array_equal(tables.numpy(), np.ones((1, 3, 6)))


@pytest.mark.parametrize(
    ("visible", "number", "after"),
    [
        (None, 1, "1"),
        ("3,5", 1, "5"),
        ("GPU-ab,GPU-cd", 1, "GPU-cd"),
        ("3,5", 0, "3,5"),
        (None, 0, None),
    ],
)
def test_child_processes_see_the_models_gpu_first(
    driver: ctypes.CDLL, gpus: Gpus, monkeypatch: pytest.MonkeyPatch, visible: str | None,
    number: int, after: str | None,
) -> None:  # fmt: skip
    gpus(2)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert environment_for(number).get("CUDA_VISIBLE_DEVICES") == after
    with entered(number):
        worker = TuningWorker([], {}, 1)
    assert worker._environment.get("CUDA_VISIBLE_DEVICES") == after
    assert os.environ.get("CUDA_VISIBLE_DEVICES") == visible


SHOWS_VARIABLE = """
import os
from headrace import Detections

def parse(layers, network, params):
    assert os.environ.get("CUDA_VISIBLE_DEVICES") == "1", os.environ.get("CUDA_VISIBLE_DEVICES")
    return Detections([[0, 0, 8, 8]], [0.9], [0])
"""


def test_a_guarded_library_sees_the_models_gpu(
    gpu: None, gpus: Gpus, mean_config: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    gpus(2)
    config = mean_config(batch_size=2, custom_lib_guard="always")
    (tmp_path / "mean_parser.py").write_text(SHOWS_VARIABLE)
    found, _ = boxes(config, frames(2), "cuda:1")
    assert len(found) == 2


@pytest.mark.parametrize(
    ("own", "asked", "models", "decoder"),
    [
        (None, "auto", [1, 0], 1),
        (0, "auto", [1, 1], 0),
        (1, "auto", [0], 1),
        (1, "cuda:0", [0], 0),
        (1, "auto", [None], None),
        (None, "auto", [None, 1], 1),
    ],
)
def test_a_source_is_decoded_on_its_gpu_or_the_models(
    gpu: None, gpus: Gpus, own: int | None, asked: str, models: list[int | None],
    decoder: int | None,
) -> None:  # fmt: skip
    gpus(2)
    spec = SourceSpec(uri="/a.mp4", gpu_id=own)
    devices = [CPU if number is None else Device(number) for number in models]
    assert decoding_device(spec, asked, devices).gpu == decoder


def test_a_lost_gpu_is_found_whichever_it_is(
    driver: ctypes.CDLL, gpus: Gpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    gpus(3)
    assert cuda.gpu_count() == 3
    monkeypatch.setattr(cuda, "_in_use", lambda: driver)
    assert cuda.why_lost() is None
    try:
        driver.headrace_test_lose(2)
        assert cuda.why_lost() == "error 700"
    finally:
        driver.headrace_test_lose(-1)
