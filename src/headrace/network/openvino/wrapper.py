"""OpenVINO's model as a network: one node that holds it whole, for its own runtime alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace._core.errors import ModelError
from headrace._core.files import sha256_of
from headrace.network.network import OPENVINO_DOMAIN, Network
from headrace.network.openvino.reader import KIND, OpenVinoModel, read_openvino
from headrace.network.tensor_spec import TensorSpec

if TYPE_CHECKING:
    from onnx import ValueInfoProto

_WEIGHTS = "weights of the model"


def network_from_openvino(path: str | Path) -> Network:
    """Read an OpenVINO model. Its weights are checked to be there, and read when it is built.

    Raises:
        ModelError: the XML cannot be read, see `read_openvino`; its weights are missing, or end
            before the XML says.
    """
    model = read_openvino(Path(path))
    size = _size_of_weights(model)
    import onnx

    from headrace.network.ir import ir

    inputs, outputs = map(value_infos, (model.inputs, model.outputs))
    names = [info.name for info in inputs], [info.name for info in outputs]
    if len(set(names[0])) < len(names[0]) or len(set(names[1])) < len(names[1]):
        raise model.error("two inputs or two outputs have one name")
    node = onnx.helper.make_node(
        "Model",
        [*names[0], _WEIGHTS],
        names[1],
        name="model",
        domain=OPENVINO_DOMAIN,
        xml=model.xml,
    )
    graph = onnx.helper.make_graph([node], "OpenVINO", inputs, outputs, [_weights(model, size)])
    opsets = [onnx.helper.make_opsetid("", 17), onnx.helper.make_opsetid(OPENVINO_DOMAIN, 1)]
    proto = onnx.helper.make_model(graph, opset_imports=opsets, ir_version=8)
    proto.producer_name = "OpenVINO"
    proto.producer_version = model.info.get("Runtime_version", "").partition("-")[0]
    whole = ir.from_proto(proto)
    ir.external_data.set_base_dir(whole.graph, model.path.parent)
    return Network(
        whole,
        path=model.path,
        size_bytes=len(model.xml) + size,
        sha256=sha256_of(model.xml),
        external_locations={model.weights.name: model.weights} if size else {},
    )


def _size_of_weights(model: OpenVinoModel) -> int:
    needed = 0
    for layer in model.layers.values():
        if layer.kind == "Const":
            offset, size = (layer.data.get(key, "") for key in ("offset", "size"))
            if not (offset.isdigit() and size.isdigit()) or len(offset + size) > 36:
                raise model.error(f"layer {layer.name!r} does not say where its numbers are")
            needed = max(needed, int(offset) + int(size))
    if not needed:
        return 0
    where = str(model.path)
    if not model.weights.is_file():
        raise ModelError(
            f"its weights {model.weights.name} are not beside it",
            where=where,
            expected=f"{KIND}: two files of one name, .xml and .bin",
            fix=f"copy {model.weights.name} into {model.path.parent}",
        )
    size_bytes = model.weights.stat().st_size
    if size_bytes < needed:
        raise ModelError(
            f"its weights {model.weights.name} break off: {size_bytes} of {needed} bytes are there",
            where=where,
            fix="copy or download them again",
        )
    return size_bytes


def value_infos(specs: Sequence[TensorSpec]) -> list[ValueInfoProto]:
    """Declare inputs or outputs of a graph."""
    from onnx import helper

    kinds = [helper.np_dtype_to_tensor_dtype(spec.dtype) for spec in specs]
    return [
        helper.make_tensor_value_info(spec.name, kind, spec.shape)
        for spec, kind in zip(specs, kinds, strict=True)
    ]


def _weights(model: OpenVinoModel, size: int) -> Any:
    import onnx

    tensor = onnx.TensorProto(name=_WEIGHTS, data_type=onnx.TensorProto.UINT8, dims=[size])
    if not size:
        tensor.raw_data = b""
        return tensor
    tensor.data_location = onnx.TensorProto.EXTERNAL
    for key, value in {"location": model.weights.name, "offset": 0, "length": size}.items():
        tensor.external_data.add(key=key, value=str(value))
    return tensor
