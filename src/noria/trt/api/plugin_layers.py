"""Layers that plugins compute. Source: tensorrt-plugins spec 3, 4, 11."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from noria._core.errors import NoriaError
from noria.plugins.base import IPluginCreatorV3One
from noria.plugins.calls import Instance, call_creator
from noria.plugins.drivers import add_layer
from noria.plugins.fields import fields_of
from noria.plugins.layer import LayerPlugin
from noria.plugins.nodes import SHAPE_INPUTS
from noria.plugins.types import TensorRTPhase
from noria.trt.api.reporting import Severity
from noria.trt.api.tensor import ITensor
from noria.trt.layers.base import ILayer

if TYPE_CHECKING:
    from noria.trt.api.network import INetworkDefinition


class IPluginV2Layer(ILayer):
    """Made by `add_plugin_v2` or the parser; `plugin` is the network's own copy."""

    @property
    def plugin(self) -> Any:
        """The network's copy of the plugin."""
        return self._params["_plugin"].instance.plugin


class IPluginV3Layer(IPluginV2Layer):
    """Made by `add_plugin_v3` or the parser; `plugin` is the network's own copy."""


class IPluginLayer(IPluginV2Layer):
    """The oldest name."""


def add_plugin(
    network: INetworkDefinition,
    plugin: Any,
    inputs: Sequence[ITensor],
    shape_inputs: Sequence[ITensor] = (),
    *,
    name: str | None = None,
    kind: str = "PLUGIN_V2",
) -> Any:
    """Add a layer with a clone of a plugin; None, with a report to the logger, if it refuses."""
    tensors = [*inputs, *shape_inputs]
    for tensor in tensors:
        if not isinstance(tensor, ITensor):
            raise TypeError(f"an input is an ITensor, not a {type(tensor).__name__}")
    cls = IPluginV3Layer if kind == "PLUGIN_V3" else IPluginV2Layer
    label = name or f"(Unnamed Layer* {len(network._layers)}) [{cls.__name__[1:-5]}]"
    try:
        made = add_layer(
            plugin,
            layer=label,
            input_types=[t.dtype for t in inputs],
            num_shape_inputs=len(shape_inputs),
            implicit_batch=network._implicit,
        )
    except NoriaError as error:
        network._report(str(error))
        return None
    layer = cls(
        network, kind, tensors, params={"_plugin": made, "_plain": len(inputs)},
        outputs=made.num_outputs, name=name,
    )  # fmt: skip
    made.layer = layer._name
    network._append(layer)
    weakref.finalize(network, made.close)
    return layer


def add_parsed(
    network: INetworkDefinition,
    node: Any,
    name: str,
    slots: list[tuple[str, Any]],
    inputs: list[ITensor | None],
    creator: Any,
    logger: Any,
) -> ILayer | None:
    """The layer of a node that a creator is registered for; None if it cannot be made."""
    from noria.network.ir import node_from_proto

    tensors = _tensors(network, slots, inputs)
    third = isinstance(creator, IPluginCreatorV3One)
    try:
        fields, notices = fields_of(node_from_proto(node), creator, f"node {name!r}")
        for notice in notices:
            network._report(str(notice), trt_severity(notice.level))
        more = (TensorRTPhase.BUILD,) if third else ()
        made = call_creator(creator, "parse", name, "create_plugin", name, fields, *more)
    except NoriaError as error:
        network._report(str(error))
        return None
    marked = next((a.ints for a in node.attribute if a.name == SHAPE_INPUTS), ())
    places = {int(i) % len(tensors) for i in marked} if tensors else set()
    plain = [t for i, t in enumerate(tensors) if i not in places]
    shape_inputs = [t for i, t in enumerate(tensors) if i in places]
    user = Instance(made, name, f"{creator.name} version {creator.plugin_version}")
    try:
        layer = add_plugin(
            network, made, plain, shape_inputs, name=name,
            kind="PLUGIN_V3" if third else "PLUGIN_V2",
        )  # fmt: skip
    finally:
        user.destroy("parse")
    if layer is not None:
        driver = layer._params["_plugin"]
        driver.namespace = driver.namespace or creator.plugin_namespace
    return cast("ILayer | None", layer)


def add_live(
    network: INetworkDefinition,
    name: str,
    slots: list[tuple[str, Any]],
    inputs: list[ITensor | None],
    live: LayerPlugin,
) -> ILayer | None:
    """The layer of a node that a parser made a plugin for already: with a clone of it."""
    kind = "PLUGIN_V3" if live.generation == "V3" else "PLUGIN_V2"
    tensors = _tensors(network, slots, inputs)
    layer = add_plugin(network, live.instance.plugin, tensors, name=name, kind=kind)
    if layer is not None:
        layer._params["_plugin"].namespace = live.namespace
    return cast("ILayer | None", layer)


def _tensors(
    network: INetworkDefinition, slots: list[tuple[str, Any]], inputs: list[ITensor | None]
) -> list[ITensor]:
    """Inputs of a parsed node; initialisers become constant layers."""
    tensors = []
    for kind, what in slots:
        tensor = network._constant_tensor(what) if kind == "weights" else None
        if kind == "tensor":
            tensor = inputs[what]
        if tensor is not None:
            tensors.append(tensor)
    return tensors


def trt_severity(level: str) -> Any:
    """How loud a notice is."""
    return Severity.WARNING if level == "warning" else Severity.INFO
