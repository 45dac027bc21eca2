"""What is drawn where, on a copy, in every pixel format."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.config import OsdSpec
from headrace.media import ColorSpace, Frame, PixelFormat
from headrace.media.draw import Painter
from headrace.media.draw.colors import class_color, to_yuv
from headrace.media.pixel_format import plane_shapes
from headrace.media.pixels import to_rgb
from headrace.meta import ClassStyle, Detections, FrameMeta, Space
from tests.profiles import examples


def frame_of(format: PixelFormat, width: int = 64, height: int = 48, value: int = 100) -> Frame:
    planes = []
    for i, shape in enumerate(plane_shapes(format, width, height)):
        planes.append(np.full(shape, value if i == 0 else 128, np.uint8))
        planes[-1].flags.writeable = False  # as decoder memory is
    return Frame(tuple(planes), format, width, height, pts_ns=5, frame=7, source="s", source_id=1)


def meta_of(
    frame: Frame, *rows: tuple[float, ...], labels: Any = (), styles: Any = None
) -> FrameMeta:
    meta = FrameMeta("s", 1, 7, 5, frame.width, frame.height)
    table = np.array(rows, np.float32).reshape(-1, 6)
    found = Detections(table[:, :4], table[:, 4], table[:, 5].astype(int), space=Space.FRAME)
    meta.objects.append(found, 1, labels=labels, styles=styles)
    return meta


@pytest.mark.parametrize("format", list(PixelFormat))
def test_a_copy_is_drawn_on(format: PixelFormat) -> None:
    frame = frame_of(format)
    before = [p.copy() for p in frame.planes]
    drawn = Painter().draw(frame, meta_of(frame, (10, 20, 30, 20, 0.9, 1), labels=["a", "b"]))
    packed = format in (PixelFormat.RGB, PixelFormat.BGR)
    assert drawn.format is (format if packed else PixelFormat.I420)
    assert (drawn.frame, drawn.pts_ns, drawn.source, drawn.source_id) == (7, 5, "s", 1)
    for plane, copy in zip(frame.planes, before, strict=True):
        np.testing.assert_array_equal(plane, copy)
    for plane in drawn.planes:
        assert not any(np.shares_memory(plane, p) for p in frame.planes)
    pixels = to_rgb(drawn).astype(int)
    color = class_color(1)
    for y, x in ((39, 12), (39, 30), (30, 10), (30, 39)):
        assert np.abs(pixels[y, x] - color).max() <= 4, (y, x)
    untouched = to_rgb(frame)[30, 20]
    assert np.abs(pixels[30, 20] - untouched).max() <= 1
    assert np.abs(pixels[30, 45] - untouched).max() <= 1


@pytest.mark.parametrize("format", [PixelFormat.I420, PixelFormat.RGB])
def test_no_objects_no_change(format: PixelFormat) -> None:
    frame = frame_of(format)
    drawn = Painter().draw(frame, meta_of(frame))
    for a, b in zip(frame.planes, drawn.planes, strict=True):
        np.testing.assert_array_equal(a, b)


def test_config_draws_what_the_metadata_say() -> None:
    """Red border of 3 pixels inside the box, nothing else when there is no label."""
    frame = frame_of(PixelFormat.RGB)
    drawn = Painter(palette="config").draw(frame, meta_of(frame, (11, 21, 20, 15, 0.9, 3)))
    pixels = drawn.planes[0]
    expected = np.full((48, 64, 3), 100, np.uint8)
    expected[21:36, 11:31] = (255, 0, 0)
    expected[24:33, 14:28] = 100
    np.testing.assert_array_equal(pixels, expected)


def test_config_text_box_is_at_its_place() -> None:
    frame = frame_of(PixelFormat.RGB, 200, 100)
    meta = meta_of(frame, (40, 50, 100, 40, 0.5, 0), labels=["car"])
    painter = Painter(palette="config")
    black = (painter.draw(frame, meta).planes[0] == 0).all(axis=2)
    rows, columns = np.nonzero(black)
    assert (columns.min(), rows.min()) == (40, 40)  # left, top - 10
    meta = meta_of(frame, (0, 3, 100, 40, 0.5, 0), labels=["car"])
    rows, columns = np.nonzero((painter.draw(frame, meta).planes[0] == 0).all(axis=2))
    assert (columns.min(), rows.min()) == (0, 0)


def test_config_colors_win_over_the_palette() -> None:
    frame = frame_of(PixelFormat.RGB)
    rows = [(4, 4, 20, 20, 0.5, 0), (34, 24, 20, 20, 0.5, 1)]
    styles = {0: ClassStyle(), 1: ClassStyle(border_color=(0, 1, 0, 1), bg_color=(0, 0, 1, 0.5))}
    pixels = Painter(labels=False).draw(frame, meta_of(frame, *rows, styles=styles)).planes[0]
    assert tuple(pixels[4, 10]) == (255, 0, 0)
    assert tuple(pixels[24, 40]) == (0, 255, 0)
    assert np.abs(pixels[34, 44].astype(int) - (50, 50, 178)).max() <= 1
    plain = {0: ClassStyle(), 1: ClassStyle()}  # nothing set: every class its own colour
    pixels = Painter(labels=False).draw(frame, meta_of(frame, *rows, styles=plain)).planes[0]
    assert tuple(pixels[24, 40]) == class_color(1)


@pytest.mark.parametrize("color", list(ColorSpace))
def test_odd_box_in_i420_has_clean_edges(color: ColorSpace) -> None:
    """Luma exactly as in RGB; a chroma sample half covered takes half the colour."""
    planes = [
        np.full(s, v, np.uint8)
        for s, v in zip(plane_shapes(PixelFormat.I420, 33, 31), (90, 128, 128), strict=True)
    ]
    frame = Frame(tuple(planes), PixelFormat.I420, 33, 31, color)
    style = {0: ClassStyle(border_width=1)}
    drawn = Painter(palette="config").draw(
        frame, meta_of(frame, (5, 7, 28, 24, 1, 0), styles=style)
    )
    y, _, v = to_yuv((255, 0, 0), color)
    luma = drawn.planes[0]
    assert (luma[7, 5:33] == y).all()
    assert (luma[7:31, 32] == y).all()
    assert luma[8, 6] == 90
    assert abs(int(drawn.planes[2][3, 8]) - (128 + v) / 2) <= 1
    assert drawn.planes[2][10, 16] == v  # the last odd column covers its sample alone
    assert drawn.planes[1][6, 8] == 128


def test_labels_stay_inside_the_frame() -> None:
    frame = frame_of(PixelFormat.I420, 320, 180)
    painter = Painter()
    plain = Painter(labels=False)
    for box in ((0, 0, 40, 30), (300, 0, 20, 20), (290, 170, 30, 10), (0, 160, 50, 20)):
        meta = meta_of(frame, (*box, 0.77, 0), labels=["a longer label"])
        changed = painter.draw(frame, meta).planes[0] != plain.draw(frame, meta).planes[0]
        # a filled box with a text in it: as large as anywhere else
        assert changed.sum() > 200, box


def test_label_text() -> None:
    frame = frame_of(PixelFormat.RGB, 320, 180)
    meta = meta_of(frame, (50, 60, 100, 80, 0.877, 0), (50, 60, 100, 80, 0.877, 5), labels=["car"])
    painter = Painter()
    assert painter.text(meta.objects, 0).split() == ["car", "0.88"]
    assert painter.text(meta.objects, 1).split() == ["class", "5", "0.88"]
    meta.objects.object_ids[0] = 12
    assert painter.text(meta.objects, 0).split() == ["car", "#12", "0.88"]
    assert Painter(confidence=False).text(meta.objects, 0) == "car #12"
    assert Painter(palette="config").text(meta.objects, 1) == ""
    without = Painter(labels=False).draw(frame, meta).planes[0]
    assert (painter.draw(frame, meta).planes[0] != without).any()


@pytest.mark.parametrize("label", ["ü", "車", "🚗", "a\nb\t\x00", "x" * 300, " ", "%s{}"])
@pytest.mark.parametrize("format", [PixelFormat.I420, PixelFormat.RGB])
def test_any_label_can_be_drawn(label: str, format: PixelFormat) -> None:
    frame = frame_of(format, 100, 60)
    for palette in ("auto", "config"):
        Painter(palette=palette).draw(frame, meta_of(frame, (5, 5, 50, 50, 1, 0), labels=[label]))


@settings(max_examples=examples(60))
@given(
    box=st.tuples(*[st.floats(-100, 100, width=32) | st.floats(width=32)] * 4),
    format=st.sampled_from(list(PixelFormat)),
    size=st.tuples(st.integers(1, 70), st.integers(1, 50)),
    palette=st.sampled_from(["auto", "config"]),
    background=st.sampled_from([None, (0.0, 0.5, 1.0, 0.3)]),
    text_background=st.sampled_from([None, (0.0, 0.0, 0.0, 0.5)]),
)
def test_any_box_can_be_drawn(
    box: Any, format: PixelFormat, size: Any, palette: Any, background: Any, text_background: Any
) -> None:
    frame = frame_of(format, *size)
    style = {0: ClassStyle(bg_color=background, text_bg_color=text_background)}
    meta = meta_of(frame, (*box, 0.5, 0), labels=["car"], styles=style)
    drawn = Painter(palette=palette).draw(frame, meta)
    assert (drawn.width, drawn.height) == size


def test_lines_and_text_grow_with_the_frame() -> None:
    def border(height: int) -> int:
        frame = frame_of(PixelFormat.RGB, height * 2, height)
        meta = meta_of(frame, (0, 0, height, height - 2, 1, 0))
        pixels = Painter(labels=False).draw(frame, meta).planes[0]
        return int((pixels[height // 2] == class_color(0)).all(axis=1).sum()) // 2

    assert [border(h) for h in (180, 432, 1080, 2160)] == [2, 2, 4, 6]


def test_transparent_text_background_shows_the_image() -> None:
    frame = frame_of(PixelFormat.I420, 200, 100)
    style = {0: ClassStyle(text_bg_color=(0, 0, 0, 0.5), border_width=0)}
    meta = meta_of(frame, (40, 50, 100, 40, 0.5, 0), labels=["car"], styles=style)
    drawn = Painter(palette="config").draw(frame, meta)
    corner = int(drawn.planes[0][40, 40])
    assert abs(corner - (100 + 16) / 2) <= 1


def test_options_replace_what_the_metadata_say() -> None:
    frame = frame_of(PixelFormat.RGB, 200, 100)
    style = {0: ClassStyle(bg_color=(0, 0, 1, 1))}
    meta = meta_of(frame, (40, 50, 100, 40, 0.5, 0), labels=["car"], styles=style)
    meta.objects.object_ids[0] = 4
    assert Painter(ids=False, confidence=False).text(meta.objects, 0) == "car"

    def drawn(**options: Any) -> Any:
        return Painter(palette="config", **options).draw(frame, meta).planes[0]

    assert (drawn(border_width=7, labels=False)[70, 40:60] == (255, 0, 0)).all(axis=1).sum() == 7
    assert (drawn(border_width=0, labels=False)[51:89, 41:139] == (0, 0, 255)).all()
    assert (drawn(boxes=False, labels=False) == 100).all()
    assert (drawn(text_bg_color=(0, 1, 0, 1))[40, 40] == (0, 255, 0)).all()
    rows = [np.ptp(np.nonzero(drawn(boxes=False, text_size=n) != 100)[0]) for n in (8, 16)]
    assert rows[1] > 1.6 * rows[0]


def test_the_osd_of_a_pipeline_file_says_what_is_drawn() -> None:
    frame = frame_of(PixelFormat.RGB, 200, 100)
    meta = meta_of(frame, (40, 50, 100, 40, 0.5, 0), labels=["car"])
    meta.objects.object_ids[0] = 4
    off = Painter.from_spec(OsdSpec(show=False)).draw(frame, meta).planes[0]
    np.testing.assert_array_equal(off, frame.planes[0])
    for spec, options in (
        (OsdSpec(show_text=False, border_width=4), {"labels": False, "border_width": 4}),
        (OsdSpec(show_ids=False), {"ids": False}),
        (OsdSpec(show_confidence=False), {"confidence": False}),
    ):
        expected = Painter(**options, scale=1).draw(frame, meta).planes[0]
        got = Painter.from_spec(spec, scale=1).draw(frame, meta).planes[0]
        np.testing.assert_array_equal(got, expected)
        assert (got != Painter(scale=1).draw(frame, meta).planes[0]).any()
