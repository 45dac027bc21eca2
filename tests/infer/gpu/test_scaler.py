"""The GPU's scaler gives the CPU's tensors, bit for bit; run by the stand-in driver."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace._core.errors import EngineError
from headrace._core.gpu.cuda_kernels import PinnedPool
from headrace.config.enums import ColorFormat, ScalingFilter, TensorOrder
from headrace.infer.gpu.items import ITEM, Settings
from headrace.infer.gpu.scaler import GpuScaler
from headrace.infer.items import FramePiece
from headrace.infer.preprocess import Preprocessor
from headrace.media.device_planes import DevicePlanes
from headrace.media.frame import Frame
from headrace.media.pixel_format import ColorSpace, PixelFormat, plane_shapes
from tests.profiles import examples

FILTERS = [f for f in ScalingFilter if f is not ScalingFilter.ALGO4]


def image(
    rng: np.random.Generator, format: PixelFormat, width: int, height: int, color: ColorSpace
) -> Frame:
    """Random pixels, rows padded by some bytes."""
    planes = []
    for shape in plane_shapes(format, width, height):
        padded = rng.integers(0, 256, (shape[0], shape[1] + 7, *shape[2:]), np.uint8)
        planes.append(padded[:, : shape[1]])
    return Frame(tuple(planes), format, width, height, color)


def on_gpu(frame: Frame, *, wide: bool = False, gpu: int = 0) -> Frame:
    """The same NV12 image as a decoder leaves it on the GPU; the stand-in's GPU is the host."""
    rows_of, kept = [], []
    for plane in frame.planes:
        rows = np.zeros((plane.shape[0], 1024 * (1 + wide)), np.uint8)
        flat = plane.reshape(len(plane), -1)
        if wide:
            rows.view(np.uint16)[:, : flat.shape[1]] = flat.astype(np.uint16) << 8
        else:
            rows[:, : flat.shape[1]] = flat
        kept.append(rows)
        rows_of.append(SimpleNamespace(buffer_ptr=rows.ctypes.data, line_size=rows.strides[0]))
    surface = SimpleNamespace(planes=rows_of, width=frame.width, height=frame.height, kept=kept)
    planes = DevicePlanes(surface, wide=wide, gpu=gpu)
    return Frame(planes, frame.format, frame.width, frame.height, frame.color)


def by_cpu(pre: Preprocessor, pieces: list[FramePiece], rows: int) -> np.ndarray[Any, Any]:
    out = np.zeros((rows, *pre.shape), np.float32)
    at = 0
    for piece in pieces:
        pre.write(piece.frame, piece.src, piece.dst, out[at : at + len(piece.src)])
        at += len(piece.src)
    return out


def whole(pre: Preprocessor, frame: Frame) -> FramePiece:
    placed = pre.place(frame)
    return FramePiece(frame, placed.src, placed.dst, whole=True)


def test_records_are_those_of_the_kernel() -> None:
    assert ITEM.itemsize == 152
    assert ctypes.sizeof(Settings) == 64
    assert [ITEM.fields[n][1] for n in ("tables", "axes", "layout", "dst", "matrix")] == [
        48, 56, 88, 96, 112,
    ]  # fmt: skip


