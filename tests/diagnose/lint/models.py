"""Models with one fault each, made of those of `tests.mistakes.models`."""

from __future__ import annotations

import functools
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tests.mistakes.models import HEIGHT, MODELS, WIDTH, Graph, yolov8


def _changed(change: Callable[[Any], None], source: str = "yolov8.onnx") -> Callable[[Path], None]:
    def write(path: Path) -> None:
        MODELS[source](path)
        model = onnx.load(path)
        change(model)
        path.write_bytes(model.SerializeToString())

    return write


def _weights(model: Any, change: Callable[[np.ndarray[Any, Any]], np.ndarray[Any, Any]]) -> None:
    """Change each weight of a convolution."""
    names = {node.input[1] for node in model.graph.node if node.op_type == "Conv"}
    for tensor in model.graph.initializer:
        if tensor.name in names:
            values = change(numpy_helper.to_array(tensor).copy())
            tensor.CopyFrom(numpy_helper.from_array(values.astype(np.float32), tensor.name))


def _nan(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    values.flat[0] = np.nan
    return values


def _free(model: Any) -> None:
    for value, names in ((model.graph.input[0], "nchw"), (model.graph.output[0], "nab")):
        for axis, name in zip(value.type.tensor_type.shape.dim, names, strict=True):
            if name in "nhwb":
                axis.dim_param = name


def _two_inputs(model: Any) -> None:
    model.graph.input.append(helper.make_tensor_value_info("extra", TensorProto.FLOAT, [1, 4]))
    model.graph.node.append(helper.make_node("Identity", ["extra"], ["read"]))


def _sized(model: Any) -> None:
    value = helper.make_tensor_value_info("orig_target_sizes", TensorProto.INT64, [1, 2])
    model.graph.input.append(value)
    model.graph.node.append(helper.make_node("Identity", ["orig_target_sizes"], ["read"]))


def _quantised(model: Any) -> None:
    """The image as bytes and back: as models that were trained for INT8 do it."""
    image = model.graph.input[0].name
    for node in model.graph.node:
        node.input[:] = ["restored" if name == image else name for name in node.input]
    scale = helper.make_tensor("scale", TensorProto.FLOAT, [], [1 / 127])
    zero = helper.make_tensor("zero", TensorProto.INT8, [], [0])
    model.graph.initializer.extend([scale, zero])
    for name, source, target in (
        ("DequantizeLinear", "bytes", "restored"),
        ("QuantizeLinear", image, "bytes"),
    ):
        model.graph.node.insert(0, helper.make_node(name, [source, "scale", "zero"], [target]))


def _nested_functions(model: Any) -> None:
    """Nine functions, each of which calls the next one ten times."""
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("calls", 1)]
    for number in range(9):
        names = [f"t{i}" for i in range(9)]
        pairs = zip(["a", *names], [*names, "b"], strict=True)
        called = ("Relu", "") if number == 8 else (f"F{number + 1}", "calls")
        nodes = [helper.make_node(called[0], [x], [y], domain=called[1]) for x, y in pairs]
        function = helper.make_function("calls", f"F{number}", ["a"], ["b"], nodes, imports)
        model.functions.append(function)
    model.opset_import.append(imports[1])
    model.graph.node.append(
        helper.make_node("F0", [model.graph.input[0].name], ["endless"], domain="calls")
    )


def _opset(version: int, model: Any) -> None:
    model.opset_import[0].version = version
    for tensor in model.graph.initializer:
        tensor.ClearField("doc_string")


def _external(model: Any) -> None:
    tensor = model.graph.initializer[0]
    size = len(tensor.raw_data)
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in (("location", "weights.bin"), ("length", str(size))):
        entry = tensor.external_data.add()
        entry.key, entry.value = key, value


def _plugin(model: Any) -> None:
    node = next(node for node in model.graph.node if node.op_type == "Sigmoid")
    node.op_type, node.domain = "MySigmoid_TRT", ""


def _bytes(model: Any) -> None:
    image = model.graph.input[0]
    image.type.tensor_type.elem_type = TensorProto.UINT8
    for node in model.graph.node:
        names = ["as_float" if n == image.name else n for n in node.input]
        node.input[:] = names
    cast = helper.make_node("Cast", [image.name], ["as_float"], "/cast", to=TensorProto.FLOAT)
    model.graph.node.insert(0, cast)


def _vector(path: Path) -> None:
    graph = Graph()
    graph.add("Flatten", "data", out="output0")
    graph.save(path, {"data": (1, 3, WIDTH * HEIGHT)}, {"output0": (1, 3 * WIDTH * HEIGHT)})


def _deep_classifier(path: Path) -> None:
    graph = Graph()
    pooled = graph.add("GlobalAveragePool", "input")
    graph.add("Reshape", pooled, np.array([0, 1, 3]), out="prob")
    graph.save(path, {"input": (1, 3, 32, 32)}, {"prob": (1, 1, 3)})


def _cut(path: Path) -> None:
    yolov8(path)
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])


FAULTY: dict[str, Callable[[Path], None]] = {
    "free.onnx": _changed(_free),
    "vector.onnx": _vector,
    "bytes.onnx": _changed(_bytes),
    "two_inputs.onnx": _changed(_two_inputs),
    "sized.onnx": _changed(_sized),
    "quantised.onnx": _changed(_quantised),
    "deep_classifier.onnx": _deep_classifier,
    "cut.onnx": _cut,
    "external.onnx": _changed(_external),
    "nested_functions.onnx": _changed(_nested_functions),
    "opset_99.onnx": _changed(functools.partial(_opset, 99)),
    "opset_20.onnx": _changed(functools.partial(_opset, 20)),
    "plugin.onnx": _changed(_plugin),
    "nan.onnx": _changed(lambda model: _weights(model, _nan)),
    "zeros.onnx": _changed(lambda model: _weights(model, np.zeros_like)),
    "huge.onnx": _changed(lambda model: _weights(model, lambda values: values * 1e6)),
}


def put_model(name: str, path: Path, store: Path) -> None:
    """Copy a model to `path`; it is written once, into `store`."""
    made = store / name
    if not made.exists():
        (FAULTY.get(name) or MODELS[name])(made)
    shutil.copyfile(made, path)
