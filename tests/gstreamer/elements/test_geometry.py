"""Images cut, turned, placed and blurred, and the elements that do so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headrace.media.draw import fonts
from headrace.media.frame import Frame
from headrace.media.pixel_format import PixelFormat, plane_shapes
from tests.gstreamer.conftest import Run, video
from tests.gstreamer.elements.test_elements_pipelines import tree, walk

FORMATS = list(PixelFormat)


@pytest.fixture
def geometry(gst: Any) -> Any:
    """The module."""
    from headrace.gstreamer.elements import geometry

    return geometry


def noise(format: PixelFormat, width: int = 30, height: int = 20) -> Frame:
    rng = np.random.default_rng(1)
    shapes = plane_shapes(format, width, height)
    planes = tuple(rng.integers(0, 256, shape, np.uint8) for shape in shapes)
    return Frame(planes, format, width, height)


def gradient(height: int = 20, width: int = 30) -> Any:
    """RGB whose red tells the column and whose green tells the row."""
    rows, columns = np.mgrid[:height, :width].astype(np.uint8)
    return np.stack([columns, rows, np.zeros_like(rows)], axis=2)


@pytest.mark.parametrize("format", FORMATS)
def test_a_cut_shows_its_pixels(geometry: Any, format: PixelFormat) -> None:
    frame = noise(format)
    found = geometry.cropped(frame, (4, 6, 10, 8))
    for i, (plane, whole) in enumerate(zip(found.planes, frame.planes, strict=True)):
        expected = whole[3:7, 2:7] if i else whole[6:14, 4:14]
        np.testing.assert_array_equal(plane, expected)


def test_a_cut_ends_at_the_edge_and_cannot_lie_outside(geometry: Any) -> None:
    from headrace.errors import MediaError

    frame = noise(PixelFormat.I420)
    cut = geometry.cropped(frame, (21, 11, 99, 99))
    assert (cut.width, cut.height) == (10, 10)
    with pytest.raises(MediaError, match="30:0:4:4 lies outside an image of 30x20"):
        geometry.cropped(frame, (30, 0, 4, 4))


TURNS = {
    0: lambda p: p,
    1: lambda p: p.transpose(1, 0, 2)[::-1],
    2: lambda p: p[::-1, ::-1],
    3: lambda p: p[::-1].transpose(1, 0, 2),
    4: lambda p: p[:, ::-1],
    5: lambda p: p[::-1, ::-1].transpose(1, 0, 2),
    6: lambda p: p[::-1],
    7: lambda p: p.transpose(1, 0, 2),
}


@pytest.mark.parametrize("method", TURNS)
def test_turns_move_pixels(geometry: Any, method: int) -> None:
    image = gradient()
    found = geometry.turned(Frame.from_array(image, PixelFormat.RGB), method)
    np.testing.assert_array_equal(found.to_rgb(), TURNS[method](image))
    for format in FORMATS:
        turned = geometry.turned(noise(format), method)
        for plane, before in zip(turned.planes, noise(format).planes, strict=True):
            expected = TURNS[method](before.reshape(*before.shape[:2], -1))
            np.testing.assert_array_equal(plane.reshape(expected.shape), expected)


@pytest.mark.parametrize(
    ("flip", "direction"),
    [(1, 3), (2, 2), (3, 1), (4, 4), (5, 7), (6, 5), (7, 6)],
)
def test_the_converter_flips_as_videoflip_does(play: Run, flip: int, direction: int) -> None:
    from headrace.gstreamer.elements.surface import MappedBuffer

    def plane(buffer: Any) -> Any:
        return MappedBuffer(buffer).data.copy()

    head = "videotestsrc num-buffers=1 pattern=pinwheel ! video/x-raw,format=RGBA,width=64 ! "
    tail = "video/x-raw,format=RGBA ! fakesink name=end"
    ours = play(f"{head} nvvideoconvert flip-method={flip} ! {tail}", end=plane)
    theirs = play(f"{head} videoflip video-direction={direction} ! {tail}", end=plane)
    assert ours.errors == theirs.errors == []
    np.testing.assert_array_equal(ours.seen["end"][0], theirs.seen["end"][0])


def test_the_converter_cuts_and_places(play: Run) -> None:
    """The left half of an image, in the right lower quarter of a black one."""
    from headrace.gstreamer.elements.surface import MappedBuffer

    ran = play(
        "videotestsrc num-buffers=1 pattern=white ! video/x-raw,format=I420,width=64,height=48 ! "
        "videobox right=-64 fill=red ! video/x-raw,width=128 ! m.sink_0 "
        "nvstreammux name=m batch-size=1 ! "
        "nvvideoconvert src-crop=0:0:64:48 dest-crop=64:24:64:24 ! "
        "video/x-raw,format=GRAY8 ! fakesink name=end",
        end=lambda buffer: MappedBuffer(buffer).data.reshape(48, 128).copy(),
    )
    assert ran.errors == []
    image = ran.seen["end"][0]
    assert image[24:, 64:].min() > 200
    assert image[:24].max() < 40
    assert image[:, :64].max() < 40


def test_a_branch_that_scales_leaves_the_other_as_it_is(play: Run) -> None:
    def size(buffer: Any) -> Any:
        batch = tree(buffer)
        (frame,) = walk(batch.frame_meta_list)
        assert frame.base_meta.batch_meta is not None
        return batch.surfaces[0].width, batch.surfaces[0].height

    ran = play(
        "videotestsrc num-buffers=3 ! video/x-raw,format=I420,width=64,height=48 ! m.sink_0 "
        "nvstreammux name=m batch-size=1 ! tee name=t "
        "t. ! queue ! nvvideoconvert ! video/x-raw(memory:NVMM),width=32,height=24 ! "
        "fakesink name=small "
        "t. ! queue ! identity sleep-time=20000 ! fakesink name=whole",
        small=size,
        whole=size,
    )
    assert ran.errors == []
    assert ran.seen["small"] == [(32, 24)] * 3
    assert ran.seen["whole"] == [(64, 48)] * 3


@pytest.mark.parametrize("format", FORMATS)
def test_a_blurred_area_shows_nothing(geometry: Any, format: PixelFormat) -> None:
    frame = noise(format, 64, 48)
    found = geometry.blurred(frame, [((11, 9, 20, 16), None)])
    before, after = (one.planes[0].reshape(48, 64, -1).astype(float) for one in (frame, found))
    inside = np.zeros((48, 64), bool)
    inside[8:26, 10:32] = True  # to even pixels
    np.testing.assert_array_equal(before[~inside], after[~inside])
    assert after[9:25, 11:31].std() < before[9:25, 11:31].std() / 3


def test_a_mask_chooses_what_is_blurred(geometry: Any) -> None:
    frame = noise(PixelFormat.GRAY, 64, 48)
    mask = np.zeros((16, 20), bool)
    mask[:, :10] = True
    after = geometry.blurred(frame, [((11, 9, 20, 16), mask)]).planes[0]
    before = frame.planes[0]
    np.testing.assert_array_equal(before[9:25, 21:31], after[9:25, 21:31])
    np.testing.assert_array_equal(before[9:25, 10], after[9:25, 10])
    assert (before[9:25, 11:21] != after[9:25, 11:21]).mean() > 0.9


def test_nvdsosd_blurs_what_it_is_told_to_and_has_a_clock(play: Run) -> None:
    from headrace.gstreamer import pyds
    from headrace.gstreamer.elements.surface import MappedBuffer

    def mark(buffer: Any) -> None:
        batch = tree(buffer)
        (frame,) = walk(batch.frame_meta_list)
        for class_id, left in enumerate((8, 40, 72)):
            obj = pyds.nvds_acquire_obj_meta_from_pool(batch)
            obj.unique_component_id, obj.class_id = 1, class_id
            rect = obj.rect_params
            rect.left, rect.top, rect.width, rect.height = left, 32, 16, 16
            pyds.nvds_add_obj_meta_to_frame(frame, obj, None)

    def seen(options: str) -> Any:
        ran = play(
            "videotestsrc num-buffers=1 pattern=checkers-1 ! "
            "video/x-raw,format=I420,width=320,height=64 ! m.sink_0 "
            f"nvstreammux name=m batch-size=1 ! nvdsosd name=osd {options} ! nvvideoconvert ! "
            "video/x-raw,format=RGBA ! fakesink name=end",
            osd=mark,
            end=lambda buffer: MappedBuffer(buffer).data.reshape(64, 320, 4)[:, :, :3].copy(),
        )
        assert ran.errors == []
        return ran.seen["end"][0].astype(int)

    plain = seen("")
    blurred = seen("blur-bbox=1 blur-on-gie-class-ids=1,0;1,2")
    changed = np.abs(plain - blurred).max(axis=2) > 20
    assert changed[34:46, 10:22].all()
    assert changed[34:46, 74:86].all()
    assert not changed[32:48, 40:56].any()
    clock = seen("display-clock=1 clock-color=0x00ff00ff x-clock-offset=100 y-clock-offset=4")
    green = (clock[:, :, 1] - clock[:, :, 0] > 100) & (clock[:, :, 1] - clock[:, :, 2] > 100)
    assert green[:30, 100:].sum() > 100
    assert not green[:, :100].any()


def test_a_wrong_list_of_classes_is_named(play: Run) -> None:
    ran = play(
        "videotestsrc num-buffers=1 ! video/x-raw,format=I420,width=64,height=48 ! m.sink_0 "
        "nvstreammux name=m ! nvdsosd name=osd blur-bbox=1 blur-on-gie-class-ids=cars ! fakesink",
        osd=lambda buffer: add_object(tree(buffer)),
    )
    assert "blur-on-gie-class-ids has 'cars'" in ran.errors[0]


def add_object(batch: Any) -> None:
    from headrace.gstreamer import pyds

    (frame,) = walk(batch.frame_meta_list)
    pyds.nvds_add_obj_meta_to_frame(frame, pyds.nvds_acquire_obj_meta_from_pool(batch), None)


@pytest.mark.parametrize("format", ["RGBA", "I420", "NV12", "RGB", "GRAY8"])
def test_a_buffer_shorter_than_its_caps_is_named(gst: Any, format: str) -> None:
    from gi.repository import Gst

    from headrace.errors import MediaError
    from headrace.gstreamer.elements.surface import CapsReader

    reader = CapsReader(Gst.Caps.from_string(f"video/x-raw,format={format},width=64,height=48"))
    for size in (0, 10, 64 * 48 - 1):
        with pytest.raises(MediaError, match=f"a buffer of {size} bytes.* is too short"):
            reader.surface(Gst.Buffer.new_allocate(None, size, None))
    whole = Gst.Buffer.new_allocate(None, 64 * 48 * 4, None)
    assert (reader.surface(whole).width, reader.surface(whole).height) == (64, 48)


def test_texts_that_no_font_has_are_named(
    play: Run, detector: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fonts, "_WIDE", ())
    monkeypatch.setattr(fonts, "_installed", dict)
    fonts._covering.cache_clear()
    labels = tmp_path / "labels.txt"
    labels.write_text("\u6c7d\n" * 6)
    config = tmp_path / "pgie.txt"
    text = detector.read_text()
    config.write_text(text.replace(f"{detector.parent}/labels.txt", str(labels)))
    ran = play(
        f"{video(4)} ! m.sink_0 nvstreammux name=m batch-size=1 width=640 height=384 ! "
        f"nvinfer config-file-path={config} ! nvvideoconvert ! nvdsosd ! fakesink"
    )
    assert ran.errors == []
    (warning,) = (text for text in ran.warnings if "no installed font" in text)
    assert "\u6c7d" in warning
