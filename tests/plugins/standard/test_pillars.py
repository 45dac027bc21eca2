"""PointPillars' plugins, point by point."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from headrace.errors import ModelError
from tests.plugins.standard.driving import create, run

RANDOM = np.random.default_rng(3)
SIZES = [
    [3.9, 1.6, 1.5, 0.0],
    [3.9, 1.6, 1.5, 1.57],
    [0.8, 0.6, 1.7, 0.0],
    [0.8, 0.6, 1.7, 1.57],
]
HEAD: dict[str, Any] = {
    "point_cloud_range": [0.0, -4.0, -3.0, 8.0, 4.0, 1.0],
    "anchors": [v for a in SIZES for v in a], "anchor_bottom_height": [-1.8, -0.6],
    "dir_offset": 0.78, "dir_limit_offset": 0.0, "num_dir_bins": 2, "score_thresh": 0.6,
}  # fmt: skip


@pytest.mark.parametrize(("values", "features"), [(4, 9), (4, 10), (5, 10), (5, 11)])
def test_points_to_pillars(values: int, features: int) -> None:
    points = RANDOM.uniform(-1, 9, (2, 60, values)).astype(np.float32)
    counts = np.array([60, 25], np.int32)
    fields: dict[str, Any] = {
        "max_num_points_per_voxel": 3, "max_voxels": 12,
        "point_cloud_range": [0.0, 0.0, -2.0, 8.0, 6.0, 7.0], "voxel_feature_num": features,
        "voxel_size": [2.0, 1.5, 9.0],
    }  # fmt: skip
    got, places, number = run("VoxelGeneratorPlugin", points, counts, **fields)
    for b in range(2):
        pillars: dict[tuple[int, int], list[Any]] = {}
        for point in points[b, : counts[b]].astype(float):
            x, y, z = point[:3]
            if 0 <= x < 8 and 0 <= y < 6 and -2 <= z < 7:
                pillars.setdefault((int(y / 1.5), int(x / 2)), []).append(point)
        order = sorted(pillars)[:12]
        assert number[b] == len(order)
        for i, (row, column) in enumerate(order):
            assert places[b, i].tolist() == [0, 0, row, column]
            own = pillars[row, column][:3]
            mean = np.mean(own, axis=0)[:3]
            middle = [column * 2 + 1, row * 1.5 + 0.75, -2 + 4.5]
            for j, point in enumerate(own):
                want = [*point, *(point[:3] - mean), *(point[:3] - middle)][:features]
                np.testing.assert_allclose(got[b, i, j], want, rtol=1e-4, atol=1e-4)
            assert not got[b, i, len(own) :].any()
        assert not got[b, len(order) :].any()


def test_pillars_to_a_map() -> None:
    pillars = RANDOM.normal(0, 1, (2, 5, 64)).astype(np.float32)
    places = np.zeros((2, 5, 4), np.int32)
    for b in range(2):
        places[b, :, 2:] = RANDOM.permutation([(y, x) for y in range(3) for x in range(4)])[:5]
    counts = np.array([5, 2], np.int32)
    (y,) = run("PillarScatterPlugin", pillars, places, counts, dense_shape=[3, 4])
    expected = np.zeros((2, 64, 3, 4), np.float32)
    for b in range(2):
        for i in range(counts[b]):
            expected[b, :, places[b, i, 2], places[b, i, 3]] = pillars[b, i]
    np.testing.assert_array_equal(y, expected)
    with pytest.raises(ModelError, match="features of a pillar"):
        run("PillarScatterPlugin", pillars[..., :32], places, counts, dense_shape=[3, 4])


def test_boxes_of_a_map() -> None:
    height, width, anchors, classes = 3, 4, 4, 2
    shape = (2, height, width)
    scores = RANDOM.normal(0, 2, (*shape, anchors * classes)).astype(np.float32)
    codes = RANDOM.normal(0, 0.5, (*shape, anchors * 7)).astype(np.float32)
    turns = RANDOM.normal(0, 1, (*shape, anchors * 2)).astype(np.float32)
    boxes, number = run("DecodeBbox3DPlugin", scores, codes, turns, **HEAD)
    assert boxes.shape == (2, height * width * anchors, 9)
    for b in range(2):
        expected = []
        for i in range(height):
            for j in range(width):
                for a in range(anchors):
                    own = scores[b, i, j, 2 * a : 2 * a + 2].astype(float)
                    score = 1 / (1 + math.exp(-own.max()))
                    if score < 0.6:
                        continue
                    t = codes[b, i, j, 7 * a : 7 * a + 7].astype(float)
                    dx, dy, dz, r = SIZES[a]
                    diagonal = math.hypot(dx, dy)
                    d0, d1 = turns[b, i, j, 2 * a : 2 * a + 2]
                    value = t[6] + r - 0.78
                    yaw = value - math.floor(value / math.pi) * math.pi + 0.78
                    yaw += math.pi * (0 if d0 > d1 else 1)
                    expected.append([
                        j * 8 / 3 + t[0] * diagonal, -4 + i * 4 + t[1] * diagonal,
                        dz / 2 + [-1.8, -0.6][a // 2] + t[2] * dz, dx * math.exp(t[3]),
                        dy * math.exp(t[4]), dz * math.exp(t[5]), yaw, own.argmax(), score,
                    ])  # fmt: skip
        assert number[b] == len(expected) > 0
        np.testing.assert_allclose(boxes[b, : len(expected)], expected, rtol=1e-3, atol=1e-4)
        assert not boxes[b, len(expected) :].any()
    with pytest.raises(ModelError, match="heights"):
        create("DecodeBbox3DPlugin", **{**HEAD, "anchor_bottom_height": [0.0]})
