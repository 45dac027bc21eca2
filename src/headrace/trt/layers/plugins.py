"""Layers that plugins compute, one node each. Source: tensorrt-plugins spec 3, 4, 11."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from onnx import helper

from headrace._core.errors import HeadraceError
from headrace.network.tensor_spec import TensorType
from headrace.plugins.base import IPluginCreatorV3One
from headrace.plugins.calls import Instance, call_creator
from headrace.plugins.drivers import add_layer
from headrace.plugins.expressions import evaluate_free
from headrace.plugins.fields import fields_of
from headrace.plugins.layer import LayerPlugin, ShapeInput
from headrace.plugins.nodes import SHAPE_INPUTS
from headrace.plugins.types import DataType, TensorRTPhase
from headrace.trt.layers.base import ILayer, check_tensors
from headrace.trt.lowering.fragment import Fragment, Inputs
from headrace.trt.types.reporting import Severity
from headrace.trt.types.tensor import ITensor
from headrace.trt.types.values import elem_of

if TYPE_CHECKING:
    from onnx import NodeProto

    from headrace.plugins.base import IPluginCreator
    from headrace.plugins.types import NumberedEnum
    from headrace.trt.layers.base import Slot
    from headrace.trt.types.owner import Owner
    from headrace.trt.types.reporting import ILogger


class IPluginV2Layer(ILayer):
    """Made by `add_plugin_v2` or the parser; `plugin` is the network's own copy."""

    _kind = "PLUGIN_V2"

    @property
    def plugin(self) -> Any:
        """The network's copy of the plugin."""
        driver = self._params.get("_plugin")
        if driver is None:
            raise AttributeError(f"{self._name}: is a node that is kept as it is, with no plugin")
        return driver.instance.plugin

    def _lower(self, f: Fragment, inputs: Inputs) -> list[str]:
        # one node that the engine's cut finds by its name; shapes are asked of the plugin
        driver: LayerPlugin = self._params["_plugin"]
        driver.layer = self._name  # errors name it
        plain = int(self._params["_plain"])
        names = [name for name in inputs if name is not None]
        outputs = [f.fresh("plugin") for _ in self._outputs]
        shapes = _shapes(f, driver, names[:plain], names[plain:])
        types = driver.output_types([DataType.of(f.dtype(n)) for n in names[:plain]])
        attributes: dict[str, Any] = {}
        if names[plain:]:
            attributes[SHAPE_INPUTS] = list(range(plain, len(names)))
        node = helper.make_node(driver.type or "Plugin", names, outputs, **attributes)
        node.domain = "headrace.plugin"
        f.nodes.append(node)
        for name, kind, shape in zip(outputs, types, shapes, strict=True):
            f.infos[name] = TensorType(elem_of(kind), shape)
        return outputs


class IPluginV3Layer(IPluginV2Layer):
    """Made by `add_plugin_v3` or the parser; `plugin` is the network's own copy."""

    _kind = "PLUGIN_V3"
    _words = "PluginV3_V3ONE"


class IPluginLayer(IPluginV2Layer):
    """The oldest name."""


PluginLayer = TypeVar("PluginLayer", bound=IPluginV2Layer)


def add_plugin(
    network: Owner,
    plugin: object,
    inputs: Sequence[ITensor],
    shape_inputs: Sequence[ITensor] = (),
    *,
    name: str | None = None,
    cls: type[PluginLayer],
) -> PluginLayer | None:
    """Add a layer with a clone of a plugin; None, with a report to the logger, if it refuses."""
    tensors = [*inputs, *shape_inputs]
    check_tensors(tensors)
    label = name or f"(Unnamed Layer* {len(network._layers)}) [{cls._words or cls.__name__[1:-5]}]"
    try:
        driver = add_layer(
            plugin,
            layer=label,
            input_types=[t.dtype for t in inputs],
            num_shape_inputs=len(shape_inputs),
            implicit_batch=network._implicit,
        )
    except HeadraceError as error:
        network._report(str(error))
        return None
    layer = cls(
        network, tensors, params={"_plugin": driver, "_plain": len(inputs)},
        outputs=driver.num_outputs, name=name,
    )  # fmt: skip
    driver.layer = layer._name
    network._append(layer)
    weakref.finalize(network, driver.close)
    return layer


