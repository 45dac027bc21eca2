"""Which filter took how many boxes and objects, and the reason it gives."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from noria.infer.batch import Batch
from noria.infer.inferencer import Inferencer
from noria.infer.losses import Losses
from noria.infer.tally import ItemTally
from noria.meta import InputTensor, Roi
from tests.infer.models import node, write_config, write_model
from tests.infer.scenes import batch_of, classifier, picture, ran, write_identity

Config = Callable[..., Path]
LABELS = ["car", "person"]
# centre x, y, width, height, objectness, scores of the two classes, in a 64x64 input
ROWS = [
    (20, 20, 10, 20, 1, 0.9, 0),
    (21, 20, 10, 20, 1, 0.8, 0),  # a double of the first
    (44, 20, 12, 8, 1, 0.7, 0),
    (30, 50, 20, 6, 1, 0, 0.6),
]


def write_rows(path: Path, rows: list[tuple[float, ...]]) -> Path:
    """A model that gives these rows for every picture, and many that are empty."""
    table = np.zeros((1, 100, 7), np.float32)
    table[0, : len(rows)] = rows
    nodes = [
        node("GlobalAveragePool", ["image"], ["mean"]),
        node("ReduceMean", ["mean"], ["level"], axes=[1, 2], keepdims=0),  # (n, 1)
        node("Unsqueeze", ["level", "last"], ["cube"]),
        node("Mul", ["cube", "zero"], ["none"]),
        node("Add", ["none", "rows"], ["out"]),
    ]
    constants = {"last": np.array([2]), "zero": np.float32(0), "rows": table}
    outputs = {"out": ["n", *table.shape[1:]]}
    return write_model(path, nodes, {"image": ["n", 3, 64, 64]}, outputs, constants)


@contextmanager
def detector(
    folder: Path, attrs: str = "", rows: list[tuple[float, ...]] = ROWS, **keys: Any
) -> Iterator[Inferencer]:
    """A detector of these rows; `attrs` are lines of [class-attrs-all]."""
    write_rows(folder / "rows.onnx", rows)
    (folder / "labels.txt").write_text("\n".join(LABELS) + "\n")
    settings: dict[str, Any] = {
        "onnx_file": "rows.onnx",
        "labelfile_path": "labels.txt",
        "num_detected_classes": 2,
        "cluster_mode": 2,
        "parse_bbox_func_name": "NoriaParseYoloV5",
    } | keys
    text = f"[class-attrs-all]\npre-cluster-threshold=0.5\nnms-iou-threshold=0.5\n{attrs}\n"
    with Inferencer.from_config(write_config(folder, text, **settings)) as model:
        yield model


def looked_at(model: Inferencer, frames: int = 1) -> Losses:
    """The losses after frames of 64x64 pixels."""
    for number in range(frames):
        model.process([picture([], number=number, size=(64, 64))])
    return model.losses


def test_a_sound_run_gives_no_reason(tmp_path: Path) -> None:
    with detector(tmp_path) as model:
        losses = looked_at(model, 3)
    assert losses == Losses({}, {"nms-iou-threshold": {"car": 3}}, [])


@pytest.mark.parametrize(
    ("attrs", "keys", "dropped", "reason"),
    [
        (
            "detected-min-w=40",
            {},
            {"detected-min-w": {"car": 2, "person": 1}},
            "detected-min-w=40 dropped all 3 boxes (car 2, person 1); the nearest "
            "is 20 pixels wide",
        ),
        (
            "detected-min-h=40",
            {},
            {"detected-min-h": {"car": 2, "person": 1}},
            "detected-min-h=40 dropped all 3 boxes (car 2, person 1); the nearest "
            "is 20 pixels high",
        ),
        (
            "detected-max-w=4",
            {},
            {"detected-max-w": {"car": 2, "person": 1}},
            "detected-max-w=4 dropped all 3 boxes (car 2, person 1); the nearest is 10 pixels wide",
        ),
        (
            "detected-max-h=7",
            {},
            {"detected-max-h": {"car": 2}},
            "detected-max-h=7 dropped 2 of 3 boxes (car 2); the nearest is 8 pixels high",
        ),
        (
            "",
            {"filter_out_class_ids": "0;1"},
            {"filter-out-class-ids": {"car": 2, "person": 1}},
            "filter-out-class-ids=0;1 dropped all 3 boxes (car 2, person 1)",
        ),
        (
            "roi-top-offset=60",
            {},
            {"roi-top-offset": {"car": 2, "person": 1}},
            "roi-top-offset=60 dropped all 3 boxes (car 2, person 1)",
        ),
        (
            "roi-bottom-offset=60",
            {},
            {"roi-bottom-offset": {"car": 2, "person": 1}},
            "roi-bottom-offset=60 dropped all 3 boxes (car 2, person 1)",
        ),
        (
            "post-cluster-threshold=0.95",
            {},
            {"post-cluster-threshold": {"car": 2, "person": 1}},
            "post-cluster-threshold=0.95 dropped 3 of 4 boxes (car 2, person 1)",
        ),
        (
            "topk=0",
            {},
            {"topk": {"car": 2, "person": 1}},
            "topk=0 dropped 3 of 4 boxes (car 2, person 1)",
        ),
        (
            "minBoxes=3\neps=0.7",
            {"cluster_mode": 1},
            {"minBoxes": {"car": 3, "person": 1}},
            "minBoxes=3 dropped all 4 boxes (car 3, person 1)",
        ),
        (
            "dbscan-min-score=9\neps=0.7\nminBoxes=1",
            {"cluster_mode": 1},
            {"dbscan-min-score": {"car": 3, "person": 1}},
            "dbscan-min-score=9 dropped all 4 boxes (car 3, person 1)",
        ),
    ],
)
def test_the_filter_is_named_with_its_figures(
    tmp_path: Path, attrs: str, keys: dict[str, Any], dropped: dict[str, Any], reason: str
) -> None:
    with detector(tmp_path, attrs, **keys) as model:
        losses = looked_at(model)
    assert {k: v for k, v in losses.dropped.items() if k != "nms-iou-threshold"} == dropped
    assert losses.reasons == [reason]


def test_the_filter_that_took_the_last_boxes_comes_first(tmp_path: Path) -> None:
    with detector(tmp_path, "topk=1\ndetected-min-w=40") as model:
        losses = looked_at(model, 2)
    first, second = losses.reasons
    assert first.startswith("detected-min-w=40 dropped all 4 boxes (car 2, person 2)")
    assert second.startswith("topk=1 dropped 2 of 8 boxes (car 2)")


def test_values_that_differ_between_classes_are_a_range(tmp_path: Path) -> None:
    attrs = "detected-min-w=40\n[class-attrs-1]\ndetected-min-w=50"
    with detector(tmp_path, attrs) as model:
        assert looked_at(model).reasons[0].startswith("detected-min-w=40..50 dropped all 3 boxes")


def test_what_another_mode_sets_is_not_blamed_on_the_user(tmp_path: Path) -> None:
    many = [(3 + 2.5 * (i % 24), 5 + 20 * (i // 24), 2, 8, 1, 0.9, 0) for i in range(72)]
    with detector(tmp_path, rows=many, cluster_mode=0) as model:
        (reason,) = looked_at(model).reasons
    assert reason.startswith("topk=20 dropped 52 of 72 boxes (car 52)")
    assert "cluster-mode=2 leaves it to you" in reason


def own_parser(folder: Path, returned: str) -> dict[str, str]:
    """Keys of a Python parser that returns this."""
    text = "from noria import Detections\ndef parse(layers, network, params):\n"
    (folder / "own.py").write_text(f"{text}    return {returned}\n")
    return {"custom_lib_path": "own.py", "parse_bbox_func_name": "parse"}


def test_boxes_that_leave_the_frame_are_the_edge_s(tmp_path: Path) -> None:
    low = "Detections([[5, 50, 9, 20], [40, 50, 9, 20]], [0.9, 0.9], [0, 1])"
    with detector(tmp_path, **own_parser(tmp_path, low)) as model:
        losses = looked_at(model)
    assert losses.dropped == {"edge": {"car": 1, "person": 1}}
    assert losses.reasons[0].startswith("the frame's edge: all 2 boxes (car 1, person 1)")


def test_a_class_that_is_not_configured(tmp_path: Path) -> None:
    seventh = "Detections([[1, 1, 9, 9]], [0.9], [7])"
    with detector(tmp_path, **own_parser(tmp_path, seventh)) as model:
        losses = looked_at(model)
    assert losses.dropped == {"num-detected-classes": {"other classes": 1}}
    assert losses.reasons == ["num-detected-classes=2 dropped all 1 boxes (other classes 1)"]


def test_a_threshold_above_every_score_is_told_by_the_best(tmp_path: Path) -> None:
    with detector(tmp_path, "pre-cluster-threshold=0.95") as model:
        losses = looked_at(model, 12)
    assert losses.reasons == [
        "pre-cluster-threshold=0.95 is above every score: the best is 0.9 (car; 5 of 12 outputs "
        "looked at)"
    ]


def test_faint_scores_are_no_matter_of_the_threshold(tmp_path: Path) -> None:
    faint = [(20, 20, 10, 20, 1, 0.09, 0)]
    with detector(tmp_path, rows=faint) as model:
        (reason,) = looked_at(model).reasons
    assert reason.startswith("no score comes near pre-cluster-threshold=0.5, the best is 0.09")
    assert "net-scale-factor" in reason
    with detector(tmp_path, rows=[(20, 20, 10, 20, 1, 0.001, 0)]) as model:
        (reason,) = looked_at(model).reasons
    assert reason.startswith("no score reaches 1/32 of pre-cluster-threshold=0.5 (1 of 1 outputs")


def test_the_best_score_is_that_of_all_frames_looked_at(mean_config: Config) -> None:
    # the parser drops nothing itself: clustering does, and it sees the best
    config = mean_config(cluster_mode=2, pre_cluster_threshold=None)
    config.write_text(config.read_text() + "[class-attrs-all]\npre-cluster-threshold=0.99\n")
    with Inferencer.from_config(config) as model:
        for level in (40, 200, 90):
            model(np.full((32, 32, 3), level, np.uint8))
        losses = model.losses
    assert losses.dropped == {"pre-cluster-threshold": {"thing": 3}}
    (reason,) = losses.reasons
    assert reason.startswith("pre-cluster-threshold=0.99 dropped all 3 boxes (thing 3)")
    assert reason.endswith("the best score is 0.784")


def test_what_a_parser_drops_itself_is_not_claimed(tmp_path: Path) -> None:
    with detector(tmp_path, **own_parser(tmp_path, "Detections.empty()")) as model:
        (reason,) = looked_at(model, 2).reasons
    assert reason == (
        "the parser (parse in own.py) returned no boxes for 2 outputs: it gets "
        "pre-cluster-threshold=0.5 and may drop boxes itself, which cannot be counted here"
    )


def test_a_new_run_counts_anew(tmp_path: Path) -> None:
    with detector(tmp_path, "detected-min-w=40") as model:
        assert looked_at(model, 2).dropped["detected-min-w"] == {"car": 4, "person": 2}
        model.restart()
        assert model.losses == Losses()
        assert looked_at(model).dropped["detected-min-w"] == {"car": 2, "person": 1}


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
                "input-object-min-width=30: the widest of 1 objects is 20x30 pixels",
                "input-object-min-height=90: the highest of 1 objects is 40x80 pixels",
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
        (notice,) = [n for n in model.notices if "nobody reads the outputs" in n.message]
    assert notice.level == "warning"
    assert "output-tensor-meta=1" in notice.message
    with Inferencer.from_config(config) as model:
        model.on_raw_output = lambda raw: None
        model.process(batch_of([PATCHES]))
        assert not any("nobody reads" in n.message for n in model.notices)


def test_tensors_instead_of_objects_are_told(mean_config: Config) -> None:
    config = classifier(mean_config, network_type=100, output_tensor_meta=1)
    with Inferencer.from_config(config) as model:
        model.process(batch_of([PATCHES]))
        assert not any("nobody reads" in n.message for n in model.notices)
        (reason,) = model.losses.reasons
    assert reason.startswith("network-type=100: the outputs are attached as tensors")


def test_tensors_that_never_came(mean_config: Config) -> None:
    batch = Batch.of([picture([], size=(160, 120))])
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