@pytest.mark.parametrize("filter", FILTERS)
@pytest.mark.parametrize("profile", ["nvinfer", "modern"])
@given(data=st.data())
def test_the_same_bits_as_the_cpu(
    driver: ctypes.CDLL, filter: ScalingFilter, profile: str, data: st.DataObject
) -> None:
    draw = data.draw
    rng = np.random.default_rng(draw(st.integers(0, 999)))
    format, color = draw(st.sampled_from(PixelFormat)), draw(st.sampled_from(ColorSpace))
    width, height = draw(st.integers(2, 70)), draw(st.integers(2, 50))
    net = draw(st.integers(1, 40)), draw(st.integers(1, 30))
    model = draw(st.sampled_from(list(ColorFormat)[:3]))
    channels = 1 if model is ColorFormat.GRAY else 3
    mean = rng.random((net[1], net[0], channels)) * 9 if draw(st.booleans()) else None
    pre = Preprocessor(
        *net,
        color_format=model,
        order=draw(st.sampled_from(TensorOrder)),
        scale=draw(st.sampled_from([1.0, 1 / 255, 0.017])),
        offsets=(3.5, 17.0, 120.25)[:channels],
        mean=mean,
        maintain_aspect_ratio=draw(st.booleans()),
        symmetric_padding=draw(st.booleans()),
        scaling_filter=filter,
        profile=profile,  # type: ignore[arg-type]
    )
    frame = image(rng, format, width, height, color)
    rects = rng.uniform(-5, 60, (draw(st.integers(0, 4)), 4))
    crops = pre.fitted(rects, width, height)
    pieces = [whole(pre, frame), FramePiece(frame, crops.src, crops.dst), whole(pre, frame)]
    rows = 2 + len(rects) + draw(st.integers(0, 2))
    got = GpuScaler(pre)(pieces, rows).numpy()
    wanted = by_cpu(pre, pieces, rows)
    assert got[: 2 + len(rects)].tobytes() == wanted[: 2 + len(rects)].tobytes()
    assert not got[2 + len(rects) :].any()


@pytest.mark.parametrize("wide", [False, True])
def test_images_on_the_gpu_are_read_where_they_are(driver: ctypes.CDLL, wide: bool) -> None:
    rng = np.random.default_rng(1)
    pre = Preprocessor(24, 16, maintain_aspect_ratio=True, scaling_filter=ScalingFilter.BILINEAR)
    frame = image(rng, PixelFormat.NV12, 50, 38, ColorSpace.BT709)
    there = on_gpu(frame, wide=wide)
    got = GpuScaler(pre)([whole(pre, there)], 1).numpy()
    assert got.tobytes() == by_cpu(pre, [whole(pre, frame)], 1).tobytes()
    assert there.on_device is not None
    assert not there.on_device.downloaded


@pytest.mark.parametrize("wide", [False, True])
def test_pixels_are_copied_when_somebody_asks(driver: ctypes.CDLL, wide: bool) -> None:
    frame = image(np.random.default_rng(2), PixelFormat.NV12, 33, 21, ColorSpace.BT601)
    there = on_gpu(frame, wide=wide)
    for mine, known in zip(there.planes, frame.planes, strict=True):
        np.testing.assert_array_equal(mine, known)
    np.testing.assert_array_equal(there.to_rgb(), frame.to_rgb())
    assert there.on_device is not None
    assert there.on_device.downloaded


def test_pinned_memory_is_lent_again_when_its_last_array_is_gone(driver: ctypes.CDLL) -> None:
    pool = PinnedPool()
    first = pool.take(np.dtype(np.float32), (3, 1000))
    address, part = first.ctypes.data, first[1, 5:]
    part[:] = 7
    del first
    assert pool.take(np.dtype(np.float32), (3, 1000)).ctypes.data != address  # `part` is there
    assert (part == 7).all()
    del part
    again = {pool.take(np.dtype(np.int8), (n,)).ctypes.data for n in (12000, 9000)}
    assert address in again  # sizes that differ little share their memory


def test_half_precision_is_rounded_to_nearest(driver: ctypes.CDLL) -> None:
    pre = Preprocessor(16, 16, scale=1 / 255)
    piece = whole(pre, image(np.random.default_rng(3), PixelFormat.RGB, 16, 16, ColorSpace.BT601))
    got = GpuScaler(pre, half=True)([piece], 1).numpy()
    np.testing.assert_array_equal(got, by_cpu(pre, [piece], 1).astype(np.float16))


@pytest.mark.slow
def test_threads_do_not_share_memory(driver: ctypes.CDLL) -> None:
    from concurrent.futures import ThreadPoolExecutor

    rng = np.random.default_rng(4)
    pre = Preprocessor(20, 20)
    scaler = GpuScaler(pre)
    frames = [image(rng, PixelFormat.I420, 40, 30, ColorSpace.BT601) for _ in range(24)]

    def once(frame: Frame) -> bytes:
        return scaler([whole(pre, frame)], 1).numpy().tobytes()

    with ThreadPoolExecutor(4) as pool:
        got = list(pool.map(once, frames))
    assert got == [by_cpu(pre, [whole(pre, f)], 1).tobytes() for f in frames]


