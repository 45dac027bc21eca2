"""Secondary selection and its memory, against a literal oracle and the spec's cases (D.3, D.4)."""

from __future__ import annotations

import importlib.util
import threading
from collections import deque
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.config import ModelConfig
from headrace.infer.selection import Selector
from headrace.meta import ClassifierMeta, Detections, FrameMeta, LabelInfo, Space
from tests.infer.oracle_selection import remembered_result
from tests.profiles import examples

_spec = importlib.util.spec_from_file_location(
    "oracle_selection", Path(__file__).with_name("oracle_selection.py")
)
oracle = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(oracle)

UNTRACKED = oracle.UNTRACKED
CLASSIFIER, DETECTOR = 1, 0


def config(network_type=CLASSIFIER, **values) -> ModelConfig:
    return ModelConfig(process_mode=2, network_type=network_type, **values)


def thing(object_id=1, width=100.0, height=100.0, *, left=0.0, top=0.0, gie=1, cls=0):
    return {"id": object_id, "rect": (left, top, width, height), "gie": gie, "cls": cls}


def frame_of(number, objects, source=0, pts_ns=0, size=(1920, 1080)) -> FrameMeta:
    meta = FrameMeta(f"cam{source}", source, number, pts_ns, *size)
    n = len(objects)
    rects = np.array([o["rect"] for o in objects], np.float32).reshape(n, 4)
    blank = Detections(
        np.zeros((n, 4), np.float32), np.ones(n, np.float32), np.zeros(n, np.int32),
        space=Space.FRAME,
    )  # fmt: skip
    meta.objects.append(blank, 1)
    meta.objects.rects[:] = rects
    meta.objects.class_ids = np.array([o["cls"] for o in objects], np.int32)
    meta.objects.component_ids = np.array([o["gie"] for o in objects], np.int32)
    meta.objects.object_ids = np.array([o["id"] for o in objects], np.uint64)
    return meta


def says(text: str) -> ClassifierMeta:
    return ClassifierMeta(5, (LabelInfo(0, 0, 0.9, text.strip()),), text)


class Model:
    """A secondary classifier without a network: says what it is told, `delay` frames later."""

    def __init__(self, cfg, results=None, *, delay=0, **kwargs):
        self.selector = Selector(cfg, **kwargs)
        self.results = results or (lambda number: says("red "))
        self.delay = delay
        self.under_way = deque()
        self.inferred, self.labelled = [], []

    def run(self, number, objects, source=0, **kwargs):
        """One frame: the texts its objects carry afterwards."""
        while self.under_way and number - self.under_way[0][0] >= self.delay:
            self.selector.store_many(*self.under_way.popleft()[1:])
        meta = frame_of(number, objects, source, **kwargs)
        self.selector.next_buffer()
        selection = self.selector.select(meta)
        texts = dict.fromkeys(range(len(objects)), "")
        results = [self.results(number)] * len(selection.infer)
        if self.selector.async_mode:
            self.under_way.append((number, selection, results))
        else:
            self.selector.store_many(selection, results)
            texts |= {
                i: r.text for i, r in zip(selection.infer.tolist(), results, strict=True) if r
            }
        cached = self.selector.cached_many(selection)
        texts |= {i: r.text for i, r in zip(selection.cached.tolist(), cached, strict=True) if r}
        self.inferred += [number] * bool(len(selection.infer))
        self.labelled += [number] * any(texts.values())
        return selection.infer.tolist(), texts


# -- the spec's cases ------------------------------------------------------------------------------


def test_any_component_and_any_class_by_default():  # SEC-002
    objects = [thing(1, 20, 20, gie=1), thing(2, 20, 20, gie=9, cls=50)]
    for kind in (CLASSIFIER, DETECTOR):
        selection = Selector(config(kind)).select(frame_of(0, objects))
        assert selection.infer.tolist() == [0, 1]


def test_component_and_class_filters():
    objects = [thing(i, 20, 20, gie=g, cls=c) for i, (g, c) in enumerate(
        [(1, 0), (1, 2), (2, 2), (1, -1), (1, 3)]
    )]  # fmt: skip
    cfg = config(operate_on_gie_id=1, operate_on_class_ids=(2, 3))
    assert Selector(cfg).select(frame_of(0, objects)).infer.tolist() == [1, 4]
    only_class = config(operate_on_class_ids=(2,))
    assert Selector(only_class).select(frame_of(0, objects)).infer.tolist() == [1, 2]


