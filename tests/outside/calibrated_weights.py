"""Random weights of an ONNX file made useful: each convolution answers with mean 0 and spread 1.

Untrained networks answer every image with nearly one number: what they find depends on neither
place nor image, and results of two programs cannot be told apart. The nodes run one by one, and
each convolution is scaled by what it answers to the images at hand.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

_LEAST = 1e-9  # spread of an answer that the image does not change


def calibrate(model: Any, feeds: Mapping[str, Any]) -> int:
    """Scale the convolutions of a model, in place.

    Args:
        model: a `ModelProto` with its weights.
        feeds: name of an input -> array.

    Returns:
        How many were scaled. Nodes behind one that cannot run alone stay as they are.
    """
    graph = model.graph
    values: dict[str, Any] = {t.name: numpy_helper.to_array(t) for t in graph.initializer}
    fixed = {*values, ""}
    values |= feeds
    last = {name: i for i, node in enumerate(graph.node) for name in node.input}
    done = 0
    for i, node in enumerate(graph.node):
        before = list(node.input)
        if node.op_type == "Conv" and fixed.issuperset(node.input[1:]):
            fixed.add(_started(graph, node, values))
        try:
            answers = _answers(node, values, model)
        except Exception:  # subgraphs, plugins: each has its own kind of error
            break
        if node.op_type == "Conv" and fixed.issuperset(node.input[1:]):
            answers = [_scaled(graph, node, values, answers[0])]
            done += 1
        elif fixed.issuperset(node.input):
            fixed |= {*node.output}
        values |= dict(zip(node.output, answers, strict=False))
        for name in {*before}:
            if last.get(name) == i:
                values.pop(name, None)
    return done


def _started(graph: Any, node: Any, values: dict[str, Any]) -> str:
    """Give a convolution that training starts at zero random weights; the name of its weights."""
    weights = values[node.input[1]]
    if weights.any():
        return str(node.input[1])
    name = f"{node.output[0]}/started"
    made = np.random.default_rng(len(values)).normal(size=weights.shape).astype(weights.dtype)
    node.input[1], values[name] = name, made
    graph.initializer.append(numpy_helper.from_array(made, name))
    return name


def _answers(node: Any, values: Mapping[str, Any], model: Any) -> list[Any]:
    """Run one node."""
    names = [name for name in dict.fromkeys(node.input) if name]
    kinds = {n: helper.np_dtype_to_tensor_dtype(values[n].dtype) for n in names}
    inputs = [helper.make_tensor_value_info(n, kinds[n], values[n].shape) for n in names]
    outputs = [onnx.ValueInfoProto(name=name) for name in node.output if name]
    one = helper.make_model(
        helper.make_graph([node], "one", inputs, outputs),
        opset_imports=list(model.opset_import), ir_version=min(model.ir_version, 10),
    )  # fmt: skip
    session = onnxruntime.InferenceSession(one.SerializeToString())
    found = iter(session.run(None, {n: np.asarray(values[n], order="C") for n in names}))
    return [next(found) if name else None for name in node.output]


def _scaled(graph: Any, node: Any, values: Mapping[str, Any], answer: Any) -> Any:
    """Scale one convolution; its answer afterwards."""
    weights = values[node.input[1]]
    axes = (0, *range(2, answer.ndim))
    mean, spread = answer.mean(axes), answer.std(axes)
    if weights.dtype != np.float32 or len(weights) == 1 or spread.max() < _LEAST:
        return answer  # a single filter is arithmetic: the sum over the bins of a distance
    gain = np.where(spread > _LEAST, 1 / np.maximum(spread, _LEAST), 1).astype(np.float32)
    shape = (-1,) + (1,) * (answer.ndim - 2)
    bias = np.zeros(len(weights), np.float32)
    if len(node.input) > 2 and node.input[2]:
        bias = values[node.input[2]]
    weights = weights * gain.reshape(-1, *(1,) * (weights.ndim - 1))
    for at, value in ((1, weights), (2, (bias - mean) * gain)):  # exporters share what is alike
        name = f"{node.output[0]}/{'weights' if at == 1 else 'bias'}"
        node.input[:] = [*node.input[:at], name]
        graph.initializer.append(numpy_helper.from_array(value.astype(np.float32), name))
    return ((answer - mean.reshape(shape)) * gain.reshape(shape)).astype(np.float32)
