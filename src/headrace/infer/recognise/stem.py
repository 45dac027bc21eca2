"""Beginning of a model file: the exporter's metadata, the layers up to the first convolution.

Read from the ONNX file itself, message by message: neither the other weights nor the rest of the
graph are looked at, so it takes milliseconds and no library.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from math import prod
from pathlib import Path

import numpy as np
from msgspec import field

from headrace._core.errors import ModelError
from headrace._core.formats.sniff import is_openvino
from headrace._core.plain_record import PlainRecord
from headrace._core.types import Array
from headrace.network import wire
from headrace.network.external_data import locate

# They change neither values nor what a tensor means.
PASSIVE = ("Identity", "Cast", "Reshape", "Transpose", "Squeeze", "Unsqueeze", "Flatten")

# Numbers of fields in onnx.proto: ModelProto, GraphProto.
_GRAPH, _METADATA = 7, 14
_NODE, _INITIALIZER, _INPUT = 1, 5, 11
_TYPES = {1: "<f4", 2: "u1", 3: "i1", 6: "<i4", 7: "<i8", 10: "<f2", 11: "<f8"}
_MAX_FILE = 1 << 27  # bytes; reading more takes longer than a run shall end later
_MAX_WEIGHTS = 1 << 22
_MAX_TEXT = 1 << 20  # of one metadata value; dictionaries of characters have 30 kB
# Without constants and their copies, which exporters put first: a stem has a few, a Focus a dozen.
_MAX_NODES = 96
_REACH = 40  # values between the input and the first convolution
_SCALING = ("Sub", "Div", "Mul", "Add", "BatchNormalization")
_KEEP_IMAGES = frozenset(
    (*PASSIVE, *_SCALING, "Slice", "SpaceToDepth", "Concat", "Pad", "Split", "Clip", "Resize")
)
_UNTRAINED = 1e-4
_FEW, _DEVIATIONS = 48, 4.0  # weights of a channel, standard deviations; see `_unrelated`


class _Node(PlainRecord, frozen=True):
    """One operator: names of its inputs and outputs, a constant's tensor."""

    op: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    value: memoryview | None = None  # of a Constant


class Stem(PlainRecord):
    """Beginning of a model.

    Attributes:
        input: name of the image input, `axes` its axes as the file has them, None: free.
        metadata: what the exporter wrote beside the graph.
        factor, shift: how the graph changes the input first, for each channel or one for all;
            1 and 0 for not at all.
        steps: operators that scale or centre, each with the largest number of its constant.
        focus: the image is cut into four by strided slices, as YOLOX and early YOLOv5 do.
        conv: weights of the first convolution (M, C, kh, kw).
        untrained: the statistics behind it are as they were before any training; or its bias is,
            and its channels are unrelated.
        direct: it gets the image itself, but for `factor` and `shift`.
        bias: its bias (M,), if any.
        statistics: mean and variance (M,) that a batch normalisation behind it learnt.
    """

    input: str = ""
    axes: tuple[int | None, ...] = ()
    metadata: dict[str, str] = field(default_factory=dict)
    factor: Array = field(default_factory=lambda: np.ones(1))
    shift: Array = field(default_factory=lambda: np.zeros(1))
    steps: list[tuple[str, float]] = field(default_factory=list)
    focus: bool = False
    conv: Array | None = None
    direct: bool = True
    untrained: bool = False
    bias: Array | None = None
    statistics: tuple[Array, Array] | None = None

    @property
    def normalises(self) -> bool:
        """Whether the graph scales or shifts its input."""
        return bool((self.factor != 1).any() or (self.shift != 0).any())


def read_stem(path: Path, most: int = _MAX_FILE) -> Stem | None:
    """Read the beginning of an ONNX file.

    Args:
        path: of the file.
        most: bytes of a file that is read at all.

    Returns:
        None if it is larger, or cannot be read as one.
    """
    try:
        if path.stat().st_size > most:
            return None
        if is_openvino(path):
            from headrace.network.openvino.outline import outline_of
            from headrace.network.openvino.reader import read_openvino

            outline = outline_of(read_openvino(path))
            return stem_of(memoryview(outline.SerializeToString()), path)
        return stem_of(memoryview(path.read_bytes()), path)
    except (OSError, ModelError):
        return None


def stem_of(data: memoryview, path: Path) -> Stem | None:
    """`read_stem` of the bytes of a file that stands at `path`."""
    try:
        return _Reader(data, path).read()
    except (ValueError, wire.WireError):
        return None