def test_the_smallest_object():  # SEC-003
    objects = [thing(1, 2, 2), thing(2, 0.9, 50), thing(3, 1, 1)]
    selector = Selector(config())
    meta = frame_of(0, objects)
    assert np.flatnonzero(selector.passes_size(meta.objects.rects)).tolist() == [0, 2]
    assert selector.select(meta).infer.tolist() == [0]
    (notice,) = selector.notices
    assert notice.level == "warning"
    assert "an object of 1x1 pixels at 0,0 leaves nothing to crop from frame 0" in notice.sentence
    selector.select(frame_of(1, objects))
    assert len(selector.notices) == 1


def test_the_smallest_object_of_the_old_generation():
    objects = [thing(1, 16, 16), thing(2, 15.9, 50), thing(3, 50, 15.9), thing(4, 20, 20)]
    selector = Selector(config(input_object_min_width=4), generation="6.2")
    assert selector.select(frame_of(0, objects)).infer.tolist() == [0, 3]


def test_size_limits_are_inclusive():
    cfg = config(
        input_object_min_width=10, input_object_min_height=20,
        input_object_max_width=100, input_object_max_height=200,
    )  # fmt: skip
    sizes = [(10, 20), (9.99, 20), (10, 19.99), (100, 200), (100.01, 200), (100, 200.01)]
    objects = [thing(i, *size) for i, size in enumerate(sizes)]
    assert Selector(cfg).select(frame_of(0, objects)).infer.tolist() == [0, 3]


def test_an_object_that_grew_is_inferred_again():  # SEC-005
    model = Model(config())
    for number, size in [(10, (100, 100)), (11, (100, 120)), (12, (100, 120.5)), (13, (50, 50))]:
        model.run(number, [thing(1, *size)])
    assert model.inferred == [10, 12]
    model.run(14, [thing(1, 100, 144.5)])
    assert model.inferred == [10, 12], "the reference area is that of frame 12"
    model.run(15, [thing(1, 100, 144.6)])
    assert model.inferred == [10, 12, 15]


def run_constant(cfg, frames, **kwargs):
    model = Model(cfg, **kwargs)
    for number in range(frames[0], frames[1] + 1):
        model.run(number, [thing()], pts_ns=number * 40_000_000)
    return model


def test_interval_of_a_classifier():  # SEC-006
    model = run_constant(config(secondary_reinfer_interval=5), (10, 30))
    assert model.inferred == [10, 16, 22, 28]
    assert model.labelled == list(range(10, 31))


def test_the_default_interval():  # SEC-007
    assert run_constant(config(), (0, 5)).inferred == [0]
    assert run_constant(config(DETECTOR), (0, 5)).inferred == [0, 1, 2, 3, 4, 5]


def test_interval_of_a_detector_knows_no_growth():  # SEC-008
    model = Model(config(DETECTOR, secondary_reinfer_interval=2))
    for number in range(8):
        model.run(number, [thing(1, 50 * (number + 1), 100)])
    assert model.inferred == [0, 3, 6]
    assert model.labelled == [0, 3, 6], "a detector has nothing cached"


@pytest.mark.parametrize("network_type", [2, 3, 100])
def test_other_networks_look_at_every_frame(network_type):
    model = run_constant(config(network_type, secondary_reinfer_interval=3), (0, 4))
    assert model.inferred == [0, 1, 2, 3, 4]


def test_untracked_objects():  # SEC-009
    for is_async, expected in ((False, [0, 1, 2]), (True, [])):
        model = Model(config(classifier_async_mode=is_async))
        for number in range(3):
            model.run(number, [thing(UNTRACKED), thing(UNTRACKED)], pts_ns=number)
        assert model.inferred == expected


def test_untracked_objects_are_told_every_five_minutes():
    selector = Selector(config(classifier_async_mode=True, input_object_min_width=10))
    minute = 60 * 10**9
    for number in range(1300):
        if number == 3:
            assert selector.notices == [], "a filter left the small one out"
        width = 100 if number >= 3 else 5
        pts = number * minute // 100
        selector.select(frame_of(number, [thing(UNTRACKED, width)], pts_ns=pts))
    assert [n.level for n in selector.notices] == ["warning"] * 3
    for notice, number in zip(selector.notices, (3, 503, 1003), strict=True):
        assert f"frame {number} of cam0; a tracker before this model" in notice.sentence


def test_the_cached_result_is_attached():  # SEC-010
    model = run_constant(config(secondary_reinfer_interval=100), (0, 3))
    assert (model.inferred, model.labelled) == ([0], [0, 1, 2, 3])


def test_async_results_come_later():  # SEC-011
    cfg = config(classifier_async_mode=True)
    model = run_constant(cfg, (0, 4), delay=2)
    assert (model.inferred, model.labelled) == ([0], [2, 3, 4])


