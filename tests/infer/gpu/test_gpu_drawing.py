"""Drawing and JPEG of images where a GPU decoded them; run by the stand-in driver."""

from __future__ import annotations

import ctypes
import gc
import io
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from headrace._core.errors import EngineError
from headrace.media import gpu_jpeg
from headrace.media.draw import device_canvas
from headrace.media.draw.canvas import Canvas
from headrace.media.draw.device_canvas import DeviceCanvas, canvas_for
from headrace.media.draw.overlays import polygon_overlay
from headrace.media.draw.painter import Painter
from headrace.media.draw.text import render_text
from headrace.media.frame import Frame
from headrace.media.pixel_format import ColorSpace, PixelFormat
from headrace.media.pixels import to_rgb
from headrace.media.sinks.images import JPEG_QUALITY, ImageSink, encode_image
from headrace.meta import Detections, FrameMeta, Space
from tests.infer.gpu.test_scaler import image, on_gpu
from tests.profiles import examples, slow, thinned


@pytest.fixture(autouse=True)
def _all_is_given_back() -> Iterator[None]:
    yield
    device_canvas._here.drawings.clear()


NEAR = st.integers(-40, 140)
BOX = st.tuples(NEAR, NEAR, NEAR, NEAR)
COLOR = st.tuples(*[st.integers(0, 255)] * 3)
ALPHA = st.sampled_from([0.0, 0.2, 0.5, 0.999, 1.0])
CALL = st.one_of(
    st.tuples(st.just("fill"), BOX, COLOR, ALPHA),
    st.tuples(st.just("outline"), BOX, st.integers(1, 9), COLOR, ALPHA),
    st.tuples(
        st.just("paste"), st.sampled_from(["a", "car 0.87", "Ünï#3"]), st.sampled_from([11, 18]),
        st.tuples(*[st.integers(0, 255)] * 3, ALPHA),
        st.none() | st.tuples(*[st.integers(0, 255)] * 3, ALPHA), NEAR, NEAR,
    ),
)  # fmt: skip


