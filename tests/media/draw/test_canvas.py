"""Rectangles and texts on planes, against the sums that they stand for."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.media import ColorSpace, Frame, PixelFormat
from headrace.media.draw.colors import to_yuv
from headrace.media.draw.device_canvas import canvas_for
from headrace.media.draw.text import TextBox
from headrace.media.pixel_format import plane_shapes
from tests.profiles import examples

boxes = st.tuples(*[st.integers(-30, 60)] * 4)
colors = st.tuples(*[st.integers(0, 255)] * 3)


def noise(format: PixelFormat, width: int, height: int, seed: int = 0) -> Frame:
    rng = np.random.default_rng(seed)
    planes = tuple(
        rng.integers(0, 256, shape).astype(np.uint8)
        for shape in plane_shapes(format, width, height)
    )
    return Frame(planes, format, width, height, ColorSpace.BT601_FULL)


def mixed(under: Any, over: Any, alpha: Any) -> Any:
    return (under.astype(int) * (255 - alpha) + np.asarray(over) * alpha + 127) // 255


@settings(max_examples=examples(150))
@given(boxes, colors, st.floats(0, 1), st.sampled_from([PixelFormat.RGB, PixelFormat.BGR]))
def test_a_box_is_filled_inside_of_the_frame(
    box: Any, color: Any, alpha: float, format: PixelFormat
) -> None:
    frame = noise(format, 37, 29)
    canvas = canvas_for(frame)
    canvas.fill(box, color, alpha)
    expected = frame.planes[0].copy()
    area = expected[max(0, box[1]) : max(0, box[3]), max(0, box[0]) : max(0, box[2])]
    area[:] = mixed(area, color[::-1] if format is PixelFormat.BGR else color, round(alpha * 255))
    np.testing.assert_array_equal(canvas.frame().planes[0], expected)


@settings(max_examples=examples(150))
@given(boxes, colors, st.floats(0, 1), st.sampled_from([(38, 30), (37, 29)]))
def test_chroma_takes_the_share_of_its_pixels(
    box: Any, color: Any, alpha: float, size: tuple[int, int]
) -> None:
    frame = noise(PixelFormat.I420, *size)
    canvas = canvas_for(frame)
    canvas.fill(box, color, alpha)
    inside = np.zeros((size[1], size[0]), int)
    inside[max(0, box[1]) : max(0, box[3]), max(0, box[0]) : max(0, box[2])] = 1
    even = np.pad(inside, ((0, size[1] % 2), (0, size[0] % 2)), mode="edge")
    quarters = even.reshape(even.shape[0] // 2, 2, even.shape[1] // 2, 2).sum(axis=(1, 3))
    opacity = round(alpha * 255)
    for plane, drawn, value, share in zip(
        frame.planes,
        canvas.frame().planes,
        to_yuv(color, frame.color),
        (inside * opacity, quarters * opacity // 4, quarters * opacity // 4),
        strict=True,
    ):
        np.testing.assert_array_equal(drawn, mixed(plane, value, share))


@settings(max_examples=examples(100))
@given(
    st.integers(-6, 20).map(lambda v: 2 * v),
    st.integers(-6, 16).map(lambda v: 2 * v),
    colors,
    st.none() | st.tuples(colors, st.floats(0, 1)),
    st.floats(0, 1),
    st.sampled_from([PixelFormat.BGR, PixelFormat.I420]),
)
def test_a_text_lies_on_its_box_and_both_on_the_frame(
    left: int, top: int, ink: Any, paper: Any, opacity: float, format: PixelFormat
) -> None:
    cover = np.random.default_rng(1).choice([0, 0, 90, 255], (8, 12)).astype(np.uint8)
    back = None if paper is None else (*paper[0], paper[1])
    frame = noise(format, 37, 29)
    canvas = canvas_for(frame)
    canvas.paste(TextBox(cover, (*ink, opacity), back, 12, 8), left, top)
    on_frame = np.zeros((29 + 40, 37 + 40))
    on_frame[top + 20 : top + 28, left + 20 : left + 32] = cover / 255 * opacity
    inside = np.zeros_like(on_frame)
    inside[top + 20 : top + 28, left + 20 : left + 32] = 0.0 if back is None else back[3]
    over, box = (values[20 : 20 + 29, 20 : 20 + 37] for values in (on_frame, inside))
    rgb = back or (0, 0, 0, 0)
    text, under = list(ink), list(rgb[:3])
    if format is PixelFormat.BGR:
        text, under = text[::-1], under[::-1]
        planes = [(canvas.frame().planes[0][:, :, i], frame.planes[0][:, :, i]) for i in range(3)]
    else:
        text, under = (list(to_yuv(tuple(c), frame.color)) for c in (text, under))
        planes = [(canvas.frame().planes[0], frame.planes[0])]
    for i, (drawn, plane) in enumerate(planes):
        expected = plane * (1 - box) + under[i] * box
        expected = expected * (1 - over) + text[i] * over
        # Colours and opacity are whole numbers on the way.
        assert np.abs(drawn - expected).max() <= 2.5


def test_a_border_too_wide_for_its_box_fills_it() -> None:
    frame = noise(PixelFormat.RGB, 20, 20)
    for box, width in (((2, 2, 8, 8), 3), ((2, 2, 8, 18), 4)):
        filled, outlined = canvas_for(frame), canvas_for(frame)
        filled.fill(box, (9, 8, 7))
        outlined.outline(box, width, (9, 8, 7))
        np.testing.assert_array_equal(filled.frame().planes[0], outlined.frame().planes[0])
    canvas = canvas_for(frame)
    canvas.outline((2, 2, 10, 10), 2, (9, 8, 7))
    pixels = canvas.frame().planes[0]
    np.testing.assert_array_equal(pixels[4:8, 4:8], frame.planes[0][4:8, 4:8])
    assert (pixels[2:10, 2:4] == (9, 8, 7)).all()
    assert (pixels[2:4, 2:10] == (9, 8, 7)).all()
