"""Heads of R-CNNs that end in lists: boxes, class numbers, scores, and a mask or points of each.

As torchvision writes them, of one image and without a batch; network pixels. The lists are as long
as there are objects, so all may be empty.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from headrace.infer.parsers.boxes import class_numbers, clipped_corners, column_thresholds
from headrace.infer.parsers.head import Arrays, Dims, Head, InstanceHead, Layout, Out
from headrace.infer.parsers.keypoints import posed
from headrace.infer.parsers.segmentation import samples
from headrace.meta.detections import Detections, FloatArray, IntArray
from headrace.meta.layers import DetectionParams, NetworkInfo

_BOXES, _SCORES, _LABELS = Out("K 4"), Out("K"), Out("K", integers=True, exact=True)
_ORDERS = {"bls": (_BOXES, _LABELS, _SCORES), "bsl": (_BOXES, _SCORES, _LABELS)}
"""Order of the lists in the outputs: boxes, labels, scores."""


def _passing(
    arrays: Arrays, order: str, params: DetectionParams
) -> tuple[IntArray, FloatArray, FloatArray, IntArray]:
    """Places, corners, scores and classes of the rows with score >= T[class]."""
    boxes, scores, labels = (arrays[order.index(letter)] for letter in "bsl")
    class_ids = class_numbers(labels)
    keep = np.nonzero(scores >= column_thresholds(params, class_ids))[0]
    return keep.astype(np.int32), boxes[keep], scores[keep], class_ids[keep]


def _masked(
    arrays: Arrays, network: NetworkInfo, params: DetectionParams, *, order: str
) -> Detections:
    """Masks 0..1: over the whole input, or else over each box."""
    keep, boxes, scores, class_ids = _passing(arrays, order, params)
    masks = arrays[3][keep].reshape(len(keep), *arrays[3].shape[-2:])
    # The places ride along as scores: what is dropped for its size takes its mask along.
    places = np.arange(len(keep), dtype=np.float32)
    x1, y1, x2, y2 = boxes.T
    detections = clipped_corners(x1, y1, x2, y2, network.width, network.height, places, class_ids)
    kept = detections.scores.astype(np.intp)
    detections.scores = scores[kept]
    if masks.shape[1:] == (network.height, network.width):
        pairs = zip(masks[kept], detections.boxes, strict=True)
        detections.masks = [_over_box(mask, box) for mask, box in pairs]
    else:
        detections.masks = list(masks[kept])
    return detections


def _over_box(mask: FloatArray, box: FloatArray) -> FloatArray:
    """The part of a mask of the input that is over a box; left, top, width, height in pixels."""
    height, width = mask.shape
    x, from_x, to_x = samples(float(box[0]), float(box[2]), width)
    y, from_y, to_y = samples(float(box[1]), float(box[3]), height)
    return np.asarray(y @ mask[from_y:to_y, from_x:to_x] @ x.T, np.float32)


def _posed(
    arrays: Arrays, network: NetworkInfo, params: DetectionParams, *, order: str
) -> Detections:
    """Points x, y, 1 in pixels; their scores are logits of a heat map, and become 0..1."""
    keep, boxes, scores, class_ids = _passing(arrays, order, params)
    points = arrays[3][keep].astype(np.float32)
    logits = np.clip(arrays[4][keep], -60, 60)
    points[..., 2] = 1 / (1 + np.exp(-logits))
    x1, y1, x2, y2 = boxes.T
    return posed((x1, y1, x2, y2), scores, class_ids, points, network)


def _likely(dims: Dims, network: NetworkInfo | None) -> bool:
    return True


_LISTS = "boxes, class numbers and scores in lists: corner boxes in pixels, score >= T[class]"

HEADS = (
    Head(
        "HeadraceParseBoxesLabelsPoints",
        f"Keypoint R-CNN of torchvision, {_LISTS}, J points of each, and their logits",
        tuple(
            Layout((*outs, Out("K J 3"), Out("K J")), partial(_posed, order=order), likely=_likely)
            for order, outs in _ORDERS.items()
        ),
    ),
)
INSTANCE_HEADS = (
    InstanceHead(
        "HeadraceParseBoxesLabelsMasks",
        f"Mask R-CNN of torchvision, {_LISTS}, masks over the input or over each box",
        tuple(
            Layout((*outs, masks), partial(_masked, order=order), likely=_likely)
            for order, outs in _ORDERS.items()
            for masks in (Out("K 1 H W"), Out("K H W"))
        ),
    ),
)
