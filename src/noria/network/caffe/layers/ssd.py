"""PriorBox and DetectionOutput of the SSD branch."""

from __future__ import annotations

import numpy as np

from noria.network.caffe.layers.ssd_output import detection_output
from noria.network.caffe.lowering import CaffeLowering, Lower
from noria.network.caffe.reading import Fields
from noria.network.graph_builder import Blob
from noria.network.prior_boxes import cell_ratios, cell_sizes, prior_boxes

_MAX_PRIORS = 2**22  # boxes of one layer; SSD 512 has 24 564 in all


def _prior_box(ctx: CaffeLowering) -> list[Blob]:
    """Boxes and their variances as a constant, (1, 2, boxes * 4).

    The order in a cell: the square of each minimum, its larger square, its other ratios.
    """
    ctx.count(2)
    fields = ctx.fields("prior_box_param")
    x, picture = ctx.inputs
    if x.rank != 4 or picture.rank != 4:
        raise ctx.error("the inputs have not four axes", expected="features, and the picture")
    sizes = _sizes(ctx, fields)
    img_h, img_w = _pair(ctx, fields, "img_size", "img_h", "img_w") or picture.shape[2:]
    height, width = x.shape[2:]
    step_h, step_w = _steps(ctx, fields) or (img_h / height, img_w / width)
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
    both = np.stack([boxes.ravel(), variances.ravel()])[None]
    return [ctx.constant(both, name="priors")]


def _sizes(ctx: CaffeLowering, fields: Fields) -> list[tuple[float, float]]:
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
    ctx: CaffeLowering, fields: Fields, both: str, high: str, wide: str
) -> tuple[int, int] | None:
    if fields.has(both):
        pair = (fields.integer(both),) * 2
    elif fields.has(high) or fields.has(wide):
        pair = (fields.integer(high), fields.integer(wide))
    else:
        return None
    if min(pair) < 1:
        raise ctx.error(f"{both}, {high} or {wide} is {pair}", expected="positive numbers")
    return pair


def _steps(ctx: CaffeLowering, fields: Fields) -> tuple[float, float] | None:
    if fields.has("step"):
        pair = (fields.number("step"),) * 2
    elif fields.has("step_h") or fields.has("step_w"):
        pair = (fields.number("step_h"), fields.number("step_w"))
    else:
        return None
    if min(pair) <= 0:
        raise ctx.error(f"step, step_h or step_w is {pair}", expected="positive numbers")
    return pair


LOWERINGS: dict[str, Lower] = {"PriorBox": _prior_box, "DetectionOutput": detection_output}
