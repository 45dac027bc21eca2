"""Tables and maps of levels, beside loops over the cells."""

from __future__ import annotations

import math

import numpy as np
import pytest

SIZE = 64
STRIDES = (8, 16, 32, 64)


def expected_distance(logits: np.ndarray) -> float:
    powers = [math.exp(float(v)) for v in logits]
    return sum(i * p for i, p in enumerate(powers)) / sum(powers)


def clipped(x1: float, y1: float, x2: float, y2: float) -> list[float]:
    x1, y1, x2, y2 = (min(max(v, 0), SIZE) for v in (x1, y1, x2, y2))
    return [x1, y1, x2 - x1, y2 - y1]


def from_cells(levels, thresholds, offset: float) -> list[list[float]]:
    """Boxes of (stride, scores (n, C), distances (n, 4) in strides)."""
    boxes = []
    for stride, scores, sides in levels:
        columns = SIZE // stride
        for i, (chances, (left, top, right, bottom)) in enumerate(zip(scores, sides, strict=True)):
            best = int(chances.argmax())
            x, y = (i % columns + offset) * stride, (i // columns + offset) * stride
            box = clipped(x - left * stride, y - top * stride,
                          x + right * stride, y + bottom * stride)  # fmt: skip
            if chances[best] >= thresholds[best] and min(box[2:]) >= 1:
                boxes.append([*box, float(chances[best]), best])
    return boxes


def levels_of(rng, bins: int, strides=STRIDES):
    levels = []
    for stride in strides:
        count = (SIZE // stride) ** 2
        scores = rng.uniform(0, 1, (count, 3)).astype(np.float32)
        logits = rng.normal(0, 1, (count, 4 * bins)).astype(np.float32)
        sides = [[expected_distance(part) for part in row.reshape(4, bins)] for row in logits]
        levels.append((stride, scores, logits, sides))
    return levels


def check(found, expected):
    assert len(expected) > 5
    got = np.column_stack([found.boxes, found.scores, found.class_ids])
    np.testing.assert_allclose(got, expected, atol=2e-3)


THRESHOLDS = [0.7, 0.8, 0.75]


def test_nanodet(parse):
    levels = levels_of(np.random.default_rng(0), 8)
    table = np.concatenate([np.concatenate([s, d], axis=1) for _, s, d, _ in levels])
    found = parse("HeadraceParseNanoDet", [table], THRESHOLDS, (SIZE, SIZE))
    check(found, from_cells([(n, s, d) for n, s, _, d in levels], THRESHOLDS, 0))


def test_picodet_without_its_last_step(parse):
    levels = levels_of(np.random.default_rng(1), 8)
    outputs = [s for _, s, _, _ in levels] + [d for _, _, d, _ in levels]
    found = parse("HeadraceParsePicoDetRaw", outputs, THRESHOLDS, (SIZE, SIZE))
    check(found, from_cells([(n, s, d) for n, s, _, d in levels], THRESHOLDS, 0.5))


@pytest.mark.parametrize("sums", [False, True])
@pytest.mark.parametrize("bins", [16, 1])
def test_maps_of_distances(parse, bins, sums):
    rng, outputs, levels = np.random.default_rng(2), [], []
    for stride, scores, logits, sides in levels_of(rng, bins, STRIDES[:3]):
        side = SIZE // stride
        values = logits if bins > 1 else np.abs(logits)
        levels.append((stride, scores, sides if bins > 1 else values))
        outputs += [values.T.reshape(-1, side, side), scores.T.reshape(-1, side, side)]
        outputs += [scores.sum(axis=1).reshape(1, side, side)] if sums else []
    found = parse("HeadraceParseDistanceMaps", outputs, THRESHOLDS, (SIZE, SIZE))
    check(found, from_cells(levels, THRESHOLDS, 0.5))


def test_joined_maps(parse):
    rng, outputs, levels = np.random.default_rng(3), [], []
    for stride in STRIDES[:3]:
        side = SIZE // stride
        scores = rng.uniform(0, 1, (side * side, 3)).astype(np.float32)
        sides = rng.uniform(0.2, 2, (side * side, 4)).astype(np.float32)
        best = scores.max(axis=1, keepdims=True)
        table = np.concatenate([sides, best, scores], axis=1)
        outputs.append(np.ascontiguousarray(table.T).reshape(-1, side, side))
        levels.append((stride, scores, sides))
    found = parse("HeadraceParseJoinedMaps", outputs, THRESHOLDS, (SIZE, SIZE))
    check(found, from_cells(levels, THRESHOLDS, 0.5))


def test_maps_of_yolox(parse):
    rng, outputs, expected = np.random.default_rng(4), [], []
    for stride in STRIDES[:3]:
        side = SIZE // stride
        grid = rng.uniform(0, 1, (8, side, side)).astype(np.float32)
        outputs.append(grid)
        for row in range(side):
            for column in range(side):
                x, y, w, h, there, *chances = (float(v) for v in grid[:, row, column])
                best = int(np.argmax(chances))
                cx, cy = (x + column) * stride, (y + row) * stride
                w, h = math.exp(w) * stride / 2, math.exp(h) * stride / 2
                score = there * chances[best]
                if score >= (0.4, 0.5, 0.6)[best]:
                    expected.append([*clipped(cx - w, cy - h, cx + w, cy + h), score, best])
    check(parse("HeadraceParseYoloXMaps", outputs, [0.4, 0.5, 0.6], (SIZE, SIZE)), expected)


def test_yunet(parse):
    rng, tables, expected = np.random.default_rng(5), [[], [], [], []], []
    for stride in STRIDES[:3]:
        side = SIZE // stride
        parts = [rng.uniform(-0.1, 1.1, (side * side, 1)), rng.uniform(0, 1, (side * side, 1)),
                 rng.uniform(0, 1, (side * side, 4)),
                 rng.uniform(-1, 1, (side * side, 10))]  # fmt: skip
        for table, part in zip(tables, parts, strict=True):
            table.append(part.astype(np.float32))
        for i in range(side * side):
            score = math.sqrt(min(max(parts[0][i, 0], 0), 1) * parts[1][i, 0])
            x, y = i % side * stride, i // side * stride
            dx, dy, w, h = parts[2][i]
            w, h = math.exp(w) * stride / 2, math.exp(h) * stride / 2
            cx, cy = x + dx * stride, y + dy * stride
            if score >= 0.7:
                point = x + parts[3][i, 8] * stride
                expected.append([*clipped(cx - w, cy - h, cx + w, cy + h), score, point])
    outputs = [table for part in tables for table in part]
    found = parse("HeadraceParseYuNet", outputs, [0.7], (SIZE, SIZE))
    got = np.column_stack([found.boxes, found.scores, found.keypoints[:, 4, 0]])
    assert len(expected) > 5
    np.testing.assert_allclose(got, expected, atol=2e-3)
