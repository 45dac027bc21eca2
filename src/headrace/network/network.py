"""The graph with its weights, imported from any format."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace._core.errors import ModelError
from headrace.network.class_maps import ClassMaps
from headrace.network.external_data import MAX_MODEL_BYTES, check_tensors, fold
from headrace.network.tensor_spec import TensorSpec, axis_name

if TYPE_CHECKING:
    import onnx_ir as ir
    from onnx import GraphProto, ModelProto

OPENVINO_DOMAIN = "headrace.openvino"
"""Domain of the one node that holds a model of OpenVINO; see `headrace.network.openvino`."""

RUNTIME_DOMAINS = frozenset(
    {"com.microsoft", "com.microsoft.nchwc", "com.ms.internal.nhwc", OPENVINO_DOMAIN}
)


@dataclass(frozen=True, slots=True)
class UnknownOperator:
    """An operator that ONNX does not define at the model's opset: a plugin, or a newer one."""

    domain: str
    name: str
    nodes: tuple[str, ...]

    def __str__(self) -> str:
        full = f"{self.domain}::{self.name}" if self.domain else self.name
        named = ", ".join(repr(n) for n in self.nodes[:3])
        more = f" and {len(self.nodes) - 3} more" if len(self.nodes) > 3 else ""
        return f"{full} (node {named}{more})"


@dataclass(frozen=True, slots=True)
class NetworkSummary:
    """The content of `headrace show model.onnx`.

    `operators` maps operator names (with domain, if not ONNX's own) to counts, most frequent
    first; `parameters` counts the elements of all initialisers; `size_bytes` includes external
    data.
    """

    path: Path | None
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    ir_version: int
    opsets: dict[str, int]
    producer: str
    nodes: int
    operators: dict[str, int]
    unknown_operators: tuple[UnknownOperator, ...]
    parameters: int
    size_bytes: int
    external_files: tuple[Path, ...]


