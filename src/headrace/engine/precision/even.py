"""Chosen ranges and factors of activations in a graph, and weights rounded for them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from headrace.engine.precision.choice import TensorChoice
from headrace.engine.precision.prepare import Proto, captured_names, replace_all
from headrace.engine.precision.ranges import Floats, by_group, is_convolution
from headrace.network.graph_builder import fresh

if TYPE_CHECKING:
    from onnx import GraphProto


_ALIKE = 0.9  # correlation of the values under the places of a kernel
_MOST_FLIPS = 256


def even_out(
    proto: Proto, tensors: Mapping[str, TensorChoice], nodes: Collection[str], levels: int = 127
) -> Proto:
    """Put the factors of activations into a copy of a prepared model, and round the weights.

    Args:
        proto: the model.
        tensors: activation -> its factors, and what its channels hold.
        nodes: names of the layers to quantise; what others compute stays the same.
        levels: the largest quantised weight.
    """
    model = onnx.ModelProto()
    model.CopyFrom(proto)
    graph = model.graph
    weights = {t.name: t for t in graph.initializer}
    taken = {n for node in graph.node for n in (node.name, *node.output)} | set(weights)
    ordered: list[object] = []
    there: set[str] = set()
    for node in graph.node:
        name = node.input[0] if node.input else ""
        choice = tensors.get(name)
        if choice is None or node.name not in nodes or not is_convolution(node, weights):
            ordered.append(node)
            continue
        kernel = by_group(node, weights)
        channels = kernel.shape[0] * kernel.shape[1]
        factors = np.array(choice.factors or [1.0] * channels)
        if len(factors) == channels:
            if choice.factors and name not in there:
                there.add(name)
                shape = (-1, *[1] * (len(weights[node.input[1]].dims) - 2))
                values = factors.astype(np.float32).reshape(shape)
                label = fresh(f"{name}_factors", taken)
                graph.initializer.append(numpy_helper.from_array(values, label))
                multiply = fresh(f"{name}_evening", taken)
                ordered.append(helper.make_node("Mul", [name, label], [evened(name)], multiply))
            kernel = kernel / factors.reshape(*kernel.shape[:2], 1, 1)
            if len(choice.deviations) == channels:
                together = np.array(choice.directions).reshape(-1, channels) * factors
                kernel = round_weights(
                    kernel, together, np.array(choice.deviations) * factors, levels
                )
            dims = tuple(weights[node.input[1]].dims)
            label = fresh(f"{node.name}_rounded", taken)
            values = kernel.transpose(0, 2, 1, 3).reshape(dims).astype(np.float32)
            graph.initializer.append(numpy_helper.from_array(values, label))
            node.input[1] = label
            if choice.factors:
                node.input[0] = evened(name)
        ordered.append(node)
    types = [helper.make_tensor_value_info(evened(n), TensorProto.FLOAT, None) for n in there]
    graph.value_info.extend(types)
    replace_all(graph.node, ordered)
    used = {name for node in graph.node for name in node.input} | captured_names(graph)
    used |= {value.name for value in graph.output}
    replace_all(graph.initializer, [t for t in graph.initializer if t.name in used])
    return model


def round_weights(kernel: Floats, directions: Floats, deviations: Floats, levels: int) -> Floats:
    """Round weights to bytes of a scale per output channel, so that their errors cancel.

    To the nearest, each error is small, but their sum over inputs that move together need not be:
    those of a kernel's places, and channels along the directions. Weights are rounded the other
    way as long as that makes the expected error of the layer's result less.

    Args:
        kernel: (groups, inputs, outputs, places).
        directions: (k, groups * inputs) what moves together: the second moment of the channels is
            `directions.T @ directions`, and `deviations**2` more on its diagonal.
        deviations: (groups * inputs,).
        levels: the largest byte.

    Returns:
        The rounded values, in the kernel's shape.
    """
    groups, inputs, outputs, positions = kernel.shape
    rows = kernel.transpose(0, 2, 1, 3).reshape(groups * outputs, inputs, positions)
    step = np.maximum(np.abs(rows).max(axis=(1, 2), keepdims=True), 1e-30) / levels
    scaled = rows / step
    bytes_ = np.round(scaled)
    along = directions.reshape(-1, groups, inputs).transpose(1, 0, 2)  # (groups, k, inputs)
    own = np.repeat(deviations.reshape(groups, inputs), outputs, axis=0)[:, :, None] ** 2
    alone = np.repeat(np.square(along).sum(1), outputs, axis=0)[:, :, None] + own
    error = bytes_ - scaled
    every = np.arange(len(rows))
    for _ in range(_MOST_FLIPS):
        flip = np.where(error > 0, -1.0, 1.0)
        together = error.sum(axis=2)
        grouped = together.reshape(groups, outputs, inputs)
        moved = (grouped @ along.transpose(0, 2, 1) @ along).reshape(len(rows), inputs, 1)
        same = _ALIKE * together[:, :, None] + (1 - _ALIKE) * error
        gain = 2 * flip * (moved + own * same) + alone
        gain = np.where(np.abs(bytes_) >= levels, np.inf, gain).reshape(len(rows), -1)
        best = gain.argmin(axis=1)
        better = every[gain[every, best] < 0]
        if not len(better):
            break
        at = (better, best[better] // positions, best[better] % positions)
        change = flip[at]
        bytes_[at] += change
        error[at] += change
    rounded = (bytes_ * step).reshape(groups, outputs, inputs, positions)
    return np.asarray(rounded.transpose(0, 2, 1, 3))


def evened(name: str) -> str:
    """The name of an activation with its factors in."""
    return f"{name}_even"


def set_ranges(graph: GraphProto, tensors: Mapping[str, TensorChoice]) -> None:
    """Let the pairs of activations store unsigned bytes over their own range, in place."""
    ranges = {**tensors} | {evened(n): t for n, t in tensors.items() if t.factors}
    taken = {tensor.name for tensor in graph.initializer}
    names: dict[str, tuple[str, str]] = {}
    owned: set[str] = set()
    pairs = {"QuantizeLinear", "DequantizeLinear"}
    stored = {n.output[0]: n.input[0] for n in graph.node if n.op_type == "QuantizeLinear"}
    for node in graph.node:
        source = stored.get(node.output[0]) or stored.get(node.input[0] if node.input else "")
        if node.op_type not in pairs or source is None or source not in ranges:
            continue
        if source not in names:
            low, high = ranges[source].low, ranges[source].high
            scale = np.float32((high - low) / 255)
            zero = np.uint8(np.clip(round(-low / float(scale)), 0, 255))
            labels = fresh(f"{source}_own_scale", taken), fresh(f"{source}_own_zero", taken)
            for label, value in zip(labels, (scale, zero), strict=True):
                graph.initializer.append(numpy_helper.from_array(np.asarray(value), label))
            names[source] = labels
        node.input[1], node.input[2] = names[source]
        owned.add(node.output[0] if node.op_type == "QuantizeLinear" else node.input[0])
    for value in graph.value_info:
        if value.name in owned:
            value.type.tensor_type.elem_type = TensorProto.UINT8
