"""Heads of the DETR family: logits per query and centre boxes in 0..1. Network pixels out."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from noria.infer.parsers.boxes import clipped_corners, column_thresholds, sigmoid
from noria.infer.parsers.head import Arrays, Dims, Head, Layout, Out, UnfitError
from noria.infer.parsers.scan import best_class
from noria.meta.detections import Detections, FloatArray
from noria.meta.layers import DetectionParams, NetworkInfo

_DDETR_LIMIT = 200
_RTDETR_LIMIT = 100


def _unit_centres(
    boxes: FloatArray,
    scores: npt.NDArray[Any],
    class_ids: npt.NDArray[Any],
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


def _best_logit(logits: FloatArray) -> tuple[npt.NDArray[Any], npt.NDArray[Any], FloatArray]:
    """Query, class and sigmoid of the best logit of each query."""
    anything = np.full(logits.shape[1], -np.inf, np.float32)
    query, class_ids, best = best_class(logits, anything)
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


def _rtdetr(arrays: Arrays, network: NetworkInfo, params: DetectionParams) -> Detections:
    """The best 100 of all scores of all queries: a query may appear with several classes."""
    logits, boxes = arrays
    flat = np.where(np.isnan(logits), np.float32(-np.inf), logits).ravel()
    # Only the ties of the hundredth can be too many; the stable sort settles them by position.
    k = min(_RTDETR_LIMIT, len(flat))
    limit = np.partition(flat, -k)[-k] if k else np.inf
    best = np.nonzero(flat >= limit)[0]
    best = best[np.argsort(-flat[best], kind="stable")][:_RTDETR_LIMIT]
    query, class_ids = np.divmod(best, logits.shape[1])
    scores = sigmoid(flat[best])
    keep = scores >= column_thresholds(params, class_ids)
    return _unit_centres(
        boxes[query[keep]], scores[keep], class_ids[keep], network, inside=1, smallest=0
    )


def _sigmoid_queries(arrays: Arrays, network: NetworkInfo, params: DetectionParams) -> Detections:
    """One class per query, all classes, score = sigmoid(logit)."""
    logits, boxes = arrays
    query, class_ids, scores = _best_logit(logits)
    keep = scores >= column_thresholds(params, class_ids)
    return _unit_centres(
        boxes[query[keep]], scores[keep], class_ids[keep], network, inside=0, smallest=1
    )


def _softmax_queries(arrays: Arrays, network: NetworkInfo, params: DetectionParams) -> Detections:
    """One class per query, score = soft-max; the last logit means no object."""
    logits, boxes = arrays
    classes = logits.shape[1] - 1
    if classes != params.num_classes:
        raise UnfitError(
            f"num-detected-classes={params.num_classes}, but the logits hold {classes} classes "
            "and no-object",
            expected=f"num-detected-classes={classes}",
            fix=f"set num-detected-classes={classes}; hide classes with filter-out-class-ids",
        )
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    chances = powers[:, :-1] / powers.sum(axis=1, keepdims=True)
    query, class_ids, scores = best_class(chances, params.per_class_threshold)
    return _unit_centres(boxes[query], scores, class_ids, network, inside=0, smallest=1)


def _few_queries(dims: Dims, network: NetworkInfo | None) -> bool:
    return dims["Q"] <= 2000


_TAO = (Out("Q C", ("pred_logits",)), Out("Q 4", ("pred_boxes",)))
_ANY = (
    (Out("Q C", ("pred_logits", "logits", "scores")), Out("Q 4", ("pred_boxes", "boxes"))),
    (Out("Q C"), Out("Q 4")),
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
    ),
    Head(
        "NoriaParseDetr",
        "Deformable DETR, DINO, RT-DETR with logits: best class per query, sigmoid >= T[class]",
        tuple(Layout(outs, _sigmoid_queries, _few_queries, _few_queries) for outs in _ANY),
        strict_classes=True,
    ),
    Head(
        "NoriaParseDetrSoftmax",
        "DETR: soft-max over C classes and no-object (last), >= T[class]",
        tuple(Layout(outs, _softmax_queries, _few_queries, _few_queries) for outs in _ANY),
    ),
)
