"""Frames that no model ran on: tracked objects are put there, moved on."""

from __future__ import annotations

import numpy as np
import pytest

from headrace.meta import (
    UNTRACKED_OBJECT_ID,
    ClassStyle,
    Detections,
    FrameMeta,
    Space,
)
from headrace.pipeline.track import open_tracker
from tests.pipeline.track.scenes import ALL, HEIGHT, IMAGE, WIDTH, ids, meta, track

STYLES = {1: ClassStyle(border_color=(0, 1, 0, 1))}


def passing(speed: float, *, inferred: list[bool], start: float = 100) -> list[FrameMeta]:
    """One object of class 1 at a constant speed, and one that stands."""
    metas = []
    for i, seen in enumerate(inferred):
        boxes = [[start + speed * i, 50, 40, 30], [20, 300, 30, 40]] if seen else []
        metas.append(meta(i, boxes, classes=[1, 2][: len(boxes)], inferred=seen))
        metas[-1].objects.styles[1] = STYLES if seen else {}
    return metas


def test_objects_are_where_they_would_be() -> None:
    metas = passing(10, inferred=[True, True, True, False, False, True])
    assert track(open_tracker("iou"), metas)[2:] == [[1, 2]] * 4
    for number in (3, 4):
        o = metas[number].objects
        assert np.allclose(o.rects, [[100 + 10 * number, 50, 40, 30], [20, 300, 30, 40]], atol=0.01)
        assert o.class_ids.tolist() == [1, 2]
        assert o.component_ids.tolist() == [1, 1]
        assert o.parents.tolist() == [-1, -1]
        assert [v.label for v in o] == ["bag", "tube"]
        assert o[0].style.border_color == (0, 1, 0, 1)


@pytest.mark.parametrize("spec", ALL)
def test_a_video_with_gaps_is_followed_closely(spec: str) -> None:
    """Whichever tracker: the model runs on every third frame, and dropped frames count."""
    numbers = [n for n in range(36) if n not in (25, 26, 28)]
    metas = [
        meta(n, [[10 + 8 * n, 50, 60, 40]] if n % 3 == 0 else [], inferred=n % 3 == 0)
        for n in numbers
    ]
    got = track(open_tracker(spec), metas)
    for n, names, m in list(zip(numbers, got, metas, strict=True))[15:]:
        assert names == [1]
        assert m.objects.rects[0] == pytest.approx([10 + 8 * n, 50, 60, 40], abs=1)


def test_objects_come_back_in_their_order() -> None:
    boxes = [[400, 50, 40, 30], [20, 300, 30, 40], [200, 20, 30, 40]]
    got = track(open_tracker("iou"), [meta(0, boxes), meta(1, boxes), meta(2, inferred=False)])
    assert got[1] == got[2] != sorted(got[1])  # type: ignore[type-var]


def test_the_detectors_confidence_stays_and_the_trackers_falls() -> None:
    metas = passing(1, inferred=[True, True, False, False])
    track(open_tracker("iou:gap_decay=0.5"), metas)
    assert [m.objects.tracker_confidences.tolist() for m in metas] == [  # type: ignore[union-attr]
        [0.0, 0.0],
        [1.0, 1.0],
        [0.5, 0.5],
        [0.25, 0.25],
    ]
    assert all(np.allclose(m.objects.confidences, 0.9) for m in metas)


def test_gaps_can_be_left_empty() -> None:
    metas = passing(1, inferred=[True, True, False, True])
    assert track(open_tracker("iou:fill_gaps=no"), metas) == [[None, None], [1, 2], [], [1, 2]]


def test_gaps_are_filled_for_so_long_only() -> None:
    metas = passing(1, inferred=[True, True, *[False] * 5, True])
    got = track(open_tracker("iou:max_gap=3"), metas)
    assert [len(g) for g in got] == [2, 2, 2, 2, 2, 0, 0, 2]
    assert got[-1] == [1, 2]


def test_what_was_lost_or_on_probation_is_not_shown() -> None:
    tracker = open_tracker("iou")
    boxes = [[100, 50, 40, 30], [300, 50, 40, 30], [20, 300, 30, 40]]
    metas = [meta(0, boxes[:2]), meta(1, boxes[:2]), meta(2, boxes[1:]), meta(3, inferred=False)]
    assert track(tracker, metas) == [[None, None], [1, 2], [2, None], [2]]


def test_an_inferred_frame_without_objects_ends_what_is_shown() -> None:
    metas = passing(1, inferred=[True, True, False])
    metas[2:2] = [meta(2)]
    metas[3].frame = 3
    assert track(open_tracker("iou"), metas)[2:] == [[], []]


def test_probation_does_not_end_in_a_gap() -> None:
    metas = passing(5, inferred=[True, False, False, True, False, True])
    assert track(open_tracker("iou"), metas) == [[None] * 2, [], [], [1, 2], [1, 2], [1, 2]]


def test_an_object_that_leaves_is_cut_at_the_border_and_then_gone() -> None:
    metas = passing(20, inferred=[True] * 3 + [False] * 4, start=WIDTH - 85)
    got = track(open_tracker("iou"), metas)
    lengths = [m.objects.rects[got[i].index(1), 2] for i, m in enumerate(metas) if 1 in got[i]][2:]
    assert lengths == pytest.approx([25, 5])
    for m in metas[3:]:
        assert (m.objects.rects[:, :2] >= 0).all()
        assert (m.objects.rects[:, 0] + m.objects.rects[:, 2] <= WIDTH).all()
        assert (m.objects.rects[:, 1] + m.objects.rects[:, 3] <= HEIGHT).all()
    assert got[-1] == [2]


def test_objects_of_several_models_angles_and_colours_come_back() -> None:
    def frame(number: int, inferred: bool) -> FrameMeta:
        m = FrameMeta("", 0, number, 0, WIDTH, HEIGHT, inferred=inferred)
        for component, angle in ((3, 30.0), (1, None)) if inferred else ():
            m.objects.append(
                Detections(
                    [[50 * component, 60, 20, 20]],
                    [0.5],
                    [0],
                    angles=None if angle is None else [angle],
                    space=Space.FRAME,
                ),
                component,
                labels=[f"of {component}"],
                border_colors=np.full((1, 4), 0.5, np.float32) if component == 3 else None,
            )
        return m

    metas = [frame(0, True), frame(1, True), frame(2, False)]
    track(open_tracker("iou"), metas)
    shown = {v.component_id: v for v in metas[2].objects}
    assert [shown[c].label for c in (1, 3)] == ["of 1", "of 3"]
    assert [shown[c].angle for c in (1, 3)] == [0, 30]
    assert shown[3].style.border_color == (0.5, 0.5, 0.5, 0.5)
    assert shown[1].style.border_color == ClassStyle().border_color


def test_objects_that_somebody_else_put_into_a_gap_are_detections() -> None:
    metas = passing(1, inferred=[True, True])
    extra = meta(2, [[300, 100, 20, 20]], inferred=False)
    assert track(open_tracker("iou"), [*metas, extra])[-1] == [None]
    assert len(extra.objects) == 1


def test_a_gap_does_not_change_the_objects_of_the_frame_it_came_from() -> None:
    metas = passing(10, inferred=[True, True, False])
    tracker = open_tracker("iou")
    track(tracker, metas)
    metas[2].objects.object_ids[:] = UNTRACKED_OBJECT_ID
    metas[2].objects.rects[:] = 0
    again = meta(3, inferred=False)
    tracker.update(IMAGE, again)
    assert ids(again) == [1, 2]
    assert ids(metas[1]) == [1, 2]
