"""Building the plugin layers of a network: from nodes to records in the plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from headrace._core.errors import PluginError
from headrace._core.findings import Finding
from headrace._core.text import quoted
from headrace.engine.backends import DEFAULT_BACKEND, Backend, Runner, RunnerOptions, get_backend
from headrace.engine.input_shapes import sample_inputs
from headrace.engine.machine import usable_cores
from headrace.engine.plugin_graph.opening import load_plugins, open_plugin_graph
from headrace.engine.plugin_graph.plugin_record import PluginRecord
from headrace.engine.plugin_graph.plugin_saving import record_of
from headrace.engine.plugin_graph.split import names_read
from headrace.engine.plugin_graph.tensor_scales import TensorScales
from headrace.network.network import Network
from headrace.network.shapes.protos import model_beside
from headrace.network.tensor_spec import TensorSpec
from headrace.plugins.base import methods_left_out
from headrace.plugins.drivers import missing_creators
from headrace.plugins.layer import EnginePlugin
from headrace.plugins.loading import code_of
from headrace.plugins.nodes import Resolved, Shape, Views, has_plugins, resolve
from headrace.plugins.registry import PluginRegistry, known_plugins

if TYPE_CHECKING:
    from onnx import ModelProto

    from headrace._core.types import Array
    from headrace.plugins.layer import LayerPlugin
    from headrace.plugins.nodes import Measure


BATCH = "headrace_batch"
"""Name of a free batch axis that the model leaves unnamed."""
Profiles = Sequence[Mapping[str, tuple[Shape, Shape, Shape]]]


@dataclass(slots=True)
class PluginLayers:
    """A network with its plugins built.

    Types and shapes of all values are in `model`.
    """

    model: bytes
    records: tuple[PluginRecord, ...]
    blobs: dict[str, bytes]
    notices: list[Finding]
    registry: PluginRegistry
    where: str
    built: list[EnginePlugin] = field(default_factory=list)

    def open(
        self,
        backend: Backend,
        options: RunnerOptions,
        *,
        pieces: bool = False,
        compiled: Mapping[str, bytes] | None = None,
    ) -> Runner:
        """Open the network as the saved plan does. The first time no creators are needed.

        `pieces` splits the graph in any case; `compiled` has the blobs of `compile_pieces`.

        Raises:
            EngineError: the runtime refuses a piece, or a plugin failed.
        """
        if not self.records:  # all of them vanished into the graph
            return backend.open(self.model, options)
        built, self.built = self.built, []
        if not built:
            built = load_plugins(self.records, self.blobs, self.registry, self.where)
        return open_plugin_graph(
            backend, self.model, options, self.records, built, self.notices, pieces=pieces,
            compiled=compiled,
        )  # fmt: skip

    def close(self) -> None:
        """End the plugins; `open` is not called any more."""
        for plugin in self.built:
            plugin.close()
        self.built = []


def build_plugins(
    network: Network,
    model: bytes,
    inputs: Sequence[TensorSpec],
    *,
    max_batch: int,
    batched: bool,
    profiles: Profiles = (),
    scales: Mapping[str, float] | None = None,
    registry: PluginRegistry | None = None,
    where: str,
) -> PluginLayers | None:
    """Find and build the plugins of a network; None if it has none.

    `model` is the network's message, its shapes fixed as far as they are; `profiles` those of
    the network; `scales` those of tensors in INT8, beside the Q/DQ pairs of the graph. The
    creators are this process's if `registry` is None.

    Raises:
        ModelError, PluginError: see `headrace.plugins.nodes.resolve` and `LayerPlugin.build`;
            nothing that was made is left.
    """
    import onnx

    if not has_plugins(network):
        return None
    registry = registry or known_plugins()
    host, number = _elsewhere(network, registry)
    if host is not None:
        layers: PluginLayers | None = host.build(
            number,
            model,
            inputs,
            max_batch=max_batch,
            batched=batched,
            profiles=profiles,
            scales=scales,
            where=where,
        )
        return layers
    proto = onnx.ModelProto.FromString(model)
    views = _views(proto, inputs, max_batch, batched, profiles)
    resolved = resolve(network, proto, views, registry, measure_on_noise(inputs), where)
    built: list[EnginePlugin] = []
    try:
        if not resolved.nodes and not resolved.changed:
            return None
        known = TensorScales(resolved.proto, scales or {})
        for node in resolved.nodes:
            layer = node.layer
            built.append(
                layer.build(
                    node.infos, node.dtypes, node.ranges, node.shape_infos,
                    known.of([*node.inputs, *node.outputs]),
                )
            )  # fmt: skip
            if converted := built[-1].spec.converted:
                text = f"plugin {layer.type} (node {node.name!r}) works in other forms than the "
                text += f"network: {converted}"
                resolved.notices.append(Finding("plugin-forms", "info", text, where))
            if absent := methods_left_out(layer.instance.plugin):
                text = f"plugin {layer.type} (node {node.name!r}) has no {', '.join(absent)}: "
                text += "it runs here, and TensorRT's build refuses it"
                resolved.notices.append(Finding("plugin-methods", "info", text, where))
        for plugin in built:
            plugin.finish()
        records: list[PluginRecord] = []
        blobs: dict[str, bytes] = {}
        for number, (node, plugin) in enumerate(zip(resolved.nodes, built, strict=True)):
            names = (node.inputs, node.shape_inputs, node.outputs)
            record, more = record_of(plugin.save(), names, number)
            creator = _creator_of(node.layer, record, registry)
            records.append(record.changed(code=code_of(creator)))
            blobs |= more
        layers = PluginLayers(
            _described(resolved), tuple(records), blobs, resolved.notices, registry, where
        )
        missing = missing_creators([p.spec for p in built], registry)
        if missing:
            layers.built, built = built, []
            names_text = ", ".join(
                quoted(f"{t} version {v}") + (f", namespace {n!r}" if n else "")
                for t, v, n in missing
            )
            text = f"no creator is registered for {names_text}: the plan cannot be loaded again"
            near = [hint for key in missing for hint in registry.near(*key)]
            text = "; ".join([text, *near])
            layers.notices.append(Finding("operator-unknown", "warning", text))
        return layers
    finally:
        for plugin in built:
            plugin.close()
        resolved.close()


def _creator_of(layer: LayerPlugin, record: PluginRecord, registry: PluginRegistry) -> object:
    """Find the creator of a layer's plugin: of its own library, if several have the name."""
    key = (record.type, record.version, record.namespace)
    library = getattr(layer.instance.plugin, "library", None)
    own = (c for c in registry.candidates(*key) if getattr(c, "library", "") == library)
    return next(own, None) or registry.find(*key)


