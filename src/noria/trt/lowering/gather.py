"""Gather and scatter. Source: tensorrt-api spec 3.4."""

from __future__ import annotations

import numpy as np

from noria.trt.layers.base import ILayer
from noria.trt.lowering.fragment import Fragment, Inputs, LoweringError, lowers, required


@lowers("GATHER")
def gather(f: Fragment, layer: ILayer, inputs: Inputs) -> list[str]:
    """Take elements by indices, in one of three modes."""
    data, indices = required(inputs, 0), required(inputs, 1)
    shared = int(layer._params["num_elementwise_dims"]) + f.offset
    axis = int(layer._params["axis"]) + f.offset
    mode = layer._params["mode"].name
    if mode == "ELEMENT":
        return [f.op("GatherElements", data, indices, axis=axis)]
    if mode == "ND":
        return [f.op("GatherND", data, f.cast(indices, np.int64), batch_dims=shared)]
    if not 0 <= axis < f.rank(data):
        raise LoweringError(f"axis {axis - f.offset} of {f.rank(data) - f.offset} axes")
    if not shared:
        return [f.op("Gather", data, indices, axis=axis)]
    if axis < shared or f.rank(indices) < shared:
        raise LoweringError(f"axis {axis} lies in the {shared} leading axes that both inputs share")
    return [_shared(f, data, f.cast(indices, np.int64), axis, shared)]


def _shared(f: Fragment, data: str, indices: str, axis: int, shared: int) -> str:
    """Leading axes are common: out[b, …] takes the elements indices[b] of data[b].

    A leading axis of 1 serves for every b.
    """
    rank, wanted = f.rank(data), f.rank(indices) - shared
    others = [a for a in range(shared, rank) if a != axis]
    front = f.transpose(data, [*range(shared), axis, *others])
    left, right = f.shape(front)[:shared], f.shape(indices)[:shared]
    if left != right or -1 in left:
        lead = [f.op("Max", f.extent(front, i), f.extent(indices, i)) for i in range(shared)]
        front = _expanded(f, front, lead, shared)
        indices = _expanded(f, indices, lead, shared)
    made = f.op("GatherND", front, f.unsqueeze(indices, [f.rank(indices)]), batch_dims=shared)
    # now: shared axes, the axes of the indices, the other axes of the data
    before = axis - shared
    middle = list(range(shared, shared + wanted))
    rest = list(range(shared + wanted, shared + wanted + len(others)))
    return f.transpose(made, [*range(shared), *rest[:before], *middle, *rest[before:]])


def _expanded(f: Fragment, name: str, lead: list[str], shared: int) -> str:
    tail = [f.extent(name, i) for i in range(shared, f.rank(name))]
    return f.op("Expand", name, f.op("Concat", *lead, *tail, axis=0))


@lowers("SCATTER")
def scatter(f: Fragment, layer: ILayer, inputs: Inputs) -> list[str]:
    """Replace elements by indices."""
    data, indices, updates = (required(inputs, i) for i in range(3))
    if layer._params["mode"].name == "ELEMENT":
        axis = int(layer._params["axis"]) + f.offset
        return [f.op("ScatterElements", data, indices, updates, axis=axis)]
    return [f.op("ScatterND", data, f.cast(indices, np.int64), updates)]
