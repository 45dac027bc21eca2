"""Grids with anchors: cell by cell in plain Python."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.errors import ParserError
from tests.profiles import examples

W, H = 96, 64
V3 = [
    (10, 13), (16, 30), (33, 23), (30, 61), (62, 45), (59, 119), (116, 90), (156, 198), (373, 326),
]  # fmt: skip
TINY = [(10, 14), (23, 27), (37, 58), (81, 82), (135, 169), (344, 319)]
V2 = [
    (0.57273, 0.677385), (1.87446, 2.06253), (3.33843, 5.47434), (7.88282, 3.52778),
    (9.77052, 9.16828),
]  # fmt: skip
CLASSES = 3
THRESHOLDS = [0.2, 0.4, 0.3]


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


def boxed(cx, cy, w, h, score, k):
    x1, x2 = (min(max(cx + s * w / 2, 0), W) for s in (-1, 1))
    y1, y2 = (min(max(cy + s * h / 2, 0), H) for s in (-1, 1))
    return None if x2 - x1 < 1 or y2 - y1 < 1 else (x1, y1, x2 - x1, y2 - y1, score, k)


def activated(grids, anchors, masks, exponential=False):
    """Coarsest grid first; cell by cell; the anchors of a cell together."""
    found = []
    for planes, mask in zip(sorted(grids, key=lambda g: g.shape[1]), masks, strict=True):
        _, rows, columns = planes.shape
        stride = math.ceil(W / columns)
        for j in range(rows):
            for i in range(columns):
                for a, anchor in enumerate(mask):
                    t = [
                        float(v) for v in planes[a * (5 + CLASSES) : (a + 1) * (5 + CLASSES), j, i]
                    ]
                    k = int(np.argmax(t[5:]))
                    score = t[4] * t[5 + k]
                    if score < THRESHOLDS[k]:
                        continue
                    aw, ah = anchors[anchor]
                    w, h = (
                        (aw * stride * math.exp(t[2]), ah * stride * math.exp(t[3]))
                        if exponential
                        else (aw * t[2], ah * t[3])
                    )
                    found.append(boxed((i + t[0]) * stride, (j + t[1]) * stride, w, h, score, k))
    return [f for f in found if f]


def check(found, expected):
    got = np.column_stack([found.boxes, found.scores, found.class_ids])
    np.testing.assert_allclose(got, np.array(expected).reshape(-1, 6), atol=1e-3)


@pytest.mark.parametrize(
    ("name", "anchors", "masks", "strides"),
    [
        ("NvDsInferParseCustomYoloV3", V3, [(6, 7, 8), (3, 4, 5), (0, 1, 2)], (8, 32, 16)),
        ("NvDsInferParseCustomYoloV3_cuda", V3, [(6, 7, 8), (3, 4, 5), (0, 1, 2)], (32, 16, 8)),
        ("NvDsInferParseCustomYoloV3Tiny", TINY, [(3, 4, 5), (1, 2, 3)], (16, 32)),
        ("NvDsInferParseCustomYoloV2", V2, [range(5)], (32,)),
        ("NvDsInferParseCustomYoloV2Tiny", V2, [range(5)], (32,)),
    ],
)
@settings(max_examples=examples(10))
@given(seed=st.integers(0, 2**32))
def test_activated_grids_equal_the_oracle(parse, name, anchors, masks, strides, seed):
    rng = np.random.default_rng(seed)
    each = len(masks[0])
    grids = [rng.random((each * (5 + CLASSES), H // s, W // s)).astype(np.float32) for s in strides]
    found = parse(name, grids, THRESHOLDS, (W, H))
    check(found, activated(grids, anchors, masks, exponential="V2" in name))
    assert len(found) > 0


@pytest.mark.parametrize("layout", ["rows", "planes"])
@settings(max_examples=examples(15))
@given(seed=st.integers(0, 2**32))
def test_raw_yolov5_equals_the_oracle(parse, layout, seed):
    rng = np.random.default_rng(seed)
    grids = [rng.normal(0, 2, (3, H // s, W // s, 5 + CLASSES)) for s in (32, 8, 16)]
    grids = [g.astype(np.float32) for g in grids]
    expected = []
    for grid, mask in zip(
        sorted(grids, key=lambda g: -g.shape[1]), [(0, 1, 2), (3, 4, 5), (6, 7, 8)], strict=True
    ):
        stride = H / grid.shape[1]
        for a, j, i in np.ndindex(grid.shape[:3]):
            t = [sigmoid(v) for v in grid[a, j, i]]
            k = int(np.argmax(t[5:]))
            score = t[4] * t[5 + k]
            if score < THRESHOLDS[k]:
                continue
            aw, ah = V3[mask[a]]
            x, y = (2 * t[0] - 0.5 + i) * stride, (2 * t[1] - 0.5 + j) * stride
            expected.append(boxed(x, y, aw * (2 * t[2]) ** 2, ah * (2 * t[3]) ** 2, score, k))
    if layout == "planes":
        grids = [g.transpose(0, 3, 1, 2).reshape(-1, *g.shape[1:3]) for g in grids]
    check(parse("HeadraceParseYoloV5Raw", grids, THRESHOLDS, (W, H)), [e for e in expected if e])


def test_raw_yolov5_at_the_ends_of_the_threshold(parse):
    grids = [np.full((3, H // s, W // s, 5 + 1), -3, np.float32) for s in (8, 16, 32)]
    for grid in grids:
        grid[..., :4] = 0
    grids[0][1, 2, 3] = [0, 0, 0, 0, 30, 30]
    assert len(parse("HeadraceParseYoloV5Raw", grids, [1.0], (W, H))) == 1
    assert len(parse("HeadraceParseYoloV5Raw", grids, [0.0], (W, H))) == 3 * 126


def test_the_number_of_classes_is_said(parse):
    grids = [np.zeros((3, H // s, W // s, 85), np.float32) for s in (8, 16, 32)]
    with pytest.raises(ParserError, match="num-detected-classes=3, but the outputs hold 80"):
        parse("HeadraceParseYoloV5Raw", grids, THRESHOLDS, (W, H))