def _elsewhere(network: Network, registry: PluginRegistry) -> tuple[Any, int]:
    """Find the process that builds the plugins, if not this one, and its number of the network."""
    if (host := getattr(network.plugins, "host", None)) is not None:
        return host, getattr(network.plugins, "number", 0)
    names = {op.name for op in network.unknown_operators()}
    own: dict[tuple[str, str, str], Any] = {}
    for c in registry.all_creators_recursive:
        own.setdefault((c.name, c.plugin_version, c.plugin_namespace), c)
    hosts = {
        id(host): host
        for (name, _, _), c in own.items()
        if name in names and (host := getattr(c, "host", None)) is not None
    }
    if len(hosts) > 1:
        raise PluginError(
            "its plugins are in several libraries that run in worker processes of their own",
            where=str(network.path),
            fix="custom-lib-guard=never, or headrace trust, for all of them but one",
        )
    return next(iter(hosts.values()), None), 0


def _described(resolved: Resolved) -> bytes:
    """The graph with all that is known of its values."""
    graph = resolved.proto.graph
    ends = {v.name for v in (*graph.input, *graph.output)} | {t.name for t in graph.initializer}
    known = {v.name: v for v in resolved.view.infos()}
    del graph.value_info[:]
    graph.value_info.extend(v for v in known.values() if v.name not in ends)
    computed = {o for node in resolved.nodes for o in node.outputs}
    for value in graph.output:
        if value.name in computed:
            value.CopyFrom(known[value.name])
    return bytes(resolved.proto.SerializeToString(deterministic=True))