def test_more_sizes_than_are_kept(driver: ctypes.CDLL) -> None:
    rng = np.random.default_rng(8)
    pre = Preprocessor(8, 8)
    frames = [image(rng, PixelFormat.GRAY, 20 + 2 * i, 20, ColorSpace.BT601) for i in range(150)]
    pieces = [whole(pre, frame) for frame in frames]
    got = GpuScaler(pre)(pieces, len(pieces)).numpy()
    assert got.tobytes() == by_cpu(pre, pieces, len(pieces)).tobytes()


def test_memory_is_given_back(driver: ctypes.CDLL) -> None:
    import gc

    pre = Preprocessor(20, 20)
    frame = image(np.random.default_rng(5), PixelFormat.BGR, 40, 30, ColorSpace.BT601)
    scaler = GpuScaler(pre)
    scaler([whole(pre, frame)], 1)
    before = driver.headrace_test_allocated()
    for _ in range(50):
        scaler([whole(pre, frame)], 1)
    assert driver.headrace_test_allocated() == before
    del scaler
    gc.collect()
    assert driver.headrace_test_allocated() == 0


def test_no_memory_on_the_gpu_is_said(driver: ctypes.CDLL) -> None:
    pre = Preprocessor(20, 20)
    frame = image(np.random.default_rng(6), PixelFormat.GRAY, 40, 30, ColorSpace.BT601)
    scaler = GpuScaler(pre)
    driver.headrace_test_fail_allocations(1)
    with pytest.raises(EngineError, match="out of memory"):
        scaler([whole(pre, frame)], 1)
    assert scaler([whole(pre, frame)], 1).numpy().any()


@settings(max_examples=examples(300))
@given(data=st.data())
def test_batches_that_mix_everything_give_the_cpus_tensors(
    driver: ctypes.CDLL, data: st.DataObject
) -> None:
    draw, rng = data.draw, np.random.default_rng(data.draw(st.integers(0, 99999)))
    pre = Preprocessor(
        draw(st.integers(1, 24)),
        draw(st.integers(1, 20)),
        color_format=draw(st.sampled_from(list(ColorFormat)[:3])),
        order=draw(st.sampled_from(TensorOrder)),
        maintain_aspect_ratio=draw(st.booleans()),
        symmetric_padding=draw(st.booleans()),
        scaling_filter=draw(st.sampled_from(FILTERS)),
        profile=draw(st.sampled_from(["nvinfer", "modern"])),
    )
    scaler = GpuScaler(pre)
    sizes = [(int(rng.integers(2, 60)), int(rng.integers(2, 44))) for _ in range(2)]
    for _ in range(draw(st.integers(1, 3))):  # memory is used again
        gpu: list[FramePiece] = []
        cpu: list[FramePiece] = []
        made: list[tuple[Frame, Frame]] = []
        for _ in range(draw(st.integers(1, 10))):
            if not made or draw(st.integers(0, 3)):
                kind = draw(st.sampled_from(["host", "nv12", "wide"]))
                format = PixelFormat.NV12
                if kind == "host":
                    format = draw(st.sampled_from(PixelFormat))
                color = draw(st.sampled_from(list(ColorSpace)[:2]))
                host = image(rng, format, *draw(st.sampled_from(sizes)), color)
                made.append((host, host if kind == "host" else on_gpu(host, wide=kind == "wide")))
            host, there = draw(st.sampled_from(made))
            if draw(st.booleans()):
                gpu.append(whole(pre, there))
                cpu.append(whole(pre, host))
            else:
                rects = rng.uniform(-5, 60, (draw(st.integers(0, 3)), 4))
                crops = pre.fitted(rects, host.width, host.height)
                gpu.append(FramePiece(there, crops.src, crops.dst))
                cpu.append(FramePiece(host, crops.src, crops.dst))
        count = sum(len(piece.src) for piece in gpu)
        rows = count + draw(st.integers(0, 2))
        if rows:
            got = scaler(gpu, rows).numpy()
            assert got[:count].tobytes() == by_cpu(pre, cpu, rows)[:count].tobytes()
            assert not got[count:].any()
