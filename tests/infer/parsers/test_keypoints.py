"""Heads of poses and faces: encoded from known boxes and points, decoded back to them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.errors import ParserError
from tests.profiles import examples

SIZE = (96, 64)
CELLS = sum(96 // s * 64 // s for s in (8, 16, 32))


def truths(seed, count, points, classes=1):
    """Boxes inside of the network, their scores, classes, and points about them."""
    rng = np.random.default_rng(seed)
    left, top = rng.uniform(0, 60, count), rng.uniform(0, 40, count)
    size = rng.uniform(2, 24, (count, 2))
    boxes = np.column_stack([left, top, size]).astype("f4")
    keypoints = rng.uniform(-5, 100, (count, points, 3)).astype("f4")
    keypoints[..., 2] = rng.uniform(0, 1, (count, points))
    return (
        boxes,
        rng.uniform(0.3, 1, count).astype("f4"),
        rng.integers(0, classes, count),
        keypoints,
    )


def centres(boxes):
    return np.column_stack([boxes[:, :2] + boxes[:, 2:] / 2, boxes[:, 2:]])


def same(found, boxes, scores, classes, keypoints, atol=1e-3):
    np.testing.assert_allclose(found.boxes, boxes, atol=atol)
    np.testing.assert_allclose(found.scores, scores, rtol=1e-6)
    np.testing.assert_array_equal(found.class_ids, classes)
    np.testing.assert_allclose(found.keypoints, keypoints, atol=atol)


def hidden(rows, total, seed):
    """The rows among `total` whose values are noise and whose scores are 0, in rising places."""
    rng = np.random.default_rng(seed)
    places = np.sort(rng.choice(total, len(rows), replace=False))
    table = rng.uniform(0, 90, (total, rows.shape[1])).astype("f4")
    return table, places


@settings(max_examples=examples(30))
@given(
    seed=st.integers(0, 1 << 30),
    count=st.integers(0, 9),
    points=st.sampled_from([1, 5, 17, 21]),
    classes=st.integers(1, 3),
    columns=st.booleans(),
)
def test_yolo_pose(parse, seed, count, points, classes, columns):
    boxes, scores, ids, keypoints = truths(seed, count, points, classes)
    wanted = np.zeros((count, classes), "f4")
    wanted[np.arange(count), ids] = scores
    rows = np.column_stack([centres(boxes), wanted, keypoints.reshape(count, 3 * points)])
    table, places = hidden(rows, CELLS, seed)
    table[:, 4 : 4 + classes] = 0
    table[places] = rows
    found = parse(
        "HeadraceParseYoloV8Pose", [table.T if columns else table], [0.25] * classes, size=SIZE
    )
    same(found, boxes, scores, ids, keypoints)


def test_pose_without_scores_of_points(parse):
    boxes, scores, ids, keypoints = truths(3, 4, 4)
    keypoints[..., 2] = 1
    rows = np.column_stack([centres(boxes), scores, keypoints[..., :2].reshape(4, 8)])
    same(
        parse("HeadraceParseYoloV8Pose", [np.pad(rows, ((0, 40), (0, 0)))], size=SIZE),
        boxes, scores, ids, keypoints,
    )  # fmt: skip


def test_the_number_of_classes_must_leave_whole_points(parse):
    with pytest.raises(ParserError, match="set num-detected-classes=1"):
        parse("HeadraceParseYoloV8Pose", [np.zeros((126, 56), "f4")], [0.25] * 60, size=SIZE)
    with pytest.raises(ParserError, match="leave 25 for keypoints"):
        parse("HeadraceParseYoloV8Pose", [np.zeros((126, 30), "f4")], size=SIZE)


@pytest.mark.parametrize("seed", range(5))
def test_yolo_v5_and_v7_faces(parse, seed):
    boxes, scores, ids, keypoints = truths(seed, 6, 5)
    flat = [centres(boxes), np.full(6, 0.5, "f4")]
    seven = np.column_stack([*flat, scores, keypoints.reshape(6, 15)])
    table, places = hidden(seven, 3 * CELLS, seed)
    table[:, 4] = 0
    table[places] = seven
    found = parse("HeadraceParseYoloV7Face", [table], [0.1], size=SIZE)
    same(found, boxes, scores / 2, ids, keypoints)
    keypoints[..., 2] = 1
    five = np.column_stack([*flat, keypoints[..., :2].reshape(6, 10), scores])
    table, places = hidden(five, 3 * CELLS, seed)
    table[:, 4] = 0
    table[places] = five
    found = parse("HeadraceParseYoloV5Face", [table], [0.1], size=SIZE)
    same(found, boxes, scores / 2, ids, keypoints)


def cells(stride):
    return [(x * stride, y * stride) for y in range(64 // stride) for x in range(96 // stride)]


@pytest.mark.parametrize("anchors", [1, 2])
def test_scrfd(parse, anchors):
    boxes, scores, ids, keypoints = truths(1, 6, 5)
    keypoints[..., 2] = 1
    outputs = [[], [], []]
    expected = []
    for stride, rows in zip((8, 16, 32), ([0, 1], [2, 3, 4], [5]), strict=True):
        n = len(cells(stride)) * anchors
        score, sides, points = np.zeros((n, 1)), np.zeros((n, 4)), np.zeros((n, 10))
        for row, place in zip(rows, np.linspace(0, n - 1, len(rows)).astype(int), strict=True):
            at = np.array(cells(stride)[place // anchors])
            left, top, width, height = boxes[row]
            score[place] = scores[row]
            corner = np.array([left + width, top + height])
            sides[place] = [*(at - boxes[row, :2]) / stride, *(corner - at) / stride]
            points[place] = ((keypoints[row, :, :2] - at) / stride).ravel()
            expected.append(row)
        for output, values in zip(outputs, (score, sides, points), strict=True):
            output.append(values.astype("f4"))
    outputs = [*outputs[0], *outputs[1], *outputs[2]]
    found = parse("HeadraceParseSCRFD", outputs, size=SIZE)
    same(found, boxes[expected], scores[expected], ids, keypoints[expected])
    with pytest.raises(ParserError, match="candidates of stride 8"):
        parse("HeadraceParseSCRFD", [o[:5] for o in outputs], size=SIZE)


def test_retina_face(parse):
    boxes, scores, ids, keypoints = truths(2, 5, 5)
    keypoints[..., 2] = 1
    priors = [
        (x + s / 2, y + s / 2, size)
        for s, sizes in ((8, (16, 32)), (16, (64, 128)), (32, (256, 512)))
        for x, y in cells(s)
        for size in sizes
    ]
    n = len(priors)
    offsets, probabilities, points = np.zeros((n, 4)), np.zeros((n, 2)), np.zeros((n, 10))
    probabilities[:, 0] = 1
    places = [0, 3, 190, 230, n - 1]
    for row, place in enumerate(places):
        x, y, size = priors[place]
        centre = boxes[row, :2] + boxes[row, 2:] / 2
        offsets[place, :2] = (centre - (x, y)) / size / 0.1
        offsets[place, 2:] = np.log(boxes[row, 2:] / size) / 0.2
        points[place] = ((keypoints[row, :, :2] - (x, y)) / size / 0.1).ravel()
        probabilities[place] = 1 - scores[row], scores[row]
    outputs = [a.astype("f4") for a in (offsets, probabilities, points)]
    same(parse("HeadraceParseRetinaFace", outputs, size=SIZE), boxes, scores, ids, keypoints)
    with pytest.raises(ParserError, match=f"{n - 1} candidates"):
        parse("HeadraceParseRetinaFace", [o[1:] for o in outputs], size=SIZE)


def test_heat_maps(parse):
    """Peaks of Gaussians at known places: within half a cell, and on the right side of it."""
    rng = np.random.default_rng(0)
    places = rng.uniform((2, 2), (21, 13), (17, 2))
    y, x = np.mgrid[:16, :24]
    maps = np.stack([np.exp(-((x - a) ** 2 + (y - b) ** 2) / 4) for a, b in places])
    found = parse("HeadraceParseHeatmapPose", [maps.astype("f4")], size=SIZE)
    assert found.boxes.tolist() == [[0, 0, 96, 64]]
    np.testing.assert_allclose(found.keypoints[0, :, :2] / 4, places, atol=0.26)
    np.testing.assert_allclose(found.keypoints[0, :, 2], maps.max(axis=(1, 2)), rtol=1e-6)
    assert len(parse("HeadraceParseHeatmapPose", [maps.astype("f4") * 0.1], size=SIZE)) == 0
