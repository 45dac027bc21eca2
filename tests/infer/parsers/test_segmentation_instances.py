"""Heads of instance segmentation, each against a slow reading of its rule."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.errors import ParserError
from headrace.infer.parsers import WELL_KNOWN_INSTANCES, suggest
from headrace.infer.parsers.catalogue import INSTANCE_HEADS
from headrace.infer.parsers.segmentation import _box_mask
from headrace.meta import DetectionParams, Detections, Layer, NetworkInfo
from tests.profiles import examples

NET = NetworkInfo(64, 48, 3)
KEY = "parse-bbox-instance-mask-func-name"


def params(*thresholds: float) -> DetectionParams:
    return DetectionParams(len(thresholds), np.array(thresholds, np.float32))


def parse(name: str, thresholds: tuple[float, ...], **layers: Any) -> Detections:
    given_ = {k.replace("__", "/"): np.asarray(v) for k, v in layers.items()}
    return WELL_KNOWN_INSTANCES[name](
        {k: Layer(k, v) for k, v in given_.items()}, NET, params(*thresholds)
    )


def sizes(found: Detections) -> list[tuple[int, ...]]:
    assert found.masks is not None
    return [m.shape for m in found.masks]


# ---- DeepStream-Yolo-Seg

ROWS = np.float32(
    [
        [10, 20, 30, 44, 0.9, 1],
        [-5, -5, 99, 99, 0.5, 0],  # clipped to the input
        [10, 10, 10.5, 20, 0.9, 0],  # narrower than a pixel
        [5, 5, 9, 9, 0.3, 1],  # below the threshold of class 1, not of class 0
        [5, 5, 9, 9, 0.3, 0],
        [5, 5, 9, 9, 0.9, 7],  # not configured
        [5, np.nan, 9, 9, 0.9, 0],
    ]
)
MASKS = np.random.default_rng(0).random((len(ROWS), 12, 16)).astype(np.float32)


def four(column: bool) -> dict[str, Any]:
    scores, classes = ROWS[:, 4], ROWS[:, 5]
    if column:
        scores, classes = scores[:, None], classes[:, None]
    return {"boxes": ROWS[:, :4], "scores": scores, "classes": classes, "masks": MASKS}


@pytest.mark.parametrize("form", ["columns", "lines", "rows"])
def test_yolo_seg_in_each_of_its_forms(form: str) -> None:
    layers = four(form == "columns")
    if form == "rows":
        layers = {"output": np.concatenate([ROWS, MASKS.reshape(len(ROWS), -1)], axis=1)}
    found = parse("NvDsInferParseYoloSeg", (0.25, 0.5), **layers)
    np.testing.assert_array_equal(found.boxes, [[10, 20, 20, 24], [0, 0, 64, 48], [5, 5, 4, 4]])
    np.testing.assert_array_equal(found.scores, ROWS[[0, 1, 4], 4])
    assert found.class_ids.tolist() == [1, 0, 0]
    assert found.masks is not None
    np.testing.assert_array_equal(found.masks, MASKS[[0, 1, 4]])


def test_yolo_seg_rows_with_masks_of_another_size() -> None:
    rows = np.zeros((2, 6 + 25), np.float32)
    rows[:, 2:5] = 20, 20, 1
    assert sizes(parse("NvDsInferParseYoloSeg", (0.5,), output=rows)) == [(5, 5), (5, 5)]
    with pytest.raises(ParserError, match="masks of 26 values are neither 16x12 nor square"):
        parse("NvDsInferParseYoloSeg", (0.5,), output=np.zeros((2, 32), np.float32))


# ---- TAO


@pytest.mark.parametrize(
    ("name", "masks"),
    [
        ("NvDsInferParseCustomMrcnnTLT", "mask_head__mask_fcn_logits__BiasAdd"),
        ("NvDsInferParseCustomMrcnnTLTV2", "mask_fcn_logits__BiasAdd"),
    ],
)
def test_mask_rcnn(name: str, masks: str) -> None:
    rows = np.float32(
        [
            [20, 10, 40, 30, 1, 0.9],
            [-8, -6, 40, 99, 0, 0.5],  # the size counts from the unclipped corner
            [20, 10, 40, 30, 1, 0.2],  # below T[0]
            [20, 63, 40, 80, 1, 0.9],  # nothing is left of its width
            [20, 10, 40, 30, 2, 0.9],  # a class without a mask
            [20, 10, 40, 30, -1, 0.9],
            [20, np.nan, 40, 30, 1, 0.9],
        ]
    )
    volume = np.random.default_rng(1).normal(size=(len(rows), 2, 4, 5)).astype(np.float32)
    found = parse(name, (0.3, 0.95), generate_detections=rows, **{masks: volume})
    np.testing.assert_array_equal(found.boxes, [[10, 20, 20, 20], [0, 0, 69, 48]])
    assert found.class_ids.tolist() == [1, 0]
    assert found.masks is not None
    np.testing.assert_array_equal(found.masks, [volume[0, 1], volume[1, 0]])
    with pytest.raises(ParserError, match="set num-detected-classes=2"):
        parse(name, (0.3,), generate_detections=rows, **{masks: volume})


def test_mask2former() -> None:
    masks = np.zeros((5, 48, 64), np.float32)
    masks[0, 10:21, 30:41] = 1
    masks[0, 15, 35] = 0.5  # not a cell of the object
    masks[1, 0:5, 0:3] = 1  # touches the corner
    masks[2, 10:21, 30:41] = 1  # NaN score
    masks[4, 7, 3:9] = 1  # one row: no height
    scores = np.float32([0.9, 0.5, np.nan, 0.9, 0.9])
    for classes in (np.int32([1, 0, 0, 0, 0]), np.float32([1, 0, 0, 0, 0])):
        found = parse(
            "NvDsInferParseCustomMask2Former",
            (0.5, 0.95),
            pred_classes=classes,
            pred_masks=masks,
            pred_scores=scores,
        )
        np.testing.assert_array_equal(found.boxes, [[30, 10, 10, 10], [0, 0, 2, 4]])
        assert found.class_ids.tolist() == [1, 0]
        assert found.masks is not None
        np.testing.assert_array_equal(found.masks[0], masks[0, 10:20, 30:40])
        assert sizes(found) == [(10, 10), (4, 2)]


# ---- raw YOLO


def disc_scene(objects: list[tuple[float, float, float, int]], first: int) -> tuple[Any, Any]:
    """Table (N, first+2+4) and prototypes (4, 12, 16) whose masks are the objects' own discs."""
    y, x = np.mgrid[0:12, 0:16].astype(np.float32)
    prototypes = np.zeros((4, 12, 16), np.float32)
    table = np.zeros((40, first + 2 + 4), np.float32)
    for i, (cx, cy, radius, class_id) in enumerate(objects):
        inside = (x + 0.5 - cx / 4) ** 2 + (y + 0.5 - cy / 4) ** 2 <= (radius / 4) ** 2
        prototypes[i] = np.where(inside, 8, -8)
        table[i, :4] = cx, cy, 2 * radius, 2 * radius
        table[i, first + class_id] = 0.9
        table[i, first + 2 + i] = 1
        table[i, 4] = 0.5 if first == 5 else table[i, 4]
    return table, prototypes


