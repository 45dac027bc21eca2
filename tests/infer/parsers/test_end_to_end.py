"""Heads whose rows are final boxes: known objects written as each exporter does, and read back."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from headrace.infer.parsers import WELL_KNOWN_INSTANCES

SIZE = (96, 64)
BOXES = np.float32([[10, 20, 30, 24], [50, 8, 40, 50], [0, 0, 12, 10]])  # left, top, width, height
SCORES = np.float32([0.9, 0.6, 0.3])
CLASSES = np.array([1, 0, 1])
T = (0.5, 0.25)  # all of class 0 above 0.5, of class 1 above 0.25


def corners(boxes=BOXES):
    return np.column_stack([boxes[:, :2], boxes[:, :2] + boxes[:, 2:]]).astype("f4")


def centres(boxes=BOXES):
    return np.column_stack([boxes[:, :2] + boxes[:, 2:] / 2, boxes[:, 2:]]).astype("f4")


def rows(boxes, more=None):
    """A row an object, and rows of zeros behind them, as `nms=True` fills up its table."""
    parts = [boxes, SCORES[:, None], CLASSES[:, None]]
    table = np.column_stack([*parts, *([] if more is None else [more])]).astype("f4")
    return np.concatenate([table, np.zeros((5, table.shape[1]), "f4")])


def same(found):
    np.testing.assert_allclose(found.boxes, BOXES, atol=1e-4)
    np.testing.assert_allclose(found.scores, SCORES)
    assert found.class_ids.tolist() == CLASSES.tolist()


@pytest.mark.parametrize("values", [2, 3])
def test_poses(parse, values):
    points = np.random.default_rng(1).uniform(0, 60, (3, 5, values)).astype("f4")
    found = parse("HeadraceParseYoloEndPose", [rows(corners(), points.reshape(3, -1))], T, SIZE)
    same(found)
    np.testing.assert_allclose(found.keypoints[..., :values], points)
    if values == 2:
        assert (found.keypoints[..., 2] == 1).all()


def test_a_pose_below_its_threshold_goes(parse):
    points = np.zeros((3, 15), "f4")
    found = parse(
        "HeadraceParseYoloEndPose", [rows(corners(), points)], (0.7, 0.25), SIZE, classes=2
    )
    assert found.scores.tolist() == SCORES[[0, 2]].tolist()


def test_rotated_boxes(parse):
    angles = np.float32([0.5, -1.25, 3.0])
    found = parse("HeadraceParseYoloEndObb", [rows(centres(), angles[:, None])], T, SIZE)
    same(found)
    assert found.angles.tolist() == angles.tolist()


def test_centres_in_unit(parse):
    unit = centres() / np.float32([*SIZE, *SIZE])
    same(parse("HeadraceParseRTDETREnd", [rows(unit)], T, SIZE))


@pytest.mark.parametrize("order", list(permutations("bsl")))
def test_boxes_scores_and_labels_in_any_order(parse, order):
    parts = {"b": corners(), "s": SCORES, "l": CLASSES.astype(np.int64)}
    same(parse("HeadraceParseBoxesLabels", [parts[letter] for letter in order], T, SIZE))


def test_boxes_scores_and_labels_in_unit(parse):
    unit = corners() / np.float32([*SIZE, *SIZE])
    same(parse("HeadraceParseBoxesLabelsUnit", [unit, CLASSES.astype(np.int64), SCORES], T, SIZE))


def circle(box, shape, of=1.0):
    """1 in an ellipse that fills the box, -1 elsewhere; (H, W) over the network input."""
    height, width = shape
    y, x = np.mgrid[:height, :width].astype("f4") + 0.5
    x, y = x * SIZE[0] / width, y * SIZE[1] / height
    cx, cy = box[0] + box[2] / 2, box[1] + box[3] / 2
    inside = ((x - cx) / (box[2] / 2)) ** 2 + ((y - cy) / (box[3] / 2)) ** 2 <= 1
    return np.where(inside, of, -of).astype("f4")


def fill(mask):
    """The share of the box that its mask covers."""
    return float((mask > 0.5).mean())


def instances(name, outputs):
    from headrace.meta import DetectionParams, Layer, NetworkInfo

    layers = {n: Layer(n, np.asarray(a)) for n, a in outputs.items()}
    params = DetectionParams(2, np.float32(T))
    return WELL_KNOWN_INSTANCES[name](layers, NetworkInfo(*SIZE, 3), params)


def test_masks_of_prototypes():
    prototypes = np.stack([circle(box, (32, 48), 8.0) for box in BOXES])
    table = rows(corners(), np.eye(3, dtype="f4"))
    found = instances("HeadraceParseYoloEndSeg", {"output0": table, "output1": prototypes})
    same(found)
    assert found.masks is not None
    for mask in found.masks:  # an ellipse fills pi / 4 of its box
        assert fill(mask) == pytest.approx(np.pi / 4, abs=0.12)


def test_masks_of_queries():
    logits = np.full((4, 2), -6, "f4")
    logits[np.arange(3), CLASSES] = np.log(SCORES / (1 - SCORES))
    boxes = np.concatenate([centres() / np.float32([*SIZE, *SIZE]), np.zeros((1, 4), "f4")])
    masks = np.stack([*(circle(box, (32, 48), 8.0) for box in BOXES), np.ones((32, 48), "f4")])
    found = instances("HeadraceParseDetrSeg", {"dets": boxes, "labels": logits, "masks": masks})
    np.testing.assert_allclose(found.boxes, BOXES, atol=1e-3)
    np.testing.assert_allclose(found.scores, SCORES, rtol=1e-5)
    assert found.masks is not None
    for mask in found.masks:
        assert fill(mask) == pytest.approx(np.pi / 4, abs=0.12)


def test_rotated_queries_have_half_turns(parse):
    boxes = np.column_stack([centres() / np.float32([*SIZE, *SIZE]), [0.0, 0.25, 0.5]]).astype("f4")
    logits = np.full((3, 2), -20, np.float32)
    logits[range(3), CLASSES] = np.log(SCORES / (1 - SCORES))
    outputs = {"pred_logits": logits, "pred_boxes": boxes}
    found = parse("HeadraceParseDetrObb", outputs, T, SIZE)
    same(found)
    np.testing.assert_allclose(found.angles, [0, np.pi / 4, np.pi / 2], atol=1e-6)
