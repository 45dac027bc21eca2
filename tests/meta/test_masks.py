"""Masks in the frame, and as COCO run lengths, against what others make of them."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
import pytest
from faster_coco_eval.core import mask as coco
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from headrace.meta import Detections, Objects, Space
from headrace.meta.masks import (
    PlacedMask,
    object_mask,
    place_mask,
    rle_decode,
    rle_encode,
)
from tests.profiles import examples

bool_masks = hnp.arrays(np.bool_, hnp.array_shapes(min_dims=2, max_dims=2, max_side=24))


def coco_counts(mask: Any) -> str:
    counts = coco.encode(np.asfortranarray(mask.astype(np.uint8)))["counts"]
    return counts if isinstance(counts, str) else counts.decode()


def resized(mask: Any, width: int, height: int, threshold: float) -> Any:
    """Return the pixels of a mask on a whole frame."""
    placed = place_mask(mask, (0, 0, width, height), width, height, threshold)
    assert placed is not None
    return placed.pixels


def test_only_what_is_above_the_threshold_is_foreground() -> None:
    mask = np.array([[0.5, 0.500001, np.nan, np.inf, -np.inf]], np.float32)
    assert resized(mask, 5, 1, 0.5).tolist() == [[False, True, False, True, False]]


@pytest.mark.parametrize(("h", "w", "height", "width"), [(28, 28, 61, 40), (3, 5, 200, 7)])
def test_resized_as_opencv_does(h: int, w: int, height: int, width: int) -> None:
    mask = np.random.default_rng(3).random((h, w), np.float32)
    slow = cv2.resize(mask, (width, height), interpolation=cv2.INTER_LINEAR)
    clear = np.abs(slow - 0.5) > 1e-4
    np.testing.assert_array_equal(resized(mask, width, height, 0.5)[clear], (slow > 0.5)[clear])


def test_not_finite_values_do_not_spread() -> None:
    mask = np.array([[np.inf, 0, 0, np.nan, 1, -np.inf]], np.float32)
    assert resized(mask, 6, 1, 0.5).tolist() == [[True, False, False, False, True, False]]


def test_placed_at_fractions_of_pixels_and_cut_at_the_frame() -> None:
    left_half = np.array([[1, 0]], np.float32)
    placed = place_mask(left_half, (-10.4, 2.5, 40, 10), 64, 8, 0.5)
    assert placed is not None
    assert (placed.left, placed.top, placed.pixels.shape) == (0, 2, (6, 30))
    # foreground left of the middle, -10.4 + 20 = 9.6
    assert placed.pixels.tolist() == [[True] * 10 + [False] * 20] * 6
    full = placed.full(64, 8)
    assert full.shape == (8, 64)
    assert full.sum() == placed.area


@pytest.mark.parametrize(
    "rect",
    [
        (70, 0, 5, 5),
        (0, -9, 5, 9),
        (1, 1, 0, 3),
        (1.6, 1, 0.3, 3),
        (np.nan, 0, 1, 1),
        (0, 0, np.inf, 1),
    ],
)
def test_nothing_to_place(rect: tuple[float, ...]) -> None:
    assert place_mask(np.ones((2, 2), np.float32), rect, 64, 48) is None
    assert place_mask(np.empty((0, 0), np.float32), (0, 0, 9, 9), 64, 48) is None


@settings(max_examples=examples(100))
@given(
    rect=st.tuples(*[st.floats(-50, 50)] * 2, *[st.floats(0.01, 200)] * 2),
    frame=st.tuples(st.integers(1, 60), st.integers(1, 40)),
)
def test_a_full_mask_covers_the_pixels_whose_centres_are_in_the_box(rect: Any, frame: Any) -> None:
    width, height = frame
    placed = place_mask(np.ones((3, 4), np.float32), rect, width, height, 0.5)
    x, y = np.arange(width) + 0.5, np.arange(height) + 0.5
    inside = ((x >= rect[0]) & (x < rect[0] + rect[2]))[None, :] & (
        (y >= rect[1]) & (y < rect[1] + rect[3])
    )[:, None]
    got = np.zeros((height, width), bool) if placed is None else placed.full(width, height)
    np.testing.assert_array_equal(got, inside)


def test_the_mask_belongs_to_the_detectors_box_and_threshold() -> None:
    objects = Objects()
    masks = [np.full((2, 2), 0.4, np.float32), np.empty((0, 0), np.float32)]
    boxes = np.array([[10, 10, 4, 4], [0, 0, 4, 4]], np.float32)
    found = Detections(boxes, np.ones(2), np.zeros(2, int), masks=masks, space=Space.FRAME)  # type: ignore[arg-type]
    objects.append(found, 7, mask_threshold=0.3)
    objects.detector_rects = objects.rects.copy()
    objects.rects[:] += 3
    placed = object_mask(objects, 0, 64, 48)
    assert placed is not None
    assert (placed.left, placed.top, placed.area) == (10, 10, 16)
    objects.mask_thresholds[7] = 0.4
    placed = object_mask(objects, 0, 64, 48)
    assert placed is not None
    assert placed.area == 0
    assert object_mask(objects, 1, 64, 48) is None


@settings(max_examples=examples(300))
@given(bool_masks)
def test_run_lengths_are_those_of_coco(mask: Any) -> None:
    counts = rle_encode(mask)
    assert counts == coco_counts(mask)
    height, width = mask.shape
    np.testing.assert_array_equal(rle_decode(counts, width, height), mask)


@settings(max_examples=examples(200))
@given(mask=bool_masks, pad=st.tuples(*[st.integers(0, 70)] * 4))
def test_a_mask_within_an_image(mask: Any, pad: Any) -> None:
    left, top, right, bottom = pad
    h, w = mask.shape
    size = (top + h + bottom, left + w + right)
    counts = rle_encode(mask, left=left, top=top, size=size)
    assert counts == coco_counts(PlacedMask(left, top, mask).full(size[1], size[0]))


@pytest.mark.parametrize("value", [False, True])
def test_large_images(value: bool) -> None:
    mask = np.full((1080, 1920), value)
    mask[500, 700:900] = not value
    counts = rle_encode(mask)
    assert counts == coco_counts(mask)
    np.testing.assert_array_equal(rle_decode(counts, 1920, 1080), mask)
    assert coco.decode({"size": [1080, 1920], "counts": counts}).sum() == mask.sum()


def test_a_mask_outside_its_image_is_refused() -> None:
    with pytest.raises(ValueError, match="not within 10x10"):
        rle_encode(np.ones((3, 3), bool), left=8, size=(10, 10))


@settings(max_examples=examples(200))
@given(st.text(max_size=40) | st.text("0123456789:;<=>?@ABCDEFGHIJKLMNO_`o", max_size=40))
def test_any_text_is_decoded_or_refused(text: str) -> None:
    try:
        mask = rle_decode(text, 6, 4)
    except ValueError:
        return
    assert mask.shape == (4, 6)
