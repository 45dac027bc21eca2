"""One frame with the decision on every candidate: what a run finds, and what took the rest."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.infer.batch import Batch
from headrace.infer.candidates import Candidates, Fate, FateStage
from headrace.infer.cluster import Reason
from headrace.infer.engine_runs import RunSteps
from headrace.infer.inferencer import Inferencer
from headrace.infer.trace import FrameTrace, item_trace, trace_frame
from headrace.meta import Detections, InputTensor, Roi
from headrace.meta.detections import overlaps
from tests.infer.scenes import batch_of, classifier, image
from tests.infer.tally.test_box_losses import ROWS, detector, own_parser
from tests.infer.test_inferencer_segmentation import HALVES, instance_model, instances
from tests.profiles import examples

Config = Callable[..., Path]
PATCHES = [("red", (10, 10, 40, 80)), ("green", (60, 10, 20, 30))]


def traced(model: Inferencer) -> FrameTrace:
    return trace_frame(model, image([], size=(64, 64)))


def only(trace: FrameTrace) -> Candidates:
    (item,) = trace.items
    assert item.candidates is not None
    return item.candidates


def test_a_trace_finds_the_objects_of_a_run(tmp_path: Path) -> None:
    with detector(tmp_path) as model:
        plain = model(image([], size=(64, 64)))
        trace = traced(model)
        assert model.runs.on_steps is None
        (item,) = trace.items
    np.testing.assert_array_equal(trace.meta.objects.rects, plain.objects.rects)
    assert item.object == -1
    assert item.crop is None
    assert item.tensor.shape == (3, 64, 64)
    assert item.layers["out"].shape == (100, 7)
    found = only(trace)
    fates = [found.fate(row) for row in range(len(found))]
    assert [f.stage for f in fates] == ["object", "cluster", "object", "object"]
    assert [f.object for f in fates] == [0, -1, 1, 2]
    overlap = float(overlaps(found.detections.boxes[[1]], found.detections.boxes[[0]])[0, 0])
    assert fates[1] == Fate(FateStage.CLUSTER, "nms-iou-threshold", overlap, 0.5, by=0)


@pytest.mark.parametrize(
    ("attrs", "keys", "row", "fate"),
    [
        ("detected-min-w=11", {}, 0, Fate(FateStage.FILTER, "detected-min-w", 10, 11)),
        ("detected-min-h=10", {}, 2, Fate(FateStage.FILTER, "detected-min-h", 8, 10)),
        ("detected-max-w=15", {}, 3, Fate(FateStage.FILTER, "detected-max-w", 20, 15)),
        ("detected-max-h=15", {}, 0, Fate(FateStage.FILTER, "detected-max-h", 20, 15)),
        ("roi-top-offset=20", {}, 0, Fate(FateStage.FILTER, "roi-top-offset", 10, 20)),
        ("roi-bottom-offset=20", {}, 3, Fate(FateStage.FILTER, "roi-bottom-offset", 53, 44)),
        ("", {"filter_out_class_ids": 1}, 3, Fate(FateStage.FILTER, "filter-out-class-ids", 1)),
        ("topk=1", {}, 2, Fate(FateStage.TOPK, "topk", 2, 1)),
        (
            "post-cluster-threshold=0.75", {}, 2,
            Fate(FateStage.CLUSTER, "post-cluster-threshold", 0.7, 0.75),
        ),
        (
            "pre-cluster-threshold=0.75", {}, 2,
            Fate(FateStage.THRESHOLD, "pre-cluster-threshold", 0.7, 0.75),
        ),
        (
            "[class-attrs-1]\npre-cluster-threshold=0.65", {}, 3,
            Fate(FateStage.THRESHOLD, "pre-cluster-threshold", 0.6, 0.65),
        ),
    ],
)  # fmt: skip
def test_the_step_that_dropped_a_candidate_is_named_with_its_figures(
    tmp_path: Path, attrs: str, keys: dict[str, Any], row: int, fate: Fate
) -> None:
    with detector(tmp_path, attrs, **keys) as model:
        found = only(traced(model))
    boxes = found.detections.boxes[:, 2:].tolist()
    place = boxes.index(list(ROWS[row][2:4]))
    got = found.fate(place)
    assert (got.stage, got.key, got.by, got.object) == (fate.stage, fate.key, -1, -1)
    assert got.value == pytest.approx(fate.value)
    assert got.limit == pytest.approx(fate.limit)


def test_below_the_threshold_a_trace_knows_doubles_from_lost_objects(tmp_path: Path) -> None:
    rows = [(20, 20, 10, 20, 1, 0.9, 0), (21, 20, 10, 20, 1, 0.3, 0), (44, 20, 12, 8, 1, 0.2, 0)]
    with detector(tmp_path, rows=rows) as model:
        found = only(traced(model))
    assert found.parsed == 1
    below = [found.fate(row).stage for row in (1, 2)]
    assert below == [FateStage.THRESHOLD, FateStage.THRESHOLD]
    assert found.fate(1, lowered=True).stage is FateStage.CLUSTER
    assert found.fate(1, lowered=True).by == 0
    assert found.fate(2, lowered=True).stage is FateStage.OBJECT
    assert found.stages(lowered=True).tolist() == [4, 1, 4]


def test_a_place_finds_its_candidates_best_first(tmp_path: Path) -> None:
    with detector(tmp_path) as model:
        found = only(traced(model))
    assert found.at(20, 20).tolist() == [0, 1]
    assert found.at(63, 63).tolist() == []
    assert found.at(16, 10, 10, 20).tolist() == [1, 0]  # 0.8 of the very box, 0.9 of a shifted one


def test_what_an_own_parser_returned_is_traced(tmp_path: Path) -> None:
    keys = own_parser(tmp_path, "Detections([[5, 5, 9, 9], [1, 1, 9, 9]], [0.9, 0.9], [0, 7])")
    with detector(tmp_path, **keys) as model:
        found = only(traced(model))
    assert found.fate(0).stage is FateStage.OBJECT
    assert found.fate(1) == Fate(FateStage.THRESHOLD, "num-detected-classes", 7, 2)


def test_a_parser_that_refuses_is_the_error_of_the_item(tmp_path: Path) -> None:
    keys = own_parser(tmp_path, "1 / 0")
    with detector(tmp_path, **keys) as model:
        (item,) = traced(model).items
    assert item.candidates is None
    assert "ZeroDivisionError" in str(item.error)


def test_a_secondary_model_has_an_item_for_each_object_and_a_key_for_others(
    mean_config: Config,
) -> None:
    config = classifier(mean_config, input_object_min_width=30, operate_on_gie_id=1)
    batch = batch_of([PATCHES])
    with Inferencer.from_config(config) as model:
        trace = trace_frame(model, batch.frames[0], batch.metas[0])
    (item,) = trace.items
    assert trace.known == 2
    assert trace.skipped == {1: "input-object-min-width"}
    assert item.object == 0
    assert item.crop == (10, 10, 40, 80)
    assert item.classified is not None
    assert item.classified.text == "red "


def test_a_tracked_object_that_is_not_due_keeps_its_result(mean_config: Config) -> None:
    batch = batch_of([PATCHES], ids=[5, 6])
    with Inferencer.from_config(classifier(mean_config)) as model:
        assert len(trace_frame(model, batch.frames[0], batch.metas[0]).items) == 2
        trace = trace_frame(model, batch.frames[0], batch.metas[0])
    assert trace.items == ()
    assert trace.skipped == dict.fromkeys((0, 1), "secondary-reinfer-interval")


def test_a_run_that_nobody_traces_keeps_no_steps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with detector(tmp_path) as model:
        monkeypatch.setattr(
            model.runs, "show_steps", lambda run, out, steps, model: seen.append(steps)
        )
        seen: list[Any] = []
        model(image([], size=(64, 64)))
    assert seen == [None]


_side = st.integers(2, 62)
_row = st.tuples(_side, _side, _side, _side, st.integers(2, 100), st.integers(0, 2))


def test_every_candidate_has_one_fate_and_every_object_one_candidate(tmp_path: Path) -> None:
    """The classes are 0 and 1: 2 is out of range."""
    rows: list[tuple[int, ...]] = []

    def parse(layers: Any, network: Any, params: Any) -> Detections:
        table = np.array(rows, np.float32).reshape(-1, 6)
        found = Detections(table[:, :4], table[:, 4] / 100, table[:, 5].astype(np.int32))
        return found.select(found.scores >= params.min_threshold)

    @given(st.lists(_row, max_size=12))
    @settings(max_examples=examples(25))
    def holds(drawn: list[tuple[int, ...]]) -> None:
        rows[:] = drawn
        trace = traced(model)
        found = only(trace)
        hidden = found.detections.scores < 0.5
        outside = found.detections.class_ids == 2
        assert len(found) == len(drawn) - sum(row[4] < 50 and row[5] == 2 for row in drawn)
        stages, objects = found.stages(), []
        for row in range(len(found)):
            fate = found.fate(row)
            assert list(FateStage)[stages[row]] is fate.stage
            assert (fate.key is None) == (fate.stage is FateStage.OBJECT)
            assert hidden[row] == (fate.key == "pre-cluster-threshold")
            assert outside[row] == (fate.key == "num-detected-classes")
            objects += [fate.object] if fate.object >= 0 else []
        assert sorted(objects) == list(range(len(trace.meta.objects)))

    with detector(tmp_path, "detected-min-w=20\ntopk=2", parser=parse) as model:
        holds()


def test_merged_candidates_are_of_their_object(tmp_path: Path) -> None:
    with detector(tmp_path, "eps=0.7\nminBoxes=1", cluster_mode=1) as model:
        trace = traced(model)
    found = only(trace)
    assert found.actual.reasons[0] in (Reason.KEPT, Reason.MERGED)
    assert found.fate(0).object == found.fate(1).object


def test_regions_that_the_caller_prepared_are_traced_in_a_run(mean_config: Config) -> None:
    """A run with a callback traces the same as `trace_frame`, without a second run."""
    batch = Batch.of([image([], size=(160, 120))])
    roi = Roi(0, 50.75, 20, 64, 32, 0.5, 0.5, 0, 8)
    tensor = np.full((1, 3, 32, 32), 0.75, np.float32)
    batch.tensors.append(InputTensor("image", tensor, [roi], [1]))
    runs: list[RunSteps] = []
    with Inferencer.from_config(mean_config(input_tensor_from_meta=1)) as model:
        model.runs.on_steps = runs.append
        model.process(batch)
    (run,) = runs
    item = item_trace(run, 0)
    assert (item.object, item.crop) == (-1, None)
    np.testing.assert_array_equal(item.tensor, tensor[0])
    assert item.candidates is not None
    assert item.candidates.rects.tolist() == [[66, 20, 32, 32]]
    np.testing.assert_array_equal(item.candidates.rects, batch.metas[0].objects.rects)
    assert item.candidates.fate(0) == Fate(FateStage.OBJECT, object=0)


def test_instances_and_their_masks_are_traced(tmp_path: Path) -> None:
    instance_model(tmp_path)
    with Inferencer.from_config(instances(tmp_path, output_instance_mask=1)) as model:
        plain = model(image(HALVES, size=(64, 64)))
        trace = trace_frame(model, image(HALVES, size=(64, 64)))
    assert len(trace.meta.objects) == len(plain.objects) > 0
    assert trace.meta.objects.masks is not None
    found = only(trace)
    assert (found.stages() == list(FateStage).index(FateStage.OBJECT)).sum() == len(plain.objects)
