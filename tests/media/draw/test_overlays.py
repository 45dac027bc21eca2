"""Masks, class maps, legends, rotated boxes and classifier texts on frames."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.media import Frame, PixelFormat
from headrace.media.draw import Painter
from headrace.media.draw.colors import class_color, component_color
from headrace.media.draw.device_canvas import canvas_for
from headrace.media.draw.legend import Legend
from headrace.media.draw.overlays import Overlay, class_map_overlay, mask_overlay
from headrace.media.pixel_format import plane_shapes
from headrace.media.pixels import to_rgb
from headrace.meta import (
    ClassifierMeta,
    Detections,
    FrameMeta,
    SegmentationMeta,
    Space,
    mask_border_colors,
)
from headrace.meta.masks import PlacedMask
from tests.profiles import examples

BARE: dict[str, Any] = {"labels": False, "legend": False}


def frame_of(format: PixelFormat, width: int = 64, height: int = 48, value: int = 100) -> Frame:
    planes = [
        np.full(shape, value if i == 0 else 128, np.uint8)
        for i, shape in enumerate(plane_shapes(format, width, height))
    ]
    for plane in planes:
        plane.flags.writeable = False
    return Frame(tuple(planes), format, width, height)


def meta_of(frame: Frame, *boxes: tuple[float, ...], **extra: Any) -> FrameMeta:
    meta = FrameMeta("s", 0, 0, 0, frame.width, frame.height)
    add(meta, *boxes, **extra)
    return meta


def add(meta: FrameMeta, *boxes: tuple[float, ...], component: int = 1, **extra: Any) -> None:
    rects = np.array(boxes, np.float32).reshape(-1, 4)
    n = len(rects)
    fields = {k: extra.pop(k) for k in ("masks", "angles") if k in extra}
    classes = np.array(extra.pop("classes", [0] * n))
    found = Detections(rects, np.full(n, 0.5), classes, space=Space.FRAME, **fields)  # type: ignore[arg-type]
    meta.objects.append(found, component, **extra)


def mixed(color: Any, opacity: float, under: int = 100) -> Any:
    return np.array(color) * opacity + under * (1 - opacity)


@pytest.mark.parametrize("format", list(PixelFormat))
def test_a_mask_is_blended_within_its_box(format: PixelFormat) -> None:
    frame = frame_of(format)
    top_half = np.array([[1, 1], [0, 0]], np.float32)
    meta = meta_of(frame, (10, 10, 40, 32), masks=[top_half], mask_threshold=0.5)
    pixels = to_rgb(Painter(opacity=0.5, **BARE).draw(frame, meta)).astype(int)
    plain = to_rgb(frame)[0, 0]
    expected = mixed(class_color(0), 0.5)
    assert np.abs(pixels[16:24, 16:44] - expected).max() <= 6
    assert np.abs(pixels[30:38, 16:44] - plain).max() <= 1
    assert np.abs(pixels[:, 54:] - plain).max() <= 1
    without = to_rgb(Painter(masks=False, **BARE).draw(frame, meta)).astype(int)
    assert np.abs(without[16:24, 16:44] - plain).max() <= 1


def test_a_masks_edge_is_stronger_than_its_inside() -> None:
    pixels = np.zeros((20, 20), bool)
    pixels[5:15, 5:15] = True
    overlay = mask_overlay(PlacedMask(0, 0, pixels), (1, 2, 3), 0.4, 2)
    assert overlay.slots[5:15, 5:15].min() == 1
    assert (overlay.slots[7:13, 7:13] == 1).all()
    assert overlay.slots[5, 5:15].tolist() == overlay.slots[6, 5:15].tolist() == [2] * 10
    assert (overlay.slots[~pixels] == 0).all()
    assert overlay.opacities[2] > overlay.opacities[1] > overlay.opacities[0] == 0


def slow_class_map(found: SegmentationMeta, frame: Frame, opacity: float) -> Any:
    """Pixel by pixel, over the whole frame."""
    left, top, width, height = found.region or (0, 0, found.width, found.height)
    out = frame.planes[0].astype(float).copy()
    for y in range(frame.height):
        for x in range(frame.width):
            column = int(left + (x + 0.5) * width / frame.width)
            row = int(top + (y + 0.5) * height / frame.height)
            c = int(found.class_map[row, column])
            if c >= 0 and not (c < len(found.labels) and found.labels[c] == "background"):
                out[y, x] = mixed(component_color(found.component_id, c), opacity, out[y, x])
    return out


@pytest.mark.parametrize("region", [None, (2, 1, 7, 5)])
@pytest.mark.parametrize("labels", [(), ("background", "road")])
@pytest.mark.parametrize("component", [1, 3])
def test_a_class_map_covers_the_frame(region: Any, labels: Any, component: int) -> None:
    frame = frame_of(PixelFormat.RGB, 31, 22)
    classes = np.random.default_rng(1).integers(-1, 4, (9, 10)).astype(np.int32)
    meta = meta_of(frame)
    meta.segmentations.append(SegmentationMeta(component, 4, classes, None, region, labels))
    drawn = Painter(opacity=0.5, **BARE).draw(frame, meta).planes[0]
    expected = slow_class_map(meta.segmentations[0], frame, 0.5)
    assert np.abs(drawn - expected).max() <= 1.01


@pytest.mark.parametrize("format", [PixelFormat.I420, PixelFormat.NV12, PixelFormat.BGR])
def test_every_format_shows_the_same_class_map(format: PixelFormat) -> None:
    classes = np.zeros((4, 4), np.int32)
    classes[:, 2:] = 1
    images = []
    for kind in (PixelFormat.RGB, format):
        frame = Frame.from_array(np.full((48, 64, 3), 100, np.uint8), PixelFormat.RGB)
        if kind is not PixelFormat.RGB:
            frame = frame_of(kind, value=round(16 + 100 * 219 / 255) if kind != "bgr" else 100)
        meta = meta_of(frame)
        meta.segmentations.append(SegmentationMeta(1, 2, classes))
        images.append(to_rgb(Painter(**BARE).draw(frame, meta)).astype(int))
    assert np.abs(images[0] - images[1])[:, [*range(31), *range(33, 64)]].max() <= 5


def test_an_objects_class_map_stays_in_its_box() -> None:
    frame = frame_of(PixelFormat.RGB)
    meta = meta_of(frame, (20, 10, 20, 20))
    meta.objects.segmentations[0] = [SegmentationMeta(1, 3, np.full((8, 8), 2, np.int32))]
    pixels = Painter(opacity=0.5, **BARE).draw(frame, meta).planes[0].astype(int)
    assert np.abs(pixels[14:26, 24:36] - mixed(class_color(2), 0.5)).max() <= 1
    pixels[10:30, 20:40] = 100
    assert (pixels == 100).all()


def test_the_legend_names_classes_and_their_share() -> None:
    classes = np.zeros((10, 10), np.int32)
    classes[:, 3:] = 1
    classes[0, 0], classes[1, 0] = -1, 7
    found = SegmentationMeta(1, 3, classes, None, None, ["background", "road"])
    legend = Legend()
    overlay = class_map_overlay(found, (0, 0, 200, 100), 200, 100, 0.5)
    assert overlay is not None
    legend.add(found, overlay)
    rows = legend.rows(200 * 100)
    assert rows == [(class_color(1), "road", "70 %"), (class_color(7), "class 7", "1 %")]


def test_the_legend_is_in_the_top_right_corner_if_there_is_room() -> None:
    frame = frame_of(PixelFormat.I420, 320, 180)
    meta = meta_of(frame)
    found = SegmentationMeta(1, 30, np.arange(900, dtype=np.int32).reshape(30, 30) % 30)
    meta.segmentations.append(found)
    bare = Painter(legend=False).draw(frame, meta).planes[0].astype(int)
    changed = np.argwhere(Painter().draw(frame, meta).planes[0] != bare)
    assert changed[:, 1].min() > 160
    assert changed[:, 1].max() < 318
    assert changed[:, 0].max() < 178
    tiny = frame_of(PixelFormat.I420, 30, 20)
    meta = meta_of(tiny)
    meta.segmentations.append(found)
    np.testing.assert_array_equal(
        Painter().draw(tiny, meta).planes[0], Painter(legend=False).draw(tiny, meta).planes[0]
    )


def test_classifier_texts_are_drawn_trimmed() -> None:
    frame = frame_of(PixelFormat.RGB, 320, 180)
    meta = meta_of(frame, (50, 60, 100, 80), labels=["car"])
    for text in ("red ", "sedan "):
        meta.objects.add_classifier(0, ClassifierMeta(2, (), text))
    assert Painter(confidence=False).text(meta.objects, 0) == "car red sedan"
    exact = Painter(confidence=False, palette="config").text(meta.objects, 0)
    assert exact == "car red  sedan "
    meta.objects.texts[0] = "word " * 60
    assert len(Painter(confidence=False).text(meta.objects, 0)) == 48


def test_full_frame_texts_are_stacked_in_the_top_left() -> None:
    frame = frame_of(PixelFormat.RGB, 320, 180)
    meta = meta_of(frame)
    for component, text in ((5, "day "), (6, "rain ")):
        add(meta, (0, 0, 320, 180), classes=[-1], component=component)
        meta.objects.add_classifier(len(meta.objects) - 1, ClassifierMeta(component, (), text))
    assert Painter().text(meta.objects, 0) == "day"
    both = Painter().draw(frame, meta).planes[0].astype(int)
    bare = Painter(labels=False).draw(frame, meta).planes[0].astype(int)
    changed = np.argwhere((both != bare).any(axis=2))
    assert changed.max(axis=0)[0] > 18  # two lines
    assert changed.max(axis=0)[1] < 80
    border = (bare[90] != 100).any(axis=1)
    assert border.sum() == 2 * 4  # 6 pixels at 1080 lines
    exact = Painter(labels=False, palette="config").draw(frame, meta).planes[0]
    assert (exact[90] == (255, 0, 0)).all(axis=1).sum() == 2 * 6


def test_children_have_thin_borders_and_come_last() -> None:
    frame = frame_of(PixelFormat.RGB, 1920, 1080)
    meta = meta_of(frame, (100, 100, 400, 400))
    add(meta, (100, 200, 400, 100), component=2, parent=0)
    meta.objects.confidences[:] = (0.9, 0.1)
    pixels = Painter(labels=False).draw(frame, meta).planes[0]
    parent, child = class_color(0), component_color(2, 0)
    assert parent != child
    assert [(pixels[400, 95:110] == parent).all(axis=1).sum()] == [4]
    assert [(pixels[250, 95:110] == child).all(axis=1).sum()] == [2]


def test_a_childs_label_does_not_hide_its_parents() -> None:
    frame = frame_of(PixelFormat.RGB, 640, 360)
    meta = meta_of(frame, (100, 100, 200, 150), labels=["parcel"])
    add(meta, (104, 106, 40, 40), component=2, parent=0, labels=["A"])
    alone = meta_of(frame, (100, 100, 200, 150), labels=["parcel"])
    label = np.s_[80:100, 100:160]
    both = Painter().draw(frame, meta).planes[0][label]
    np.testing.assert_array_equal(both, Painter().draw(frame, alone).planes[0][label])
    below = Painter().draw(frame, meta).planes[0][148:160, 104:140]
    assert (below == component_color(2, 0)).all(axis=2).sum() > 100


def test_colours_of_masks_count_only_as_the_config_says() -> None:
    frame = frame_of(PixelFormat.RGB)
    mask = [np.zeros((2, 2), np.float32)]
    seeded = mask_border_colors(mask)
    meta = meta_of(frame, (10, 10, 40, 30), masks=mask, border_colors=seeded)
    auto = Painter(**BARE).draw(frame, meta).planes[0]
    assert tuple(auto[10, 20]) == class_color(0)
    exact = Painter(palette="config", **BARE).draw(frame, meta).planes[0]
    assert tuple(exact[10, 20]) == tuple(np.rint(255 * seeded[0, :3]).astype(int))
    meta.objects.border_colors = np.array([[0, 0, 1, 1]], np.float32)  # by a probe
    assert tuple(Painter(**BARE).draw(frame, meta).planes[0][10, 20]) == (0, 0, 255)


@pytest.mark.parametrize("palette", ["auto", "config"])
def test_rotated_boxes(palette: Any) -> None:
    frame = frame_of(PixelFormat.RGB, 200, 200)
    meta = meta_of(frame, (60, 90, 80, 20), angles=[90.0])
    pixels = Painter(palette=palette, scale=1, **BARE).draw(frame, meta).planes[0]
    rows, columns = np.nonzero((pixels != 100).any(axis=2))
    assert abs(rows.min() - 60) <= 1 >= abs(rows.max() - 139)
    assert abs(columns.min() - 90) <= 1 >= abs(columns.max() - 109)
    assert (pixels[100, 100] == 100).all()
    # clockwise: the right end of a wide box goes down
    meta = meta_of(frame, (60, 90, 80, 20), angles=[30.0])
    pixels = Painter(palette=palette, **BARE).draw(frame, meta).planes[0]
    rows, columns = np.nonzero((pixels != 100).any(axis=2))
    assert rows[columns > 120].mean() > 105 > 95 > rows[columns < 80].mean()


@settings(max_examples=examples(80))
@given(
    box=st.tuples(*[st.floats(-100, 100, width=32) | st.floats(width=32)] * 4),
    angle=st.floats(width=32),
    format=st.sampled_from(list(PixelFormat)),
    size=st.tuples(st.integers(1, 70), st.integers(1, 50)),
    palette=st.sampled_from(["auto", "config"]),
    region=st.none() | st.tuples(*[st.integers(0, 9)] * 4),
)
def test_anything_can_be_drawn(
    box: Any, angle: float, format: PixelFormat, size: Any, palette: Any, region: Any
) -> None:
    frame = frame_of(format, *size)
    masks = [np.full((3, 2), np.nan, np.float32), np.ones((1, 1), np.float32)]
    meta = meta_of(frame, box, (*box[2:], *box[:2]), masks=masks, angles=[angle, 0.0])
    found = SegmentationMeta(2, 3, np.arange(12, dtype=np.int32).reshape(3, 4) - 2, None, region)
    meta.segmentations.append(found)
    meta.objects.segmentations[1] = [found]
    drawn = Painter(palette=palette).draw(frame, meta)
    assert (drawn.width, drawn.height) == size


@settings(max_examples=examples(80))
@given(data=st.data(), channels=st.sampled_from([PixelFormat.RGB, PixelFormat.I420]))
def test_blending_law(data: Any, channels: PixelFormat) -> None:
    """value + (colour - value) * opacity, and nothing where the slot is see-through."""
    width, height = data.draw(st.integers(1, 20)), data.draw(st.integers(1, 20))
    x0, y0 = data.draw(st.integers(0, width - 1)), data.draw(st.integers(0, height - 1))
    xs = np.array(data.draw(st.lists(st.integers(0, 2), min_size=1, max_size=width - x0)), np.int32)
    ys = np.array(
        data.draw(st.lists(st.integers(0, 1), min_size=1, max_size=height - y0)), np.int32
    )
    slots = np.array([[0, 1, 2], [2, 0, 1]], np.uint16)
    frame = frame_of(channels, width, height, value=data.draw(st.integers(0, 255)))
    opacity = data.draw(st.floats(0, 1))
    colors = ((0, 0, 0), (200, 200, 200), (9, 9, 9))
    canvas = canvas_for(frame)
    canvas.blend(Overlay(x0, y0, slots, colors, (0.0, opacity, 1.0), (xs, ys)))
    got = canvas.frame().planes[0].astype(float).reshape(height, width, -1)
    expected = frame.planes[0].astype(float).reshape(height, width, -1).copy()
    grey = (
        [0, 200, 9]
        if channels is PixelFormat.RGB
        else [0, 16 + 200 * 219 / 255, 16 + 9 * 219 / 255]
    )
    for j, y in enumerate(ys):
        for i, x in enumerate(xs):
            share = (0, round(opacity * 128) / 128, 1)[slots[y, x]]
            under = expected[y0 + j, x0 + i]
            expected[y0 + j, x0 + i] = under + (grey[slots[y, x]] - under) * share
    assert np.abs(got - expected).max() <= 1.01


@settings(max_examples=examples(80))
@given(data=st.data(), format=st.sampled_from([PixelFormat.BGR, PixelFormat.I420]))
def test_slots_at_pixels_blend_as_a_map_of_the_frames_size_does(
    data: Any, format: PixelFormat
) -> None:
    width, height = data.draw(st.integers(1, 40)), data.draw(st.integers(1, 9))
    left, top = data.draw(st.integers(0, width - 1)), data.draw(st.integers(0, height - 1))
    classes = data.draw(st.sampled_from([3, 5]))
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    slots = rng.integers(0, classes, (height - top, width - left))
    colors = tuple(map(tuple, rng.integers(0, 256, (classes, 3)).tolist()))
    opacities = (0.0, *rng.random(classes - 1).tolist())
    xs, ys = (np.arange(n, dtype=np.int32) for n in slots.shape[::-1])
    drawn = []
    for overlay in (
        Overlay(left, top, slots.astype(np.uint8), colors, opacities),
        Overlay(left, top, slots.astype(np.uint16), colors, opacities, (xs, ys)),
    ):
        canvas = canvas_for(frame_of(format, width, height, 77))
        canvas.blend(overlay)
        drawn.append(canvas.frame().planes)
    for a, b in zip(*drawn, strict=True):
        np.testing.assert_array_equal(a, b)
