"""Points of crops, of frames and of queries."""

from __future__ import annotations

import math

import numpy as np
import pytest


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def test_simcc_takes_the_best_bins(parse):
    x, y = np.zeros((5, 96), np.float32), np.zeros((5, 128), np.float32)
    for point in range(5):
        x[point, 10 + point], y[point, 20 + 2 * point] = 0.9, 0.8
    found = parse("HeadraceParseSimCC", {"simcc_x": x, "simcc_y": y}, [0.5], (48, 64))
    assert found.boxes.tolist() == [[0, 0, 48, 64]]
    expected = [[(10 + p) / 2, (20 + 2 * p) / 2, 0.8] for p in range(5)]
    np.testing.assert_allclose(found.keypoints[0], expected, rtol=1e-6)
    assert found.scores[0] == pytest.approx(0.8)
    assert not len(parse("HeadraceParseSimCC", {"simcc_x": x, "simcc_y": y}, [0.85], (48, 64)))


@pytest.mark.parametrize(("points", "score"), [(21, 0.7), (468, sigmoid(0.7))])
def test_landmarks_of_a_crop(parse, points, score):
    values = np.arange(3 * points, dtype=np.float32)
    outputs = [values, np.float32([0.7])]
    outputs += [np.float32([0.2]), values * 0] if points == 21 else []
    found = parse("HeadraceParseLandmarks", outputs, [0.5], (224, 224))
    assert found.scores[0] == pytest.approx(score)
    np.testing.assert_allclose(found.keypoints[0, :, :2], values.reshape(-1, 3)[:, :2])


def test_blaze_pose(parse):
    values = np.random.default_rng(0).normal(0, 3, 195).astype(np.float32)
    outputs = [values, np.float32([0.9]), np.zeros((8, 8, 1), np.float32),
               np.zeros((4, 4, 39), np.float32), np.zeros(117, np.float32)]  # fmt: skip
    found = parse("HeadraceParseBlazePose", outputs, [0.5], (256, 256))
    assert found.keypoints.shape == (1, 39, 3)
    x, y, _, visible, _ = values[35:40]
    np.testing.assert_allclose(found.keypoints[0, 7], [x, y, sigmoid(visible)], rtol=1e-4)


def test_movenet(parse):
    values = np.random.default_rng(1).uniform(0, 1, (1, 17, 3)).astype(np.float32)
    found = parse("HeadraceParseMoveNet", [values], [0.2], (192, 96))
    y, x, score = values[0, 4]
    np.testing.assert_allclose(found.keypoints[0, 4], [x * 192, y * 96, score], rtol=1e-5)
    rows = np.random.default_rng(2).uniform(0, 1, (6, 56)).astype(np.float32)
    rows[:, 51:55], rows[:, 55] = [0.1, 0.2, 0.5, 0.6], [0.9, 0.1, 0.8, 0, 0.7, 0]
    found = parse("HeadraceParseMoveNetMany", [rows], [0.5], (200, 100))
    assert found.keypoints.shape == (3, 17, 3)
    np.testing.assert_allclose(found.boxes, [[40, 10, 80, 40]] * 3, atol=1e-3)
    np.testing.assert_allclose(
        found.keypoints[1, 2, :2], [rows[2, 7] * 200, rows[2, 6] * 100], rtol=1e-5
    )


def test_final_poses_of_rtmo(parse):
    dets = np.float32([[10, 20, 50, 60, 0.9], [0, 0, 5, 5, 0.1]])
    points = np.random.default_rng(3).uniform(0, 60, (2, 17, 3)).astype(np.float32)
    found = parse("HeadraceParseDetsPoints", {"dets": dets, "keypoints": points}, [0.5], (64, 64))
    assert found.boxes.tolist() == [[10, 20, 40, 40]]
    np.testing.assert_allclose(found.keypoints, points[:1])


def test_queries_with_points(parse):
    logits = np.float32([[3, 1], [3, -2]])
    points = np.random.default_rng(4).uniform(0.2, 0.8, (2, 34)).astype(np.float32)
    outputs = {"pred_logits": logits, "pred_keypoints": points}
    found = parse("HeadraceParseDetrPoints", outputs, [0.5], (100, 50))
    pairs = points[0].reshape(17, 2) * [100, 50]
    low, high = pairs.min(axis=0), pairs.max(axis=0)
    np.testing.assert_allclose(found.boxes, [[*low, *(high - low)]], rtol=1e-5)
    assert found.scores[0] == pytest.approx(sigmoid(1))
    values = np.random.default_rng(5).uniform(-1, 1, (2, 5, 8)).astype(np.float32)
    outputs = {"dets": np.float32([[0.5, 0.5, 0.2, 0.4]] * 2), "labels": logits,
               "keypoints": values}  # fmt: skip
    found = parse("HeadraceParseDetrPose", outputs, [0.5, 0.5], (100, 50))
    assert found.class_ids.tolist() == [0, 0]
    np.testing.assert_allclose(found.boxes, [[40, 15, 20, 20]] * 2, atol=1e-4)
    x, y, visible = values[1, 3, :3]
    np.testing.assert_allclose(
        found.keypoints[1, 3], [x * 100, y * 50, sigmoid(visible)], rtol=1e-4
    )
