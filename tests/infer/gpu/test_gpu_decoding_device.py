"""Which GPU decodes, closes and is left alone; driver and runtime are stand-ins."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Thread
from time import sleep
from types import SimpleNamespace
from typing import Any

import av
import numpy as np
import pytest

import headrace
from headrace._core.errors import ConfigError, EngineError
from headrace._core.gpu import cuda
from headrace._core.gpu.cuda import current_gpu, driver, entered
from headrace.batches.units import BatchUnit
from headrace.batches.work import Work, Worker
from headrace.config.pipeline_spec import SourceSpec
from headrace.engine.device import CPU, Device
from headrace.engine.session import Session
from headrace.infer.inferencer import Inferencer
from headrace.infer.run_options import RunOptions
from headrace.media.sources import gpu_decoding as decoding
from headrace.media.sources import video as video_module
from headrace.media.sources.decoded import DecodedSource, turn_of
from headrace.pipeline import pipeline as pipeline_module
from headrace.pipeline.opening import pipeline_spec
from headrace.pipeline.source_opening import decoding_device, gpu_of
from tests.infer.gpu.test_gpu_runs import boxes, frames, gpu

__all__ = ["gpu"]  # a fixture
Gpus = Callable[[int], None]
Config = Callable[..., Path]


@pytest.fixture
def video(tmp_path: Path) -> Path:
    """A video of three images."""
    path = tmp_path / "video.mp4"
    with av.open(str(path), "w") as out:
        stream = out.add_stream("mpeg4", rate=25, width=64, height=48, pix_fmt="yuv420p")
        for _ in range(3):
            out.mux(stream.encode(av.VideoFrame.from_ndarray(np.zeros((48, 64, 3), np.uint8))))
        out.mux(stream.encode(None))
    return path


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[int | None]:
    """The GPUs that videos were to be decoded on; the CPU decodes them."""
    found: list[int | None] = []
    monkeypatch.setattr(video_module, "gpu_decoding", lambda gpu: found.append(gpu) or {})
    return found


def context() -> int | None:
    now = ctypes.c_void_p()
    assert driver().library.cuCtxGetCurrent(ctypes.byref(now)) == 0
    return now.value


@pytest.mark.slow
def test_a_thread_has_its_context_again_or_none(gpus: Gpus) -> None:
    gpus(2)
    library = driver().library
    library.cuCtxSetCurrent(None)
    with entered(1):
        pass
    now = ctypes.c_void_p()
    library.cuCtxGetCurrent(ctypes.byref(now))
    assert now.value is None
    first = context()
    with pytest.raises(ZeroDivisionError), entered(1):
        raise ZeroDivisionError
    assert (context(), current_gpu()) == (first, 0)


def test_a_model_is_closed_on_its_gpu(
    gpu: None, gpus: Gpus, mean_config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    gpus(2)
    where = []
    close = Session.close
    monkeypatch.setattr(Session, "close", lambda s: (where.append(current_gpu()), close(s)))
    Inferencer.from_config(mean_config(), device="cuda:1").close()
    assert where
    assert set(where) == {1}


def test_an_engine_of_a_gpu_that_is_gone_is_not_used(
    gpu: None, mean_config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = mean_config(batch_size=4)
    known, told = boxes(config, frames(2), "cuda")
    assert any("built from" in text for text in told)
    monkeypatch.setattr(cuda, "_LIBRARY", "libnowhere.so.1")
    cuda._open.cache_clear()
    try:
        with Inferencer.from_config(config) as inferencer:
            assert inferencer.session.device == "cpu"
            texts = [notice.sentence for notice in inferencer.notices]
    finally:
        monkeypatch.undo()
        cuda._open.cache_clear()
    assert any("built for onnxruntime-cuda, which cannot run here: there is no" in t for t in texts)
    assert boxes(config, frames(2), "cpu")[0] == known


def test_sources_that_come_later_are_decoded_where_the_model_computes(
    gpu: None, gpus: Gpus, mean_config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    gpus(2)
    asked: list[dict[str, Any]] = []

    def opened(source: str, **options: Any) -> headrace.media.Source:
        asked.append(options)
        return headrace.media.ArraySource(frames(1))

    monkeypatch.setattr(pipeline_module, "open_source", opened)
    with Inferencer.from_config(mean_config(), device="cuda:1") as model:
        assert gpu_of([model]) == 1
        pipeline = headrace.Pipeline([], model, keep_open=True)
        pipeline.add_source("rtsp://camera/1")
        pipeline.add_source("rtsp://camera/2", gpu=None)
        pipeline.close()
    assert [options["gpu"] for options in asked] == [1, None]
    with Inferencer.from_config(mean_config(), device="cpu") as model:
        assert gpu_of([model]) is None


def test_an_opened_model_says_where_its_videos_are_decoded(
    gpu: None, gpus: Gpus, mean_config: Config, video: Path, asked: list[int | None]
) -> None:
    gpus(2)
    with Inferencer.from_config(mean_config(), device="cuda:1") as model:
        for device in ("auto", "cuda", "cuda:1"):
            headrace.open_pipeline(model, sources=video, device=device).close()
        assert asked == [1, 1, 1]
        for device in ("cpu", "cuda:0"):
            with pytest.raises(ConfigError, match="computes on cuda:1 already"):
                headrace.open_pipeline(model, sources=video, device=device)
        with pytest.raises(ConfigError, match="no device is called 'nonsense'"):
            headrace.open_pipeline(model, sources=video, device="nonsense")


@pytest.mark.parametrize("models", [[0], [1, 0]])
def test_a_source_of_a_gpu_that_is_not_there(gpu: None, gpus: Gpus, models: list[int]) -> None:
    gpus(2)
    found = decoding_device(SourceSpec(uri="/a.mp4", gpu_id=9), "auto", [*map(Device, models), CPU])
    assert found.gpu == models[0]
    (notice,) = found.notices
    assert notice.sentence.startswith("gpu-id=9 asks for a GPU that is not there")
    assert f": GPU {models[0]} decodes; gpu-id={models[0]}" in notice.sentence
    assert "a.mp4" in str(notice.where)


@pytest.fixture
def unit(gpus: Gpus, monkeypatch: pytest.MonkeyPatch) -> None:
    """A video unit that works, as far as headrace can tell."""
    gpus(1)
    monkeypatch.setattr(decoding, "hwdevices_available", lambda: ["cuda"])
    # the module's own: what others open meanwhile is kept
    monkeypatch.setattr(decoding, "ctypes", SimpleNamespace(CDLL=lambda name: None))
    monkeypatch.setattr(decoding.av.CodecContext, "create", lambda *_, **__: None, raising=False)
    monkeypatch.setattr(decoding, "_usable", set())


def refused(*_: object, **__: object) -> None:
    raise OSError("Operation not supported")


@pytest.mark.parametrize(
    ("part", "stand_in", "wanted"),
    [
        ("hwdevices_available", list, "built without CUDA; pip install --force-reinstall av"),
        ("ctypes.CDLL", refused, "came without libnvcuvid.so.1; in a container: NVIDIA_DRIVER"),
        ("av", type("av", (), {"error": av.error, "CodecContext": type("c", (), {
            "create": refused})}), "FFmpeg cannot use GPU 0: Operation not supported"),
    ],
)  # fmt: skip
def test_a_unit_that_cannot_be_used_is_told(
    unit: None, monkeypatch: pytest.MonkeyPatch, part: str, stand_in: Any, wanted: str
) -> None:
    assert decoding.decoding_error(0) is None
    assert "hwaccel" in decoding.gpu_decoding(0)
    assert "does not decode its codec or format (yuv444p)" in decoding.on_cpu_instead("yuv444p", 0)
    decoding._usable.clear()
    monkeypatch.setattr(f"headrace.media.sources.gpu_decoding.{part}", stand_in)
    assert decoding.gpu_decoding(0) == {}
    assert wanted in decoding.on_cpu_instead("yuv420p", 0)
    found = decoding.decoding_error(9)
    assert isinstance(found, EngineError)
    assert found.finding.sentence.startswith("there is no GPU 9: ")


def test_videos_of_a_batch_are_decoded_where_its_model_computes(
    gpu: None, gpus: Gpus, mean_config: Config, video: Path, asked: list[int | None]
) -> None:
    gpus(2)
    spec = pipeline_spec(configs=[mean_config()], sources=["x"])
    worker = Worker(Work(spec, RunOptions(device="cuda:1")), None)
    result = worker.do(BatchUnit(str(video)))
    worker.close()
    assert (result.outcome, result.frames) == ("done", 3), result.error
    assert asked == [1]


class Unmade(DecodedSource):
    """A video whose decoder says which of a group make theirs at the same time."""

    def __init__(self, group: list[str], live: bool) -> None:
        super().__init__("video", 0, None, None, gpu=0)
        self.live, self.group, self.most = live, group, 0
        self.skip_frame = None
        self.decoded = 0

    def decode(self, packet: Any) -> list[Any]:
        self.decoded += 1
        if self.decoded == 1:
            self.group.append("")
            sleep(0.02)
            self.most = len(self.group)
            self.group.pop()
        return []

    def _images(self) -> Any:
        stream: Any = SimpleNamespace(codec_context=self)
        yield from self._decode(stream, [av.Packet(3), av.Packet(3), None])


@pytest.mark.parametrize("live", [False, True])
def test_videos_have_their_decoders_made_one_after_the_other(live: bool) -> None:
    group: list[str] = []
    sources = [Unmade(group, live) for _ in range(6)]
    with ThreadPoolExecutor(len(sources)) as pool:
        assert not any(pool.map(lambda source: list(source._images()), sources))
    assert [source.decoded for source in sources] == [3] * 6
    assert (max(source.most for source in sources) > 1) == live


def test_the_end_of_a_video_does_not_wait_for_decoders_that_are_made(
    video: Path, asked: list[int | None]
) -> None:
    source = headrace.open_source(str(video), gpu=0)
    source.decoder = decoding.ON_GPU  # as far as it can tell
    with turn_of(0):  # of the maker
        thread = Thread(target=source.close, daemon=True)
        thread.start()
        thread.join(5)
        assert not thread.is_alive()
    assert asked == [0]