def drawn(canvas: Canvas, calls: list[tuple[Any, ...]]) -> Frame:
    for name, *arguments in calls:
        if name == "paste":
            text, size, ink, paper, left, top = arguments
            box = render_text(text, "", size, ink, paper, 3)
            canvas.paste(box, left // 2 * 2, top // 2 * 2)
        else:
            getattr(canvas, str(name))(*arguments)
    return canvas.frame()


def same(there: Frame, here: Frame) -> bool:
    """An NV12 image, and I420 with the same bytes."""
    luma, chroma = there.planes
    planes = (luma, chroma[:, :, 0], chroma[:, :, 1])
    return all(np.array_equal(a, b) for a, b in zip(planes, here.planes, strict=True))


@settings(max_examples=examples(200))
@given(
    calls=st.lists(CALL, max_size=12), size=st.tuples(st.integers(1, 99), st.integers(1, 99)),
    color=st.sampled_from(ColorSpace), wide=st.booleans(),
)  # fmt: skip
@pytest.mark.usefixtures("driver")
def test_any_drawing_has_the_bytes_of_the_cpus(
    calls: list[tuple[Any, ...]], size: tuple[int, int], color: ColorSpace, wide: bool
) -> None:
    frame = image(np.random.default_rng(1), PixelFormat.NV12, *size, color)
    far = on_gpu(frame, wide=wide)
    there = drawn(canvas_for(far), calls)
    assert same(there, drawn(canvas_for(frame), calls))
    assert far.on_device is not None
    assert not far.on_device.downloaded


def scene() -> tuple[Frame, FrameMeta]:
    frame = image(np.random.default_rng(1), PixelFormat.NV12, 321, 241, ColorSpace.BT709)
    meta = FrameMeta("", 0, 0, 0, 321, 241)
    boxes = np.array([[10.0, 20, 60, 50], [200, 100, 150, 200], [5, 200, 30, 30]])
    found = Detections(boxes, np.array([0.9, 0.5, 0.7]), np.array([0, 1, 2]), space=Space.FRAME)
    meta.objects.append(found, 1)
    return frame, meta


@pytest.mark.parametrize("palette", ["auto", "config"])
@pytest.mark.usefixtures("driver")
def test_a_painter_draws_there(palette: Literal["auto", "config"]) -> None:
    frame, meta = scene()
    painter, far = Painter(palette=palette), on_gpu(frame)
    there = painter.draw(far, meta)
    assert there.on_device is not None
    assert not there.on_device.downloaded
    assert same(there, painter.draw(frame, meta))
    assert not same(there, Painter(boxes=False, labels=False).draw(frame, meta))


@pytest.mark.usefixtures("driver")
def test_with_an_overlay_the_host_draws_all() -> None:
    frame, _ = scene()
    canvases = canvas_for(on_gpu(frame)), canvas_for(frame)
    assert isinstance(canvases[0], DeviceCanvas)
    corners = [(20.0, 30.0), (200.0, 60.0), (90.0, 220.0)]
    overlay = polygon_overlay(corners, 3, (0, 255, 0), 0.5, (321, 241))
    assert overlay is not None
    images = []
    for canvas in canvases:
        canvas.outline((4, 5, 90, 80), 3, (255, 0, 0))
        canvas.blend(overlay)
        canvas.fill((7, 7, 40, 41), (0, 0, 255), 0.5)
        images.append(canvas.frame())
    assert images[0].format is PixelFormat.I420
    for a, b in zip(images[0].planes, images[1].planes, strict=True):
        assert np.array_equal(a, b)


@pytest.mark.usefixtures("driver")
def test_memory_of_an_image_is_lent_again_when_it_is_gone() -> None:
    frame, meta = scene()
    far, painter = on_gpu(frame), Painter()
    kept = [painter.draw(far, meta) for _ in range(3)]
    addresses = {k.on_device.rows[0][0] for k in kept if k.on_device is not None}
    assert len(addresses) == 3
    kept.clear()
    gc.collect()
    again = painter.draw(far, meta)
    assert again.on_device is not None
    assert again.on_device.rows[0][0] in addresses


@pytest.fixture
def nvjpeg(
    driver: ctypes.CDLL, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[ctypes.CDLL]:
    out = tmp_path / "libnvjpeg.so"
    source = Path(__file__).with_name("stand_in_nvjpeg.cpp")
    subprocess.run(["g++", "-std=c++17", "-fPIC", "-shared", source, "-o", out], check=True)
    monkeypatch.setattr(gpu_jpeg, "LIBRARIES", (str(out),))
    gpu_jpeg._library.cache_clear()
    yield ctypes.CDLL(str(out))
    gpu_jpeg._here.encoders.clear()
    gpu_jpeg._library.cache_clear()


def samples(data: bytes) -> tuple[tuple[int, ...], list[np.ndarray]]:
    """Size and quality, and the planes, of a file of the stand-in."""
    magic, width, height, quality = np.frombuffer(data[:16], np.uint32).tolist()
    assert magic == 0x4750414A
    shapes = [(height, width), *[((height + 1) // 2, (width + 1) // 2)] * 2]
    at, planes = 16, []
    for shape in shapes:
        size = shape[0] * shape[1]
        planes.append(np.frombuffer(data[at : at + size], np.uint8).reshape(shape))
        at += size
    assert at == len(data)
    return (width, height, quality), planes


@pytest.mark.slow
@pytest.mark.parametrize("color", thinned(ColorSpace, 3))
@pytest.mark.parametrize("size", [(37, 21), slow((64, 48)), slow((1, 1))])
def test_samples_of_jpeg_show_the_frames_colours(
    nvjpeg: ctypes.CDLL, size: tuple[int, int], color: ColorSpace
) -> None:
    smooth = np.add.outer(np.arange(size[1]), np.arange(size[0])) * 2 + 30
    luma = np.clip(smooth, 0, 255).astype(np.uint8)
    half = luma[::2, ::2]
    frame = Frame((luma, np.stack([half, 255 - half], 2)), PixelFormat.NV12, *size, color)
    far = on_gpu(frame)
    told, (y, u, v) = samples(encode_image(far, ".jpg"))
    assert told == (*size, JPEG_QUALITY)
    assert far.on_device is not None
    assert not far.on_device.downloaded
    wide = [np.kron(c, np.ones((2, 2), np.uint8))[: size[1], : size[0]] for c in (u, v)]
    shown = np.asarray(Image.fromarray(np.dstack([y, *wide]), "YCbCr").convert("RGB"))
    apart = np.abs(shown.astype(int) - to_rgb(frame).astype(int))
    assert np.median(apart) <= 2  # levels: chroma is interpolated there, and of whole bytes here
    assert nvjpeg.headrace_test_alive() == 3
    gpu_jpeg._here.encoders.clear()
    assert nvjpeg.headrace_test_alive() == 0


@pytest.mark.usefixtures("nvjpeg")
def test_small_images_and_png_are_of_the_cpu() -> None:
    frame, _ = scene()
    far = on_gpu(frame)
    assert Image.open(io.BytesIO(encode_image(far, ".jpg", max_width=100))).size == (100, 75)
    assert Image.open(io.BytesIO(encode_image(on_gpu(frame), ".png"))).size == (321, 241)


@pytest.mark.usefixtures("driver")
def test_without_the_library_the_sink_says_who_encodes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gpu_jpeg, "LIBRARIES", ("libnone.so.1",))
    gpu_jpeg._library.cache_clear()
    frame, meta = scene()
    with ImageSink("out", tmp_path / "out") as sink:
        for number in range(2):
            sink.write(on_gpu(frame), FrameMeta("", 0, number, 0, 321, 241))
    (notice,) = sink.notices
    assert notice.code == "jpeg-on-cpu"
    with pytest.raises(EngineError, match="libnvjpeg is not installed"):
        gpu_jpeg.encode_on_gpu(on_gpu(frame), 90)
    gpu_jpeg._library.cache_clear()
    (first, *_) = sorted((tmp_path / "out").iterdir())
    assert Image.open(first).size == (321, 241)
    assert meta.width == 321


def test_a_failure_of_the_library_is_an_error(
    nvjpeg: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame, _ = scene()
    monkeypatch.setattr(gpu_jpeg, "_CSS_420", 0)
    with pytest.raises(EngineError, match="nvjpegEncodeYUV: nvJPEG's status 2"):
        encode_image(on_gpu(frame), ".jpg")
    assert nvjpeg.headrace_test_alive() == 3
