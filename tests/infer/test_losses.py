"""What a secondary model, a classifier and a run leave out, and the reason it gives."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headrace.infer.batch import Batch
from headrace.infer.inferencer import Inferencer
from headrace.infer.tally import ItemTally
from headrace.meta import InputTensor, Roi
from tests.infer.scenes import batch_of, classifier, image, looked_at, ran, write_identity

Config = Callable[..., Path]
PATCHES = [("red", (10, 10, 40, 80)), ("green", (60, 10, 20, 30))]


@pytest.mark.parametrize(
    ("keys", "skipped", "reasons"),
    [
        ({}, {}, []),
        ({"input_object_min_width": 30}, {"input-object-min-width": {"thing": 1}}, []),
        (
            {"operate_on_class_ids": "3;5"},
            {"operate-on-class-ids": {"thing": 2}},
            ["operate-on-class-ids=3;5: 2 objects are of others (thing 2)"],
        ),
        (
            {"operate_on_gie_id": 7},
            {"operate-on-gie-id": {"thing": 2}},
            ["operate-on-gie-id=7: 2 objects are of gie-unique-id 1"],
        ),
        (
            {"input_object_min_width": 128},
            {"input-object-min-width": {"thing": 2}},
            ["input-object-min-width=128: the widest of 2 objects is 40x80 pixels"],
        ),
        (
            {"input_object_min_width": 30, "input_object_min_height": 90},
            {"input-object-min-width": {"thing": 1}, "input-object-min-height": {"thing": 1}},
            [
                "input-object-min-width=30: the only object is 20x30 pixels",
                "input-object-min-height=90: the only object is 40x80 pixels",
            ],
        ),
        (
            {"input_object_max_height": 20},
            {"input-object-max-height": {"thing": 2}},
            ["input-object-max-height=20: the lowest of 2 objects is 20x30 pixels"],
        ),
        (
            {"classifier_async_mode": 1},
            {"tracker": {"thing": 2}},
            [
                "classifier-async-mode=1 needs tracking ids, and none of 2 objects has one: put a "
                "tracker before config.txt"
            ],
        ),
    ],
)
def test_a_secondary_model_says_what_left_the_objects_out(
    mean_config: Config, keys: dict[str, Any], skipped: dict[str, Any], reasons: list[str]
) -> None:
    with Inferencer.from_config(classifier(mean_config, **keys)) as model:
        model.process(batch_of([PATCHES]))
        losses = model.losses
    assert losses.skipped == skipped
    assert [r for r in losses.reasons if not r.startswith("classifier-threshold")] == reasons


def test_a_detector_on_its_own_objects_and_none_at_all(mean_config: Config) -> None:
    config = mean_config(process_mode=2)
    with Inferencer.from_config(config) as model:
        assert ran(model, batch_of([[]])) == 0
        assert model.losses.reasons == [
            "no objects came from the models before it in 1 frames, and process-mode=2 infers on "
            "nothing else"
        ]
        assert ran(model, batch_of([PATCHES])) == 0
        (reason,) = model.losses.reasons
    assert reason.startswith("gie-unique-id=1: 2 objects are of this id itself")


def test_a_classifier_says_what_left_the_items_without_a_label(mean_config: Config) -> None:
    with Inferencer.from_config(classifier(mean_config, classifier_threshold=300)) as model:
        model.process(batch_of([PATCHES]))
        losses = model.losses
    assert losses.dropped == {"classifier-threshold": {"red": 1, "green": 1}}
    (reason,) = losses.reasons
    assert reason.startswith("classifier-threshold=300 is above the scores of 2 of 2 items")
    assert reason.endswith("(red 1, green 1)")


def test_a_classifier_whose_classes_have_no_names(mean_config: Config) -> None:
    config = classifier(mean_config, labelfile_path="few.txt")
    (config.parent / "few.txt").write_text("\n")
    with Inferencer.from_config(config) as model:
        model.process(batch_of([PATCHES]))
        assert any("names none of the classes of 2 of 2 items" in r for r in model.losses.reasons)


def test_outputs_that_nobody_reads_are_a_warning(mean_config: Config) -> None:
    config = classifier(mean_config, network_type=100)
    with Inferencer.from_config(config) as model:
        model.process(batch_of([PATCHES]))
        (notice,) = [n for n in model.notices if "nobody reads the outputs" in n.sentence]
    assert notice.level == "warning"
    assert "output-tensor-meta=1" in notice.sentence
    with Inferencer.from_config(config) as model:
        model.on_raw_output = lambda raw: None
        model.process(batch_of([PATCHES]))
        assert not any("nobody reads" in n.sentence for n in model.notices)


def test_tensors_instead_of_objects_are_told(mean_config: Config) -> None:
    config = classifier(mean_config, network_type=100, output_tensor_meta=1)
    with Inferencer.from_config(config) as model:
        model.process(batch_of([PATCHES]))
        assert not any("nobody reads" in n.sentence for n in model.notices)
        (reason,) = model.losses.reasons
    assert reason.startswith("network-type=100: the outputs are attached as tensors")


def test_tensors_that_never_came(mean_config: Config) -> None:
    batch = Batch.of([image([], size=(160, 120))])
    batch.tensors.append(
        InputTensor("image", np.ones((1, 3, 32, 32), np.float32), [Roi(0, 0, 0, 32, 32)], [4])
    )
    with Inferencer.from_config(mean_config(input_tensor_from_meta=1)) as model:
        model.process(batch)
        (reason,) = model.losses.reasons
        assert reason.startswith("input-tensor-from-meta=1: no tensor for gie-unique-id 1 came")
        assert "(they were for 4)" in reason
        batch.tensors[0].target_ids.append(1)
        model.process(batch)
        assert not model.losses.reasons


def test_buffers_that_are_all_discarded(mean_config: Config) -> None:
    with Inferencer.from_config(mean_config(stabilize_buffer_count=9)) as model:
        losses = looked_at(model, 3)
    assert losses.reasons == [
        "stabilize-buffer-count=9 discards as many buffers: all 3 frames were among them"
    ]


def test_class_maps_without_a_class(mean_config: Config) -> None:
    write_identity(mean_config().parent / "map.onnx")
    keys = {"network_type": 2, "onnx_file": "map.onnx", "num_detected_classes": 3}
    for threshold, told in ((0.1, False), (2, True)):
        path = mean_config(
            **keys,
            custom_lib_path=None,
            parse_bbox_func_name=None,
            segmentation_threshold=threshold,
        )
        with Inferencer.from_config(path) as model:
            model(np.full((8, 8, 3), 200, np.uint8))
            reasons = model.losses.reasons
        start = f"segmentation-threshold={threshold:g}: 1 of 1 class maps have no class anywhere"
        assert [r.startswith(start) for r in reasons] == [True] * told


def test_the_best_of_several_outputs_counts() -> None:
    tally = ItemTally()
    tally.lost(["a", "b", None], [1, 0], [0.2, 0.4])
    tally.lost(["x", None], [0], [0.3])
    assert (tally.best, tally.below) == (0.4, {"a": 1, "b": 1, "x": 1})


def test_an_interval_that_skips_nearly_all_frames(mean_config: Config) -> None:
    with Inferencer.from_config(mean_config(interval=30)) as model:
        (reason,) = looked_at(model, 12).reasons
    assert reason.startswith("interval=30: 1 of 12 frames were inferred")
    with Inferencer.from_config(mean_config(interval=3)) as model:
        assert not looked_at(model, 12).reasons
