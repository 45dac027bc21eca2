"""From a list of layers to a graph that engines are built from."""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import onnx
from onnx import helper

from headrace._core.errors import ModelError
from headrace.network.graph_builder import fresh
from headrace.network.ir import ir
from headrace.network.network import Network
from headrace.network.tensor_spec import TensorType
from headrace.plugins.types import DataType
from headrace.trt.lowering.fragment import bodies
from headrace.trt.lowering.loop_body import LoopPlan, loop_nodes, plan_loops
from headrace.trt.types.values import elem_of

if TYPE_CHECKING:
    from onnx import NodeProto, ValueInfoProto

    from headrace._core.types import Array
    from headrace.plugins.layer import LayerPlugin
    from headrace.trt.api.network import INetworkDefinition
    from headrace.trt.layers.base import ILayer
    from headrace.trt.types.tensor import ITensor

_FLOAT, _BF16 = 1, 16  # ONNX's
_IR_VERSIONS = ((21, 10), (18, 9))


@dataclass(slots=True)
class LoweredNetwork:
    """A network's graph and where its layers went.

    Attributes:
        network: the graph.
        layers: name of a layer -> names of its nodes.
        weights: (name of a layer, role) -> name of the initialiser.
        plugins: name of a node -> plugin object.
        hidden: names of the outputs that debug listeners need besides those of the network.
    """

    network: Network
    layers: dict[str, list[str]] = field(default_factory=dict)
    weights: dict[tuple[str, str], str] = field(default_factory=dict)
    plugins: dict[str, LayerPlugin] = field(default_factory=dict)
    hidden: tuple[str, ...] = ()


def from_network(network: INetworkDefinition) -> Network:
    """The graph of a network by code, for `headrace.engine.build` and everything behind it.

    Raises:
        ModelError: no inputs or outputs; layers that do not fit together, all of them named.
    """
    return lower(network).network


def lower(network: INetworkDefinition, watched: Sequence[ITensor] = ()) -> LoweredNetwork:
    """`from_network`, with the nodes of each layer.

    Args:
        network: the definition.
        watched: tensors that listeners need; those inside loops are left out.

    Raises:
        ModelError: as `from_network`.
    """
    return _Lowering(network).run(watched)


def _forget(network: INetworkDefinition) -> None:
    """The graph is gone."""


