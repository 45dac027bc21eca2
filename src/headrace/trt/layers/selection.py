"""Layers that choose elements: gather and scatter, suppression, indices.

Source: tensorrt-api spec 3.4.
"""

from __future__ import annotations

import numpy as np

from headrace.plugins.types import DataType
from headrace.trt.layers.base import ILayer, Param, index_dtype
from headrace.trt.lowering.fragment import Fragment, Inputs, LoweringError, required
from headrace.trt.types.enums import BoundingBoxFormat, GatherMode, ScatterMode


class IGatherLayer(ILayer):
    """Elements by indices, in one of three modes. Inputs: data, indices."""

    _kind = "GATHER"
    axis = Param(int, "The axis that indices count.", initial=0)
    num_elementwise_dims = Param(int, "Leading axes both inputs share.", initial=0)
    mode = Param(GatherMode, "How indices are meant.", initial=GatherMode["DEFAULT"])

    def _lower(self, f: Fragment, inputs: Inputs) -> list[str]:
        data, indices = required(inputs, 0), required(inputs, 1)
        shared = int(self._params["num_elementwise_dims"]) + f.offset
        axis = int(self._params["axis"]) + f.offset
        mode = self._params["mode"].name
        if mode == "ELEMENT":
            return [f.op("GatherElements", data, indices, axis=axis)]
        if mode == "ND":
            return [f.op("GatherND", data, f.cast(indices, np.int64), batch_dims=shared)]
        if not 0 <= axis < f.rank(data):
            raise LoweringError(f"axis {axis - f.offset} of {f.rank(data) - f.offset} axes")
        if not shared:
            return [f.op("Gather", data, indices, axis=axis)]
        if axis < shared or f.rank(indices) < shared:
            raise LoweringError(
                f"axis {axis} lies in the {shared} leading axes that both inputs share"
            )
        return [_shared(f, data, f.cast(indices, np.int64), axis, shared)]


def _shared(f: Fragment, data: str, indices: str, axis: int, shared: int) -> str:
    """Leading axes are common: out[b, …] takes the elements indices[b] of data[b].

    A leading axis of 1 serves for every b.
    """
    rank, index_rank = f.rank(data), f.rank(indices) - shared
    others = [a for a in range(shared, rank) if a != axis]
    front = f.transpose(data, [*range(shared), axis, *others])
    left, right = f.shape(front)[:shared], f.shape(indices)[:shared]
    if left != right or -1 in left:
        lead = [f.op("Max", f.extent(front, i), f.extent(indices, i)) for i in range(shared)]
        front = _expanded(f, front, lead, shared)
        indices = _expanded(f, indices, lead, shared)
    gathered = f.op("GatherND", front, f.unsqueeze(indices, [f.rank(indices)]), batch_dims=shared)
    # now: shared axes, the axes of the indices, the other axes of the data
    before = axis - shared
    middle = list(range(shared, shared + index_rank))
    rest = list(range(shared + index_rank, shared + index_rank + len(others)))
    return f.transpose(gathered, [*range(shared), *rest[:before], *middle, *rest[before:]])


def _expanded(f: Fragment, name: str, lead: list[str], shared: int) -> str:
    tail = [f.extent(name, i) for i in range(shared, f.rank(name))]
    return f.op("Expand", name, f.op("Concat", *lead, *tail, axis=0))


class IScatterLayer(ILayer):
    """Inputs: data, indices, updates."""

    _kind = "SCATTER"
    axis = Param(int, initial=0)
    mode = Param(ScatterMode)

    def _lower(self, f: Fragment, inputs: Inputs) -> list[str]:
        data, indices, updates = (required(inputs, i) for i in range(3))
        if self._params["mode"].name == "ELEMENT":
            axis = int(self._params["axis"]) + f.offset
            return [f.op("ScatterElements", data, indices, updates, axis=axis)]
        return [f.op("ScatterND", data, f.cast(indices, np.int64), updates)]


