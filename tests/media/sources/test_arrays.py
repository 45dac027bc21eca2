"""Images of one's own as a source."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from PIL import Image

from headrace.errors import MediaError
from headrace.media import ArraySource, Frame, PixelFormat

IMAGE = np.arange(4 * 6 * 3, dtype=np.uint8).reshape(4, 6, 3)


def test_arrays_become_numbered_frames() -> None:
    source = ArraySource([IMAGE] * 3, fps=10, name="mine", source_id=2)
    assert (source.width, source.height, source.frames, source.fps) == (6, 4, 3, 10)
    frames = list(source)
    assert [(f.frame, f.pts_ns) for f in frames] == [(0, 0), (1, 100_000_000), (2, 200_000_000)]
    assert {(f.source, f.source_id, f.format) for f in frames} == {("mine", 2, PixelFormat.BGR)}
    assert frames[0].planes[0] is IMAGE, "not copied"


@pytest.mark.parametrize("live", [False, True])
def test_a_generator_is_read_as_it_is_asked(live: bool) -> None:
    given = []

    def images() -> Any:
        for i in range(3):
            given.append(i)
            yield np.full((2 + i, 2, 3), i, np.uint8)

    source = ArraySource(images(), live=live)
    assert (source.frames, source.live, given) == (None, live, [])
    assert [f.height for f in source] == [2, 3, 4]
    assert source.height == 2


def test_an_array_of_images_and_gray_and_rgb() -> None:
    assert len(list(ArraySource(np.stack([IMAGE] * 5)))) == 5
    (gray,) = ArraySource([IMAGE[:, :, 0]], format="gray")
    assert (gray.format, gray.planes[0].shape) == (PixelFormat.GRAY, (4, 6))
    assert gray.planes[0].tolist() == IMAGE[:, :, 0].tolist()
    (rgb,) = ArraySource([IMAGE], format="rgb")
    assert rgb.format == PixelFormat.RGB


def test_frames_keep_their_pixels_and_rising_times() -> None:
    given = [Frame.from_array(IMAGE, PixelFormat.RGB, pts_ns=t, frame=9) for t in (0, 0, 7, 5)]
    frames = list(ArraySource(given, fps=1e9))
    assert [f.frame for f in frames] == [0, 1, 2, 3]
    assert [f.pts_ns for f in frames] == [0, 1, 7, 8]
    assert frames[1].planes is given[1].planes
    assert frames[1].format == PixelFormat.RGB


@pytest.mark.parametrize(
    ("item", "text"),
    [
        (IMAGE.astype(np.float32), "is float32 of shape (4, 6, 3)"),
        (IMAGE.astype(np.float32), "(item * 255)"),
        (IMAGE[:, :, 0], 'format="gray"'),
        (IMAGE.transpose(2, 0, 1), "item.transpose(1, 2, 0)"),
        (np.zeros((4, 6, 4), np.uint8), "item[:, :, :3]"),
        (np.zeros((0, 6, 3), np.uint8), "shape (0, 6, 3)"),
        ("a.jpg", "str is not an array"),
        (None, "NoneType is not an array"),
        (Image.new("RGB", (6, 4)), "numpy.asarray(item) makes one of it"),
    ],
)
def test_an_item_that_is_no_image_is_told(item: Any, text: str) -> None:
    source = ArraySource(iter([IMAGE, item]), name="mine")
    frames = iter(source)
    next(frames)
    with pytest.raises(MediaError) as caught:
        next(frames)
    assert str(caught.value).startswith("mine, item 1: ")
    assert text in str(caught.value)


@pytest.mark.parametrize("items", ["a.mp4", 5, None, b"x", Frame.from_array(IMAGE)])
def test_what_gives_no_images_is_refused(items: Any) -> None:
    with pytest.raises(MediaError, match="is nothing that gives images"):
        ArraySource(items)


@pytest.mark.parametrize("options", [{"fps": 0}, {"fps": -1.0}, {"format": "i420"}, {"format": 3}])
def test_bad_options_are_refused(options: Any) -> None:
    with pytest.raises(MediaError, match=next(iter(options))):
        ArraySource([IMAGE], **options)