class _Reader:
    def __init__(self, data: memoryview, path: Path) -> None:
        self.stem, self.path = Stem(), path
        graph = None
        for number, kind, value in wire.fields(data):
            if number == _GRAPH:
                graph = wire.message(kind, value)
            elif number == _METADATA:
                key, text = _entry(wire.message(kind, value))
                self.stem.metadata[key] = text[:_MAX_TEXT]
        self.nodes: list[_Node] = []
        self.constants: dict[str, _Node] = {}
        self.initializers: list[memoryview] = []
        inputs: list[memoryview] = []
        working = 0
        for number, kind, value in wire.fields(graph) if graph is not None else ():
            if number == _NODE and working < _MAX_NODES:
                node = _node(wire.message(kind, value))
                if node.op in ("Constant", "Identity"):
                    self.constants |= dict.fromkeys(node.outputs, node)
                if node.op != "Constant":
                    self.nodes.append(node)
                working += node.op not in ("Constant", "Identity")
            elif number == _INITIALIZER:
                self.initializers.append(wire.message(kind, value))
            elif number == _INPUT:
                inputs.append(wire.message(kind, value))
        # old exporters list the weights as inputs, too
        real = inputs[:1] if len(inputs) == 1 else [
            x for x in inputs if _name_of(x, 1) not in self.tensors
        ]  # fmt: skip
        if len(real) > 1:  # Paddle writes the size of the image before the image
            planes = [x for x in real if len(list(_axes(x))) == 4]
            real = planes[:1] or real
        if real:
            self.stem.input = _name_of(real[0], 1)
            self.stem.axes = tuple(_axes(real[0]))

    @cached_property
    def tensors(self) -> dict[str, memoryview]:
        """The initialisers by name."""
        return {_name_of(content, 8): content for content in self.initializers}

    def read(self) -> Stem:
        """Follow the input to the first convolution."""
        stem, seen, slices = self.stem, set[int](), 0
        line = [stem.input] if stem.input else []
        for name in line:  # it grows
            users = [n for n in self.nodes if name in n.inputs and id(n) not in seen]
            stem.direct &= len(users) == 1
            for node in users:
                seen.add(id(node))
                if node.op == "Conv":
                    self._take_conv(node)
                    return stem
                stem.direct = stem.direct and self._take(node, name)
                if node.op not in _KEEP_IMAGES:
                    continue
                slices += node.op in ("Slice", "SpaceToDepth")
                stem.focus = slices >= 4
                if node.op in _SCALING:
                    values = (self._value(n) for n in node.inputs if n != name)
                    steps = [float(np.abs(v).max()) for v in values if v is not None and v.size]
                    stem.steps += [(node.op, step) for step in steps[:1]]
                line += [x for x in node.outputs if x][: max(_REACH - len(line), 0)]
        return stem

    def _take(self, node: _Node, name: str) -> bool:
        """Join one operator to `factor` and `shift`; False if that is not all it does."""
        if node.op in ("Cast", "Identity", "Transpose"):
            return True
        if node.op == "BatchNormalization":
            if (learnt := self._statistics(node)) is None or learnt[0].size not in (1, 3):
                return False
            stem, deviation = self.stem, np.sqrt(np.maximum(learnt[1], 1e-12))
            stem.factor, stem.shift = stem.factor / deviation, (stem.shift - learnt[0]) / deviation
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

    def _take_conv(self, node: _Node) -> None:
        weights, bias, *_ = *(self._value(n) for n in node.inputs[1:3]), None, None
        if weights is None or weights.ndim != 4 or not weights.size:
            return
        self.stem.conv = weights
        self.stem.bias = None if bias is None or bias.shape != weights.shape[:1] else bias
        self.stem.untrained = bias is not None and not bias.any() and _unrelated(weights)
        for user in self.nodes:
            if user.op == "BatchNormalization" and node.outputs[0] in user.inputs[:1]:
                learnt = self._statistics(user)
                self.stem.untrained |= self._is_initial(user)
                if learnt is not None and learnt[0].shape == weights.shape[:1]:
                    self.stem.statistics = None if self._is_initial(user) else learnt

    def _is_initial(self, node: _Node) -> bool:
        """True if a batch normalisation was never trained: shift and mean are 0, the variance 1.

        Gains tell nothing: many networks begin with random ones.
        """
        values = zip([self._value(n) for n in node.inputs[2:5]], (0, 0, 1), strict=False)
        return all(v is not None and (np.abs(v - n) < _UNTRAINED).all() for v, n in values)

    def _statistics(self, node: _Node) -> tuple[Array, Array] | None:
        """Mean and variance of a batch normalisation: those of the images in training."""
        mean, variance, *_ = *(self._value(n) for n in node.inputs[3:5]), None, None
        if mean is None or variance is None or mean.shape != variance.shape:
            return None
        return mean, variance

    def _value(self, name: str) -> Array | None:
        """A constant, float64; None where there is none."""
        for _ in range(_REACH):
            content = self.tensors.get(name)
            node = self.constants.get(name)
            if content is None and node is not None:
                if node.op == "Identity" and node.inputs:
                    name = node.inputs[0]
                    continue
                content = node.value
            return None if content is None else _tensor(content, self.path)
        return None