def test_async_attaches_before_it_submits_again():
    cfg = config(classifier_async_mode=True, secondary_reinfer_interval=0)
    model = Model(cfg, results=lambda number: says(f"{number} "), delay=2)
    texts = [model.run(number, [thing()])[1][0] for number in range(5)]
    assert model.inferred == [0, 1, 2, 3, 4]
    assert texts == ["", "", "0 ", "1 ", "2 "]


def test_async_is_for_classifiers():
    for kind in (0, 2, 3, 100):
        assert not Selector(config(kind, classifier_async_mode=True)).async_mode
    assert Selector(config(classifier_async_mode=True)).async_mode


def test_a_result_stays_when_a_filter_rejects():  # SEC-012
    model = Model(config(input_object_min_width=32, operate_on_gie_id=1))
    model.run(0, [thing(1, 40, 40)])
    model.run(1, [thing(1, 20, 20)])
    assert (model.inferred, model.labelled) == ([0], [0, 1])
    for left_out in (thing(1, gie=2), thing(1, left=2000), thing(1, 40, float("nan"))):
        assert model.run(2, [left_out]) == ([], {0: "red "})


def test_an_empty_result_erases():  # SEC-013
    model = Model(config(secondary_reinfer_interval=0), lambda n: says("red ") if n == 0 else None)
    for number in range(3):
        model.run(number, [thing()])
    assert (model.inferred, model.labelled) == ([0, 1, 2], [0])


@pytest.mark.parametrize("event", ["end_of_stream", "clear"])
def test_forgets_at_the_end_of_a_stream_and_with_a_new_model(event):  # SEC-015
    model = Model(config(secondary_reinfer_interval=1000))
    model.run(0, [thing()])
    model.run(0, [thing()], source=1)
    model.run(1, [thing()])
    forget = getattr(model.selector, event)
    forget(*[0] * (event == "end_of_stream"))
    model.run(2, [thing()])
    assert model.inferred == [0, 0, 2]
    model.run(1, [thing()], source=1)
    assert model.inferred == [0, 0, 2] + [1] * (event == "clear")


def test_tracking_ids_are_those_of_a_source():  # SEC-016
    model = Model(config(secondary_reinfer_interval=1000))
    order = [(0, 0, 0), (0, 1, 0), (1, 0, 2)]
    inferred = [
        (number, source)
        for number, source, cls in order
        if model.run(number, [thing(7, cls=cls)], source)[0]
    ]
    assert inferred == [(0, 0), (0, 1)]


def test_interval_of_whole_frames_is_not_used():  # SCH-002
    model = run_constant(config(DETECTOR, interval=4), (0, 2))
    assert model.inferred == [0, 1, 2]


def test_objects_of_several_frames_in_order():  # SCH-005
    selector = Selector(config(batch_size=4))
    items = []
    for source, count in enumerate([3, 0, 4]):
        meta = frame_of(0, [thing(i) for i in range(count)], source)
        items += [source] * len(selector.select(meta).infer)
    assert items == [0, 0, 0, 2, 2, 2, 2]


# -- what the spec leaves to us --------------------------------------------------------------------


def test_no_model_looks_at_its_own_objects():
    objects = [thing(UNTRACKED, gie=1), thing(UNTRACKED, gie=2)]
    for kind, given_id, expected in (
        (DETECTOR, 2, [0]), (3, 2, [0]), (DETECTOR, 1, [1]), (DETECTOR, 3, [0, 1]),
        (CLASSIFIER, 1, [0, 1]), (DETECTOR, None, [0, 1]),
    ):  # fmt: skip
        selector = Selector(config(kind, gie_unique_id=given_id))
        assert selector.select(frame_of(0, objects)).infer.tolist() == expected


def test_what_cannot_be_cropped_is_tried_again():
    """An object that enters the frame later must not count as seen."""
    model = Model(config())
    for number, left in enumerate([1920, 1919, 1900]):
        model.run(number, [thing(1, 50, 50, left=left)])
    assert model.inferred == [2]


def test_frame_numbers_that_go_backwards():
    model = Model(config())
    for number in (5, 6, 2, 3):
        model.run(number, [thing()])
    assert model.inferred == [5, 2]


def test_the_same_id_twice_in_a_frame():
    """The second follows the first: it is submitted only if it is that much larger."""
    model = Model(config())
    assert model.run(0, [thing(1), thing(1), thing(1, 100, 121), thing(2)])[0] == [0, 2, 3]
    assert model.run(1, [thing(2), thing(1), thing(1)]) == ([], dict.fromkeys(range(3), "red "))
    model = Model(config(classifier_async_mode=True))
    assert model.run(0, [thing(1), thing(1)])[0] == [0]


