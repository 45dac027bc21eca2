"""Which objects are tracked."""

from __future__ import annotations

import numpy as np
import pytest

from headrace.meta import Detections, FrameMeta, Space
from headrace.pipeline.track import open_tracker
from headrace.pipeline.track.selection import Selection
from tests.pipeline.track.scenes import ALL, IMAGE, meta, track

BOX = [100, 100, 50, 50]


def mixed(number: int) -> FrameMeta:
    """Objects of models 1 (classes 0, 1), 2, a child of the first by model 5, a full frame."""
    m = meta(number, [[0, 0, 40, 40], [100, 0, 40, 40]], classes=[0, 1])
    for component, class_id, left, parent in ((2, 0, 200, -1), (5, 0, 10, 0), (7, -1, 0, -1)):
        box = Detections([[left, 200, 30, 30]], [0.9], [class_id], space=Space.FRAME)
        m.objects.append(box, component, parent=parent)
    return m


@pytest.mark.parametrize(
    ("settings", "tracked"),
    [
        ({}, [0, 1, 2]),
        ({"operate_on_gie_id": -1, "operate_on_class_ids": -1}, [0, 1, 2]),
        ({"operate_on_gie_id": 1}, [0, 1]),
        ({"operate_on_gie_id": (2, 5)}, [2, 3]),
        ({"operate_on_class_ids": 1}, [1]),
        ({"operate_on_gie_id": 1, "operate_on_class_ids": [0, 3]}, [0]),
        ({"operate_on_class_ids": [0, -1]}, [0, 2, 4]),
        ({"operate_on_gie_id": 9}, []),
    ],
)
def test_objects_are_chosen_by_model_and_class(
    settings: dict[str, int], tracked: list[int]
) -> None:
    got = track(open_tracker("iou:min_hits=1", **settings), [mixed(0)])[0]
    assert [i for i, name in enumerate(got) if name is not None] == tracked


def test_two_trackers_leave_each_others_objects_alone() -> None:
    first = open_tracker("iou:min_hits=1", operate_on_gie_id=1)
    second = open_tracker("iou:min_hits=1", operate_on_gie_id=5)
    m = mixed(0)
    assert track(first, [m])[0] == [1, 2, None, None, None]
    assert track(second, [m])[0] == [1, 2, None, 1, None]
    assert m.objects.tracker_confidences is not None
    assert m.objects.tracker_confidences.tolist() == [1, 1, 0, 1, 0]


@pytest.mark.parametrize("spec", ALL)
@pytest.mark.parametrize(
    "odd",
    [
        [np.nan, 0, 10, 10],
        [0, 0, np.inf, 10],
        [0, 0, 0, 0],
        [10, 10, 0, 30],
        [10, 10, 30, -5],
        [-3e38, 0, 3e38, 10],
        [0, 0, 1e30, 1e30],
    ],
    ids=str,
)
def test_boxes_that_are_none_are_left_alone(spec: str, odd: list[float]) -> None:
    got = track(open_tracker(spec), [meta(i, [odd, BOX]) for i in range(6)])
    assert [g[0] for g in got] == [None] * 6
    assert got[-1][1] == 1


@pytest.mark.parametrize("spec", ALL)
def test_frames_without_objects_are_fine(spec: str) -> None:
    assert track(open_tracker(spec), [meta(i) for i in range(3)]) == [[]] * 3
    assert track(open_tracker(spec), [meta(i, inferred=False) for i in range(3)]) == [[]] * 3


def test_a_confidence_that_is_no_number_is_left_alone() -> None:
    metas = [meta(i, [BOX], scores=[np.nan]) for i in range(3)]
    assert track(open_tracker("iou"), metas) == [[None]] * 3


@pytest.mark.parametrize("name", ALL)
def test_columns_that_a_probe_has_replaced_are_written_to(name: str) -> None:
    tracker = open_tracker(name)
    for number in range(6):
        m = meta(number, [BOX, [400, 100, 50, 50]])
        wide = np.zeros(4, np.int64)
        m.objects.object_ids, m.objects.tracker_confidences = wide[::2], np.zeros(2)
        tracker.update(IMAGE, m)
    assert sorted(m.objects.object_ids.tolist()) == [1, 2]
    assert m.objects.tracker_confidences.tolist() == [1, 1]


def test_tracks_are_not_written_into_a_frame_that_lost_objects() -> None:
    m = meta(0, [BOX, [400, 100, 50, 50]])
    found = Selection()(m.objects)
    m.objects.keep(np.array([0]))
    with pytest.raises(IndexError, match="lost objects"):
        found.write(np.array([1, 2]), m.objects.object_ids, np.zeros(1, np.float32))
    with pytest.raises(ValueError, match="an id for each"):
        found.write(np.array([1]), m.objects.object_ids, np.zeros(1, np.float32))


def test_columns_of_different_length_are_refused() -> None:
    m = meta(0, [BOX, [400, 100, 50, 50]])
    m.objects.class_ids = m.objects.class_ids[:1]
    with pytest.raises(ValueError, match="differ in length"):
        open_tracker("iou").update(IMAGE, m)
