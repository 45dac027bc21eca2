"""Boxes and scores in two outputs: SSD and the DETR family."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.errors import ParserError
from tests.profiles import examples

W, H = 100, 80


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


def test_ssd_background_is_known_by_the_number_of_classes(parse):
    boxes = np.array([[0.1, 0.2, 0.5, 0.6], [-0.5, 0.5, 1.5, 0.75], [0, 0, 1, 1]], np.float32)
    scores = np.array([[0.1, 0.9, 0.2], [0.3, 0.1, 0.6], [0.98, 0.01, 0.01]], np.float32)
    expected = [[10, 16, 40, 32], [0, 40, 100, 20]]
    for outputs in (
        {"scores": scores, "boxes": boxes},
        [boxes, scores],
        [scores, boxes],
        {"boxes": boxes[:, None], "confs": scores.astype(np.float16)},
    ):
        found = parse("HeadraceParseSSDCorners", outputs, [0.5, 0.5], (W, H))
        np.testing.assert_allclose(found.boxes, expected, atol=1e-4)
        assert found.class_ids.tolist() == [0, 1]
    found = parse("HeadraceParseSSDCorners", [boxes, scores], [0.5, 0.5, 0.5], (W, H))
    assert found.class_ids.tolist() == [1, 2, 0]
    with pytest.raises(ParserError, match="3 scores per box") as error:
        parse("HeadraceParseSSDCorners", [boxes, scores], [0.5], (W, H))
    assert "num-detected-classes=2" in error.value.finding.remedies[-1]


def test_ssd_centres_and_pixels(parse):
    scores = np.array([[0.9]], np.float32)
    for name, box in (
        ("HeadraceParseSSDCenters", [0.3, 0.4, 0.4, 0.4]),
        ("HeadraceParseBoxesScores", [10, 16, 50, 48]),
    ):
        found = parse(name, [np.array([box], np.float32), scores], [0.5], (W, H))
        np.testing.assert_allclose(found.boxes, [[10, 16, 40, 32]], atol=1e-4)


def queries(data, n=12, classes=5):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    logits = rng.normal(-1, 2, (n, classes)).astype(np.float32)
    boxes = rng.uniform(0.1, 0.9, (n, 4)).astype(np.float32)
    return logits, boxes, {"pred_logits": logits, "pred_boxes": boxes}


def corners(box, inside):
    cx, cy, w, h = (float(v) for v in box)
    x1, x2 = (min(max((cx + s * w / 2) * W, 0), W - inside) for s in (-1, 1))
    y1, y2 = (min(max((cy + s * h / 2) * H, 0), H - inside) for s in (-1, 1))
    return [x1, y1, x2 - x1, y2 - y1]


def check(found, expected):
    got = np.column_stack([found.boxes, found.scores, found.class_ids])
    np.testing.assert_allclose(got, np.array(expected).reshape(-1, 6), atol=1e-3)


THRESHOLDS = [0.2, 0.3, 0.5, 0.1, 0.25]


def best_classes(logits, boxes, inside):
    """The best class of each query, where its chance is enough."""
    found = []
    for row, box in zip(logits, boxes, strict=True):
        k = int(row.argmax())
        if sigmoid(row[k]) >= THRESHOLDS[k]:
            found.append((*corners(box, inside), sigmoid(row[k]), k))
    return found


@settings(max_examples=examples(30))
@given(data=st.data())
def test_ddetr_leaves_class_0_out_and_sorts(parse, data):
    logits, boxes, outputs = queries(data)
    expected = sorted(best_classes(logits, boxes, 1), key=lambda e: -e[4])
    check(
        parse("NvDsInferParseCustomDDETRTAO", outputs, THRESHOLDS, (W, H)),
        [e for e in expected if e[5]],
    )


@settings(max_examples=examples(30))
@given(data=st.data())
def test_rtdetr_takes_the_best_hundred_of_all_scores(parse, data):
    logits, boxes, outputs = queries(data, n=40)
    flat = sorted(
        ((-float(logits[q, k]), q, k) for q in range(40) for k in range(5)),
    )[:100]
    expected = [
        (*corners(boxes[q], 1), sigmoid(-v), k) for v, q, k in flat if sigmoid(-v) >= THRESHOLDS[k]
    ]
    check(parse("NvDsInferParseCustomRTDETRTAO", outputs, THRESHOLDS, (W, H)), expected)


@settings(max_examples=examples(30))
@given(data=st.data())
def test_detr_with_sigmoid_takes_as_many_of_all_scores_as_queries(parse, data):
    logits, boxes, outputs = queries(data)
    best = sorted((-float(logits[q, k]), q, k) for q in range(12) for k in range(5))[:12]
    expected = [
        (*corners(boxes[q], 0), sigmoid(-v), k) for v, q, k in best if sigmoid(-v) >= THRESHOLDS[k]
    ]
    check(parse("HeadraceParseDetr", outputs, THRESHOLDS, (W, H)), expected)


@settings(max_examples=examples(30))
@given(data=st.data())
def test_detr_with_softmax_ignores_no_object(parse, data):
    logits, boxes, outputs = queries(data, classes=6)
    expected = []
    for row, box in zip(logits, boxes, strict=True):
        chances = [math.exp(v) / sum(math.exp(u) for u in row) for v in row]
        k = int(np.argmax(chances[:-1]))
        if chances[k] >= THRESHOLDS[k]:
            expected.append((*corners(box, 0), chances[k], k))
    check(parse("HeadraceParseDetrSoftmax", outputs, THRESHOLDS, (W, H)), expected)
    with pytest.raises(ParserError, match="5 classes and no-object"):
        parse("HeadraceParseDetrSoftmax", outputs, THRESHOLDS[:3], (W, H))


def test_ddetr_says_the_number_of_classes(parse):
    outputs = {
        "pred_logits": np.zeros((9, 4), np.float32),
        "pred_boxes": np.zeros((9, 4), np.float32),
    }
    with pytest.raises(ParserError, match="num-detected-classes=2, but the outputs hold 4"):
        parse("NvDsInferParseCustomDDETRTAO", outputs, [0.2, 0.2], (W, H))
