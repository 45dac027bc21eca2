"""Layers that plugins compute, one node each. Source: tensorrt-plugins spec 3, 4, 11."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from onnx import helper

from headrace._core.errors import HeadraceError, ModelError
from headrace.network.tensor_spec import TensorType
from headrace.plugins.base import IPluginCreatorV3One
from headrace.plugins.calls import Instance, call_creator
from headrace.plugins.drivers import add_layer
from headrace.plugins.expressions import evaluate_free
from headrace.plugins.fields import fields_of
from headrace.plugins.layer import LayerPlugin, ShapeInput
from headrace.plugins.onnx_rules import SHAPE_INPUTS, check_outputs, inputs_of
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
    from headrace.trt.types.owner import Owner


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
        names = [name or "" for name in inputs]  # the last ones that are left out are not there
        names += [""] * (len(self._inputs) - len(names))
        outputs = [f.fresh("plugin") for _ in self._outputs]
        shapes = _shapes(f, driver, names[:plain], names[plain:])
        types = driver.output_types(
            [DataType.of(f.dtype(n)) if n else LEFT_OUT for n in names[:plain]]
        )
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


LEFT_OUT = DataType.FLOAT
"""The type that plugins see of an optional input that is left out."""
PluginLayer = TypeVar("PluginLayer", bound=IPluginV2Layer)


def add_plugin(
    network: Owner,
    plugin: object,
    inputs: Sequence[ITensor | None],
    shape_inputs: Sequence[ITensor] = (),
    *,
    cls: type[PluginLayer],
) -> PluginLayer | None:
    """Add a layer with a clone of a plugin; None, with a report to the logger, if it refuses.

    An input that is None is an optional one that is left out: it keeps its place.
    """
    try:
        return _added(network, plugin, inputs, shape_inputs, cls=cls)
    except HeadraceError as error:
        network._report(str(error))
        return None


def _added(
    network: Owner,
    plugin: object,
    inputs: Sequence[ITensor | None],
    shape_inputs: Sequence[ITensor] = (),
    *,
    name: str | None = None,
    cls: type[PluginLayer],
) -> PluginLayer:
    tensors = [*inputs, *shape_inputs]
    check_tensors([t for t in inputs if t is not None])
    check_tensors(shape_inputs)
    label = name or f"(Unnamed Layer* {len(network._layers)}) [{cls._words or cls.__name__[1:-5]}]"
    driver = add_layer(
        plugin,
        layer=label,
        input_types=[LEFT_OUT if t is None else t.dtype for t in inputs],
        num_shape_inputs=len(shape_inputs),
        implicit_batch=network._implicit,
    )
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
    names: tuple[str, str],
    inputs: Sequence[ITensor | None],
    creator: IPluginCreator | IPluginCreatorV3One,
) -> ILayer:
    """Add the layer of a node that a creator is registered for.

    Args:
        network: receives the layer.
        node: the `NodeProto`.
        names: of the node, which the creator gets, and of the layer.
        inputs: of the node, in its order; None for one that is left out.
        creator: of the plugin.

    Raises:
        AttributesError: an attribute of a kind that no field can hold.
        HeadraceError: inputs or outputs that do not fit; the creator or the plugin failed.
    """
    from headrace.network.ir import node_from_proto

    given, name = names
    where = f"node {name!r}"
    third = isinstance(creator, IPluginCreatorV3One)
    plain, shapes, notice = inputs_of(node, third=third, where=where)
    try:
        fields, notices = fields_of(node_from_proto(node), creator, where)
    except ModelError as error:
        raise AttributesError(error.finding) from error
    for said in [*notices, *filter(None, [notice])]:
        network._report(str(said), trt_severity(said.level))
    more = (TensorRTPhase.BUILD,) if third else ()
    plugin = call_creator(creator, "parse", name, "create_plugin", given, fields, *more)
    user = Instance(plugin, name, f"{creator.name} version {creator.plugin_version}")
    shape_inputs = [t for t in (inputs[i] for i in shapes) if t is not None]
    try:
        layer = _added(
            network, plugin, [inputs[i] for i in plain], shape_inputs, name=name,
            cls=IPluginV3Layer if third else IPluginV2Layer,
        )  # fmt: skip
    finally:
        user.destroy("parse")
    driver = layer._params["_plugin"]
    driver.namespace = driver.namespace or creator.plugin_namespace
    check_outputs(node, layer.num_outputs, driver.type, where)
    return layer


class AttributesError(ModelError):
    """An attribute of a node becomes no field."""


def add_live(
    network: Owner, name: str, inputs: Sequence[ITensor | None], live: LayerPlugin
) -> ILayer:
    """Add the layer of a node that a parser made a plugin for already: with a clone of it."""
    cls = IPluginV3Layer if live.generation == "V3" else IPluginV2Layer
    layer = _added(network, live.instance.plugin, inputs, name=name, cls=cls)
    layer._params["_plugin"].namespace = live.namespace
    return layer


def trt_severity(level: str) -> NumberedEnum:
    """How loud a notice is."""
    severity: NumberedEnum = Severity.WARNING if level == "warning" else Severity.INFO
    return severity


def _shapes(
    f: Fragment, driver: LayerPlugin, names: list[str], shape_names: list[str]
) -> list[tuple[int, ...]]:
    dims = [f.shape(n) if n else (0,) for n in names]
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
