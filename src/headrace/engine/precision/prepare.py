"""A graph made ready for a change of precision: named nodes, known types, constants as weights."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import onnx
from onnx import numpy_helper, shape_inference, version_converter

from headrace._core.errors import ModelError
from headrace.network.graph_builder import fresh

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, NodeProto


Proto: TypeAlias = "ModelProto"


@dataclass(slots=True)
class PrecisionReport:
    """Report about the nodes of a graph in a lower precision.

    Attributes:
        converted: names of nodes in that precision.
        kept: name -> reason of nodes that stay FP32: with FP32 tensors, or for INT8 with weights.
        vanished: weight -> share of its values that became 0.
        missing: tensors that need a scale and have none.
    """

    converted: list[str] = field(default_factory=list)
    kept: dict[str, str] = field(default_factory=dict)
    vanished: dict[str, float] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)


def prepare(proto: Proto, *, opset: int = 0, where: str | None = None) -> Proto:
    """Copy a model: a name for every node, shapes and types inferred, constants as initialisers.

    Models older than `opset` are converted to that version of ONNX's operators.

    Raises:
        ModelError: ONNX's converter cannot bring the model to that opset.
    """
    model = onnx.ModelProto()
    model.CopyFrom(proto)
    if (have := opset_of(model)) < opset:
        try:
            model = version_converter.convert_version(model, opset)
        except Exception as error:  # the converter raises RuntimeError, IndexError and others
            raise ModelError(
                f"the model cannot be brought from opset {have} to {opset}: "
                f"{str(error).strip().splitlines()[:1]}",
                where=where,
                fix=f"export it with opset {opset} or newer",
            ) from error
    _name_nodes(model.graph)
    _lift_constants(model.graph)
    try:
        return shape_inference.infer_shapes(model)
    except Exception:  # types stay unknown where inference gives up; the passes say so by node
        return model


def opset_of(proto: Proto) -> int:
    """Version of ONNX's own operators in the model."""
    return next((o.version for o in proto.opset_import if o.domain in ("", "ai.onnx")), 1)


def captured_names(graph: GraphProto) -> set[str]:
    """Names that graphs inside nodes (If, Loop, Scan) may take from around them."""
    return {name for node in graph.node for inner in _subgraphs(node) for name in _uses(inner)}


def _subgraphs(node: NodeProto) -> Iterator[GraphProto]:
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def _uses(graph: GraphProto) -> Iterable[str]:
    for node in graph.node:
        yield from node.input
        for inner in _subgraphs(node):
            yield from _uses(inner)
    yield from (value.name for value in graph.output)


def _name_nodes(graph: GraphProto) -> None:
    taken = {node.name for node in graph.node}
    seen: set[str] = set()
    for index, node in enumerate(graph.node):
        if not node.name or node.name in seen:
            node.name = fresh(node.name or f"{node.op_type}_{index}", taken)
        seen.add(node.name)


def _lift_constants(graph: GraphProto) -> None:
    """Constant nodes with a tensor become initialisers of the same name."""
    outputs = {value.name for value in graph.output}
    kept = []
    for node in graph.node:
        value = next((a for a in node.attribute if a.name == "value"), None)
        if node.op_type != "Constant" or value is None or node.output[0] in outputs:
            kept.append(node)
            continue
        tensor = graph.initializer.add()
        tensor.CopyFrom(value.t)
        tensor.name = node.output[0]
    if len(kept) != len(graph.node):
        replace_all(graph.node, kept)


def replace_all(repeated: Any, items: Sequence[Any]) -> None:
    """Put messages, some of them its own, into a repeated field in the place of all it has."""
    copies = [type(item)() for item in items]
    for copy, item in zip(copies, items, strict=True):
        copy.CopyFrom(item)
    del repeated[:]
    repeated.extend(copies)


def sort_nodes(graph: GraphProto) -> None:
    """Put every node behind the makers of its inputs; otherwise the order stays."""
    producers = {name: i for i, node in enumerate(graph.node) for name in node.output if name}
    needs = [
        {producers[n] for n in (*node.input, *_inner_uses(node)) if n in producers} - {i}
        for i, node in enumerate(graph.node)
    ]
    done: dict[int, None] = {}
    for first in range(len(needs)):
        stack = [first]
        while stack:
            waits = [n for n in sorted(needs[stack[-1]], reverse=True) if n not in done]
            if waits:
                stack += waits
            else:
                done.setdefault(stack.pop())
    replace_all(graph.node, [graph.node[i] for i in done])


def _inner_uses(node: NodeProto) -> Iterator[str]:
    for inner in _subgraphs(node):
        yield from _uses(inner)


def fold_batch_norms(proto: Proto) -> int:
    """Multiply batch normalisations into the convolution before them; returns how many.

    Quantised weights must be those that the runtime computes with, and every runtime folds them.
    A convolution whose result is used elsewhere, too, stays as it is.
    """
    graph = proto.graph
    weights = {tensor.name: tensor for tensor in graph.initializer}
    uses = Counter(name for node in graph.node for name in node.input)
    uses.update(captured_names(graph))
    uses.update(value.name for value in graph.output)
    producers = {name: node for node in graph.node for name in node.output}
    taken = set(weights) | set(producers) | {v.name for v in graph.input}
    gone = []
    for norm in graph.node:
        if norm.op_type != "BatchNormalization" or len([n for n in norm.output if n]) != 1:
            continue
        conv = producers.get(norm.input[0])
        parts: list[Any] = [weights.get(name) for name in norm.input[1:5]]
        if conv is None or conv.op_type != "Conv" or uses[norm.input[0]] != 1 or None in parts:
            continue
        names = list(conv.input[1:3])
        if any(name and name not in weights for name in names):
            continue
        gamma, beta, mean, variance = (numpy_helper.to_array(p).astype(np.float64) for p in parts)
        epsilon = next((a.f for a in norm.attribute if a.name == "epsilon"), 1e-5)
        factor = gamma / np.sqrt(variance + epsilon)
        kernel = numpy_helper.to_array(weights[names[0]])
        bias = numpy_helper.to_array(weights[names[1]]) if names[1:] and names[1] else 0.0
        shape = (-1, *[1] * (kernel.ndim - 1))
        for name, values in (
            (f"{names[0]}_folded", kernel * factor.reshape(shape)),
            (f"{norm.output[0]}_bias", (bias - mean) * factor + beta),
        ):
            folded = graph.initializer.add()
            folded.CopyFrom(
                numpy_helper.from_array(values.astype(kernel.dtype), fresh(name, taken))
            )
            names.append(folded.name)
        conv.input[:] = [conv.input[0], *names[-2:]]
        conv.output[0] = norm.output[0]
        producers[norm.output[0]] = conv
        gone.append(norm.name)
    if gone:
        replace_all(graph.node, [node for node in graph.node if node.name not in set(gone)])
        used = {name for node in graph.node for name in node.input} | captured_names(graph)
        used |= {value.name for value in graph.output}
        replace_all(graph.initializer, [t for t in graph.initializer if t.name in used])
    return len(gone)
