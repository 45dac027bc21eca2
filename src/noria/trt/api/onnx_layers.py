"""From the nodes of a model to layers, with the attributes that layers show."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from noria.network.shapes.node_shapes import attributes_of
from noria.plugins.lookup import find_creator, is_builtin, is_unknown
from noria.trt import layers as kinds
from noria.trt.api.enums import (
    ActivationType,
    ElementWiseOperation,
    ErrorCode,
    MatrixOperation,
    PaddingMode,
    PoolingType,
    ReduceOperation,
    UnaryOperation,
)
from noria.trt.api.parser_errors import ParserError
from noria.trt.api.plugin_layers import add_live, add_parsed
from noria.trt.api.tensor import ITensor
from noria.trt.layers.base import ILayer

if TYPE_CHECKING:
    from noria.trt.api.network import INetworkDefinition

_UNARY = {
    "Exp": "EXP", "Log": "LOG", "Sqrt": "SQRT", "Reciprocal": "RECIP", "Abs": "ABS", "Neg": "NEG",
    "Sin": "SIN", "Cos": "COS", "Tan": "TAN", "Sinh": "SINH", "Cosh": "COSH", "Asin": "ASIN",
    "Acos": "ACOS", "Atan": "ATAN", "Asinh": "ASINH", "Acosh": "ACOSH", "Atanh": "ATANH",
    "Ceil": "CEIL", "Floor": "FLOOR", "Erf": "ERF", "Not": "NOT", "Sign": "SIGN",
    "Round": "ROUND", "IsInf": "ISINF", "IsNaN": "ISNAN",
}  # fmt: skip
_BINARY = {
    "Add": "SUM", "Mul": "PROD", "Max": "MAX", "Min": "MIN", "Sub": "SUB", "Div": "DIV",
    "Pow": "POW", "And": "AND", "Or": "OR", "Xor": "XOR", "Equal": "EQUAL", "Greater": "GREATER",
    "Less": "LESS", "Sum": "SUM", "Mod": "FLOOR_DIV", "GreaterOrEqual": "GREATER",
    "LessOrEqual": "LESS",
}  # fmt: skip
_ACTIVATIONS = {
    "Relu": "RELU", "Sigmoid": "SIGMOID", "Tanh": "TANH", "LeakyRelu": "LEAKY_RELU", "Elu": "ELU",
    "Selu": "SELU", "Softsign": "SOFTSIGN", "Softplus": "SOFTPLUS", "Clip": "CLIP",
    "HardSigmoid": "HARD_SIGMOID", "ThresholdedRelu": "THRESHOLDED_RELU", "Gelu": "GELU_ERF",
}  # fmt: skip
_REDUCE = {
    "ReduceSum": "SUM", "ReduceProd": "PROD", "ReduceMax": "MAX", "ReduceMin": "MIN",
    "ReduceMean": "AVG", "GlobalAveragePool": "AVG", "GlobalMaxPool": "MAX",
}  # fmt: skip
_OTHERS: dict[str, tuple[str, type[ILayer]]] = {
    "BatchNormalization": ("SCALE", kinds.IScaleLayer),
    "Cast": ("CAST", kinds.ICastLayer),
    "Concat": ("CONCATENATION", kinds.IConcatenationLayer),
    "Conv": ("CONVOLUTION", kinds.IConvolutionLayer),
    "ConvTranspose": ("DECONVOLUTION", kinds.IDeconvolutionLayer),
    "CumSum": ("CUMULATIVE", kinds.ICumulativeLayer),
    "DequantizeLinear": ("DEQUANTIZE", kinds.IDequantizeLayer),
    "Einsum": ("EINSUM", kinds.IEinsumLayer),
    "Expand": ("SLICE", kinds.ISliceLayer),
    "Flatten": ("SHUFFLE", kinds.IShuffleLayer),
    "Gather": ("GATHER", kinds.IGatherLayer),
    "GatherElements": ("GATHER", kinds.IGatherLayer),
    "GatherND": ("GATHER", kinds.IGatherLayer),
    "Gemm": ("MATRIX_MULTIPLY", kinds.IMatrixMultiplyLayer),
    "GridSample": ("GRID_SAMPLE", kinds.IGridSampleLayer),
    "GroupNormalization": ("NORMALIZATION", kinds.INormalizationLayer),
    "Identity": ("IDENTITY", kinds.IIdentityLayer),
    "InstanceNormalization": ("NORMALIZATION", kinds.INormalizationLayer),
    "LRN": ("LRN", kinds.ILRNLayer),
    "LayerNormalization": ("NORMALIZATION", kinds.INormalizationLayer),
    "MatMul": ("MATRIX_MULTIPLY", kinds.IMatrixMultiplyLayer),
    "NonMaxSuppression": ("NMS", kinds.INMSLayer),
    "NonZero": ("NON_ZERO", kinds.INonZeroLayer),
    "OneHot": ("ONE_HOT", kinds.IOneHotLayer),
    "PRelu": ("PARAMETRIC_RELU", kinds.IParametricReLULayer),
    "Pad": ("SLICE", kinds.ISliceLayer),
    "QuantizeLinear": ("QUANTIZE", kinds.IQuantizeLayer),
    "Reshape": ("SHUFFLE", kinds.IShuffleLayer),
    "Resize": ("RESIZE", kinds.IResizeLayer),
    "ReverseSequence": ("REVERSE_SEQUENCE", kinds.IReverseSequenceLayer),
    "ScatterElements": ("SCATTER", kinds.IScatterLayer),
    "ScatterND": ("SCATTER", kinds.IScatterLayer),
    "Shape": ("SHAPE", kinds.IShapeLayer),
    "Slice": ("SLICE", kinds.ISliceLayer),
    "Softmax": ("SOFTMAX", kinds.ISoftMaxLayer),
    "Split": ("SLICE", kinds.ISliceLayer),
    "Squeeze": ("SHUFFLE", kinds.IShuffleLayer),
    "Tile": ("SLICE", kinds.ISliceLayer),
    "TopK": ("TOPK", kinds.ITopKLayer),
    "Transpose": ("SHUFFLE", kinds.IShuffleLayer),
    "Unsqueeze": ("SHUFFLE", kinds.IShuffleLayer),
    "Upsample": ("RESIZE", kinds.IResizeLayer),
    "Where": ("SELECT", kinds.ISelectLayer),
}


class Checker:
    """Judges nodes before any of them is added."""

    def __init__(self, proto: Any, network: INetworkDefinition) -> None:
        self._opsets = {"" if o.domain == "ai.onnx" else o.domain: o.version
                        for o in proto.opset_import}  # fmt: skip
        self._functions = frozenset((f.domain, f.name) for f in proto.functions)
        self._network = network

    def creator(self, node: Any) -> Any | None:
        """The creator of a node that ONNX does not define; None for other nodes."""
        from noria.plugins.registry import known_plugins

        if not is_unknown(node, self._opsets, self._functions):
            return None
        return find_creator(node, known_plugins())

    def problem(self, index: int, node: Any) -> ParserError | None:
        """Why a node cannot be parsed."""
        if not is_unknown(node, self._opsets, self._functions):
            return None
        if self.creator(node) is not None or is_builtin(node.op_type, self._opsets.get("", 1)):
            return None
        return ParserError(
            ErrorCode["UNSUPPORTED_NODE"],
            "Plugin not found, are the plugin name, version, and namespace correct? There is no "
            f"operator {node.op_type!r} in ONNX's opset {self._opsets.get('', 1)}, and no creator "
            "of that name is registered; get_plugin_registry().load_library(PATH) loads a library "
            "of plugins",
            index,
            node.name,
            node.op_type,
        )


def _kind_of(op: str) -> tuple[str, type[ILayer], dict[str, Any]]:
    if op in _UNARY:
        return "UNARY", kinds.IUnaryLayer, {"op": UnaryOperation[_UNARY[op]]}
    if op in _BINARY:
        return "ELEMENTWISE", kinds.IElementWiseLayer, {"op": ElementWiseOperation[_BINARY[op]]}
    if op in _ACTIVATIONS:
        return "ACTIVATION", kinds.IActivationLayer, {
            "type": ActivationType[_ACTIVATIONS[op]], "alpha": 0.0, "beta": 0.0,
        }  # fmt: skip
    if op in _REDUCE:
        return "REDUCE", kinds.IReduceLayer, {"op": ReduceOperation[_REDUCE[op]]}
    if op in ("MaxPool", "AveragePool"):
        return "POOLING", kinds.IPoolingLayer, {}
    kind, cls = _OTHERS.get(op, (op.upper(), ILayer))
    params = {}
    if cls is kinds.IMatrixMultiplyLayer:
        params = {"op0": MatrixOperation["NONE"], "op1": MatrixOperation["NONE"]}
    return kind, cls, params


def add_node(
    network: INetworkDefinition, node: Any, index: int, tensors: dict[str, ITensor], creator: Any,
    logger: Any, live: Any = None,
) -> None:  # fmt: skip
    """Add the layer of a node; a node `Constant` becomes an initialiser.

    Args:
        network: receives the layer.
        node: the `NodeProto`.
        index: its number in the model.
        tensors: the tensors of the model so far, by name; the outputs are added.
        creator: of the plugin that computes it, if one does.
        logger: of the parser.
        live: that plugin (`LayerPlugin`), where the parser of another format made it already.
    """
    if node.op_type == "Constant" and _lift(network, node):
        return
    kind, cls, params = _kind_of(node.op_type)
    inputs: list[ITensor | None] = []
    slots: list[tuple[str, Any]] = []  # the kind of each input of the node
    for name in node.input:
        if name in network._initializers:
            slots.append(("weights", name))
        else:
            slots.append(("tensor", len(inputs)) if name else ("none", None))
            if name:
                inputs.append(tensors.get(name))
    captured = {n: tensors[n] for n in _captured(node) if n in tensors}
    for name, tensor in captured.items():
        slots.append(("captured", (name, len(inputs))))
        inputs.append(tensor)
    name = node.name or f"{node.op_type}_{index}"
    named = [n for n in node.output if n]
    attributes = attributes_of(node)
    layer: ILayer | None
    if live is not None:
        layer = add_live(network, name, slots, inputs, live)
    elif creator is not None:
        layer = add_parsed(network, node, name, slots, inputs, creator, logger)
    else:
        layer = cls(
            network, kind, inputs, params=params | _described(kind, node, attributes),
            outputs=len(named), name=name, node=node,
        )  # fmt: skip
        layer._slots = slots
        if kind in ("CONVOLUTION", "DECONVOLUTION"):
            _read_weights(network, layer, node, kind)
        network._append(layer)
    if layer is None:  # reported already; nodes that take its outputs are refused
        return
    layer._metadata = f"[ONNX Layer: {name}]"
    for output, tensor in zip(named, layer._outputs, strict=False):
        tensor._name = output
        tensors[output] = tensor


def _lift(network: INetworkDefinition, node: Any) -> bool:
    attributes = attributes_of(node)
    dtypes: dict[str, Any] = {"value_int": np.int64, "value_ints": np.int64,
                              "value_float": np.float32, "value_floats": np.float32}  # fmt: skip
    for name, value in attributes.items():
        if name == "value":
            network._initializers[node.output[0]] = np.asarray(value)
            return True
        if name in dtypes:
            network._initializers[node.output[0]] = np.asarray(value, dtypes[name])
            return True
    return False


def _captured(node: Any) -> list[str]:
    """Names that graphs inside a node take from around them."""
    found: dict[str, None] = {}
    for attribute in node.attribute:
        for graph in (attribute.g, *attribute.graphs):
            inside = {i.name for i in graph.input} | {t.name for t in graph.initializer}
            inside |= {n for inner in graph.node for n in inner.output}
            for inner in graph.node:
                for name in (*inner.input, *_captured(inner)):
                    if name and name not in inside:
                        found[name] = None
            for value in graph.output:
                if value.name not in inside:
                    found[value.name] = None
    return list(found)


def _described(kind: str, node: Any, attributes: dict[str, Any]) -> dict[str, Any]:
    """Settings of a layer, as far as the node has them."""
    if kind in ("CONVOLUTION", "DECONVOLUTION", "POOLING"):
        shape = tuple(attributes.get("kernel_shape", ()))
        pads = list(attributes.get("pads", [0] * (2 * len(shape))))
        mode = {"SAME_UPPER": "SAME_UPPER", "SAME_LOWER": "SAME_LOWER"}.get(
            attributes.get("auto_pad", ""), "EXPLICIT_ROUND_DOWN"
        )
        if attributes.get("ceil_mode"):
            mode = "EXPLICIT_ROUND_UP"
        found = {
            "padding_mode": PaddingMode[mode],
            "pre_padding": tuple(pads[: len(pads) // 2]),
            "post_padding": tuple(pads[len(pads) // 2 :]),
            "stride": tuple(attributes.get("strides", [1] * len(shape))),
            "window_size" if kind == "POOLING" else "kernel_size": shape,
        }
        if kind == "POOLING":
            return found | {
                "type": PoolingType["MAX" if node.op_type == "MaxPool" else "AVERAGE"],
                "average_count_excludes_padding": not attributes.get("count_include_pad", 0),
                "blend_factor": 0.0,
            }
        return found | {
            "num_groups": int(attributes.get("group", 1)),
            "dilation": tuple(attributes.get("dilations", [1] * len(shape))),
            "num_output_maps": 0,
        }
    if kind == "ACTIVATION":
        alpha = {"LeakyRelu": 0.01, "Elu": 1.0}.get(node.op_type, 0.0)
        return {"alpha": float(attributes.get("alpha", alpha)),
                "beta": float(attributes.get("beta", 0.0))}  # fmt: skip
    if kind == "CONCATENATION":
        return {"axis": int(attributes["axis"])} if attributes.get("axis", -1) >= 0 else {}
    if kind == "SOFTMAX":
        axis = int(attributes.get("axis", -1))
        return {"axes": 1 << axis} if axis >= 0 else {}
    if kind == "GATHER":
        return {"axis": int(attributes.get("axis", 0))}
    return {}


def _read_weights(network: INetworkDefinition, layer: ILayer, node: Any, kind: str) -> None:
    """Kernel and bias of a convolution if they are initialisers."""
    weights = [network._initializers.get(name) for name in node.input[1:]]
    if not weights or weights[0] is None:
        return
    kernel = weights[0]
    groups = layer._params["num_groups"]
    maps = kernel.shape[0] if kind == "CONVOLUTION" else kernel.shape[1] * groups
    layer._params["num_output_maps"] = int(maps)
    if not layer._params["kernel_size"]:
        layer._params["kernel_size"] = tuple(kernel.shape[2:])
        for key, fill in (("stride", 1), ("dilation", 1), ("pre_padding", 0), ("post_padding", 0)):
            layer._params[key] = layer._params[key] or (fill,) * (kernel.ndim - 2)
    layer._weights["KERNEL"] = kernel.reshape(-1)
    bias = weights[1] if len(weights) > 1 else None
    layer._weights["BIAS"] = None if bias is None else bias.reshape(-1)
    for role, name in zip(("KERNEL", "BIAS"), node.input[1:], strict=False):
        network._weight_names[layer._uid, role] = name
