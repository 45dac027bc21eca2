"""Conversions between frames, decoder images and RGB."""

from __future__ import annotations

import numpy as np
import pytest

from headrace.media import ColorSpace, Frame, PixelFormat
from headrace.media.draw.colors import to_yuv
from headrace.media.pixel_format import plane_shapes
from headrace.media.pixels import to_av, to_rgb
from headrace.media.sources.decoded import FrameReader

COLORS = [(255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 255, 255), (0, 0, 0), (200, 100, 50)]


def random_frame(format: PixelFormat, width: int, height: int) -> Frame:
    rng = np.random.default_rng(1)
    shapes = plane_shapes(format, width, height)
    planes = tuple(rng.integers(16, 235, s, np.uint8) for s in shapes)
    return Frame(planes, format, width, height, ColorSpace.BT709)


@pytest.mark.parametrize("color", list(ColorSpace))
@pytest.mark.parametrize("rgb", COLORS)
def test_to_rgb_uses_matrix_and_range(color: ColorSpace, rgb: tuple[int, int, int]) -> None:
    shapes = plane_shapes(PixelFormat.I420, 32, 16)
    planes = tuple(np.full(s, v, np.uint8) for s, v in zip(shapes, to_yuv(rgb, color), strict=True))
    pixels = to_rgb(Frame(planes, PixelFormat.I420, 32, 16, color))
    assert np.abs(pixels.astype(int) - rgb).max() <= 3


@pytest.mark.parametrize("format", list(PixelFormat))
@pytest.mark.parametrize("size", [(64, 48), (65, 47), (1, 1), (2, 3)])
def test_round_trip_through_ffmpeg(format: PixelFormat, size: tuple[int, int]) -> None:
    frame = random_frame(format, *size)
    back = FrameReader().read(to_av(frame), pts_ns=0, frame=0)
    assert back.format is format
    for a, b in zip(frame.planes, back.planes, strict=True):
        np.testing.assert_array_equal(a, b)
    if format in (PixelFormat.I420, PixelFormat.NV12):
        assert back.color is ColorSpace.BT709


def test_padding_repeats_the_edge() -> None:
    frame = random_frame(PixelFormat.I420, 5, 3)
    wide = FrameReader().read(to_av(frame, width=6, height=4), pts_ns=0, frame=0)
    np.testing.assert_array_equal(wide.planes[0][:3, :5], frame.planes[0])
    np.testing.assert_array_equal(wide.planes[0][3, :5], frame.planes[0][2])
    np.testing.assert_array_equal(wide.planes[0][:3, 5], frame.planes[0][:, 4])
    np.testing.assert_array_equal(wide.planes[1], frame.planes[1])


@pytest.mark.parametrize("format", list(PixelFormat))
def test_rgb_has_the_right_shape(format: PixelFormat) -> None:
    frame = random_frame(format, 33, 17)
    assert to_rgb(frame).shape == (17, 33, 3)
    if format is PixelFormat.BGR:
        np.testing.assert_array_equal(to_rgb(frame), frame.planes[0][:, :, ::-1])
