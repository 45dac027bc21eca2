"""Heads of corner boxes before suppression: known objects among noise, read back."""

from __future__ import annotations

import numpy as np
import pytest

SIZE = (96, 64)
BOXES = np.float32([[10, 20, 30, 24], [50, 8, 40, 50], [0, 0, 12, 10]])  # left, top, width, height
SCORES = np.float32([0.9, 0.6, 0.3])
CLASSES = np.array([1, 0, 1])
T = (0.5, 0.25)
ROWS = 40


def scores():
    """(N, 2): the objects are the first rows, the others have next to nothing."""
    table = np.full((ROWS, 2), 0.01, "f4")
    table[np.arange(3), CLASSES] = SCORES
    return table


def corners():
    table = np.random.default_rng(0).uniform(0, 60, (ROWS, 4)).astype("f4")
    table[:3] = np.column_stack([BOXES[:, :2], BOXES[:, :2] + BOXES[:, 2:]])
    return table


def same(found):
    np.testing.assert_allclose(found.boxes, BOXES, atol=1e-4)
    np.testing.assert_allclose(found.scores, SCORES)
    assert found.class_ids.tolist() == CLASSES.tolist()


@pytest.mark.parametrize("columns", [False, True])
def test_rows_and_columns(parse, columns):
    table = np.column_stack([corners(), scores()])
    same(parse("HeadraceParseYoloCorners", [table.T if columns else table], T, SIZE))


def test_the_level_of_fcos_is_no_objectness(parse):
    level = np.arange(ROWS, dtype="f4")[:, None] % 5
    same(parse("HeadraceParseFcos", [np.column_stack([corners(), level, scores()])], T, SIZE))


def test_poses_of_yolo_nas(parse):
    rng = np.random.default_rng(1)
    points = rng.uniform(0, 60, (ROWS, 4, 2)).astype("f4")
    visible = rng.uniform(0, 1, (ROWS, 4)).astype("f4")
    outputs = {"boxes": corners(), "scores": scores(), "keypoints_xy": points}
    found = parse("HeadraceParseYoloNasPose", outputs | {"keypoints_conf": visible}, T, SIZE)
    same(found)
    np.testing.assert_allclose(found.keypoints[..., :2], points[:3])
    np.testing.assert_allclose(found.keypoints[..., 2], visible[:3])


def test_rotated_boxes_beside_their_scores(parse):
    table = np.zeros((ROWS, 5), "f4")
    table[:3, :4] = np.column_stack([BOXES[:, :2] + BOXES[:, 2:] / 2, BOXES[:, 2:]])
    table[:3, 4] = 0.5, -1.25, 3.0
    found = parse("HeadraceParseBoxesScoresObb", [table, scores()], T, SIZE)
    same(found)
    assert found.angles.tolist() == [0.5, -1.25, 3.0]


@pytest.mark.parametrize("columns", [False, True])
def test_boxes_divided_by_the_size(parse, columns):
    boxes = corners()
    centres = np.column_stack([(boxes[:, :2] + boxes[:, 2:]) / 2, boxes[:, 2:] - boxes[:, :2]])
    table = np.column_stack([centres / np.float32([*SIZE, *SIZE]), scores()]).astype("f4")
    same(parse("HeadraceParseYoloV8Unit", [table.T if columns else table], T, SIZE))