class Network:
    """A graph with weights; `model` is the onnx-ir model that importers fill and passes change.

    Args:
        model: an `onnx_ir.Model`; initialisers among the graph's inputs are taken off them.
        path: the file it was read from; external data is looked for beside it.
        size_bytes: size of that file and its external data.
        sha256: hash of the bytes of that file.
        external_locations: files with external data: location as the model writes it -> file.

    Attributes:
        made_from: further files that an importer read, by the config key that names them.
        recipe: further arguments of the importer, in words; another recipe is another network.
        plugins: layers that are plugin objects already, by the name of their node
            (`headrace.plugins.layer.LayerPlugin`); made by code or by an importer.
        implicit_batch: shapes leave the batch out in the model's own format (Caffe, UFF).
        of_one_image: outputs that got the batch in front that the file leaves out.
        class_maps: outputs that the file has as maps of names to scores, here tables.
        built: a plan of it that exists already (`headrace.engine.Plan`), or None.

    Raises:
        ModelError: no outputs; an input or output that is not a tensor.
    """

    def __init__(
        self,
        model: ir.Model,
        *,
        path: Path | None = None,
        size_bytes: int = 0,
        sha256: str | None = None,
        external_locations: Mapping[str, Path] = MappingProxyType({}),
    ) -> None:
        self.model = model
        self.path = path
        self.size_bytes = size_bytes
        self.sha256 = sha256
        self.external_locations = external_locations
        self.made_from: Mapping[str, Path] = MappingProxyType({})
        self.recipe = ""
        self.plugins: dict[str, Any] = {}
        self.implicit_batch = False
        self.of_one_image: tuple[str, ...] = ()
        self.class_maps = ClassMaps({})
        self.built: Any = None
        self._strip_initializer_inputs()
        self._free_negative_axes()
        if not model.graph.outputs:
            raise ModelError("the graph has no outputs", where=self._where())
        # judged now, so that every later reader may trust them
        _ = self.inputs, self.outputs

    def _strip_initializer_inputs(self) -> None:
        # Old exporters list weights as inputs too; a runtime must then expect other values at
        # each run and cannot fold constants (measured: 2.7 times slower on the RFB-320 model).
        graph = self.model.graph
        kept = [v for v in graph.inputs if v.name not in graph.initializers]
        if len(kept) != len(graph.inputs):
            graph.inputs[:] = kept
            self.model.ir_version = max(self.model.ir_version, 4)  # before 4 they must be inputs

    def _free_negative_axes(self) -> None:
        # Paddle's exporter writes -1 for an axis that is free.
        from headrace.network.ir import ir

        graph = self.model.graph
        inner = (v for node in graph for v in node.outputs)
        for value in (*graph.inputs, *graph.outputs, *inner):
            shape = value.shape
            if shape is not None and any(isinstance(d, int) and d < 0 for d in shape):
                value.shape = ir.Shape([None if isinstance(d, int) and d < 0 else d for d in shape])

    def _where(self) -> str | None:
        return str(self.path) if self.path else None

    @property
    def inputs(self) -> tuple[TensorSpec, ...]:
        """The tensors to feed at each run, in the model's order."""
        return tuple(_spec(v, "input", self._where()) for v in self.model.graph.inputs)

    @property
    def outputs(self) -> tuple[TensorSpec, ...]:
        """The results of a run, in the model's order; shapes as far as the model has them."""
        return tuple(_spec(v, "output", self._where()) for v in self.model.graph.outputs)

    def unknown_operators(self) -> tuple[UnknownOperator, ...]:
        """Operators that are neither ONNX's at the model's opset, nor functions of the model.

        Operators of runtime domains (com.microsoft …) are left to the runtime to judge.
        """
        import onnx

        functions = {(f.domain, f.name) for f in self.model.functions.values()}
        node_names: dict[tuple[str, str], list[str]] = {}
        for node in self._nodes():
            domain = "" if node.domain == "ai.onnx" else node.domain
            key = (domain, node.op_type)
            if domain in RUNTIME_DOMAINS or (node.domain, node.op_type) in functions:
                continue
            if "plugin_namespace" in node.attributes:  # it asks for a plugin
                node_names.setdefault(key, []).append(node.name or "")
                continue
            opset = self.model.opset_imports.get(domain, self.model.opset_imports.get("ai.onnx", 1))
            try:
                onnx.defs.get_schema(node.op_type, opset, domain)
            except onnx.defs.SchemaError:
                node_names.setdefault(key, []).append(node.name or "")
        return tuple(UnknownOperator(d, n, tuple(nodes)) for (d, n), nodes in node_names.items())

    def _nodes(self) -> Iterator[ir.Node]:
        yield from self.model.graph.all_nodes()
        for function in self.model.functions.values():
            yield from function.all_nodes()

    def summary(self) -> NetworkSummary:
        """Plain facts about the network, for people."""
        model = self.model
        counts = Counter(
            f"{n.domain}::{n.op_type}" if n.domain not in ("", "ai.onnx") else n.op_type
            for n in model.graph.all_nodes()
        )
        initializers = [v.const_value for v in model.graph.initializers.values()]
        producer = f"{model.producer_name or ''} {model.producer_version or ''}".strip()
        return NetworkSummary(
            path=self.path,
            inputs=self.inputs,
            outputs=self.outputs,
            ir_version=model.ir_version,
            opsets=dict(model.opset_imports),
            producer=producer,
            nodes=sum(counts.values()),
            operators=dict(counts.most_common()),
            unknown_operators=self.unknown_operators(),
            parameters=sum(prod(t.shape.numpy()) for t in initializers if t is not None),
            size_bytes=self.size_bytes,
            external_files=tuple(self.external_locations.values()),
        )

    @property
    def only_runtime(self) -> str | None:
        """Name of the only runtime that runs it; None for a graph of ONNX."""
        first = next(iter(self.model.graph), None)
        return "openvino" if first is not None and first.domain == OPENVINO_DOMAIN else None

    @property
    def is_large(self) -> bool:
        """Too large for one ONNX message: see `headrace.network.external_data`."""
        return self.weight_bytes > MAX_MODEL_BYTES

    @property
    def weight_bytes(self) -> int:
        """Size of its weights."""
        tensors = (v.const_value for v in self.model.graph.initializers.values())
        return sum(t.nbytes for t in tensors if t is not None)

    def graph_proto(self) -> GraphProto:
        """A new ModelProto of the network; weights that are external data stay so."""
        from headrace.network.ir import ir

        try:
            return ir.to_proto(self.model)
        except Exception as error:  # whatever an odd graph makes the serialiser raise
            cause = str(error.__cause__ or error).splitlines()[:1]
            raise ModelError(
                f"the graph cannot be written: {''.join(cause)[:200]}", where=self._where()
            ) from error

    def to_proto(self) -> ModelProto:
        """A new ModelProto of the network, all weights inside.

        Raises:
            ModelError: over 2 GiB, not writable as ONNX, or its external data changed since it was
                read.
        """
        proto = self.graph_proto()
        path = self.path or Path("network")
        ranges = check_tensors(proto, path)
        total = proto.ByteSize() + sum(part.size_bytes for part in ranges)
        if total > MAX_MODEL_BYTES:
            raise ModelError(
                f"{total / 2**30:.2f} GiB of graph and weights",
                where=self._where(),
                expected="less than 2 GiB, the limit of one ONNX message",
                fix="export the model in half precision, or split it",
            )
        fold(proto, ranges, path)
        return proto

    def __repr__(self) -> str:
        name = self.path.name if self.path else self.model.graph.name
        ends = " -> ".join(", ".join(map(str, specs)) for specs in (self.inputs, self.outputs))
        return f"Network({name}: {ends})"


def _spec(value: ir.Value, kind: str, where: str | None) -> TensorSpec:
    from headrace.network.ir import ir

    if value.type is not None and not isinstance(value.type, ir.TensorType):
        raise ModelError(
            f"{kind} {value.name!r} is a {type(value.type).__name__}",
            where=where,
            expected="a tensor",
        )
    if value.dtype is None or value.dtype == ir.DataType.UNDEFINED or not value.name:
        raise ModelError(f"{kind} {value.name!r} has no element type", where=where)
    if value.dtype == ir.DataType.STRING:
        return TensorSpec(value.name, np.dtype(object), _shape(value))
    return TensorSpec(value.name, np.dtype(value.dtype.numpy()), _shape(value))


def _shape(value: ir.Value) -> tuple[int | str | None, ...]:
    if value.shape is None:
        return ()
    return tuple(d if isinstance(d, int) else axis_name(d.value) for d in value.shape)
