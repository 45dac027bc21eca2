"""What the beginning of a model file tells about the pictures it was trained on.

Read from the ONNX file itself, message by message: neither weights nor the rest of the graph are
looked at, so it takes milliseconds and no library.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from noria.network import wire

# Numbers of fields in onnx.proto: ModelProto, GraphProto, NodeProto, TensorProto.
_GRAPH, _METADATA = 7, 14
_NODE, _INITIALIZER, _INPUT = 1, 5, 11
_FLOAT, _DOUBLE = 1, 11
_MAX_FILE = 1 << 27  # bytes; reading more takes longer than a run shall end later
_MAX_WEIGHTS = 1 << 22
_NEAR_INPUT = 24  # nodes: a stem has a few, a Focus of slices a dozen

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Node:
    """One operator: names of its inputs and outputs, its integer lists, a constant's tensor."""

    op: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    ints: dict[str, list[int]]
    value: memoryview | None = None  # of a Constant


@dataclass(slots=True)
class Stem:
    """The beginning of a model.

    Attributes:
        input: name of the picture input, `axes` its axes as the file has them, None: free.
        metadata: what the exporter wrote beside the graph.
        normalised: how the graph changes the input first: factor and shift, for each channel or
            one for all; (1, 0) for not at all.
        conv: weights of the first convolution (M, C, kh, kw), where it follows directly.
        bias: its bias (M,), if any.
        statistics: mean and variance (M,) that a batch normalisation behind it learnt.
    """

    input: str = ""
    axes: tuple[int | None, ...] = ()
    metadata: dict[str, str] = field(default_factory=dict)
    factor: Array = field(default_factory=lambda: np.ones(1))
    shift: Array = field(default_factory=lambda: np.zeros(1))
    conv: Array | None = None
    bias: Array | None = None
    statistics: tuple[Array, Array] | None = None

    @property
    def normalises(self) -> bool:
        """Whether the graph scales or shifts its input."""
        return bool((self.factor != 1).any() or (self.shift != 0).any())


def read_stem(path: Path) -> Stem | None:
    """The beginning of an ONNX file; None if it cannot be read as one."""
    try:
        if path.stat().st_size > _MAX_FILE:
            return None
        return _Reader(memoryview(path.read_bytes())).read()
    except (OSError, ValueError, wire.WireError):
        return None


class _Reader:
    def __init__(self, data: memoryview) -> None:
        self.stem = Stem()
        graph = None
        for number, kind, value in wire.fields(data):
            if number == _GRAPH:
                graph = wire.message(kind, value)
            elif number == _METADATA:
                texts = {n: wire.text(k, v) for n, k, v in wire.fields(wire.message(kind, value))}
                self.stem.metadata[texts.get(1, "")] = texts.get(2, "")
        self.nodes: list[Node] = []
        self.initializers: list[memoryview] = []
        inputs: list[memoryview] = []
        for number, kind, value in wire.fields(graph) if graph is not None else ():
            if number == _NODE and len(self.nodes) < _NEAR_INPUT * 4:
                self.nodes.append(_node(wire.message(kind, value)))
            elif number == _INITIALIZER:
                self.initializers.append(wire.message(kind, value))
            elif number == _INPUT:
                inputs.append(wire.message(kind, value))
        # old exporters list the weights as inputs, too
        real = inputs[:1] if len(inputs) == 1 else [
            x for x in inputs if _name_of(x, 1) not in self.tensors
        ]  # fmt: skip
        if real:
            self.stem.input = _name_of(real[0], 1)
            self.stem.axes = tuple(_axes(real[0]))

    @cached_property
    def tensors(self) -> dict[str, memoryview]:
        """The initialisers by name."""
        return {_name_of(content, 8): content for content in self.initializers}

    def read(self) -> Stem:
        """Follow the input to the first convolution."""
        stem, name = self.stem, self.stem.input
        for _ in range(_NEAR_INPUT):
            users = [n for n in self.nodes if name in n.inputs]
            if len(users) != 1 or not users[0].outputs:
                break  # a Focus stem, or the end
            node = users[0]
            if node.op == "Conv":
                self._take_conv(node)
                break
            if node.op == "BatchNormalization":
                if not self._take_normalisation(node):
                    break
            elif not self._take_arithmetic(node, name):
                break
            name = node.outputs[0]
        return stem

    def _take_arithmetic(self, node: Node, name: str) -> bool:
        if node.op in ("Cast", "Identity", "Transpose"):
            return True
        if node.op not in ("Sub", "Div", "Mul", "Add") or len(node.inputs) != 2:
            return False
        constant = self._value(node.inputs[1 if node.inputs[0] == name else 0])
        if constant is None or constant.size not in (1, 3):
            return False
        value, first = constant.reshape(-1), node.inputs[0] == name
        stem = self.stem
        if node.op == "Mul":
            stem.factor, stem.shift = stem.factor * value, stem.shift * value
        elif node.op == "Add":
            stem.shift = stem.shift + value
        elif node.op == "Sub" and first:
            stem.shift = stem.shift - value
        elif node.op == "Div" and first and (value != 0).all():
            stem.factor, stem.shift = stem.factor / value, stem.shift / value
        else:
            return False
        return True

    def _take_normalisation(self, node: Node) -> bool:
        """A batch normalisation of the input itself: its mean and deviation are the pictures'."""
        parts = [self._value(n) for n in node.inputs[3:5]]
        if len(parts) != 2 or parts[0] is None or parts[1] is None or parts[0].size not in (1, 3):
            return False
        deviation = np.sqrt(np.maximum(parts[1], 1e-12))
        self.stem.factor = self.stem.factor / deviation
        self.stem.shift = (self.stem.shift - parts[0]) / deviation
        return True

    def _take_conv(self, node: Node) -> None:
        weights = self._value(node.inputs[1]) if len(node.inputs) > 1 else None
        if weights is None or weights.ndim != 4:
            return
        bias = self._value(node.inputs[2]) if len(node.inputs) > 2 else None
        users = [n for n in self.nodes if node.outputs[0] in n.inputs]
        self.stem.conv, self.stem.bias = weights, bias
        if len(users) == 1 and users[0].op == "BatchNormalization" and len(users[0].inputs) == 5:
            mean, variance = (self._value(n) for n in users[0].inputs[3:5])
            sizes = {len(weights)} if mean is None or variance is None else {mean.size}
            if mean is not None and variance is not None and sizes == {len(weights)}:
                self.stem.statistics = mean.reshape(-1), variance.reshape(-1)

    def _value(self, name: str) -> Array | None:
        """A constant, float64; None where there is none, or it lies in another file."""
        content = self.tensors.get(name)
        if content is None:
            node = next((n for n in self.nodes if n.op == "Constant" and name in n.outputs), None)
            content = None if node is None else node.value
        return None if content is None else _tensor(content)


