"""Which filter took how many boxes, by class, and the reason it gives."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headrace.infer.inferencer import Inferencer
from headrace.infer.losses import InferenceLosses
from headrace.infer.postprocess import _seldom
from tests.infer.models import node, write_config, write_model
from tests.infer.scenes import looked_at

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
    """A model that gives these rows for every image, and many that are empty."""
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
    folder: Path,
    attrs: str = "",
    rows: list[tuple[float, ...]] = ROWS,
    parser: Callable[..., Any] | None = None,
    **keys: Any,
) -> Iterator[Inferencer]:
    """A detector of these rows; `attrs` are lines of [class-attrs-all]."""
    write_rows(folder / "rows.onnx", rows)
    (folder / "labels.txt").write_text("\n".join(LABELS) + "\n")
    settings: dict[str, Any] = {
        "onnx_file": "rows.onnx",
        "labelfile_path": "labels.txt",
        "num_detected_classes": 2,
        "cluster_mode": 2,
        "parse_bbox_func_name": "HeadraceParseYoloV5",
    } | keys
    text = f"[class-attrs-all]\npre-cluster-threshold=0.5\nnms-iou-threshold=0.5\n{attrs}\n"
    with Inferencer.from_config(write_config(folder, text, **settings), parser=parser) as model:
        yield model


def test_too_many_candidates_are_cut_and_named(tmp_path: Path) -> None:
    with detector(tmp_path, max_candidates=3) as model:
        losses = looked_at(model, 2)
        (notice,) = (n for n in model.notices if n.code == "candidates-cut")
    dropped = {"max-candidates": {"person": 2}, "nms-iou-threshold": {"car": 2}}
    assert losses.dropped == dropped
    text = str(notice)
    assert "HeadraceParseYoloV5" in text
    assert "4 boxes for frame 0 of" in text
    assert "all but the best 3 (max-candidates)" in text
    assert str(notice.where).startswith(str(tmp_path / "config.txt:"))


def test_a_sound_run_gives_no_reason(tmp_path: Path) -> None:
    with detector(tmp_path) as model:
        losses = looked_at(model, 3)
    assert losses == InferenceLosses({}, {"nms-iou-threshold": {"car": 3}}, [])


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


def test_a_class_whose_threshold_is_above_its_scores(tmp_path: Path) -> None:
    with detector(tmp_path, "[class-attrs-1]\npre-cluster-threshold=0.95") as model:
        (reason,) = looked_at(model, 10).reasons
        assert reason == (
            "pre-cluster-threshold=0.95 of class 1 (person) is above every score of it: the best "
            "is 0.6 (5 of 10 outputs looked at)"
        )
    for threshold in (0.55, 1.4):  # the second hides the class on purpose
        with detector(tmp_path, f"[class-attrs-1]\npre-cluster-threshold={threshold}") as model:
            assert not looked_at(model, 10).reasons


def test_a_class_that_its_own_limit_hides(tmp_path: Path) -> None:
    with detector(tmp_path, "[class-attrs-1]\ndetected-min-w=40") as model:
        losses = looked_at(model, 2)
    assert losses.reasons == [
        "detected-min-w=40 dropped all 2 boxes (person 2); the nearest is 20 pixels wide"
    ]
    with detector(tmp_path, filter_out_class_ids="1") as model:
        assert not looked_at(model, 2).reasons  # as it was meant


@pytest.mark.parametrize("rows", [ROWS, [(20, 20, 10, 20, 1, 0.09, 0)]], ids=["clear", "faint"])
def test_a_threshold_above_1_is_the_only_cause(tmp_path: Path, rows: list[Any]) -> None:
    with detector(tmp_path, "[class-attrs-0]\npre-cluster-threshold=30\n[class-attrs-1]\n"
                  "pre-cluster-threshold=30", rows) as model:  # fmt: skip
        (reason,) = looked_at(model).reasons
    assert reason.startswith("no box can pass pre-cluster-threshold=30: scores end at 1")
    assert "net-scale-factor" not in reason


def test_what_another_mode_sets_is_not_blamed_on_the_user(tmp_path: Path) -> None:
    many = [(3 + 2.5 * (i % 24), 5 + 20 * (i // 24), 2, 8, 1, 0.9, 0) for i in range(72)]
    with detector(tmp_path, rows=many, cluster_mode=0) as model:
        (reason,) = looked_at(model).reasons
    assert reason.startswith("topk=20 dropped 52 of 72 boxes (car 52)")
    assert "cluster-mode=2 leaves it to you" in reason


def own_parser(folder: Path, returned: str) -> dict[str, str]:
    """Keys of a Python parser that returns this."""
    text = "from headrace import Detections\ndef parse(layers, network, params):\n"
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
    assert reason.startswith("no box at 1/32 of pre-cluster-threshold=0.5 either (1 of 1 outputs")


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
        assert model.losses == InferenceLosses()
        assert looked_at(model).dropped["detected-min-w"] == {"car": 2, "person": 1}


def test_looks_below_the_thresholds_become_seldom() -> None:
    looks = [count for count in range(1, 2**16) if _seldom(count)]
    assert looks[:7] == [1, 2, 3, 4, 8, 16, 24]
    for power in range(6, 16):
        assert len([n for n in looks if 2**power <= n < 2 ** (power + 1)]) == 8
