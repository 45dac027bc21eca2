"""Regions of feature maps, sample by sample."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from headrace.errors import ModelError
from tests.plugins.standard.driving import decomposed, run

RANDOM = np.random.default_rng(7)


def corners(plane: Any, y: float, x: float) -> list[tuple[float, float]]:
    """(weight, value) of the four neighbours of a place inside of the map."""
    h, w = plane.shape
    low_y, low_x = int(y), int(x)
    high_y, high_x = min(low_y + 1, h - 1), min(low_x + 1, w - 1)
    fy, fx = y - low_y, x - low_x
    return [
        ((1 - fy) * (1 - fx), plane[low_y, low_x]), ((1 - fy) * fx, plane[low_y, high_x]),
        (fy * (1 - fx), plane[high_y, low_x]), (fy * fx, plane[high_y, high_x]),
    ]  # fmt: skip


def edge(plane: Any, y: float, x: float) -> float:
    y = min(max(y, 0.0), plane.shape[0] - 1)
    x = min(max(x, 0.0), plane.shape[1] - 1)
    return float(sum(w * v for w, v in corners(plane, y, x)))


def slow_roi_align(x: Any, rois: Any, images: Any, f: dict[str, Any]) -> Any:
    half = f["coordinate_transformation_mode"]
    ph, pw = f["output_height"], f["output_width"]
    out = np.zeros((len(rois), x.shape[1], ph, pw))
    for r, roi in enumerate(rois):
        x1, y1, x2, y2 = (float(v) * f["spatial_scale"] - 0.5 * half for v in roi)
        h, w = y2 - y1, x2 - x1
        if not half:
            h, w = max(h, 1.0), max(w, 1.0)
        ny = f["sampling_ratio"] or max(math.ceil(h / ph), 0)
        nx = f["sampling_ratio"] or max(math.ceil(w / pw), 0)
        for c in range(x.shape[1]):
            plane = x[images[r], c].astype(float)
            for i in range(ph):
                for j in range(pw):
                    values, best = [], []
                    for p in range(ny):
                        for q in range(nx):
                            y = y1 + h / ph * (i + (p + 0.5) / ny)
                            z = x1 + w / pw * (j + (q + 0.5) / nx)
                            if y < -1 or z < -1 or y > plane.shape[0] or z > plane.shape[1]:
                                values.append(0.0)
                                best.append(0.0)
                                continue
                            y = min(max(y, 0), plane.shape[0] - 1)
                            z = min(max(z, 0), plane.shape[1] - 1)
                            pairs = corners(plane, y, z)
                            values.append(sum(a * b for a, b in pairs))
                            best.append(max(a * b for a, b in pairs))
                    if values:
                        out[r, c, i, j] = sum(values) / len(values) if f["mode"] else max(best)
    return out


@pytest.mark.parametrize("version", ["1", "2"])
@pytest.mark.parametrize("half", [0, 1])
@pytest.mark.parametrize("mode", [0, 1])
@pytest.mark.parametrize("ratio", [0, 2])
def test_roi_align(version: str, half: int, mode: int, ratio: int) -> None:
    x = RANDOM.normal(0, 1, (2, 3, 9, 7)).astype(np.float32)
    start = RANDOM.uniform(-3, 12, (6, 2))
    rois = np.concatenate([start, start + RANDOM.uniform(0, 14, (6, 2))], 1).astype(np.float32)
    rois = np.concatenate([rois, [[4, 4, 4, 4], [60, 60, 70, 70], [5, 5, 2, 1]]]).astype(np.float32)
    images = RANDOM.integers(0, 2, len(rois)).astype(np.int32)
    fields = {
        "coordinate_transformation_mode": half, "mode": mode, "output_height": 3,
        "output_width": 2, "sampling_ratio": ratio, "spatial_scale": 0.7,
    }  # fmt: skip
    (y,) = run("ROIAlign_TRT", x, rois, images, version=version, **fields)
    np.testing.assert_allclose(y, slow_roi_align(x, rois, images, fields), rtol=1e-4, atol=1e-5)
    nodes = decomposed("ROIAlign_TRT", x, rois, images, version=version, **fields)
    assert (nodes is None) == (mode == 0)
    if nodes is not None:
        np.testing.assert_allclose(nodes[0], y, rtol=1e-4, atol=1e-5)
    with pytest.raises(ModelError, match="a region of image"):
        run("ROIAlign_TRT", x, rois, images + 1, version=version, **fields)


def test_odd_regions_are_no_trouble() -> None:
    x = np.ones((1, 2, 4, 4), np.float32)
    odd = [math.nan, math.inf, -math.inf, 1e30, -1e30, 0.0]
    rois = np.array([[a, b, c, d] for a in odd for b in odd for c in odd[:3] for d in odd[:3]])
    images = np.zeros(len(rois), np.int32)
    for mode in (0, 1):
        fields = {"output_height": 2, "output_width": 2, "mode": mode, "sampling_ratio": 1}
        (y,) = run("ROIAlign_TRT", x, rois.astype(np.float32), images, **fields)
        assert np.isfinite(y).all()
    empty = np.empty((0, 4), np.float32)
    (y,) = run("ROIAlign_TRT", x, empty, images[:0], output_height=2, output_width=2)
    assert y.shape == (0, 2, 2, 2)


@pytest.mark.parametrize(
    ("name", "version"),
    [("CropAndResize", "1"), ("CropAndResizeDynamic", "1"), ("CropAndResizeDynamic", "2")],
)
@pytest.mark.parametrize("size", [(3, 4), (1, 2), (2, 1)])
def test_crop_and_resize(name: str, version: str, size: tuple[int, int]) -> None:
    x = RANDOM.normal(0, 1, (2, 2, 6, 5)).astype(np.float32)
    rois = RANDOM.uniform(-0.3, 1.3, (2, 5, 4, 1)).astype(np.float32)
    ch, cw = size
    (y,) = run(name, x, rois, version=version, crop_width=cw, crop_height=ch)
    assert y.shape == (2, 5, 2, ch, cw)
    for b in range(2):
        for r in range(5):
            y1, x1, y2, x2 = rois[b, r, :, 0].astype(float)
            for i in range(ch):
                for j in range(cw):
                    at_y = (y1 + i * (y2 - y1) / (ch - 1)) * 5 if ch > 1 else (y1 + y2) / 2 * 5
                    at_x = (x1 + j * (x2 - x1) / (cw - 1)) * 4 if cw > 1 else (x1 + x2) / 2 * 4
                    inside = 0 <= at_y <= 5 and 0 <= at_x <= 4
                    for c in range(2):
                        want = edge(x[b, c], at_y, at_x) if inside else 0.0
                        assert y[b, r, c, i, j] == pytest.approx(want, rel=1e-3, abs=1e-4)


def slow_pyramid(rois: Any, maps: list[Any], f: dict[str, Any]) -> Any:
    p, (height, width) = f["pooled_size"], f["image_size"]
    out = np.zeros((*rois.shape[:2], maps[0].shape[1], p, p))
    for b in range(rois.shape[0]):
        for r in range(rois.shape[1]):
            a = rois[b, r].astype(float)
            ys, xs = ((a[0], a[2]), (a[1], a[3])) if f["swap"] else ((a[1], a[3]), (a[0], a[2]))
            ys, xs = sorted(ys), sorted(xs)
            if f["absolute"]:
                ys = [min(max(v, 0), height) / height for v in ys]
                xs = [min(max(v, 0), width) / width for v in xs]
            else:
                ys, xs = ([min(max(v, 0), 1) for v in pair] for pair in (ys, xs))
            plus = f["plusone"]
            area = (ys[1] - ys[0] + plus / height) * (xs[1] - xs[0] + plus / width)
            threshold = f["fpn_scale"] ** 2 / (height * width) / 4
            level = sum(area > threshold * 4**k for k in range(3))
            features = maps[level][b]
            h, w = features.shape[1:]
            t = f["transform"]
            grid = []
            for pair, size in ((ys, h), (xs, w)):
                if t == -1:
                    start, end = (v * (size - 1) for v in pair)
                    delta = (end - start) / (p - 1)
                else:
                    start, end = (v * size - (0.5 if t == 2 else 0) for v in pair)
                    delta = (end - start) / p
                n = f["ratio"] or max(1, math.ceil((end - start) / p))
                off = 0.5 if t in (1, 2) else 0
                grid.append([[start + delta * (i + (k + off) / n) for k in range(n)]
                             for i in range(p)])  # fmt: skip
            for c in range(features.shape[0]):
                for i in range(p):
                    for j in range(p):
                        values = [edge(features[c], y, x) for y in grid[0][i] for x in grid[1][j]]
                        out[b, r, c, i, j] = sum(values) / len(values)
    return out


@pytest.mark.parametrize("transform", [-1, 0, 1, 2])
@pytest.mark.parametrize(("absolute", "swap", "plusone", "ratio"), [(1, 0, 0, 0), (0, 1, 1, 2)])
def test_pyramid_roi_align(
    transform: int, absolute: int, swap: int, plusone: int, ratio: int
) -> None:
    size = (64, 96)
    maps = [
        RANDOM.normal(0, 1, (2, 2, size[0] // s, size[1] // s)).astype(np.float32)
        for s in (4, 8, 16, 32)
    ]
    rois = RANDOM.uniform(-0.1, 1.1, (2, 12, 4))
    rois[:, ::2, 2:] = rois[:, ::2, :2] + 0.15  # small ones, for the first level
    if absolute:
        rois = rois * [96, 64, 96, 64]
    rois = rois.astype(np.float32)
    f = {
        "pooled_size": 3, "image_size": size, "fpn_scale": 32, "absolute": absolute, "swap": swap,
        "plusone": plusone, "transform": transform, "ratio": ratio,
    }  # fmt: skip
    (y,) = run(
        "PyramidROIAlign_TRT", rois, *maps, pooled_size=3, image_size=list(size), fpn_scale=32,
        roi_coords_absolute=absolute, roi_coords_swap=swap, roi_coords_plusone=plusone,
        roi_coords_transform=transform, sampling_ratio=ratio,
    )  # fmt: skip
    np.testing.assert_allclose(y, slow_pyramid(rois, maps, f), rtol=1e-3, atol=1e-4)


def test_multilevel_crop_and_resize() -> None:
    maps = [
        RANDOM.normal(0, 1, (1, 2, 512 // s, 768 // s)).astype(np.float32)
        for s in (4, 8, 16, 32, 64)
    ]
    rois = np.array(
        [[[10, 20, 60, 90], [0, 0, 200, 300], [3, 5, 511, 700], [0, 0, 100, 112], [5, 5, 5, 9],
          [-1, 0, 50, 50], [0, 0, 50, 769], [8, 9, 4, 20], [0, 0, 512, 768]]], np.float32,
    )  # fmt: skip
    fields = {"pooled_size": 3, "image_size": [3, 512, 768]}
    (y,) = run("MultilevelCropAndResize_TRT", rois, *maps, **fields)
    for r, (y1, x1, y2, x2) in enumerate(rois[0].astype(float)):
        inside = y1 >= 0 and x1 >= 0 and y2 <= 512 and x2 <= 768
        if not (inside and y1 < y2 and x1 < x2):
            assert not y[0, r].any()
            continue
        area = (y2 - y1) * (x2 - x1)
        level = sum(area > 224 * 224 / 4 * 4**k for k in range(4))
        features, s = maps[level][0], 2 ** (level + 2)
        for c in range(2):
            for i in range(3):
                for j in range(3):
                    at_y = y1 / s + (y2 - y1) / s / 3 * (i + 0.5)
                    at_x = x1 / s + (x2 - x1) / s / 3 * (j + 0.5)
                    want = edge(features[c], at_y, at_x)
                    assert y[0, r, c, i, j] == pytest.approx(want, rel=1e-3, abs=1e-4)


def zero_padded(plane: Any, y: float, x: float) -> float:
    h, w = plane.shape
    top, left = math.floor(y), math.floor(x)
    total = 0.0
    for i in (0, 1):
        for j in (0, 1):
            weight = (1 - abs(y - top - i)) * (1 - abs(x - left - j))
            if 0 <= top + i < h and 0 <= left + j < w:
                total += weight * float(plane[top + i, left + j])
    return total


@pytest.mark.parametrize("version", ["1", "2"])
def test_deformable_attention(version: str) -> None:
    levels = [(4, 5), (2, 3)]
    n, heads, depth, queries, points = 2, 2, 3, 4, 2
    total = sum(h * w for h, w in levels)
    value = RANDOM.normal(0, 1, (n, total, heads, depth)).astype(np.float32)
    places = RANDOM.uniform(-0.2, 1.2, (n, queries, heads, 2, points, 2)).astype(np.float32)
    weights = RANDOM.random((n, queries, heads, 2, points)).astype(np.float32)
    shapes, starts = np.array(levels, np.int32), np.array([0, 20], np.int32)
    inputs = (value, shapes, starts, places, weights)
    (y,) = run("MultiscaleDeformableAttnPlugin_TRT", *inputs, version=version)
    for b in range(n):
        for q in range(queries):
            for m in range(heads):
                for d in range(depth):
                    want = 0.0
                    for k, (h, w) in enumerate(levels):
                        plane = value[b, starts[k] : starts[k] + h * w, m, d].reshape(h, w)
                        for p in range(points):
                            at_x, at_y = places[b, q, m, k, p]
                            got = zero_padded(plane, at_y * h - 0.5, at_x * w - 0.5)
                            want += float(weights[b, q, m, k, p]) * got
                    assert y[b, q, m, d] == pytest.approx(want, rel=1e-3, abs=1e-4)
    with pytest.raises(ModelError, match="parts of the 26 places"):
        run("MultiscaleDeformableAttnPlugin_TRT", value, shapes + 1, starts, places, weights)


@pytest.mark.parametrize("version", ["1", "2"])
@pytest.mark.parametrize(
    ("group", "deformable", "bias"), [(1, 1, True), (2, 2, False), (1, 2, True)]
)
def test_modulated_deformable_convolution(
    version: str, group: int, deformable: int, bias: bool
) -> None:
    x = RANDOM.normal(0, 1, (2, 4, 6, 7)).astype(np.float32)
    kh, kw, stride, pad, dilation = 3, 2, (2, 1), (1, 0), (1, 2)
    oh = (6 + 2 * pad[0] - dilation[0] * (kh - 1) - 1) // stride[0] + 1
    ow = (7 + 2 * pad[1] - dilation[1] * (kw - 1) - 1) // stride[1] + 1
    offset = RANDOM.normal(0, 1.5, (2, 2 * deformable * kh * kw, oh, ow)).astype(np.float32)
    mask = RANDOM.random((2, deformable * kh * kw, oh, ow)).astype(np.float32)
    weight = RANDOM.normal(0, 1, (6, 4 // group, kh, kw)).astype(np.float32)
    biases = RANDOM.normal(0, 1, 6).astype(np.float32)
    inputs = [x, offset, mask, weight, *([biases] if bias else [])]
    (y,) = run(
        "ModulatedDeformConv2d", *inputs, version=version, stride=list(stride), padding=list(pad),
        dilation=list(dilation), group=group, deformable_group=deformable,
    )  # fmt: skip
    assert y.shape == (2, 6, oh, ow)
    for b in range(2):
        for o in range(6):
            g = o // (6 // group)
            for i in range(oh):
                for j in range(ow):
                    want = float(biases[o]) if bias else 0.0
                    for c in range(4 // group):
                        channel = g * (4 // group) + c
                        d = channel // (4 // deformable)
                        for p in range(kh):
                            for q in range(kw):
                                tap = (d * kh + p) * kw + q
                                dy, dx = offset[b, 2 * tap : 2 * tap + 2, i, j]
                                at_y = i * stride[0] - pad[0] + p * dilation[0] + dy
                                at_x = j * stride[1] - pad[1] + q * dilation[1] + dx
                                got = zero_padded(x[b, channel], at_y, at_x)
                                want += got * mask[b, tap, i, j] * weight[o, c, p, q]
                    assert y[b, o, i, j] == pytest.approx(want, rel=1e-3, abs=1e-4)
