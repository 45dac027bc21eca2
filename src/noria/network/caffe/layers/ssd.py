"""PriorBox and DetectionOutput of the SSD branch."""

from __future__ import annotations

import math

import numpy as np

from noria.network.caffe.layers.ssd_output import detection_output
from noria.network.caffe.lowering import Lower, Lowering
from noria.network.caffe.reading import Fields
from noria.network.graph_builder import Blob

__all__ = ["LOWERINGS"]

_MAX_PRIORS = 2**22  # boxes of one layer; SSD 512 has 24 564 in all


def _prior_box(ctx: Lowering) -> list[Blob]:
    """Boxes and their variances as a constant, (1, 2, boxes * 4).

    The order in a cell: the square of each minimum, its larger square, its other ratios.
    """
    ctx.inputs(2)
    fields = ctx.fields("prior_box_param")
    x, picture = ctx.bottoms
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
    boxes = np.empty((height, width, len(sizes), 4), np.float64)
    half = np.array(sizes, np.float64) / 2
    centre_x = ((np.arange(width) + offset) * step_w)[None, :, None]
    centre_y = ((np.arange(height) + offset) * step_h)[:, None, None]
    boxes[..., 0] = (centre_x - half[:, 0]) / img_w
    boxes[..., 1] = (centre_y - half[:, 1]) / img_h
    boxes[..., 2] = (centre_x + half[:, 0]) / img_w
    boxes[..., 3] = (centre_y + half[:, 1]) / img_h
    if fields.flag("clip", False):
        boxes = boxes.clip(0, 1)
    variances = np.broadcast_to(np.array(variance, np.float64), boxes.shape)
    both = np.stack([boxes.ravel(), variances.ravel()])[None]
    return [ctx.constant(both, name="priors")]


def _sizes(ctx: Lowering, fields: Fields) -> list[tuple[float, float]]:
    least, largest = fields.numbers("min_size"), fields.numbers("max_size")
    if not least or any(s <= 0 for s in least):
        raise ctx.error(f"min_size {least}", expected="one or more positive numbers")
    if largest and (
        len(largest) != len(least) or any(a >= b for a, b in zip(least, largest, strict=True))
    ):
        raise ctx.error(f"max_size {largest}", expected="one above each min_size, or none")
    ratios = [1.0]
    flip = fields.flag("flip", True)
    for ratio in fields.numbers("aspect_ratio"):
        if ratio <= 0:
            raise ctx.error(f"aspect_ratio {ratio}", expected="a positive number")
        if all(abs(ratio - known) >= 1e-6 for known in ratios):
            ratios += [ratio, 1 / ratio] if flip else [ratio]
    if len(ratios) * len(least) + len(largest) > _MAX_PRIORS:
        raise ctx.error(f"{len(ratios)} ratios of {len(least)} sizes")
    sizes = []
    for i, small in enumerate(least):
        sizes.append((small, small))
        if largest:
            sizes.append((math.sqrt(small * largest[i]),) * 2)
        sizes += [(small * math.sqrt(r), small / math.sqrt(r)) for r in ratios[1:]]
    return sizes


def _pair(ctx: Lowering, fields: Fields, both: str, high: str, wide: str) -> tuple[int, int] | None:
    if fields.has(both):
        pair = (fields.integer(both),) * 2
    elif fields.has(high) or fields.has(wide):
        pair = (fields.integer(high), fields.integer(wide))
    else:
        return None
    if min(pair) < 1:
        raise ctx.error(f"{both}, {high} or {wide} is {pair}", expected="positive numbers")
    return pair


def _steps(ctx: Lowering, fields: Fields) -> tuple[float, float] | None:
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
