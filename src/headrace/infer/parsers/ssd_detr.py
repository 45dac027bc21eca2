"""Heads of two tables, boxes and class scores: priors of SSD, queries of DETR. Network pixels."""

from __future__ import annotations

from functools import partial

import numpy as np

from headrace._core.types import Array
from headrace.infer.parsers.boxes import best_class, clipped_corners, column_thresholds, sigmoid
from headrace.infer.parsers.head import (
    Arrays,
    Decode,
    Dims,
    Head,
    Layout,
    Out,
    UnfitError,
    wrong_classes,
)
from headrace.meta.detections import Detections, FloatArray
from headrace.meta.layers import DetectionParams, NetworkInfo

_DDETR_LIMIT = 200
_RTDETR_LIMIT = 100


def _unit_centres(
    boxes: FloatArray,
    scores: Array,
    class_ids: Array,
    network: NetworkInfo,
    *,
    inside: int,
    smallest: float,
) -> Detections:
    """(N, 4) centre boxes in 0..1 to pixels, clipped to [0, W - inside]."""
    w, h = np.float32(network.width), np.float32(network.height)
    half = np.float32(0.5)
    cx, cy, bw, bh = boxes.T
    return clipped_corners(
        (cx - bw * half) * w,
        (cy - bh * half) * h,
        (cx + bw * half) * w,
        (cy + bh * half) * h,
        network.width - inside,
        network.height - inside,
        scores,
        class_ids,
        smallest=smallest,
    )


def _best_logit(logits: FloatArray) -> tuple[Array, Array, FloatArray]:
    """Query, class and sigmoid of the best logit of each query."""
    query, class_ids, best = best_class(logits, np.full(logits.shape[1], -np.inf, np.float32))
    return query, class_ids, sigmoid(best)


def _ddetr(arrays: Arrays, network: NetworkInfo, params: DetectionParams) -> Detections:
    """One class per query, best first, at most 200 of which class 0 (background) is left out."""
    logits, boxes = arrays
    query, class_ids, scores = _best_logit(logits)
    keep = scores >= column_thresholds(params, class_ids)
    query, class_ids, scores = query[keep], class_ids[keep], scores[keep]
    order = np.argsort(-scores, kind="stable")[:_DDETR_LIMIT]
    order = order[class_ids[order] != 0]
    return _unit_centres(
        boxes[query[order]], scores[order], class_ids[order], network, inside=1, smallest=0
    )


def top_scores(
    logits: FloatArray, most: int, params: DetectionParams
) -> tuple[Array, Array, FloatArray]:
    """Query, class and sigmoid of the best of all (Q, C) logits, if they reach T[class]."""
    flat = np.where(np.isnan(logits), np.float32(-np.inf), logits).ravel()
    # Only the ties of the last one can be too many; the stable sort settles them by position.
    k = min(most, len(flat))
    limit = np.partition(flat, -k)[-k] if k else np.inf
    best = np.nonzero(flat >= limit)[0]
    best = best[np.argsort(-flat[best], kind="stable")][:k]
    query, class_ids = np.divmod(best, max(1, logits.shape[1]))
    scores = sigmoid(flat[best])
    keep = scores >= column_thresholds(params, class_ids)
    return query[keep], class_ids[keep], scores[keep]


def _rtdetr(arrays: Arrays, network: NetworkInfo, params: DetectionParams) -> Detections:
    """The best 100 of all scores of all queries: a query may appear with several classes."""
    logits, boxes = arrays
    query, class_ids, scores = top_scores(logits, _RTDETR_LIMIT, params)
    return _unit_centres(boxes[query], scores, class_ids, network, inside=1, smallest=0)


def _sigmoid_queries(arrays: Arrays, network: NetworkInfo, params: DetectionParams) -> Detections:
    """As many of the best scores as there are queries, score = sigmoid(logit).

    A query may appear with several classes, as deformable DETR and its heirs select.
    """
    logits, boxes = arrays
    query, class_ids, scores = top_scores(logits, len(logits), params)
    return _unit_centres(boxes[query], scores, class_ids, network, inside=0, smallest=1)


def _softmax_queries(arrays: Arrays, network: NetworkInfo, params: DetectionParams) -> Detections:
    """One class per query, score = soft-max; the last logit means no object."""
    logits, boxes = arrays
    classes = logits.shape[1] - 1
    if classes != params.num_classes:
        raise wrong_classes(params, classes, "the logits hold {} classes and no-object")
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    chances = powers[:, :-1] / powers.sum(axis=1, keepdims=True)
    query, class_ids, scores = best_class(chances, params.per_class_threshold)
    return _unit_centres(boxes[query], scores, class_ids, network, inside=0, smallest=1)


def _few_queries(dims: Dims, network: NetworkInfo | None) -> bool:
    return dims["Q"] <= 2000


def _few_wide_queries(dims: Dims, network: NetworkInfo | None) -> bool:
    return _few_queries(dims, network) and dims["C"] != 4