class _Lowering:
    def __init__(self, network: INetworkDefinition) -> None:
        self._network = network
        self._where = f"network {network._name!r}"
        self._names: dict[str, str] = {}  # name inside the network -> name in the graph
        self._taken: set[str] = set()
        self._nodes: list[NodeProto] = []
        self._constants: dict[str, Array] = {}
        self._layer_nodes: dict[str, list[str]] = {}
        self._weights: dict[tuple[str, str], str] = {}
        self._plugins: dict[str, LayerPlugin] = {}

    def run(self, watched: Sequence[ITensor]) -> LoweredNetwork:
        network = self._network
        if not network._outputs:
            raise ModelError(
                "the network has no outputs", where=self._where, fix="network.mark_output(…)"
            )
        errors = network._errors()
        if errors:
            raise ModelError(errors[0], where=self._where, fix=errors[1:6])
        layers = network._needed()
        inputs = [self._input(t) for t in network._inputs]
        for tensor in network._outputs:
            if tensor._producer is not None and not _converted(tensor):
                self._claim(tensor._uid, tensor._name)
        declared = {t._uid for t in network._outputs if _converted(t)}
        for layer in layers:
            for tensor in layer._outputs:
                if tensor._uid not in self._names:
                    own = f"{tensor._name}_inner" if tensor._uid in declared else tensor._name
                    self._claim(tensor._uid, own)
        self._items(plan_loops(layers))
        outputs = [self._output(t) for t in network._outputs]
        there = {name for node in self._nodes for name in node.output}
        hidden = [t for t in watched if t._producer and not t.is_network_output]
        hidden = [t for t in hidden if self._names.get(t._uid) in there]
        outputs += [self._output(t) for t in hidden]
        lowered = Network(self._model(inputs, outputs))
        names = tuple(tensor._name for tensor in hidden)
        lowered.plugins = self._plugins
        if self._plugins:  # they end with the definition, which lives as long as the graph
            weakref.finalize(lowered, _forget, network)
        lowered.implicit_batch = network._implicit
        return LoweredNetwork(lowered, self._layer_nodes, self._weights, self._plugins, names)

    def _items(self, items: Sequence[ILayer | LoopPlan]) -> None:
        for item in items:
            if isinstance(item, LoopPlan):
                self._loop(item)
            else:
                self._layer_nodes[item._name] = self._layer(item)

    def _loop(self, plan: LoopPlan) -> None:
        outside, self._nodes = self._nodes, []
        self._items(plan.inside)
        inside, self._nodes = self._nodes, []
        self._items(plan.outputs)  # their placeholders get names
        ends, self._nodes = self._nodes, outside

        def claimed(hint: str) -> str:
            return self._claim(f"{plan.loop._name}#{len(self._taken)}", f"{plan.loop._name}/{hint}")

        for node in loop_nodes(plan, inside, claimed):
            node.input[:] = [self._names.get(n, n) for n in node.input]
            node.output[:] = [self._names.get(n, n) for n in node.output]
            _rename_captured(node, self._names)
            if not node.name:
                node.name = claimed(node.op_type)
            self._nodes.append(node)
        self._nodes += ends

    def _claim(self, uid: str, preferred: str) -> str:
        self._names[uid] = name = fresh(preferred or uid.lstrip("%"), self._taken)
        return name

    def _input(self, tensor: ITensor) -> ValueInfoProto:
        info = tensor._info
        assert info is not None
        name = tensor._name
        if name in self._taken:
            raise ModelError(f"two inputs are called {name!r}", where=self._where)
        self._taken.add(name)
        self._names[tensor._uid] = name
        shown = tensor._declared
        elem = _at_border(info.elem if shown is None else elem_of(shown))
        if elem != info.elem:  # fed in one type, used in another
            inner = self._claim(tensor._uid, f"{name}_cast")
            self._nodes.append(helper.make_node("Cast", [name], [inner], name=inner, to=info.elem))
        return helper.make_tensor_value_info(name, elem, _axes(tensor, info))

    def _output(self, tensor: ITensor) -> ValueInfoProto:
        info = tensor._info or TensorType(1, None)
        name, shown = tensor._name, tensor._declared
        elem = info.elem if shown is None else elem_of(shown)
        inner = self._names[tensor._uid]
        if elem == _BF16 and info.elem != _BF16:
            rounded = self._claim(f"{tensor._uid}#bf16", f"{name}_bf16")
            self._nodes.append(helper.make_node("Cast", [inner], [rounded], name=rounded, to=_BF16))
            inner = rounded
        elem = _at_border(elem)
        if inner != name or tensor._producer is None or elem != info.elem:
            if name in self._taken:
                raise ModelError(
                    f"the output {name!r} has the name of another tensor", where=self._where,
                    fix="give it a name of its own: tensor.name = …",
                )  # fmt: skip
            self._taken.add(name)
            if elem != info.elem or shown == DataType.BF16:
                node = helper.make_node("Cast", [inner], [name], name=f"{name}_out", to=elem)
            else:
                node = helper.make_node("Identity", [inner], [name], name=f"{name}_out")
            self._nodes.append(node)
        return helper.make_tensor_value_info(name, elem, _axes(tensor, info))

    def _layer(self, layer: ILayer) -> list[str]:
        fragment = self._network._fragments[layer._uid]
        roles = {name: role for role, name in fragment.roles.items()}
        for name, array in fragment.constants.items():
            if name not in self._names:
                role = roles.get(name)
                preferred = self._network._weight_names.get((layer._uid, role or ""))
                if name.startswith("%w:"):
                    preferred = name[3:]
                self._claim(name, preferred or f"{layer._name}/{role or name.rpartition(':')[2]}")
            self._constants[self._names[name]] = array
            if name in roles:
                self._weights[layer._name, roles[name]] = self._names[name]
        for name in fragment.placeholders:
            if name not in self._names:
                self._claim(name, f"{layer._name}/{name.rpartition(':')[2]}")
        node_names = []
        for i, original in enumerate(fragment.nodes):
            node = onnx.NodeProto()
            node.CopyFrom(original)
            whole = layer._node is not None or "_plugin" in layer._params
            suffix = "" if whole else f"/{original.op_type}"
            node.name = self._claim(f"{layer._uid}#{i}", f"{layer._name}{suffix}")
            for name in original.output:
                if name and name not in self._names:
                    self._claim(name, f"{node.name}:{name.rpartition(':')[2]}")
            node.input[:] = [self._names.get(n, n) for n in original.input]
            node.output[:] = [self._names.get(n, n) for n in original.output]
            _rename_captured(node, self._names)
            self._nodes.append(node)
            node_names.append(node.name)
        plugin = layer._params.get("_plugin")
        if plugin is not None:
            self._plugins[node_names[-1]] = plugin
        return node_names

    def _model(self, inputs: list[ValueInfoProto], outputs: list[ValueInfoProto]) -> ir.Model:
        network = self._network
        imports = [helper.make_opsetid("", network._opset)]
        imports += [helper.make_opsetid(d, v) for d, v in network._domains.items() if d]
        own = {n.domain for n in self._nodes} - {i.domain for i in imports} - {"ai.onnx"}
        imports += [helper.make_opsetid(d, 1) for d in sorted(own)]  # shape inference needs them
        graph = helper.make_graph(self._nodes, network._name or "network", inputs, outputs)
        opset = network._opset
        proto = helper.make_model(
            graph, opset_imports=imports, producer_name="headrace.trt",
            functions=list(network._functions.values()),
            ir_version=next((v for least, v in _IR_VERSIONS if opset >= least), 8),
        )  # fmt: skip
        used = {name for node in proto.graph.node for name in _uses(node)}
        used |= {value.name for value in proto.graph.output}
        constants = {n: a for n, a in self._constants.items() if n in used}
        for name, array in constants.items():  # a placeholder; the array follows uncopied
            elem = helper.np_dtype_to_tensor_dtype(array.dtype)
            value = helper.make_tensor_value_info(name, elem, array.shape)
            proto.graph.input.append(value)
        assert isinstance(proto, onnx.ModelProto)
        model = ir.from_proto(proto)
        values = {v.name: v for v in model.graph.inputs}
        model.graph.inputs[:] = [v for v in model.graph.inputs if v.name not in constants]
        for name, array in constants.items():
            initializer = values[name]
            initializer.const_value = ir.tensor(array, name=name)
            model.graph.register_initializer(initializer)
        return model


