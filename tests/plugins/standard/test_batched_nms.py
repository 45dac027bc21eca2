"""The NMS plugins as plugins: fields, shapes, padding, the differences between their classes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from headrace.errors import ModelError
from tests.plugins.standard import slow
from tests.plugins.standard.driving import create, run

EFFICIENT: dict[str, Any] = {
    "score_threshold": 0.3, "iou_threshold": 0.5, "max_output_boxes": 20, "background_class": -1,
    "score_activation": 0, "box_coding": 0,
}  # fmt: skip
BATCHED: dict[str, Any] = {
    "shareLocation": 1, "backgroundLabelId": -1, "numClasses": 3, "topK": 30, "keepTopK": 20,
    "scoreThreshold": 0.3, "iouThreshold": 0.5, "isNormalized": 1, "clipBoxes": 0,
}  # fmt: skip
SSD: dict[str, Any] = {
    "shareLocation": 1, "varianceEncodedInTarget": 0, "backgroundLabelId": 0, "numClasses": 3,
    "topK": 30, "keepTopK": 12, "confidenceThreshold": 0.3, "nmsThreshold": 0.4,
    "inputOrder": [0, 1, 2], "codeType": 1,
}  # fmt: skip
OLD_EFFICIENT: dict[str, Any] = {
    "score_threshold": 0.3, "iou_threshold": 0.5, "max_output_boxes_per_class": 4,
    "center_point_box": 0,
}  # fmt: skip
TF: dict[str, Any] = {
    "max_output_size_per_class": 4, "max_total_size": 10, "iou_threshold": 0.5,
    "score_threshold": 0.3, "pad_per_class": 0, "clip_boxes": 1,
}  # fmt: skip


def scene(sets: int = 1, seed: int = 0, size: float = 1.0) -> tuple[Any, Any]:
    random = np.random.default_rng(seed)
    start = random.random((2, 40, sets, 2))
    boxes = np.concatenate([start, start + random.random((2, 40, sets, 2)) * 0.4], -1) * size
    return boxes.astype(np.float32), random.random((2, 40, 3), np.float32)


def rows_of(outputs: list[Any], image: int) -> list[Any]:
    count, boxes, scores, classes = outputs
    n = int(np.ravel(count)[image])
    return list(
        zip(boxes[image, :n].tolist(), scores[image, :n].tolist(), classes[image, :n].tolist(),
            strict=True)
    )  # fmt: skip


def same_rows(outputs: list[Any], expected: list[Any]) -> None:
    for b, rows in enumerate(expected):
        got = rows_of(outputs, b)
        assert len(got) == len(rows)
        for (box, score, label), (want, want_score, want_label, _) in zip(got, rows, strict=True):
            assert label == want_label
            assert score == pytest.approx(want_score, rel=1e-3)
            assert box == pytest.approx([float(x) for x in want], rel=1e-3, abs=1e-3)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("rank", [3, 4])
def test_efficient_nms_gives_number_boxes_scores_classes(dtype: Any, rank: int) -> None:
    boxes, scores = (a.astype(dtype) for a in scene())
    given = boxes[:, :, 0] if rank == 3 else boxes
    outputs = run(
        "EfficientNMS_TRT", given, scores if rank == 3 else scores[..., None], **EFFICIENT
    )
    assert [(o.shape, o.dtype) for o in outputs] == [
        ((2, 1), np.int32), ((2, 20, 4), dtype), ((2, 20), dtype), ((2, 20), np.int32),
    ]  # fmt: skip
    same_rows(
        outputs,
        slow.efficient(
            boxes.astype(np.float32), scores.astype(np.float32),
            keep=20, score_threshold=0.3, iou_threshold=0.5,
        ),
    )  # fmt: skip
    assert (np.diff(outputs[2].astype(float)) <= 0).all(), "best first"


def test_efficient_nms_fills_up_with_zeros() -> None:
    boxes, scores = scene()
    outputs = run("EfficientNMS_TRT", boxes, scores, **{**EFFICIENT, "score_threshold": 0.95})
    n = outputs[0][:, 0]
    assert (n < 20).all()
    for output in outputs[1:]:
        for b in range(2):
            assert not output[b, n[b] :].any()
    nothing = run("EfficientNMS_TRT", boxes, scores - 2, **EFFICIENT)
    assert all(not output.any() for output in nothing)


def test_centres_and_corners_of_the_same_boxes_give_the_same() -> None:
    boxes, scores = scene(sets=3)
    centres = np.concatenate(
        [(boxes[..., :2] + boxes[..., 2:]) / 2, boxes[..., 2:] - boxes[..., :2]], -1
    )
    one = run("EfficientNMS_TRT", boxes, scores, **EFFICIENT)
    other = run("EfficientNMS_TRT", centres, scores, **{**EFFICIENT, "box_coding": 1})
    for a, b in zip(one, other, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-6)


def test_boxes_of_other_classes_suppress_only_where_asked() -> None:
    boxes = np.tile(np.array([0, 0, 1, 1], np.float32), (1, 3, 1, 1))
    scores = np.array([[[0.9, 0, 0], [0, 0.8, 0], [0, 0.7, 0]]], np.float32)
    assert run("EfficientNMS_TRT", boxes, scores, **EFFICIENT)[0] == 2
    agnostic = run("EfficientNMS_TRT", boxes, scores, **EFFICIENT, class_agnostic=1)
    assert agnostic[0] == 1
    assert agnostic[3][0, 0] == 0


def test_logits_give_the_scores_of_their_sigmoid() -> None:
    boxes, scores = scene()
    logits = np.log(scores / (1 - scores))
    one = run("EfficientNMS_TRT", boxes, scores, **EFFICIENT)
    other = run("EfficientNMS_TRT", boxes, logits, **{**EFFICIENT, "score_activation": 1})
    for a, b in zip(one, other, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5)


@pytest.mark.parametrize("per_image", [False, True])
def test_boxes_with_anchors(per_image: bool) -> None:
    boxes, scores = scene(sets=3)
    random = np.random.default_rng(5)
    anchors = random.random((2 if per_image else 1, 40, 4), np.float32)
    options = {**EFFICIENT, "box_coding": 1}
    outputs = run("EfficientNMS_TRT", boxes, scores, anchors, **options)
    same_rows(
        outputs,
        slow.efficient(
            boxes, scores, anchors, keep=20, score_threshold=0.3, iou_threshold=0.5, centres=True
        ),
    )


def test_onnx_rows_are_repeated_and_minus_one_without_detections() -> None:
    boxes, scores = scene()
    (rows,) = run("EfficientNMS_ONNX_TRT", boxes[:, :, 0], scores, **OLD_EFFICIENT)
    assert rows.shape == (8, 3)
    expected = slow.efficient(
        boxes, scores, keep=4, score_threshold=0.3, iou_threshold=0.5, per_class=4
    )
    triples = [[b, c, n] for b, image in enumerate(expected) for _, _, c, n in image]
    assert rows.tolist() == triples + [triples[-1]] * (8 - len(triples))
    high = {**OLD_EFFICIENT, "score_threshold": 0.999}
    assert (run("EfficientNMS_ONNX_TRT", boxes[:, :, 0], scores, **high)[0] == -1).all()
    (few,) = run("EfficientNMS_ONNX_TRT", boxes[:1, :1, 0], scores[:1, :1] * 0 + 1, **OLD_EFFICIENT)
    assert few.tolist() == [[0, 0, 0], [0, 1, 0], [0, 2, 0], [0, 2, 0]]


@pytest.mark.parametrize("pad", [0, 1])
def test_combined_nms_of_tensorflow(pad: int) -> None:
    boxes, scores = scene(size=1.3)
    options = {**TF, "pad_per_class": pad, "max_output_size_per_class": 2}
    keep = 6 if pad else 10
    outputs = run("EfficientNMS_Explicit_TF_TRT", boxes, scores, **options)
    assert outputs[1].shape == (2, keep, 4)
    same_rows(
        outputs,
        slow.efficient(
            boxes, scores, keep=keep, score_threshold=0.3, iou_threshold=0.5, per_class=2, clip=True
        ),
    )
    implicit = run("EfficientNMS_Implicit_TF_TRT", boxes, scores, **options)
    assert implicit[0].shape == (2,)
    np.testing.assert_array_equal(implicit[0], outputs[0][:, 0])
    for a, b in zip(implicit[1:], outputs[1:], strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("normalized", [0, 1])
@pytest.mark.parametrize("caffe", [0, 1])
@pytest.mark.parametrize("shared", [0, 1])
@pytest.mark.parametrize("background", [-1, 0])
def test_batched_nms(normalized: int, caffe: int, shared: int, background: int) -> None:
    size = 1 if normalized else 20  # "+1" matters for small boxes
    boxes, scores = scene(1 if shared else 3, size=size)
    options = {
        **BATCHED, "isNormalized": normalized, "caffeSemantics": caffe, "shareLocation": shared,
        "backgroundLabelId": background,
    }  # fmt: skip
    outputs = run("BatchedNMSDynamic_TRT", boxes, scores, **options)
    assert [o.shape for o in outputs] == [(2, 1), (2, 20, 4), (2, 20), (2, 20)]
    assert [o.dtype for o in outputs] == [np.int32, np.float32, np.float32, np.float32]
    expected = slow.batched(
        boxes, scores, keep=20, top=30, score_threshold=0.3, iou_threshold=0.5,
        background=background, plus_areas=not normalized,
        plus_overlap=bool(not normalized and caffe),
    )  # fmt: skip
    same_rows(outputs, expected)
    static = run("BatchedNMS_TRT", boxes, scores, **options)
    assert static[0].shape == (2,)
    np.testing.assert_array_equal(static[0], outputs[0][:, 0])
    for a, b in zip(static[1:], outputs[1:], strict=True):
        np.testing.assert_array_equal(a, b)


def test_batched_nms_pads_with_class_minus_one_and_clips_only_where_asked() -> None:
    boxes, scores = scene(size=10)
    few = {**BATCHED, "scoreThreshold": 0.97}
    count, kept, points, classes = run("BatchedNMSDynamic_TRT", boxes, scores, **few)
    for b in range(2):
        n = count[b, 0]
        assert (classes[b, n:] == -1).all()
        assert not kept[b, n:].any()
        assert not points[b, n:].any()
    clipped = run("BatchedNMSDynamic_TRT", boxes, scores, **{**BATCHED, "clipBoxes": 1})[1]
    assert clipped.max() == 1
    by_default = {k: v for k, v in BATCHED.items() if k != "clipBoxes"}
    np.testing.assert_array_equal(
        run("BatchedNMSDynamic_TRT", boxes, scores, **by_default)[1], clipped
    )


def test_batched_nms_keeps_what_overlaps_exactly_at_the_threshold() -> None:
    boxes = np.array([[[[0, 0, 4, 1]], [[0, 0, 2, 1]]]], np.float32)
    scores = np.array([[[0.9], [0.8]]], np.float32)
    assert run("BatchedNMSDynamic_TRT", boxes, scores, **{**BATCHED, "numClasses": 1})[0] == 2


def priors_of(count: int, seed: int = 3) -> Any:
    random = np.random.default_rng(seed)
    start = random.random((count, 2)) * 0.7
    corners = np.concatenate([start, start + 0.05 + random.random((count, 2)) * 0.3], 1)
    variances = np.tile([0.1, 0.1, 0.2, 0.2], (count, 1))
    both = np.stack([corners.ravel(), variances.ravel()])
    return both.astype(np.float32)[None, :, :, None]


def slow_decode(code: int, prior: Any, variance: Any, t: Any) -> list[float]:
    x1, y1, x2, y2 = prior
    v = variance
    w, h = x2 - x1, y2 - y1
    cx, cy = (x1 + x2) / 2, (y1 + y2) / 2
    if code == 0:
        return [x1 + v[0] * t[0], y1 + v[1] * t[1], x2 + v[2] * t[2], y2 + v[3] * t[3]]
    if code == 2:
        return [
            x1 + v[0] * t[0] * w, y1 + v[1] * t[1] * h, x2 + v[2] * t[2] * w, y2 + v[3] * t[3] * h,
        ]  # fmt: skip
    if code == 1:
        mx, my = v[0] * t[0] * w + cx, v[1] * t[1] * h + cy
        nw, nh = np.exp(v[2] * t[2]) * w, np.exp(v[3] * t[3]) * h
    else:
        my, mx = v[0] * t[0] * h + cy, v[1] * t[1] * w + cx
        nh, nw = np.exp(v[2] * t[2]) * h, np.exp(v[3] * t[3]) * w
    return [mx - nw / 2, my - nh / 2, mx + nw / 2, my + nh / 2]


@pytest.mark.parametrize("name", ["NMS_TRT", "NMSDynamic_TRT"])
@pytest.mark.parametrize("code", [0, 1, 2, 3])
@pytest.mark.parametrize(("shared", "in_target", "agnostic"), [(1, 0, 1), (0, 1, 0), (0, 0, 1)])
def test_detection_output(name: str, code: int, shared: int, in_target: int, agnostic: int) -> None:
    random = np.random.default_rng(code)
    count, classes = 15, 3
    sets = 1 if shared else classes
    loc = random.normal(0, 1, (2, count * sets * 4, 1, 1)).astype(np.float32)
    logits = random.normal(0, 2, (2, count * classes, 1, 1)).astype(np.float32)
    priors = np.concatenate([priors_of(count), priors_of(count, 9)])
    options = {
        **SSD, "codeType": code, "shareLocation": shared, "varianceEncodedInTarget": in_target,
        "isBatchAgnostic": agnostic, "confSigmoid": 1, "inputOrder": [1, 0, 2],
    }  # fmt: skip
    rows, keep_count = run(name, logits, loc, priors, **options)
    assert rows.shape == (2, 1, 12, 7)
    assert keep_count.shape == (2, 1, 1, 1)
    counts = keep_count.view(np.int32).ravel()
    scores = (1 / (1 + np.exp(-logits))).reshape(2, count, classes)
    for b in range(2):
        corner, variance = priors[0 if agnostic else b].reshape(2, count, 4)
        if in_target:
            variance = np.ones_like(variance)
        codes = loc[b].reshape(count, sets, 4)
        boxes = np.array(
            [[slow_decode(code, corner[n], variance[n], codes[n, s]) for s in range(sets)]
             for n in range(count)], np.float32,
        )  # fmt: skip
        (expected,) = slow.batched(
            boxes[None], scores[b : b + 1], keep=12, top=30, score_threshold=0.3, iou_threshold=0.4,
            background=0, clip=True,
        )  # fmt: skip
        assert counts[b] == len(expected)
        assert (rows[b, 0, :, 0] == b).all()
        for row, (box, score, label, _) in zip(rows[b, 0], expected, strict=False):
            assert row[1] == label
            assert row[2:].tolist() == pytest.approx([score, *map(float, box)], rel=1e-3, abs=1e-5)
        rest = rows[b, 0, len(expected) :]
        assert (rest[:, 1] == -1).all()
        assert not rest[:, 2:].any()


@pytest.mark.parametrize(
    ("name", "options", "change", "says"),
    [
        ("EfficientNMS_TRT", EFFICIENT, {"score_threshold": None}, "'score_threshold' is missing"),
        ("EfficientNMS_TRT", EFFICIENT, {"iou_threshold": 0.0}, "'iou_threshold' is"),
        ("EfficientNMS_TRT", EFFICIENT, {"max_output_boxes": 20.0}, "is FLOAT32"),
        ("EfficientNMS_TRT", EFFICIENT, {"score_activation": 2}, "'score_activation' is"),
        ("EfficientNMS_TRT", EFFICIENT, {"score_threshold": float("nan")}, "is \\[nan\\]"),
        ("BatchedNMS_TRT", BATCHED, {"keepTopK": 40}, "keepTopK is 40, topK 30"),
        ("BatchedNMSDynamic_TRT", BATCHED, {"topK": 5000}, "'topK' is"),
        ("NMS_TRT", SSD, {"inputOrder": [0, 0, 2]}, "inputOrder"),
        ("NMS_TRT", SSD, {"inputOrder": [0, 1]}, "inputOrder"),
        ("NMS_TRT", SSD, {"codeType": 4}, "codeType"),
    ],
)  # fmt: skip
def test_wrong_fields_are_told(name: str, options: Any, change: Any, says: str) -> None:
    merged = {k: v for k, v in {**options, **change}.items() if v is not None}
    with pytest.raises(ModelError, match=says) as error:
        create(name, **merged)
    assert error.value.where == "layer"


def test_boxes_without_their_fourth_axis_are_told() -> None:
    boxes, scores = scene()
    for name in ("BatchedNMS_TRT", "BatchedNMSDynamic_TRT"):
        with pytest.raises(ModelError, match="has 3 axes") as error:
            run(name, boxes[:, :, 0], scores, **BATCHED)
        assert "[batch, boxes, 1, 4]" in str(error.value.finding.remedies)


@pytest.mark.parametrize(
    ("boxes", "scores", "says"),
    [
        ((2, 40, 1, 4), (2, 39, 3), "40 and 39"),
        ((2, 40, 1, 5), (2, 40, 3), "numbers of a box"),
        ((2, 40, 2, 4), (2, 40, 3), "2 and 3"),
        ((1, 40, 1, 4), (2, 40, 3), "images"),
        ((2, 40), (2, 40, 3), "has 2 axes"),
    ],
)
def test_shapes_that_do_not_fit_are_told(boxes: Any, scores: Any, says: str) -> None:
    with pytest.raises(ModelError, match=says):
        run(
            "EfficientNMS_TRT", np.zeros(boxes, np.float32), np.zeros(scores, np.float32),
            **EFFICIENT,
        )  # fmt: skip


def test_damaged_blobs_are_told() -> None:
    plugin = create("BatchedNMSDynamic_TRT", **BATCHED)
    blob = plugin.serialize()
    from tests.plugins.standard.driving import REGISTRY

    creator = REGISTRY.find("BatchedNMSDynamic_TRT")
    assert creator is not None
    for damaged in (b"", b"{}", blob[:-3], b"\xff\xfe", blob.replace(b"topK", b"tofu", 1), b"[1]"):
        with pytest.raises(ModelError):
            creator.deserialize_plugin("layer", damaged)
