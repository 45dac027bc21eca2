"""Class colours and their conversion."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.media import ColorSpace
from headrace.media.draw.colors import class_color, readable_on, to_yuv


def test_first_classes_can_be_told_apart() -> None:
    colors = [class_color(i) for i in range(20)]
    for a, b in itertools.combinations(colors, 2):
        assert sum(abs(x - y) for x, y in zip(a, b, strict=True)) > 40


@given(st.integers(-5, 10**6))
def test_every_class_has_a_stable_strong_color(class_id: int) -> None:
    color = class_color(class_id)
    assert all(0 <= c <= 255 for c in color)
    assert max(color) >= 170
    assert class_color(class_id) == color


@pytest.mark.parametrize(
    ("rgb", "space", "expected"),
    [
        ((255, 255, 255), ColorSpace.BT601, (235, 128, 128)),
        ((0, 0, 0), ColorSpace.BT709, (16, 128, 128)),
        ((255, 0, 0), ColorSpace.BT601, (81, 90, 240)),
        ((255, 0, 0), ColorSpace.BT709, (63, 102, 240)),
        ((0, 0, 255), ColorSpace.BT601_FULL, (29, 255, 107)),
        ((255, 255, 255), ColorSpace.BT2020_FULL, (255, 128, 128)),
    ],
)
def test_yuv(rgb: tuple[int, int, int], space: ColorSpace, expected: tuple[int, int, int]) -> None:
    assert to_yuv(rgb, space) == expected


def test_text_is_readable() -> None:
    assert readable_on((255, 214, 10)) == (0, 0, 0)
    assert readable_on((0, 0, 120)) == (255, 255, 255)
