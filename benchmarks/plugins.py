"""Standard plugins on one core, against NumPy with OpenCV's NMS where there is one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import cv2
import numpy as np

from benchmarks.common import Row, compare
from headrace.plugins.standard import standard_layers
from headrace.plugins.standard.fields import Given

BOXES, CLASSES, KEEP = 8400, 80, 100
THRESHOLD, IOU = 0.25, 0.45


def rows() -> Iterable[Row]:
    cv2.setNumThreads(1)
    for name, fields in (("EfficientNMS_TRT", EFFICIENT), ("BatchedNMS_TRT", BATCHED)):
        for hot in (500, 5000, 50_000):
            yield _nms(name, fields, hot)


EFFICIENT = {
    "score_threshold": THRESHOLD,
    "iou_threshold": IOU,
    "max_output_boxes": KEEP,
    "background_class": -1,
    "score_activation": 0,
    "box_coding": 0,
    "class_agnostic": 0,
}
BATCHED = {
    "shareLocation": 1,
    "backgroundLabelId": -1,
    "numClasses": CLASSES,
    "topK": 1000,
    "keepTopK": KEEP,
    "scoreThreshold": THRESHOLD,
    "iouThreshold": IOU,
    "isNormalized": 1,
    "clipBoxes": 0,
    "scoreBits": 16,
    "caffeSemantics": 1,
}


def _nms(name: str, fields: dict[str, Any], hot: int) -> Row:
    """`hot` of the 672,000 scores are over the threshold."""
    rng = np.random.default_rng(0)
    corners = np.empty((1, BOXES, 1, 4), np.float32)
    corners[..., :2] = rng.uniform(0, 560, (1, BOXES, 1, 2))
    corners[..., 2:] = corners[..., :2] + rng.uniform(10, 80, (1, BOXES, 1, 2))
    scores = rng.uniform(0, 0.2, (1, BOXES, CLASSES)).astype(np.float32)
    some = rng.choice(BOXES * CLASSES, hot, replace=False)
    scores.reshape(-1)[some] = rng.uniform(0.3, 1, hot)
    layer = _layer(name, fields)
    outputs = [
        np.empty(shape, np.int32 if k in layer.integer_outputs else np.float32)
        for k, shape in enumerate(layer.shapes([corners.shape, scores.shape]))
    ]

    def opencv() -> Any:
        box, label = np.nonzero(scores[0] >= THRESHOLD)
        left_top, right_bottom = corners[0, box, 0, :2], corners[0, box, 0, 2:]
        rects = np.concatenate([left_top, right_bottom - left_top], axis=1)
        found = scores[0, box, label]
        return cv2.dnn.NMSBoxesBatched(rects, found, label, THRESHOLD, IOU, 1.0, 5000)[:KEEP]

    return compare(
        f"{name} 8400 x 80, {KEEP} out, {hot:,} candidates; NumPy + cv2.dnn.NMSBoxesBatched",
        lambda: layer.run([corners, scores], outputs),
        opencv,
        repeat=31 if hot == 500 else 7,
    )


def _layer(name: str, fields: dict[str, Any]) -> Any:
    kind = next(layer for layer in standard_layers() if layer.name == name)
    return kind(Given(fields), name)
