"""From the nodes of a model to layers, with the attributes that layers show."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from headrace._core.errors import ModelError
from headrace.network.shapes.node_shapes import attributes_of
from headrace.plugins.lookup import (
    asks_for_plugin,
    check_bodies,
    creator_for,
    is_builtin,
    is_unknown,
    silent_file_hints,
    text_of,
)
from headrace.plugins.registry import get_plugin_registry, known_plugins
from headrace.trt.layers import (
    elementwise,
    quantizing,
    sampling,
    selection,
    shaping,
    sums,
    windows,
)
from headrace.trt.layers.base import ILayer
from headrace.trt.layers.plugins import add_live, add_parsed
from headrace.trt.lowering.fragment import bodies
from headrace.trt.release import generation
from headrace.trt.types.enums import (
    ActivationType,
    ElementWiseOperation,
    ErrorCode,
    MatrixOperation,
    PaddingMode,
    PoolingType,
    ReduceOperation,
    UnaryOperation,
)
from headrace.trt.types.reporting import ParserError
from headrace.trt.types.tensor import ITensor

if TYPE_CHECKING:
    from onnx import NodeProto

    from headrace.plugins.base import IPluginCreator, IPluginCreatorV3One
    from headrace.plugins.onnx_rules import Inlined
    from headrace.trt.api.network import INetworkDefinition
    from headrace.trt.layers.base import Slot

_BINARY = {
    "Sum": "SUM", "Mod": "FLOOR_DIV", "GreaterOrEqual": "GREATER", "LessOrEqual": "LESS",
    **{op: name for name, op in elementwise.BINARY.items()},
}  # fmt: skip
_UNARY = {op: name for name, op in elementwise.UNARY.items()}
_ACTIVATIONS = {
    "Relu": "RELU", "Sigmoid": "SIGMOID", "Tanh": "TANH", "LeakyRelu": "LEAKY_RELU", "Elu": "ELU",
    "Selu": "SELU", "Softsign": "SOFTSIGN", "Softplus": "SOFTPLUS", "Clip": "CLIP",
    "HardSigmoid": "HARD_SIGMOID", "ThresholdedRelu": "THRESHOLDED_RELU", "Gelu": "GELU_ERF",
}  # fmt: skip
_REDUCE = {
    "GlobalAveragePool": "AVG", "GlobalMaxPool": "MAX",
    **{op: name for name, op in sums.REDUCE.items()},
}  # fmt: skip
_LAYERS: dict[type[ILayer], str] = {
    elementwise.ICastLayer: "Cast",
    elementwise.IIdentityLayer: "Identity",
    elementwise.ILRNLayer: "LRN",
    elementwise.IParametricReLULayer: "PRelu",
    elementwise.IScaleLayer: "BatchNormalization",
    elementwise.ISelectLayer: "Where",
    quantizing.IDequantizeLayer: "DequantizeLinear",
    quantizing.IQuantizeLayer: "QuantizeLinear",
    sampling.IGridSampleLayer: "GridSample",
    sampling.IResizeLayer: "Resize Upsample",
    sampling.ISliceLayer: "Expand Pad Slice Split Tile",
    selection.IGatherLayer: "Gather GatherElements GatherND",
    selection.INMSLayer: "NonMaxSuppression",
    selection.INonZeroLayer: "NonZero",
    selection.IOneHotLayer: "OneHot",
    selection.IReverseSequenceLayer: "ReverseSequence",
    selection.IScatterLayer: "ScatterElements ScatterND",
    shaping.IConcatenationLayer: "Concat",
    shaping.IShapeLayer: "Shape",
    shaping.IShuffleLayer: "Flatten Reshape Squeeze Transpose Unsqueeze",
    sums.ICumulativeLayer: "CumSum",
    sums.IEinsumLayer: "Einsum",
    sums.IMatrixMultiplyLayer: "Gemm MatMul",
    sums.INormalizationLayer: "GroupNormalization InstanceNormalization LayerNormalization",
    sums.ISoftMaxLayer: "Softmax",
    sums.ITopKLayer: "TopK",
    windows.IConvolutionLayer: "Conv",
    windows.IDeconvolutionLayer: "ConvTranspose",
    windows.IPoolingLayer: "AveragePool MaxPool",
}
"""Layer -> operators that become it, beside those of the tables above."""
Creator: TypeAlias = "IPluginCreator | IPluginCreatorV3One"

_CLASSES = {op: cls for cls, ops in _LAYERS.items() for op in ops.split()}


class Checker:
    """Judges nodes before any of them is added.

    Args:
        read: the model, its functions in the places of their calls.
        network: receives the layers.
    """

    def __init__(self, read: Inlined, network: INetworkDefinition) -> None:
        proto = read.proto
        self._read = read
        self._opsets = {"" if o.domain == "ai.onnx" else o.domain: o.version
                        for o in proto.opset_import}  # fmt: skip
        self._functions = frozenset((f.domain, f.name) for f in proto.functions)
        self._network = network

    def creator(self, node: NodeProto) -> Creator | None:
        """The creator of the plugin that computes a node; None for other nodes."""
        return creator_for(node, self._opsets, self._functions, known_plugins())

    def problem(self, index: int, node: NodeProto) -> ParserError | None:
        """Why a node cannot be parsed."""
        try:
            check_bodies(node, lambda inner: self.creator(inner) is not None, "")
        except ModelError as error:
            return self.error("UNSUPPORTED_NODE", error, index, node)
        if not is_unknown(node, self._opsets, self._functions):
            return None
        native = is_builtin(node.op_type, self._opsets.get("", 1)) and not asks_for_plugin(node)
        if native or self.creator(node) is not None:
            return None
        registry = known_plugins()
        near = registry.near(
            node.op_type,
            text_of(node, "plugin_version", "1"),
            text_of(node, "plugin_namespace", ""),
        )
        load = "get_plugin_registry().load_library(PATH) loads a library of plugins"
        there = "; ".join(near) or "no creator of that name is registered"
        silent = silent_file_hints(get_plugin_registry())
        text = (
            "Plugin not found, are the plugin name, version, and namespace correct? There is no "
            f"operator {node.op_type!r} in ONNX's opset {self._opsets.get('', 1)}, and {there}"
            + ("" if registry.versions(node.op_type) else "; ".join(["", *(silent or [load])]))
        )
        return self.error(None, text, index, node)

    def error(self, code: str | None, error: object, index: int, node: NodeProto) -> ParserError:
        """Make the error of a node.

        Args:
            code: of `ErrorCode`; None: the one that releases have for plugins.
            error: its text.
            index: number of the node in the graph.
            node: it.
        """
        return ParserError(
            ErrorCode[code or ("INVALID_NODE" if generation() >= 10 else "UNSUPPORTED_NODE")],
            str(error),
            self._read.place(index),
            self._read.given_name(node),
            node.op_type,
            self._read.stack(node),
        )


def _class_of(op: str) -> tuple[type[ILayer], dict[str, Any]]:
    """The class of the layer that an operator becomes, and settings that it decides."""
    if op in _UNARY:
        return elementwise.IUnaryLayer, {"op": UnaryOperation[_UNARY[op]]}
    if op in _BINARY:
        return elementwise.IElementWiseLayer, {"op": ElementWiseOperation[_BINARY[op]]}
    if op in _ACTIVATIONS:
        return elementwise.IActivationLayer, {"type": ActivationType[_ACTIVATIONS[op]]}
    if op in _REDUCE:
        return sums.IReduceLayer, {"op": ReduceOperation[_REDUCE[op]]}
    cls = _CLASSES.get(op, ILayer)
    if cls is sums.IMatrixMultiplyLayer:
        return cls, {"op0": MatrixOperation["NONE"], "op1": MatrixOperation["NONE"]}
    return cls, {}


def add_node(
    network: INetworkDefinition,
    node: NodeProto,
    names: tuple[str, str],
    tensors: dict[str, ITensor],
    creator: Creator | None,
    live: Any = None,
) -> None:
    """Add the layer of a node; a node `Constant` becomes an initialiser.

    Args:
        network: receives the layer.
        node: the `NodeProto`.
        names: of the node and of the layer.
        tensors: the tensors of the model so far, by name; the outputs are added.
        creator: of the plugin that computes it, if one does.
        live: that plugin (`LayerPlugin`), where the parser of another format made it already.

    Raises:
        HeadraceError: see `add_parsed`.
    """
    if node.op_type == "Constant" and _lift(network, node):
        return
    if live is not None:
        layer = add_live(network, names[1], _all_inputs(network, node, tensors), live)
    elif creator is not None:
        layer = add_parsed(network, node, names, _all_inputs(network, node, tensors), creator)
    else:
        layer = _add_native(network, node, names[1], tensors)
    layer._metadata = f"[ONNX Layer: {names[1]}]"
    outputs = iter(layer._outputs)
    for name in node.output:
        # layers of ONNX's operators have no output where the node has no name for it
        tensor = next(outputs) if name or live is not None or creator is not None else None
        if name and tensor is not None:
            tensor._name = name
            tensors[name] = tensor


def _all_inputs(
    network: INetworkDefinition, node: NodeProto, tensors: dict[str, ITensor]
) -> list[ITensor | None]:
    """Inputs of a node; initialisers become constant layers, those left out are None."""
    return [
        network._constant_tensor(name) if name in network._initializers else tensors.get(name)
        for name in node.input
    ]


def _add_native(
    network: INetworkDefinition, node: NodeProto, name: str, tensors: dict[str, ITensor]
) -> ILayer:
    cls, params = _class_of(node.op_type)
    kind = cls._kind or node.op_type.upper()
    inputs: list[ITensor | None] = []
    slots: list[Slot] = []  # the kind of each input of the node
    for taken in node.input:
        if taken in network._initializers:
            slots.append(("weights", taken))
        else:
            slots.append(("tensor", len(inputs)) if taken else ("none", None))
            if taken:
                inputs.append(tensors.get(taken))
    captured = {n: tensors[n] for n in _captured(node) if n in tensors}
    for inner, tensor in captured.items():
        slots.append(("captured", (inner, len(inputs))))
        inputs.append(tensor)
    layer = cls(
        network, inputs, kind=kind, params=params | _described(kind, node, attributes_of(node)),
        outputs=sum(map(bool, node.output)), name=name, node=node,
    )  # fmt: skip
    layer._slots = slots
    if kind in ("CONVOLUTION", "DECONVOLUTION"):
        _read_weights(network, layer, node, kind)
    network._append(layer)
    return layer


def _lift(network: INetworkDefinition, node: NodeProto) -> bool:
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


def _captured(node: NodeProto) -> list[str]:
    """Names that graphs inside a node take from around them."""
    names: dict[str, None] = {}
    for graph in bodies(node):
        inside = {i.name for i in graph.input} | {t.name for t in graph.initializer}
        inside |= {n for inner in graph.node for n in inner.output}
        taken = [n for inner in graph.node for n in (*inner.input, *_captured(inner)) if n]
        taken += [value.name for value in graph.output]
        names |= dict.fromkeys(name for name in taken if name not in inside)
    return list(names)


def _described(kind: str, node: NodeProto, attributes: dict[str, Any]) -> dict[str, Any]:
    """Settings of a layer, as far as the node has them."""
    if kind in ("CONVOLUTION", "DECONVOLUTION", "POOLING"):
        shape = tuple(attributes.get("kernel_shape", ()))
        pads = list(attributes.get("pads", [0] * (2 * len(shape))))
        mode = {"SAME_UPPER": "SAME_UPPER", "SAME_LOWER": "SAME_LOWER"}.get(
            attributes.get("auto_pad", ""), "EXPLICIT_ROUND_DOWN"
        )
        if attributes.get("ceil_mode"):
            mode = "EXPLICIT_ROUND_UP"
        settings = {
            "padding_mode": PaddingMode[mode],
            "pre_padding": tuple(pads[: len(pads) // 2]),
            "post_padding": tuple(pads[len(pads) // 2 :]),
            "stride": tuple(attributes.get("strides", [1] * len(shape))),
            "window_size" if kind == "POOLING" else "kernel_size": shape,
        }
        if kind == "POOLING":
            return settings | {
                "type": PoolingType["MAX" if node.op_type == "MaxPool" else "AVERAGE"],
                "average_count_excludes_padding": not attributes.get("count_include_pad", 0),
                "blend_factor": 0.0,
            }
        return settings | {
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
    return {"axis": int(attributes.get("axis", 0))} if kind == "GATHER" else {}


def _read_weights(network: INetworkDefinition, layer: ILayer, node: NodeProto, kind: str) -> None:
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
