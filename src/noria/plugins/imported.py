"""Plugin layers of formats that are imported node by node (UFF): made while the file is read.

Source: tensorrt-plugins spec 3 (parse), 11; shapes leave the batch out in the format itself.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from noria.network.network import Network
from noria.plugins.calls import Instance, call_creator
from noria.plugins.creators import IPluginCreatorV3One
from noria.plugins.drivers import add_layer
from noria.plugins.evaluate import evaluate
from noria.plugins.fields import plain_fields_of
from noria.plugins.layer import LayerPlugin
from noria.plugins.negotiate import closest, network_types
from noria.plugins.registry import PluginRegistry
from noria.plugins.types import TensorRTPhase

__all__ = ["ImportedPlugins"]

Shape = tuple[int, ...]


class ImportedPlugins:
    """Makes plugin layers for an importer, and hands them to the network it made.

    Args:
        registry: where creators are looked for.
    """

    def __init__(self, registry: PluginRegistry) -> None:
        self._registry = registry
        self._made: dict[str, LayerPlugin] = {}
        self._waiting: list[LayerPlugin] = []

    def make(
        self,
        name: str,
        kind: str,
        fields: Mapping[str, Any],
        inputs: Sequence[tuple[Shape, Any]],
    ) -> list[tuple[Shape, np.dtype[Any]]] | None:
        """The layer of a node.

        Args:
            name: of the node.
            kind: type of the plugin.
            fields: its fields, as plain values.
            inputs: (shape, type) of its inputs; the batch is axis 0, -1.

        Returns:
            (shape, type) of its outputs, the batch as axis 0; None if nobody knows the plugin.

        Raises:
            PluginError: the creator or the plugin failed.
        """
        version = fields.get("plugin_version", "1")
        namespace = fields.get("plugin_namespace", "")
        creator = self._registry.find(kind, str(version), str(namespace))
        if creator is None:
            return None
        collection = plain_fields_of(fields, creator)
        more = (TensorRTPhase.BUILD,) if isinstance(creator, IPluginCreatorV3One) else ()
        made = call_creator(creator, "parse", name, "create_plugin", name, collection, *more)
        user = Instance(made, name, f"{kind} version {version}")
        dtypes = [np.dtype(d) for _, d in inputs]
        try:
            layer = add_layer(
                made,
                layer=name,
                input_types=[closest(d) for d in dtypes],
                implicit_batch=True,
            )
        finally:
            user.destroy("parse")
        self._waiting.append(layer)
        layer.namespace = layer.namespace or creator.plugin_namespace
        exprs = layer.output_shapes([shape for shape, _ in inputs])
        types = network_types(
            layer.output_types([closest(d) for d in dtypes]), dtypes, weak=layer.generation != "V3"
        )
        seen = [
            evaluate(
                exprs,
                [tuple(batch if d < 0 else d for d in shape) for shape, _ in inputs],
                where=layer.instance.where,
            ).shapes
            for batch in (3, 5)
        ]
        return [
            (tuple(-1 if x != y else x for x, y in zip(a, b, strict=True)), dtype)
            for a, b, dtype in zip(*seen, types, strict=True)
        ]

    def place(self, node: str) -> None:
        """The layer just made is computed by the node of that name."""
        layer = self._waiting.pop()
        layer.layer = node
        self._made[node] = layer

    def hand_over(self, network: Network) -> None:
        """Give the layers to the network: they end with it."""
        network.plugins.update(self._made)
        weakref.finalize(network, _close, list(self._made.values()))
        self._made = {}

    def close(self) -> None:
        """The import failed."""
        _close([*self._made.values(), *self._waiting])
        self._made, self._waiting = {}, []


def _close(layers: Sequence[LayerPlugin]) -> None:
    for layer in layers:
        layer.close()