def _views(
    proto: ModelProto,
    inputs: Sequence[TensorSpec],
    max_batch: int,
    batched: bool,
    profiles: Profiles,
) -> Views:
    values = {v.name: v for v in proto.graph.input}
    free: dict[str, Shape] = {}
    for spec in inputs:
        shape = list(spec.shape)
        if batched and shape and shape[0] is None:
            axis = values[spec.name].type.tensor_type.shape.dim[0]
            if not axis.dim_param:
                axis.dim_param = BATCH
            shape[0] = axis.dim_param
        free[spec.name] = tuple(shape)

    def at(number: int) -> dict[str, Shape]:
        return {
            name: tuple(d if isinstance(d, int) else number for d in shape)
            for name, shape in free.items()
        }

    if not profiles:
        most = max_batch if batched else 1
        return Views(free, ((at(1), at(most), at(most)),))
    triples = []
    for profile in profiles:
        parts = [
            {name: profile[name][i] if name in profile else shape
             for name, shape in at(1).items()}
            for i in range(3)
        ]  # fmt: skip
        triples.append((parts[0], parts[1], parts[2]))
    return Views(free, tuple(triples))


def measure_on_noise(inputs: Sequence[TensorSpec]) -> Measure:
    """Make a function that runs a part of the graph on noise, to see its shapes."""

    def measure(
        proto: ModelProto,
        names: Sequence[str],
        shapes: Mapping[str, Shape],
        stand_ins: Mapping[str, Array],
    ) -> dict[str, Array]:
        specs = [TensorSpec(s.name, s.dtype, tuple(shapes[s.name])) for s in inputs]
        feeds = {**sample_inputs(specs, 1), **stand_ins}
        model, used = _upstream(proto, names, feeds)
        # A number: a worker, which this may be, must not bind threads to cores.
        options = RunnerOptions(usable_cores(), batched=False)
        runner = get_backend(DEFAULT_BACKEND).open(model, options)
        try:
            arrays = runner.run({name: feeds[name] for name in used})
            return dict(zip([s.name for s in runner.outputs], arrays, strict=True))
        finally:
            runner.close()

    return measure


def _upstream(
    proto: ModelProto, names: Sequence[str], feeds: Mapping[str, Array]
) -> tuple[bytes, list[str]]:
    """Cut out the part of a graph that makes `names`, beginning at the values in `feeds`.

    Returns:
        The ONNX message, and the names of the values that go in.
    """
    import onnx

    nodes = list(proto.graph.node)
    producer = {o: i for i, n in enumerate(nodes) for o in n.output if o}
    initializers = {t.name: t for t in proto.graph.initializer}
    needed: set[int] = set()
    inputs: dict[str, None] = {}
    weights: dict[str, None] = {}
    stack = list(names)
    while stack:
        name = stack.pop()
        if name in initializers:
            weights[name] = None
        elif name in feeds:
            inputs[name] = None
        elif name in producer and producer[name] not in needed:
            needed.add(producer[name])
            stack += [r for r in names_read(nodes[producer[name]]) if r]
    model = model_beside(proto, "upstream")
    graph = model.graph
    graph.node.extend(nodes[i] for i in sorted(needed))
    graph.initializer.extend(initializers[n] for n in weights)
    for name in inputs:
        kind = onnx.helper.np_dtype_to_tensor_dtype(feeds[name].dtype)
        shape = list(feeds[name].shape)
        graph.input.append(onnx.helper.make_tensor_value_info(name, kind, shape))
    for name in names:
        graph.output.add().name = name
    return bytes(model.SerializeToString()), list(inputs)
