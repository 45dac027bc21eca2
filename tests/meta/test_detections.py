"""What `Detections` takes from a parser, and what it does not let become another number."""

from __future__ import annotations

import warnings

import numpy as np
import numpy.typing as npt
import pytest

from headrace.errors import DetectionsError
from headrace.meta import Detections
from headrace.meta.detections import BatchDetections, joined, overlaps


@pytest.mark.parametrize(
    "ids",
    [
        np.array([2**40]),
        np.array([-(2**31) - 1]),
        np.array([2**64 - 1], np.uint64),
        np.array([np.nan]),
        np.array([1e10], np.float32),
    ],
)
def test_class_ids_that_do_not_fit_are_refused_not_wrapped(ids: npt.NDArray[np.generic]) -> None:
    with pytest.raises(DetectionsError, match=r"class_ids .* is not a 32-bit integer"):
        Detections([[1, 2, 3, 4]], [0.5], ids)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", [np.int64, np.uint8, np.float32, np.float64, bool])
def test_class_ids_of_any_kind_that_fit(kind: type) -> None:
    found = Detections([[1, 2, 3, 4]] * 2, [0.5] * 2, np.array([0, 1], kind))
    assert found.class_ids.dtype == np.int32
    assert found.class_ids.tolist() == [0, 1]


def test_boxes_beyond_float32_are_infinite_without_a_word() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = Detections(np.array([[1e300, 0, 1, 1]]), [1], [0])
    assert np.isinf(found.boxes[0, 0])


THREE = np.array([[0, 0, 10, 10], [5, 0, 10, 10], [50, 50, 0, 0]])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_each_box_is_compared_with_each_in_its_own_precision(dtype: type[np.floating]) -> None:
    boxes = THREE.astype(dtype)
    found = overlaps(boxes, boxes[:2])
    assert found.dtype == dtype
    third = dtype(50) / dtype(150)
    np.testing.assert_array_equal(found, [[1, third], [third, 1], [0, 0]])


def test_a_crowd_shares_a_box_by_the_area_of_the_box() -> None:
    crowd = np.array([False, True])
    small = np.array([[6.0, 1, 2, 2]])
    np.testing.assert_array_equal(overlaps(small, THREE[:2] * 1.0, crowd), [[4 / 100, 1]])


def test_boxes_that_are_no_numbers_share_nothing() -> None:
    assert overlaps(np.array([[np.nan, 0, 1, 1]]), THREE * 1.0).tolist() == [[0, 0, 0]]


def test_detections_of_items_are_joined_unless_one_has_shapes() -> None:
    def some(count: int, masks: list[npt.NDArray[np.float32]] | None = None) -> BatchDetections:
        numbers = np.arange(count, dtype=np.float32)
        boxes = np.arange(4 * count, dtype=np.float32).reshape(-1, 4)
        ids = numbers.astype(np.int32)
        return BatchDetections.of(Detections(boxes, numbers, ids, masks=masks))

    both = joined([some(2), some(0), some(1)])
    assert both is not None
    assert both.starts.tolist() == [0, 2, 2, 3]
    assert both.boxes.boxes[:, 0].tolist() == [0, 4, 0]
    assert both.boxes.scores.tolist() == both.boxes.class_ids.tolist() == [0, 1, 0]
    more = joined([both, some(1)])
    assert more is not None
    assert more.starts.tolist() == [0, 2, 2, 3, 4]
    masked = some(1, [np.ones((2, 2), np.float32)])
    assert joined([some(2), masked]) is None
    alone = joined([masked])
    assert alone is masked
    assert alone.starts.tolist() == [0, 1]
