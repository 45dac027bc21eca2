"""The iou tracker: probation, ageing, prediction, doubles, limits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from headrace.meta import FrameMeta
from headrace.pipeline.track import Tracker, TrackIds, open_tracker
from tests.pipeline.track.scenes import ALL, IMAGE, meta, track

A, B = [100, 100, 50, 50], [300, 200, 40, 60]


def follow(boxes: list[list[list[float]]], spec: str = "iou", **settings: Any) -> list[list[Any]]:
    """The ids in each frame, given the boxes of each."""
    return track(open_tracker(spec, **settings), [meta(i, b) for i, b in enumerate(boxes)])


def moving(frame: int, speed: float, start: float = 100) -> list[float]:
    return [start + speed * frame, 100, 50, 50]


def test_is_a_tracker() -> None:
    assert isinstance(open_tracker("iou"), Tracker)
    assert "iou" in repr(open_tracker("iou"))


def test_an_object_gets_an_id_at_its_second_detection_and_keeps_it() -> None:
    assert follow([[A], [A], [A, B], [B, A]]) == [[None], [1], [1, None], [2, 1]]


@pytest.mark.parametrize("hits", [1, 2, 4])
def test_min_hits_is_the_length_of_the_probation(hits: int) -> None:
    assert follow([[A]] * 5, min_hits=hits) == [[None]] * (hits - 1) + [[1]] * (6 - hits)


def test_ids_start_at_one_and_none_is_wasted_on_probation() -> None:
    flicker = [[400 + 60 * i, 300, 20, 20] for i in range(3)]
    frames = [[A, flicker[0]], [A, flicker[1]], [A, flicker[2]], [A, B], [A, B]]
    assert follow(frames)[-1] == [1, 2]


def test_a_miss_on_probation_starts_over_unless_allowed() -> None:
    frames: list[Any] = [[A], [], [A], [A]]
    assert follow(frames, min_hits=3) == [[None], [], [None], [None]]
    assert follow(frames, min_hits=3, max_probation_misses=1) == [[None], [], [None], [1]]


@pytest.mark.parametrize(("missed", "same"), [(5, True), (6, False)])
def test_max_age_is_how_long_a_lost_object_is_remembered(missed: int, same: bool) -> None:
    frames: list[Any] = [[A], [A], *[[]] * missed, [A], [A]]
    assert follow(frames, max_age=5)[-1] == [1 if same else 2]


def test_frames_without_inference_age_what_is_lost_and_nothing_else() -> None:
    def run(max_age: int, seen_before: list[bool]) -> list[list[Any]]:
        inferred = [True, True, *seen_before, True, True]
        metas = [
            meta(i, [A] if i in (0, 1, len(inferred) - 2, len(inferred) - 1) else [], inferred=seen)
            for i, seen in enumerate(inferred)
        ]
        return track(open_tracker("iou", max_age=max_age), metas)

    lost = [True, False, False, False]  # looked for in vain once, then three frames of gap
    assert run(4, lost)[-1] == [1]
    assert run(3, lost)[-1] == [2]
    assert run(0, [False] * 4)[-1] == [1]


def test_a_lost_object_keeps_its_size() -> None:
    """Its front is hidden more and more by something it passes behind, at 10 pixels a frame."""
    hidden = [[100 + 10 * i, 100, 100 - 10 * max(0, i - 2), 50] for i in range(5)]
    frames: list[Any] = [[h] for h in hidden] + [[]] * 3 + [[[170, 100, 100, 50]]] * 2
    assert follow(frames, velocity_gain=1.0, min_iou=0.5)[-1] == [1]


def test_a_lost_object_is_expected_where_it_was_going() -> None:
    frames: list[Any] = [[moving(i, 20)] if i < 5 or i > 12 else [] for i in range(15)]
    assert follow(frames)[-1] == [1]
    assert follow(frames, velocity_gain=0.0)[-1] == [2]


def test_a_fast_object_is_followed_once_its_velocity_is_known() -> None:
    # each step is more than half of its width: less overlap than asked for without prediction
    speeds = np.minimum(np.arange(20) * 4, 40).cumsum()
    frames: list[Any] = [[[s, 100, 50, 50]] for s in speeds.tolist()]
    assert follow(frames, min_iou=0.5)[-1] == [1]
    assert follow(frames, min_iou=0.5, velocity_gain=0.0)[-1] == [None]


@pytest.mark.parametrize("spec", ALL)
def test_frames_that_were_dropped_on_the_way_count_for_the_motion(spec: str) -> None:
    numbers = [*range(8), 12, 13]
    metas = [meta(n, [moving(n, 20)]) for n in numbers]
    assert track(open_tracker(spec), metas)[-1] == [1]


def test_objects_that_cross_keep_their_ids() -> None:
    frames: list[Any] = [[moving(i, 12, 100), moving(i, -12, 412)] for i in range(27)]
    assert follow(frames)[-1] == [1, 2]


def test_the_established_track_wins_over_the_one_on_probation() -> None:
    near = [104, 100, 50, 50]
    frames: list[Any] = [[A], [A], [A, near], [near]]
    assert follow(frames, max_new_iou=1.0)[-1] == [1]


def test_a_double_starts_no_track() -> None:
    near = [104, 100, 50, 50]
    assert follow([[A, near]] * 3, max_new_iou=1.0) == [[None, None], [1, 2], [1, 2]]
    # two that come at once are two; a second one beside a track is a double
    assert follow([[A], *[[A, near]] * 3])[-1] == [1, None]
    # beside where the track is, not where it was expected
    jumped = [[120, 100, 50, 50], [122, 100, 50, 50]]
    assert follow([[A], [A], jumped, jumped], velocity_gain=0.0)[-1] == [1, None]


def test_classes_are_kept_apart_unless_told_otherwise() -> None:
    metas = [meta(i, [A], classes=[c]) for i, c in enumerate([0, 0, 1, 1])]
    assert track(open_tracker("iou"), metas) == [[None], [1], [None], [2]]
    metas = [meta(i, [A], classes=[c]) for i, c in enumerate([0, 0, 1, 1])]
    assert track(open_tracker("iou:match_classes=false"), metas) == [[None], [1], [1], [1]]


def test_models_are_always_kept_apart() -> None:
    metas = [meta(i, [A], component=c) for i, c in enumerate([1, 1, 2, 2])]
    assert track(open_tracker("iou:match_classes=false"), metas) == [[None], [1], [None], [2]]


def test_confidence_decides_who_is_tracked_and_who_starts_a_track() -> None:
    def metas(scores: list[float]) -> list[FrameMeta]:
        return [meta(i, [A], scores=[s]) for i, s in enumerate(scores)]

    strict = open_tracker("iou:min_confidence=0.5")
    assert track(strict, metas([0.9, 0.9, 0.4, 0.9])) == [[None], [1], [None], [1]]
    weak = [0.4, 0.4, 0.9, 0.9, 0.4]
    extend = open_tracker("iou:min_new_confidence=0.5")
    assert track(extend, metas(weak)) == [[None], [None], [None], [1], [1]]


@pytest.mark.parametrize("spec", ALL)
def test_an_unknown_confidence_is_no_bad_one(spec: str) -> None:
    """Group rectangles know none and say -0.1."""
    metas = [meta(i, [A], scores=[-0.1]) for i in range(5)]
    assert track(open_tracker(spec), metas)[-1] == [1]


def test_max_tracks_keeps_the_most_confident() -> None:
    boxes = [[60 * i, 10, 40, 40] for i in range(6)]
    scores = [0.5, 0.9, 0.6, 0.8, 0.7, 0.4]
    metas = [meta(i, boxes, scores=scores) for i in range(2)]
    got = track(open_tracker("iou:max_tracks=3"), metas)[-1]
    assert [i is not None for i in got] == [s >= 0.7 for s in scores]


def test_trackers_may_share_numbers() -> None:
    ids = TrackIds()
    first, second = (open_tracker("iou:min_hits=1", ids=ids) for _ in range(2))
    assert [track(t, [meta(0, [A, B])]) for t in (first, second, first)] == [
        [[1, 2]],
        [[3, 4]],
        [[1, 2]],
    ]


def test_after_the_end_of_a_stream_its_ids_are_not_used_again() -> None:
    tracker = open_tracker("iou:min_hits=1")
    assert track(tracker, [meta(0, [A]), meta(0, [A], source_id=1)]) == [[1], [2]]
    tracker.end_of_stream(0)
    tracker.end_of_stream(7)  # never seen
    assert track(tracker, [meta(0, [A]), meta(1, [A], source_id=1)]) == [[3], [2]]
    tracker.close()
    assert track(tracker, [meta(2, [A], source_id=1)]) == [[4]]


def test_a_source_whose_numbers_start_over_is_followed_on() -> None:
    metas = [meta(n, [A]) for n in (5, 6, 0, 1)]
    assert track(open_tracker("iou"), metas) == [[None], [1], [1], [1]]


def test_a_thousand_objects_take_well_under_five_milliseconds() -> None:
    from time import perf_counter

    rng, tracker, times = np.random.default_rng(0), open_tracker("iou"), []
    boxes = np.concatenate((rng.uniform(0, 1800, (1000, 2)), rng.uniform(20, 120, (1000, 2))), 1)
    for i in range(25):
        m = meta(i, boxes + rng.normal(0, 1, boxes.shape))
        start = perf_counter()
        tracker.update(IMAGE, m)
        times.append(perf_counter() - start)
    assert min(times[3:]) < 5e-3  # the least, since other work shares the machine
