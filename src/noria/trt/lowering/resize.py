"""Resizing and sampling on a grid. Source: tensorrt-api spec 3.4."""

from __future__ import annotations

import numpy as np

from noria.trt.layers.base import ILayer
from noria.trt.lowering.fragment import Fragment, Inputs, LoweringError, lowers, required

_MODES = {"NEAREST": "nearest", "LINEAR": "linear", "CUBIC": "cubic"}
_COORDINATES = {
    "ALIGN_CORNERS": "align_corners", "ASYMMETRIC": "asymmetric", "HALF_PIXEL": "half_pixel",
}  # fmt: skip
_ROUNDINGS = {
    "HALF_UP": "round_prefer_ceil", "HALF_DOWN": "round_prefer_floor", "FLOOR": "floor",
    "CEIL": "ceil",
}  # fmt: skip


@lowers("RESIZE")
def resize(f: Fragment, layer: ILayer, inputs: Inputs) -> list[str]:
    """Resize to a shape or by scales."""
    p = layer._params
    x = required(inputs, 0)
    coordinates = _COORDINATES[p["coordinate_transformation"].name]
    if coordinates == "half_pixel" and p["selector_for_single_pixel"].name == "UPPER":
        coordinates = "pytorch_half_pixel"  # the same, but one pixel takes the first
    mode = _MODES[p["resize_mode"].name]
    scales: str | None = None
    sizes: str | None = None
    if len(inputs) > 1 and inputs[1] is not None:
        sizes = f.cast(inputs[1], np.int64)
        if f.implicit:
            sizes = f.op("Concat", f.extent(x, 0), sizes, axis=0)
    elif (shape := p.get("shape")) is not None:
        if len(shape) != f.rank(x) - f.offset:
            raise LoweringError(f"{tuple(shape)} for {f.rank(x) - f.offset} axes")
        known = [int(d) for d in shape]
        lead = [f.extent(x, 0)] if f.implicit else []
        parts = [f.ints(d) if d >= 0 else f.extent(x, i + f.offset) for i, d in enumerate(known)]
        all_known = not lead and min(known, default=0) >= 0
        sizes = f.ints(*known) if all_known else f.op("Concat", *lead, *parts, axis=0)
    elif (factors := p.get("scales")) is not None:
        if len(factors) != f.rank(x) - f.offset:
            raise LoweringError(f"{len(factors)} scales for {f.rank(x) - f.offset} axes")
        scales = f.const(np.array([1.0] * f.offset + [float(s) for s in factors], np.float32))
    else:  # nothing is set yet: as large as it is
        scales = f.const(np.ones(f.rank(x), np.float32))
    given = [x, None, scales] if sizes is None else [x, None, None, sizes]
    if f.opset < 13:  # optional inputs had to be there, empty
        empty = f.const(np.zeros(0, np.float32))
        given = [x, empty, scales or empty, *([sizes] if sizes else [])]
    return [
        f.op(
            "Resize", *given, mode=mode, coordinate_transformation_mode=coordinates,
            nearest_mode=_ROUNDINGS[p["nearest_rounding"].name] if mode == "nearest" else None,
            exclude_outside=int(p["exclude_outside"]) if mode == "cubic" else None,
            cubic_coeff_a=float(p["cubic_coeff"]) if mode == "cubic" else None,
        )
    ]  # fmt: skip


_SAMPLE_MODES = {"FILL": "zeros", "CLAMP": "border", "REFLECT": "reflection"}


@lowers("GRID_SAMPLE")
def grid_sample(f: Fragment, layer: ILayer, inputs: Inputs) -> list[str]:
    """Sample pictures at places in -1 … 1."""
    p = layer._params
    if f.opset < 16:
        raise LoweringError(f"sampling on a grid needs opset 16; the parsed model has {f.opset}")
    outside = p["sample_mode"].name
    if outside not in _SAMPLE_MODES:
        raise LoweringError(f"sampling on a grid in mode {outside}")
    mode = _MODES[p["interpolation_mode"].name]
    if f.opset < 20:
        mode = {"linear": "bilinear", "cubic": "bicubic"}.get(mode, mode)
    return [
        f.op(
            "GridSample", required(inputs, 0), required(inputs, 1), mode=mode,
            padding_mode=_SAMPLE_MODES[outside], align_corners=int(p["align_corners"]),
        )
    ]  # fmt: skip
