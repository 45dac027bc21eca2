"""Layers that plugins compute: one node each. Source: tensorrt-plugins spec 3, 4, 11."""

from __future__ import annotations

from typing import Any

import numpy as np

from noria.network.tensor_spec import TensorType
from noria.plugins.layer import LayerPlugin, ShapeInput
from noria.plugins.nodes import SHAPE_INPUTS
from noria.plugins.types import DataType
from noria.trt.api.types import elem_of
from noria.trt.layers.base import ILayer
from noria.trt.lowering.fragment import Fragment, Inputs, lowers
from noria.trt.plugin_shapes import symbolic


@lowers("PLUGIN_V2", "PLUGIN_V3", "PLUGIN")
def plugin_layer(f: Fragment, layer: ILayer, inputs: Inputs) -> list[str]:
    """One node that the engine's cut finds by its name; shapes are asked of the plugin."""
    from onnx import helper

    driver: LayerPlugin = layer._params["_plugin"]
    driver.layer = layer._name  # errors name it
    plain = int(layer._params["_plain"])
    names = [name for name in inputs if name is not None]
    outputs = [f.fresh("plugin") for _ in layer._outputs]
    shapes = _shapes(f, driver, names[:plain], names[plain:])
    types = driver.output_types([DataType.of(f.dtype(n)) for n in names[:plain]])
    attributes: dict[str, Any] = {}
    if names[plain:]:
        attributes[SHAPE_INPUTS] = list(range(plain, len(names)))
    node = helper.make_node(driver.type or "Plugin", names, outputs, **attributes)
    node.domain = "noria.plugin"
    f.nodes.append(node)
    for name, kind, shape in zip(outputs, types, shapes, strict=True):
        f.infos[name] = TensorType(elem_of(kind), shape)
    return outputs


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
    return symbolic(exprs, dims, known, driver.instance.where)