def _name_of(content: memoryview, number: int) -> str:
    return next((wire.text(k, v) for n, k, v in wire.fields(content) if n == number), "")


def _node(content: memoryview) -> Node:
    op, inputs, outputs = "", [], []
    ints: dict[str, list[int]] = {}
    tensor: memoryview | None = None
    for number, kind, value in wire.fields(content):
        if number == 1:
            inputs.append(wire.text(kind, value))
        elif number == 2:
            outputs.append(wire.text(kind, value))
        elif number == 4:
            op = wire.text(kind, value)
        elif number == 5:
            name, numbers = "", []
            for n, k, v in wire.fields(wire.message(kind, value)):
                if n == 1:
                    name = wire.text(k, v)
                elif n == 5:
                    tensor = wire.message(k, v)
                elif n == 8:
                    numbers += wire.varints(k, v)
            ints[name] = numbers
    return Node(op, tuple(inputs), tuple(outputs), ints, tensor)


def _axes(content: memoryview) -> Iterator[int | None]:
    """Axes of a ValueInfoProto: type, tensor type, shape, dimensions."""
    message = content
    for step in (2, 1, 2):
        found = [wire.message(k, v) for n, k, v in wire.fields(message) if n == step]
        if not found:
            return
        message = found[0]
    for number, kind, value in wire.fields(message):
        if number == 1:
            dims = [v for n, _, v in wire.fields(wire.message(kind, value)) if n == 1]
            size = wire.signed(dims[0]) if dims else 0
            yield size if size > 0 else None


def _tensor(content: memoryview) -> Array | None:
    dims: list[int] = []
    kind_of, raw = 0, None
    parts: list[Array] = []
    for number, kind, value in wire.fields(content):
        if number == 1:
            dims += wire.varints(kind, value)
        elif number == 2:
            kind_of = value
        elif number == 4:
            parts.append(wire.floats(kind, value))
        elif number == 9:
            raw = wire.message(kind, value)
        elif number == 10:
            parts.append(wire.doubles(kind, value))
        elif number in (13, 14):
            return None  # in another file
    if kind_of not in (_FLOAT, _DOUBLE) or prod(dims) > _MAX_WEIGHTS:
        return None
    if raw is not None:
        parts = [np.frombuffer(bytes(raw), "<f4" if kind_of == _FLOAT else "<f8")]
    values = np.concatenate(parts) if parts else np.empty(0)
    return values.astype(np.float64).reshape(dims) if values.size == prod(dims) else None
