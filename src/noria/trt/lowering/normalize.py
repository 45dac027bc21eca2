"""Normalisation over chosen axes. Source: tensorrt-api spec 3.4."""

from __future__ import annotations

from noria.trt.layers.base import ILayer
from noria.trt.lowering.fragment import Fragment, Inputs, LoweringError, lowers, required


@lowers("NORMALIZATION")
def normalization(f: Fragment, layer: ILayer, inputs: Inputs) -> list[str]:
    """(x - mean) / sqrt(variance + epsilon) * scale + bias over the axes of the mask.

    With more than one group, axis 1 is cut into groups that are normalised each for itself.
    """
    x, scale, bias = (required(inputs, i) for i in range(3))
    groups, rank = int(layer._params["num_groups"]), f.rank(x)
    axes = f.axes(int(layer._params["axes"]), rank)
    if not axes:
        raise LoweringError("no axis is in the mask")
    shape = f.shape(x)
    made = x
    if groups > 1:
        channels = shape[1]
        if channels < 0 or channels % groups:
            raise LoweringError(f"{channels} channels in {groups} groups")
        made = f.op(
            "Reshape", x,
            f.op("Concat", f.extent(x, 0), f.ints(groups, channels // groups),
                 *[f.extent(x, i) for i in range(2, rank)], axis=0),
        )  # fmt: skip
        axes = sorted({2, *(a + 1 for a in axes if a >= 2)})
    centred = f.op("Sub", made, f.reduce("ReduceMean", made, axes))
    variance = f.reduce("ReduceMean", f.op("Mul", centred, centred), axes)
    epsilon = f.like(float(layer._params["epsilon"]), x)
    made = f.op("Div", centred, f.op("Sqrt", f.op("Add", variance, epsilon)))
    if groups > 1:
        made = f.op("Reshape", made, f.extents(x))
        if f.shape(scale)[1:2] == (groups,) and groups != shape[1]:
            scale, bias = (_per_channel(f, n, groups, shape[1]) for n in (scale, bias))
    return [f.op("Add", f.op("Mul", made, scale), bias)]


def _per_channel(f: Fragment, name: str, groups: int, channels: int) -> str:
    """One number for each group, repeated for its channels."""
    rank = f.rank(name)
    flat = f.reshape(name, [groups, 1])
    spread = f.op("Expand", flat, f.ints(groups, channels // groups))
    return f.reshape(spread, [1, channels, *[1] * (rank - 2)])
