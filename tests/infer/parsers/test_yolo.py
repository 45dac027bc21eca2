"""YOLO heads: one candidate after the other in plain Python, and boxes encoded on purpose."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.errors import ParserError
from tests.profiles import examples

F = np.float32
SIZE = (96, 64)  # 96/8 * 64/8 + 96/16 * 64/16 + 96/32 * 64/32 = 126 cells
CELLS = [(x, y, s) for s in (8, 16, 32) for y in range(64 // s) for x in range(96 // s)]


def clamp(v, top):
    return min(max(v, F(0)), F(top))


def boxed(x1, y1, x2, y2, score, k):
    left, top = clamp(x1, SIZE[0]), clamp(y1, SIZE[1])
    width, height = clamp(x2, SIZE[0]) - left, clamp(y2, SIZE[1]) - top
    return None if width < 1 or height < 1 else (left, top, width, height, score, k)


def centred(cx, cy, w, h, score, k):
    x1, y1 = cx - w / F(2), cy - h / F(2)
    return boxed(x1, y1, x1 + w, y1 + h, score, k)


def best(scores):
    k = 0
    for c, score in enumerate(scores):
        if score > scores[k]:
            k = c
    return k, scores[k]


def plain(row, thresholds, i):
    k, score = best(row[4:])
    return centred(*row[:4], score, k) if score >= thresholds[k] else None


def product(row, thresholds, i):
    k, score = best(row[5:])
    score = row[4] * score
    return centred(*row[:4], score, k) if score >= thresholds[k] else None


def objectness(row, thresholds, i):
    k, _ = best(row[5:])
    return centred(*row[:4], row[4], k) if row[4] >= thresholds[k] else None


def grid(row, thresholds, i):
    k, score = best(row[5:])
    score = row[4] * score
    if score < thresholds[k]:
        return None
    x, y, stride = CELLS[i]
    w, h = F(math.exp(row[2])) * F(stride), F(math.exp(row[3])) * F(stride)
    return centred((row[0] + F(x)) * F(stride), (row[1] + F(y)) * F(stride), w, h, score, k)


def corners(row, thresholds, i):
    k = int(row[5])
    if k >= len(thresholds) or row[4] < thresholds[k]:
        return None
    return boxed(*row[:4], row[4], k)


def unit(row, thresholds, i):
    scaled = row.copy()
    scaled[:4] *= np.array(SIZE * 2, np.float32)
    return plain(scaled, thresholds, i)


ORACLES = {
    "NvDsInferParseYoloV11": (plain, 4, True),
    "NvDsInferParseCustomYoloV8": (plain, 4, False),
    "NvDsInferParseCustomYoloV8_cuda": (plain, 4, False),
    "NvDsInferParseCustomYoloV11_cuda": (plain, 4, False),
    "HeadraceParseYoloV8": (plain, 4, False),
    "NvDsInferParseCustomYoloV7": (objectness, 5, False),
    "NvDsInferParseCustomYoloV7_cuda": (product, 5, False),
    "HeadraceParseYoloV5": (product, 5, False),
    "HeadraceParseYoloX": (grid, 5, False),
    "NvDsInferParseYolo": (corners, None, False),
    "NvDsInferParseYoloCuda": (corners, None, False),
    "HeadraceParseRTDETR": (unit, 4, False),
}


@pytest.mark.parametrize("name", ORACLES)
@settings(max_examples=examples(25))
@given(data=st.data())
def test_equals_the_oracle(parse, name, data):
    oracle, head, transposed = ORACLES[name]
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    classes = data.draw(st.integers(1, 5))
    thresholds = rng.choice([0.1, 0.4, 0.7], classes).astype(np.float32)
    rows = rng.random((len(CELLS), 6 if head is None else head + classes)).astype(np.float32)
    if oracle is grid:
        rows[:, :4] = rng.normal(0, 1, (len(rows), 4))
    elif oracle is corners:
        rows[:, :4] = rng.uniform(-20, 120, (len(rows), 4))
        rows[:, 5] = rng.integers(0, classes + 2, len(rows))
        rows[0, 4:] = thresholds[0], 0  # a score that just reaches its threshold
    elif oracle is not unit:
        rows[:, :4] = rng.uniform(-10, 110, (len(rows), 4))
        rows[:, 2:4] /= 2
    if oracle is objectness:
        rows[0, 4], rows[0, 5:] = thresholds[0], 0
    found = parse(name, [rows.T.copy() if transposed else rows], thresholds, SIZE)
    expected = [b for i, row in enumerate(rows) if (b := oracle(row, thresholds, i))]
    assert len(found) == len(expected)
    np.testing.assert_allclose(
        np.column_stack([found.boxes, found.scores, found.class_ids]).reshape(-1, 6),
        np.array(expected).reshape(-1, 6),
        rtol=1e-5,
        atol=1e-4,
    )


def test_yolov8_is_read_in_both_orientations_and_as_halves(parse):
    rows = np.zeros((126, 7), np.float32)
    rows[40] = [48, 32, 20, 10, 0.1, 0.9, 0.2]
    for data in (rows, rows.T, rows.astype(np.float16), rows[None]):
        found = parse("HeadraceParseYoloV8", [data], [0.5] * 3, SIZE)
        np.testing.assert_allclose(found.boxes, [[38, 27, 20, 10]])
        assert found.class_ids.tolist() == [1]
        assert found.scores[0] == pytest.approx(0.9, abs=1e-3)


@pytest.mark.parametrize(("cell", "stride"), [(0, 8), (95, 8), (96, 16), (119, 16), (125, 32)])
def test_yolox_finds_a_box_put_into_a_cell(parse, cell, stride):
    box = np.array([30.0, 20.0, 24.0, 16.0])
    x, y, s = CELLS[cell]
    assert s == stride
    rows = np.zeros((126, 6), np.float32)
    centre = box[:2] + box[2:] / 2
    rows[cell] = [*(centre / s - [x, y]), *np.log(box[2:] / s), 0.8, 0.9]
    found = parse("HeadraceParseYoloX", [rows], [0.5], SIZE)
    np.testing.assert_allclose(found.boxes, [box], atol=1e-3)
    assert found.scores[0] == pytest.approx(0.72)


def test_boxes_that_are_not_finite_are_left_out(parse):
    rows = np.zeros((126, 6), np.float32)
    rows[:, 4:] = 0.9
    rows[:, :4] = [10, 10, 5, 5]
    rows[3, 0], rows[5, 4] = np.nan, np.nan
    assert len(parse("HeadraceParseYoloV5", [rows], [0.5], SIZE)) == 124
    rows[7, 2] = 1000  # exp overflows
    rows[:, 4] = 0
    rows[7, 4] = 0.9
    assert len(parse("HeadraceParseYoloX", [rows], [0.5], SIZE)) == 0


def test_the_number_of_classes_is_said(parse):
    with pytest.raises(ParserError) as error:
        parse("HeadraceParseYoloV8", [np.zeros((84, 8400), np.float32)], [0.2] * 3, (640, 640))
    assert "num-detected-classes=3" in error.value.finding.sentence
    assert error.value.finding.expectation == "num-detected-classes=80"


@pytest.mark.parametrize(
    ("name", "shape", "classes", "better"),
    [
        ("NvDsInferParseCustomYoloV8", (84, 8400), 80, "HeadraceParseYoloV8"),  # the transpose
        ("NvDsInferParseCustomYoloV8", (84, 8400), 4, "HeadraceParseYoloV8"),
        ("NvDsInferParseYoloV11", (8400, 84), 80, "HeadraceParseYoloV8"),
        ("NvDsInferParseCustomYoloV8_cuda", (8400, 85), 80, "HeadraceParseYoloV5"),
        ("NvDsInferParseCustomYoloV7", (8400, 84), 80, "HeadraceParseYoloV8"),
    ],
)
def test_outputs_that_another_head_reads_are_refused(parse, name, shape, classes, better):
    with pytest.raises(ParserError, match=f"num-detected-classes={classes}") as error:
        parse(name, [np.zeros(shape, np.float32)], [0.2] * classes, (640, 640))
    assert f"parse-bbox-func-name={better}" in str(error.value)


def test_a_yolox_of_another_size_is_told_from_yolov5(parse):
    with pytest.raises(ParserError, match="126 YOLOX cells") as error:
        parse("HeadraceParseYoloX", [np.zeros((378, 7), np.float32)], [0.2] * 2, SIZE)
    assert "parse-bbox-func-name=HeadraceParseYoloV5" in str(error.value)


def test_a_class_beyond_the_configured_ones_is_dropped(parse):
    rows = np.zeros((126, 4 + 5), np.float32)
    rows[:, :4] = [20, 20, 8, 8]
    rows[10, 4 + 4], rows[11, 4 + 1] = 0.9, 0.9
    found = parse("NvDsInferParseCustomYoloV8", [rows], [0.5] * 2, SIZE)
    assert found.class_ids.tolist() == [1]


def test_deepstream_yolo_clamps_and_drops_what_is_under_a_pixel(parse):
    rows = [
        [-5, -5, 20, 30, 0.9, 0],
        [90, 50, 200, 200, 0.8, 1],
        [10, 10, 10.5, 40, 0.9, 0],
        [30, 30, 20, 40, 0.9, 0],
        [1, 1, 9, 9, 0.5, np.nan],
    ]
    found = parse("NvDsInferParseYolo", [np.array(rows, np.float32)], [0.25] * 2, SIZE)
    np.testing.assert_allclose(found.boxes, [[0, 0, 20, 30], [90, 50, 6, 14]])
    assert found.class_ids.tolist() == [0, 1]
