"""Outputs that went through NMS in the network: what each name scales, clips, skips and refuses."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.errors import ParserError
from tests.profiles import examples

W, H = 100, 80


def four(boxes, scores, classes, count=None, dtype=np.float32):
    """count, boxes, scores, classes by position."""
    n = len(boxes) if count is None else count
    return [
        np.array([n], np.int32),
        np.array(boxes, np.float32).reshape(-1, 4),
        np.array(scores, np.float32),
        np.array(classes, dtype),
    ]


def named(prefix, count, arrays, dtype=np.float32):
    names = [count, f"{prefix}_boxes", f"{prefix}_scores", f"{prefix}_classes"]
    return dict(zip(names, arrays, strict=True))


def clip(v, low, high):
    return np.float32(min(max(v, low), high))


def batched(box, unit):
    scale = np.array([W, H, W, H] if unit else [1, 1, 1, 1], np.float32)
    x1, y1, x2, y2 = np.asarray(box, np.float32) * scale
    left, top = clip(x1, 0, W - 1), clip(y1, 0, H - 1)
    return [left, top, clip(x2, 0, W - 1) - left, clip(y2, 0, H - 1) - top]


@pytest.mark.parametrize(
    ("name", "unit"),
    [
        ("NvDsInferParseCustomBatchedNMSTLT", True),
        ("NvDsInferParseYoloV5CustomBatchedNMSTLT", False),
        ("NvDsInferParseCustomBatchedYoloV5NMSTLT", False),
    ],
)
@settings(max_examples=examples(25))
@given(data=st.data())
def test_batched_nms_equals_the_oracle(parse, name, unit, data):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    n = data.draw(st.sampled_from([0, 1, 5, 30, 300]))
    boxes = rng.uniform(-0.2, 1.2, (n, 4)).astype(np.float32)
    boxes[:, 2:] += 0.5
    boxes *= 1 if unit else 90
    scores, classes = rng.random(n, np.float32), rng.integers(0, 4, n)
    count = data.draw(st.integers(0, n + 3))
    found = parse(name, four(boxes, scores, classes, count), [0.3, 0.9, 0.9], (W, H))
    expected = [
        (*batched(boxes[i], unit), scores[i], classes[i])
        for i in range(min(count, n))
        if scores[i] >= np.float32(0.3)  # the threshold of class 0 for all
        and classes[i] < 3
        and boxes[i, 2] >= boxes[i, 0]
        and boxes[i, 3] >= boxes[i, 1]
    ][:201]
    got = np.column_stack([found.boxes, found.scores, found.class_ids])
    np.testing.assert_allclose(got, np.array(expected).reshape(-1, 6), atol=1e-3)


def test_tf_ssd(parse):
    outputs = {
        "detection_boxes": np.array(
            [[0.1, 0.2, 0.5, 0.6], [0.5, -0.5, 2, 0.5], [0.3, 0.3, 0.3, 0.6], [0, 0, 1, 1]],
            np.float32,
        ),
        "detection_scores": np.array([0.9, 0.5, 0.9, 0.9], np.float32),
        "detection_classes": np.array([1, 0, 1, 2], np.float32),
        "num_detections": np.array([4], np.float32),
    }
    found = parse("NvDsInferParseCustomTfSSD", outputs, [0.5, 0.6], (W, H))
    # left and top from x1, y1; the right edge stops at W-1; the empty box and class 2 are skipped
    np.testing.assert_allclose(found.boxes, [[20, 8, 40, 32], [0, 40, 50, 39]], atol=1e-4)
    assert found.class_ids.tolist() == [1, 0]
    outputs["num_detections"] = np.array([1], np.float32)
    assert len(parse("NvDsInferParseCustomTfSSD", outputs, [0.5, 0.6], (W, H))) == 1
    del outputs["num_detections"]
    assert len(parse("NvDsInferParseCustomTfSSD", outputs, [0.5, 0.6], (W, H))) == 2


ROWS = np.array(
    [
        [0, 1, 0.9, 0.1, 0.2, 0.5, 0.6],
        [0, 0, 0.3, -0.1, 0.5, 0.5, 1.5],
        [0, 1, 0.2, 0.1, 0.1, 0.2, 0.2],
    ],
    np.float32,
)


def test_nms_rows(parse):
    expected = [
        [10, 16, 40, 32],
        [0, 40, 60, 79],
    ]  # width = clip((x2 - x1) * W), not clip(x2) - left
    count = np.array([3], np.int32)
    for rows in (ROWS, ROWS[None]):
        found = parse("NvDsInferParseCustomNMSTLT", [rows, count], [0.3, 0.95], (W, H))
        np.testing.assert_allclose(found.boxes, expected, atol=1e-4)
        assert found.class_ids.tolist() == [1, 0]
    found = parse("NvDsInferParseCustomNMSTLT", [ROWS, np.array([1])], [0.3, 0.95], (W, H))
    assert len(found) == 1
    found = parse("NvDsInferParseCustomSSDTLT", {"NMS": ROWS}, [0.3, 0.95], (W, H))
    np.testing.assert_allclose(found.boxes, expected, atol=1e-4)
    many = np.repeat(ROWS[:1], 250, axis=0)
    assert len(parse("NvDsInferParseCustomSSDTLT", {"NMS": many}, [0.3, 0.3], (W, H))) == 200


def test_ssd_in_whole_pixels(parse):
    rows = np.array([[0, 1, 0.9, 0.104, 0.2, 0.509, 0.6], [0, 0, 0.3, 0, 0, 2, 2]], np.float32)
    outputs = {"NMS": rows, "NMS_1": np.array([2], np.int32)}
    found = parse("NvDsInferParseCustomSSD", outputs, [0.3, 0.95], (W, H))
    np.testing.assert_array_equal(found.boxes, [[0, 0, 100, 80]])  # class 1 is under its 0.95
    found = parse("NvDsInferParseCustomSSD", outputs, [0.3, 0.5], (W, H))
    np.testing.assert_array_equal(found.boxes[0], [10, 16, 41, 33])


def test_yolov3_tlt_clips_position_and_size_apart(parse):
    found = parse(
        "NvDsInferParseCustomYOLOV3TLT",
        four([[-10, 5, 50, 300], [60, 10, 90, 20]], [0.9, 0.2], [0, 1]),
        [0.3, 0.1],
        (W, H),
    )
    np.testing.assert_array_equal(found.boxes, [[0, 5, 60, 79]])


BOXES = [[10, 20, 50, 60], [-5, -5, 20, 200], [1, 1, 5, 5]]  # y1, x1, y2, x2 pixels


def test_efficientdet_by_name_stops_at_a_wild_class(parse):
    arrays = four(BOXES, [0.9, 0.8, 0.9], [1, 0, 1], dtype=np.int32)
    name = "NvDsInferParseCustomEfficientDetTAO"
    found = parse(name, named("detection", "num_detections", arrays), [0.3, 0.95], (W, H))
    np.testing.assert_array_equal(found.boxes, [[20, 10, 40, 40], [0, 0, 99, 20], [1, 1, 4, 4]])
    arrays[3][1] = 2
    found = parse(name, named("detection", "num_detections", arrays), [0.3, 0.95], (W, H))
    assert len(found) == 1


def test_efficientdet_by_position_refuses_what_the_original_asserts(parse):
    name = "NvDsInferParseCustomEfficientDetTAO"
    found = parse(name, four(BOXES, [0.9, 0.8, 0.9], [1, 0, 1]), [0.3, 0.3], (W, H))
    assert len(found) == 3
    with pytest.raises(ParserError, match="class 2") as error:
        parse(name, four(BOXES, [0.9, 0.8, 0.9], [1, 2, 1]), [0.3, 0.3], (W, H))
    assert "at least 3" in str(error.value)
    with pytest.raises(ParserError, match="not in pixels") as error:
        parse(name, four([[0.1, 0.1, 0.5, 0.5]], [0.9], [0]), [0.3, 0.3], (W, H))
    assert _offered(error.value) == ["NvDsInferParseCustomTfSSD"]


def test_nms_rows_refuse_a_class_out_of_range(parse):
    with pytest.raises(ParserError, match="class 1, num-detected-classes=1"):
        parse("NvDsInferParseCustomNMSTLT", [ROWS, np.array([3])], [0.3], (W, H))


def test_yolov4_is_strictly_above_the_threshold(parse):
    boxes = [[0.1, 0.2, 0.5, 0.6], [-1, 0.5, 2, 2], [0.1, 0.1, 0.105, 0.9], [0, 0, 1, 1]]
    arrays = four(boxes, [0.9, 0.5, 0.9, 0.25], [1, 0, 1, 0])
    outputs = named("nmsed", "num_detections", arrays)
    found = parse("NvDsInferParseCustomYoloV4", outputs, [0.25, 0.6], (W, H))
    np.testing.assert_allclose(found.boxes, [[10, 16, 40, 32], [0, 40, 100, 40]], atol=1e-4)
    arrays[3][0] = -1
    assert len(parse("NvDsInferParseCustomYoloV4", outputs, [0.25, 0.6], (W, H))) == 1


def test_efficient_nms_in_pixels_and_in_units(parse):
    pixels = [[10, 20, 50, 60], [-5, -5, 200, 200]]
    arrays = four(pixels, [0.25, 0.9], [0, 1], dtype=np.int64)
    for outputs in (arrays, named("det", "num_dets", arrays)):
        found = parse("HeadraceParseEfficientNMS", outputs, [0.25, 0.25], (W, H))
        np.testing.assert_array_equal(found.boxes, [[10, 20, 40, 40], [0, 0, W, H]])
    arrays[1] = arrays[1] / np.array([W, H, W, H], np.float32)
    again = parse("HeadraceParseEfficientNMSUnit", arrays, [0.25, 0.25], (W, H))
    np.testing.assert_allclose(again.boxes, found.boxes, atol=1e-4)


UNIT = ("HeadraceParseEfficientNMSUnit", "NvDsInferParseCustomBatchedNMSTLT")
PIXELS = ("HeadraceParseEfficientNMS", "NvDsInferParseYoloV5CustomBatchedNMSTLT")
MANY = [[10, 20, 50, 60], [0, 0, 4, 4], [30, 30, 70, 75]]


def _offered(error: ParserError) -> list[str]:
    """Parsers that an error has as changes."""
    return [row["set"]["parse-bbox-func-name"] for row in error.data["advice"]]


@pytest.mark.parametrize("name", UNIT)
def test_pixels_are_not_taken_for_units(parse, name):
    with pytest.raises(ParserError, match="boxes reach 75: they are in pixels") as caught:
        parse(name, four(MANY, [0.9] * 3, [0] * 3), [0.25], (W, H))
    assert "HeadraceParseEfficientNMS," in str(caught.value)
    assert _offered(caught.value) == list(PIXELS)
    wild = [[0.1, 0.1, 0.5, 0.5], [0, 0, 9e3, 9e3], [0.2, 0.2, 1.5, 1.2]]  # one box alone is odd
    assert len(parse(name, four(wild, [0.9] * 3, [0] * 3), [0.25], (W, H))) == 3
    below = four(MANY, [0.1] * 3, [0] * 3)
    assert len(parse(name, below, [0.25], (W, H))) == 0


@pytest.mark.parametrize("name", PIXELS)
def test_units_are_not_taken_for_pixels(parse, name):
    units = np.array(MANY) / 100
    with pytest.raises(ParserError, match=r"boxes up to 0\.75: they are in 0\.\.1") as caught:
        parse(name, four(units, [0.9] * 3, [0] * 3), [0.25], (W, H))
    assert "clipBoxes" in str(caught.value)
    assert _offered(caught.value) == list(UNIT)
    small = [[0, 0, 1.5, 1.5], [0.1, 0.1, 0.2, 0.2]]
    assert len(parse(name, four(small, [0.9] * 2, [0] * 2), [0.25], (W, H))) > 0


def test_boxes_with_an_extra_axis_are_read(parse):
    arrays = four([[10, 20, 50, 60]], [0.9], [0])
    arrays[1], arrays[2] = arrays[1][:, None], arrays[2][:, None]
    assert len(parse("HeadraceParseEfficientNMS", arrays, [0.25], (W, H))) == 1


def test_rows_under_other_names_are_told_what_to_be_called(parse):
    outputs = {"detection_out": np.zeros((1, 200, 7), np.float32), "n": np.zeros(1, np.float32)}
    with pytest.raises(ParserError) as error:
        parse("NvDsInferParseCustomSSD", outputs, [0.3] * 2, (320, 240))
    wanted = "by name: 'detection_out' must be 'NMS', 'n' must be 'NMS_1' in the model"
    assert wanted in str(error.value)
    outputs = {"NMS": np.zeros((200, 6), np.float32), "n": np.zeros(1, np.float32)}
    with pytest.raises(ParserError) as error:
        parse("NvDsInferParseCustomSSD", outputs, [0.3] * 2, (320, 240))
    assert "must be" not in str(error.value)