@pytest.mark.parametrize(
    ("name", "first"), [("HeadraceParseYoloV8Seg", 4), ("HeadraceParseYoloV5Seg", 5)]
)
def test_raw_yolo_finds_the_discs_that_its_prototypes_show(name: str, first: int) -> None:
    table, prototypes = disc_scene([(20, 20, 12, 1), (44, 28, 16, 0)], first)
    table[2] = table[0]  # a worse twin, which is suppressed
    table[2, first + 1] = 0.8
    table[3] = table[0]  # of another class: stays, without a mask of its own prototype
    table[3, first : first + 2] = 0.7, 0
    layers = {"output0": table if first == 5 else table.T, "output1": prototypes}
    found = parse(name, (0.25, 0.25), **layers)
    order = np.argsort(-found.scores, kind="stable")
    scale = 0.5 if first == 5 else 1
    np.testing.assert_allclose(found.scores[order], np.float32([0.9, 0.9, 0.7]) * scale)
    assert sorted(found.class_ids.tolist()) == [0, 0, 1]
    first_disc = int(np.nonzero(found.class_ids == 1)[0][0])
    np.testing.assert_allclose(found.boxes[first_disc], [8, 8, 24, 24])
    assert found.masks is not None
    mask = found.masks[first_disc]
    assert mask.shape == (6, 6)
    y, x = np.mgrid[0:6, 0:6] + 0.5
    inside = (x - 3) ** 2 + (y - 3) ** 2 <= 9
    assert ((mask > 0.5) == inside).all()
    assert 0 <= mask.min() <= mask.max() <= 1


