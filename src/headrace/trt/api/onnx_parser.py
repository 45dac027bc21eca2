"""`OnnxParser`: the nodes of a model as layers of a network.

Every node stays what it is: it becomes one layer of the kind that fits it best, so that layers can
be counted, read and pinned, and is lowered to itself again. Source: tensorrt-api spec 3.5.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace._core.errors import HeadraceError
from headrace.network.network import Network
from headrace.network.onnx_file import network_from_onnx, network_from_onnx_bytes
from headrace.network.tensor_spec import TensorType
from headrace.plugins.onnx_rules import LayerNames, inlined
from headrace.plugins.registry import get_plugin_registry
from headrace.trt.api.model_message import ModelMessage
from headrace.trt.api.network import INetworkDefinition
from headrace.trt.api.onnx_layers import Checker, add_node
from headrace.trt.layers.plugins import AttributesError
from headrace.trt.release import current, versioned
from headrace.trt.types.enums import ErrorCode, Flagged
from headrace.trt.types.reporting import CollectsErrors, ParserError, Severity, report
from headrace.trt.types.strict import Closable, counted
from headrace.trt.types.tensor import ITensor

if TYPE_CHECKING:
    from onnx import GraphProto
    from typing_extensions import Buffer

    from headrace.trt.types.reporting import ILogger


class NodeIndices(list[int]):
    """Indices of nodes, as scripts make them."""


def get_nv_onnx_parser_version() -> int:
    """The version as one number."""
    major, minor, patch = (int(n) for n in (*current().version.split("."), "0", "0")[:3])
    return major * 10000 + minor * 100 + patch


@versioned(
    {
        "<11 deprecated>=10.1": "supports_model -> supports_model_v2",
        ">=10.1": "supports_model_v2, is_subgraph_supported, num_subgraphs, get_subgraph_nodes",
        "<11": "parse_with_weight_descriptors",
        ">=10": "get_layer_output_tensor",
        ">=10.13": "load_model_proto, load_initializer, parse_model_proto",
        ">=10.15": "set_builder_config",
        ">=8.6": "get_used_vc_plugin_libraries",
    }
)
class OnnxParser(CollectsErrors, Flagged, Closable):
    """Reads models into `network`; errors are collected and reported to the logger."""

    _FLAGS = "OnnxParserFlag"

    def __init__(self, network: INetworkDefinition, logger: ILogger | None) -> None:
        if not isinstance(network, INetworkDefinition):
            raise TypeError(f"a network, not a {type(network).__name__}")
        self._network = network
        self._logger = logger
        self._errors: list[ParserError] = []
        self._flags = frozenset({"NATIVE_INSTANCENORM"})
        self._subgraphs: list[tuple[list[int], bool]] = []
        self._message = ModelMessage()

    def supports_operator(self, op_name: str) -> bool:
        """Whether ONNX defines the operator, or a registered plugin has its name."""
        import onnx

        known = onnx.defs.has(op_name)
        return bool(known or get_plugin_registry().versions(op_name))

    def parse(self, model: Buffer, path: str | None = None) -> bool:
        """Add the layers of a model.

        Args:
            model: bytes of an ONNX message.
            path: its file, beside which external data is looked for.

        Returns:
            False if nothing could be added; see `get_error`.
        """
        data = bytes(memoryview(model)) if not isinstance(model, bytes) else model
        where = Path(path) if path else Path("model.onnx")
        try:
            read = network_from_onnx_bytes(data, where, needs_inputs=False)
        except HeadraceError as error:
            return self._fail("MODEL_DESERIALIZE_FAILED", str(error))
        return self._add(read)

    def parse_from_file(self, model: str) -> bool:
        """`parse` for a file."""
        try:
            read = network_from_onnx(model, needs_inputs=False)
        except HeadraceError as error:
            missing = not Path(model).is_file()
            return self._fail(
                "INVALID_VALUE" if missing else "MODEL_DESERIALIZE_FAILED", str(error)
            )
        return self._add(read)

    def load_model_proto(self, model: Buffer, path: str | None = None) -> bool:
        """Keep a message for `parse_model_proto`; its initialisers may lack their data."""
        return self._message.load(model, path, self._refuse)

    def load_initializer(self, name: str, data: int, size: int) -> bool:
        """Give an initialiser of the kept message the `size` bytes at the address `data`."""
        return self._message.set_initializer(name, data, size, self._refuse)

    def parse_model_proto(self) -> bool:
        """`parse` for the kept message."""
        try:
            return self._add(self._message.network())
        except HeadraceError as error:
            return self._fail("MODEL_DESERIALIZE_FAILED", str(error))

    def set_builder_config(self, config: object) -> bool:
        """Recorded: layers are parsed alike for every config."""
        self._config = config
        return True

    def parse_with_weight_descriptors(self, model: Buffer) -> bool:
        """As `parse`."""
        return self.parse(model)

    def supports_model(self, model: Buffer, path: str | None = None) -> tuple[bool, list[Any]]:
        """Whether every node is parsed, as `parse`; and the runs of nodes that are, with True.

        A run that cannot be parsed is left out: scripts look at one that is False again, without
        end.
        """
        supported = self._look_through(model, path)
        return supported, [run for run in self._subgraphs if run[1]]

    def supports_model_v2(self, model: Buffer, path: str | None = None) -> bool:
        """Whether every node is parsed, as `parse`; the runs of nodes are kept."""
        return self._look_through(model, path)

    def _look_through(self, model: Buffer, path: str | None) -> bool:
        try:
            read = network_from_onnx_bytes(
                bytes(model), Path(path or "model.onnx"), needs_inputs=False
            )
            proto = read.to_proto()
        except HeadraceError as error:
            return self._fail("MODEL_DESERIALIZE_FAILED", str(error))
        flat = inlined(proto)
        checker = Checker(flat, self._network)
        self._subgraphs = []
        bad = set()
        for i, node in enumerate(flat.proto.graph.node):
            problem = checker.problem(i, node)
            if problem is not None:
                bad.add(problem.node())
                self._keep(problem)
        for i in range(len(proto.graph.node)):
            good = i not in bad
            if self._subgraphs and self._subgraphs[-1][1] == good:
                self._subgraphs[-1][0].append(i)
            else:
                self._subgraphs.append(([i], good))
        return all(good for _, good in self._subgraphs) and self._add(read)

    num_subgraphs = counted("_subgraphs", "Runs of nodes that `supports_model_v2` found.")

    def is_subgraph_supported(self, index: int) -> bool:
        """Whether the nodes of a run could be parsed."""
        return self._subgraphs[index][1]

    def get_subgraph_nodes(self, index: int) -> list[int]:
        """Indices of the nodes of a run."""
        return self._subgraphs[index][0]

    def get_used_vc_plugin_libraries(self) -> list[str]:
        """Plugins come from the registry, not from libraries of their own."""
        return []

    def get_layer_output_tensor(self, name: str, i: int) -> ITensor | None:
        """An output of the layer that a node became."""
        for layer in self._network._layers:
            if layer._name == name:
                return layer.get_output(i)
        return None

    def _add(self, read: Network) -> bool:
        network = self._network
        try:
            proto = read.to_proto()
        except HeadraceError as error:
            return self._fail("MODEL_DESERIALIZE_FAILED", str(error))
        opset = next((o.version for o in proto.opset_import if o.domain in ("", "ai.onnx")), 1)
        if network._layers and network._opset != opset:
            return self._fail(
                "UNSUPPORTED_GRAPH",
                f"the network has layers of opset {network._opset}, the model has {opset}; parse "
                "into an empty network",
            )
        model = inlined(proto)
        proto = model.proto
        checker = Checker(model, network)
        live = read.plugins
        checks = [
            checker.problem(i, node)
            for i, node in enumerate(proto.graph.node)
            if node.name not in live
        ]
        problems = [problem for problem in checks if problem is not None]
        for problem in problems:
            self._keep(problem)
        if problems:
            return False
        network._opset = opset
        network._domains = {o.domain: o.version for o in proto.opset_import if o.domain}
        network._functions = {(f.domain, f.name): f for f in proto.functions}
        network._typed_by_inputs = False
        network._dirty = 0
        tensors = self._inputs(proto)
        self._initializers(proto)
        names = LayerNames()
        for index, node in enumerate(proto.graph.node):
            plugin = live.get(node.name)
            creator = None if plugin is not None else checker.creator(node)
            given = model.given_name(node)
            try:
                add_node(network, node, (given, names.unique(given)), tensors, creator, plugin)
            except HeadraceError as error:
                code = "INTERNAL_ERROR" if isinstance(error, AttributesError) else None
                self._keep(checker.error(code, error, index, node))
                return False
        for value in proto.graph.output:
            tensor = tensors.get(value.name)
            if tensor is None and value.name in network._initializers:
                tensor = network._constant_tensor(value.name)
            if tensor is None:
                return self._fail("INVALID_GRAPH", f"nothing makes the output {value.name!r}")
            network.mark_output(tensor)
        return True

    def _inputs(self, proto: GraphProto) -> dict[str, ITensor]:
        tensors: dict[str, ITensor] = {}
        for value in proto.graph.input:
            kind = value.type.tensor_type
            axes = tuple(
                d.dim_value if d.HasField("dim_value") and d.dim_value >= 0 else -1
                for d in kind.shape.dim
            )
            tensor = ITensor(self._network, value.name, info=TensorType(kind.elem_type, axes))
            for i, d in enumerate(kind.shape.dim):
                if d.dim_param:
                    tensor._axis_names[i] = d.dim_param
            self._network._inputs.append(tensor)
            tensors[value.name] = tensor
        return tensors

    def _initializers(self, proto: GraphProto) -> None:
        from onnx import numpy_helper

        for initializer in proto.graph.initializer:
            array = np.asarray(numpy_helper.to_array(initializer))
            self._network._initializers[initializer.name] = array

    def _refuse(self, faults: list[str]) -> bool:
        for fault in faults:
            self._fail("INVALID_VALUE", fault)
        return False

    def _fail(self, code: str, text: str) -> bool:
        self._keep(ParserError(ErrorCode[code], text))
        return False

    def _keep(self, error: ParserError) -> None:
        self._errors.append(error)
        report(self._logger, Severity.ERROR, str(error), recorder=self._network._recorder)
