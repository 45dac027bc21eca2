"""Heads that read all items of a batch at once: item by item the same bits."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.infer.parsers import WELL_KNOWN
from headrace.meta import DetectionParams, Layer, NetworkInfo
from tests.profiles import examples

CLASSES, NETWORK = 3, NetworkInfo(64, 96, 3)
CELLS = 8 * 12 + 4 * 6 + 2 * 3
SHAPES = {
    "HeadraceParseYoloX": (CELLS, 5 + CLASSES),
    "HeadraceParseYoloV8": (4 + CLASSES, CELLS),
    "NvDsInferParseCustomYoloV8": (CELLS, 4 + CLASSES),
    "HeadraceParseYoloV5": (CELLS, 5 + CLASSES),
    "HeadraceParseRTDETR": (40, 4 + CLASSES),
    "HeadraceParseYoloV8Unit": (4 + CLASSES, CELLS),
}


UNIT = ("HeadraceParseRTDETR", "HeadraceParseYoloV8Unit")


def plainly(name, rows, thresholds):
    """One item in NumPy: corners of centre boxes in float32, clipped; boxes below a pixel go."""
    objectness = rows.shape[1] == 5 + CLASSES
    classes = np.where(np.isnan(rows[:, -CLASSES:]), -np.inf, rows[:, -CLASSES:])
    ids = classes.argmax(axis=1)
    scores = classes[np.arange(len(rows)), ids]
    scores = np.float32(rows[:, 4] * scores if objectness else scores)
    keep = scores >= thresholds[ids]
    if objectness:  # scores of classes are at most 1
        keep &= rows[:, 4] >= thresholds.min()
    cx, cy, w, h = rows[keep, :4].T
    if name == "HeadraceParseYoloX":
        parts = [(np.mgrid[: 96 // s, : 64 // s], s) for s in (8, 16, 32)]
        y, x = (np.concatenate([p[0][k].ravel() for p in parts])[keep] for k in (0, 1))
        stride = np.concatenate([np.full(p[0][0].size, p[1]) for p in parts])[keep]
        x, y, stride = (np.float32(v) for v in (x, y, stride))
        cx, cy = (cx + x) * stride, (cy + y) * stride
        w, h = (np.exp(np.ascontiguousarray(v)) * stride for v in (w, h))
    elif name in UNIT:
        cx, cy, w, h = (
            cx * np.float32(64),
            cy * np.float32(96),
            w * np.float32(64),
            h * np.float32(96),
        )
    x1, y1 = cx - w * np.float32(0.5), cy - h * np.float32(0.5)
    ends = np.clip(np.stack([x1 + w, y1 + h]), 0, [[64], [96]])
    starts = np.clip(np.stack([x1, y1]), 0, [[64], [96]])
    boxes = np.concatenate([starts, ends - starts]).T.astype(np.float32)
    large = (boxes[:, 2:] >= 1).all(axis=1)
    return boxes[large], scores[keep][large], ids[keep][large]


@pytest.mark.parametrize("name", SHAPES)
@settings(max_examples=examples(30))
@given(seed=st.integers(0, 2**32), items=st.integers(1, 5), wild=st.booleans(), half=st.booleans())
def test_every_item_is_read_as_if_it_were_alone(name, seed, items, wild, half):
    rng = np.random.default_rng(seed)
    tables = rng.normal(0.3, 0.4, (items, *SHAPES[name])).astype(np.float32)
    columns = SHAPES[name][0] == 4 + CLASSES
    if name not in ("HeadraceParseYoloX", *UNIT):
        boxes = tables[:, :4] if columns else tables[..., :4]
        boxes *= 60
    if wild:
        odd = rng.random(tables.shape) < 0.02
        tables[odd] = rng.choice([np.nan, np.inf, -np.inf, -0.0, 1e30], int(odd.sum()))
    if half:
        with np.errstate(over="ignore"):
            tables = tables.astype(np.float16)
    params = DetectionParams(CLASSES, np.array([0.4, 0.6, 0.5], np.float32))
    parser = WELL_KNOWN[name]
    found = parser.batch({"output": tables}, NETWORK, params)
    assert len(found.starts) == items + 1
    for item, (first, end) in enumerate(pairwise(found.starts.tolist())):
        part = found.boxes.rows(first, end)
        alone = parser({"output": Layer("output", tables[item])}, NETWORK, params)
        rows = tables[item].astype(np.float32)
        with np.errstate(all="ignore"):
            plain = plainly(name, rows.T if columns else rows, params.per_class_threshold)
        for one in (part, alone):
            assert one.boxes.tobytes() == plain[0].tobytes()
            np.testing.assert_array_equal(one.scores, plain[1])
            assert one.class_ids.tolist() == plain[2].tolist()


def test_results_outlive_the_next_call():
    rng = np.random.default_rng(0)
    params = DetectionParams(CLASSES, np.full(CLASSES, 0.4, np.float32))
    parser = WELL_KNOWN["HeadraceParseYoloX"]
    tables = rng.normal(0.5, 0.3, (2, 1, *SHAPES["HeadraceParseYoloX"])).astype(np.float32)
    first = parser.batch({"output": tables[0]}, NETWORK, params).boxes
    before = first.boxes.copy(), first.scores.copy(), first.class_ids.copy()
    parser.batch({"output": tables[1]}, NETWORK, params)
    assert len(first)
    for now, then in zip((first.boxes, first.scores, first.class_ids), before, strict=True):
        np.testing.assert_array_equal(now, then)


def test_a_head_of_single_items_gives_none():
    rows = np.zeros((2, 9, 6), np.float32)
    params = DetectionParams(CLASSES, np.full(CLASSES, 0.4, np.float32))
    assert WELL_KNOWN["NvDsInferParseYolo"].batch({"output": rows}, NETWORK, params) is None
