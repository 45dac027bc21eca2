"""DetectionOutput: boxes decoded, suppressed per class, the best kept.

It becomes TensorRT's plugin for this layer, as TensorRT's own importer does it. The original's rows
are as many as were found in the whole batch; the plugin gives each picture the same number of rows,
so that a batch is one tensor and a parser reads its picture's part. Surplus rows have label -1.
"""

from __future__ import annotations

from noria.network.caffe.lowering import CaffeLowering
from noria.network.graph_builder import BATCH, PLUGIN_DOMAIN, Blob, size

_CODES = ["CORNER", "CENTER_SIZE", "CORNER_SIZE"]  # in the order of the plugin's codeType
_BELOW_ALL = -3.0e38  # stands for "no threshold", as in the original


def detection_output(ctx: CaffeLowering) -> list[Blob]:
    """Decode and suppress boxes: rows of picture in the batch, label, score, x1, y1, x2, y2.

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
    fields.flag("clip", False)  # the plugin always cuts boxes to the picture
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
    for blob, wanted, name in (
        (location, count * sets * 4, "locations"),
        (confidence, count * classes, "confidences"),
    ):
        if size(blob.shape) != -wanted or blob.shape[0] != BATCH:
            raise ctx.error(
                f"{abs(size(blob.shape))} {name}",
                expected=f"{wanted} for each picture: {count} boxes, {classes} classes",
            )
    found = ctx.graph.nodes(
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
    return found[: len(ctx.layer.tops)]
