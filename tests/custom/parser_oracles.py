"""What well-known parsers of public collections return, evaluated with NumPy on random tensors.

Written from the catalogue of the custom-library specification (4.1 to 4.4), independently of
headrace's built-in parsers, one object at a time where that is clearest. A case is the layers, the
thresholds and the rows (class, left, top, width, height, score[, angle]) that must come back, in
any order.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

W, H = 640, 480
f4, i4, i8 = np.float32, np.int32, np.int64


@dataclass
class Case:
    """Arguments of one call, and its result."""

    layers: dict[str, Any]
    thresholds: np.ndarray
    rows: list[tuple[float, ...]] = field(default_factory=list)
    masks: list[np.ndarray] | None = None
    classes: np.ndarray | None = None  # class map
    attributes: list[tuple[float, ...]] | None = None
    threshold: float = 0.3  # of classifiers and segmentation


Make = Callable[[np.random.Generator, str], Case]


def clip(value: Any, low: float, high: float) -> Any:
    return np.minimum(np.maximum(f4(value), f4(low)), f4(high))


def corners(x1: Any, y1: Any, x2: Any, y2: Any, right: float, bottom: float) -> tuple[Any, ...]:
    left, top = clip(x1, 0, right), clip(y1, 0, bottom)
    return left, top, clip(x2, 0, right) - left, clip(y2, 0, bottom) - top


def thresholds(rng: np.random.Generator, count: int) -> np.ndarray:
    return rng.uniform(0.2, 0.6, count).astype(f4)


def sigmoid(values: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-values))


def boxes_of(rng: np.random.Generator, count: int, scale: tuple[float, float]) -> np.ndarray:
    """Corner boxes x1, y1, x2, y2, some of them beyond the image."""
    first = rng.uniform(-0.1, 0.9, (count, 2))
    both = np.concatenate([first, first + rng.uniform(0.02, 0.5, (count, 2))], 1)
    return (both * [*scale, *scale]).astype(f4)


# ---- customparser and TAO


def resnet(rng: np.random.Generator, source: str) -> Case:
    names = [
        ("output_bbox/BiasAdd:0", "output_cov/Sigmoid:0"),
        ("output_bbox/BiasAdd", "output_cov/Sigmoid"),
        ("conv2d_bbox", "conv2d_cov/Sigmoid"),
    ]
    bbox, cov = next(pair for pair in names if f'"{pair[0]}"' in source)
    classes, rows, columns = 3, 9, 13
    limits = thresholds(rng, classes)
    boxes = rng.uniform(-1, 3, (4 * classes, rows, columns)).astype(f4)
    scores = rng.uniform(0, 0.7, (classes, rows, columns)).astype(f4)
    case = Case({bbox: boxes, cov: scores}, limits)
    sx, sy = -(-W // columns), -(-H // rows)
    for c, y, x in np.argwhere(scores >= limits[:, None, None]):
        cx, cy = f4(x * sx + 0.5) / f4(35), f4(y * sy + 0.5) / f4(35)
        o = boxes[4 * c : 4 * c + 4, y, x]
        left, top = clip(-35 * (o[0] - cx), 0, W - 1), clip(-35 * (o[1] - cy), 0, H - 1)
        right, bottom = clip(35 * (o[2] + cx), 0, W - 1), clip(35 * (o[3] + cy), 0, H - 1)
        case.rows.append((c, left, top, right - left + 1, bottom - top + 1, scores[c, y, x]))
    return case


def tf_ssd(rng: np.random.Generator, source: str) -> Case:
    limits, n = thresholds(rng, 4), 60
    xy = boxes_of(rng, n, (1, 1))
    boxes, scores = xy[:, [1, 0, 3, 2]], rng.uniform(0, 1, n).astype(f4)
    ids = rng.integers(0, 6, n).astype(f4)
    layers = {
        "num_detections": np.array([40], f4),
        "detection_scores": scores,
        "detection_classes": ids,
        "detection_boxes": boxes,
    }
    case = Case(layers, limits)
    for box, score, i in zip(xy[:40], scores, ids.astype(int), strict=False):
        if i < 4 and score >= limits[i]:
            size = corners(*(box * f4([W, H, W, H])), W - 1, H - 1)
            if size[2] > 0 and size[3] > 0:
                case.rows.append((i, *size, score))
    return case


def nms_tlt(rng: np.random.Generator, source: str) -> Case:
    limits, n, kept = thresholds(rng, 3), 80, 55
    rows = np.zeros((1, n, 7), f4)
    rows[0, :, 1] = rng.integers(0, 3, n)
    rows[0, :, 2] = rng.uniform(0, 1, n)
    rows[0, :, 3:] = boxes_of(rng, n, (1, 1))
    case = Case({"NMS": rows, "NMS_1": np.array([kept], i4)}, limits)
    for _, label, score, x1, y1, x2, y2 in rows[0, :kept]:
        if score >= limits[0]:
            left, top = clip(x1 * W, 0, W - 1), clip(y1 * H, 0, H - 1)
            size = clip((x2 - x1) * W, 0, W - 1), clip((y2 - y1) * H, 0, H - 1)
            case.rows.append((label, left, top, *size, score))
    return case


def batched_nms(scale: bool) -> Make:
    def make(rng: np.random.Generator, source: str) -> Case:
        limits, n, kept = thresholds(rng, 3), 120, 90
        boxes = boxes_of(rng, n, (1, 1) if scale else (W, H))
        scores, ids = rng.uniform(0, 1, n).astype(f4), rng.integers(0, 5, n).astype(f4)
        layers = {"a": np.array([kept], i4), "b": boxes, "c": scores, "d": ids}
        case = Case(layers, limits)
        factors = f4([W, H, W, H] if scale else [1, 1, 1, 1])
        for box, score, i in zip(boxes[:kept] * factors, scores, ids, strict=False):
            if score >= limits[0] and i < 3:
                case.rows.append((i, *corners(*box, W - 1, H - 1), score))
        return case

    return make


def efficient_det(named: bool) -> Make:
    def make(rng: np.random.Generator, source: str) -> Case:
        limits, n, kept = thresholds(rng, 3), 70, 50
        xy = boxes_of(rng, n, (W, H))
        xy[0] = [2, 2, 600, 400]  # the largest value must be 2 or more
        scores = rng.uniform(0, 1, n).astype(f4)
        ids = rng.integers(0, 3, n).astype(i4 if named else f4)
        names = ["num_detections", "detection_boxes", "detection_scores", "detection_classes"]
        arrays = [np.array([kept], i4), np.ascontiguousarray(xy[:, [1, 0, 3, 2]]), scores, ids]
        case = Case(dict(zip(names, arrays, strict=True)), limits)
        for box, score, i in zip(xy[:kept], scores, ids, strict=False):
            if score >= limits[0]:
                left, top = clip(box[0], 0, W - 1), clip(box[1], 0, H - 1)
                size = clip(box[2] - box[0], 0, W - 1), clip(box[3] - box[1], 0, H - 1)
                case.rows.append((i, left, top, *size, score))
        return case

    return make


def _centre_boxes(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """(cx, cy, w, h in 0..1; left, top, width, height in pixels, clipped)."""
    boxes = rng.uniform(0.05, 0.95, (n, 4)).astype(f4)
    cx, cy, w, h = boxes.T
    x1, y1 = (cx - w / 2) * W, (cy - h / 2) * H
    x2, y2 = (cx + w / 2) * W, (cy + h / 2) * H
    return boxes, np.stack(corners(x1, y1, x2, y2, W - 1, H - 1), 1)


def ddetr(rng: np.random.Generator, source: str) -> Case:
    """The most confident class of each query, but for class 0. Older code walks its sorted map from
    beyond the end, so that the lowest entry is lost.
    """
    lost = "ordered_objects.rbegin()" not in source
    classes, n = 4, 60
    limits = thresholds(rng, classes)
    boxes, pixels = _centre_boxes(rng, n)
    logits = rng.normal(0, 2, (n, classes)).astype(f4)
    case = Case({"pred_logits": logits, "pred_boxes": boxes}, limits)
    best = logits.argmax(1)
    scores = sigmoid(logits.max(1))
    found = [
        (i, *pixels[q], scores[q]) for q, i in enumerate(best) if i != 0 and scores[q] >= limits[i]
    ]
    found.sort(key=lambda row: -row[5])
    case.rows = found[: len(found) - lost]
    return case


def rt_detr(rng: np.random.Generator, source: str) -> Case:
    classes, n = 5, 80
    limits = thresholds(rng, classes)
    boxes, pixels = _centre_boxes(rng, n)
    logits = rng.normal(-1, 2, (n, classes)).astype(f4)
    case = Case({"pred_logits": logits, "pred_boxes": boxes}, limits)
    scores = sigmoid(logits).ravel()
    for at in np.argsort(-scores)[:100]:
        query, i = divmod(int(at), classes)
        if scores[at] >= limits[i]:
            case.rows.append((i, *pixels[query], scores[at]))
    return case


def yolo_obb(rng: np.random.Generator, source: str) -> Case:
    """Rank 2: boxes far apart, so that its own suppression has nothing to do."""
    classes, n = 3, 40
    limits = np.full(classes, 0.4, f4)
    data = np.zeros((4 + classes + 1, n), f4)
    data[0], data[1] = 40 + 70 * (np.arange(n) % 8), 30 + 60 * (np.arange(n) // 8)
    data[2:4] = rng.uniform(10, 30, (2, n))
    data[4 : 4 + classes] = rng.uniform(0, 1, (classes, n))
    data[-1] = rng.uniform(0, np.pi, n)
    case = Case({"output0": data}, limits)
    for cx, cy, w, h, *scores, angle in data.T:
        if max(scores) >= limits[0]:
            box = cx - w / 2, cy - h / 2, w, h
            case.rows.append((int(np.argmax(scores)), *box, max(scores), angle))
    return case


def mrcnn(mask_name: str) -> Make:
    def make(rng: np.random.Generator, source: str) -> Case:
        classes, n, side = 3, 20, 7
        limits = thresholds(rng, classes)
        xy = boxes_of(rng, n, (W, H))
        ids, scores = rng.integers(0, classes, n), rng.uniform(0, 1, n).astype(f4)
        rows = np.column_stack([xy[:, [1, 0, 3, 2]], ids, scores]).astype(f4)
        masks = rng.normal(0, 3, (n, classes, side, side)).astype(f4)
        case = Case({"generate_detections": rows, mask_name: masks}, limits, masks=[])
        assert case.masks is not None
        for k, (box, i, score) in enumerate(zip(xy, ids, scores, strict=True)):
            if score >= limits[0]:
                left, top = clip(box[0], 0, W - 1), clip(box[1], 0, H - 1)
                size = clip(box[2], 0, W - 1) - box[0], clip(box[3], 0, H - 1) - box[1]
                if size[0] > 0 and size[1] > 0:
                    case.rows.append((i, left, top, *size, score))
                    case.masks.append(masks[k, i])
        return case

    return make


def mask2former(rng: np.random.Generator, source: str) -> Case:
    """Square masks: the original takes the first extent for the width. Boxes are one cell less than
    what is inside, and an edge at 0 counts as not found yet, which makes it 1.
    """
    n, side = 12, 64
    limits = np.full(4, 0.5, f4)
    masks = np.zeros((n, side, side), f4)
    scores, ids = rng.uniform(0, 1, n).astype(f4), rng.integers(0, 4, n).astype(i4)
    case = Case({"pred_classes": ids, "pred_masks": masks, "pred_scores": scores}, limits, masks=[])
    assert case.masks is not None
    for k in range(n):
        y, x = rng.integers(0, 30, 2)
        y2, x2 = y + rng.integers(3, 30), x + rng.integers(3, 30)
        masks[k, y : y2 + 1, x : x2 + 1] = 1
        x, y = max(x, 1), max(y, 1)
        if scores[k] >= limits[0]:
            case.rows.append((ids[k], x, y, x2 - x, y2 - y, scores[k]))
            case.masks.append(masks[k, y:y2, x:x2])
    return case


def best_attribute(soft: bool) -> Make:
    """The best class of every output above the threshold; maybe after a soft-max."""

    def make(rng: np.random.Generator, source: str) -> Case:
        scores = rng.uniform(0, 1, 6).astype(f4)
        case = Case({"scores": scores.reshape(6, 1, 1)}, np.zeros(1, f4), attributes=[])
        case.threshold = 0.1
        assert case.attributes is not None
        if soft:
            scores = np.exp(scores) / np.exp(scores).sum()
        if scores.max() > case.threshold:
            case.attributes.append((0, int(scores.argmax()), float(scores.max())))
        return case

    return make


def copied_map(name: str, kind: Any) -> Make:
    def make(rng: np.random.Generator, source: str) -> Case:
        classes = rng.integers(0, 4, (H, W)).astype(kind)
        layer = classes[..., None] if name == "argmax_1" else classes
        return Case({name: np.ascontiguousarray(layer)}, np.zeros(4, f4), classes=classes)

    return make


def segformer_scores(rng: np.random.Generator, source: str) -> Case:
    scores = rng.uniform(0, 1, (4, 30, 50)).astype(f4)
    best = scores.argmax(0)
    classes = best[np.arange(H) * 30 // H][:, np.arange(W) * 50 // W]
    return Case({"output": scores}, np.zeros(4, f4), classes=classes)


def change_net(rng: np.random.Generator, source: str) -> Case:
    scores = rng.uniform(0, 1, (2, H, W)).astype(f4)
    classes = np.where(scores.max(0) > f4(0.3), scores.argmax(0), -1)
    return Case({"output_final": scores}, np.zeros(2, f4), classes=classes)


# ---- YOLO


def yolo_rows(rng: np.random.Generator, source: str) -> Case:
    """[N, 6]: corners in pixels, score, class."""
    limits, n = thresholds(rng, 4), 100
    rows = np.column_stack(
        [boxes_of(rng, n, (W, H)), rng.uniform(0, 1, n), rng.integers(0, 4, n)]
    ).astype(f4)
    case = Case({"output": rows}, limits)
    for x1, y1, x2, y2, score, i in rows:
        box = corners(x1, y1, x2, y2, W, H)
        if score >= limits[int(i)] and box[2] >= 1 and box[3] >= 1:
            case.rows.append((i, *box, score))
    return case


def yolo_v4(rng: np.random.Generator, source: str) -> Case:
    limits, n, kept = thresholds(rng, 4), 50, 30
    boxes, scores = boxes_of(rng, n, (1, 1)), rng.uniform(0, 1, n).astype(f4)
    ids = rng.integers(0, 4, n).astype(f4)
    layers = {
        "num_detections": np.array([kept], i4),
        "nmsed_boxes": boxes,
        "nmsed_scores": scores,
        "nmsed_classes": ids,
    }
    case = Case(layers, limits)
    for box, score, i in zip(boxes[:kept] * f4([W, H, W, H]), scores, ids, strict=False):
        size = corners(*box, W, H)
        if score > limits[int(i)] and size[2] >= 1 and size[3] >= 1:
            case.rows.append((i, *size, score))
    return case


def yolo_scores(objectness: bool) -> Make:
    """[R, 84] or [R, 85]: centre, size in pixels, maybe objectness, 80 scores."""

    def make(rng: np.random.Generator, source: str) -> Case:
        n, extra = 50, int(objectness)
        data = np.zeros((n, 84 + extra), f4)
        data[:, :2] = rng.uniform(50, 400, (n, 2))
        data[:, 2:4] = rng.uniform(5, 300, (n, 2))
        data[:, 4:] = rng.uniform(0, 1, (n, 80 + extra))
        case = Case({"output": data}, np.full(80, 0.1, f4))
        for cx, cy, w, h, *rest in data:
            box = corners(cx - w / 2, cy - h / 2, cx + w / 2, cy + h / 2, W, H)
            i = int(np.argmax(rest[extra:]))
            case.rows.append((i, *box, rest[0] if objectness else rest[i]))
        return case

    return make


def yolo_v11(rng: np.random.Generator, source: str) -> Case:
    classes, n = 6, 60
    limits = thresholds(rng, classes)
    data = np.zeros((4 + classes, n), f4)
    data[:2] = rng.uniform(50, 400, (2, n))
    data[2:4] = rng.uniform(5, 300, (2, n))
    data[4:] = rng.uniform(0, 0.8, (classes, n))
    case = Case({"output0": data}, limits)
    for cx, cy, w, h, *scores in data.T:
        i = int(np.argmax(scores))
        if scores[i] >= limits[i]:
            box = corners(cx - w / 2, cy - h / 2, cx + w / 2, cy + h / 2, W, H)
            case.rows.append((i, *box, scores[i]))
    return case


V3 = [10, 13, 16, 30, 33, 23, 30, 61, 62, 45, 59, 119, 116, 90, 156, 198, 373, 326]
V3_TINY = [10, 14, 23, 27, 37, 58, 81, 82, 135, 169, 344, 319]
V2 = [0.57273, 0.677385, 1.87446, 2.06253, 3.33843, 5.47434, 7.88282, 3.52778, 9.77052, 9.16828]


def yolo_grids(anchors: list[float], masks: list[list[int]], v2: bool = False) -> Make:
    """Heads that a plugin has activated: planes x, y, w, h, objectness, 80 scores per anchor."""

    def make(rng: np.random.Generator, source: str) -> Case:
        case = Case({}, np.full(80, 0.1, f4))
        for stride, mask in zip([32, 16, 8], masks, strict=False):
            rows, columns = H // stride, W // stride
            data = rng.uniform(0.05, 1, (len(mask), 85, rows, columns)).astype(f4)
            case.layers[f"yolo_{stride}"] = data.reshape(-1, rows, columns)
            anchor = np.array(anchors, f4).reshape(-1, 2)[mask][:, :, None, None]
            y, x = np.mgrid[:rows, :columns].astype(f4)
            cx, cy = (x + data[:, 0]) * stride, (y + data[:, 1]) * stride
            w, h = data[:, 2], data[:, 3]
            w, h = (stride * np.exp(w), stride * np.exp(h)) if v2 else (w, h)
            w, h = anchor[:, 0] * w, anchor[:, 1] * h
            box = corners(cx - w / 2, cy - h / 2, cx + w / 2, cy + h / 2, W, H)
            ids, scores = data[:, 5:].argmax(1), data[:, 4] * data[:, 5:].max(1)
            found = np.stack([ids, *box, scores], -1).reshape(-1, 6)
            case.rows += list(map(tuple, found[(found[:, 3] >= 1) & (found[:, 4] >= 1)]))
        return case

    return make


_SHARED: dict[str, Make] = {
    "NvDsInferParseCustomNMSTLT": nms_tlt,
    "NvDsInferParseCustomBatchedNMSTLT": batched_nms(True),
    "NvDsInferParseYoloV5CustomBatchedNMSTLT": batched_nms(False),
    "NvDsInferParseCustomBatchedYoloV5NMSTLT": batched_nms(False),
    "NvDsInferParseCustomMrcnnTLT": mrcnn("mask_head/mask_fcn_logits/BiasAdd"),
    "NvDsInferParseCustomMrcnnTLTV2": mrcnn("mask_fcn_logits/BiasAdd"),
}
ORACLES: dict[str, dict[str, Make]] = {
    "customparser": {
        **_SHARED,
        "NvDsInferParseCustomResnet": resnet,
        "NvDsInferParseCustomTfSSD": tf_ssd,
        "NvDsInferParseCustomEfficientDetTAO": efficient_det(False),
        "NvDsInferParseCustomDDETRTAO": ddetr,
        "NvDsInferParseCustomRTDETRTAO": rt_detr,
        "NvDsInferParseCustomYoloV11OBB": yolo_obb,
        "NvDsInferClassiferParseCustomSoftmax": best_attribute(False),
        "NvDsInferParseCustomPeopleSemSegNet": copied_map("argmax_1", i4),
    },
    "tao": {
        **_SHARED,
        "NvDsInferParseCustomEfficientDetTAO": efficient_det(True),
        "NvDsInferParseCustomDDETRTAO": ddetr,
        "NvDsInferParseCustomMask2Former": mask2former,
        "NvDsInferClassiferParseNonSoftmax": best_attribute(True),
        "NvDsInferParseCustomSegformerTAO": copied_map("output", i8),
        "NvDsInferParseCustomSegformerTAO2": segformer_scores,
        "NvDsInferParseCustomChangeNet": change_net,
    },
    "yolo library": {"NvDsInferParseYolo": yolo_rows},
    "yolo sample": {
        "NvDsInferParseCustomYoloV4": yolo_v4,
        "NvDsInferParseCustomYoloV7": yolo_scores(True),
        "NvDsInferParseCustomYoloV8": yolo_scores(False),
        "NvDsInferParseYoloV11": yolo_v11,
    },
    "yolo sample of 6.x": {
        "NvDsInferParseCustomYoloV3": yolo_grids(V3, [[6, 7, 8], [3, 4, 5], [0, 1, 2]]),
        "NvDsInferParseCustomYoloV3Tiny": yolo_grids(V3_TINY, [[3, 4, 5], [1, 2, 3]]),
        "NvDsInferParseCustomYoloV2": yolo_grids(V2, [[0, 1, 2, 3, 4]], v2=True),
        "NvDsInferParseCustomYoloV2Tiny": yolo_grids(V2, [[0, 1, 2, 3, 4]], v2=True),
    },
}
"""Collection -> function -> its cases."""
