"""Loops and conditionals of a network, and plugin layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from noria._core.errors import NoriaError
from noria.trt.api.layer_graph import LayerGraph
from noria.trt.api.plugin_layers import IPluginV2Layer, IPluginV3Layer, add_plugin
from noria.trt.api.tensor import ITensor
from noria.trt.layers.loops import IIfConditional, ILoop
from noria.trt.release import versioned


@versioned(
    {
        ">=10": "add_plugin_v3",
        ">=10.6": "add_plugin",
    }
)
class AddsControl(LayerGraph):
    """Base of `INetworkDefinition`."""

    def add_loop(self) -> ILoop:
        """A loop; its borders are added to it, the layers between them to the network."""
        return ILoop(cast(Any, self))

    def add_if_conditional(self) -> IIfConditional:
        """One of two branches."""
        return IIfConditional(cast(Any, self))

    def add_plugin_v2(self, inputs: Sequence[ITensor], plugin: Any) -> IPluginV2Layer:
        """A layer that a plugin of the version-2 line computes; the network keeps a clone."""
        return cast("IPluginV2Layer", add_plugin(cast(Any, self), plugin, inputs))

    def add_plugin_v3(
        self, inputs: Sequence[ITensor], shape_inputs: Sequence[ITensor], plugin: Any
    ) -> IPluginV3Layer:
        """A layer that a plugin of version 3 computes; the network keeps a clone."""
        made = add_plugin(cast(Any, self), plugin, inputs, shape_inputs, kind="PLUGIN_V3")
        return cast("IPluginV3Layer", made)

    def add_plugin(self, tuple: Any, aot: Any = None) -> Any:
        """A layer of a plugin that was written with decorators.

        Args:
            tuple: the result of `noria.trt.plugin.op.ns.name(…)`.
            aot: True asks for code ahead of time, which is not run here.
        """
        try:
            plugin = tuple.plugin(aot)
        except NoriaError as error:
            self._report(str(error))
            return None
        return self.add_plugin_v3(list(tuple.inputs), [], plugin)
