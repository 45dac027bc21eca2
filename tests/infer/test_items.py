"""Models on objects: classifiers, detectors, batches over frames and sources, the result cache."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

from headrace.infer.batch import Batch
from headrace.infer.inferencer import Inferencer
from headrace.meta import UNTRACKED_OBJECT_ID
from tests.infer.scenes import Config, batch_of, classifier, image, ran, texts

RED, GREEN = ("red", (10, 10, 40, 40)), ("green", (60, 10, 40, 40))
BLUE = ("blue", (10, 60, 40, 40))


def test_each_crop_is_classified_by_its_own_pixels(mean_config: Config) -> None:
    with Inferencer.from_config(classifier(mean_config)) as model:
        batch = batch_of([[RED, GREEN, BLUE], [], [BLUE, ("dark", (70, 70, 20, 20))]])
        model.process(batch)
    assert texts(batch) == [
        ["thing red ", "thing green ", "thing blue "],
        [],
        ["thing blue ", "thing"],
    ]
    (meta,) = batch.metas[0].objects[1].classifiers
    assert (meta.component_id, meta.text) == (2, "green ")
    (info,) = meta.labels
    assert (info.attribute, info.value, info.label) == (0, 1, "green")
    assert info.confidence == pytest.approx(1.0, abs=1e-5)
    assert batch.metas[2].objects[1].classifiers == ()
    assert len(batch.metas[0].objects) == 3, "a classifier adds no objects to frames"


@pytest.mark.parametrize("batch_size", [1, 2, 3, 16])
@pytest.mark.parametrize("streams", [1, 2])
def test_objects_are_batched_over_frames(
    mean_config: Config, batch_size: int, streams: int
) -> None:
    config = classifier(mean_config, batch_size=batch_size)
    scenes = [[RED, GREEN, BLUE], [], [GREEN, RED], [BLUE]]
    with Inferencer.from_config(config, streams=streams) as model:
        sizes: list[int] = []
        model.on_raw_output = lambda raw: sizes.append(len(raw.metas))
        batch = batch_of(scenes)
        model.process(batch)
    assert texts(batch) == [[f"thing {color} " for color, _ in scene] for scene in scenes]
    full, rest = divmod(6, batch_size)
    assert sizes == [batch_size] * full + [rest] * bool(rest)


def test_two_classifiers_in_turn_lengthen_the_text(mean_config: Config) -> None:
    config = classifier(mean_config)
    with (
        Inferencer.from_config(config) as first,
        Inferencer.from_config(config, unique_id=3) as second,
    ):
        batch = batch_of([[RED]])
        first.process(batch)
        second.process(batch)
    (thing,) = batch.metas[0].objects
    assert thing.display_text == "thing red  red "
    assert [c.component_id for c in thing.classifiers] == [2, 3]


def test_selection_by_class_component_and_size(mean_config: Config) -> None:
    small = ("green", (60, 10, 10, 10))
    with Inferencer.from_config(classifier(mean_config, operate_on_gie_id=1)) as model:
        assert ran(model, batch_of([[RED]])) == 1
        assert ran(model, batch_of([[RED]], component=5)) == 0
    with Inferencer.from_config(classifier(mean_config, operate_on_class_ids="1;2")) as model:
        assert ran(model, batch_of([[RED]], class_id=0)) == 0
        assert ran(model, batch_of([[RED]], class_id=2)) == 1
    with Inferencer.from_config(classifier(mean_config, input_object_min_width=20)) as model:
        batch = batch_of([[RED, small]])
        assert ran(model, batch) == 1
        assert texts(batch) == [["thing red ", "thing"]]


def test_tracked_objects_are_inferred_once_and_keep_their_label(mean_config: Config) -> None:
    with Inferencer.from_config(classifier(mean_config)) as model:
        first = batch_of([[RED, GREEN]], number=0, ids=[7, 8])
        assert ran(model, first) == 2
        # the pixels under both change: only the cache can say what they were
        later = batch_of([[("blue", RED[1]), ("blue", GREEN[1])]], number=1, ids=[8, 7])
        assert ran(model, later) == 0
        assert texts(later) == [["thing green ", "thing red "]]
        grown = batch_of([[("blue", (10, 10, 60, 60))]], number=2, ids=[7])
        assert ran(model, grown) == 1
        assert texts(grown) == [["thing blue "]]


def test_reinference_by_age_also_erases(mean_config: Config) -> None:
    with Inferencer.from_config(classifier(mean_config, secondary_reinfer_interval=1)) as model:
        seen = []
        for number in range(5):
            color = "red" if number < 2 else "dark"
            batch = batch_of([[(color, RED[1])]], number=number, ids=[1])
            seen.append((ran(model, batch), texts(batch)[0][0]))
    assert seen == [(1, "thing red "), (0, "thing red "), (1, "thing"), (0, "thing"), (1, "thing")]


def test_sources_do_not_share_what_is_remembered(mean_config: Config) -> None:
    with Inferencer.from_config(classifier(mean_config)) as model:
        batch = batch_of([[RED], [BLUE]], ids=[1])
        assert ran(model, batch) == 2
        batch = batch_of([[BLUE], [RED]], number=1, ids=[1])
        assert ran(model, batch) == 0
        assert texts(batch) == [["thing red "], ["thing blue "]]
        model.end_of_stream(0)
        batch = batch_of([[BLUE], [RED]], number=2, ids=[1])
        assert ran(model, batch) == 1
        assert texts(batch) == [["thing blue "], ["thing blue "]]


def test_several_buffers_in_one_batch_give_what_one_after_the_other_gives(
    mean_config: Config,
) -> None:
    def buffers() -> list[Batch]:
        colors = ["red", "green", "blue", "red"]
        return [batch_of([[(c, RED[1])]], number=i, ids=[5]) for i, c in enumerate(colors)]

    config = classifier(mean_config, batch_size=8, secondary_reinfer_interval=1)
    with Inferencer.from_config(config) as model:
        single = []
        for batch in buffers():
            model.process(batch)
            single += texts(batch)
    parts = buffers()
    joined = Batch(
        [b.frames[0] for b in parts], [b.metas[0] for b in parts], [b.buffers[0] for b in parts]
    )
    with Inferencer.from_config(config) as model:
        sizes: list[int] = []
        model.on_raw_output = lambda raw: sizes.append(len(raw.metas))
        model.process(joined)
    assert (
        texts(joined)
        == single
        == [["thing red "], ["thing red "], ["thing blue "], ["thing blue "]]
    )
    assert sizes == [2]


def test_a_secondary_detector_adds_children(mean_config: Config) -> None:
    config = mean_config(
        gie_unique_id=4, process_mode=2, operate_on_gie_id=1, net_scale_factor=0.00392157
    )
    with Inferencer.from_config(config) as model:
        batch = batch_of([[RED, GREEN]])
        model.process(batch)
        again = batch.metas[0]
        objects = again.objects
        assert objects.component_ids.tolist() == [1, 1, 4]
        (child,) = objects[0].children
        assert child.parent == objects[0]
        # the parser finds the middle half of the crop, scored by its mean red: 0 for green
        assert (child.left, child.top, child.width, child.height) == (20, 20, 20, 20)
        assert objects[1].children == []
        # children are not looked at again by the model that made them
        model.process(Batch([batch.frames[0]], [again], [1]))
        assert objects.component_ids.tolist() == [1, 1, 4, 4]


def test_a_crop_starts_at_even_pixels_but_its_children_at_the_box(mean_config: Config) -> None:
    config = mean_config(gie_unique_id=4, process_mode=2)
    with Inferencer.from_config(config) as model:
        batch = batch_of([[("red", (11, 21, 41, 31))]])
        batch.metas[0].objects.rects[:] = (11.5, 21.25, 41.5, 31.5)
        model.process(batch)
    child = batch.metas[0].objects[1]
    assert (child.left, child.top) == (11.5 + 10, 21.25 + 7.5)
    assert (child.width, child.height) == (20, 15)


def test_an_asynchronous_classifier_labels_later_frames(mean_config: Config) -> None:
    config = classifier(mean_config, classifier_async_mode=1)
    with Inferencer.from_config(config) as model:
        gate = threading.Event()
        run = model.session.run
        model.session.run = lambda inputs: (gate.wait(5), run(inputs))[1]  # type: ignore[method-assign]
        labels = []
        for number in range(5):
            if number == 2:
                gate.set()
                deadline = time.monotonic() + 5
                while model.inferred_items < 1 and time.monotonic() < deadline:
                    time.sleep(0.005)
                time.sleep(0.05)
            batch = batch_of([[RED]], number=number, ids=[3])
            model.process(batch)
            labels.append(texts(batch)[0][0])
        untracked = batch_of([[GREEN]], number=9)
        assert ran(model, untracked) == 0
        assert any("tracker" in n.sentence for n in model.notices)
    assert model.results["labelled"] == model.inferred_items
    assert labels == ["thing", "thing", "thing red ", "thing red ", "thing red "]


def test_a_failing_engine_names_itself_and_frees_what_waited(mean_config: Config) -> None:
    from headrace.errors import EngineError

    with Inferencer.from_config(classifier(mean_config)) as model:
        run = model.session.run

        def fails(inputs: object) -> None:
            raise EngineError("the runtime is on fire")

        model.session.run = fails  # type: ignore[method-assign,assignment]
        with pytest.raises(EngineError, match="Failed to dequeue output from inferencing"):
            model.process(batch_of([[RED]], ids=[1]))
        model.session.run = run  # type: ignore[method-assign]
        batch = batch_of([[BLUE]], number=400, ids=[2])
        model.process(batch)
        assert texts(batch) == [["thing blue "]]


def test_no_memory_for_outputs_drops_the_batch_only(mean_config: Config) -> None:
    with Inferencer.from_config(classifier(mean_config)) as model:
        run = model.session.run
        failures = [MemoryError()]

        def once(inputs: object) -> object:
            if failures:
                raise failures.pop()
            return run(inputs)  # type: ignore[arg-type]

        model.session.run = once  # type: ignore[method-assign,assignment]
        batches = [batch_of([[RED]], number=i) for i in range(2)]
        for batch in batches:
            model.process(batch)
        assert [texts(b) for b in batches] == [[["thing"]], [["thing red "]]]
        assert sum("no memory for the outputs" in n.sentence for n in model.notices) == 1


def test_a_primary_classifier_adds_an_object_as_large_as_the_frame(mean_config: Config) -> None:
    config = classifier(mean_config, process_mode=1)
    with Inferencer.from_config(config) as model:
        metas = model.process([image([("red", (0, 0, 160, 120))]), image([])])
    (whole,) = metas[0].objects
    assert (whole.left, whole.top, whole.width, whole.height) == (0, 0, 160, 120)
    assert (whole.class_id, whole.object_id) == (-1, UNTRACKED_OBJECT_ID)
    assert (whole.component_id, whole.label) == (2, "thing"[:0])
    assert whole.display_text == " red "
    assert whole.style.border_width == 6
    assert metas[0].inferred
    assert len(metas[1].objects) == 0
    assert metas[1].inferred


def test_objects_without_a_label_file_get_nothing(mean_config: Config) -> None:
    with Inferencer.from_config(classifier(mean_config, labelfile_path=None)) as model:
        batch = batch_of([[RED]])
        assert ran(model, batch) == 1
    assert batch.metas[0].objects[0].classifiers == ()
    assert texts(batch) == [["thing"]]


def test_many_objects_keep_their_order(mean_config: Config) -> None:
    colors = np.random.default_rng(3).choice(["red", "green", "blue"], 300).tolist()
    patches = [(c, (4 * (i % 30), 6 * (i // 30), 4, 6)) for i, c in enumerate(colors)]
    with Inferencer.from_config(classifier(mean_config, batch_size=32), streams=2) as model:
        batch = batch_of([patches])
        model.process(batch)
    assert texts(batch) == [[f"thing {c} " for c in colors]]


def test_what_came_out_of_each_step_is_counted(mean_config: Config) -> None:
    with Inferencer.from_config(classifier(mean_config)) as model:
        model.process(batch_of([[RED, ("dark", (70, 70, 20, 20))]]))
        assert model.results == {"labelled": 1}
    with Inferencer.from_config(mean_config(filter_out_class_ids="0")) as model:
        whole = (0, 0, 160, 120)
        model.process([image([("red", whole)]), image([("dark", whole)])])
        assert model.results == {"parsed": 2, "clustered": 1, "attached": 0}


def test_boxes_of_classes_that_the_config_does_not_have_are_told(mean_config: Config) -> None:
    config = mean_config(
        parse_bbox_func_name="seventh",
        parser="""
def seventh(layers, network, params):
    return Detections([[0, 0, 8, 8], [4, 4, 8, 8]], [1, 1], [0, 7])
""",
    )
    with Inferencer.from_config(config) as model:
        (meta, _) = model.process([image([]), image([])])
        said = [n.sentence for n in model.notices if "num-detected-classes=1" in n.sentence]
    assert len(meta.objects) == 1
    assert len(said) == 1
    assert "class 7" in said[0]
