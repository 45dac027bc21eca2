"""Making the batch of a graph free that was exported for one item.

The axis itself is easy; what bakes the 1 in are shapes written as constants. Those that can be
declared are rewritten. Whether the result is right is for the caller to find out by running it, see
`headrace.engine.dynamic_batch`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headrace._core.errors import ModelError
from headrace._core.types import Array
from headrace.network.network import Network

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, NodeProto


_BATCH = "batch"


def free_batch(network: Network) -> Network:
    """Return a copy of `network` with a free batch axis.

    Raises:
        ModelError: why that cannot be: an input or output without a batch of 1 in front; a shape
            inside that leaves no room for a batch.
    """
    from headrace.network.ir import ir

    for kind, specs in (("input", network.inputs), ("output", network.outputs)):
        for spec in specs:
            if not spec.shape or spec.shape[0] != 1:
                raise ModelError(f"{kind} {spec} has no batch of 1 in front")
    proto = network.to_proto()
    _Editor(proto).run()
    model = ir.from_proto(proto)
    free = Network(
        model,
        path=network.path,
        size_bytes=network.size_bytes,
        sha256=network.sha256,
        external_locations=network.external_locations,
    )
    free.made_from = network.made_from
    free.recipe = network.recipe
    return free


class _Editor:
    """Rewrites a ModelProto in place."""

    def __init__(self, proto: ModelProto) -> None:
        self.graph = proto.graph
        self.dims = _known_dims(proto)
        self.constants = _constants(self.graph)
        names = {value.name for value in self.graph.input}
        self.depends = set(names)  # values that the inputs decide
        for node in self.graph.node:
            if any(name in self.depends for name in node.input):
                self.depends.update(node.output)

    def run(self) -> None:
        added = 0
        for node in self.graph.node:
            if not node.input or node.input[0] not in self.depends:
                continue
            new = None
            if node.op_type == "Reshape" and len(node.input) > 1:
                new, at = self._reshape(node), 1
            elif node.op_type == "Resize" and len(node.input) > 3 and node.input[3]:
                new, at = self._resize(node), 3
            if new is not None:
                added += 1
                name = f"free_batch_{added}_{node.input[at]}"
                self._constant(name, new)
                if at == 3:  # scales in the place of sizes
                    node.input[3] = ""
                    node.input[2] = name
                    del node.input[3:]
                else:
                    node.input[at] = name
        for value in (*self.graph.input, *self.graph.output):
            axis = value.type.tensor_type.shape.dim[0]
            axis.ClearField("dim_value")
            axis.dim_param = _BATCH
        del self.graph.value_info[:]  # they say 1

    def _constant(self, name: str, array: Array) -> None:
        from onnx import numpy_helper

        self.graph.initializer.append(numpy_helper.from_array(array, name))

    def _reshape(self, node: NodeProto) -> Array | None:
        target = self.constants.get(node.input[1])
        if target is None or not target.size:
            return None  # computed from the shape at hand, as it should be
        first = int(target[0])
        if first in (0, -1):
            return None
        dims = self.dims.get(node.input[0])
        new = target.copy()
        if first == 1 and dims and dims[0] == 1:
            new[0] = 0  # the batch stays where it is
        elif -1 not in target:
            new[0] = -1  # the batch goes into the first axis, or comes out of it
        else:
            raise ModelError(
                f"node {node.name!r} (Reshape) to {target.tolist()} leaves no axis for the batch"
            )
        if any(a.name == "allowzero" and a.i for a in node.attribute):
            raise ModelError(f"node {node.name!r} (Reshape) reads 0 as a length")
        return new

    def _resize(self, node: NodeProto) -> Array | None:
        sizes = self.constants.get(node.input[3])
        dims = self.dims.get(node.input[0])
        if sizes is None or any(a.name == "axes" for a in node.attribute):
            return None
        if not dims or len(dims) != len(sizes) or not all(isinstance(d, int) for d in dims):
            raise ModelError(f"node {node.name!r} (Resize) to a size that is written in")
        scales: Array = (sizes / np.array(dims)).astype(np.float32)
        return scales


def _constants(graph: GraphProto) -> dict[str, Array]:
    """Small whole numbers that the graph holds."""
    from onnx import TensorProto, numpy_helper

    constants = {
        t.name: numpy_helper.to_array(t)
        for t in graph.initializer
        if t.data_type == TensorProto.INT64 and len(t.dims) == 1 and t.dims[0] <= 16
    }
    for node in graph.node:
        if node.op_type == "Constant":
            for attribute in node.attribute:
                if attribute.name == "value" and attribute.t.data_type == TensorProto.INT64:
                    array = numpy_helper.to_array(attribute.t)
                    if array.ndim == 1 and array.size <= 16:
                        constants[node.output[0]] = array
                elif attribute.name == "value_ints":
                    constants[node.output[0]] = np.array(attribute.ints, np.int64)
    return constants


def _known_dims(proto: ModelProto) -> dict[str, list[int | None]]:
    import onnx

    try:
        graph = onnx.shape_inference.infer_shapes(proto, data_prop=True).graph
    except Exception:  # any kind comes out of the checker; what the graph says is known anyway
        graph = proto.graph
    by_name = {}
    for value in (*graph.input, *graph.value_info, *graph.output):
        tensor = value.type.tensor_type
        if tensor.HasField("shape"):
            by_name[value.name] = [
                d.dim_value if d.HasField("dim_value") else None for d in tensor.shape.dim
            ]
    return by_name
