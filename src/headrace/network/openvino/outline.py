"""The outline of an OpenVINO model in ONNX's terms: for recognition, not to be run.

Nodes have the names of ONNX's operators where these mean the same, and no attributes; constants
are those of the weights' file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.network.openvino.reader import DTYPES, IrLayer, OpenVinoModel, Port
from headrace.network.openvino.wrapper import value_infos

if TYPE_CHECKING:
    from onnx import ModelProto

_OPERATORS = {
    "Convolution": "Conv", "GroupConvolution": "Conv", "Multiply": "Mul", "Subtract": "Sub",
    "Divide": "Div", "SoftMax": "Softmax", "Softmax": "Softmax", "Convert": "Cast",
    "StridedSlice": "Slice", "VariadicSplit": "Split", "FullyConnected": "MatMul",
    "ConvertLike": "Cast", "Interpolate": "Resize", "ReLU": "Relu", "Clamp": "Clip",
    "SquaredDifference": "Sub", "Logistic": "Sigmoid",
}  # fmt: skip
_TYPES = {"f4": 1, "u1": 2, "i1": 3, "i4": 6, "i8": 7, "f2": 10, "f8": 11}
_SHAPED = ("Reshape", "Squeeze", "Unsqueeze", "Transpose")  # further inputs only shape


def outline_of(model: OpenVinoModel) -> ModelProto:
    """Make the outline of a model; its inputs and outputs are those of the model."""
    import onnx

    helper = onnx.helper
    names = model.tensor_names
    users: dict[Port, list[IrLayer]] = {}
    for layer in model.layers.values():
        for port in layer.inputs:
            users.setdefault(port, []).append(layer)
    nodes, constants = [], []
    for layer in model.layers.values():
        made = [names[layer.id, port] for port in layer.outputs]
        if layer.kind in ("Parameter", "Result"):
            continue
        if layer.kind == "Const":
            tensor = _constant(model, layer, made[0]) if made else None
            constants += [] if tensor is None else [tensor]
            continue
        feeds = [names[port] for port in layer.inputs]
        kind = _OPERATORS.get(layer.kind, layer.kind)
        if kind == "Cast" and model.layers[layer.inputs[0][0]].kind == "Const":
            kind = "Identity"  # weights that are kept in half precision
        if kind in _SHAPED:
            feeds = feeds[:1]
        node = helper.make_node(kind, feeds, made, name=layer.name)
        nodes.append(node)
        if kind == "Conv" and (bias := _bias(model, layer, users)) is not None:
            constants.append(bias)
            node.input.append(bias.name)
    inputs, outputs = map(value_infos, (model.inputs, model.outputs))
    graph = helper.make_graph(nodes, "OpenVINO", inputs, outputs, constants)
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    proto.producer_name = "OpenVINO"
    return proto


def _constant(model: OpenVinoModel, layer: IrLayer, name: str) -> Any:
    """A tensor in the weights' file; None for types without a number in ONNX."""
    output = next(iter(layer.outputs.values()))
    dtype = DTYPES.get(output.precision.upper())
    kind = None if dtype is None else _TYPES.get(dtype.str[1:])
    if kind is None or None in output.axes:
        return None
    return _tensor(name, kind, [d or 0 for d in output.axes], model, layer)


def _tensor(name: str, kind: int, dims: list[int], model: OpenVinoModel, layer: IrLayer) -> Any:
    import onnx

    tensor = onnx.TensorProto(name=name, data_type=kind, dims=dims)
    tensor.data_location = onnx.TensorProto.EXTERNAL
    place = {"location": model.weights.name, "offset": layer.data.get("offset", "0"),
             "length": layer.data.get("size", "0")}  # fmt: skip
    for key, value in place.items():
        tensor.external_data.add(key=key, value=value)
    return tensor


def _bias(model: OpenVinoModel, conv: IrLayer, users: dict[Port, list[IrLayer]]) -> Any:
    """The constant that is added to a convolution, as its bias; None if there is none."""
    port = (conv.id, next(iter(conv.outputs), ""))
    adding = users.get(port, [])
    if len(adding) != 1 or adding[0].kind != "Add" or len(adding[0].inputs) != 2:
        return None
    layer = model.layers[adding[0].inputs[adding[0].inputs[0] == port][0]]
    if layer.kind == "Convert" and layer.inputs:
        layer = model.layers[layer.inputs[0][0]]
    if layer.kind != "Const":
        return None
    output = next(iter(layer.outputs.values()))
    dtype = DTYPES.get(output.precision.upper())
    count = max((d or 0 for d in output.axes), default=0)
    if dtype is None or dtype.kind != "f" or len(output.axes) != 4 or output.axes[1] != count:
        return None
    kind = _TYPES[dtype.str[1:]]
    return _tensor(f"{conv.name}: bias", kind, [count], model, layer)
