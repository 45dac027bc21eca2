"""Layers of detectors: PriorBox and DetectionOutput of the SSD branch, RPROI of Faster R-CNN.

DetectionOutput becomes TensorRT's plugin for this layer, as TensorRT's own importer does it. The
original's rows are as many as were found in the whole batch; the plugin gives each image the same
number of rows, so that a batch is one tensor and a parser reads its image's part. Surplus rows
have label -1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from headrace.network.caffe.fields import Fields
from headrace.network.caffe.lowering import CaffeLowering, Lower
from headrace.network.graph_builder import BATCH, PLUGIN_DOMAIN, Blob, size
from headrace.network.prior_boxes import cell_ratios, cell_sizes, prior_boxes

T = TypeVar("T", int, float)
_MAX_PRIORS = 2**22  # boxes of one layer; SSD 512 has 24 564 in all


def _prior_box(ctx: CaffeLowering) -> list[Blob]:
    """Boxes and their variances as a constant, (1, 2, boxes * 4).

    The order in a cell: the square of each minimum, its larger square, its other ratios.
    """
    ctx.count(2)
    fields = ctx.fields("prior_box_param")
    x, image = ctx.inputs
    if x.rank != 4 or image.rank != 4:
        raise ctx.error("the inputs have not four axes", expected="features, and the image")
    sizes = _box_sizes(ctx, fields)
    img_h, img_w = _pair(ctx, fields.integer, "img_size", "img_h", "img_w") or image.shape[2:]
    height, width = x.shape[2:]
    step_h, step_w = _pair(ctx, fields.number, "step", "step_h", "step_w") or (
        img_h / height,
        img_w / width,
    )
    offset = fields.number("offset", 0.5)
    variance = fields.numbers("variance") or [0.1]
    if len(variance) not in (1, 4) or any(v <= 0 for v in variance):
        raise ctx.error(f"variance {variance}", expected="one or four positive numbers")
    count = height * width * len(sizes)
    if count > _MAX_PRIORS:
        raise ctx.error(f"{count} prior boxes", expected=f"at most {_MAX_PRIORS}")
    clip = fields.flag("clip", False)
    boxes = prior_boxes((height, width), sizes, (img_h, img_w), (step_h, step_w), offset, clip=clip)
    variances = np.broadcast_to(np.array(variance, np.float64), boxes.shape)
    return [ctx.constant(np.stack([boxes.ravel(), variances.ravel()])[None], name="priors")]


def _box_sizes(ctx: CaffeLowering, fields: Fields) -> list[tuple[float, float]]:
    least, largest = fields.numbers("min_size"), fields.numbers("max_size")
    if not least or any(s <= 0 for s in least):
        raise ctx.error(f"min_size {least}", expected="one or more positive numbers")
    if largest and (
        len(largest) != len(least) or any(a >= b for a, b in zip(least, largest, strict=True))
    ):
        raise ctx.error(f"max_size {largest}", expected="one above each min_size, or none")
    flip = fields.flag("flip", True)
    aspects = fields.numbers("aspect_ratio")
    if any(ratio <= 0 for ratio in aspects):
        raise ctx.error(f"aspect_ratio {min(aspects)}", expected="a positive number")
    ratios = cell_ratios(aspects, flip=flip)
    if len(ratios) * len(least) + len(largest) > _MAX_PRIORS:
        raise ctx.error(f"{len(ratios)} ratios of {len(least)} sizes")
    return cell_sizes(least, largest, ratios)


def _pair(
    ctx: CaffeLowering, read: Callable[[str], T], both: str, high: str, wide: str
) -> tuple[T, T] | None:
    """Positive values for height and width: of the field `both`, or of two fields."""
    fields = ctx.fields("prior_box_param")
    if fields.has(both):
        pair = (read(both),) * 2
    elif fields.has(high) or fields.has(wide):
        pair = (read(high), read(wide))
    else:
        return None
    if min(pair) <= 0:
        raise ctx.error(f"{both}, {high} or {wide} is {pair}", expected="positive numbers")
    return pair


_CODES = ["CORNER", "CENTER_SIZE", "CORNER_SIZE"]  # in the order of the plugin's codeType
_BELOW_ALL = -3.0e38  # stands for "no threshold", as in the original


def _detection_output(ctx: CaffeLowering) -> list[Blob]:
    """Decode and suppress boxes: rows of image in the batch, label, score, x1, y1, x2, y2.

    The shape is (batch, 1, keep_top_k, 7), corners are cut to 0..1, the best come first, and empty
    rows have label -1. A second top counts the filled rows, as the bits of an INT32.

    Source: the layer of the SSD branch; spec, standard plugins 3.5.
    """
    ctx.count(3)
    location, confidence, prior = ctx.inputs
    if prior.rank < 2 or size(prior.shape) < 8 or size(prior.shape) % 8:
        raise ctx.error(f"priors of shape {prior.shape}", expected="1 x 2 x (boxes * 4)")
    count = size(prior.shape) // 8
    fields = ctx.fields("detection_output_param")
    nms = fields.message("nms_param")
    classes = fields.integer("num_classes")
    if classes < 1:
        raise ctx.error(f"num_classes: {classes}", expected="at least 1")
    if nms.number("eta", 1.0) != 1:
        raise ctx.error("eta makes suppression adaptive", expected="eta: 1")
    if not fields.flag("normalized_bbox", True):
        raise ctx.error("boxes in pixels", expected="normalized_bbox: true")
    fields.flag("clip", False)  # the plugin always cuts boxes to the image
    top_k = nms.integer("top_k", -1)
    top_k = count if top_k < 0 else min(top_k, count)
    background = fields.integer("background_label_id", 0)
    counted = classes - (1 if 0 <= background < classes else 0)
    keep = fields.integer("keep_top_k", -1)
    keep = top_k * counted if keep < 0 else min(keep, top_k * counted)
    if keep < 1:
        raise ctx.error(
            "it keeps nothing", expected="top_k and keep_top_k above 0, a class to find"
        )
    shared = fields.flag("share_location", True)
    sets = 1 if shared else classes
    for blob, length, name in (
        (location, count * sets * 4, "locations"),
        (confidence, count * classes, "confidences"),
    ):
        if size(blob.shape) != -length or blob.shape[0] != BATCH:
            raise ctx.error(
                f"{abs(size(blob.shape))} {name}",
                expected=f"{length} for each image: {count} boxes, {classes} classes",
            )
    outputs = ctx.graph.nodes(
        "NMSDynamic_TRT",
        [location, confidence, ctx.graph.reshape(prior, (1, 2, count * 4, 1))],
        [((BATCH, 1, keep, 7), "float32"), ((BATCH, 1, 1, 1), "float32")],
        domain=PLUGIN_DOMAIN,
        shareLocation=int(shared),
        varianceEncodedInTarget=int(fields.flag("variance_encoded_in_target", False)),
        backgroundLabelId=background,
        numClasses=classes,
        topK=top_k,
        keepTopK=keep,
        confidenceThreshold=max(fields.number("confidence_threshold", _BELOW_ALL), _BELOW_ALL),
        nmsThreshold=nms.number("nms_threshold", 0.3),
        inputOrder=[0, 1, 2],
        confSigmoid=0,
        isNormalized=1,
        codeType=_CODES.index(fields.choice("code_type", _CODES, first=1)),
        scoreBits=16,
        isBatchAgnostic=1,
    )
    nms.refuse_unread()
    return outputs[: len(ctx.layer.tops)]


def _rproi(ctx: CaffeLowering) -> list[Blob]:
    """Propose regions and pool their features.

    Outputs: regions, 1 x nms_max_out x 4 for each image; features, nms_max_out items for each
    image, as if they were images of the batch.

    Bottoms: scores of background and foreground, deltas, features, and height, width, scale of the
    image.
    Source: spec, standard plugins 4.3.
    """
    ctx.count(4)
    scores, deltas, features, info = ctx.inputs
    proposals, pooling = ctx.fields("region_proposal_param"), ctx.fields("roi_pooling_param")
    ratios, scales = proposals.numbers("anchor_ratio"), proposals.numbers("anchor_scale")
    for name, values in (("anchor_ratio", ratios), ("anchor_scale", scales)):
        count = proposals.integer(f"{name}_count", 1)
        if len(values) != count or any(v <= 0 for v in values):
            raise ctx.error(f"{name}: {values}", expected=f"{count} positive numbers")
    whole: dict[str, Any] = {
        "poolingH": pooling.integer("pooled_h"),
        "poolingW": pooling.integer("pooled_w"),
        "featureStride": proposals.integer("feature_stride"),
        "preNmsTop": proposals.integer("prenms_top"),
        "nmsMaxOut": proposals.integer("nms_max_out"),
    }
    real: dict[str, Any] = {
        "iouThreshold": proposals.number("iou_threshold"),
        "spatialScale": pooling.number("spatial_scale", 1.0),
    }
    for name, value in {**whole, **real}.items():
        if value <= 0:
            raise ctx.error(f"{name} is {value}", expected="a positive number")
    anchors = len(ratios) * len(scales)
    if any(b.rank != 4 or b.shape[0] != BATCH for b in (scores, deltas, features)):
        raise ctx.error("scores, deltas or features have not four axes, batch first")
    grid = scores.shape[2:]
    for blob, channels, what in ((scores, 2, "scores"), (deltas, 4, "deltas")):
        if blob.shape[1:] != (channels * anchors, *grid):
            raise ctx.error(
                f"{what} of shape {blob.shape[1:]}",
                expected=f"{(channels * anchors, *grid)}: {anchors} anchors in each place",
            )
    if size(info.shape) != 3 * BATCH:
        raise ctx.error(f"{abs(size(info.shape))} numbers about an image",
                        expected="3: height, width, scale")  # fmt: skip
    keep, channels = whole["nmsMaxOut"], features.shape[1]
    pooled = (keep, channels, whole["poolingH"], whole["poolingW"])
    rois, parts = ctx.graph.nodes(
        "RPROI_TRT",
        [scores, deltas, features, ctx.graph.reshape(info, (BATCH, 1, 1, 3))],
        [((BATCH, 1, keep, 4), "float32"), ((BATCH, *pooled), "float32")],
        domain=PLUGIN_DOMAIN,
        minBoxSize=proposals.number("min_box_size", 0.0),
        anchorsRatioCount=len(ratios),
        anchorsScaleCount=len(scales),
        anchorsRatios=ratios,
        anchorsScales=scales,
        **whole,
        **real,
    )
    return [rois, ctx.graph.reshape(parts, (BATCH * keep, *pooled[1:]))]


LOWERINGS: dict[str, Lower] = {
    "DetectionOutput": _detection_output,
    "PriorBox": _prior_box,
    "RPROI": _rproi,
}