def _queries(dims: Dims, network: NetworkInfo | None) -> bool:
    return 10 <= dims["Q"] <= 2000


_TAO = (Out("Q C", ("pred_logits",)), Out("Q 4", ("pred_boxes",)))
_ANY = (
    (
        Out("Q C", ("pred_logits", "logits", "scores", "labels")),
        Out("Q 4", ("pred_boxes", "boxes", "dets")),
    ),
    (Out("Q C"), Out("Q 4")),
)


def _both_orders(decode: Decode) -> tuple[Layout, ...]:
    """Logits and boxes by name, or in either order."""
    return (
        *(Layout(outs, decode, _few_queries, _queries) for outs in _ANY),
        Layout(_ANY[1][::-1], lambda a, n, p: decode(a[::-1], n, p), _few_wide_queries, _queries),
    )


HEADS = (
    Head(
        "NvDsInferParseCustomDDETRTAO",
        "best class per query, sigmoid >= T[class], class 0 left out, at most 200",
        (Layout(_TAO, _ddetr),),
        strict_classes=True,
    ),
    Head(
        "NvDsInferParseCustomRTDETRTAO",
        "best 100 of all sigmoid scores, >= T[class]",
        (Layout(_TAO, _rtdetr),),
        surplus=(0, 1),
    ),
    Head(
        "HeadraceParseDetr",
        "Deformable DETR, DINO, RT-DETR with logits: as many of the best scores as queries, "
        "sigmoid >= T[class]",
        _both_orders(_sigmoid_queries),
        strict_classes=True,
    ),
    Head(
        "HeadraceParseDetrSoftmax",
        "DETR: soft-max over C classes and no-object (last), >= T[class]",
        _both_orders(_softmax_queries),
        surplus=(1,),
    ),
)


def _boxes_scores(
    arrays: Arrays,
    network: NetworkInfo,
    params: DetectionParams,
    *,
    unit: bool,
    centres: bool = False,
    swapped: bool = False,
    turned: bool = False,
) -> Detections:
    """Best class >= T[class]; one channel more than classes means: channel 0 is background.

    `swapped`: scores first; `turned`: scores are [C, N].
    """
    boxes, scores = arrays[::-1] if swapped else arrays
    scores = scores.T if turned else scores
    surplus = scores.shape[1] - params.num_classes
    if surplus not in (0, 1):
        channels = scores.shape[1]
        raise UnfitError(
            f"num-detected-classes={params.num_classes}, but there are {channels} scores per box",
            expected=f"num-detected-classes={channels - 1} when the first score is background, "
            f"else {channels}",
            fix=f"set num-detected-classes={channels - 1} (or {channels}: no background)",
            classes=(channels - 1, channels),
        )
    index, class_ids, best = best_class(scores[:, surplus:], params.per_class_threshold)
    boxes = boxes[index]
    if unit:
        boxes = boxes * np.array([network.width, network.height] * 2, np.float32)
    x1, y1, x2, y2 = boxes.T
    if centres:
        half = np.float32(0.5)
        x1, y1, x2, y2 = x1 - x2 * half, y1 - y2 * half, x1 + x2 * half, y1 + y2 * half
    return clipped_corners(x1, y1, x2, y2, network.width, network.height, best, class_ids)


def _more_boxes(dims: Dims, network: NetworkInfo | None) -> bool:
    return dims["N"] > dims["C"] != 4


def _many(dims: Dims, network: NetworkInfo | None) -> bool:
    return dims["N"] > 1000


_PAIRS = (
    (Out("N 4", ("boxes", "bboxes", "loc")), Out("N C", ("scores", "confs", "conf", "classes"))),
    (Out("N 4"), Out("N C")),
)


def _layouts(*, unit: bool, centres: bool = False) -> tuple[Layout, ...]:
    decode = partial(_boxes_scores, unit=unit, centres=centres)
    return (
        *(Layout(pair, decode, likely=_many) for pair in _PAIRS),
        Layout(_PAIRS[1][::-1], partial(decode, swapped=True), likely=_many),
        Layout((Out("N 4"), Out("C N")), partial(decode, turned=True), _more_boxes, _many),
    )


_RULE = "best class >= T[class]; first score is background if there is one more than classes"

SSD_HEADS = (
    Head(
        "HeadraceParseSSDCorners",
        f"SSD, RFB: corner boxes in 0..1 and scores; {_RULE}",
        _layouts(unit=True),
        surplus=(0, 1),
    ),
    Head(
        "HeadraceParseSSDCenters",
        f"centre boxes in 0..1 and scores; {_RULE}",
        _layouts(unit=True, centres=True),
        surplus=(0, 1),
    ),
    Head(
        "HeadraceParseBoxesScores",
        f"YOLO-NAS, PP-YOLOE: corner boxes in pixels and scores; {_RULE}",
        _layouts(unit=False),
        surplus=(0, 1),
    ),
)
