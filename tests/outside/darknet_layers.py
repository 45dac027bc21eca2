"""The layers of a Darknet network, in one form for all makers, with the values of their outputs.

A maker may spell a layer in several operators: normalisation behind a convolution becomes a part of
it, an upsampling by two matrices becomes one layer, and what changes nothing is left out.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import helper, numpy_helper

from headrace.network.network import Network

DEFAULTS: dict[str, Any] = {"ceil_mode": 0, "group": 1}
NOT_DATA = {"Slice": 1, "Resize": 1, "Conv": 1}
"""Inputs that are data; the others are parameters."""


@dataclass
class Layer:
    """`inputs` are places in the list of layers, -1 the image; `number` is that of its name."""

    operator: str
    number: int
    inputs: tuple[int, ...]
    output: npt.NDArray[Any]
    parameters: dict[str, Any] = field(default_factory=dict)
    weights: list[npt.NDArray[Any]] = field(default_factory=list)

    def described(self) -> tuple[Any, ...]:
        """All but numbers in arrays and names."""
        return self.operator, self.inputs, self.output.shape, self.parameters

    def arrays(self) -> list[npt.NDArray[Any]]:
        """The weights and the output."""
        return [*self.weights, self.output]


def heads(network: Network) -> list[str]:
    """The tensors that go into plugins; without plugins the outputs."""
    graph = network.to_proto().graph
    plugins = [node.input for node in graph.node if node.domain == "headrace.plugin"]
    names = [name for inputs in plugins for name in inputs]
    return list(dict.fromkeys(names)) or [value.name for value in graph.output]


def layers(network: Network, image: npt.NDArray[np.float32]) -> list[Layer]:
    """The layers before the plugins, in the order of the network."""
    return _Reader(network.to_proto(), heads(network), image).layers


class _Reader:
    def __init__(self, model: onnx.ModelProto, ends: list[str], image: npt.NDArray[Any]) -> None:
        nodes = _before(model, ends)
        self.fixed = {i.name: numpy_helper.to_array(i) for i in model.graph.initializer}
        (self.input,) = (i.name for i in model.graph.input if i.name not in self.fixed)
        self.values = _run(model, nodes, self.input, image)
        self.layers: list[Layer] = []
        self.place = {self.input: -1}
        reached = set(ends)
        for node in reversed(nodes):  # not the nodes that compute parameters
            if node.output[0] in reached:
                reached.update(list(node.input)[: NOT_DATA.get(node.op_type)])
        for node in nodes:
            if node.output[0] in reached and node.output[0] not in self.fixed:
                self._read(node)
        self.ends = [self.place[end] for end in ends]

    def _read(self, node: onnx.NodeProto) -> None:
        data = [name for name in node.input if name in self.place]
        fixed = [self.fixed[name] for name in node.input if name in self.fixed]
        inputs = tuple(self.place[name] for name in data)
        output = self.values[node.output[0]]
        last = self.layers[inputs[0]] if self.layers else None
        if len(data) == 1 and self._changes_nothing(node, fixed):
            self.place[node.output[0]] = inputs[0]
            return
        if last is not None and len(data) == 1 and node.op_type in ("Mul", "Add"):
            assert last.operator == "Conv"  # its normalisation
            weight, bias = last.weights
            of_channels = fixed[0].reshape(-1)
            if node.op_type == "Mul":
                last.weights = [weight * of_channels.reshape(-1, 1, 1, 1), bias * of_channels]
            else:
                last.weights = [weight, bias + of_channels]
            last.output = output
            self.place[node.output[0]] = inputs[0]
            return
        layer = Layer(node.op_type, int(re.findall(r"_(\d+)", node.name)[0]), inputs, output)
        if node.op_type == "MatMul":
            if not self._is_upsampling(layer, fixed[0], left=node.input[1] == data[0]):
                self.layers.append(layer)
                self.place[node.output[0]] = len(self.layers) - 1
                return
            layer = self.layers.pop()
        attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        layer.parameters |= {k: v for k, v in attributes.items() if DEFAULTS.get(k, ()) != v}
        if node.op_type == "Conv":
            filters = output.shape[1]
            zeros = np.zeros(filters, np.float32)
            layer.weights = [fixed[0], fixed[1] if len(fixed) > 1 else zeros]
        if node.op_type == "Resize":
            layer.parameters["scales"] = fixed[-1].tolist()
        if node.op_type == "Slice":
            layer.parameters["starts"] = self._starts(node, output.ndim)
        self.layers.append(layer)
        self.place[node.output[0]] = len(self.layers) - 1

    @staticmethod
    def _changes_nothing(node: onnx.NodeProto, fixed: list[npt.NDArray[Any]]) -> bool:
        neutral = {"Mul": 1, "Add": 0, "Pow": 1}
        if node.op_type in neutral:
            return bool((fixed[0] == neutral[node.op_type]).all())
        return node.op_type == "Identity" or (node.op_type == "Concat" and not fixed)

    def _is_upsampling(self, layer: Layer, matrix: npt.NDArray[Any], left: bool) -> bool:
        """Whether the second of two matrices, which repeat rows and columns, came."""
        tall = matrix.squeeze() if left else matrix.squeeze().T
        scale = len(tall) // tall.shape[1]
        np.testing.assert_array_equal(tall, np.repeat(np.eye(tall.shape[1]), scale, 0))
        if left:
            return False
        first = self.layers[-1]
        assert (first.operator, layer.inputs) == ("MatMul", (len(self.layers) - 1,))
        first.operator, first.output = "Resize", layer.output
        ways = {"mode": b"nearest", "nearest_mode": b"floor"}
        ways["coordinate_transformation_mode"] = b"asymmetric"
        first.parameters = {**ways, "scales": [1, 1, scale, scale]}
        return True

    def _starts(self, node: onnx.NodeProto, axes: int) -> list[int]:
        found = [0] * axes
        starts, _, *more = ([*self.values[name]] for name in node.input[1:] if name)
        assert all(step == 1 for step in more[1]) if len(more) > 1 else True
        for axis, start in zip(more[0] if more else range(axes), starts, strict=True):
            found[int(axis)] = int(start)
        return found


def _before(model: onnx.ModelProto, ends: list[str]) -> list[onnx.NodeProto]:
    """The nodes that some tensors need, in order."""
    needed, kept = set(ends), []
    for node in reversed(model.graph.node):
        if not needed.isdisjoint(node.output):
            kept.append(node)
            needed |= set(node.input)
    return kept[::-1]


def _run(
    model: onnx.ModelProto, nodes: list[onnx.NodeProto], name: str, image: npt.NDArray[Any]
) -> dict[str, npt.NDArray[Any]]:
    """The values of all tensors."""
    import onnxruntime

    names = [output for node in nodes for output in node.output]
    graph = model.graph
    fixed = {i.name: numpy_helper.to_array(i) for i in graph.initializer}
    opsets = [one for one in model.opset_import if one.domain != "headrace.plugin"]
    ends = [onnx.ValueInfoProto(name=n) for n in names]
    made = helper.make_graph(nodes, "before", graph.input, ends, graph.initializer)
    alone = helper.make_model(made, opset_imports=opsets, ir_version=model.ir_version)
    session = onnxruntime.InferenceSession(alone.SerializeToString())
    return fixed | dict(zip(names, session.run(names, {name: image}), strict=True))
