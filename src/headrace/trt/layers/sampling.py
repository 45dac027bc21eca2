"""Slices inside a tensor and beyond its ends, resizing, sampling on a grid.

Source: tensorrt-api spec 3.4.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from headrace.trt.layers.base import ILayer, Param, dims_param
from headrace.trt.lowering.fragment import Fragment, Inputs, LoweringError, required
from headrace.trt.release import versioned
from headrace.trt.types.enums import (
    InterpolationMode,
    ResizeCoordinateTransformation,
    ResizeRoundMode,
    ResizeSelector,
    SampleMode,
)

_LOWEST = -(2**31)
_MODES = {"NEAREST": "nearest", "LINEAR": "linear", "CUBIC": "cubic"}
_COORDINATES = {
    "ALIGN_CORNERS": "align_corners", "ASYMMETRIC": "asymmetric", "HALF_PIXEL": "half_pixel",
}  # fmt: skip
_ROUNDINGS = {
    "HALF_UP": "round_prefer_ceil", "HALF_DOWN": "round_prefer_floor", "FLOOR": "floor",
    "CEIL": "ceil",
}  # fmt: skip
_SAMPLE_MODES = {"FILL": "zeros", "CLAMP": "border", "REFLECT": "reflection"}


class ISliceLayer(ILayer):
    """Elements from a start in steps; outside the tensor by the mode.

    Inputs 1 to 4: start, shape, stride, fill value, instead of the attributes.
    """

    _kind = "SLICE"
    start = dims_param("First element of each axis.")
    shape = dims_param("Elements of each axis.")
    stride = dims_param("Steps along each axis.")
    axes = dims_param("Axes that the numbers are for; all by default.")
    mode = Param(SampleMode, "Values outside the tensor.", initial=SampleMode["STRICT_BOUNDS"])

    def _lower(self, f: Fragment, inputs: Inputs) -> list[str]:
        x = required(inputs, 0)
        starts = _numbers(f, self, inputs, 1, "start")
        sizes = _numbers(f, self, inputs, 2, "shape")
        strides = _numbers(f, self, inputs, 3, "stride")
        count = f.shape(starts)[0]
        axes = [int(a) for a in self._params.get("axes") or range(count)]
        if count != len(axes) or (
            self._params.get("axes") is None and count != f.rank(x) - f.offset
        ):
            raise LoweringError(f"a slice of {count} axes of a tensor with {f.rank(x) - f.offset}")
        axes = [a + f.offset for a in axes]
        mode = self._params["mode"].name
        if mode in ("STRICT_BOUNDS", "DEFAULT"):
            return [_strict(f, x, starts, sizes, strides, axes)]
        sliced, inside = x, None
        for i, axis in enumerate(axes):
            sliced, there = _beyond(f, sliced, axis, _item(f, starts, i), _item(f, sizes, i),
                                  _item(f, strides, i), mode)  # fmt: skip
            if mode == "FILL":
                shaped = f.unsqueeze(there, [a for a in range(f.rank(x)) if a != axis])
                inside = shaped if inside is None else f.op("And", inside, shaped)
        if inside is None:
            return [sliced]
        fill = inputs[4] if len(inputs) > 4 and inputs[4] is not None else None
        value = f.like(0, x) if fill is None else f.cast(fill, f.dtype(x))
        return [f.op("Where", inside, sliced, value)]


@versioned({"<10": "align_corners"})
class IResizeLayer(ILayer):
    """To a `shape`, or by `scales`. Input 1: the shape as a tensor."""

    _kind = "RESIZE"
    shape = dims_param("Extents of the output.")
    resize_mode = Param(
        InterpolationMode, "How pixels are mixed.", initial=InterpolationMode["NEAREST"]
    )
    coordinate_transformation = Param(
        ResizeCoordinateTransformation, "Where pixels come from.",
        initial=ResizeCoordinateTransformation["ASYMMETRIC"],
    )  # fmt: skip
    selector_for_single_pixel = Param(ResizeSelector, initial=ResizeSelector["FORMULA"])
    nearest_rounding = Param(ResizeRoundMode, initial=ResizeRoundMode["FLOOR"])
    exclude_outside = Param(bool, initial=False)
    cubic_coeff = Param(float, initial=-0.75)

    @property
    def scales(self) -> list[float]:
        """Factor of each axis; empty if a shape is set."""
        return list(self._params.get("scales") or ())

    @scales.setter
    def scales(self, value: Sequence[float]) -> None:
        self._params.pop("shape", None)
        self._set_param("scales", tuple(float(v) for v in value))

    @property
    def align_corners(self) -> bool:
        """The corner pixels' centres are mapped onto each other."""
        return bool(self._params["coordinate_transformation"].name == "ALIGN_CORNERS")

    @align_corners.setter
    def align_corners(self, value: bool) -> None:
        kind = ResizeCoordinateTransformation["ALIGN_CORNERS" if value else "ASYMMETRIC"]
        self._set_param("coordinate_transformation", kind)

    def _lower(self, f: Fragment, inputs: Inputs) -> list[str]:
        p = self._params
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
            parts = [
                f.ints(d) if d >= 0 else f.extent(x, i + f.offset) for i, d in enumerate(known)
            ]
            all_known = not lead and min(known, default=0) >= 0
            sizes = f.ints(*known) if all_known else f.op("Concat", *lead, *parts, axis=0)
        elif (factors := p.get("scales")) is not None:
            if len(factors) != f.rank(x) - f.offset:
                raise LoweringError(f"{len(factors)} scales for {f.rank(x) - f.offset} axes")
            scales = f.const(np.array([1.0] * f.offset + [float(s) for s in factors], np.float32))
        else:  # nothing is set yet: as large as it is
            scales = f.const(np.ones(f.rank(x), np.float32))
        operands = [x, None, scales] if sizes is None else [x, None, None, sizes]
        if f.opset < 13:  # optional inputs had to be there, empty
            empty = f.const(np.zeros(0, np.float32))
            operands = [x, empty, scales or empty, *([sizes] if sizes else [])]
        return [
            f.op(
                "Resize", *operands, mode=mode, coordinate_transformation_mode=coordinates,
                nearest_mode=_ROUNDINGS[p["nearest_rounding"].name] if mode == "nearest" else None,
                exclude_outside=int(p["exclude_outside"]) if mode == "cubic" else None,
                cubic_coeff_a=float(p["cubic_coeff"]) if mode == "cubic" else None,
            )
        ]  # fmt: skip


