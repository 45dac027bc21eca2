"""Layers that keep shapes: functions of elements, scales, casts. Source: tensorrt-api spec 3.4."""

from __future__ import annotations

import math

import numpy as np

from headrace.plugins.types import DataType
from headrace.trt.layers.base import ILayer, Param, weights_param
from headrace.trt.lowering.fragment import Fragment, Inputs, LoweringError, required
from headrace.trt.types.enums import ActivationType, ElementWiseOperation, ScaleMode, UnaryOperation
from headrace.trt.types.values import elem_of

UNARY = {
    "EXP": "Exp", "LOG": "Log", "SQRT": "Sqrt", "RECIP": "Reciprocal", "ABS": "Abs", "NEG": "Neg",
    "SIN": "Sin", "COS": "Cos", "TAN": "Tan", "SINH": "Sinh", "COSH": "Cosh", "ASIN": "Asin",
    "ACOS": "Acos", "ATAN": "Atan", "ASINH": "Asinh", "ACOSH": "Acosh", "ATANH": "Atanh",
    "CEIL": "Ceil", "FLOOR": "Floor", "ERF": "Erf", "NOT": "Not", "SIGN": "Sign", "ROUND": "Round",
    "ISINF": "IsInf", "ISNAN": "IsNaN",
}  # fmt: skip
BINARY = {
    "SUM": "Add", "PROD": "Mul", "MAX": "Max", "MIN": "Min", "SUB": "Sub", "DIV": "Div",
    "POW": "Pow", "AND": "And", "OR": "Or", "XOR": "Xor", "EQUAL": "Equal", "GREATER": "Greater",
    "LESS": "Less",
}  # fmt: skip


class IActivationLayer(ILayer):
    """A function with the parameters `alpha` and `beta` of each element."""

    _kind = "ACTIVATION"
    type = Param(ActivationType, "The function.")
    alpha = Param(float, "First number of the function.", initial=0.0)
    beta = Param(float, "Second number of the function.", initial=0.0)

    def _lower(self, f: Fragment, inputs: Inputs) -> list[str]:
        x = required(inputs, 0)
        alpha, beta = float(self._params["alpha"]), float(self._params["beta"])
        kind = self._params["type"].name
        simple = {"RELU": "Relu", "SIGMOID": "Sigmoid", "TANH": "Tanh", "SOFTSIGN": "Softsign"}
        if kind in simple:
            return [f.op(simple[kind], x)]
        if not f.is_float(x) and kind != "CLIP":
            raise LoweringError(f"{kind} of {f.dtype(x).name}")
        a, b, zero = f.like(alpha, x), f.like(beta, x), f.like(0, x)
        if kind == "LEAKY_RELU":
            return [f.op("LeakyRelu", x, alpha=alpha)]
        if kind == "ELU":
            return [f.op("Elu", x, alpha=alpha)]
        if kind == "CLIP":
            return [f.op("Min", f.op("Max", x, a), b)]
        if kind == "HARD_SIGMOID":
            line = f.op("Add", f.op("Mul", x, a), b)
            return [f.op("Min", f.op("Max", line, zero), f.like(1, x))]
        if kind == "SCALED_TANH":
            return [f.op("Mul", a, f.op("Tanh", f.op("Mul", b, x)))]
        if kind == "THRESHOLDED_RELU":
            return [f.op("Where", f.op("Greater", x, a), x, zero)]
        if kind == "SELU":
            below = f.op("Mul", a, f.op("Sub", f.op("Exp", f.op("Min", x, zero)), f.like(1, x)))
            return [f.op("Mul", b, f.op("Where", f.op("Greater", x, zero), x, below))]
        if kind == "SOFTPLUS":
            return [f.op("Mul", a, f.op("Softplus", f.op("Mul", b, x)))]
        half = f.op("Mul", x, f.like(0.5, x))
        if kind == "GELU_ERF":
            inner = f.op("Erf", f.op("Mul", x, f.like(1 / math.sqrt(2), x)))
        else:
            cube = f.op("Mul", f.op("Mul", x, x), x)
            sum_ = f.op("Add", x, f.op("Mul", cube, f.like(0.044715, x)))
            inner = f.op("Tanh", f.op("Mul", sum_, f.like(math.sqrt(2 / math.pi), x)))
        return [f.op("Mul", half, f.op("Add", inner, f.like(1, x)))]


class IUnaryLayer(ILayer):
    """A function, `op`, of each element."""

    _kind = "UNARY"
    op = Param(UnaryOperation, "The function.")

    def _lower(self, f: Fragment, inputs: Inputs) -> list[str]:
        return [f.op(UNARY[self._params["op"].name], required(inputs, 0))]