def test_a_selection_outlives_the_memory():
    """The next buffer may be selected, or the stream end, before results are stored."""
    selector = Selector(config())
    first = selector.select(frame_of(0, [thing(1), thing(2)]))
    second = selector.select(frame_of(1, [thing(2), thing(1)]))
    assert (first.infer.tolist(), second.infer.tolist()) == ([0, 1], [])
    selector.end_of_stream(0)
    third = selector.select(frame_of(2, [thing(1)]))
    selector.store_many(first, [says("a ")])
    selector.store_many(first, [says("b ")], first=1)
    assert [r.text for r in selector.cached_many(second)] == ["b ", "a "]
    assert third.infer.tolist() == [0]
    assert remembered_result(selector, 0, 1) is None, "an old result does not reach the new stream"
    selector.store_many(third, [says("c ")])
    assert remembered_result(selector, 0, 1).text == "c "


def test_a_lost_result_keeps_what_is_remembered():
    selector = Selector(config(secondary_reinfer_interval=0))
    selector.store_many(selector.select(frame_of(0, [thing()])), [says("red ")])
    again = selector.select(frame_of(1, [thing(), thing(2)]))
    selector.abandon(again, 0, 1)
    selector.abandon(again, 1)
    assert remembered_result(selector, 0, 1).text == "red "
    assert remembered_result(selector, 0, 2) is None


# -- housekeeping ----------------------------------------------------------------------------------


def remembered(selector, source=0):
    history = selector._histories.get(source)
    return 0 if history is None else len(history)


def feed(selector, frames, objects=(), source=0, store=True):
    for number in frames:
        selector.next_buffer()
        selection = selector.select(frame_of(number, list(objects), source))
        if store:
            selector.store_many(selection, [says("x ")] * len(selection.infer))


@pytest.mark.slow
def test_objects_that_left_are_forgotten():
    selector = Selector(config())
    feed(selector, range(1), [thing(1), thing(2)])
    feed(selector, range(1, 1650), [thing(1)])
    feed(selector, range(1650, 1800), [thing(3)])
    assert remembered(selector) == 3
    selector.next_buffer()  # 1,801 buffers; the source is at frame 1799
    assert remembered(selector) == 3, "its source has not advanced by 1,800 frames"
    feed(selector, range(1800, 3600), [thing(3)])
    assert remembered(selector) == 3, "1,800 buffers are not more than 1,800"
    selector.next_buffer()
    assert remembered(selector) == 1
    feed(selector, [3600], [thing(1)])
    assert remembered_result(selector, 0, 1).text == "x ", "it is new again"


def test_just_150_frames_are_remembered():
    for unseen, kept in ((150, 1), (151, 0)):
        selector = Selector(config())
        feed(selector, [2000 - unseen], [thing(1)])
        feed(selector, [2000] * 1800)
        selector.next_buffer()
        assert remembered(selector) == kept


def test_objects_of_a_later_frame_are_forgotten():
    """A source that started over: what was seen in frame 5000 was not seen lately in frame 2000."""
    selector = Selector(config())
    feed(selector, [5000], [thing(1)])
    feed(selector, [2000] * 1800)
    selector.next_buffer()
    assert remembered(selector) == 0


def test_objects_under_inference_are_not_forgotten():
    selector = Selector(config())
    first = selector.select(frame_of(0, [thing(1), thing(2)]))
    selector.abandon(first, 1)
    feed(selector, range(1, 1802))
    assert remembered(selector) == 1
    selector.store_many(first, [says("late ")])
    assert remembered_result(selector, 0, 1).text == "late "


@pytest.mark.slow
def test_memory_is_bounded():
    selector = Selector(config())
    for number in range(5500):
        feed(selector, [number], [thing(i) for i in range(number, number + 3)])
    history = selector._histories[0]
    assert len(history) <= 2 * 1800 + 160
    assert len(history._frames) <= 8192


# -- against the oracle ----------------------------------------------------------------------------

