"""Quantisation made explicit in the network. Source: tensorrt-api spec 3.4."""

from __future__ import annotations

import numpy as np

from headrace._core.types import DType
from headrace.plugins.types import DataType, Dims
from headrace.trt.layers.base import ILayer, Param, dims_param
from headrace.trt.lowering.fragment import Fragment, Inputs, LoweringError, required

_BYTES = {"INT8": np.int8, "UINT8": np.uint8}


class _Scaling(ILayer):
    axis = Param(int, "Axis of a scale for each channel; -1 for one scale.", initial=-1)
    to_type = Param(DataType)
    block_shape = dims_param("Extents of the blocks that share a scale; empty for the scale's own.")


class IQuantizeLayer(_Scaling):
    """Inputs: x, scale. Computes clamp(round to even(x / scale), -128, 127)."""

    _kind = "QUANTIZE"

    def _lower(self, f: Fragment, inputs: Inputs) -> list[str]:
        x = required(inputs, 0)
        _refuse_blocks(self)
        kind = self._params["to_type"].name
        if kind not in _BYTES:
            raise LoweringError(f"quantising to {kind}; the CPU has INT8 and UINT8")
        scale, axis = _scale(f, self, inputs, f.dtype(x))
        shape = f.shape(scale)
        zero = f.const(np.zeros(shape if -1 not in shape else (), _BYTES[kind]))
        operands = [x, scale, _zero(f, inputs, np.dtype(_BYTES[kind])) or zero]
        return [
            f.op("QuantizeLinear", *operands, **({"axis": axis} if shape and f.opset >= 13 else {}))
        ]


class IDequantizeLayer(_Scaling):
    """Inputs: q, scale. Computes q * scale."""

    _kind = "DEQUANTIZE"

    def _lower(self, f: Fragment, inputs: Inputs) -> list[str]:
        x = required(inputs, 0)
        _refuse_blocks(self)
        kind = self._params["to_type"]
        scale, axis = _scale(f, self, inputs, np.dtype(np.float32))
        zero = _zero(f, inputs, f.dtype(x))
        zeros = [zero] if zero else []
        attributes = {"axis": axis} if f.shape(scale) and f.opset >= 13 else {}
        return [f.cast(f.op("DequantizeLinear", x, scale, *zeros, **attributes), kind.numpy)]


class IDynamicQuantizeLayer(ILayer):
    """Outputs: the rounded numbers, a scale for each block.

    Computes clamp(round to even(x / scale), ±127) with scale = max|x| / 127 of each block.
    """

    _kind = "DYNAMIC_QUANTIZE"
    axis = Param(int, "Axis that is cut into blocks.", initial=-1)
    block_size = Param(int, "Elements of a block along it.", initial=-1)
    block_shape = Param(Dims, "Extents of a block along every axis; -1 is all.")
    to_type = Param(DataType)
    scale_type = Param(DataType)

    def _lower(self, f: Fragment, inputs: Inputs) -> list[str]:
        x = required(inputs, 0)
        kinds = self._params["to_type"].name, self._params["scale_type"].name
        if kinds != ("INT8", "FLOAT"):
            raise LoweringError(
                f"rounding in blocks to {kinds[0]} with scales of {kinds[1]}; the CPU has INT8 "
                "with scales of FLOAT"
            )
        block, shape = [int(d) for d in self._params["block_shape"]], f.shape(x)
        if len(block) != len(shape):
            raise LoweringError(f"blocks {tuple(block)} of a tensor {shape}")
        cut: list[str] = []
        scales: list[str] = []
        for axis, (size, length) in enumerate(zip(block, shape, strict=True)):
            whole = f.extent(x, axis)
            if size == -1:
                pair = [f.ints(1), whole]
            elif size == 1:
                pair = [whole, f.ints(1)]
            elif size > 1 and length >= 0 and length % size == 0:
                pair = [f.ints(length // size), f.ints(size)]
            else:
                raise LoweringError(f"axis {axis} of {length} elements in blocks of {size}")
            cut += pair
            scales.append(pair[0])
        blocks = f.op("Reshape", f.cast(x, np.float32), f.op("Concat", *cut, axis=0))
        inner = list(range(1, 2 * len(shape), 2))
        scale = f.op(
            "Div", f.reduce("ReduceMax", f.op("Abs", blocks), inner), f.const(np.float32(127))
        )
        nothing = f.const(np.float32(0))
        divisor = f.op("Where", f.op("Equal", scale, nothing), f.const(np.float32(1)), scale)
        rounded = f.cast(f.op("Round", f.op("Div", blocks, divisor)), np.int8)
        return [
            f.op("Reshape", rounded, f.extents(x)),
            f.op("Reshape", scale, f.op("Concat", *scales, axis=0)),
        ]


def _refuse_blocks(layer: ILayer) -> None:
    block = layer._params.get("block_shape") or ()
    if any(int(d) != -1 for d in block):
        raise LoweringError(
            f"a scale for each block {tuple(block)}; the CPU has one scale, or one for each channel"
        )


def _zero(f: Fragment, inputs: Inputs, dtype: DType) -> str | None:
    """The zero point, which scripts also give as floats, in the type of the rounded numbers."""
    name = inputs[2] if len(inputs) > 2 else None
    return None if name is None else f.cast(name, dtype)


def _scale(f: Fragment, layer: ILayer, inputs: Inputs, dtype: DType) -> tuple[str, int]:
    """The scale as ONNX wants it, one number or one axis of them, and that axis."""
    name = required(inputs, 1)
    known = f.known(name)
    if known is not None and known.size == 1:
        return f.const(known.reshape(()).astype(dtype)), 1
    axis = int(layer._params["axis"])
    if f.rank(name) > 1:
        name = f.reshape(name, [-1])
    if axis < 0:
        raise LoweringError("a scale for each channel needs the layer's axis")
    return f.cast(name, dtype), axis + f.offset
