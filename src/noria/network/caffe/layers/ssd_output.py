"""DetectionOutput: boxes decoded, suppressed per class, the best kept; in ONNX operators.

The original's rows are as many as were found in the whole batch. Here every picture has the same
number of rows, as TensorRT's plugin for this layer gives: a batch is one tensor, and a parser
reads its picture's part. Surplus rows have label -1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from noria.network.caffe.lowering import Lowering
from noria.network.graph_builder import BATCH, Blob, size

__all__ = ["detection_output"]

_CODES = ["CORNER", "CENTER_SIZE", "CORNER_SIZE"]
_BELOW_ALL = -3.0e38  # stands for "no threshold", as in the original


@dataclass(frozen=True, slots=True)
class _Params:
    classes: int
    shared: bool
    background: int
    code: str
    variances_in_target: bool
    nms_threshold: float
    nms_top_k: int
    confidence: float
    keep: int
    clip: bool


def _params(ctx: Lowering, priors: int) -> _Params:
    fields = ctx.fields("detection_output_param")
    nms = fields.message("nms_param")
    classes = fields.integer("num_classes")
    if classes < 1:
        raise ctx.error(f"num_classes: {classes}", expected="at least 1")
    if nms.number("eta", 1.0) != 1:
        raise ctx.error("eta makes suppression adaptive", expected="eta: 1")
    if not fields.flag("normalized_bbox", True):
        raise ctx.error("boxes in pixels", expected="normalized_bbox: true")
    top_k = nms.integer("top_k", -1)
    top_k = priors if top_k < 0 else min(top_k, priors)
    keep = fields.integer("keep_top_k", -1)
    background = fields.integer("background_label_id", 0)
    counted = classes - (1 if 0 <= background < classes else 0)
    keep = top_k * counted if keep < 0 else min(keep, top_k * counted)
    if keep < 1:
        raise ctx.error(
            "it keeps nothing", expected="top_k and keep_top_k above 0, a class to find"
        )
    params = _Params(
        classes=classes,
        shared=fields.flag("share_location", True),
        background=background,
        code=fields.choice("code_type", _CODES, first=1),
        variances_in_target=fields.flag("variance_encoded_in_target", False),
        nms_threshold=nms.number("nms_threshold", 0.3),
        nms_top_k=top_k,
        confidence=fields.number("confidence_threshold", _BELOW_ALL),
        keep=keep,
        clip=fields.flag("clip", False),
    )
    nms.refuse_unread()
    return params


def detection_output(ctx: Lowering) -> list[Blob]:
    """(batch, 1, keep_top_k, 7): picture in the batch, label, score, x1, y1, x2, y2 in 0..1; best
    first, rows that nothing fills have label -1. A second top counts the rows that are filled.

    Source: the layer of the SSD branch; spec, standard plugins 3.5, for the fixed rows.
    """
    ctx.inputs(3)
    location, confidence, prior = ctx.bottoms
    if prior.rank < 2 or size(prior.shape) < 8 or size(prior.shape) % 8:
        raise ctx.error(f"priors of shape {prior.shape}", expected="1 x 2 x (boxes * 4)")
    count = size(prior.shape) // 8
    params = _params(ctx, count)
    sets = 1 if params.shared else params.classes
    for blob, wanted, name in (
        (location, count * sets * 4, "locations"),
        (confidence, count * params.classes, "confidences"),
    ):
        if size(blob.shape) != -wanted or blob.shape[0] != BATCH:
            raise ctx.error(
                f"{abs(size(blob.shape))} {name}",
                expected=f"{wanted} for each picture: {count} boxes, {params.classes} classes",
            )
    boxes = _decode(ctx, params, location, prior, count, sets)
    by_box = ctx.graph.reshape(confidence, (BATCH, count, params.classes))
    scores = ctx.graph.transpose(by_box, [0, 2, 1])
    masked = _suppress(ctx, params, boxes, scores, count)
    return _best(ctx, params, boxes, masked, count)


def _decode(
    ctx: Lowering, params: _Params, location: Blob, prior: Blob, count: int, sets: int
) -> Blob:
    """Corners of all boxes: (batch, sets, boxes, 4)."""
    offsets = ctx.graph.reshape(location, (BATCH, count, sets, 4))
    offsets = ctx.graph.transpose(offsets, [0, 2, 1, 3])
    pair = ctx.graph.reshape(prior, (1, 2, count, 4))
    corners = ctx.graph.slice(pair, 1, 0, 1)
    shape = (BATCH, sets, count, 4)
    half = (BATCH, sets, count, 2)
    if not params.variances_in_target:
        offsets = ctx.op("Mul", [offsets, ctx.graph.slice(pair, 1, 1, 2)], shape)
    first, second = _halves(ctx, corners)
    if params.code == "CORNER":
        boxes = ctx.op("Add", [offsets, corners], shape)
    else:
        sides = ctx.same("Sub", second, first)
        d0, d1 = _halves(ctx, offsets)
        moved = ctx.op("Mul", [d0, sides], half)
        if params.code == "CORNER_SIZE":
            ends = [ctx.op("Add", [moved, first], half),
                    ctx.op("Add", [ctx.op("Mul", [d1, sides], half), second], half)]  # fmt: skip
        else:
            middle = ctx.same("Mul", ctx.same("Add", first, second), ctx.constant(0.5))
            centre = ctx.op("Add", [moved, middle], half)
            extent = ctx.op("Mul", [ctx.same("Exp", d1), sides], half)
            extent = ctx.same("Mul", extent, ctx.constant(0.5))
            ends = [ctx.same("Sub", centre, extent), ctx.same("Add", centre, extent)]
        boxes = ctx.op("Concat", ends, shape, axis=3)
    if params.clip:
        boxes = ctx.same("Clip", boxes, ctx.constant(0.0), ctx.constant(1.0))
    return boxes


def _halves(ctx: Lowering, blob: Blob) -> tuple[Blob, Blob]:
    return ctx.graph.slice(blob, blob.rank - 1, 0, 2), ctx.graph.slice(blob, blob.rank - 1, 2, 4)


def _suppress(ctx: Lowering, params: _Params, boxes: Blob, scores: Blob, count: int) -> Blob:
    """Scores (batch, classes, boxes) of the boxes that survive; the others are below all."""
    classes = params.classes
    shape = (BATCH, classes, count)
    nothing = ctx.constant(_BELOW_ALL)
    if 0 <= params.background < classes:
        is_background = np.arange(classes).reshape(1, classes, 1) == params.background
        background = ctx.constant(is_background, np.bool_)
        scores = ctx.op("Where", [background, nothing, scores], shape)
    if params.nms_top_k < count:
        scores = _keep_top(ctx, scores, params.nms_top_k, shape)
    if params.code != "CENTER_SIZE":
        # corners may cross: the original then sees no overlap, ONNX would swap them
        first, second = _halves(ctx, boxes)
        boxes = ctx.op("Concat", [first, ctx.same("Max", second, first)], boxes.shape, axis=3)
    if params.shared:
        candidates = ctx.graph.reshape(boxes, (BATCH, count, 4))
        grouped, group_shape = scores, shape
    else:  # each class has boxes of its own: every class of every picture is a picture
        group_shape = (BATCH * classes, 1, count)
        candidates = ctx.graph.reshape(boxes, (BATCH * classes, count, 4))
        grouped = ctx.graph.reshape(scores, group_shape)
    limits = [
        ctx.constant([params.nms_top_k], np.int64),
        ctx.constant([params.nms_threshold]),
        ctx.constant([max(params.confidence, _BELOW_ALL)]),
    ]
    # how many rows survive is not known before the run
    chosen = ctx.graph.node(
        "NonMaxSuppression", [candidates, grouped, *limits], None, dtype=np.int64
    )
    rows = ctx.graph.node("Shape", [chosen], (1,), dtype=np.int64, start=0, end=1)
    ones = ctx.graph.filled(rows, 1.0, None)
    zeros = ctx.graph.filled_like(grouped, 0.0)
    mask = ctx.op("ScatterND", [zeros, chosen, ones], group_shape)
    survives = ctx.op("Greater", [mask, ctx.constant(0.5)], group_shape, dtype=np.bool_)
    return ctx.graph.reshape(ctx.op("Where", [survives, grouped, nothing], group_shape), shape)


def _keep_top(ctx: Lowering, scores: Blob, top: int, shape: tuple[int, ...]) -> Blob:
    """All but the `top` best of each class put below all; of equals the first is better."""
    best = (*shape[:2], top)
    values, places = ctx.graph.nodes(
        "TopK",
        [scores, ctx.constant([top], np.int64)],
        [(best, np.float32), (best, np.int64)],
        axis=2,
    )
    empty = ctx.graph.filled_like(scores, _BELOW_ALL)
    return ctx.op("ScatterElements", [empty, places, values], shape, axis=2)


def _best(ctx: Lowering, params: _Params, boxes: Blob, masked: Blob, count: int) -> list[Blob]:
    rows = (BATCH, params.keep)
    flat = ctx.graph.reshape(masked, (BATCH, params.classes * count))
    values, places = ctx.graph.nodes(
        "TopK",
        [flat, ctx.constant([params.keep], np.int64)],
        [(rows, np.float32), (rows, np.int64)],
        axis=1,
    )
    per_class = ctx.constant(count, np.int64)
    label = ctx.op("Div", [places, per_class], rows, dtype=np.int64)
    index = places
    if params.shared:
        index = ctx.op("Mod", [places, per_class], rows, dtype=np.int64)
    one = (*rows, 1)
    last = ctx.constant([2], np.int64)
    all_boxes = ctx.graph.reshape(boxes, (BATCH, size(boxes.shape[1:3]), 4))
    index = ctx.op("Unsqueeze", [index, last], one, dtype=np.int64)
    four = ctx.constant([1, 1, 4], np.int64)
    wide = ctx.op("Expand", [index, four], (*rows, 4), dtype=np.int64)
    picked = ctx.op("GatherElements", [all_boxes, wide], (*rows, 4), axis=1)
    found = ctx.op("Greater", [values, ctx.constant(_BELOW_ALL / 2)], rows, dtype=np.bool_)
    nothing, zero = ctx.constant(-1.0), ctx.constant(0.0)
    label = ctx.op("Where", [found, ctx.op("Cast", [label], rows, to=1), nothing], rows)
    score = ctx.op("Where", [found, values, zero], rows)
    filled = ctx.op("Unsqueeze", [ctx.op("Cast", [found], rows, to=1), last], one)
    picked = ctx.op("Mul", [picked, filled], (*rows, 4))
    picture = _numbers(ctx, score, rows)
    columns = [ctx.op("Unsqueeze", [b, last], one) for b in (picture, label, score)]
    table = ctx.op("Concat", [*columns, picked], (*rows, 7), axis=2)
    result = ctx.graph.reshape(table, (BATCH, 1, params.keep, 7))
    if len(ctx.layer.tops) < 2:
        return [result]
    total = ctx.op("ReduceSum", [filled, ctx.constant([1, 2], np.int64)], (BATCH,), keepdims=0)
    return [result, ctx.graph.reshape(total, (BATCH, 1, 1, 1))]


def _numbers(ctx: Lowering, like: Blob, rows: tuple[int, int]) -> Blob:
    """0, 1, 2 … down the batch, in every row."""
    ones = ctx.graph.filled_like(like, 1.0)
    return ctx.op("CumSum", [ones, ctx.constant(0, np.int64)], rows, exclusive=1)
