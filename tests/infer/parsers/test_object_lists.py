"""Lists as torchvision writes them: boxes, class numbers, scores, and masks or points of each."""

from __future__ import annotations

import numpy as np
import pytest

from headrace.infer.parsers import WELL_KNOWN_INSTANCES
from headrace.meta import DetectionParams, Layer, NetworkInfo

SIZE = (96, 64)
BOXES = np.float32([[10, 20, 40, 44], [90, 60, 140, 90], [5, 5, 5.2, 40], [50, 8, 90, 58]])
SCORES = np.float32([0.9, 0.8, 0.7, 0.2])
LABELS = np.array([1, 2, 1, 1])
T = (0.5, 0.25, 0.5)


def ordered(order: str) -> list[np.ndarray]:
    parts = {"b": BOXES, "l": LABELS, "s": SCORES}
    return [parts[letter] for letter in order]


def masked(outputs: list[np.ndarray]):
    layers = {f"o{i}": Layer(f"o{i}", data) for i, data in enumerate(outputs)}
    params = DetectionParams(len(T), np.asarray(T, np.float32))
    parser = WELL_KNOWN_INSTANCES["HeadraceParseBoxesLabelsMasks"]
    return parser(layers, NetworkInfo(*SIZE, 3), params)


@pytest.mark.parametrize("order", ["bls", "bsl"])
def test_a_mask_of_the_input_is_cut_to_its_box(order: str) -> None:
    masks = np.zeros((4, 1, 64, 96), np.float32)
    masks[0, 0, 20:44, 10:25] = 1  # the left half of the first box
    masks[1, 0, 62:, 93:] = 1
    found = masked([*ordered(order), masks])
    assert found.boxes.tolist() == [[10, 20, 30, 24], [90, 60, 6, 4]]  # clipped; thin and weak go
    assert found.class_ids.tolist() == [1, 2]
    first, second = found.masks
    assert first.shape == (24, 30)
    assert first[:, :15].all()
    assert not first[:, 15:].any()
    assert second.shape == (4, 6)
    assert second.sum() == 2 * 3


def test_a_mask_of_a_box_stays_as_it_is() -> None:
    masks = np.random.default_rng(0).uniform(0, 1, (4, 1, 28, 28)).astype(np.float32)
    found = masked([*ordered("bls"), masks])
    np.testing.assert_array_equal(found.masks, masks[:2, 0])


def test_empty_lists_hold_nothing() -> None:
    empty = [np.zeros((0, 4), "f4"), np.zeros(0, "i8"), np.zeros(0, "f4")]
    assert len(masked([*empty, np.zeros((0, 1, 64, 96), "f4")])) == 0


def test_points_have_the_chance_of_their_logits(parse) -> None:
    points = np.random.default_rng(1).uniform(0, 60, (4, 17, 3)).astype("f4")
    points[..., 2] = 1  # torchvision's visibility is always 1
    logits = np.linspace(-500, 500, 4 * 17, dtype=np.float32).reshape(4, 17)
    outputs = [*ordered("bls"), points, logits]
    found = parse("HeadraceParseBoxesLabelsPoints", outputs, T, SIZE)
    assert found.boxes.tolist() == [[10, 20, 30, 24], [90, 60, 6, 4]]
    np.testing.assert_array_equal(found.keypoints[..., :2], points[:2, :, :2])
    assert (found.keypoints[..., 2] >= 0).all()
    assert (found.keypoints[..., 2] <= 1).all()
    assert (np.diff(found.keypoints[..., 2].ravel()) >= 0).all()