class IGridSampleLayer(ILayer):
    """Inputs: images, grid of places in -1 … 1."""

    _kind = "GRID_SAMPLE"
    interpolation_mode = Param(InterpolationMode, initial=InterpolationMode["LINEAR"])
    align_corners = Param(bool, initial=False)
    sample_mode = Param(SampleMode, initial=SampleMode["FILL"])

    def _lower(self, f: Fragment, inputs: Inputs) -> list[str]:
        p = self._params
        if f.opset < 16:
            raise LoweringError(
                f"sampling on a grid needs opset 16; the parsed model has {f.opset}"
            )
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


def _numbers(f: Fragment, layer: ILayer, inputs: Inputs, index: int, name: str) -> str:
    if len(inputs) > index and (tensor := inputs[index]) is not None:
        return f.cast(tensor, np.int64)
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
        stop = [b + s * t if t else b + 1 for b, s, t in zip(begin, size, step, strict=True)]
        ends = f.ints(*[_LOWEST if e < 0 else e for e in stop])
        if 0 in step:  # the same element again and again
            sliced = f.op("Slice", x, starts, ends, f.ints(*axes), f.ints(*[t or 1 for t in step]))
            repeats = dict(zip(axes, zip(size, step, strict=True), strict=True))
            most = [repeats.get(a, (1, 1)) for a in range(f.rank(x))]
            return f.op("Tile", sliced, f.ints(*[1 if t else s for s, t in most]))
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
    indices = f.op("Add", start, f.op("Mul", f.op("Range", zero, size, one), stride))
    length = f.squeeze(f.extent(x, axis), [0])
    last = f.op("Sub", length, one)
    clamped = f.op("Min", f.op("Max", indices, zero), last)
    inside = f.op("Equal", indices, clamped)
    if mode == "WRAP":
        chosen = f.op("Mod", indices, length)
    elif mode == "REFLECT":
        # the ends are not repeated: a period is twice the last index
        period = f.op("Max", f.op("Mul", last, f.const(np.int64(2))), one)
        turned = f.op("Mod", indices, period)
        chosen = f.op("Min", turned, f.op("Sub", period, turned))
        chosen = f.op("Min", chosen, last)
    else:
        chosen = clamped
    return f.op("Gather", x, chosen, axis=axis), inside
