"""Slices, inside a tensor and beyond its ends. Source: tensorrt-api spec 3.4."""

from __future__ import annotations

import numpy as np

from noria.trt.layers.base import ILayer
from noria.trt.lowering.fragment import Fragment, Inputs, LoweringError, lowers, required

_LOWEST = -(2**31)


@lowers("SLICE")
def slice_(f: Fragment, layer: ILayer, inputs: Inputs) -> list[str]:
    """Take elements from a start in steps; outside the tensor by the mode."""
    x = required(inputs, 0)
    starts = _numbers(f, layer, inputs, 1, "start")
    sizes = _numbers(f, layer, inputs, 2, "shape")
    strides = _numbers(f, layer, inputs, 3, "stride")
    count = f.shape(starts)[0]
    axes = [int(a) for a in layer._params.get("axes") or range(count)]
    if count != len(axes) or (layer._params.get("axes") is None and count != f.rank(x) - f.offset):
        raise LoweringError(f"a slice of {count} axes of a tensor with {f.rank(x) - f.offset}")
    axes = [a + f.offset for a in axes]
    mode = layer._params["mode"].name
    if mode in ("STRICT_BOUNDS", "DEFAULT"):
        return [_strict(f, x, starts, sizes, strides, axes)]
    made, inside = x, None
    for i, axis in enumerate(axes):
        made, there = _beyond(f, made, axis, _item(f, starts, i), _item(f, sizes, i),
                              _item(f, strides, i), mode)  # fmt: skip
        if mode == "FILL":
            shaped = f.unsqueeze(there, [a for a in range(f.rank(x)) if a != axis])
            inside = shaped if inside is None else f.op("And", inside, shaped)
    if inside is None:
        return [made]
    fill = inputs[4] if len(inputs) > 4 and inputs[4] is not None else None
    value = f.like(0, x) if fill is None else f.cast(fill, f.dtype(x))
    return [f.op("Where", inside, made, value)]


def _numbers(f: Fragment, layer: ILayer, inputs: Inputs, index: int, name: str) -> str:
    if len(inputs) > index and (given := inputs[index]) is not None:
        return f.cast(given, np.int64)
    return f.ints(*[int(d) for d in layer._params[name]])


def _item(f: Fragment, numbers: str, i: int) -> str:
    return f.op("Gather", numbers, f.const(np.int64(i)), axis=0)


def _strict(f: Fragment, x: str, starts: str, sizes: str, strides: str, axes: list[int]) -> str:
    known = [f.known(n) for n in (starts, sizes, strides)]
    if all(k is not None for k in known):
        begin, size, step = ([int(v) for v in k.reshape(-1)] for k in known if k is not None)
        for b, s, t, axis in zip(begin, size, step, axes, strict=True):
            length = f.shape(x)[axis]
            last = b + (s - 1) * t
            if s < 0 or (length >= 0 and s and not (0 <= b < length and 0 <= last < length)):
                raise LoweringError(
                    f"the slice from {b}, {s} elements in steps of {t}, leaves axis {axis} of "
                    f"{length} elements"
                )
        stop = [b + s * t for b, s, t in zip(begin, size, step, strict=True)]
        ends = f.ints(*[_LOWEST if e < 0 else e for e in stop])
    else:
        end = f.op("Add", starts, f.op("Mul", sizes, strides))
        below = f.op("Less", end, f.const(np.int64(0)))
        ends = f.op("Where", below, f.const(np.int64(_LOWEST)), end)
    return f.op("Slice", x, starts, ends, f.ints(*axes), strides)


def _beyond(
    f: Fragment, x: str, axis: int, start: str, size: str, stride: str, mode: str
) -> tuple[str, str]:
    """Elements of one axis at places that may lie outside it, and which lay inside."""
    zero, one = f.const(np.int64(0)), f.const(np.int64(1))
    places = f.op("Add", start, f.op("Mul", f.op("Range", zero, size, one), stride))
    length = f.squeeze(f.extent(x, axis), [0])
    last = f.op("Sub", length, one)
    clamped = f.op("Min", f.op("Max", places, zero), last)
    inside = f.op("Equal", places, clamped)
    if mode == "WRAP":
        chosen = f.op("Mod", places, length)
    elif mode == "REFLECT":
        # the ends are not repeated: a period is twice the last index
        period = f.op("Max", f.op("Mul", last, f.const(np.int64(2))), one)
        turned = f.op("Mod", places, period)
        chosen = f.op("Min", turned, f.op("Sub", period, turned))
        chosen = f.op("Min", chosen, last)
    else:
        chosen = clamped
    return f.op("Gather", x, chosen, axis=axis), inside