ids = st.sampled_from([1, 2, 3, 4, 2**63 + 5, UNTRACKED])
side = st.one_of(st.sampled_from([100.0, 110.0, 120.0, 40.0, 16.0, 1.0, 0.5]), st.floats(0, 130))
place = st.one_of(st.floats(-20, 150), st.sampled_from([0.0, 128.0, float("nan")]))
objects = st.lists(
    st.builds(
        thing, ids, side, side, left=place, top=place, gie=st.integers(1, 3), cls=st.integers(-1, 2)
    ),
    max_size=7,
)
sources = st.integers(0, 1)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("frame"), sources, st.sampled_from([0, 1, 1, 2, 5, -3, 1900]), objects),
        st.tuples(st.just("complete"), st.booleans()),
        st.tuples(st.just("buffers"), st.sampled_from([1, 3, 1801])),
        st.tuples(st.just("end"), sources),
        st.tuples(st.just("clear")),
    ),
    max_size=25,
)
configs = st.builds(
    config, st.sampled_from([0, 1, 1, 1, 2, 3, 100]),
    gie_unique_id=st.sampled_from([None, 2]),
    secondary_reinfer_interval=st.sampled_from([0, 1, 2, 5, oracle.DEFAULT, -1]),
    classifier_async_mode=st.booleans(),
    operate_on_gie_id=st.sampled_from([-1, -1, 1]),
    operate_on_class_ids=st.sampled_from([(), (), (0, 1)]),
    input_object_min_width=st.sampled_from([0, 30]),
    input_object_max_height=st.sampled_from([0, 115]),
)  # fmt: skip


@settings(max_examples=examples(300))
@given(configs, steps, st.sampled_from(["9.1", "6.2"]))
def test_agrees_with_one_object_at_a_time(cfg, steps, generation):
    selector = Selector(cfg, generation=generation)
    literal = oracle.Oracle(cfg, generation)
    numbers, pending, count, clock = {}, deque(), 0, 0

    def complete(lost):
        selection, (_, cached, submitted, entries), results = pending.popleft()
        if lost:
            selector.abandon(selection)
            literal.store(submitted, [e and e["result"] for e in submitted])
        else:
            half = len(results) // 2
            selector.store_many(selection, results[:half])
            selector.store_many(selection, results[half:], half)
            literal.store(submitted, results)
        if not selector.async_mode and cfg.network_type == CLASSIFIER:
            assert selector.cached_many(selection) == [e["result"] for e in entries]
            assert len(cached) == len(entries)

    for kind, *rest in steps:
        if kind == "frame":
            source, advance, things = rest
            clock += 10**11
            numbers[source] = max(0, numbers.get(source, 0) + advance)
            meta = frame_of(numbers[source], things, source, clock, (128, 128))
            selector.next_buffer()
            literal.buffer()
            selection, expected = selector.select(meta), literal.select(meta, things)
            assert selection.infer.tolist() == expected[0]
            assert selection.cached.tolist() == expected[1]
            if selector.async_mode:
                now = [e["result"] for e in expected[3]]
                assert selector.cached_many(selection) == now
            results = []
            for _ in expected[0]:
                count += 1
                results.append(says(f"{count} ") if count % 4 else None)
            pending.append((selection, expected, results))
            if len(pending) > 3:
                complete(False)
        elif kind == "complete" and pending:
            complete(rest[0])
        elif kind == "buffers":
            for _ in range(rest[0]):
                selector.next_buffer()
                literal.buffer()
        elif kind == "end":
            selector.end_of_stream(rest[0])
            literal.end_of_stream(rest[0])
        elif kind == "clear":
            selector.clear()
            literal.clear()
        if selector._remembers:
            for source, known in literal.maps.items():
                assert remembered(selector, source) == len(known["objects"])
    while pending:
        complete(False)
    assert len([n for n in selector.notices if "async" in n.sentence]) == len(literal.warned)


def test_two_threads():
    """Selecting while results of earlier frames are stored: every object ends with its own."""
    selector = Selector(config(secondary_reinfer_interval=3))
    rng = np.random.default_rng(0)
    queue, seen, wrong = deque(), threading.Semaphore(0), []
    frames = 400

    def complete():
        for _ in range(frames):
            seen.acquire()
            selection, ids = queue.popleft()
            results = [says(f"{ids[i]} ") for i in selection.infer]
            selector.store_many(selection, results)
            for i, result in zip(
                selection.cached.tolist(), selector.cached_many(selection), strict=True
            ):
                if result is None or result.text != f"{ids[i]} ":
                    wrong.append((ids[i], result))

    thread = threading.Thread(target=complete)
    thread.start()
    for number in range(frames):
        # Far apart, so that housekeeping removes some that are still awaited.
        ids = rng.choice(400, 100, replace=False).tolist()
        selector._buffers += 200
        selector.next_buffer()
        selection = selector.select(frame_of(40 * number, [thing(i) for i in ids]))
        queue.append((selection, ids))
        seen.release()
    thread.join()
    assert wrong == []