def add_parsed(
    network: Owner,
    node: NodeProto,
    name: str,
    slots: list[Slot],
    inputs: list[ITensor | None],
    creator: IPluginCreator | IPluginCreatorV3One,
    logger: ILogger | None,
) -> ILayer | None:
    """The layer of a node that a creator is registered for; None if it cannot be made."""
    from headrace.network.ir import node_from_proto

    tensors = _tensors(network, slots, inputs)
    third = isinstance(creator, IPluginCreatorV3One)
    try:
        fields, notices = fields_of(node_from_proto(node), creator, f"node {name!r}")
        for notice in notices:
            network._report(str(notice), trt_severity(notice.level))
        more = (TensorRTPhase.BUILD,) if third else ()
        plugin = call_creator(creator, "parse", name, "create_plugin", name, fields, *more)
    except HeadraceError as error:
        network._report(str(error))
        return None
    marked = next((a.ints for a in node.attribute if a.name == SHAPE_INPUTS), ())
    indices = {int(i) % len(tensors) for i in marked} if tensors else set()
    plain = [t for i, t in enumerate(tensors) if i not in indices]
    shape_inputs = [t for i, t in enumerate(tensors) if i in indices]
    user = Instance(plugin, name, f"{creator.name} version {creator.plugin_version}")
    try:
        layer = add_plugin(
            network, plugin, plain, shape_inputs, name=name,
            cls=IPluginV3Layer if third else IPluginV2Layer,
        )  # fmt: skip
    finally:
        user.destroy("parse")
    if layer is not None:
        driver = layer._params["_plugin"]
        driver.namespace = driver.namespace or creator.plugin_namespace
    return layer


def add_live(
    network: Owner,
    name: str,
    slots: list[Slot],
    inputs: list[ITensor | None],
    live: LayerPlugin,
) -> ILayer | None:
    """The layer of a node that a parser made a plugin for already: with a clone of it."""
    cls = IPluginV3Layer if live.generation == "V3" else IPluginV2Layer
    tensors = _tensors(network, slots, inputs)
    layer = add_plugin(network, live.instance.plugin, tensors, name=name, cls=cls)
    if layer is not None:
        layer._params["_plugin"].namespace = live.namespace
    return layer


def _tensors(network: Owner, slots: list[Slot], inputs: list[ITensor | None]) -> list[ITensor]:
    """Inputs of a parsed node; initialisers become constant layers."""
    tensors = []
    for kind, what in slots:
        tensor = network._constant_tensor(what) if kind == "weights" else None
        if kind == "tensor":
            tensor = inputs[what]
        if tensor is not None:
            tensors.append(tensor)
    return tensors


def trt_severity(level: str) -> NumberedEnum:
    """How loud a notice is."""
    severity: NumberedEnum = Severity.WARNING if level == "warning" else Severity.INFO
    return severity


def _shapes(
    f: Fragment, driver: LayerPlugin, names: list[str], shape_names: list[str]
) -> list[tuple[int, ...]]:
    dims = [f.shape(n) for n in names]
    values = []
    for name in shape_names:
        info = f.infos[name].value
        if info is None:
            values.append(ShapeInput((None,) * max(1, int(np.prod(f.shape(name)))), name))
        else:
            flat = [None if np.isnan(float(v)) else int(v) for v in info.reshape(-1)]
            values.append(ShapeInput(tuple(flat), name))
    exprs = driver.output_shapes(dims, values)
    known = [tuple(v if v is not None else -1 for v in s.values) for s in values]
    return evaluate_free(exprs, dims, known, driver.instance.where)
