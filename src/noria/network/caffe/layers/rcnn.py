"""RPROI, TensorRT's layer of Faster R-CNN: proposals and the features pooled there."""

from __future__ import annotations

from typing import Any

from noria.network.caffe.lowering import CaffeLowering, Lower
from noria.network.graph_builder import BATCH, PLUGIN_DOMAIN, Blob, size


def _rproi(ctx: CaffeLowering) -> list[Blob]:
    """Propose regions and pool their features.

    Outputs: regions, 1 x nms_max_out x 4 for each picture; features, nms_max_out items for each
    picture, as if they were pictures of the batch.

    Bottoms: scores of background and foreground, deltas, features, and height, width, scale of the
    picture.
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
        raise ctx.error(f"{abs(size(info.shape))} numbers about a picture",
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


LOWERINGS: dict[str, Lower] = {"RPROI": _rproi}
