"""Outputs of a graph in other types, as `output-io-formats` asks for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from noria._core.errors import EngineError
from noria._core.notices import Notice
from noria._core.text import fresh
from noria.engine.precision.prepare import Proto


def cast_outputs(
    proto: Proto, types: Mapping[str, str], scales: Mapping[str, float], *, where: str | None
) -> list[Notice]:
    """Give outputs of a model other types, in place, by casts.

    An `int8` output is quantised with the scale of its tensor, as TensorRT does.

    Returns:
        A warning for each output that keeps its type.

    Raises:
        EngineError: the model has no such output.
    """
    from onnx import TensorProto

    graph = proto.graph
    outputs = {value.name: value for value in graph.output}
    if unknown := [name for name in types if name not in outputs]:
        raise EngineError(
            f"output-io-formats: the model has no output {', '.join(unknown)}",
            where=where,
            expected=f"one of {', '.join(outputs)}",
        )
    taken = {n for node in graph.node for n in (*node.input, *node.output)} | set(outputs)
    taken |= {tensor.name for tensor in graph.initializer} | {v.name for v in graph.input}
    taken |= {node.name for node in graph.node}
    numbers = {
        "fp32": TensorProto.FLOAT, "fp16": TensorProto.FLOAT16,
        "int32": TensorProto.INT32, "int8": TensorProto.INT8,
    }  # fmt: skip
    notices = []
    for name, kind in types.items():
        tensor = outputs[name].type.tensor_type
        have, want = tensor.elem_type, numbers[kind]
        if have == want:
            continue
        scale = scales.get(name, 0.0)
        if want == TensorProto.INT8 and not (have == TensorProto.FLOAT and scale > 0):
            text = f"output-io-formats: {name} has no scale for int8 in a calibration table"
            notices.append(Notice("warning", f"{text}; it keeps its type", where))
            continue
        _end_with(graph, name, want, scale, taken)
        tensor.elem_type = want
    return notices


def _end_with(graph: Any, name: str, want: int, scale: float, taken: set[str]) -> None:
    """Give the tensor `name` another type, and its old one another name."""
    import numpy as np
    from onnx import TensorProto, helper, numpy_helper

    inner = fresh(f"{name}_inner", taken)
    there = False
    for node in graph.node:
        for index, used in enumerate(node.output):
            if used == name:
                node.output[index], there = inner, True
        for index, used in enumerate(node.input):
            if used == name:
                node.input[index] = inner
    if not there:  # an input or weight that is put out as it is
        for node in graph.node:
            node.input[:] = [name if used == inner else used for used in node.input]
        raise EngineError(f"output-io-formats: {name!r} is no result of a layer")
    label = fresh(f"{name}_cast", taken)
    if want != TensorProto.INT8:
        graph.node.append(helper.make_node("Cast", [inner], [name], label, to=want))
        return
    parts = []
    for suffix, value in (("scale", np.float32(scale)), ("zero", np.int8(0))):
        made = numpy_helper.from_array(np.asarray(value), fresh(f"{name}_{suffix}", taken))
        graph.initializer.add().CopyFrom(made)
        parts.append(made.name)
    graph.node.append(helper.make_node("QuantizeLinear", [inner, *parts], [name], label))
