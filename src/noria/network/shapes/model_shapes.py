"""Shapes of a whole model for given inputs, without its weights."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from noria.network.shapes.loops import loop_types
from noria.network.shapes.node_shapes import InferenceError, Shape, infer_node
from noria.network.shapes.protos import constant_type, read_type
from noria.network.tensor_spec import TensorType


class ModelShapes:
    """Works out the outputs' shapes again and again for other inputs.

    Args:
        model: an `onnx.ModelProto`'s bytes.
        unknown: infers nodes that ONNX does not define: (node, infos) -> types of its outputs, or
            None.
    """

    def __init__(self, model: bytes, unknown: Any = None) -> None:
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
        self._constants: dict[str, TensorType] = {}
        for tensor in proto.graph.initializer:
            self._constants[tensor.name] = constant_type(tensor)
        self._outputs = [value.name for value in proto.graph.output]
        del proto.graph.initializer[:]
        self._proto = proto  # nodes live in it
        self._known: dict[Any, dict[str, Shape | None]] = {}

    def outputs(
        self, shapes: Mapping[str, Shape], values: Mapping[str, Any] | None = None
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

    def _work_out(
        self, shapes: Mapping[str, Shape], values: Mapping[str, Any]
    ) -> dict[str, Shape | None]:
        infos = dict(self._constants)
        for name, axes in shapes.items():
            infos[name] = TensorType(self._declared[name].elem, tuple(axes), values.get(name))
        self._walk(self._nodes, infos)
        return {n: infos[n].shape if n in infos else None for n in self._outputs}

    def _walk(self, nodes: Any, infos: dict[str, TensorType]) -> None:
        for node in nodes:
            try:
                if node.op_type == "Loop" and node.domain in ("", "ai.onnx"):
                    found = loop_types(node, infos, self._walk)
                else:
                    found = infer_node(node, infos, self._opset, self._domains)
                if found and found[0] is None and self._unknown is not None:
                    found = self._unknown(node, infos) or found
            except InferenceError:
                found = [None] * len(node.output)
            for name, info in zip(node.output, found, strict=False):
                if name:
                    known = info if info is not None else self._free(name)
                    if known is not None:
                        infos[name] = known

    def _free(self, name: str) -> TensorType | None:
        """The type that the model declares."""
        return self._declared.get(name)
