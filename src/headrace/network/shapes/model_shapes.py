"""Shapes of a whole model for given inputs, without its weights; also through its loops."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from headrace._core.types import Array, Arrays
from headrace.network.shapes.node_shapes import MISFITS, Shape, infer_node
from headrace.network.shapes.protos import constant_type, read_type
from headrace.network.tensor_spec import TensorType

if TYPE_CHECKING:
    from onnx import NodeProto


_BOOL, _INT64 = 9, 7

_Walk: TypeAlias = "Callable[[Iterable[NodeProto], dict[str, TensorType]], None]"
"""(nodes, infos): adds the types of the nodes' outputs."""


Unknown: TypeAlias = "Callable[[NodeProto, dict[str, TensorType]], list[TensorType | None] | None]"
"""Gives the types of the outputs of a node that ONNX does not define; None if it cannot."""


class ModelShapes:
    """Works out the outputs' shapes again and again for other inputs.

    Args:
        model: an `onnx.ModelProto`'s bytes.
        unknown: infers nodes that ONNX does not define: (node, infos) -> types of its outputs, or
            None.
    """

    def __init__(self, model: bytes, unknown: Unknown | None = None) -> None:
        import onnx

        proto = onnx.ModelProto()
        proto.ParseFromString(model)
        self._unknown = unknown
        self._opset = next(
            (o.version for o in proto.opset_import if o.domain in ("", "ai.onnx")), 1
        )
        self._domains = {o.domain: o.version for o in proto.opset_import}
        self._nodes = list(proto.graph.node)
        self._declared: dict[str, TensorType] = {}
        for value in (*proto.graph.input, *proto.graph.value_info, *proto.graph.output):
            declared = read_type(value.type) or TensorType(0, None)
            self._declared[value.name] = declared.without_names()
        self._constants = {t.name: constant_type(t) for t in proto.graph.initializer}
        self._outputs = [value.name for value in proto.graph.output]
        del proto.graph.initializer[:]
        self._proto = proto  # nodes live in it
        self._known: dict[Hashable, dict[str, Shape | None]] = {}

    def outputs(
        self, shapes: Mapping[str, Shape], values: Arrays | None = None
    ) -> dict[str, Shape | None]:
        """Shapes of the outputs: -1 for axes that depend on the data, None if nothing is known.

        Args:
            shapes: of the inputs; -1 where they are not known.
            values: of inputs that decide shapes.
        """
        values = values or {}
        key = (
            tuple(sorted(shapes.items())),
            tuple((name, value.tobytes()) for name, value in sorted(values.items())),
        )
        if key not in self._known:
            if len(self._known) > 64:
                self._known.clear()
            self._known[key] = self._work_out(shapes, values)
        return self._known[key]

    def _work_out(self, shapes: Mapping[str, Shape], values: Arrays) -> dict[str, Shape | None]:
        infos = dict(self._constants)
        for name, axes in shapes.items():
            infos[name] = TensorType(self._declared[name].elem, tuple(axes), values.get(name))
        self._walk(self._nodes, infos)
        return {n: infos[n].shape if n in infos else None for n in self._outputs}

    def _walk(self, nodes: Iterable[NodeProto], infos: dict[str, TensorType]) -> None:
        for node in nodes:
            try:
                if node.op_type == "Loop" and node.domain in ("", "ai.onnx"):
                    types = _loop_types(node, infos, self._walk)
                else:
                    types = infer_node(node, infos, self._opset, self._domains)
                if types and types[0] is None and self._unknown is not None:
                    types = self._unknown(node, infos) or types
            except MISFITS:  # InferenceError, too
                types = [None] * len(node.output)
            for name, info in zip(node.output, types, strict=False):
                if name:
                    known = info if info is not None else self._declared.get(name)
                    if known is not None:
                        infos[name] = known


def _loop_types(
    node: NodeProto, infos: dict[str, TensorType], walk: _Walk
) -> list[TensorType | None]:
    """Describe the outputs of a `Loop`; None for an output of which nothing is known.

    Axes of a handed-on value that the body changes are unknown. The walk through the body is
    repeated with the shapes that it found until none changes: at most one time more than there are
    axes.

    Args:
        node: the `NodeProto`.
        infos: types of all tensors before it.
        walk: goes through the nodes of the body.
    """
    body = next((a.g for a in node.attribute if a.name == "body"), None)
    names = list(node.input[2:])
    if body is None or len(body.input) != len(names) + 2 or any(n not in infos for n in names):
        return [None] * len(node.output)
    outer = infos | {tensor.name: constant_type(tensor) for tensor in body.initializer}
    outer[body.input[0].name] = TensorType(_INT64, ())
    outer[body.input[1].name] = TensorType(_BOOL, (), _first_condition(node, infos))
    state = [TensorType(infos[n].elem, infos[n].shape) for n in names]
    while True:
        inner = dict(outer)
        for value, info in zip(body.input[2:], state, strict=True):
            inner[value.name] = info
        walk(body.node, inner)
        body_types = [inner.get(value.name) for value in body.output]
        merged = [_either(a, b) for a, b in zip(state, body_types[1:], strict=False)]
        if len(merged) != len(state) or merged == state:
            break
        state = merged
    if len(merged) != len(state):
        return [None] * len(node.output)
    turns = _turns(node, infos, body_types[0])
    return [*state, *[_stacked(info, turns) for info in body_types[1 + len(state) :]]]


def _first_condition(node: NodeProto, infos: dict[str, TensorType]) -> Array | None:
    if len(node.input) < 2 or not node.input[1]:
        return np.array(True)
    info = infos.get(node.input[1])
    return None if info is None or info.known is None else info.known.reshape(())


def _turns(node: NodeProto, infos: dict[str, TensorType], going: TensorType | None) -> int:
    """Number of turns if it is a constant and nothing ends the loop before; else -1."""
    first = _first_condition(node, infos)
    count = infos.get(node.input[0]) if node.input[0] else None
    if first is not None and not first:
        return 0
    if first is None or going is None or going.known is None or not going.known.all():
        return -1
    if count is None or count.known is None:
        return -1
    return max(0, int(count.known.reshape(-1)[0]))


def _either(before: TensorType, after: TensorType | None) -> TensorType:
    now = None if after is None else after.shape
    shape: tuple[int, ...] | None = None
    if now is not None and before.shape is not None and len(now) == len(before.shape):
        shape = tuple(a if a == b else -1 for a, b in zip(before.shape, now, strict=True))
    return TensorType(before.elem, shape)


def _stacked(info: TensorType | None, turns: int) -> TensorType | None:
    if info is None:
        return None
    return TensorType(info.elem, None if info.shape is None else (turns, *info.shape))
