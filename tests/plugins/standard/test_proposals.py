"""Proposals and detections of two-stage detectors, box by box."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from headrace.errors import ModelError
from tests.plugins.standard import slow
from tests.plugins.standard.driving import create, run

RANDOM = np.random.default_rng(11)
FASTER: dict[str, Any] = {
    "input_height": 64, "input_width": 96, "rpn_stride": 16, "roi_min_size": 2.0,
    "nms_iou_threshold": 0.5, "pre_nms_top_n": 60, "post_nms_top_n": 15,
    "anchor_sizes": [16.0, 32.0], "anchor_ratios": [1.0, 0.5, 2.0],
}  # fmt: skip


def greedy(boxes: list[Any], threshold: float, **plus: bool) -> list[int]:
    kept: list[int] = []
    for i, box in enumerate(boxes):
        if not any(slow.iou(box, boxes[k], **plus) > np.float32(threshold) for k in kept):
            kept.append(i)
    return kept


PLUS = {"plus_areas": True, "plus_overlap": True}


def clipped(box: list[float], limits: list[float]) -> list[float]:
    return [min(max(v, 0.0), m) for v, m in zip(box, limits, strict=True)]


@pytest.mark.parametrize("name", ["Proposal", "ProposalDynamic"])
def test_proposals_of_tao_faster_rcnn(name: str) -> None:
    scores = RANDOM.random((2, 6, 4, 6)).astype(np.float32)
    deltas = RANDOM.normal(0, 0.5, (2, 24, 4, 6)).astype(np.float32)
    (y,) = run(name, scores, deltas, **FASTER)
    assert y.shape == (2, 15, 4, 1)
    for b in range(2):
        found = []
        for a in range(6):
            ratio, size = FASTER["anchor_ratios"][a % 3], FASTER["anchor_sizes"][a // 3]
            w, h = size * math.sqrt(ratio), size / math.sqrt(ratio)
            for i in range(4):
                for j in range(6):
                    tx, ty, tw, th = (float(deltas[b, 4 * a + k, i, j]) for k in range(4))
                    cx, cy = (j + 0.5) * 16 + tx * w, (i + 0.5) * 16 + ty * h
                    nw, nh = w * math.exp(tw), h * math.exp(th)
                    box = [cx - nw / 2, cy - nh / 2, cx + nw / 2, cy + nh / 2]
                    box = clipped(box, [95, 63, 95, 63])
                    if box[2] - box[0] > 2 and box[3] - box[1] > 2:
                        found.append((float(scores[b, a, i, j]), box))
        found.sort(key=lambda f: -f[0])
        boxes = [box for _, box in found[:60]]
        kept = greedy(boxes, 0.5, **PLUS)[:15]
        expected = [[boxes[k][1] / 63, boxes[k][0] / 95, boxes[k][3] / 63, boxes[k][2] / 95]
                    for k in kept]  # fmt: skip
        np.testing.assert_allclose(y[b, : len(kept), :, 0], expected, rtol=1e-3, atol=1e-4)
        assert not y[b, len(kept) :].any()


def test_small_boxes_leave_rows_empty() -> None:
    scores, deltas = np.ones((1, 6, 2, 2), np.float32), np.zeros((1, 24, 2, 2), np.float32)
    (y,) = run("Proposal", scores, deltas, **{**FASTER, "roi_min_size": 1000.0})
    assert not y.any()


RPROI: dict[str, Any] = {
    "poolingH": 2, "poolingW": 3, "featureStride": 16, "preNmsTop": 50, "nmsMaxOut": 8,
    "anchorsRatioCount": 3, "anchorsScaleCount": 2, "iouThreshold": 0.6, "minBoxSize": 6.0,
    "spatialScale": 0.0625, "anchorsRatios": [0.5, 1.0, 2.0], "anchorsScales": [1.0, 2.0],
}  # fmt: skip


def test_proposals_of_caffe_faster_rcnn() -> None:
    scores = RANDOM.random((2, 12, 4, 5)).astype(np.float32)
    deltas = RANDOM.normal(0, 0.4, (2, 24, 4, 5)).astype(np.float32)
    features = RANDOM.normal(0, 1, (2, 3, 4, 5)).astype(np.float32)
    info = np.array([[64, 80, 1.0], [60, 70, 2.0]], np.float32).reshape(2, 1, 1, 3)
    rois, pooled = run("RPROI_TRT", scores, deltas, features, info, **RPROI)
    assert rois.shape == (2, 1, 8, 4)
    assert pooled.shape == (2, 8, 3, 2, 3)
    anchors = []
    for ratio in RPROI["anchorsRatios"]:
        w = math.floor(math.sqrt(16 * 16 / ratio) + 0.5)
        h = math.floor(w * ratio + 0.5)
        anchors += [(w * s, h * s) for s in RPROI["anchorsScales"]]
    for b in range(2):
        height, width, scale = info[b].ravel().tolist()
        found = []
        for a, (w, h) in enumerate(anchors):
            for i in range(4):
                for j in range(5):
                    dx, dy, dw, dh = (float(deltas[b, 4 * a + k, i, j]) for k in range(4))
                    cx, cy = 7.5 + 16 * j + dx * w, 7.5 + 16 * i + dy * h
                    nw, nh = w * math.exp(dw), h * math.exp(dh)
                    box = [cx - nw / 2, cy - nh / 2, cx + nw / 2, cy + nh / 2]
                    box = clipped(box, [width - 1, height - 1] * 2)
                    if min(box[2] - box[0], box[3] - box[1]) + 1 >= 6 * scale:
                        found.append((float(scores[b, 6 + a, i, j]), box))
        found.sort(key=lambda f: -f[0])
        boxes = [box for _, box in found[:50]]
        kept = greedy(boxes, 0.6, **PLUS)[:8]
        got = rois[b, 0]
        np.testing.assert_allclose(got[: len(kept)], [boxes[k] for k in kept], rtol=1e-3, atol=1e-3)
        assert not got[len(kept) :].any()
        for r in range(8):
            x1, y1, x2, y2 = (math.floor(float(v) / 16 + 0.5) for v in got[r])
            bin_h, bin_w = max(y2 - y1 + 1, 1) / 2, max(x2 - x1 + 1, 1) / 3
            for i in range(2):
                for j in range(3):
                    top, bottom = inside(i, bin_h, y1, 4)
                    left, right = inside(j, bin_w, x1, 5)
                    part = features[b, :, top:bottom, left:right].reshape(3, -1)
                    want = part.max(axis=1) if part.size else np.zeros(3)
                    np.testing.assert_array_equal(pooled[b, r, :, i, j], want)
    with pytest.raises(ModelError, match="anchorsScales"):
        create("RPROI_TRT", **{**RPROI, "anchorsScaleCount": 3})


def inside(i: int, step: float, first: int, size: int) -> tuple[int, int]:
    ends = math.floor(i * step) + first, math.ceil((i + 1) * step) + first
    return min(max(ends[0], 0), size), min(max(ends[1], 0), size)


def unit_decode(box: Any, delta: Any) -> list[float]:
    y1, x1, y2, x2 = (float(v) for v in box)
    dy, dx, dh, dw = (float(v) * s for v, s in zip(delta, (0.1, 0.1, 0.2, 0.2), strict=True))
    h, w = y2 - y1, x2 - x1
    cy, cx = (y1 + y2) / 2 + dy * h, (x1 + x2) / 2 + dx * w
    h, w = h * math.exp(dh), w * math.exp(dw)
    return clipped([cy - h / 2, cx - w / 2, cy + h / 2, cx + w / 2], [1.0] * 4)


def pixel_decode(box: Any, delta: Any, weights: Any, image: tuple[int, int]) -> list[float]:
    y1, x1, y2, x2 = (float(v) for v in box)
    dy, dx, dh, dw = (float(v) / k for v, k in zip(delta, weights, strict=True))
    h, w = y2 - y1 + 1, x2 - x1 + 1
    limit = math.log(1000 / 16)
    cy, cx = y1 + h / 2 + dy * h, x1 + w / 2 + dx * w
    h, w = h * math.exp(min(dh, limit)), w * math.exp(min(dw, limit))
    first = cy - h / 2, cx - w / 2
    last = [image[0] - 1.0, image[1] - 1.0]
    return clipped([*first, first[0] + h - 1, first[1] + w - 1], last * 2)


def test_proposals_of_matterport_mask_rcnn() -> None:
    size = (100, 130)
    anchors = []
    for level in range(5):
        stride, scale = 4 * 2**level, 32 * 2**level
        for y in range(0, size[0], stride):
            for x in range(0, size[1], stride):
                for r in (0.5, 1.0, 2.0):
                    h, w = scale / math.sqrt(r), scale * math.sqrt(r)
                    anchors.append([
                        (y - h / 2) / 99, (x - w / 2) / 129,
                        (y + h / 2 - 1) / 99, (x + w / 2 - 1) / 129,
                    ])  # fmt: skip
    n = len(anchors)
    scores = RANDOM.random((1, n, 2, 1)).astype(np.float32)
    deltas = RANDOM.normal(0, 1, (1, n, 4, 1)).astype(np.float32)
    fields = {
        "prenms_topk": 100, "keep_topk": 20, "iou_threshold": 0.5, "image_size": [3, *size],
    }  # fmt: skip
    (y,) = run("ProposalLayer_TRT", scores, deltas, **fields)
    order = np.argsort(-scores[0, :, 1, 0], kind="stable")[:100]
    boxes = [unit_decode(anchors[k], deltas[0, k, :, 0]) for k in order]
    kept = greedy(boxes, 0.5)[:20]
    np.testing.assert_allclose(y[0, : len(kept)], [boxes[k] for k in kept], rtol=1e-3, atol=1e-4)
    assert not y[0, len(kept) :].any()
    with pytest.raises(ModelError, match="anchors of image_size"):
        run("ProposalLayer_TRT", scores[:, 1:], deltas[:, 1:], **fields)


def test_multilevel_proposals() -> None:
    size = (96, 160)
    factors = [(1, 1), (1.4, 0.7), (0.7, 1.4)]  # width, height
    inputs, expected = [], []
    for level in range(5):
        stride = 4 * 2**level
        anchors = [
            [y - 4 * stride * h, x - 4 * stride * w, y + 4 * stride * h, x + 4 * stride * w]
            for y in range(stride // 2, size[0], stride)
            for x in range(stride // 2, size[1], stride)
            for w, h in factors
        ]
        deltas = RANDOM.normal(0, 0.3, (1, len(anchors), 4, 1)).astype(np.float32)
        scores = RANDOM.random((1, len(anchors), 1, 1)).astype(np.float32)
        inputs += [deltas, scores]
        order = np.argsort(-scores[0, :, 0, 0], kind="stable")[:40]
        order = [k for k in order if scores[0, k, 0, 0] > np.float32(0.6)]
        boxes = [pixel_decode(anchors[k], deltas[0, k, :, 0], (1, 1, 1, 1), size) for k in order]
        kept = greedy(boxes, 0.4)[:30]
        expected += [(float(scores[0, order[k], 0, 0]), boxes[k]) for k in kept]
    (y,) = run(
        "MultilevelProposeROI_TRT", *inputs, prenms_topk=40, keep_topk=30, fg_threshold=0.6,
        iou_threshold=0.4, image_size=[3, *size],
    )  # fmt: skip
    expected.sort(key=lambda e: -e[0])
    want = [box for _, box in expected[:30]]
    np.testing.assert_allclose(y[0, : len(want)], want, rtol=1e-3, atol=1e-2)


@pytest.mark.parametrize("name", ["GenerateDetection_TRT", "DetectionLayer_TRT"])
def test_detections_of_mask_rcnn(name: str) -> None:
    tao = name == "GenerateDetection_TRT"
    classes, count, keep = 4, 30, 12
    size = (64, 96)
    start = RANDOM.random((2, count, 2)) * 0.6
    rois = np.concatenate([start, start + RANDOM.random((2, count, 2)) * 0.4], -1)
    rois = (rois * ([63, 95, 63, 95] if tao else [1, 1, 1, 1])).astype(np.float32)
    deltas = RANDOM.normal(0, 1.5, (2, count, classes * 4, 1, 1)).astype(np.float32)
    scores = RANDOM.dirichlet([0.3] * classes, (2, count)).astype(np.float32)[..., None, None]
    fields = {"num_classes": classes, "keep_topk": keep, "score_threshold": 0.3,
              "iou_threshold": 0.3}  # fmt: skip
    if tao:
        fields["image_size"] = [3, *size]  # type: ignore[assignment]
    (y,) = run(name, deltas, scores, rois, **fields)
    assert y.shape == (2, keep, 6)
    for b in range(2):
        found = []
        for r in range(count):
            own = scores[b, r, :, 0, 0].tolist()
            first = 1 if tao else 0
            label = max(range(first, classes), key=lambda c: own[c])
            if label == 0 or own[label] < np.float32(0.3):
                continue
            delta = deltas[b, r, 4 * label : 4 * label + 4, 0, 0]
            box = (
                pixel_decode(rois[b, r], delta, (10, 10, 5, 5), size)
                if tao
                else unit_decode(rois[b, r], delta)
            )
            found.append((own[label], label, box))
        found.sort(key=lambda f: -f[0])
        kept: list[Any] = []
        for score, label, box in found:
            if not any(k[1] == label and slow.iou(k[2], box) > np.float32(0.3) for k in kept):
                kept.append((score, label, box))
        kept = kept[:keep]
        for row, (score, label, box) in zip(y[b], kept, strict=False):
            assert row[4] == label
            assert row[5] == pytest.approx(score)
            assert row[:4].tolist() == pytest.approx(box, rel=1e-3, abs=1e-2 if tao else 1e-4)
        assert (y[b, len(kept) :, 4] == -1).all()
        assert not y[b, len(kept) :, [0, 1, 2, 3, 5]].any()


def test_scores_of_almost_nothing_are_no_detections() -> None:
    rois = np.array([[[0, 0, 0.5, 0.5]]], np.float32)
    scores = np.array([0.0, 0.009], np.float32).reshape(1, 1, 2, 1, 1)
    deltas = np.zeros((1, 1, 8, 1, 1), np.float32)
    fields = {"num_classes": 2, "keep_topk": 1, "score_threshold": 0.0, "iou_threshold": 0.5}
    (y,) = run("DetectionLayer_TRT", deltas, scores, rois, **fields)
    assert y.tolist() == [[[0, 0, 0, 0, -1, 0]]]
