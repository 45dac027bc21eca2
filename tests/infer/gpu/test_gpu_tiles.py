"""Tiles of images where a GPU decoded them; run by the stand-in driver."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.media.draw import Painter, Tiler, device_canvas, device_tiles
from headrace.media.draw.tile_scaling import TileAxis, axes, recoloring
from headrace.media.frame import Frame
from headrace.media.pixel_format import ColorSpace, PixelFormat, Plane
from headrace.meta import Detections, FrameMeta, Space
from tests.infer.gpu.test_scaler import image, on_gpu
from tests.profiles import examples

SIDE = st.integers(1, 90)
SOURCE = st.tuples(SIDE, SIDE, st.sampled_from(ColorSpace))


@pytest.fixture(autouse=True)
def _all_is_given_back() -> Iterator[None]:
    yield
    device_canvas._here.drawings.clear()
    device_tiles._here.composers.clear()


def meta_of(frame: Frame, source: int) -> FrameMeta:
    return FrameMeta(f"s{source}.mp4", source, 0, 0, frame.width, frame.height)


def pairs(*sources: tuple[int, int, ColorSpace]) -> list[tuple[Frame, FrameMeta]]:
    frames = [
        image(np.random.default_rng(i), PixelFormat.NV12, *source)
        for i, source in enumerate(sources)
    ]
    return [(frame, meta_of(frame, i)) for i, frame in enumerate(frames)]


def scaled(plane: Plane, across: TileAxis, down: TileAxis) -> np.ndarray[Any, np.dtype[np.int64]]:
    """A plane at the size of a tile, by NumPy."""
    for axis in (down, across):
        places = axis.first[:, None] + np.arange(axis.weights.shape[1])
        plane = np.einsum("ntw,nt->wn", plane.astype(np.int64)[places], axis.weights)
    return (plane + (1 << 21)) >> 22


def expected(tiler: Tiler, some: list[tuple[Frame, FrameMeta]]) -> list[Plane]:
    """Y, U and V of the tiles without captions, of frames that a host has."""
    first = some[0][0]
    color = first.color
    rows, columns = tiler.grid(len(some), first.width / first.height)
    blank = tiler._blank(color).planes
    for cell, (frame, meta) in enumerate(some):
        tile = tiler._place(frame, meta, cell, rows, columns)
        luma, chroma = axes(frame.width, frame.height, tile.width, tile.height)
        y, u, v = (
            scaled(plane, *pair)
            for plane, pair in (
                (frame.planes[0], luma),
                (frame.planes[1][:, :, 0], chroma),
                (frame.planes[1][:, :, 1], chroma),
            )
        )
        matrix = recoloring(frame.color, color)
        if matrix is not None:
            wide = [np.kron(part, np.ones((2, 2), np.int64)) - 128 for part in (u, v)]
            parts = np.stack([y, *wide, np.ones_like(y)])
            luma_only = np.tensordot(matrix[0].astype(np.int64), parts, 1)
            small = np.stack([np.zeros_like(u), u - 128, v - 128, np.ones_like(u)])
            blue, red = (np.tensordot(row.astype(np.int64), small, 1) for row in matrix[1:])
            y, u, v = (np.clip((part + 8192) >> 14, 0, 255) for part in (luma_only, blue, red))
        for k, (plane, part) in enumerate(zip(blank, (y, u, v), strict=True)):
            top, left = (tile.top, tile.left) if k == 0 else (tile.top // 2, tile.left // 2)
            plane[top : top + part.shape[0], left : left + part.shape[1]] = part
    return list(blank)


@settings(max_examples=examples(100))
@given(
    sources=st.lists(SOURCE, min_size=1, max_size=5), wide=st.booleans(), stretch=st.booleans(),
    size=st.tuples(st.integers(1, 60), st.integers(1, 60)),
)  # fmt: skip
@pytest.mark.usefixtures("driver")
def test_any_tiles_are_the_sums_of_their_weights(
    sources: list[tuple[int, int, ColorSpace]], wide: bool, stretch: bool, size: tuple[int, int]
) -> None:
    here = pairs(*sources)
    far = [(on_gpu(frame, wide=wide), meta) for frame, meta in here]
    tiler = Tiler(None, None, 2 * size[0], 2 * size[1], stretch=stretch, captions=False)
    there, _ = tiler.compose(far)
    luma, chroma = there.planes
    got = (luma, chroma[:, :, 0], chroma[:, :, 1])
    for a, b in zip(got, expected(tiler, here), strict=True):
        assert np.array_equal(a, b)
    assert not any(frame.on_device.downloaded for frame, _ in far if frame.on_device is not None)


@pytest.mark.parametrize("other", [ColorSpace.BT709, ColorSpace.BT601_FULL])
@pytest.mark.usefixtures("driver")
def test_tiles_look_like_those_of_the_host(other: ColorSpace) -> None:
    """FFmpeg rounds in other places."""
    here = pairs((192, 108, ColorSpace.BT709), (100, 90, other), (40, 30, other))
    box = np.array([[5.0, 5, 30, 20]])
    found = Detections(box, np.array([0.9]), np.array([0]), space=Space.FRAME)
    for frame, meta in here:
        x, y = (np.arange(n) for n in (frame.width, frame.height))
        frame.planes[0][:] = 90 + 60 * np.sin(x / 9) * np.cos(y / 7)[:, None]
        frame.planes[1][:] = 128
        meta.objects.append(found, 1)
    images = []
    for some in (here, [(on_gpu(frame), meta) for frame, meta in here]):
        images.append(Painter().draw(*Tiler(width=320, height=180).compose(some)))
    assert images[1].on_device is not None
    assert not images[1].on_device.downloaded
    luma, chroma = (plane.astype(int) for plane in images[1].planes)
    for a, b in zip((luma, chroma[:, :, 0], chroma[:, :, 1]), images[0].planes, strict=True):
        apart = np.abs(a - b)
        assert apart.max() <= 6
        assert apart.mean() < 0.7


@pytest.mark.usefixtures("driver")
def test_the_host_makes_tiles_of_images_that_are_not_all_there() -> None:
    here = pairs((64, 36, ColorSpace.BT709), (50, 40, ColorSpace.BT709))
    mixed = [(on_gpu(here[0][0]), here[0][1]), here[1]]
    got, wanted = (Tiler(width=64, height=36).compose(some)[0] for some in (mixed, here))
    assert got.format is PixelFormat.I420
    for a, b in zip(got.planes, wanted.planes, strict=True):
        assert np.array_equal(a, b)
