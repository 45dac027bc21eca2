"""Built-in parsers, alone and with NMS, against the usual NumPy decoding and OpenCV's NMS.

One thread each. The inputs hold 1,000 candidates over the threshold among background noise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import cv2
import numpy as np

from benchmarks.common import Row, compare
from headrace.config import ClassAttrs
from headrace.config.enums import ClusterMode
from headrace.infer.cluster import Clusterer, ClusterParams
from headrace.infer.parsers import WELL_KNOWN
from headrace.meta import DetectionParams, Detections, Layer, NetworkInfo

THRESHOLD, IOU = 0.25, 0.45
CLASSES, CANDIDATES, HOT = 80, 8400, 1000


def rows() -> Iterable[Row]:
    cv2.setNumThreads(1)
    head = _yolov8()
    layers = {"output0": Layer("output0", head)}
    network = NetworkInfo(640, 640, 3)
    params = DetectionParams(CLASSES, np.full(CLASSES, THRESHOLD, np.float32))
    parser = WELL_KNOWN["HeadraceParseYoloV8"]
    attrs = ClassAttrs(pre_cluster_threshold=THRESHOLD, nms_iou_threshold=IOU)
    nms = Clusterer(ClusterParams.from_attrs([attrs] * CLASSES, ClusterMode.NMS))
    assert len(parser(layers, network, params)) == HOT

    def parsed(name: str, table: np.ndarray, plainly: Callable[[], Detections], repeat: int) -> Row:
        given = {"output0": Layer("output0", table)}
        return compare(name, lambda: parser(given, network, params), plainly, repeat=repeat)

    name = "parse 84x8400, 1,000 candidates; NumPy"
    yield parsed(name, head, lambda: _numpy_parse(head), 101)
    yield compare(
        "parse + NMS 84x8400; NumPy + cv2.dnn.NMSBoxesBatched",
        lambda: nms(parser(layers, network, params)),
        lambda: _opencv_nms(_numpy_parse(head)),
        repeat=51,
    )
    turned = np.ascontiguousarray(head.T)
    yield parsed("parse 8400x84; NumPy", turned, lambda: _numpy_parse(turned.T), 101)
    half = head.astype(np.float16)
    name = "parse 84x8400 float16; NumPy"
    yield parsed(name, half, lambda: _numpy_parse(half.astype(np.float32)), 51)
    yield _yolox(params)
    yield _faces()


def _yolov8() -> np.ndarray:
    rng = np.random.default_rng(0)
    head = np.empty((4 + CLASSES, CANDIDATES), np.float32)
    head[:2], head[2:4] = (
        rng.uniform(40, 600, (2, CANDIDATES)),
        rng.uniform(10, 80, (2, CANDIDATES)),
    )
    head[4:] = rng.uniform(0, 0.2, (CLASSES, CANDIDATES))
    hot = rng.choice(CANDIDATES, HOT, replace=False)
    head[4 + rng.integers(0, CLASSES, HOT), hot] = rng.uniform(0.3, 1, HOT)
    return head


def _numpy_parse(head: np.ndarray) -> Detections:
    scores = head[4:].max(axis=0)
    keep = scores >= THRESHOLD
    chosen = head[:, keep]
    class_ids = chosen[4:].argmax(axis=0)
    boxes = chosen[:4].T.copy()
    boxes[:, :2] -= boxes[:, 2:] / 2
    corners = np.concatenate([boxes[:, :2], boxes[:, :2] + boxes[:, 2:]], axis=1).clip(0, 640)
    boxes = np.concatenate([corners[:, :2], corners[:, 2:] - corners[:, :2]], axis=1)
    return Detections(boxes, scores[keep], class_ids.astype(np.int32))


def _opencv_nms(found: Detections) -> Detections:
    kept = cv2.dnn.NMSBoxesBatched(found.boxes, found.scores, found.class_ids, THRESHOLD, IOU)
    return found.select(np.asarray(kept))


def _yolox(params: DetectionParams) -> Row:
    rng = np.random.default_rng(0)
    head = rng.uniform(0, 0.6, (3549, 85)).astype(np.float32)
    head[:, :4] = rng.normal(0, 0.5, (3549, 4))
    head[:, 4] = rng.uniform(0, 0.3, 3549)
    head[rng.choice(3549, 300, replace=False), 4] = 0.9
    layers, network = {"output": Layer("output", head)}, NetworkInfo(416, 416, 3)
    cells = [np.mgrid[: 416 // s, : 416 // s][::-1].reshape(2, -1).T for s in (8, 16, 32)]
    strides = np.concatenate([np.full((len(c), 1), 8 << i) for i, c in enumerate(cells)])
    origin, strides = np.concatenate(cells).astype(np.float32), strides.astype(np.float32)

    def numpy_parse() -> Detections:
        centre = (head[:, :2] + origin) * strides
        size = np.exp(head[:, 2:4]) * strides
        scores = head[:, 4:5] * head[:, 5:]
        class_ids = scores.argmax(axis=1)
        best = scores[np.arange(len(scores)), class_ids]
        keep = best >= THRESHOLD
        boxes = np.concatenate([centre - size / 2, size], axis=1)
        return Detections(boxes[keep], best[keep], class_ids[keep].astype(np.int32))

    parser = WELL_KNOWN["HeadraceParseYoloX"]
    return compare(
        "parse YOLOX 3549x85, 300 candidates; NumPy",
        lambda: parser(layers, network, params),
        numpy_parse,
        repeat=101,
    )


def _faces() -> Row:
    rng = np.random.default_rng(0)
    chance = np.where(rng.random(4420) < 0.02, 0.9, 0.05).astype(np.float32)
    scores = np.stack([1 - chance, chance], axis=1)
    boxes = np.sort(rng.random((4420, 2, 2)), axis=1).reshape(4420, 4).astype(np.float32)
    layers = {"scores": Layer("scores", scores), "boxes": Layer("boxes", boxes)}
    params = DetectionParams(1, np.array([0.7], np.float32))
    network = NetworkInfo(320, 240, 3)

    def numpy_parse() -> Detections:
        keep = scores[:, 1] >= 0.7
        corners = boxes[keep] * np.array([320, 240, 320, 240], np.float32)
        return Detections.from_xyxy(corners, scores[keep, 1], np.zeros(keep.sum(), np.int32))

    parser = WELL_KNOWN["HeadraceParseSSDCorners"]
    return compare(
        "parse SSD 4420x2, 90 faces; NumPy",
        lambda: parser(layers, network, params),
        numpy_parse,
        repeat=101,
    )
