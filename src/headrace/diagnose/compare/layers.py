"""Two engines tensor by tensor on the same input: which one departs first, and where most is lost.

Each graph runs with its intermediate tensors as outputs, on its own runtime. A runtime fuses fewer
operators then, so the last bits may differ from those of the engine itself.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

import numpy as np
import onnx
from onnx import TensorProto

from headrace._core.errors import EngineError
from headrace._core.types import Array
from headrace.diagnose.compare.sides import Side
from headrace.engine.backends import get_backend
from headrace.engine.plan import MODEL_BLOB
from headrace.engine.precision.prepare import Proto, prepare
from headrace.engine.precision.rounded import half_tensors, rounded_layers

DEPARTS_BELOW_DB = 80.0
"""A tensor with less signal to noise has departed: the order of FP32 sums alone gives 100 and more,
FP16 about 65, INT8 20 to 40."""

_MAX_BYTES = 2**29  # of tensors put out in one run
_HALVES = {TensorProto.FLOAT16: "FP16", TensorProto.BFLOAT16: "BF16"}
_FLOATS = (TensorProto.FLOAT, TensorProto.DOUBLE, *_HALVES)
_OWN = ("QuantizeLinear", "DequantizeLinear", "Cast")  # written by a precision, not by the model
Tensor = Array


@dataclass(frozen=True, slots=True)
class TensorDrift:
    """A tensor of both graphs.

    Attributes:
        name: in A's graph.
        other: in B's graph.
        node: of A that makes it.
        operator: of that node.
        precision: of B's node: `INT8`, `FP16`, `BF16`, or empty.
        shape: of the tensor.
        decibels: signal to noise; infinity for the same bits.
        largest: greatest absolute difference.
        loss: decibels lost between the worst input of the node and this tensor; 0 if none is.
    """

    name: str
    other: str
    node: str
    operator: str
    precision: str
    shape: tuple[int, ...]
    decibels: float
    largest: float
    loss: float = 0.0

    def __str__(self) -> str:
        kind = f"{self.operator}, {self.precision}" if self.precision else self.operator
        return f"node {self.node} ({kind})"


@dataclass(frozen=True, slots=True)
class LayerDrift:
    """All tensors that both graphs have, in A's order.

    Attributes:
        tensors: the pairs.
        by_name: True if they were paired by name, False by place and shape.
        missing: reason if tensors cannot be compared; empty otherwise.
    """

    tensors: tuple[TensorDrift, ...] = ()
    by_name: bool = True
    missing: str = ""

    @property
    def first(self) -> TensorDrift | None:
        """The first tensor below `DEPARTS_BELOW_DB`."""
        return next((t for t in self.tensors if t.decibels < DEPARTS_BELOW_DB), None)

    @property
    def worst(self) -> TensorDrift | None:
        """The tensor with the least signal to noise."""
        return min(self.tensors, key=lambda t: t.decibels, default=None)


def decibels(reference: Tensor, other: Tensor) -> float:
    """Signal to noise of `other`; infinity for equal tensors, -infinity for noise alone."""
    a, b = reference.astype(np.float64), other.astype(np.float64)
    both = np.isfinite(a) & np.isfinite(b)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    if same.all():
        return math.inf
    if not (both | same).all():
        return -math.inf
    noise = float(np.square(a[both] - b[both]).sum())
    signal = float(np.square(a[both]).sum())
    if noise == 0 or signal == 0:
        return math.inf if noise == 0 else -math.inf
    return 10 * math.log10(signal / noise)


def compare_layers(a: Side, b: Side, feeds: Mapping[str, Tensor]) -> LayerDrift:
    """Run both graphs on the same input, with every tensor that both have as an output.

    Args:
        a, b: models whose inputs have the same shapes.
        feeds: A's inputs by name.

    Returns:
        The tensors, or the reason why there are none: a runtime that fails is no error here.
    """
    try:
        return _compare(a, b, feeds)
    except EngineError as error:
        return LayerDrift(missing=f"{error:line}")


def _compare(a: Side, b: Side, feeds: Mapping[str, Tensor]) -> LayerDrift:
    first, second = _Graph(a), _Graph(b)
    if len(a.model.session.inputs) != len(b.model.session.inputs):
        return LayerDrift(missing="the networks have different numbers of inputs")
    pairs, by_name = _pairs(first, second)
    if not pairs:
        return LayerDrift(missing="no tensor of both graphs has the same name or shape")
    values = [feeds[spec.name] for spec in a.model.session.inputs]
    own = [_feeds(side, values) for side in (a, b)]
    drifts: dict[str, TensorDrift] = {}
    noise: dict[str, float] = {}
    for part in _parts(pairs, first):
        left = first.run([n for n, _ in part], own[0])
        right = second.run([n for _, n in part], own[1])
        for name, other in part:
            x, y = left[name], right[other]
            if x.shape != y.shape:
                continue
            ratio = decibels(x, y)
            node = first.makers[name]
            sources = [first.source(n) for n in node.input]
            before = min((noise[n] for n in sources if n in noise), default=math.inf)
            noise[name] = ratio
            drifts[name] = TensorDrift(
                name, other, node.name, node.op_type, second.precision(other), x.shape, ratio,
                _largest(x, y), _loss(before, ratio),
            )  # fmt: skip
    if not drifts:
        return LayerDrift(missing="no tensor of both graphs has the same shape")
    return LayerDrift(tuple(drifts.values()), by_name)


def _feeds(side: Side, values: Sequence[Tensor]) -> dict[str, Tensor]:
    """Arrays of the types and the batch that the runtime takes."""
    session, feeds = side.model.session, {}
    for spec, value in zip(session.inputs, values, strict=True):
        if session.fixed_batch is not None and spec.name in session.batched_inputs:
            value = np.repeat(value[:1], session.fixed_batch, axis=0)
        feeds[spec.name] = np.ascontiguousarray(value, dtype=spec.dtype)
    return feeds


def _largest(a: Tensor, b: Tensor) -> float:
    with np.errstate(invalid="ignore"):
        gap = np.abs(a.astype(np.float64) - b.astype(np.float64))
    return float(np.nan_to_num(gap, nan=0.0).max(initial=0.0))


def _loss(before: float, after: float) -> float:
    """Decibels lost, with the same bits as 150 dB and noise alone as 0."""
    high, low = min(before, 150.0), max(min(after, 150.0), 0.0)
    return max(0.0, high - low)


class _Graph:
    """The graph of an engine, with nodes that have names and tensors that have types."""

    def __init__(self, side: Side) -> None:
        plan = side.plan
        where = side.title
        if not plan.blobs.get(MODEL_BLOB):
            raise EngineError("an engine of TensorRT shows no tensors", where=where)
        if plan.header.plugins:
            raise EngineError("a network with plugins is not shown layer by layer", where=where)
        if plan.is_large:
            raise EngineError("a model over 2 GiB is not shown layer by layer", where=where)
        proto = onnx.ModelProto()
        proto.ParseFromString(plan.whole_model())
        self.proto: Proto = prepare(proto, where=where)
        graph = self.proto.graph
        self._backend = get_backend(plan.header.runtime.name)
        self._options = plan.run_options(threads=side.model.session.options.threads, streams=1)
        self.makers = {name: node for node in graph.node for name in node.output if name}
        self._halves = half_tensors(graph)
        self.makers |= rounded_layers(graph)
        values = (*graph.value_info, *graph.output)
        self.info = {v.name: v for v in values if v.type.tensor_type.elem_type in _FLOATS}
        self.names = [
            name
            for name, node in self.makers.items()
            if name in self.info and node.op_type not in _OWN
        ]

    def shape(self, name: str) -> tuple[int, ...]:
        dims = self.info[name].type.tensor_type.shape.dim
        return tuple(d.dim_value if d.HasField("dim_value") else 1 for d in dims)

    def source(self, name: str) -> str:
        """The tensor of the model behind casts and Q/DQ pairs."""
        while name in self.makers and self.makers[name].op_type in _OWN:
            name = self.makers[name].input[0]
        return name

    def precision(self, name: str) -> str:
        node = self.makers[name]
        sources = [self.makers[n].op_type for n in node.input if n in self.makers]
        if "DequantizeLinear" in sources:
            return "INT8"
        if name in self._halves:
            return "FP16"
        return _HALVES.get(self.info[name].type.tensor_type.elem_type, "")

    def run(self, names: list[str], feeds: dict[str, Tensor]) -> dict[str, Tensor]:
        proto = onnx.ModelProto()
        proto.CopyFrom(self.proto)
        there = {value.name for value in proto.graph.output}
        proto.graph.output.extend(self.info[name] for name in names if name not in there)
        runner = self._backend.open(proto.SerializeToString(), self._options)
        try:
            tensors = dict(zip([s.name for s in runner.outputs], runner.run(feeds), strict=True))
        finally:
            runner.close()
        return {name: tensors[name] for name in names}


def _pairs(a: _Graph, b: _Graph) -> tuple[list[tuple[str, str]], bool]:
    """Tensors of the same name, or if most names differ those of the same operator and shape."""
    known = set(b.names)
    named = [(name, name) for name in a.names if name in known]
    if 2 * len(named) >= min(len(a.names), len(b.names)):
        return named, True
    first, second = ([(g.makers[n].op_type, g.shape(n)) for n in g.names] for g in (a, b))
    blocks = SequenceMatcher(None, first, second, autojunk=False).get_matching_blocks()
    return [
        (a.names[block.a + i], b.names[block.b + i]) for block in blocks for i in range(block.size)
    ], False


def _parts(pairs: list[tuple[str, str]], graph: _Graph) -> Iterator[list[tuple[str, str]]]:
    """As many tensors at once as fit into `_MAX_BYTES`."""
    part: list[tuple[str, str]] = []
    size = 0
    for pair in pairs:
        count = 4 * math.prod(graph.shape(pair[0]))
        if part and size + count > _MAX_BYTES:
            yield part
            part, size = [], 0
        part.append(pair)
        size += count
    yield part
