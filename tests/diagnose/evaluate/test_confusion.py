"""Who was taken for whom."""

import numpy as np

from headrace.diagnose.evaluate.box_matching import Scored, Truth
from headrace.diagnose.evaluate.confusion import NOTHING, box_confusion, confusion_of


def test_classes_are_counted():
    found = confusion_of(["a", "b"], [0, 0, 0, 1], [0, 0, 1, -1])
    assert found.names == ("a", "b", NOTHING)
    assert found.counts.tolist() == [[2, 1, 0], [0, 0, 1], [0, 0, 0]]
    assert found.right == 0.5
    assert np.allclose(found.recalls, [2 / 3, 0])
    assert np.allclose(found.precisions, [1, 0])
    assert np.allclose(found.ious, [2 / 3, 0])
    assert found.mistakes(9) == ["a taken for b: 1", "b not found: 1"]
    assert found.to_dict()["counts"][0] == [2, 1, 0]


def test_what_does_not_occur_is_not_known():
    found = confusion_of(["a", "b"], [0], [0])
    assert np.isnan(found.recalls[1])
    assert np.isnan(found.ious[1])
    assert np.isnan(confusion_of(["a"], [], []).right)


def test_boxes_are_paired_by_cover_whatever_their_class():
    square = [0, 0, 10, 10]
    truth = Truth(
        np.array([square, [50, 0, 10, 10], [80, 0, 10, 10]], float),
        np.array([0, 0, 1]),
        np.array([False, False, True]),
    )
    boxes = [square, square, [50, 0, 10, 9], [80, 0, 10, 10], [200, 0, 5, 5]]
    found = Scored(np.array(boxes, float), np.array([1, 0, 1, 0, 1]), np.full(5, 0.9))
    counts = box_confusion(["a", "b"], [truth], [found]).counts
    # the double of another class is false, not confused; the box on the crowd does not count
    assert counts.tolist() == [[1, 1, 0], [0, 0, 0], [0, 2, 0]]
    lost = box_confusion(["a", "b"], [truth], [found.select(np.zeros(5, bool))]).counts
    assert lost.tolist() == [[0, 0, 2], [0, 0, 0], [0, 0, 0]]