def _unrelated(filters: Array) -> bool:
    """Whether the channels of filters are unrelated, as chance makes them and no training does.

    Of n unrelated pairs the correlation has a standard deviation of 1 / sqrt(n).
    """
    channels = filters.swapaxes(0, 1).reshape(filters.shape[1], -1)
    count = channels.shape[1]
    if len(channels) < 2 or count < _FEW or not channels.std(axis=1).all():
        return False
    pairs = np.corrcoef(channels)[np.triu_indices(len(channels), 1)]
    return bool(np.abs(pairs).max() < _DEVIATIONS / np.sqrt(count))


def _name_of(content: memoryview, number: int) -> str:
    return next((wire.text(k, v) for n, k, v in wire.fields(content) if n == number), "")


def _entry(content: memoryview) -> tuple[str, str]:
    texts = {n: wire.text(k, v) for n, k, v in wire.fields(content)}
    return texts.get(1, ""), texts.get(2, "")


def _node(content: memoryview) -> _Node:
    op, inputs, outputs = "", [], []
    tensor: memoryview | None = None
    for number, kind, value in wire.fields(content):
        if number == 1:
            inputs.append(wire.text(kind, value))
        elif number == 2:
            outputs.append(wire.text(kind, value))
        elif number == 4:
            op = wire.text(kind, value)
        elif number == 5:
            parts = wire.fields(wire.message(kind, value))
            tensor = next((wire.message(k, v) for n, k, v in parts if n == 5), tensor)
    return _Node(op, tuple(inputs), tuple(outputs), tensor)


def _axes(content: memoryview) -> Iterator[int | None]:
    """Axes of a ValueInfoProto: type, tensor type, shape, dimensions."""
    message = content
    for step in (2, 1, 2):
        messages = [wire.message(k, v) for n, k, v in wire.fields(message) if n == step]
        if not messages:
            return
        message = messages[0]
    for number, kind, value in wire.fields(message):
        if number == 1:
            dims = [v for n, _, v in wire.fields(wire.message(kind, value)) if n == 1]
            size = wire.signed(dims[0]) if dims else 0
            yield size if size > 0 else None


def _tensor(content: memoryview, path: Path) -> Array | None:
    dims: list[int] = []
    dtype, raw = "", None
    parts: list[Array] = []
    elsewhere: dict[str, str] = {}
    for number, kind, value in wire.fields(content):
        if number == 1:
            dims += wire.varints(kind, value)
        elif number == 2:
            dtype = _TYPES.get(value, "")
        elif number == 4:
            parts.append(wire.floats(kind, value))
        elif number in (5, 7):
            parts.append(np.array(wire.varints(kind, value), np.int64))
        elif number == 9:
            raw = wire.message(kind, value)
        elif number == 10:
            parts.append(wire.doubles(kind, value))
        elif number == 13:
            elsewhere |= [_entry(wire.message(kind, value))]
    count = prod(dims)
    if not dtype or not 0 <= count <= _MAX_WEIGHTS:
        return None
    if elsewhere:
        raw = memoryview(_read_elsewhere(elsewhere, path, count * np.dtype(dtype).itemsize))
    if raw is not None:
        parts = [np.frombuffer(bytes(raw), dtype)]
    elif dtype == "<f2":
        parts = [part.astype("<u2").view(dtype) for part in parts]  # as integers of their bits
    values = np.concatenate(parts) if parts else np.empty(0)
    return values.astype(np.float64).reshape(dims) if values.size == count else None


def _read_elsewhere(entries: dict[str, str], model: Path, size: int) -> bytes:
    """Bytes of a tensor that lies in another file; none if they cannot be had."""
    try:
        path = locate(entries.get("location", ""), model, where=str(model))
        if not path.is_file():  # a pipe would keep us waiting
            return b""
        with path.open("rb") as file:
            file.seek(int(entries.get("offset") or 0))
            return file.read(size)
    except (ModelError, OSError, ValueError):
        return b""