class INMSLayer(ILayer):
    """Non-maximum suppression for each image and class.

    Inputs: boxes (B, N, 4) or (B, N, C, 4), scores (B, N, C), boxes of a class at most, IoU
    threshold, score threshold. Outputs: (M, 3) batch, class, box, by batch and then by falling
    score; M.
    """

    _kind = "NMS"
    bounding_box_format = Param(BoundingBoxFormat, initial=BoundingBoxFormat["CORNER_PAIRS"])
    topk_box_limit = Param(int, "Scores of an image that are looked at.", initial=5000)
    indices_type = Param(DataType)

    def _lower(self, f: Fragment, inputs: Inputs) -> list[str]:
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
        limited = _limited(f, by_class, int(self._params["topk_box_limit"]))
        centre = int(self._params["bounding_box_format"].name == "CENTER_SIZES")
        boxes = f.cast(boxes, np.float32)
        if f.rank(boxes) == 3:
            chosen = f.op(
                "NonMaxSuppression", boxes, limited, most, iou, least, center_point_box=centre
            )
        else:
            chosen = _per_class_boxes(f, boxes, limited, (most, iou, least), centre)
        ordered = _ordered(f, chosen, by_class)
        count = f.squeeze(f.op("Gather", f.op("Shape", ordered), f.ints(0), axis=0), [0])
        return [f.cast(ordered, index_dtype(self)), f.cast(count, np.int32)]


def _limited(f: Fragment, scores: str, limit: int) -> str:
    """Scores with all but the `limit` highest of each image out of reach."""
    _, classes, boxes = f.shape(scores)
    if 0 <= classes * boxes <= limit and classes >= 0 and boxes >= 0:
        return scores
    flat = f.op("Reshape", scores, f.ints(0, -1))
    k = f.op("Min", f.extent(flat, 1), f.ints(limit))
    values, indices = f.ops("TopK", [flat, k], 2, axis=1)
    lowest = f.op("Expand", f.const(np.float32(np.finfo(np.float32).min)), f.op("Shape", flat))
    kept = f.op("ScatterElements", lowest, indices, values, axis=1)
    return f.op("Reshape", kept, f.op("Shape", scores))


def _per_class_boxes(
    f: Fragment, boxes: str, scores: str, limits: tuple[str, str, str], centre: int
) -> str:
    """Each class of each image as an image of its own, split by class again afterwards."""
    moved = f.transpose(boxes, [0, 2, 1, 3])  # (B, C, N, 4)
    classes, count = f.extent(scores, 1), f.extent(scores, 2)
    flat_boxes = f.op("Reshape", moved, f.op("Concat", f.ints(-1), count, f.ints(4), axis=0))
    flat_scores = f.op("Reshape", scores, f.op("Concat", f.ints(-1, 1), count, axis=0))
    selected = f.op("NonMaxSuppression", flat_boxes, flat_scores, *limits, center_point_box=centre)
    image = f.op("Gather", selected, f.ints(0), axis=1)
    box = f.op("Gather", selected, f.ints(2), axis=1)
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


class INonZeroLayer(ILayer):
    """Indices of elements that are not 0."""

    _kind = "NON_ZERO"
    indices_type = Param(DataType)

    def _lower(self, f: Fragment, inputs: Inputs) -> list[str]:
        return [f.cast(f.op("NonZero", required(inputs, 0)), index_dtype(self))]


class IOneHotLayer(ILayer):
    """Inputs: indices, the two values off and on, depth."""

    _kind = "ONE_HOT"
    axis = Param(int)

    def _lower(self, f: Fragment, inputs: Inputs) -> list[str]:
        indices, values, depth = (required(inputs, i) for i in range(3))
        return [f.op("OneHot", indices, depth, values, axis=int(self._params["axis"]))]


class IReverseSequenceLayer(ILayer):
    """Reverses the first elements of each row. Inputs: data, lengths."""

    _kind = "REVERSE_SEQUENCE"
    batch_axis = Param(int, initial=1)
    sequence_axis = Param(int, initial=0)

    def _lower(self, f: Fragment, inputs: Inputs) -> list[str]:
        lengths = f.cast(required(inputs, 1), np.int64)
        p = self._params
        return [
            f.op(
                "ReverseSequence", required(inputs, 0), lengths, batch_axis=int(p["batch_axis"]),
                time_axis=int(p["sequence_axis"]),
            )
        ]  # fmt: skip
