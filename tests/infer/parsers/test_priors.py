"""Offsets from fixed boxes, beside loops over the anchors as their authors describe them."""

from __future__ import annotations

import math

import numpy as np
import pytest


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def test_priors_of_ultra_face(parse):
    width, height, priors = 64, 48, []
    sizes = {8: (10, 16, 24), 16: (32, 48), 32: (64, 96), 64: (128, 192, 256)}
    for stride, boxes in sizes.items():
        for row in range(math.ceil(height / stride)):
            for column in range(math.ceil(width / stride)):
                for size in boxes:
                    prior = ((column + 0.5) * stride / width, (row + 0.5) * stride / height,
                             size / width, size / height)  # fmt: skip
                    priors.append([min(max(v, 0), 1) for v in prior])
    rng = np.random.default_rng(1)
    offsets = rng.normal(0, 0.5, (len(priors), 4)).astype(np.float32)
    scores = rng.uniform(0, 1, (len(priors), 2)).astype(np.float32)
    found = parse(
        "HeadraceParseUltraFacePriors", {"scores": scores, "boxes": offsets}, [0.8], (width, height)
    )
    expected = []
    for (px, py, pw, ph), (x, y, w, h), (_, score) in zip(priors, offsets, scores, strict=True):
        cx, cy = px + x * 0.1 * pw, py + y * 0.1 * ph
        half_w, half_h = pw * math.exp(w * 0.2) / 2, ph * math.exp(h * 0.2) / 2
        left, right = (min(max((cx + s * half_w) * width, 0), width) for s in (-1, 1))
        top, bottom = (min(max((cy + s * half_h) * height, 0), height) for s in (-1, 1))
        if score >= 0.8 and right - left >= 1 and bottom - top >= 1:
            expected.append([left, top, right - left, bottom - top])
    assert len(expected) > 10
    np.testing.assert_allclose(found.boxes, expected, atol=1e-3)


def test_anchors_of_blaze_face(parse):
    size, at = 128, []
    for stride, count in ((8, 2), (16, 6)):
        cells = size // stride
        for cell in range(cells * cells):
            at += [((cell % cells + 0.5) * stride, (cell // cells + 0.5) * stride)] * count
    rng = np.random.default_rng(2)
    offsets = rng.normal(0, 1, (896, 16)).astype(np.float32)
    offsets[:, 2:4] = rng.uniform(20, 30, (896, 2))
    logits = rng.normal(-2, 2, (896, 1)).astype(np.float32)
    found = parse("HeadraceParseBlazeFace", [offsets, logits], [0.6], (size, size))
    kept = [i for i in range(896) if sigmoid(float(logits[i, 0])) >= 0.6]
    assert found.keypoints.shape == (len(kept), 6, 3)
    for row, i in enumerate(kept):
        (x, y), (dx, _, w, _) = at[i], offsets[i, :4]
        left, right = (min(max(x + dx + s * w / 2, 0), size) for s in (-1, 1))
        assert found.boxes[row, 0] == pytest.approx(left, abs=1e-3)
        assert found.boxes[row, 2] == pytest.approx(right - left, abs=1e-3)
        assert found.keypoints[row, 5, 0] == pytest.approx(x + offsets[i, 14], abs=1e-3)
        assert found.keypoints[row, 5, 1] == pytest.approx(y + offsets[i, 15], abs=1e-3)
        assert found.scores[row] == pytest.approx(sigmoid(float(logits[i, 0])), abs=1e-5)


def test_anchors_of_efficientdet(parse):
    size, classes = 128, 2
    rng = np.random.default_rng(3)
    maps = {s: (rng.normal(-2, 2, (9 * classes, size // s, size // s)).astype(np.float32),
                rng.normal(0, 0.3, (36, size // s, size // s)).astype(np.float32))
            for s in (8, 16, 32, 64, 128)}  # fmt: skip
    outputs = [m[0] for m in maps.values()] + [m[1] for m in maps.values()]
    found = parse("HeadraceParseEfficientDetRaw", outputs, [0.7, 0.8], (size, size))
    expected = []
    for stride, (scores, offsets) in maps.items():
        for row in range(size // stride):
            for column in range(size // stride):
                for anchor in range(9):
                    octave = 2 ** (anchor // 3 / 3)
                    wide, high = ((1, 1), (1.4, 0.7), (0.7, 1.4))[anchor % 3]
                    aw, ah = 4 * stride * octave * wide, 4 * stride * octave * high
                    values = scores[anchor * classes : anchor * classes + classes, row, column]
                    best = int(values.argmax())
                    ty, tx, th, tw = offsets[anchor * 4 : anchor * 4 + 4, row, column]
                    cx, cy = tx * aw + (column + 0.5) * stride, ty * ah + (row + 0.5) * stride
                    w, h = math.exp(tw) * aw, math.exp(th) * ah
                    left, right = (min(max(cx + s * w / 2, 0), size) for s in (-1, 1))
                    top, bottom = (min(max(cy + s * h / 2, 0), size) for s in (-1, 1))
                    chance = sigmoid(float(values[best]))
                    if chance >= (0.7, 0.8)[best] and right - left >= 1 and bottom - top >= 1:
                        expected.append([left, top, right - left, bottom - top, chance, best])
    assert len(expected) > 20
    got = np.column_stack([found.boxes, found.scores, found.class_ids])
    np.testing.assert_allclose(got, expected, atol=2e-3)