def _converted(tensor: ITensor) -> bool:
    """True if an output leaves the network in another type than it is computed in."""
    return tensor._declared is not None or (tensor._info is not None and tensor._info.elem == _BF16)


def _at_border(elem: int) -> int:
    """The type that NumPy arrays of an input or output have: FLOAT for BF16."""
    return _FLOAT if elem == _BF16 else elem


def _axes(tensor: ITensor, info: TensorType) -> list[int | str | None] | None:
    if info.shape is None:
        return None
    names = tensor._axis_names
    lead = tensor._network._offset
    return [d if d >= 0 else names.get(i - lead) or None for i, d in enumerate(info.shape)]


def _uses(node: NodeProto) -> list[str]:
    names = list(node.input)
    for graph in bodies(node):
        names += [v.name for v in graph.output]
        for inner in graph.node:
            names += _uses(inner)
    return names


def _rename_captured(node: NodeProto, names: Mapping[str, str]) -> None:
    """Tensors that graphs inside a node take from around them, by their names in the graph."""
    for graph in bodies(node):
        for value in (*graph.input, *graph.output):
            value.name = names.get(value.name, value.name)
        for inner in graph.node:
            inner.input[:] = [names.get(n, n) for n in inner.input]
            inner.output[:] = [names.get(n, n) for n in inner.output]
            _rename_captured(inner, names)
