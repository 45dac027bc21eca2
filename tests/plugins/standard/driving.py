"""Takes a standard plugin through its life: fields, shapes, types, save, load, run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from headrace.plugins import (
    DataType,
    Dims,
    DimsExprs,
    DynamicPluginTensorDesc,
    IExprBuilder,
    PluginField,
    PluginFieldCollection,
    PluginFieldType,
    PluginRegistry,
    PluginTensorDesc,
    TensorFormat,
    TensorRTPhase,
    address_of,
)
from headrace.plugins.expressions import Axis
from headrace.plugins.standard import register_standard

REGISTRY = PluginRegistry()
register_standard(REGISTRY)


def fields(values: dict[str, Any]) -> PluginFieldCollection:
    """Floats become FLOAT32, integers INT32, text CHAR, as the attributes of a node do."""
    made = []
    for name, value in values.items():
        if isinstance(value, str):
            made.append(PluginField(name, value.encode() + b"\0", PluginFieldType.CHAR))
            continue
        array = np.atleast_1d(np.array(value))
        is_float = array.dtype.kind == "f" or not array.size
        kind = PluginFieldType.FLOAT32 if is_float else PluginFieldType.INT32
        made.append(PluginField(name, array.astype(np.float32 if is_float else np.int32), kind))
    return PluginFieldCollection(made)


def create(name: str, version: str = "1", **values: Any) -> Any:
    creator = REGISTRY.find(name, version)
    assert creator is not None, name
    collection = fields(values)
    if hasattr(creator, "deserialize_plugin"):
        return creator.create_plugin("layer", collection)
    return creator.create_plugin("layer", collection, TensorRTPhase.BUILD)


def symbolic(shapes: Sequence[tuple[int, ...]], free: bool = True) -> list[DimsExprs]:
    builder = IExprBuilder()
    return [
        DimsExprs(Axis(i, j) if free else builder.constant(d) for j, d in enumerate(shape))
        for i, shape in enumerate(shapes)
    ]


def run(name: str, *inputs: Any, version: str = "1", **values: Any) -> list[Any]:
    """The outputs for whole inputs (batch included), after a save and a load."""
    plugin = create(name, version, **values)
    arrays = [np.ascontiguousarray(a) for a in inputs]
    generation = "V3" if not hasattr(plugin, "tensorrt_version") else plugin.tensorrt_version >> 24
    return _DRIVERS[generation](plugin, arrays)


def _types(arrays: Sequence[Any]) -> list[DataType]:
    return [DataType.of(a.dtype) for a in arrays]


def _check_formats(plugin: Any, descs: list[Any], count: int) -> None:
    wrapped = [DynamicPluginTensorDesc(d) for d in descs]
    for pos in range(len(descs)):
        offered = wrapped if hasattr(plugin, "plugin_name") else descs
        assert plugin.supports_format_combination(pos, offered, count), f"tensor {pos}"


def _static(plugin: Any, arrays: list[Any]) -> list[Any]:
    batch = arrays[0].shape[0]
    shapes = [Dims(a.shape[1:]) for a in arrays]
    types = _types(arrays)
    outs = [Dims(plugin.get_output_shape(i, shapes)) for i in range(plugin.num_outputs)]
    generation = plugin.tensorrt_version >> 24
    if generation == 0:
        out_types = [types[0]] * len(outs)
        assert plugin.supports_format(types[0], TensorFormat.LINEAR)
        plugin.configure_with_format(shapes, outs, types[0], TensorFormat.LINEAR, batch)
    else:
        out_types = [plugin.get_output_data_type(i, types) for i in range(len(outs))]
        if generation == 1:
            assert plugin.supports_format(types[0], TensorFormat.LINEAR)
            plugin.configure_plugin(
                shapes, outs, types, out_types, [False] * len(types), [False] * len(outs),
                TensorFormat.LINEAR, batch,
            )  # fmt: skip
        else:
            descs = [
                PluginTensorDesc(s, t)
                for s, t in zip([*shapes, *outs], [*types, *out_types], strict=True)
            ]
            _check_formats(plugin, descs, len(types))
            plugin.configure_plugin(descs[: len(types)], descs[len(types) :])
    creator = REGISTRY.find(plugin.plugin_type, plugin.plugin_version)
    assert creator is not None
    loaded = creator.deserialize_plugin("layer", plugin.clone().serialize()).clone()
    loaded.initialize()
    results = [np.full((batch, *o), 77, t.numpy) for o, t in zip(outs, out_types, strict=True)]
    status = loaded.execute_async(
        batch, [address_of(a) for a in arrays], [address_of(a) for a in results], 0, 0
    )
    assert status in (0, None)
    return results


def _resolved(shapes: Sequence[Any], arrays: Sequence[Any]) -> list[tuple[int, ...]]:
    return [
        tuple(e.evaluate(lambda leaf: arrays[leaf.input].shape[leaf.axis]) for e in shape)
        for shape in shapes
    ]


def _whole(plugin: Any, arrays: list[Any]) -> list[Any]:
    types = _types(arrays)
    builder = IExprBuilder()
    given = [a.shape for a in arrays]
    count = plugin.num_outputs
    if hasattr(plugin, "plugin_name"):
        out_types = plugin.get_output_data_types(types)
        ask = lambda free: plugin.get_output_shapes(symbolic(given, free), [], builder)  # noqa: E731
    else:
        out_types = [plugin.get_output_datatype(i, types) for i in range(count)]
        ask = lambda free: [  # noqa: E731
            plugin.get_output_dimensions(i, symbolic(given, free), builder) for i in range(count)
        ]
    outs = _resolved(ask(False), arrays)
    if plugin.layer.name not in NEED_FIXED_AXES:
        assert _resolved(ask(True), arrays) == outs, "symbolic and real shapes differ"
    descs = [
        PluginTensorDesc(s, t) for s, t in zip([*given, *outs], [*types, *out_types], strict=True)
    ]
    _check_formats(plugin, descs, len(types))
    kind = plugin.layer
    creator = REGISTRY.find(kind.name, kind.version)
    assert creator is not None
    if hasattr(plugin, "plugin_name"):
        saved = plugin.get_fields_to_serialize()
        loaded = creator.create_plugin("layer", saved, TensorRTPhase.RUNTIME)
        loaded = loaded.attach_to_context(None)
    else:
        loaded = creator.deserialize_plugin("layer", plugin.serialize()).clone()
    results = [np.full(o, 77, t.numpy) for o, t in zip(outs, out_types, strict=True)]
    loaded.enqueue(
        descs[: len(types)],
        descs[len(types) :],
        [address_of(a) for a in arrays],
        [address_of(a) for a in results],
        0,
        0,
    )
    return results


NEED_FIXED_AXES: set[str] = set()
"""Plugins of whole shapes that must know some of them while building."""

_DRIVERS: dict[Any, Any] = {0: _static, 1: _static, 2: _static, 3: _whole, "V3": _whole}


def decomposed(name: str, *inputs: Any, version: str = "1", opset: int = 18, **values: Any) -> Any:
    """What the plugin's ONNX nodes compute; None if it has none."""
    import onnx
    import onnx_ir as ir
    from onnx import helper
    from onnx.reference import ReferenceEvaluator

    plugin = create(name, version, **values)
    names = [f"x{i}" for i in range(len(inputs))]
    outs = [f"y{i}" for i in range(plugin.num_outputs)]
    values_in = [
        ir.Value(
            name=n, shape=ir.Shape(a.shape), type=ir.TensorType(ir.DataType.from_numpy(a.dtype))
        )
        for n, a in zip(names, inputs, strict=True)
    ]
    node = ir.Node("", name, values_in, outputs=[ir.Value(name=n) for n in outs], name="node")
    nodes = plugin.to_onnx(node, opset)
    if nodes is None:
        return None
    infos = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
        for n, a in zip(names, inputs, strict=True)
    ]
    ends = [helper.make_empty_tensor_value_info(n) for n in outs]
    graph = helper.make_graph(nodes, "g", infos, ends)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    onnx.shape_inference.infer_shapes(model, strict_mode=True)
    return ReferenceEvaluator(model).run(None, dict(zip(names, inputs, strict=True)))
