"""Plugin layers of formats that are imported node by node (Caffe, UFF): made while it is read.

Source: tensorrt-plugins spec 3 (parse), 4.3, 11; shapes leave the batch out in the format itself.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np

from headrace._core.errors import PluginError
from headrace._core.types import Array
from headrace.network.network import Network
from headrace.plugins.base import IPluginCreatorV3One
from headrace.plugins.calls import Instance, call_creator
from headrace.plugins.drivers import add_layer
from headrace.plugins.expressions import evaluate
from headrace.plugins.fields import plain_fields_of
from headrace.plugins.layer import LayerPlugin
from headrace.plugins.negotiate import closest, network_types
from headrace.plugins.registry import PluginRegistry
from headrace.plugins.types import TensorRTPhase

if TYPE_CHECKING:
    import numpy.typing as npt


Shape = tuple[int, ...]
Tensors: TypeAlias = "Sequence[tuple[Shape, npt.DTypeLike]]"
Made: TypeAlias = "list[tuple[Shape, npt.DTypeLike]]"


class LayerFactory(Protocol):
    """Makes layers by their names; see `headrace.infer.model.plugin_factories`."""

    def takes(self, layer: str) -> bool:
        """Whether it makes the layer of that name."""
        ...

    def create(self, layer: str, weights: Sequence[Array], fields: Mapping[str, object]) -> object:
        """The layer's plugin, which stays the factory's."""
        ...


class ImportedPlugins:
    """Makes plugin layers for an importer, and hands them to the network it made.

    Args:
        registry: where creators are looked for.
        factory: goes before the registry for the layers that it takes; held as long as they are.
    """

    def __init__(self, registry: PluginRegistry, factory: LayerFactory | None = None) -> None:
        self._registry = registry
        self._factory = factory
        self._made: dict[str, LayerPlugin] = {}
        self._waiting: list[LayerPlugin] = []

    def takes(self, layer: str) -> bool:
        """Whether the factory makes the layer of that name.

        Raises:
            CustomLibraryError: it failed.
        """
        return self._factory is not None and self._factory.takes(layer)

    def fields(self, kind: str) -> dict[str, str] | None:
        """Fields of a type of plugins, name to type (INT32 …); None if it is not registered."""
        creator = self._registry.find(kind, "1", "")
        return None if creator is None else {f.name: f.type.name for f in creator.field_names}

    def make_by_factory(
        self,
        name: str,
        weights: Sequence[Array],
        fields: Mapping[str, object],
        inputs: Tensors,
    ) -> Made:
        """As `make`, for a layer that the factory `takes`."""
        assert self._factory is not None
        plugin = self._factory.create(name, weights, fields)
        if plugin is None:
            raise PluginError("createPlugin returned null", where=f"layer {name!r}")
        return self._added(plugin, name, inputs)

    def make(
        self, name: str, kind: str, fields: Mapping[str, object], inputs: Tensors
    ) -> Made | None:
        """The layer of a node.

        `fields` are plain values; `inputs` (shape, type) have the batch as axis 0, -1.

        Returns:
            (shape, type) of its outputs, the batch as axis 0 (1 without inputs); None if the
            plugin is not registered.

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
        plugin = call_creator(creator, "parse", name, "create_plugin", name, collection, *more)
        user = Instance(plugin, name, f"{kind} version {version}")
        try:
            return self._added(plugin, name, inputs, creator.plugin_namespace)
        finally:
            user.destroy("parse")

    def _added(self, plugin: Any, name: str, inputs: Tensors, namespace: str = "") -> Made:
        dtypes = [np.dtype(d) for _, d in inputs]
        layer = add_layer(
            plugin, layer=name, input_types=[closest(d) for d in dtypes], implicit_batch=True
        )
        self._waiting.append(layer)
        layer.namespace = layer.namespace or namespace
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
        weakref.finalize(network, _close, list(self._made.values()), self._factory)
        self._made, self._factory = {}, None

    def close(self) -> None:
        """The import failed."""
        _close([*self._made.values(), *self._waiting])
        self._made, self._waiting, self._factory = {}, [], None


def _close(layers: Sequence[LayerPlugin], factory: LayerFactory | None = None) -> None:
    """End the layers; their factory, which is only held here, goes after them."""
    for layer in layers:
        layer.close()