class IElementWiseLayer(ILayer):
    """`op` of two tensors; axes of extent 1 are broadcast, FLOOR_DIV rounds down."""

    _kind = "ELEMENTWISE"
    op = Param(ElementWiseOperation, "The operation.")

    def _lower(self, f: Fragment, inputs: Inputs) -> list[str]:
        a, b = f.same_type(required(inputs, 0), required(inputs, 1))
        if f.rank(a) != f.rank(b) and not f.implicit:
            raise LoweringError(
                f"an element-wise operation on {f.rank(a)} and {f.rank(b)} axes; both must have as "
                "many"
            )
        if f.dtype(a) != f.dtype(b):
            raise LoweringError(
                f"an element-wise operation on {f.dtype(a).name} and {f.dtype(b).name}"
            )
        op = self._params["op"].name
        if op != "FLOOR_DIV":
            return [f.op(BINARY[op], a, b)]
        if f.is_float(a):
            return [f.op("Floor", f.op("Div", a, b))]
        # integer division of ONNX cuts towards zero
        return [f.op("Div", f.op("Sub", a, f.op("Mod", a, b)), b)]


class IScaleLayer(ILayer):
    """(x * scale + shift) ^ power; parts that are empty are left out."""

    _kind = "SCALE"
    mode = Param(ScaleMode, "One number, one per channel, or one per element.")
    channel_axis = Param(int, "The axis of channels.")
    shift = weights_param("SHIFT", "Numbers to add.")
    scale = weights_param("SCALE", "Factors, applied first.")
    power = weights_param("POWER", "The exponent.")

    def _lower(self, f: Fragment, inputs: Inputs) -> list[str]:
        x = required(inputs, 0)
        mode, axis = self._params["mode"].name, int(self._params["channel_axis"]) + f.offset
        shape = f.shape(x)
        if mode == "CHANNEL" and not 0 <= axis < len(shape):
            raise LoweringError(f"channel axis {axis} of {len(shape)} axes")
        scaled = x
        for role, op in (("SCALE", "Mul"), ("SHIFT", "Add"), ("POWER", "Pow")):
            array = self._weights.get(role)
            if array is None or array.size == 0:
                continue
            if mode == "UNIFORM":
                target = [1] * len(shape)
            elif mode == "CHANNEL":
                target = [array.size if i == axis else 1 for i in range(len(shape))]
                if shape[axis] not in (-1, array.size):
                    raise LoweringError(f"{array.size} values for {shape[axis]} channels")
            else:
                target = [1, *shape[1:]]
            if array.size != int(np.prod(target)):
                raise LoweringError(f"{array.size} values of {role.lower()} for mode {mode}")
            scaled = f.op(op, scaled, f.const(array.reshape(target).astype(f.dtype(x)), role=role))
        return [scaled]


class IParametricReLULayer(ILayer):
    """Inputs: x, slopes. Computes max(x, 0) + slope * min(x, 0)."""

    _kind = "PARAMETRIC_RELU"
    _words = "Parametric ReLU"

    def _lower(self, f: Fragment, inputs: Inputs) -> list[str]:
        x, slopes = f.same_type(required(inputs, 0), required(inputs, 1))
        below = f.op("Mul", slopes, f.op("Min", x, f.like(0, x)))
        return [f.op("Add", f.op("Max", x, f.like(0, x)), below)]


class ISelectLayer(ILayer):
    """Inputs: condition, then, else."""

    _kind = "SELECT"

    def _lower(self, f: Fragment, inputs: Inputs) -> list[str]:
        a, b = f.same_type(required(inputs, 1), required(inputs, 2))
        return [f.op("Where", f.cast(required(inputs, 0), np.bool_), a, b)]


class ILRNLayer(ILayer):
    """Local response normalisation across channels."""

    _kind = "LRN"
    window_size = Param(int, "Channels; odd.")
    alpha = Param(float)
    beta = Param(float)
    k = Param(float)

    def _lower(self, f: Fragment, inputs: Inputs) -> list[str]:
        p = self._params
        return [
            f.op(
                "LRN", required(inputs, 0), size=int(p["window_size"]), alpha=float(p["alpha"]),
                beta=float(p["beta"]), bias=float(p["k"]),
            )
        ]  # fmt: skip


class IIdentityLayer(ILayer):
    """The same tensor."""

    _kind = "IDENTITY"

    def _lower(self, f: Fragment, inputs: Inputs) -> list[str]:
        return [f.op("Identity", required(inputs, 0))]


class ICastLayer(ILayer):
    """`to_type`."""

    _kind = "CAST"
    to_type = Param(DataType, "The new element type.")

    def _lower(self, f: Fragment, inputs: Inputs) -> list[str]:
        x, to = required(inputs, 0), self._params["to_type"]
        if to == DataType.UINT8 and f.dtype(x).kind == "f":
            x = f.op("Max", x, f.like(0, x))  # as a GPU does; above 255 the low byte stays
        return [f.op("Cast", x, to=elem_of(to))]
