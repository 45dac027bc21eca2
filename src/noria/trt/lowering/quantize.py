"""Quantisation made explicit in the network. Source: tensorrt-api spec 3.4."""

from __future__ import annotations

from typing import Any

import numpy as np

from noria.trt.layers.base import ILayer
from noria.trt.lowering.convolution import _given
from noria.trt.lowering.fragment import Fragment, LoweringError, lowers

Inputs = list["str | None"]
_BYTES = {"INT8": np.int8, "UINT8": np.uint8}


def _scale(f: Fragment, layer: ILayer, inputs: Inputs, dtype: np.dtype[Any]) -> tuple[str, int]:
    """The scale as ONNX wants it, one number or one axis of them, and that axis."""
    name = _given(inputs, 1)
    known = f.known(name)
    if known is not None and known.size == 1:
        return f.const(known.reshape(()).astype(dtype)), 1
    axis = int(layer._params["axis"])
    if f.rank(name) > 1:
        name = f.reshape(name, [-1])
    if axis < 0:
        raise LoweringError("a scale for each channel needs the layer's axis")
    return f.cast(name, dtype), axis + f.offset


@lowers("QUANTIZE")
def quantize(f: Fragment, layer: ILayer, inputs: Inputs) -> list[str]:
    """clamp(round to even(x / scale), -128, 127)"""
    x = _given(inputs, 0)
    kind = layer._params["to_type"].name
    if kind not in _BYTES:
        raise LoweringError(f"quantising to {kind}; the CPU has INT8 and UINT8")
    scale, axis = _scale(f, layer, inputs, f.dtype(x))
    shape = f.shape(scale)
    zero = f.const(np.zeros(shape if -1 not in shape else (), _BYTES[kind]))
    given = [x, scale, inputs[2] if len(inputs) > 2 and inputs[2] else zero]
    return [f.op("QuantizeLinear", *given, **({"axis": axis} if shape and f.opset >= 13 else {}))]


@lowers("DEQUANTIZE")
def dequantize(f: Fragment, layer: ILayer, inputs: Inputs) -> list[str]:
    """y = q * scale"""
    x = _given(inputs, 0)
    kind = layer._params["to_type"]
    scale, axis = _scale(f, layer, inputs, np.dtype(np.float32))
    zeros = [inputs[2]] if len(inputs) > 2 and inputs[2] else []
    attributes = {"axis": axis} if f.shape(scale) and f.opset >= 13 else {}
    made = f.op("DequantizeLinear", x, scale, *zeros, **attributes)
    return [f.cast(made, kind.numpy)]
