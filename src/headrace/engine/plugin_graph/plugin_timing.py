"""The runtime's share of a network with plugins as one model, so that tactics can be timed on it.

Plugins take the same time beside any runtime, and need not exist in the process that measures.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from headrace._core.types import Array
from headrace.engine.backends import DEFAULT_BACKEND, RunnerOptions, get_backend
from headrace.engine.plugin_graph.plugin_layers import PluginLayers
from headrace.engine.plugin_graph.split import names_read
from headrace.engine.plugin_graph.split_runner import SplitRunner
from headrace.network.network import Network
from headrace.network.tensor_spec import TensorSpec

if TYPE_CHECKING:
    from onnx import ModelProto


Bake = Callable[[Network], bytes]


class PluginTiming:
    """The runtime's share of a network with plugins, for tuning.

    `bake` makes the ONNX message of a network, `layers` builds the plugins of such a message;
    `feeds` is one batch.

    Attributes:
        inputs, feeds: of the models that `bake` makes: the network's own, and what plugins give.

    Raises:
        EngineError: the network cannot be run once to find what the plugins give.
    """

    def __init__(
        self,
        network: Network,
        bake: Bake,
        layers: Callable[[bytes], PluginLayers | None],
        feeds: Mapping[str, Array],
    ) -> None:
        self._bake, self._layers = bake, layers
        self._values = dict(feeds)
        plugin_layers = layers(bake(network))
        if plugin_layers is not None and plugin_layers.records:
            runner = plugin_layers.open(
                get_backend(DEFAULT_BACKEND), RunnerOptions(batched=False), pieces=True
            )
            assert isinstance(runner, SplitRunner)
            try:
                values = runner.run_all(feeds)
                names = {name for r in plugin_layers.records for name in r.outputs if name}
                self._values |= {name: np.array(values[name]) for name in sorted(names)}
            finally:
                runner.close()
        elif plugin_layers is not None:
            plugin_layers.close()
        self.feeds: dict[str, Array] = {}
        self.inputs: Sequence[TensorSpec] = ()
        self.bake(network)

    def bake(self, network: Network) -> bytes:
        """Write the ONNX message of the runtime's share of `network`, in any precision."""
        import onnx

        model = self._bake(network)
        layers = self._layers(model)
        names = list(self._values)
        if layers is not None:
            try:
                model, names = _without_plugins(
                    onnx.ModelProto.FromString(layers.model),
                    {r.node: (r.inputs + r.shape_inputs, r.outputs) for r in layers.records},
                    self._values,
                )
            finally:
                layers.close()
        self.feeds = {name: self._values[name] for name in names}
        self.inputs = [TensorSpec(n, a.dtype, a.shape) for n, a in self.feeds.items()]
        return model


def _without_plugins(
    proto: ModelProto,
    plugins: Mapping[str, tuple[Sequence[str], Sequence[str]]],
    feeds: Mapping[str, Array],
) -> tuple[bytes, list[str]]:
    """Take the plugin nodes out: their outputs become inputs, their inputs become outputs.

    All the runtime's work is in one model then, to be timed. `plugins` are as for `split_graph`;
    `feeds` has arrays for the graph's inputs and all that plugins give.

    Returns:
        The ONNX message, and the names of its inputs.
    """
    import onnx

    model = onnx.ModelProto()
    model.CopyFrom(proto)
    graph = model.graph
    infos = {v.name: v for v in (*graph.value_info, *graph.output)}
    kept = [n for n in graph.node if n.name not in plugins]
    computed = {name for n in kept for name in n.output}
    used = {r for n in kept for r in names_read(n)}
    plugin_outputs = {o for _, outs in plugins.values() for o in outs if o}
    inputs = [v.name for v in graph.input if v.name in feeds and v.name in used]
    inputs += sorted(plugin_outputs & used)
    ends = [v.name for v in graph.output if v.name not in plugin_outputs]
    copies = [onnx.ValueInfoProto.FromString(infos[n].SerializeToString()) for n in ends]
    for value in copies:
        value.type.tensor_type.ClearField("shape")
    for name, (reads, _) in plugins.items():
        for index, read in enumerate(reads):
            if read in computed:  # under a name that no rewriting of the graph changes
                end = f"{name}:{index}"
                kept.append(onnx.helper.make_node("Identity", [read], [end], name=f"{end}/end"))
                copies.append(onnx.ValueInfoProto(name=end))
    for part in (graph.node, graph.output, graph.input, graph.value_info):
        del part[:]
    graph.node.extend(kept)
    graph.output.extend(copies)
    for name in inputs:
        kind = onnx.helper.np_dtype_to_tensor_dtype(feeds[name].dtype)
        shape = list(feeds[name].shape)
        graph.input.append(onnx.helper.make_tensor_value_info(name, kind, shape))
    return bytes(model.SerializeToString(deterministic=True)), inputs
