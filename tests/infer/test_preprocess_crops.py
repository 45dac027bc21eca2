"""Many crops in one call are the crops one by one, bit for bit. Source: spec A.2."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.config import ColorFormat
from headrace.errors import GeometryError
from headrace.infer.geometry import Rect, croppable, fit, fit_crops
from headrace.infer.preprocess import Preprocessor
from headrace.media.frame import Frame
from headrace.media.pixel_format import ColorSpace, PixelFormat, plane_shapes
from tests.profiles import examples

HUGE = [2.0**31, -(2.0**31), 2147483520.0, 1e30, float("inf"), float("-inf"), float("nan")]


def make_frame(format: PixelFormat, width: int, height: int, seed: int = 0) -> Frame:
    rng = np.random.default_rng(seed)
    shapes = plane_shapes(format, width, height)
    planes = tuple(rng.integers(0, 256, shape, dtype=np.uint8) for shape in shapes)
    return Frame(planes, format, width, height, ColorSpace.BT709)


def one_by_one(pre: Preprocessor, frame: Frame, rects: np.ndarray):
    """The same by N calls: items, transforms or None."""
    items = np.zeros((len(rects), *pre.shape), np.float32)
    transforms = []
    for item, rect in zip(items, rects.tolist(), strict=True):
        try:
            transforms.append(pre(frame, item, Rect(*rect)))
        except GeometryError:
            transforms.append(None)
    return items, transforms


def check(pre: Preprocessor, frame: Frame, rects: np.ndarray) -> np.ndarray:
    expected, transforms = one_by_one(pre, frame, rects)
    out = np.full((len(rects), *pre.shape), np.nan, np.float32)
    crops = pre.crops(frame, rects, out)
    np.testing.assert_array_equal(out.view(np.uint32), expected.view(np.uint32))
    assert len(crops) == len(rects)
    assert crops.valid.tolist() == [t is not None for t in transforms]
    assert croppable(rects, frame.width, frame.height).tolist() == crops.valid.tolist()
    for i, transform in enumerate(transforms):
        if transform is None:
            with pytest.raises(GeometryError, match=f"crop {i} has no pixels"):
                crops.transform(i)
            continue
        assert crops.transform(i) == transform
        assert crops.ratio_x[i] == transform.ratio_x
        assert crops.ratio_y[i] == transform.ratio_y
        assert (crops.offset_x[i], crops.offset_y[i]) == (transform.offset_x, transform.offset_y)
    return crops.valid


coordinate = st.one_of(
    st.floats(-10, 60, width=32), st.floats(0, 3, width=32), st.floats(0, 3000, width=32),
    st.sampled_from([*HUGE, 0.0, 1.0, 1.5, 2.0, 3.0, 1e-30, 100000.0]),
)  # fmt: skip
plain = st.tuples(*[st.floats(0, 40, width=32)] * 2, *[st.floats(2, 30, width=32)] * 2)
rectangle = st.one_of(plain, st.tuples(*[coordinate] * 4))


@settings(max_examples=examples(150))
@given(
    st.sampled_from(list(PixelFormat)), st.tuples(st.integers(1, 48), st.integers(1, 48)),
    st.tuples(st.integers(1, 20), st.integers(1, 20)), st.lists(rectangle, max_size=8),
    st.sampled_from(list(ColorFormat)), st.integers(0, 6), st.booleans(), st.booleans(),
    st.booleans(), st.integers(1, 3), st.booleans(), st.integers(0, 99),
)  # fmt: skip
def test_the_same_bits_as_one_by_one(
    format, size, net, rects, model, filter, keep, symmetric, nhwc, threads, generic, seed
):
    offsets = [12.5] if model == ColorFormat.GRAY else [12.5, 0.25, 99]
    pre = Preprocessor(
        *net, color_format=model, scaling_filter=filter, maintain_aspect_ratio=keep,
        symmetric_padding=symmetric, order=int(nhwc), threads=threads, scale=0.017,
        offsets=offsets,
    )  # fmt: skip
    pre._generic = generic
    check(pre, make_frame(format, *size, seed), np.array(rects, np.float32).reshape(-1, 4))


@settings(max_examples=examples(400))
@given(
    rectangle, st.integers(1, 4000), st.integers(1, 4000), st.integers(1, 900),
    st.integers(1, 900), st.booleans(), st.booleans(),
)  # fmt: skip
def test_the_same_geometry_as_fit(rect, frame_width, frame_height, width, height, keep, symmetric):
    options = {"maintain_aspect_ratio": keep, "symmetric_padding": symmetric}
    crops = fit_crops(
        np.array([rect], np.float32), frame_width, frame_height, width, height, **options
    )
    try:
        expected = fit(Rect(*np.float32(rect).tolist()), width, height, **options)
    except GeometryError:
        assert not crops.valid[0]
        return
    inside = expected.src.left < frame_width and expected.src.top < frame_height
    assert crops.valid[0] == inside
    if inside:
        assert crops.transform(0) == expected


@pytest.mark.parametrize("filter", range(5))
def test_rectangles_as_large_as_numbers_get(filter):
    """The source ends beyond 32 bits: in time, in memory, and what lies outside is the border."""
    frame = make_frame(PixelFormat.I420, 40, 30)
    rects = [(0, 0, 2147483520, 2147483520), (38, 28, 2147483520, 2), (2, 4, 16, 1e9)]
    pre = Preprocessor(8, 8, scaling_filter=filter)
    start = time.perf_counter()
    assert check(pre, frame, np.array(rects, np.float32)).all()
    assert time.perf_counter() - start < 5
    corner = Frame.from_array(frame.planes[0], PixelFormat.GRAY)
    out = pre.empty(1)
    pre.crops(corner, np.array([rects[0]], np.float32), out)
    assert (out == frame.planes[0][-1, -1]).all()


def test_items_that_cannot_be_cropped_are_zeros_not_padding():
    frame = make_frame(PixelFormat.RGB, 20, 20)
    pre = Preprocessor(4, 4, maintain_aspect_ratio=True, offsets=[9, 9, 9])
    rects = np.array([[0, 0, 1, 1], [2, 2, 10, 4], [20, 0, 5, 5]], np.float32)
    out = pre.empty(3)
    crops = pre.crops(frame, rects, out)
    assert crops.valid.tolist() == [False, True, False]
    assert not out[[0, 2]].any()
    assert (out[1, :, -1] == -9).all()
    assert repr(crops) == "Crops(3, 1 valid)"


def test_nothing_to_crop():
    pre = Preprocessor(4, 4)
    crops = pre.crops(
        make_frame(PixelFormat.NV12, 20, 20), np.empty((0, 4), np.float32), pre.empty(0)
    )
    assert len(crops) == 0


def test_several_threads_at_once():
    frame = make_frame(PixelFormat.NV12, 320, 180)
    rng = np.random.default_rng(1)
    rects = rng.uniform(0, 150, (60, 4)).astype(np.float32)
    pre = Preprocessor(24, 24, maintain_aspect_ratio=True, threads=3, scaling_filter=1)
    expected, _ = one_by_one(pre, frame, rects)

    def work(_: int) -> np.ndarray:
        out = pre.empty(len(rects))
        pre.crops(frame, rects, out)
        return out

    with ThreadPoolExecutor(4) as pool:
        for out in pool.map(work, range(40)):
            np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize(
    ("rects", "out", "message"),
    [
        (np.zeros((2, 4), np.float32), np.zeros((3, 3, 8, 8), np.float32), "shape"),
        (np.zeros((2, 4), np.float32), np.zeros((2, 3, 8, 8)), "float64"),
        (np.zeros((1, 4), np.float32), np.zeros((1, 3, 8, 16), np.float32)[..., ::2], "C-contig"),
        (np.zeros(4, np.float32), np.zeros((1, 3, 8, 8), np.float32), "rects has shape"),
        (np.zeros((2, 5), np.float32), np.zeros((2, 3, 8, 8), np.float32), "rects has shape"),
    ],
)
def test_arrays_that_do_not_fit(rects, out, message):
    with pytest.raises(ValueError, match=message):
        Preprocessor(8, 8).crops(make_frame(PixelFormat.RGB, 8, 8), rects, out)
