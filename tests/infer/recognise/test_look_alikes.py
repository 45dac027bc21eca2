"""Outputs of one shape that several exporters write: decided by their values, or asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headrace.infer.recognise.images import UndecidedError
from headrace.infer.recognise.recognise import Recognition, recognise, recognise_for_init
from tests.infer.recognise.models import cells, rows_of

DOC = "RGB / 255"
SIZE = 128
N = cells(SIZE)
RNG = np.random.default_rng(7)


def known(path: Path, outputs: Any, names: Any = ("output",), **fields: object) -> Recognition:
    """How a model with these outputs is read; the classes are given where only ids are there."""
    size = fields.pop("size", (SIZE, SIZE))
    model = rows_of(path / "m.onnx", outputs, names=names, doc=DOC, size=size)
    return recognise_for_init(model, fields, save=False)


def parser(recognition: Recognition) -> tuple[str | None, int | None]:
    assert recognition.reading is not None
    return recognition.reading.parser, recognition.reading.classes


def asked(path: Path, outputs: Any, names: Any = ("output",), **fields: object) -> set[str]:
    """The parsers that are offered."""
    with pytest.raises(UndecidedError) as caught:
        known(path, outputs, names, **fields)
    question = next(q for q in caught.value.questions if q.key.startswith("parse-"))
    return {setting[0].partition("=")[2] for setting, _ in question.candidates}


def centres(count: int) -> Any:
    """Centre boxes, of which few are ordered like corners."""
    boxes = RNG.uniform(0, SIZE, (count, 4))
    boxes[:, 2:] = RNG.uniform(2, 20, (count, 2))
    return boxes


def corners(count: int) -> Any:
    boxes = RNG.uniform(0, SIZE - 20, (count, 4))
    boxes[:, 2:] = boxes[:, :2] + RNG.uniform(2, 20, (count, 2))
    return boxes


def table(*parts: Any) -> Any:
    return np.concatenate(parts, axis=1).astype("f4")[None]


def scores(count: int, classes: int) -> Any:
    return RNG.uniform(0, 0.9, (count, classes))


def ids(count: int, classes: int = 5) -> Any:
    return RNG.integers(0, classes, (count, 1))


def test_84_columns_of_centres_and_of_corners(tmp_path: Path) -> None:
    columns = np.ascontiguousarray(table(centres(N), scores(N, 80)).transpose(0, 2, 1))
    assert parser(known(tmp_path, columns)) == ("HeadraceParseYoloV8", 80)
    columns = np.ascontiguousarray(table(corners(N), scores(N, 80)).transpose(0, 2, 1))
    assert parser(known(tmp_path, columns)) == ("HeadraceParseYoloCorners", 80)
    assert parser(known(tmp_path, table(corners(N), scores(N, 80)))) == (
        "HeadraceParseYoloCorners", 80,
    )  # fmt: skip


def test_boxes_that_are_as_often_ordered_as_not_are_asked(tmp_path: Path) -> None:
    boxes = np.concatenate([corners(N - N // 4), centres(N // 4)])
    boxes[N - N // 4 :, :2] = 60
    offered = asked(tmp_path, table(boxes, scores(N, 80)).transpose(0, 2, 1).copy())
    assert offered == {"HeadraceParseYoloV8", "HeadraceParseYoloCorners"}


def test_two_tables_of_yolov9_are_read_by_the_second(tmp_path: Path) -> None:
    columns = np.ascontiguousarray(table(centres(N), scores(N, 80)).transpose(0, 2, 1))
    recognition = known(tmp_path, [columns, columns], ("output0", "3050"))
    assert parser(recognition) == ("HeadraceParseYoloV8", 80)


def test_85_columns(tmp_path: Path) -> None:
    boxes, chances = centres(N), scores(N, 80)
    objects = RNG.uniform(0, 0.9, (N, 1))
    assert parser(known(tmp_path, table(boxes, objects, chances)))[0] == "HeadraceParseYoloV5"
    ones = np.ones((N, 1))
    recognition = known(tmp_path, table(boxes, ones, chances))
    assert parser(recognition) == ("HeadraceParseYoloV5", 80)
    assert "always 1" in recognition.reading.why  # type: ignore[union-attr]
    grid = np.concatenate([RNG.normal(0, 1, (N, 4)), objects, chances], axis=1).astype("f4")[None]
    assert parser(known(tmp_path, grid)) == ("HeadraceParseYoloX", 80)
    levels = RNG.integers(0, 5, (N, 1))
    recognition = known(tmp_path, table(corners(N), levels, chances))
    assert parser(recognition) == ("HeadraceParseFcos", 80)


def test_a_repeated_best_score_is_no_class(tmp_path: Path) -> None:
    chances = scores(N, 80).astype("f4")
    rows = table(corners(N), chances.max(axis=1, keepdims=True), chances)
    columns = np.ascontiguousarray(rows.transpose(0, 2, 1))
    assert parser(known(tmp_path, columns)) == ("HeadraceParseFcos", 80)


def test_offsets_of_cells_are_no_corners_in_pixels(tmp_path: Path) -> None:
    offsets, chances = np.tile([0.5, 0.5, 1.4, 1.4], (N, 1)), scores(N, 3)
    rows = table(offsets, chances.max(axis=1, keepdims=True), chances)
    assert asked(tmp_path, rows) == {"HeadraceParseYoloX", "HeadraceParseYoloV8Unit"}
    rows[..., 2:4] -= 2  # logarithms of sizes
    assert parser(known(tmp_path, rows)) == ("HeadraceParseYoloX", 3)


@pytest.mark.parametrize("turned", [False, True])
def test_boxes_in_0_to_1_need_no_metadata(turned: bool, tmp_path: Path) -> None:
    rows = table(centres(N) / SIZE, scores(N, 80))
    rows = np.ascontiguousarray(rows.transpose(0, 2, 1)) if turned else rows
    assert parser(known(tmp_path, rows)) == ("HeadraceParseYoloV8Unit", 80)


def test_rows_of_six(tmp_path: Path) -> None:
    final = table(corners(100), RNG.uniform(0, 1, (100, 1)), ids(100))
    reading = known(tmp_path, final, num_detected_classes=5).reading
    assert reading is not None
    assert (reading.parser, reading.suppressed) == ("NvDsInferParseYolo", True)
    every = table(corners(1344), RNG.uniform(0, 1, (1344, 1)), ids(1344))
    reading = known(tmp_path, every, num_detected_classes=5, size=(256, 256)).reading
    assert reading is not None
    assert (reading.parser, reading.suppressed) == ("NvDsInferParseYolo", False)
    unit = final.copy()
    unit[..., :4] /= SIZE  # an RT-DETR of Ultralytics without its metadata, or another one
    assert known(tmp_path, unit).reading is None


def test_rows_whose_scores_no_parser_takes_are_asked(tmp_path: Path) -> None:
    rows = RNG.uniform(0, SIZE, (1, 100, 6)).astype("f4")
    model = rows_of(tmp_path / "m.onnx", rows, doc=DOC, size=(SIZE, SIZE))
    with pytest.raises(UndecidedError, match=r"headrace init m\.onnx -o m ") as caught:
        recognise(model)
    (question,) = caught.value.questions
    assert question.candidates[0][0] == ("parse-bbox-func-name=NvDsInferParseYolo",)
    assert recognise_for_init(model, {}, save=False).reading is None  # a parser can be written


@pytest.mark.parametrize(
    ("order", "unit", "name"),
    [
        ("ibcs", False, "HeadraceParseYoloV7Rows"),
        ("ibsc", False, "HeadraceParseYoloNasRows"),
        ("icsb", True, "HeadraceParseSSDRows"),
    ],
)
def test_rows_of_seven(tmp_path: Path, order: str, unit: bool, name: str) -> None:
    parts = {"i": np.zeros((50, 1)), "b": corners(50) / (SIZE if unit else 1), "c": ids(50),
             "s": RNG.uniform(0.1, 0.9, (50, 1))}  # fmt: skip
    rows = table(*(parts[letter] for letter in order))
    assert parser(known(tmp_path, rows, num_detected_classes=5))[0] == name


def test_rows_of_seven_without_a_detection_are_asked(tmp_path: Path) -> None:
    offered = asked(tmp_path, np.zeros((1, 50, 7), "f4"))
    assert {"HeadraceParseYoloV7Rows", "HeadraceParseYoloNasRows"} <= offered


def test_faces_of_scrfd_are_suppressed(tmp_path: Path) -> None:
    """Boxes of three levels overlap; the head only decodes them."""
    outputs, names = [], []
    for width, kind in ((1, "score"), (4, "bbox")):
        for stride in (8, 16, 32):
            count = 2 * (SIZE // stride) ** 2
            outputs.append(RNG.uniform(0, 0.9, (1, count, width)).astype("f4"))
            names.append(f"{kind}_{stride}")
    reading = known(tmp_path, outputs, names).reading
    assert reading is not None
    assert (reading.parser, reading.suppressed) == ("HeadraceParseSCRFD", False)


def test_points_of_a_person_are_no_candidates_in_0_to_1(tmp_path: Path) -> None:
    points = RNG.uniform(0, 1, (1, 1, 17, 3)).astype("f4")
    assert parser(known(tmp_path, points, ("output_0",)))[0] == "HeadraceParseMoveNet"


def test_no_object_is_no_class(tmp_path: Path) -> None:
    boxes = RNG.uniform(0.2, 0.8, (1, 30, 4)).astype("f4")
    logits = RNG.normal(-4, 1, (1, 30, 92)).astype("f4")
    found = known(tmp_path, [logits, boxes], ("logits", "pred_boxes"))
    assert parser(found) == ("HeadraceParseDetrSoftmax", 91)
    assert found.names[1] == "person"  # COCO's ids


def test_logits_beside_boxes(tmp_path: Path) -> None:
    boxes = RNG.uniform(0.2, 0.8, (1, 30, 4)).astype("f4")
    names = ("logits", "pred_boxes")
    both = {"HeadraceParseDetr", "HeadraceParseDetrSoftmax"}
    for classes, expected in ((92, {"HeadraceParseDetrSoftmax"}), (80, {"HeadraceParseDetr"}),
                              (81, {"HeadraceParseDetrSoftmax"}), (7, both)):  # fmt: skip
        logits = RNG.normal(-4, 1, (1, 30, classes)).astype("f4")
        if len(expected) == 1:
            assert {parser(known(tmp_path, [logits, boxes], names))[0]} == expected
        else:
            assert asked(tmp_path, [logits, boxes], names) == expected
    (tmp_path / "config.json").write_text('{"model_type": "rt_detr"}')
    assert parser(known(tmp_path, [logits, boxes], names))[0] == "HeadraceParseDetr"
    (tmp_path / "config.json").write_text('{"model_type": "yolos"}')
    assert parser(known(tmp_path, [logits, boxes], names))[0] == "HeadraceParseDetrSoftmax"


def test_scores_first_and_scores_turned(tmp_path: Path) -> None:
    boxes, chances = corners(1344).astype("f4")[None], scores(1344, 80).astype("f4")[None]
    turned = np.ascontiguousarray(chances.transpose(0, 2, 1))
    for outputs in ([boxes, chances], [chances, boxes], [boxes, turned]):
        recognition = known(tmp_path, outputs, ("a", "b"), size=(256, 256))
        assert parser(recognition) == ("HeadraceParseBoxesScores", 80)


def test_grids_of_yolov5_and_yolov7_have_other_anchors(tmp_path: Path) -> None:
    outputs = [RNG.normal(0, 2, (1, 255, s, s)).astype("f4") for s in (16, 8, 4)]
    assert asked(tmp_path, outputs, "abc") == {"HeadraceParseYoloV5Raw", "HeadraceParseYoloV7Raw"}
    names = [f"output{i}_yolov5" for i in range(3)]
    assert parser(known(tmp_path, outputs, names)) == ("HeadraceParseYoloV5Raw", 80)
    active = [1 / (1 + np.exp(-output)) for output in outputs]
    assert parser(known(tmp_path, active, names)) == ("HeadraceParseYoloV5Grids", 80)


def test_maps_of_85_channels(tmp_path: Path) -> None:
    offsets = [RNG.uniform(0, 1, (1, 85, s, s)).astype("f4") for s in (16, 8, 4)]
    for array in offsets:
        array[:, :4] = RNG.normal(0, 1, array[:, :4].shape)
    assert parser(known(tmp_path, offsets, "abc")) == ("HeadraceParseYoloXMaps", 80)
    for array in offsets:
        array[:, :4] = np.abs(array[:, :4])
        array[:, 4] = array[:, 5:].max(axis=1)
    assert parser(known(tmp_path, offsets, "abc")) == ("HeadraceParseJoinedMaps", 80)


def test_a_selection_without_boxes_is_told_by_its_names(tmp_path: Path) -> None:
    outputs = [np.zeros((1, 1), "i8"), np.zeros((1, 20, 4), "f4"), np.zeros((1, 20), "f4"),
               np.zeros((1, 20), "i8")]  # fmt: skip
    names = ("num_dets", "det_boxes", "det_scores", "det_classes")
    recognition = known(tmp_path, outputs, names, num_detected_classes=5)
    assert parser(recognition)[0] == "HeadraceParseEfficientNMS"
