"""Non-maximum suppression. Source: tensorrt-api spec 3.4."""

from __future__ import annotations

import numpy as np

from noria.trt.layers.base import ILayer
from noria.trt.lowering.fragment import Fragment, Inputs, LoweringError, lowers, required


@lowers("NMS")
def nms(f: Fragment, layer: ILayer, inputs: Inputs) -> list[str]:
    """Boxes (B, N, 4) or (B, N, C, 4), scores (B, N, C); per image and class.

    Outputs: (M, 3) batch, class, box, by batch and then by falling score; M.
    """
    boxes, scores = required(inputs, 0), required(inputs, 1)
    most = f.op("Reshape", f.cast(required(inputs, 2), np.int64), f.ints(1))
    iou, least = (
        f.op("Reshape", f.cast(inputs[i], np.float32), f.ints(1))  # type: ignore[arg-type]
        if len(inputs) > i and inputs[i] is not None
        else f.const(np.zeros(1, np.float32))
        for i in (3, 4)
    )
    if f.rank(scores) != 3 or f.rank(boxes) not in (3, 4):
        raise LoweringError(f"boxes {f.shape(boxes)} and scores {f.shape(scores)}")
    by_class = f.transpose(f.cast(scores, np.float32), [0, 2, 1])  # (B, C, N)
    limited = _limited(f, by_class, int(layer._params["topk_box_limit"]))
    centre = int(layer._params["bounding_box_format"].name == "CENTER_SIZES")
    boxes = f.cast(boxes, np.float32)
    if f.rank(boxes) == 3:
        chosen = f.op(
            "NonMaxSuppression", boxes, limited, most, iou, least, center_point_box=centre
        )
    else:
        chosen = _per_class_boxes(f, boxes, limited, (most, iou, least), centre)
    ordered = _ordered(f, chosen, by_class)
    count = f.squeeze(f.op("Gather", f.op("Shape", ordered), f.ints(0), axis=0), [0])
    kind = layer._params.get("indices_type")
    dtype = np.int32 if kind is None else kind.numpy
    return [f.cast(ordered, dtype), f.cast(count, np.int32)]


def _limited(f: Fragment, scores: str, limit: int) -> str:
    """Scores with all but the `limit` highest of each image out of reach."""
    _, classes, boxes = f.shape(scores)
    if 0 <= classes * boxes <= limit and classes >= 0 and boxes >= 0:
        return scores
    flat = f.op("Reshape", scores, f.ints(0, -1))
    k = f.op("Min", f.extent(flat, 1), f.ints(limit))
    values, places = f.ops("TopK", [flat, k], 2, axis=1)
    lowest = f.op("Expand", f.const(np.float32(np.finfo(np.float32).min)), f.op("Shape", flat))
    kept = f.op("ScatterElements", lowest, places, values, axis=1)
    return f.op("Reshape", kept, f.op("Shape", scores))


def _per_class_boxes(
    f: Fragment, boxes: str, scores: str, limits: tuple[str, str, str], centre: int
) -> str:
    """Each class of each image as an image of its own, split by class again afterwards."""
    moved = f.transpose(boxes, [0, 2, 1, 3])  # (B, C, N, 4)
    classes, count = f.extent(scores, 1), f.extent(scores, 2)
    flat_boxes = f.op("Reshape", moved, f.op("Concat", f.ints(-1), count, f.ints(4), axis=0))
    flat_scores = f.op("Reshape", scores, f.op("Concat", f.ints(-1, 1), count, axis=0))
    found = f.op("NonMaxSuppression", flat_boxes, flat_scores, *limits, center_point_box=centre)
    image = f.op("Gather", found, f.ints(0), axis=1)
    box = f.op("Gather", found, f.ints(2), axis=1)
    return f.op("Concat", f.op("Div", image, classes), f.op("Mod", image, classes), box, axis=1)


def _ordered(f: Fragment, chosen: str, scores: str) -> str:
    """Rows by batch, then by falling score; top-k leaves equal keys in their order."""
    count = f.op("Gather", f.op("Shape", chosen), f.ints(0), axis=0)
    keys = f.op("GatherND", scores, chosen)
    _, by_score = f.ops("TopK", [keys, count], 2, axis=0)
    first = f.op("Gather", chosen, by_score, axis=0)
    batch = f.squeeze(f.op("Gather", first, f.ints(0), axis=1), [1])
    _, by_batch = f.ops("TopK", [batch, count], 2, axis=0, largest=0)
    return f.op("Gather", first, by_batch, axis=0)
