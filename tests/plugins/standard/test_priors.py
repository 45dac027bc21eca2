"""PriorBox and GridAnchor against plain loops."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from headrace.errors import ModelError
from tests.plugins.standard.driving import create, decomposed, run

GRID: dict[str, Any] = {
    "minSize": 0.2, "maxSize": 0.95, "aspectRatios": [1.0, 2.0, 0.5, 3.0, 0.33],
    "featureMapShapes": [4, 3, 2], "variance": [0.1, 0.1, 0.2, 0.2], "numLayers": 3,
}  # fmt: skip


def slow_prior(h: int, w: int, image: tuple[int, int], f: dict[str, Any]) -> list[list[float]]:
    ratios = [1.0]
    for r in f.get("aspectRatios", []):
        if not any(abs(r - known) < 1e-6 for known in ratios):
            ratios.append(r)
            if f.get("flip", 1):
                ratios.append(1 / r)
    img_h, img_w = f.get("imgH") or image[0], f.get("imgW") or image[1]
    step_h, step_w = f.get("stepH") or img_h / h, f.get("stepW") or img_w / w
    boxes = []
    for y in range(h):
        for x in range(w):
            cx, cy = (x + f.get("offset", 0.5)) * step_w, (y + f.get("offset", 0.5)) * step_h
            for i, m in enumerate(f["minSize"]):
                sizes = [(m, m)]
                if f.get("maxSize"):
                    sizes.append((math.sqrt(m * f["maxSize"][i]),) * 2)
                sizes += [(m * math.sqrt(r), m / math.sqrt(r)) for r in ratios[1:]]
                for bw, bh in sizes:
                    box = [
                        (cx - bw / 2) / img_w, (cy - bh / 2) / img_h,
                        (cx + bw / 2) / img_w, (cy + bh / 2) / img_h,
                    ]  # fmt: skip
                    boxes.append([min(max(v, 0), 1) for v in box] if f.get("clip") else box)
    return boxes


@pytest.mark.parametrize(
    "options",
    [
        {"minSize": [30.0], "maxSize": [60.0], "aspectRatios": [2.0], "flip": 1},
        {"minSize": [30.0, 50.0], "aspectRatios": [2.0, 1.0, 3.0], "flip": 0, "clip": 1},
        {"minSize": [10.0], "imgH": 200, "imgW": 100, "stepH": 16.0, "stepW": 8.0, "offset": 0.25},
        {"minSize": [9.0, 8.0], "maxSize": [10.0, 20.0], "variance": [0.1, 0.2, 0.3, 0.4]},
    ],
)
def test_prior_box(options: dict[str, Any]) -> None:
    features, image = np.zeros((2, 5, 3, 4), np.float32), np.zeros((2, 3, 60, 90), np.float32)
    (priors,) = run("PriorBox_TRT", features, image, **options)
    boxes = slow_prior(3, 4, (60, 90), options)
    assert priors.shape == (2, 2, len(boxes) * 4, 1)
    for b in range(2):
        np.testing.assert_allclose(priors[b, 0, :, 0].reshape(-1, 4), boxes, rtol=1e-6, atol=1e-7)
        variances = priors[b, 1, :, 0].reshape(-1, 4)
        assert (variances == np.float32(options.get("variance", [0.1, 0.1, 0.2, 0.2]))).all()
    (same,) = decomposed("PriorBox_TRT", features, image, **options)
    np.testing.assert_array_equal(same, priors)


def test_four_priors_of_a_cell_in_the_documented_order() -> None:
    features, image = np.zeros((1, 1, 1, 1), np.float32), np.zeros((1, 3, 100, 100), np.float32)
    options = {"minSize": [30.0], "maxSize": [60.0], "aspectRatios": [2.0], "flip": 1}
    (priors,) = run("PriorBox_TRT", features, image, **options)
    x1, y1, x2, y2 = priors[0, 0, :, 0].reshape(4, 4).T * 100
    root = math.sqrt(2)
    assert (x2 - x1).tolist() == pytest.approx([30, math.sqrt(1800), 30 * root, 30 / root])
    assert (y2 - y1).tolist() == pytest.approx([30, math.sqrt(1800), 30 / root, 30 * root])


@pytest.mark.parametrize("rect", [False, True])
def test_grid_anchors(rect: bool) -> None:
    maps = [(4, 2), (3, 3), (1, 2)] if rect else [(n, n) for n in GRID["featureMapShapes"]]
    options = dict(GRID)
    if rect:
        options["featureMapShapes"] = [n for pair in maps for n in pair]
    name = "GridAnchorRect_TRT" if rect else "GridAnchor_TRT"
    outputs = run(name, np.zeros((2, 1, 1, 1), np.float32), **options)
    assert len(outputs) == 3
    scales = [0.2, 0.575, 0.95, 1.0]
    ratios = GRID["aspectRatios"]
    for k, (height, width) in enumerate(maps):
        cell = (
            [(ratios[0], 0.1), (ratios[1], 0.2), (ratios[2], 0.2)]
            if k == 0
            else [(r, scales[k]) for r in ratios] + [(1, math.sqrt(scales[k] * scales[k + 1]))]
        )
        expected = []
        for i in range(height):
            for j in range(width):
                cx, cy = (j + 0.5) / width, (i + 0.5) / height
                for r, s in cell:
                    w, h = s * math.sqrt(r), s / math.sqrt(r)
                    expected.append([cx - w / 2, cy - h / 2, cx + w / 2, cy + h / 2])
        assert outputs[k].shape == (2, 2, len(expected) * 4, 1)
        got = outputs[k][1, 0, :, 0].reshape(-1, 4)
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)
        assert (outputs[k][:, 1].reshape(-1, 4) == np.float32(GRID["variance"])).all()
    for a, b in zip(decomposed(name, np.zeros((2, 1, 1, 1), np.float32), **options), outputs,
                    strict=True):  # fmt: skip
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    ("name", "options", "says"),
    [
        ("PriorBox_TRT", {"minSize": [30.0], "maxSize": [30.0]}, "maxSize"),
        ("PriorBox_TRT", {"minSize": [30.0], "maxSize": [31.0, 32.0]}, "maxSize"),
        ("PriorBox_TRT", {"minSize": []}, "minSize is empty"),
        ("PriorBox_TRT", {"minSize": [3.0], "variance": [0.1]}, "variance"),
        ("GridAnchor_TRT", {**GRID, "featureMapShapes": [4, 4]}, "featureMapShapes"),
        ("GridAnchorRect_TRT", GRID, "featureMapShapes"),
        ("GridAnchor_TRT", {**GRID, "aspectRatios": [1.0]}, "aspectRatios"),
    ],
)
def test_wrong_fields_are_told(name: str, options: Any, says: str) -> None:
    with pytest.raises(ModelError, match=says):
        create(name, **options)
