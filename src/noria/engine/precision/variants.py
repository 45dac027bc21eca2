"""One network with any choice of its layers in INT8, made without quantising anew each time."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Literal

from noria.engine.precision.explicit import as_network
from noria.engine.precision.prepare import captured_names, fold_batch_norms, prepare
from noria.engine.precision.qdq import MIN_OPSET, to_qdq
from noria.network.network import Network


class Variants:
    """Quantises once; a variant takes the FP32 inputs of layers that are kept.

    Attributes:
        layers: name -> operator of the layers that can compute in INT8, in the graph's order.
    """

    def __init__(
        self,
        network: Network,
        scales: Mapping[str, float],
        *,
        weight_bits: Literal[7, 8] = 8,
        unsigned: bool = False,
    ) -> None:
        """Quantise all layers that can be.

        Args:
            network: FP32.
            scales: activation -> scale.
            weight_bits: see `to_qdq`.
            unsigned: see `to_qdq`.

        Raises:
            EngineError, ModelError: as `export` with int8.
        """
        where = str(network.path) if network.path else None
        plain = prepare(network.to_proto(), opset=MIN_OPSET, where=where)
        fold_batch_norms(plain)
        self._network = network
        self._full, report = to_qdq(plain, scales, weight_bits=weight_bits, unsigned=unsigned)
        chosen = set(report.converted)
        self._plain = {n.name: n for n in plain.graph.node if n.name in chosen}
        self._weights = {t.name: t for t in plain.graph.initializer}
        self.layers = {n.name: n.op_type for n in plain.graph.node if n.name in chosen}

    def network(self, keep: Collection[str] = ()) -> Network:
        """Make the network with all layers in INT8 but those of `keep`."""
        import onnx

        made = onnx.ModelProto()
        made.CopyFrom(self._full)
        graph = made.graph
        there = {t.name for t in graph.initializer}
        for node in graph.node:
            if node.name not in keep or node.name not in self._plain:
                continue
            original = self._plain[node.name]
            node.input[:] = original.input
            for name in original.input:
                if name in self._weights and name not in there:
                    graph.initializer.add().CopyFrom(self._weights[name])
                    there.add(name)
        _prune(graph)
        return as_network(made, self._network)


def _prune(graph: Any) -> None:
    """Drop nodes and weights that no output needs."""
    needed = {value.name for value in graph.output} | captured_names(graph)
    for index in reversed(range(len(graph.node))):
        node = graph.node[index]
        if needed.isdisjoint(node.output):
            del graph.node[index]
        else:
            needed.update(node.input)
    for index in reversed(range(len(graph.initializer))):
        if graph.initializer[index].name not in needed:
            del graph.initializer[index]
