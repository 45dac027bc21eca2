"""Proposals and deltas, own suppression, rotated boxes: slow oracles from the catalogue."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.errors import ParserError
from tests.profiles import examples

W, H = 100, 80


def clip(v, top):
    return min(max(v, 0), top)


def check(found, expected):
    got = np.column_stack([found.boxes, found.scores, found.class_ids])
    np.testing.assert_allclose(got, np.array(expected).reshape(-1, 6), atol=2e-3)


@settings(max_examples=examples(25))
@given(seed=st.integers(0, 2**32))
def test_frcnn_tlt(parse, seed):
    rng = np.random.default_rng(seed)
    proposals = np.sort(rng.random((20, 2, 2)), axis=1).reshape(20, 4).astype(np.float32)
    deltas, scores = rng.normal(0, 3, (20, 8)), rng.random((20, 3))
    outputs = {
        "dense_class_td/Softmax": scores.astype(np.float32),
        "dense_regress_td/BiasAdd": deltas.astype(np.float32),
        "proposal": proposals,
    }
    expected = []
    for p, d, s in zip(proposals, deltas, scores, strict=True):
        k = int(np.argmax(s))
        if k == 2 or s[k] < 0.6:
            continue
        y1, x1, y2, x2 = (float(v) * n for v, n in zip(p, (H - 1, W - 1) * 2, strict=True))
        w, h = x2 - x1, y2 - y1
        tx, ty, tw, th = d[4 * k : 4 * k + 4] / (10, 10, 5, 5)
        cx, cy = tx * w + x1 + w / 2, ty * h + y1 + h / 2
        w, h = w * math.exp(tw), h * math.exp(th)
        left, right = clip(cx - w / 2, W - 1), clip(cx + w / 2, W - 1)
        top, bottom = clip(cy - h / 2, H - 1), clip(cy + h / 2, H - 1)
        expected.append((left, top, right - left, bottom - top, s[k], k))
    check(parse("NvDsInferParseCustomFrcnnTLT", outputs, [0.6, 0.9, 0.9], (W, H)), expected)


@settings(max_examples=examples(25))
@given(seed=st.integers(0, 2**32))
def test_faster_rcnn_emits_every_class_above_its_threshold(parse, seed):
    rng = np.random.default_rng(seed)
    rois = np.sort(rng.uniform(0, 80, (10, 2, 2)), axis=1).reshape(10, 4).astype(np.float32)
    deltas = rng.normal(0, 0.5, (10, 12)).astype(np.float32)
    scores = rng.random((10, 3)).astype(np.float32)
    outputs = {"bbox_pred": deltas, "cls_prob": scores, "rois": rois}
    expected = []
    for i in range(10):
        for k in range(2):  # the third class is not configured
            if scores[i, k] < (0.3, 0.6)[k]:
                continue
            x1, y1, x2, y2 = (float(v) for v in rois[i])
            w, h = x2 - x1 + 1, y2 - y1 + 1
            dx, dy, dw, dh = (float(v) for v in deltas[i, 4 * k : 4 * k + 4])
            cx, cy = dx * w + x1 + w / 2, dy * h + y1 + h / 2
            w, h = w * math.exp(dw), h * math.exp(dh)
            left, right = clip(cx - w / 2, W - 1), clip(cx + w / 2, W - 1)
            top, bottom = clip(cy - h / 2, H - 1), clip(cy + h / 2, H - 1)
            expected.append((left, top, right - left + 1, bottom - top + 1, scores[i, k], k))
    check(parse("NvDsInferParseCustomFasterRCNN", outputs, [0.3, 0.6], (W, H)), expected)


def iou(a, b):
    w = min(a[0] + a[2], b[0] + b[2]) - max(a[0], b[0])
    h = min(a[1] + a[3], b[1] + b[3]) - max(a[1], b[1])
    common = max(w, 0) * max(h, 0)
    return common / (a[2] * a[3] + b[2] * b[3] - common)


def greedy(boxes, limit):
    kept = []
    for box in sorted(boxes, key=lambda b: -b[4]):
        if all(k[5] != box[5] or iou(k, box) <= limit for k in kept):
            kept.append(box)
    return kept


@settings(max_examples=examples(25))
@given(seed=st.integers(0, 2**32))
def test_yolo_original_suppresses_by_itself(parse, seed):
    rng = np.random.default_rng(seed)
    low = rng.uniform(-10, 60, (30, 2))
    boxes = np.concatenate([low, low + rng.uniform(5, 40, (30, 2))], axis=1).astype(np.float32)
    scores = rng.random((2, 30)).astype(np.float32)
    outputs = {"yolonms_layer_1/ExpandDims_1:0": boxes, "yolonms_layer_1/ExpandDims_3:0": scores}
    candidates = [
        (x1, y1, x2 - x1, y2 - y1, scores[k, i], k)
        for k in range(2)
        for i, (y1, x1, y2, x2) in enumerate(boxes)
        if scores[k, i] >= np.float32(0.4)
    ]
    found = parse("NvDsInferParseCustomYoloOriginal", outputs, [0.4, 0.9], (W, H))
    check(found, greedy(candidates, 0.5)[:200])


def test_rotated_columns(parse):
    table = np.zeros((4 + 2 + 1, 50), np.float32)
    table[:, 0] = [50, 40, 20, 10, 0.9, 0.1, -0.5]
    table[:, 1] = [51, 40, 20, 10, 0.8, 0.1, 0.3]  # the same object: suppressed
    table[:, 2] = [51, 40, 20, 10, 0.1, 0.7, 4.0]  # another class stays
    table[:, 3] = [130, -5, 0.2, 300, 0.95, 0, 0.3]  # the width limits both axes
    found = parse("NvDsInferParseCustomYoloV11OBB", [table], [0.5, 0.9], (W, H))
    np.testing.assert_allclose(
        found.boxes, [[98.5, -50, 1, 100], [40, 35, 20, 10], [41, 35, 20, 10]]
    )
    np.testing.assert_allclose(found.angles, [0.3, math.pi - 0.5, 4 - math.pi], rtol=1e-6)
    assert found.class_ids.tolist() == [0, 0, 1]


def test_rotated_columns_as_they_are(parse):
    table = np.zeros((4 + 2 + 1, 50), np.float32)
    table[:, 0] = [50, 40, 20, 10, 0.9, 0.1, -0.5]
    table[:, 1] = [51, 40, 20, 10, 0.8, 0.1, 0.3]  # suppression is the clustering's
    table[:, 2] = [51, 40, 20, 10, 0.1, 0.7, 4.0]  # below the threshold of its class
    table[:, 3] = [130, -5, 0.2, 300, 0.95, 0, np.nan]
    found = parse("HeadraceParseYoloObb", [table], [0.5, 0.9], (W, H))
    np.testing.assert_allclose(found.boxes, [[40, 35, 20, 10], [41, 35, 20, 10]])
    np.testing.assert_allclose(found.angles, [-0.5, 0.3], rtol=1e-6)
    assert found.class_ids.tolist() == [0, 0]


def test_rotated_rows_after_nms(parse):
    seven = np.zeros((10, 7), np.float32)
    seven[0] = [320, 160, 64, 32, 0.9, 0.25, 1]
    found = parse("NvDsInferParseCustomYoloV11OBB", [seven], [0.5, 0.5], (320, 160))
    np.testing.assert_allclose(found.boxes, [[144, 72, 32, 16]])
    assert (found.angles.tolist(), found.class_ids.tolist()) == ([0.25], [1])
    six = seven[:, [0, 1, 2, 3, 4, 6]]
    found = parse("NvDsInferParseCustomYoloV11OBB", [six[None]], [0.5, 0.5], (320, 160))
    assert (found.angles.tolist(), found.class_ids.tolist()) == ([0], [1])


def test_resnet_counts_both_edges(parse):
    cov, bbox = np.zeros((2, 4, 5), np.float32), np.zeros((8, 4, 5), np.float32)
    cov[1, 2, 3], bbox[4:, 2, 3] = 0.25, [1, 1, 0.5, 2]
    for names in (
        ("conv2d_cov/Sigmoid", "conv2d_bbox"),
        ("output_cov/Sigmoid", "output_bbox/BiasAdd"),
        ("output_cov/Sigmoid:0", "output_bbox/BiasAdd:0"),
    ):
        outputs = dict(zip(names, (cov, bbox), strict=True))
        found = parse("NvDsInferParseCustomResnet", outputs, [0.9, 0.25], (W, H))
        # stride 20: centre (60.5, 40.5); 25.5 .. 78, 5.5 .. 110.5 clipped to 79
        np.testing.assert_allclose(found.boxes, [[25.5, 5.5, 53.5, 74.5]], atol=1e-4)
        assert found.class_ids.tolist() == [1]


def test_deltas_that_do_not_belong_to_the_scores_are_refused(parse):
    outputs = {
        "bbox_pred": np.zeros((5, 8), np.float32),
        "cls_prob": np.zeros((5, 3), np.float32),
        "rois": np.zeros((5, 4), np.float32),
    }
    with pytest.raises(ParserError, match="8 deltas per roi for 3 classes"):
        parse("NvDsInferParseCustomFasterRCNN", outputs, [0.5] * 3, (W, H))
