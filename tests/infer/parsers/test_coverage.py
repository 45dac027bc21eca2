"""The coverage and bbox grid parser against a slow per-cell oracle and known numbers (B.1)."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.errors import ParserError
from headrace.infer.parsers import builtin_parser, parse_coverage_bbox
from headrace.meta import DetectionParams, Layer, NetworkInfo
from tests.profiles import examples

F = np.float32


def run(cov, bbox, width, height, thresholds, classes=None, names=("cov", "bbox")):
    layers = {
        names[0]: Layer(names[0], np.asarray(cov)),
        names[1]: Layer(names[1], np.asarray(bbox)),
    }
    params = DetectionParams(classes or len(thresholds), np.asarray(thresholds, np.float32))
    return parse_coverage_bbox(layers, NetworkInfo(width, height, 3), params)


def clip(v, size):
    if v >= size:
        v = F(size - 1)
    return F(0) if v < 0 else v


def oracle(cov, bbox, width, height, thresholds):
    """One cell after the other, in float32."""
    classes, rows, columns = cov.shape
    sx, sy = math.ceil(width / columns), math.ceil(height / rows)
    found = []
    for k in range(min(classes, len(thresholds))):
        for j in range(rows):
            for i in range(columns):
                score = cov[k, j, i]
                if score < F(thresholds[k]):
                    continue
                cx, cy = F(i * sx + 0.5) / F(35), F(j * sy + 0.5) / F(35)
                o1, o2, o3, o4 = bbox[4 * k : 4 * k + 4, j, i]
                x1, y1 = clip((o1 - cx) * F(-35), width), clip((o2 - cy) * F(-35), height)
                x2, y2 = clip((o3 + cx) * F(35), width), clip((o4 + cy) * F(35), height)
                if x2 - x1 < 0 or y2 - y1 < 0:
                    continue
                found.append((k, x1, y1, x2 - x1, y2 - y1, score))
    return found


@settings(max_examples=examples(60))
@given(data=st.data())
def test_equals_the_oracle_bit_for_bit(data):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    classes, rows, columns = (data.draw(st.integers(1, n)) for n in (3, 5, 7))
    width, height = data.draw(st.integers(columns, 200)), data.draw(st.integers(rows, 200))
    configured = data.draw(st.integers(1, 4))
    cov = rng.choice([0, 0.1, 0.25, 0.5, 1, np.nan], (classes, rows, columns)).astype(np.float32)
    bbox = rng.uniform(-3, 4, (4 * classes, rows, columns)).astype(np.float32)
    thresholds = rng.choice([0.1, 0.25, 0.6], configured)
    result = run(cov, bbox, width, height, thresholds)
    expected = oracle(cov, bbox, width, height, thresholds)
    assert len(result) == len(expected)
    got = zip(result.class_ids, result.boxes, result.scores, strict=True)
    for (k, box, score), e in zip(got, expected, strict=True):
        assert k == e[0]
        np.testing.assert_array_equal(np.append(box, score), np.array(e[1:], np.float32))


def grid(width, height, columns, rows, classes, cells):
    cov = np.zeros((classes, rows, columns), np.float32)
    bbox = np.zeros((4 * classes, rows, columns), np.float32)
    for k, gx, gy, score, box in cells:
        cov[k, gy, gx] = score
        bbox[4 * k : 4 * k + 4, gy, gx] = box
    return cov, bbox


@pytest.mark.parametrize(
    ("cells", "boxes"),
    [
        ([(0, 1, 1, 0.25, (0, 0, 1, 1)), (0, 2, 1, 0.2499, (0, 0, 1, 1))], [[16.5, 16.5, 35, 35]]),
        (
            [(0, 59, 33, 0.9, (1, 1, 2, 2)), (0, 0, 0, 0.9, (3, 3, 1, 1))],
            [[0, 0, 35.5, 35.5], [909.5, 493.5, 49.5, 49.5]],
        ),
        ([(0, 59, 10, 0.9, (1, 0, 0.425, 1))], [[909.5, 160.5, 49.874939, 35]]),
        (
            [(0, 5, 5, 0.9, (-1, 0, -1, 1)), (0, 6, 5, 0.9, (0, 0, 0, 0))],
            [[96.5, 80.5, 0, 0]],
        ),
    ],
    ids=["equality passes", "clipping", "between size-1 and size", "inverted and empty"],
)
def test_known_cells(cells, boxes):
    cov, bbox = grid(960, 544, 60, 34, 1, cells)
    np.testing.assert_allclose(run(cov, bbox, 960, 544, [0.25]).boxes, boxes, atol=1e-4)


def test_stride_is_rounded_up():
    cov, bbox = grid(650, 370, 40, 23, 1, [(0, 2, 1, 0.9, (0, 0, 1, 1))])
    np.testing.assert_allclose(run(cov, bbox, 650, 370, [0.2]).boxes, [[34.5, 17.5, 35, 35]])


def test_nan_score_passes_and_half_floats_are_read():
    cov, bbox = grid(64, 64, 4, 4, 1, [(0, 1, 1, np.nan, (0.5, 0.5, 0.5, 0.5))])
    assert np.isnan(run(cov, bbox, 64, 64, [0.5]).scores).tolist() == [True]
    assert len(run(cov.astype(np.float16), bbox.astype(np.float16), 64, 64, [0.5])) == 1


def test_the_last_matching_layer_is_used():
    cov, bbox = grid(64, 64, 4, 4, 1, [(0, 1, 1, 0.9, (0.1, 0.1, 0.1, 0.1))])
    layers = {
        "conv2d_cov": Layer("conv2d_cov", cov),
        "bbox_a": Layer("bbox_a", np.zeros((3, 3), np.float32)),
        "bbox_b": Layer("bbox_b", bbox),
    }
    params = DetectionParams(1, np.array([0.2], np.float32))
    assert len(parse_coverage_bbox(layers, NetworkInfo(64, 64, 3), params)) == 1


@pytest.mark.parametrize(
    ("names", "missing"),
    [(("boxes", "scores"), "no coverage output"), (("cov_only",), "no bbox output")],
)
def test_a_missing_layer_names_those_that_exist(names, missing):
    layers = {n: Layer(n, np.zeros((1, 4, 4), np.float32)) for n in names}
    params = DetectionParams(1, np.array([0.2], np.float32))
    with pytest.raises(ParserError) as error:
        parse_coverage_bbox(layers, NetworkInfo(64, 64, 3), params)
    assert missing in error.value.finding.sentence
    assert all(repr(n) in str(error.value) for n in names)


def test_a_missing_layer_suggests_the_head_it_looks_like():
    layers = {"output0": Layer("output0", np.zeros((84, 8400), np.float32))}
    params = DetectionParams(80, np.full(80, 0.2, np.float32))
    with pytest.raises(ParserError, match="parse-bbox-func-name=NvDsInferParseYoloV11"):
        parse_coverage_bbox(layers, NetworkInfo(640, 640, 3), params)


def test_grids_that_do_not_belong_together_are_refused():
    cov, bbox = np.zeros((2, 4, 4), np.float32), np.zeros((4, 4, 4), np.float32)
    with pytest.raises(ParserError, match="four planes for each of the 2 class"):
        run(cov, bbox, 64, 64, [0.2, 0.2])


def test_no_name_means_this_parser():
    assert builtin_parser(None) is parse_coverage_bbox
    assert builtin_parser("") is parse_coverage_bbox
    assert builtin_parser("NvDsInferParseNothing") is None
