"""Many sources on one image, and their metadata with them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.errors import MediaError
from headrace.media import ColorSpace, Frame, PixelFormat
from headrace.media.draw import Painter, Tiler
from headrace.media.pixel_format import plane_shapes
from headrace.media.pixels import to_rgb
from headrace.meta import ClassifierMeta, Detections, FrameMeta, SegmentationMeta, Space
from tests.profiles import examples


def pair(
    source: int,
    value: int = 100,
    *,
    size: tuple[int, int] = (64, 36),
    format: PixelFormat = PixelFormat.I420,
    pts_ns: int = 0,
    color: ColorSpace = ColorSpace.BT601,
) -> tuple[Frame, FrameMeta]:
    planes = tuple(
        np.full(shape, value if i == 0 else 128, np.uint8)
        for i, shape in enumerate(plane_shapes(format, *size))
    )
    frame = Frame(planes, format, *size, color, pts_ns=pts_ns, source_id=source)
    return frame, FrameMeta(f"dir/s{source}.mp4", source, 5, pts_ns, *size)


def add(meta: FrameMeta, *boxes: Any, **extra: Any) -> None:
    n = len(boxes)
    fields = {k: extra.pop(k) for k in ("masks", "angles") if k in extra}
    ids = np.arange(n)
    found = Detections(np.array(boxes), np.full(n, 0.5), ids, space=Space.FRAME, **fields)  # type: ignore[arg-type]
    meta.objects.append(found, extra.pop("component", 1), **extra)


@pytest.mark.parametrize(
    ("count", "shape", "grid"),
    [(1, 16 / 9, (1, 1)), (2, 16 / 9, (1, 2)), (3, 16 / 9, (2, 2)), (4, 16 / 9, (2, 2)),
     (5, 16 / 9, (2, 3)), (8, 16 / 9, (3, 3)), (16, 16 / 9, (4, 4)), (2, 4.0, (2, 1)),
     (3, 0.5, (1, 3))],
)  # fmt: skip
def test_images_are_as_large_as_they_can_be(count: int, shape: float, grid: Any) -> None:
    assert Tiler().grid(count, shape) == grid


def test_a_given_side_of_the_grid_is_kept() -> None:
    assert Tiler(rows=1).grid(5) == (1, 5)
    assert Tiler(columns=2).grid(5) == (3, 2)
    assert Tiler(rows=2, columns=3).grid(17) == (2, 3)


def test_frames_are_in_reading_order_of_their_sources() -> None:
    tiler = Tiler(2, 2, 128, 72, captions=False)
    frame, meta = tiler.compose([pair(7, 200), pair(2, 40), pair(3, 120)])
    luma = frame.planes[0]
    assert (frame.width, frame.height, frame.format) == (128, 72, PixelFormat.I420)
    cells = [luma[:36, :64], luma[:36, 64:], luma[36:, :64], luma[36:, 64:]]
    assert [int(np.median(c)) for c in cells[:3]] == [40, 120, 200]
    assert cells[3].max() < 40
    assert (meta.width, meta.height, meta.source, len(meta.objects)) == (128, 72, "tiles", 0)


def test_cells_are_kept_when_a_source_ends_or_comes_late() -> None:
    tiler = Tiler(width=128, height=72, captions=False)
    first, _ = tiler.compose([pair(0, 200), pair(1, 150), pair(2, 100), pair(3, 60)])
    later, _ = tiler.compose([pair(0, 200), pair(2, 100)])
    assert np.array_equal(later.planes[0][:36, :64], first.planes[0][:36, :64])
    assert np.array_equal(later.planes[0][36:, :64], first.planes[0][36:, :64])
    assert later.planes[0][:36, 64:].max() < 40


def test_a_cell_of_a_full_grid_is_used_again() -> None:
    """Of a source that ended, in its place; of one that was removed, as the others move up."""
    tiler = Tiler(1, 3, 192, 36, captions=False)

    def shown(*pairs: Any) -> list[int]:
        luma = tiler.compose(list(pairs))[0].planes[0]
        return [int(np.median(luma[:, left : left + 64])) for left in (0, 64, 128)]

    assert shown(pair(0, 200), pair(1, 150), pair(2, 100)) == [200, 150, 100]
    tiler.end(1, "one", "ended")
    assert shown(pair(0, 200), pair(2, 100), pair(3, 60)) == [200, 60, 100]
    tiler.end(0, "zero", "removed")
    assert shown(pair(2, 100), pair(3, 60), pair(4, 230)) == [100, 60, 230]
    assert tiler.notices == []


def test_a_service_that_outlives_its_sources_keeps_few_dark_cells() -> None:
    tiler = Tiler(captions=False)
    for number in range(1, 30):
        image, _ = tiler.compose([pair(0, 200), pair(number, 60)])
        tiler.end(number, f"s{number}.mp4")
    assert (image.planes[0][:240, :320] > 180).mean() > 0.7  # one of six, not of thirty


def test_shape_is_kept_or_stretched() -> None:
    square = pair(0, 200, size=(40, 40))
    kept, _ = Tiler(width=128, height=64).compose([square])
    assert (kept.planes[0][:, 34:94] == 200).all()
    assert kept.planes[0][:, :30].max() < 40
    stretched, _ = Tiler(width=128, height=64, stretch=True).compose([square])
    assert (stretched.planes[0] == 200).all()


@settings(max_examples=examples(60))
@given(
    count=st.integers(1, 7),
    size=st.tuples(st.integers(1, 300), st.integers(1, 300)),
    out=st.tuples(st.integers(2, 300), st.integers(2, 300)),
    format=st.sampled_from(list(PixelFormat)),
    stretch=st.booleans(),
)
def test_a_box_stays_on_what_it_shows(
    count: int, size: Any, out: Any, format: PixelFormat, stretch: bool
) -> None:
    """The whole-frame rectangle of each source covers its image, and nothing else does."""
    tiler = Tiler(width=out[0], height=out[1], stretch=stretch, captions=False)
    pairs = [pair(i, 200, size=size, format=format) for i in range(count)]
    for _, meta in pairs:
        add(meta, (0, 0, *size))
    frame, meta = tiler.compose(pairs)
    covered = np.zeros(frame.planes[0].shape, bool)
    for left, top, width, height in meta.objects.rects.tolist():
        x0, y0, x1, y1 = (round(v) for v in (left, top, left + width, top + height))
        assert abs(left - x0) + abs(top + height - y1) < 1e-3
        assert 0 <= x0 < x1 <= frame.width
        assert 0 <= y0 < y1 <= frame.height
        covered[y0:y1, x0:x1] = True
    if out[0] >= 16 * count and out[1] >= 16 * count:
        assert (frame.planes[0][covered] > 100).all()
        assert (frame.planes[0][~covered] < 100).all()
        assert len(meta.objects) == count


def test_everything_about_objects_comes_along() -> None:
    left, right = pair(0, size=(100, 50)), pair(1, size=(100, 50))
    add(left[1], (10, 10, 20, 20), (0, 0, 5, 5), labels=["a", "b"])
    add(right[1], (50, 25, 10, 10), labels=["a", "b"], masks=[np.ones((2, 2))], angles=[30])
    add(right[1], (52, 26, 4, 4), component=2, parent=0, labels=["c"], mask_threshold=0.5)
    right[1].objects.object_ids[:] = (7, 9)
    right[1].objects.detector_rects = right[1].objects.rects - 10
    info = ClassifierMeta(3, (), "red ")
    right[1].objects.add_classifier(0, info)
    right[1].objects.segmentations[1] = [SegmentationMeta(4, 2, np.zeros((2, 2), np.int32))]
    before = right[1].objects.rects.copy()
    meta = Tiler(1, 2, 400, 100).compose([left, right])[1]
    o = meta.objects
    np.testing.assert_allclose(
        o.rects, [[20, 20, 40, 40], [0, 0, 10, 10], [300, 50, 20, 20], [304, 52, 8, 8]]
    )
    assert o.detector_rects is not None
    np.testing.assert_allclose(o.detector_rects[[0, 2]], [[20, 20, 40, 40], [280, 30, 0, 0]])
    assert o.parents.tolist() == [-1, -1, -1, 2]
    assert [x.display_text for x in o] == ["a", "b", "a red ", "c"]
    assert o[2].classifiers == [info]
    assert [x.mask is not None for x in o] == [False, False, True, False]
    assert [x.angle for x in o] == [0, 0, 30, 0]
    assert o.object_ids[2:].tolist() == [7, 9]
    assert len(o[3].segmentations) == 1
    np.testing.assert_array_equal(right[1].objects.rects, before)


def test_class_maps_become_one_for_each_model() -> None:
    pairs = [pair(i) for i in range(3)]
    for i, (_, meta) in enumerate(pairs[:2]):
        found = SegmentationMeta(2, 3, np.full((9, 16), i, np.int32), labels=["x", "y"])
        meta.segmentations.append(found)
    meta = Tiler(2, 2, 128, 72).compose(pairs)[1]
    (found,) = meta.segmentations
    assert found.labels == ["x", "y"]
    assert found.class_map.shape == (36, 64)
    assert (found.class_map[:18, :32] == 0).all()
    assert (found.class_map[:18, 32:] == 1).all()
    assert (found.class_map[18:] == -1).all()


def test_times_and_numbers_rise() -> None:
    tiler = Tiler()
    metas = [tiler.compose([pair(0, pts_ns=t), pair(1, pts_ns=t - 5)])[1] for t in (10, 20, 20, 5)]
    assert [m.pts_ns for m in metas] == [10, 20, 21, 22]
    assert [m.frame for m in metas] == [0, 1, 2, 3]


@pytest.mark.parametrize("format", list(PixelFormat))
@pytest.mark.parametrize("color", [ColorSpace.BT709_FULL, ColorSpace.BT2020])
def test_colours_are_kept_whatever_the_first_source_has(
    format: PixelFormat, color: ColorSpace
) -> None:
    """A source in another matrix looks like itself beside the first."""
    frame, meta = pair(1, 150, format=format, color=color, size=(64, 36))
    first = pair(0, color=ColorSpace.BT601)
    got = to_rgb(Tiler(1, 2, 128, 36, captions=False).compose([first, (frame, meta)])[0])
    expected = to_rgb(frame)[10, 10].astype(int)
    assert np.abs(got[5:30, 70:120].astype(int) - expected).max() <= 4


def test_names_are_written_when_there_are_several() -> None:
    alone = Tiler(1, 2, 640, 180).compose([pair(0)])[0].planes[0]
    assert len(np.unique(alone)) <= 4
    both = Tiler(1, 2, 640, 180).compose([pair(0), pair(1)])[0].planes[0]
    assert [(both[:, x : x + 320] > 180).any() for x in (0, 320)] == [True, True]
    plain = Tiler(1, 2, 640, 180, captions=False).compose([pair(0), pair(1)])[0].planes[0]
    assert not (plain > 180).any()


def test_the_cell_of_a_source_that_ended_says_why() -> None:
    tiler = Tiler(1, 3, 960, 180)
    tiler.compose([pair(0), pair(1)])

    def cells(*pairs: Any) -> list[Any]:
        planes = tiler.compose(pairs)[0].planes[0]
        return [planes[:, x : x + 320] for x in (0, 320, 640)]

    dark = cells(pair(0))
    assert not (dark[1] > 180).any()
    tiler.end(1, "dir/s1.mp4", "failed: the connection is lost and not back after 3 attempts")
    tiler.end(2, "camera:0")  # never gave a frame
    said = cells(pair(0))
    assert (said[1] > 180).sum() > (said[2] > 180).sum() > 0
    assert np.array_equal(said[0], dark[0])
    back = cells(pair(0), pair(1))
    assert (back[1] > 180).sum() < (said[1] > 180).sum()


def test_sources_beyond_the_grid_are_named() -> None:
    tiler = Tiler(1, 2)
    for _ in range(3):
        tiler.compose([pair(i) for i in range(3)])
    assert [f"{n:line}" for n in tiler.notices] == [
        "dir/s2.mp4: it is not shown: the tiles have 1 x 2 cells"
    ]


@pytest.mark.parametrize("bad", [{"rows": 0}, {"columns": -1}, {"width": 1}, {"height": 10**6}])
def test_sizes_that_cannot_be(bad: Any) -> None:
    with pytest.raises(MediaError, match="expected"):
        Tiler(**bad)


def test_a_composed_image_can_be_drawn_on_and_nothing_can_be_composed() -> None:
    frame, meta = Tiler().compose([])
    assert (frame.width, len(meta.objects)) == (1280, 0)
    pairs = [pair(0), pair(1)]
    add(pairs[1][1], (0, 0, 30, 30), labels=["a"])
    frame, meta = Tiler(1, 2).compose(pairs)
    drawn = Painter().draw(frame, meta)
    assert (drawn.planes[0][:, 640:] != frame.planes[0][:, 640:]).any()
    assert np.array_equal(drawn.planes[0][:, :600], frame.planes[0][:, :600])
