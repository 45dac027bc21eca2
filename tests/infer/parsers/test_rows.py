"""Rows that begin with the image's number or the class."""

from __future__ import annotations

import numpy as np
import pytest

# image, corners, class, score of YOLOv7; the others are turned from it
ROWS = np.array(
    [[0, 10, 16, 50, 48, 1, 0.9], [0, 0, 0, 20, 20, 0, 0.6], [0, 5, 5, 30, 30, 1, 0.3]], np.float32
)


@pytest.mark.parametrize(
    ("name", "order", "scale"),
    [
        ("HeadraceParseYoloV7Rows", [0, 1, 2, 3, 4, 5, 6], (1, 1)),
        ("HeadraceParseYoloNasRows", [0, 1, 2, 3, 4, 6, 5], (1, 1)),
        ("HeadraceParseSSDRows", [0, 5, 6, 1, 2, 3, 4], (100, 80)),
    ],
)
def test_rows_of_seven(parse, name, order, scale):
    rows = ROWS.copy()
    rows[:, 1:5] /= np.tile(scale, 2)
    found = parse(name, [rows[:, order]], [0.5, 0.4], (100, 80))
    np.testing.assert_allclose(found.boxes, [[10, 16, 40, 32], [0, 0, 20, 20]], atol=1e-4)
    assert found.class_ids.tolist() == [1, 0]
    np.testing.assert_allclose(found.scores, [0.9, 0.6])


def test_image_minus_one_ends_the_rows(parse):
    rows = ROWS.copy()
    rows[1, 0] = -1
    assert len(parse("HeadraceParseYoloV7Rows", [rows], [0, 0], (100, 80))) == 1


def test_rows_of_paddle(parse):
    rows = np.ascontiguousarray(ROWS[:, [5, 6, 1, 2, 3, 4]])
    found = parse("HeadraceParsePaddleRows", [rows, np.array([3], np.int32)], [0.5, 0.4], (100, 80))
    np.testing.assert_allclose(found.boxes, [[10, 16, 40, 32], [0, 0, 20, 20]])
    assert found.class_ids.tolist() == [1, 0]
