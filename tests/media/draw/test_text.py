"""Names of sources that fit into a cell and are told apart."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageDraw

from headrace.media.draw.fonts import font_for
from headrace.media.draw.text import captions, render_text


@pytest.mark.parametrize(
    ("names", "longest", "expected"),
    [
        (["/a/street.mp4", "/a/yard.mp4"], 30, ["street.mp4", "yard.mp4"]),
        (["/a/1/s.mp4", "/a/2/s.mp4", "/a/y.mp4"], 30, ["1/s.mp4", "2/s.mp4", "y.mp4"]),
        (["/a/1/x/s.mp4", "/a/2/x/s.mp4"], 30, ["1/x/s.mp4", "2/x/s.mp4"]),
        (["s.mp4", "s.mp4"], 30, ["0: s.mp4", "1: s.mp4"]),
        (["/cam_a/recording.mp4", "/cam_b/recording.mp4"], 8, ["0: ….mp4", "1: ….mp4"]),
        (["rtsp://h/1/", "camera:0", ""], 30, ["1", "camera:0", "source 2"]),
    ],
)
def test_names_are_short_and_apart(names: list[str], longest: int, expected: list[str]) -> None:
    found = captions(dict(enumerate(names)), longest)
    assert [found[i] for i in range(len(names))] == expected


@given(
    st.lists(st.text("ab/", max_size=9), min_size=1, max_size=12),
    st.integers(min_value=4, max_value=12),
)
def test_no_two_are_equal_and_none_is_long(names: list[str], longest: int) -> None:
    found = captions(dict(enumerate(names)), longest)
    assert len(set(found.values())) == len(names)
    assert all(len(text) <= max(longest, 6) for text in found.values())


@given(
    st.text(st.characters(min_codepoint=32, max_codepoint=0x17F, exclude_categories=["C"])),
    st.integers(6, 48),
    st.integers(0, 9),
)
def test_a_text_of_letters_is_the_one_that_pillow_draws(text: str, size: int, padding: int) -> None:
    box = render_text(text, "", size, (0, 0, 0, 1.0), None, padding)
    font, _ = font_for(text, "", size)
    shown = "".join(c if c.isprintable() else " " for c in text)
    ascent, descent = font.getmetrics()
    baseline = (box.height - ascent - descent) // 2 + ascent
    image = Image.new("L", (box.width, box.height))
    ImageDraw.Draw(image).text((padding, baseline), shown, fill=255, font=font, anchor="ls")
    np.testing.assert_array_equal(box.cover, np.asarray(image))
    assert box.width - round(font.getlength(shown)) - 2 * padding in (0, 1, 2)
