"""Crop rectangles, letterboxes and the way back. Source: spec A.2, B.6."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.errors import GeometryError
from headrace.infer.geometry import Rect, ScaleTransform, even_rect, fit

sizes = st.integers(2, 5000)
networks = st.integers(1, 2048)


@pytest.mark.parametrize(
    ("crop", "network", "keep", "symmetric", "src", "dst", "padding"),
    [
        # crop, network, aspect, symmetric -> sampled, filled, bars
        ((0, 0, 1920, 1080), (960, 544), 0, 0, (0, 0, 1920, 1080), (0, 0, 960, 544), (0, 0, 0, 0)),
        (
            (0, 0, 1920, 1080),
            (640, 640),
            1,
            0,
            (0, 0, 1920, 1080),
            (0, 0, 640, 360),
            (0, 0, 0, 280),
        ),
        ((0, 0, 1366, 768), (416, 416), 1, 1, (0, 0, 1366, 768), (0, 91, 416, 233), (0, 91, 0, 92)),
        ((0, 0, 1366, 768), (416, 416), 0, 1, (0, 0, 1366, 768), (0, 0, 416, 416), (0, 0, 0, 0)),
        ((0, 0, 1279, 719), (640, 360), 0, 0, (0, 0, 1278, 718), (0, 0, 640, 360), (0, 0, 0, 0)),
        (
            (101.7, 50.2, 33.9, 65.5),
            (224, 224),
            0,
            0,
            (102, 50, 32, 64),
            (0, 0, 224, 224),
            (0,) * 4,
        ),
        ((99, 99, 51, 51), (224, 224), 0, 0, (100, 100, 50, 50), (0, 0, 224, 224), (0, 0, 0, 0)),
        ((-7.5, -1, 20, 20), (10, 10), 0, 0, (0, 0, 20, 20), (0, 0, 10, 10), (0, 0, 0, 0)),
        ((0, 0, 400, 100), (200, 50), 1, 1, (0, 0, 400, 100), (0, 0, 200, 50), (0, 0, 0, 0)),
        ((0, 0, 100, 400), (64, 100), 1, 1, (0, 0, 100, 400), (19, 0, 25, 100), (19, 0, 20, 0)),
        ((0, 0, 4000, 2), (64, 64), 1, 0, (0, 0, 4000, 2), (0, 0, 64, 1), (0, 0, 0, 63)),
        ((0, 0, 2, 4000), (64, 64), 1, 0, (0, 0, 2, 4000), (0, 0, 1, 64), (0, 0, 63, 0)),
    ],
)
def test_fit(crop, network, keep, symmetric, src, dst, padding):
    transform = fit(
        Rect(*crop), *network, maintain_aspect_ratio=bool(keep), symmetric_padding=bool(symmetric)
    )
    assert transform.src == src
    assert transform.dst == dst
    assert transform.padding(*network) == padding
    assert transform.ratio_x == dst[2] / src[2]
    assert transform.ratio_y == dst[3] / src[3]
    assert (transform.offset_x, transform.offset_y) == dst[:2]


@pytest.mark.parametrize("crop", [(10, 10, 1.9, 40), (0, 0, 40, 1), (0, 0, -3, 5), (0, 0, 0, 0)])
def test_empty_crops_are_geometry_errors(crop):
    with pytest.raises(GeometryError, match="at least 2x2"):
        fit(Rect(*crop), 224, 224)


def test_even_rect_shows_what_became_empty():
    assert even_rect(Rect(10, 10, 1.9, 40)) == (10, 10, 0, 40)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 1e30])
@pytest.mark.parametrize("place", range(4))
def test_coordinates_that_are_no_pixels(value, place):
    crop = [0.0, 0.0, 10.0, 10.0]
    crop[place] = value
    with pytest.raises(GeometryError, match=Rect._fields[place]):
        fit(Rect(*crop), 16, 16)


def test_network_without_area():
    with pytest.raises(GeometryError, match="0x5"):
        fit(Rect(0, 0, 10, 10), 0, 5)


@given(sizes, sizes, networks, networks, st.booleans())
def test_letterbox_laws(width, height, net_width, net_height, symmetric):
    t = fit(
        Rect(0, 0, width, height),
        net_width,
        net_height,
        maintain_aspect_ratio=True,
        symmetric_padding=symmetric,
    )
    _, _, w, h = (int(v) for v in t.dst)
    left, top, right, bottom = t.padding(net_width, net_height)
    assert min(left, top, right, bottom) >= 0
    assert w == net_width or h == net_height
    assert w >= 1
    assert h >= 1
    assert (left == 0 and right == 0) or (top == 0 and bottom == 0)
    assert (0 <= right - left <= 1 and 0 <= bottom - top <= 1) or not symmetric
    # The other side is the largest integer that keeps the aspect ratio (exact arithmetic).
    sw, sh = int(t.src.width), int(t.src.height)
    if Fraction(net_width * sh, sw) <= net_height:
        assert (w, h) == (net_width, max(1, net_width * sh // sw))
    else:
        assert (w, h) == (max(1, net_height * sw // sh), net_height)


@given(
    st.tuples(sizes, sizes, networks, networks),
    st.lists(st.tuples(*[st.floats(-500, 3000, width=32)] * 4), max_size=5),
    st.booleans(),
    st.tuples(st.integers(0, 3000), st.integers(0, 3000)),
)
def test_to_network_inverts_to_frame(shape, boxes, keep, roi):
    width, height, net_width, net_height = shape
    t = fit(
        Rect(0, 0, width, height),
        net_width,
        net_height,
        maintain_aspect_ratio=keep,
        symmetric_padding=True,
    )
    network = np.array(boxes, np.float32).reshape(-1, 4)
    frame = t.to_frame(network, *roi)
    assert frame.dtype == np.float32
    assert frame.shape == network.shape
    back = t.to_network(frame, *roi)
    # One float32 rounding of a frame coordinate, seen in network pixels, plus one of the result.
    ratio = np.array([t.ratio_x, t.ratio_y] * 2)
    slack = np.abs(frame) * ratio * 2.0**-23 + np.abs(network) * 2.0**-22 + 1e-3
    assert np.all(np.abs(back - network) <= slack)


def test_to_frame_rounds_where_the_original_does():
    t = ScaleTransform(Rect(0, 0, 1366, 768), Rect(0, 91, 416, 233), 416 / 1366, 233 / 768, 0, 91)
    box = np.array([[10.3, 95.7, 33.3, 12.1]], np.float32)
    shifted = np.float32(np.float32(95.7) - np.float32(91))
    expected = [
        np.float32(float(np.float32(10.3)) / t.ratio_x + 300),
        np.float32(float(shifted) / t.ratio_y + 200),
        np.float32(float(np.float32(33.3)) / t.ratio_x),
        np.float32(float(np.float32(12.1)) / t.ratio_y),
    ]
    assert t.to_frame(box, 300.8, 200.6).tolist() == [[float(v) for v in expected]]


def test_no_boxes():
    t = fit(Rect(0, 0, 10, 10), 5, 5)
    assert t.to_frame(np.empty((0, 4), np.float32)).shape == (0, 4)
    assert t.to_network([]).shape == (0, 4)
