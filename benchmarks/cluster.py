"""Clustering and attaching against NumPy, OpenCV and a plain Python loop."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from benchmarks.common import Row, compare
from headrace.config import ClassAttrs, ClusterMode
from headrace.config.model_config import ModelConfig
from headrace.infer.attach import Attacher
from headrace.infer.cluster import Clusterer, ClusterParams, Reason
from headrace.infer.geometry import Rect, ScaleTransform, fit
from headrace.meta import Detections, FrameMeta

CLASSES, SIZE, IOU = 80, 640, 0.45


def crowd(count: int, objects: int, *, classes: int = CLASSES, seed: int = 0) -> Detections:
    """`count` candidates around `objects` things, as an anchor-free head makes them."""
    rng = np.random.default_rng(seed)
    centre, size = rng.uniform(40, SIZE - 40, (objects, 2)), rng.uniform(20, 120, (objects, 2))
    which = rng.integers(0, objects, count)
    wh = size[which] * rng.uniform(0.9, 1.1, (count, 2))
    lt = centre[which] + rng.normal(0, 3, (count, 2)) - wh / 2
    scores = rng.uniform(0.25, 1, count)
    return Detections(np.concatenate([lt, wh], axis=1), scores, which % classes)


def nms_numpy(boxes: npt.NDArray[Any], scores: npt.NDArray[Any], limit: float) -> list[int]:
    """The usual vectorised NMS: one row of IoUs for each kept box."""
    left, top = boxes[:, 0], boxes[:, 1]
    right, bottom = left + boxes[:, 2], top + boxes[:, 3]
    area = boxes[:, 2] * boxes[:, 3]
    order, kept = np.argsort(-scores, kind="stable"), []
    while order.size:
        i, rest = order[0], order[1:]
        kept.append(int(i))
        w = np.minimum(right[i], right[rest]) - np.maximum(left[i], left[rest])
        h = np.minimum(bottom[i], bottom[rest]) - np.maximum(top[i], top[rest])
        inter = np.maximum(w, 0) * np.maximum(h, 0)
        order = rest[inter / (area[i] + area[rest] - inter) <= limit]
    return kept


def by_class_numpy(d: Detections) -> list[int]:
    kept = []
    for c in np.unique(d.class_ids):
        rows = np.flatnonzero(d.class_ids == c)
        kept += [int(rows[i]) for i in nms_numpy(d.boxes[rows], d.scores[rows], IOU)]
    return kept


def attach_in_python(d: Detections, t: ScaleTransform, width: int, height: int) -> list[Any]:
    """One object at a time, as a first version is written."""
    objects = []
    for (left, top, w, h), score, c in zip(
        d.boxes.tolist(), d.scores.tolist(), d.class_ids.tolist(), strict=True
    ):
        x, y = max(0.0, (left - t.offset_x) / t.ratio_x), max(0.0, (top - t.offset_y) / t.ratio_y)
        w, h = w / t.ratio_x, h / t.ratio_y
        if w < 0 or h < 0 or y + h > height:
            continue
        objects.append({"rect": (x, y, w, h), "confidence": score, "class_id": c, "label": str(c)})
    return objects


def rows() -> list[Row]:
    """(name, ours in ms, reference in ms, ratio), medians."""
    attrs = [ClassAttrs(nms_iou_threshold=IOU)] * CLASSES
    nms = Clusterer(ClusterParams.from_attrs(attrs, ClusterMode.NMS))
    many, apart = crowd(1000, 30), crowd(1000, 1000, classes=1)
    raw = crowd(8400, 100)
    table = [
        compare(
            "NMS, 1,000 of 30 objects, 80 classes: NumPy",
            lambda: nms(many),
            lambda: by_class_numpy(many),
        ),
        compare(
            "NMS, 1,000 of 30 objects, 80 classes: OpenCV",
            lambda: nms(many),
            lambda: cv2.dnn.NMSBoxesBatched(many.boxes, many.scores, many.class_ids, 0.2, IOU),
        ),
        compare(
            "NMS, 1,000 boxes apart, one class: OpenCV",
            lambda: nms(apart),
            lambda: cv2.dnn.NMSBoxes(apart.boxes, apart.scores, 0.2, IOU),
        ),
        compare(
            "NMS, 8,400 of 100 objects, 80 classes: NumPy",
            lambda: nms(raw),
            lambda: by_class_numpy(raw),
        ),
    ]
    tally = np.zeros((CLASSES + 1, len(Reason)), np.int64)
    table.append(
        compare(
            "NMS, 1,000 of 30 objects, fates counted: not counted",
            lambda: nms(many, tally=tally),
            lambda: nms(many),
        )
    )
    cfg = ModelConfig(num_detected_classes=CLASSES, cluster_mode=ClusterMode.NMS)
    attacher = Attacher(cfg, [str(c) for c in range(CLASSES)])
    to_network = fit(Rect(0, 0, 1920, 1080), SIZE, SIZE, maintain_aspect_ratio=True)
    for count in (10, 100, 1000):
        found = crowd(count, count)

        def attach(found: Detections = found) -> None:
            attacher(found, to_network, FrameMeta("", 0, 0, 0, 1920, 1080))

        table.append(
            compare(
                f"attach {count} objects to a frame: Python loop",
                attach,
                lambda found=found: attach_in_python(found, to_network, 1920, 1080),
            )
        )
    return table
