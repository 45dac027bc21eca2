"""Trackers that look at images in a GPU's memory; run by the stand-in driver."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headrace._core.errors import EngineError
from headrace.infer.gpu.patches import DevicePatches
from headrace.media.frame import Frame
from headrace.media.pixel_format import ColorSpace, PixelFormat
from headrace.meta import FrameMeta
from headrace.pipeline.track import open_tracker
from headrace.pipeline.track.looks import LookModel
from tests.infer.gpu.test_scaler import image, on_gpu
from tests.pipeline.track.look_model import write_model
from tests.pipeline.track.scenes import HEIGHT, WIDTH, meta


def shown(number: int, color: ColorSpace = ColorSpace.BT709) -> tuple[Frame, FrameMeta]:
    """Two textures that move, one of them out of the image and back; some frames find nothing."""
    rng = np.random.default_rng(3)
    ground = image(rng, PixelFormat.NV12, WIDTH, HEIGHT, color)
    looks = image(rng, PixelFormat.NV12, 40, 60, color)
    luma, chroma = (plane.copy() for plane in ground.planes)
    boxes = []
    for left, top in ((10 + 3 * number, 30), (WIDTH - 40 + 2 * abs(number - 12) - 8, 50)):
        right = min(WIDTH, left + 40)
        luma[top : top + 60, left:right] = looks.planes[0][:, : right - left]
        x, y, wide = left // 2, top // 2, (right - left) // 2
        chroma[y : y + 30, x : x + wide] = looks.planes[1][:, :wide]
        boxes.append((left, top, right - left, 60))
    frame = Frame((luma, chroma), PixelFormat.NV12, WIDTH, HEIGHT, color)
    return frame, meta(number, [] if 8 <= number < 11 else boxes, inferred=number % 4 != 3)


def is_copied(frame: Frame) -> bool | None:
    """Whether an image on the GPU was copied to the host; None for one that is not there."""
    planes = frame.on_device
    return None if planes is None else planes.downloaded


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("name", ["nvdcf-perf", "nvdcf-accuracy"])
@pytest.mark.usefixtures("driver")
def test_targets_are_those_of_the_image_on_the_host(name: str, wide: bool) -> None:
    trackers: list[Any] = [open_tracker(name, usePrediction4Assoc=0) for _ in range(2)]
    for number in range(24):
        color = list(ColorSpace)[number % len(ColorSpace)]
        metas = []
        for k, tracker in enumerate(trackers):
            frame, m = shown(number, color)
            frame = on_gpu(frame, wide=wide) if k else frame
            tracker.update(frame, m)
            metas.append(m)
            assert is_copied(frame) is (False if k else None)
        here, there = (m.objects for m in metas)
        assert np.array_equal(here.object_ids, there.object_ids)
        assert here.rects.tobytes() == there.rects.tobytes()
        states = [t._sources[0].follower.targets.states() for t in trackers]
        for a, b in zip(*states, strict=True):
            assert a.tobytes() == b.tobytes()


@pytest.mark.usefixtures("driver")
def test_an_image_that_was_copied_is_read_on_the_host() -> None:
    tracker: Any = open_tracker("nvdcf-perf")
    for number in range(3):
        frame, m = shown(number)
        frame = on_gpu(frame)
        assert len(frame.planes[0]) == HEIGHT
        tracker.update(frame, m)
    assert tracker._sources[0].follower._patches is None


def test_no_memory_on_the_gpu_is_an_error(driver: ctypes.CDLL) -> None:
    frame, _ = shown(0)
    patches, places = DevicePatches(0), np.zeros((2, 36), np.int32)
    driver.headrace_test_fail_allocations(1)
    with pytest.raises(EngineError, match="out of memory"):
        patches(on_gpu(frame), places, places)
    assert patches(on_gpu(frame), places, places).shape == (2, 3, 36, 36)


@pytest.mark.usefixtures("driver")
def test_looks_are_those_of_the_image_on_the_host(tmp_path: Path) -> None:
    path = write_model(tmp_path / "looks.onnx")
    model = LookModel(path, batch=2, scale=1 / 127.5, offsets=(127.5,) * 3)
    frame, _ = shown(0)
    rects = np.float32([[10, 30, 40, 60], [96, 50, 40, 60], [900, 5, 9, 9], [-9, 3, 30, 40]])
    far = on_gpu(frame)
    looks = model(far, rects)
    assert is_copied(far) is False
    assert looks.tobytes() == model(frame, rects).tobytes()
    assert not looks[2].any()
    assert looks[0].any()
