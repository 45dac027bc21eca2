"""Make plugin layers of the nodes of a graph: ask creators, derive types and shapes.

Works on a copy of the graph as a `ModelProto`, so that a `Network` may be built more than once.
Source: tensorrt-plugins spec 3 (parse), 11.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from headrace._core.errors import ModelError, PluginError
from headrace._core.findings import Finding
from headrace._core.types import Array, Arrays, DType
from headrace.network.network import Network
from headrace.network.shapes.graph_shapes import ShapeView
from headrace.network.shapes.protos import small_constants
from headrace.network.tensor_spec import TensorSpec, TensorType
from headrace.plugins.base import IPluginCreatorV3One
from headrace.plugins.calls import Instance, call_creator
from headrace.plugins.drivers import add_layer
from headrace.plugins.expressions import Axis, DimsExprs, evaluate
from headrace.plugins.fields import fields_of
from headrace.plugins.layer import LayerPlugin, Ranges, ShapeInput
from headrace.plugins.lookup import check_control_flow, creator_for, is_builtin, is_unknown
from headrace.plugins.negotiate import TAKEN, closest, network_types, takes
from headrace.plugins.onnx_rules import Inlined, LayerNames, check_outputs, inlined, inputs_of
from headrace.plugins.registry import PluginRegistry
from headrace.plugins.static_shapes import decided_by_values
from headrace.plugins.types import TensorRTPhase

if TYPE_CHECKING:
    import onnx_ir
    from onnx import ModelProto, NodeProto

    from headrace.plugins.base import AnyCreator


Shape = tuple[int | str | None, ...]
Measure: TypeAlias = (
    "Callable[[ModelProto, Sequence[str], Mapping[str, Shape], Mapping[str, Array]], Arrays]"
)
"""(model, names, shapes of the inputs, stand-ins for plugin outputs) -> what running the graph up
to these values gives."""


@dataclass(frozen=True, slots=True)
class Views:
    """Shapes of the graph's inputs to see it with.

    Attributes:
        free: axes that are known only at run time by name or None.
        profiles: (min, opt, max) of each optimisation profile, all axes numbers.
    """

    free: Mapping[str, Shape]
    profiles: tuple[tuple[Mapping[str, Shape], Mapping[str, Shape], Mapping[str, Shape]], ...]


@dataclass(slots=True)
class PluginNode:
    """A node that a plugin computes, and all that building it takes.

    Attributes:
        name: of the node; unique.
        inputs, shape_inputs, outputs: names of the values; "" where one is left out.
        created: by `resolve`, which then also ends its life.
    """

    name: str
    layer: LayerPlugin
    inputs: tuple[str, ...]
    shape_inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    created: bool
    infos: list[TensorSpec] = field(default_factory=list)
    shape_infos: list[ShapeInput] = field(default_factory=list)
    dtypes: list[DType] = field(default_factory=list)
    ranges: list[Ranges] = field(default_factory=list)
    exprs: list[DimsExprs] = field(default_factory=list)


@dataclass(slots=True)
class Resolved:
    """A graph with its plugin nodes known.

    Decomposed plugins are gone from `proto`; `changed` says whether it is another graph than it
    was.
    """

    proto: ModelProto
    nodes: list[PluginNode]
    view: ShapeView
    notices: list[Finding]
    changed: bool

    def close(self) -> None:
        """End the layers that `resolve` created."""
        for node in self.nodes:
            if node.created:
                node.layer.close()


def has_plugins(network: Network) -> bool:
    """Whether some node may be a plugin."""
    return bool(network.plugins) or bool(network.unknown_operators())


def resolve(
    network: Network,
    proto: ModelProto,
    views: Views,
    registry: PluginRegistry,
    measure: Measure,
    where: str,
) -> Resolved:
    """Find the plugin nodes of `proto` and give each its layer.

    `proto` is the `ModelProto` of `network` and is changed; `measure` runs part of the graph where
    ONNX's shape inference does not know enough.

    Raises:
        ModelError: attributes or outputs that do not fit; a plugin inside a control-flow body.
        PluginError: a plugin or creator failed.
    """
    resolver = _Resolver(network, proto, views, registry, measure, where)
    try:
        return resolver.run()
    except BaseException:
        for node in resolver.nodes:
            if node.created:
                node.layer.close()
        raise


class _Resolver:
    def __init__(
        self,
        network: Network,
        proto: ModelProto,
        views: Views,
        registry: PluginRegistry,
        measure: Measure,
        where: str,
    ) -> None:
        self.network, self.registry, self.where = network, registry, where
        self.measure = measure
        self.inlined = _inlined(proto, registry)
        self.proto = self.inlined.proto
        self.opsets = {o.domain if o.domain != "ai.onnx" else "": o.version
                       for o in self.proto.opset_import}  # fmt: skip
        self.functions = frozenset((f.domain, f.name) for f in self.proto.functions)
        self.nodes: list[PluginNode] = []
        self.notices: list[Finding] = []
        self.given: dict[str, str] = {}  # name of a layer -> its node's name in the file
        self.changed = False
        self.views = views
        check_control_flow(self.proto.graph, self._is_plugin, where)
        self._see()
        self.constants = small_constants(self.proto)
        self.stand_ins: dict[str, list[Array]] = {}

    def _is_plugin(self, node: NodeProto) -> bool:
        if node.name in self.network.plugins:
            return True
        return self._creator(node) is not None

    def _creator(self, node: NodeProto) -> AnyCreator | None:
        return creator_for(node, self.opsets, self.functions, self.registry)

    def _see(self) -> None:
        self.free = ShapeView(self.proto, self.views.free)
        seen: dict[str, ShapeView] = {}
        self.fixed: list[tuple[ShapeView, Mapping[str, Shape]]] = []
        for profile in self.views.profiles:
            for shapes in profile:
                key = repr(sorted(shapes.items()))
                view = seen.setdefault(key, ShapeView(self.proto, shapes))
                self.fixed.append((view, shapes))

    def run(self) -> Resolved:
        graph = self.proto.graph
        self._name_nodes()
        at = -1
        while (at := at + 1) < len(graph.node):  # decompositions make it longer
            node = graph.node[at]
            live = self.network.plugins.get(node.name)
            if live is None and not is_unknown(node, self.opsets, self.functions):
                continue
            if live is None:
                creator = self._creator(node)
                if creator is None:
                    self._native(node)
                    continue
                layer = self._create(node, at, creator)
                if isinstance(layer, int):  # it vanished into the graph
                    at += layer - 1
                    continue
                self._add(node, layer, created=True)
            else:
                live.layer = node.name  # it may have got its name after the plugin was added
                self._add(node, live, created=False)
        return Resolved(self.proto, self.nodes, self.free, self.notices, self.changed)

    def _name_nodes(self) -> None:
        """Give plugin nodes the names of their layers, and no name to two nodes.

        Other nodes without a name stay without.
        """
        names = LayerNames()
        for live in self.network.plugins:
            names.unique(live)
        for node in self.proto.graph.node:
            if node.name in self.network.plugins or not (node.name or self._is_plugin(node)):
                continue
            given = self.inlined.given_name(node)
            node.name = names.unique(given)
            self.given[node.name] = given

    def _native(self, node: NodeProto) -> None:
        """The domain of a built-in operator is not looked at."""
        if node.domain and is_builtin(node.op_type, self.opsets.get("", 1)):
            text = f"node {node.name!r}: {node.domain}::{node.op_type} is taken for ONNX's own"
            self.notices.append(Finding("operator-domain", "info", text, self.where))
            node.domain = ""
            self._see_again()

    def _see_again(self) -> None:
        """The graph changed."""
        self.changed = True
        self._see()
        self.stand_ins.clear()
        for done in self.nodes:
            self._tell(done)

    def _create(self, node: NodeProto, at: int, creator: AnyCreator) -> LayerPlugin | int:
        """The layer, or the number of nodes that stand in its place."""
        plain, shape_inputs = self._inputs(node, third=isinstance(creator, IPluginCreatorV3One))
        known = [self._known(name) if name else None for name in node.input]
        ir_node, user = self._made(node, creator, known)
        plugin = user.plugin
        try:
            count = self._decomposed(at, ir_node, user)
            if count is not None:
                return count
            types = [closest(self._dtype(name, node)) for name in plain]
            layer = add_layer(
                plugin,
                layer=node.name,
                input_types=types,
                num_shape_inputs=len(shape_inputs),
                implicit_batch=self.network.implicit_batch,
            )
        finally:
            user.destroy("parse")
        if not layer.namespace:  # creators need not tell their plugins
            layer.namespace = creator.plugin_namespace
        return layer

    def _where(self, node: NodeProto) -> str:
        return f"{self.where}, node {node.name!r}"

    def _inputs(
        self, node: NodeProto, *, third: bool, quiet: bool = False
    ) -> tuple[list[str], list[str]]:
        """Names of the inputs and of the shape inputs, which only plugins of version 3 have."""
        plain, shapes, notice = inputs_of(node, third=third, where=self._where(node))
        if notice is not None and not quiet:
            self.notices.append(notice)
        return [node.input[i] for i in plain], [node.input[i] for i in shapes]

    def _made(
        self, node: NodeProto, creator: AnyCreator, known: Sequence[TensorType | None]
    ) -> tuple[onnx_ir.Node, Instance]:
        """Make the plugin of a node; the node as `onnx_ir` sees it, and the plugin."""
        from headrace.network.ir import ir, node_from_proto

        ir_node = node_from_proto(node)
        for value, fact in zip(ir_node.inputs, known, strict=True):
            if value is not None and fact is not None:
                value.dtype = ir.DataType.from_numpy(fact.dtype)
                value.shape = None if fact.axes is None else ir.Shape(fact.axes)
        fields, notices = fields_of(ir_node, creator, self._where(node))
        self.notices += notices
        given = self.given.get(node.name, node.name)
        more = (TensorRTPhase.BUILD,) if isinstance(creator, IPluginCreatorV3One) else ()
        plugin = call_creator(creator, "parse", node.name, "create_plugin", given, fields, *more)
        name = f"{creator.name} version {creator.plugin_version}"
        return ir_node, Instance(plugin, node.name, name)

    def _decomposed(self, at: int, ir_node: onnx_ir.Node, user: Instance) -> int | None:
        """How many ONNX nodes the plugin gave to stand in its place; None if it gave none."""
        nodes = self._onnx_nodes(ir_node, user)
        if nodes is None:
            return None
        graph = self.proto.graph
        before, after = list(graph.node[:at]), list(graph.node[at + 1 :])
        del graph.node[:]
        graph.node.extend([*before, *nodes, *after])
        self._see_again()
        return len(nodes)

    def _onnx_nodes(self, ir_node: onnx_ir.Node, user: Instance) -> list[NodeProto] | None:
        """ONNX nodes that the plugin gives to stand in its place, if it does."""
        if not callable(getattr(user.plugin, "to_onnx", None)):
            return None
        opset = self.opsets.get("", 1)
        answer: Any = user.call("parse", "to_onnx", ir_node, opset)
        if answer is None:
            return None
        nodes = list(answer)
        for node in nodes:
            if not hasattr(node, "op_type") or is_unknown(node, self.opsets, frozenset()):
                raise PluginError(
                    f"to_onnx returned {getattr(node, 'op_type', type(node).__name__)}",
                    where=user.where,
                    expected=f"nodes (NodeProto) of ONNX's own operators at opset {opset}",
                )
        return nodes

    def _add(self, node: NodeProto, layer: LayerPlugin, *, created: bool) -> None:
        plain, shape_inputs = self._inputs(node, third=layer.generation == "V3", quiet=True)
        try:
            check_outputs(node, layer.num_outputs, layer.type, self._where(node))
        except ModelError:
            if created:
                layer.close()
            raise
        outputs = (*node.output, *[""] * (layer.num_outputs - len(node.output)))
        plugin_node = PluginNode(
            node.name, layer, tuple(plain), tuple(shape_inputs), outputs, created
        )
        self.nodes.append(plugin_node)
        for name in plain:
            dims = self._shape(name, node) if name else (0,)
            plugin_node.infos.append(TensorSpec(name, self._dtype(name, node), tuple(dims)))
        plugin_node.shape_infos = [self._shape_input(name) for name in shape_inputs]
        plugin_node.dtypes = self._output_types(node, plugin_node)
        plugin_node.ranges = self._ranges(node, plugin_node)
        self._tell(plugin_node)

    def _tell(self, plugin_node: PluginNode) -> None:
        """Let inference go on behind the plugin."""
        if not plugin_node.exprs:
            dims = [i.dims for i in plugin_node.infos]
            plugin_node.exprs = plugin_node.layer.output_shapes(dims, plugin_node.shape_infos)
        exprs = plugin_node.exprs
        where = plugin_node.layer.instance.where
        for name, dtype, expr in zip(plugin_node.outputs, plugin_node.dtypes, exprs, strict=True):
            if name:
                self.free.tell(name, TensorType.of(dtype, self._named(plugin_node, expr)))
        self.free.forget()
        flat = [(r, part) for r in plugin_node.ranges for part in ("min", "opt", "max")]
        for (view, _), (ranges, part) in zip(self.fixed, flat, strict=True):
            shapes = evaluate(
                exprs, getattr(ranges, part), ranges.values, size="opt", where=where
            ).shapes
            for name, dtype, shape in zip(
                plugin_node.outputs, plugin_node.dtypes, shapes, strict=True
            ):
                if name:
                    view.tell(name, TensorType.of(dtype, shape))
                    arrays = self.stand_ins.setdefault(name, [])
                    arrays.append(_stand_in(name, shape, dtype, where))
            view.forget()

    def _named(self, plugin_node: PluginNode, exprs: DimsExprs) -> Shape:
        """Constants, and the names of axes that are an input's as they are."""
        axes: list[int | str | None] = []
        for expr in exprs:
            if expr.is_constant():
                axes.append(expr.get_constant_value())
            elif isinstance(expr, Axis) and not expr.of_values:
                known = self._known(plugin_node.inputs[expr.input])
                shape = known.axes if known is not None else None
                axes.append(shape[expr.axis] if shape is not None else None)
            else:
                axes.append(None)
        return tuple(axes)

    def _output_types(self, node: NodeProto, plugin_node: PluginNode) -> list[DType]:
        layer = plugin_node.layer
        declared = layer.output_types([closest(i.dtype) for i in plugin_node.infos])
        inputs = [i.dtype for i in plugin_node.infos]
        types = network_types(declared, inputs, weak=layer.generation != "V3")
        graph = self.proto.graph
        ends = {v.name for v in graph.output}
        declared_infos = {v.name: v for v in graph.value_info if v.name not in ends}
        for index, name in enumerate(node.output):
            if name in declared_infos and (kind := declared_infos[name].type.tensor_type.elem_type):
                import onnx

                types[index] = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(kind))
        for value in graph.output:
            if value.name in node.output:
                import onnx

                dtype = types[list(node.output).index(value.name)]
                kind = onnx.helper.np_dtype_to_tensor_dtype(dtype)
                value.type.tensor_type.elem_type = kind
        return types

    def _ranges(self, node: NodeProto, plugin_node: PluginNode) -> list[Ranges]:
        ranges = []
        for index in range(len(self.views.profiles)):
            parts = [self._at(node, plugin_node, 3 * index + i) for i in range(3)]
            ranges.append(Ranges(parts[0][0], parts[1][0], parts[2][0], parts[2][1]))
        return ranges

    def _at(self, node: NodeProto, plugin_node: PluginNode, index: int) -> tuple[Any, Any]:
        """Shapes of the inputs, and values of the shape inputs, in one view."""
        view, feeds = self.fixed[index]
        shapes: list[tuple[int, ...] | None] = []
        for name in plugin_node.inputs:
            known = view.known([name])[0] if name else None
            shapes.append((0,) if not name else known.fixed if known is not None else None)
        values = [
            None if any(v is None for v in info.values) else tuple(info.values)
            for info in plugin_node.shape_infos
        ]
        missing = [n for n, s in zip(plugin_node.inputs, shapes, strict=True) if s is None]
        missing += [n for n, v in zip(plugin_node.shape_inputs, values, strict=True) if v is None]
        if missing:
            arrays = self.measure(self.proto, missing, feeds, self._stand_ins(index))
            for i, name in enumerate(plugin_node.inputs):
                shapes[i] = arrays[name].shape if shapes[i] is None else shapes[i]
            for i, name in enumerate(plugin_node.shape_inputs):
                if values[i] is None:
                    values[i] = tuple(int(v) for v in arrays[name].reshape(-1))
        return tuple(shapes), tuple(values)

    def _stand_ins(self, index: int) -> dict[str, Array]:
        return {name: arrays[index] for name, arrays in self.stand_ins.items()}

    def _known(self, name: str) -> TensorType | None:
        return self.free.known([name])[0]

    def _dtype(self, name: str, node: NodeProto) -> DType:
        """Type of an input; float of one that is left out."""
        if not name:
            return np.dtype(np.float32)
        known = self._known(name)
        dtype = known.dtype if known is not None else self._measured(name, node).dtype
        if not takes(dtype):
            raise PluginError(
                f"input {name!r} is {'string' if dtype.kind in 'OUST' else dtype.name}, "
                "which plugins cannot have",
                where=f"{self.where}, node {node.name!r} ({node.op_type})",
                expected=TAKEN,
            )
        return dtype

    def _shape(self, name: str, node: NodeProto) -> Shape:
        known = self._known(name)
        shape = None if known is None else known.axes
        if shape is None or not all(isinstance(d, int) for d in shape[1:]):
            shape = self._fixed_axes(name, node, shape)
        return shape

    def _fixed_axes(self, name: str, node: NodeProto, shape: Shape | None) -> Shape:
        """Fix axes that inference does not know.

        An axis is fixed if the numbers of a run do not decide it, and runs with the least and the
        greatest batch agree.
        """
        last = self._measured(name, node)
        shape = shape or (None,) * last.ndim
        inputs = self.views.free.values()
        sized = any(e.is_size_tensor() for p in self.nodes for dims in p.exprs for e in dims)
        if (
            sized
            or not all(isinstance(d, int) for axes in inputs for d in axes[1:])
            or decided_by_values(self.proto.graph, name, self.stand_ins)
        ):
            return shape
        first = self._measured(name, node, 0)
        taken = {d for axes in inputs for d in axes if isinstance(d, str)}
        start = 0 if all(isinstance(d, int) for axes in inputs for d in axes[:1]) else 1
        fixed_shape = tuple(
            b if i >= start and not isinstance(d, int) and d not in taken and a == b else d
            for i, (d, a, b) in enumerate(zip(shape, first.shape, last.shape, strict=True))
        )
        self.free.tell(name, TensorType.of(last.dtype, fixed_shape))
        return fixed_shape

    def _measured(self, name: str, node: NodeProto, index: int = 2) -> Array:
        """The value in one of the fixed views of the first profile."""
        _, feeds = self.fixed[index]
        return self.measure(self.proto, [name], feeds, self._stand_ins(index))[name]

    def _shape_input(self, name: str) -> ShapeInput:
        if name in self.constants:
            return ShapeInput(tuple(int(v) for v in self.constants[name].reshape(-1)), name)
        known = self._known(name)
        fixed = known.fixed if known is not None else None
        if fixed is None or len(fixed) > 1:
            raise ModelError(
                f"shape input {name!r} has an unknown number of values",
                where=self.where,
                expected="a vector of fixed length, or a scalar",
            )
        return ShapeInput((None,) * (fixed[0] if fixed else 1), name)


def _stand_in(name: str, shape: Sequence[int], dtype: DType, where: str) -> Array:
    """Zeros in the place of an output.

    Raises:
        PluginError: no memory holds it.
    """
    try:
        return np.zeros(shape, dtype)
    except (ValueError, MemoryError) as error:
        size = prod(map(int, shape)) * dtype.itemsize
        raise PluginError(
            f"output {name!r} of shape {tuple(map(int, shape))} ({dtype.name}) has {size} bytes",
            where=where,
            expected="what the memory of this machine can hold",
            fix="see what the plugin computes as its output dimensions",
        ) from error


def _inlined(proto: ModelProto, registry: PluginRegistry) -> Inlined:
    """Functions of the model are inlined where plugins may stand in them."""
    functions = frozenset((f.domain, f.name) for f in proto.functions)
    for function in proto.functions:
        opsets = {o.domain: o.version for o in function.opset_import}
        if any(creator_for(n, opsets, functions, registry) is not None for n in function.node):
            return inlined(proto)
    return Inlined(proto)