def test_raw_yolo_says_how_many_classes_there_are() -> None:
    table, prototypes = disc_scene([], 4)
    with pytest.raises(ParserError, match="num-detected-classes=3, but the outputs hold 2"):
        parse("HeadraceParseYoloV8Seg", (0.5,) * 3, output0=table.T, output1=prototypes)


def test_raw_yolo_without_objects() -> None:
    table, prototypes = disc_scene([], 4)
    found = parse("HeadraceParseYoloV8Seg", (0.5,) * 2, output0=table.T, output1=prototypes)
    assert len(found) == 0
    assert found.masks == []


@settings(max_examples=examples(60))
@given(
    left=st.floats(0, 15), top=st.floats(0, 11), width=st.floats(0.1, 16), height=st.floats(0.1, 12)
)
def test_a_box_mask_is_the_bilinear_reading_of_the_weighted_prototypes(
    left: float, top: float, width: float, height: float
) -> None:
    width, height = min(width, 16 - left), min(height, 12 - top)
    rng = np.random.default_rng(3)
    prototypes = rng.normal(size=(3, 12, 16)).astype(np.float32)
    weights = rng.normal(size=3).astype(np.float32)
    logits = np.tensordot(weights, prototypes, axes=1).astype(np.float64)
    mask = _box_mask(prototypes, weights, np.float32([left, top, width, height]))
    rows, columns = mask.shape
    assert rows == max(1, round(float(np.float32(height))))
    for r in range(rows):
        for c in range(columns):
            y = min(max(np.float32(top) + (r + 0.5) * np.float32(height) / rows - 0.5, 0), 11)
            x = min(max(np.float32(left) + (c + 0.5) * np.float32(width) / columns - 0.5, 0), 15)
            y0, x0 = int(min(y, 10)), int(min(x, 14))
            fy, fx = y - y0, x - x0
            value = (1 - fy) * ((1 - fx) * logits[y0, x0] + fx * logits[y0, x0 + 1]) + fy * (
                (1 - fx) * logits[y0 + 1, x0] + fx * logits[y0 + 1, x0 + 1]
            )
            assert mask[r, c] == pytest.approx(1 / (1 + np.exp(-value)), abs=1e-4)


# ---- names, suggestions, errors


def layer(shape: tuple[int, ...], name: str = "x") -> Layer:
    return Layer(name, np.zeros(shape, np.float32))


@pytest.mark.parametrize(
    ("shapes", "name"),
    [
        ([(116, 8400), (32, 160, 160)], "HeadraceParseYoloV8Seg"),
        ([(25200, 117), (32, 160, 160)], "HeadraceParseYoloV5Seg"),
        ([(100, 4), (100, 1), (100, 1), (100, 160, 160)], "NvDsInferParseYoloSeg"),
        ([(100, 25606)], "NvDsInferParseYoloSeg"),
    ],
)
def test_outputs_are_recognised(shapes: list[tuple[int, ...]], name: str) -> None:
    given_ = [layer(s, f"out{i}") for i, s in enumerate(shapes)]
    assert suggest(given_, key=KEY)[0] == name
    assert not set(WELL_KNOWN_INSTANCES) & set(suggest(given_))


def test_outputs_that_do_not_fit_are_told_with_those_that_would() -> None:
    layers = {"a": layer((116, 8400), "a"), "b": layer((32, 160, 160), "b")}
    with pytest.raises(ParserError) as caught:
        WELL_KNOWN_INSTANCES["NvDsInferParseYoloSeg"](layers, NET, params(*[0.5] * 80))
    message = str(caught.value)
    assert message.startswith(f"{KEY}=NvDsInferParseYoloSeg")
    assert f"{KEY}=HeadraceParseYoloV8Seg" in message


def test_names_are_unique() -> None:
    assert len(INSTANCE_HEADS) == len(WELL_KNOWN_INSTANCES)
