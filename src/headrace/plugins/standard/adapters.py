"""A `StandardLayer` in the clothes of each plugin class, and the creators of all.

V2, V2Ext and IOExt plugins see shapes without the batch, and get shapes only when they are
configured, so what they save holds shapes and types beside the fields.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from headrace._core.errors import ModelError
from headrace.plugins.base import (
    IPluginCreator,
    IPluginCreatorV3One,
    IPluginV2,
    IPluginV2DynamicExt,
    IPluginV2Ext,
    IPluginV2IOExt,
    IPluginV3,
    IPluginV3OneBuild,
    IPluginV3OneCore,
    IPluginV3OneRuntime,
)
from headrace.plugins.calls import none_in_scripts
from headrace.plugins.expressions import DimsExprs, IExprBuilder, SymbolicShapes
from headrace.plugins.field_data import PluginField, PluginFieldCollection
from headrace.plugins.memory import array_at
from headrace.plugins.standard.fields import Given
from headrace.plugins.standard.layer import (
    Decomposition,
    Shape,
    StandardLayer,
    expressions,
    extents,
)
from headrace.plugins.types import (
    DataType,
    Dims,
    DynamicTensorDescs,
    PluginTensorDesc,
    TensorDescs,
    TensorFormat,
    TensorRTPhase,
)

if TYPE_CHECKING:
    from onnx import NodeProto


Tensor = tuple[tuple[int, ...], DataType]
"""Shape without the batch, and type."""


class StandardPlugin:
    """The part that the plugins of all classes share.

    Attributes:
        layer: fields, shapes and arithmetic.
        named_by: the attribute with the name that creators are found by.
    """

    layer: StandardLayer
    num_outputs: int
    plugin_version: str
    plugin_namespace: str
    named_by = "plugin_type"

    def __init__(self, layer: StandardLayer) -> None:
        super().__init__()
        self.layer = layer
        self.num_outputs = layer.outputs
        setattr(self, self.named_by, layer.name)
        self.plugin_version = layer.version
        self.plugin_namespace = ""

    @property
    def headrace_label(self) -> str:
        """Name for messages and traces."""
        return self.layer.name

    def clone(self) -> Any:
        """The same plugin once more."""
        other = type(self)(self.layer)
        other.plugin_namespace = self.plugin_namespace
        return other

    def to_onnx(self, node: NodeProto, network_opset: int) -> list[NodeProto] | None:
        """The ONNX nodes that compute exactly the same as `node`; None if there are none.

        Args:
            node: the `NodeProto`, or an `onnx_ir.Node` (its shapes are made use of).
            network_opset: version of the standard operators that the network uses.
        """
        graph = _decomposition(node, network_opset)
        return graph.nodes if self.layer.decompose(graph) else None

    def _formats(self, pos: int, tensors: TensorDescs, num_inputs: int) -> bool:
        return tensors[pos].format == TensorFormat.LINEAR and self.layer.accepts(
            pos, [t.type for t in tensors[: pos + 1]], num_inputs
        )


def _decomposition(node: NodeProto, opset: int) -> Decomposition:
    label = node.name or node.op_type
    if hasattr(node, "input"):  # a NodeProto: names alone
        return Decomposition(label, node.input, node.output, opset=opset)
    values = node.inputs
    return Decomposition(
        label,
        [v.name if v is not None else "" for v in values],
        [v.name for v in node.outputs],
        shapes=[_known_shape(v) for v in values],
        dtypes=[None if v is None or v.dtype is None else v.dtype.numpy() for v in values],
        opset=opset,
    )


def _known_shape(value: Any) -> tuple[int | None, ...] | None:
    if value is None or value.shape is None:
        return None
    return tuple(d if isinstance(d, int) else None for d in value.shape)


class _WithoutBatch(StandardPlugin):
    """V2, V2Ext and IOExt: shapes are known once the plugin is configured."""

    tensors: tuple[tuple[Tensor, ...], tuple[Tensor, ...]] | None = None

    def clone(self) -> Any:
        other = super().clone()
        other.tensors = self.tensors
        return other

    def get_output_shape(self, index: int, input_shapes: Sequence[Dims]) -> Sequence[int]:
        self.layer.count(input_shapes)
        for i, shape in enumerate(input_shapes):
            if any(d < 0 for d in shape):
                raise self.layer.error(
                    f"input {i} of {self.layer.name} is {shape}, -1 is known only at run time",
                    expected="fixed axes: plugins of its class know no others but the batch",
                )
        shapes = self.layer.shapes([(1, *shape) for shape in input_shapes])
        return [self.layer.number(d, "an axis") for d in shapes[index][1:]]

    def supports_format(self, dtype: DataType, format: TensorFormat) -> bool:
        return format == TensorFormat.LINEAR and self.layer.accepts(0, [dtype], 1)

    def get_output_data_type(self, index: int, input_types: Sequence[DataType]) -> DataType:
        return self.layer.output_type(index, input_types)

    def execute_async(
        self,
        batch_size: int,
        inputs: Sequence[int],
        outputs: Sequence[int],
        workspace: int,
        stream_handle: int,
    ) -> int:
        if self.tensors is None:
            raise self.layer.error(f"{self.layer.name} runs before it is configured")
        ins, outs = (
            [
                array_at(address, (batch_size, *shape), dtype, writable=side == 1)
                for address, (shape, dtype) in zip(addresses, tensors, strict=True)
            ]
            for side, (addresses, tensors) in enumerate(
                zip((inputs, outputs), self.tensors, strict=True)
            )
        )
        self.layer.run(ins, outs)
        return 0

    def serialize(self) -> bytes:
        sides = self.tensors or ((), ())
        saved = [[[list(shape), int(dtype)] for shape, dtype in side] for side in sides]
        return _packed(self.layer, tensors=saved)

    def restore(self, saved: Any) -> None:
        """Take the shapes and types of `serialize`."""
        ins, outs, *_ = saved
        self._configured(ins, outs)

    def _configured(self, *sides: Iterable[tuple[Iterable[int], DataType]]) -> None:
        """Keep shapes without the batch and types, of the inputs and of the outputs."""
        ins, outs = (
            tuple((tuple(map(int, shape)), DataType(dtype)) for shape, dtype in side)
            for side in sides
        )
        self.tensors = (ins, outs)


class _V2(_WithoutBatch, IPluginV2):
    def configure_with_format(
        self,
        input_shapes: Sequence[Dims],
        output_shapes: Sequence[Dims],
        dtype: DataType,
        format: TensorFormat,
        max_batch_size: int,
    ) -> None:
        ins, outs = ([(s, dtype) for s in side] for side in (input_shapes, output_shapes))
        self._configured(ins, outs)


class _V2Ext(_WithoutBatch, IPluginV2Ext):
    def configure_plugin(
        self,
        input_shapes: Sequence[Dims],
        output_shapes: Sequence[Dims],
        input_types: Sequence[DataType],
        output_types: Sequence[DataType],
        input_is_broadcasted: Sequence[bool],
        output_is_broadcasted: Sequence[bool],
        format: TensorFormat,
        max_batch_size: int,
    ) -> None:
        self._configured(
            zip(input_shapes, input_types, strict=True),
            zip(output_shapes, output_types, strict=True),
        )


class _IOExt(_WithoutBatch, IPluginV2IOExt):
    def supports_format_combination(self, pos: int, in_out: TensorDescs, num_inputs: int) -> bool:
        return self._formats(pos, in_out, num_inputs)

    def configure_plugin(  # type: ignore[override]
        self, inputs: TensorDescs, outputs: TensorDescs
    ) -> None:
        ins, outs = ([(d.dims, _type(d)) for d in side] for side in (inputs, outputs))
        self._configured(ins, outs)


class _Whole(StandardPlugin):
    """Dyn and V3: shapes with the batch, symbolic while the network is described."""

    def _shapes(self, inputs: SymbolicShapes) -> list[DimsExprs]:
        self.layer.count(inputs)
        shapes: list[Shape] = [extents(shape) for shape in inputs]
        return [expressions(shape) for shape in self.layer.shapes(shapes)]

    def enqueue(
        self,
        input_desc: TensorDescs,
        output_desc: TensorDescs,
        inputs: Sequence[int],
        outputs: Sequence[int],
        workspace: int,
        stream: int,
    ) -> int:
        ins, outs = (
            [
                array_at(address, desc.dims, _type(desc), writable=side == 1)
                for desc, address in zip(descs, addresses, strict=True)
            ]
            for side, (descs, addresses) in enumerate(
                ((input_desc, inputs), (output_desc, outputs))
            )
        )
        self.layer.run(ins, outs)
        return 0


def _type(desc: PluginTensorDesc) -> DataType:
    assert desc.type is not None, "the types are chosen before a plugin runs"
    return desc.type


class _Dynamic(_Whole, IPluginV2DynamicExt):
    def get_output_dimensions(
        self, output_index: int, inputs: SymbolicShapes, expr_builder: IExprBuilder
    ) -> DimsExprs:
        return self._shapes(inputs)[output_index]

    def get_output_datatype(self, index: int, input_types: Sequence[DataType]) -> DataType:
        return self.layer.output_type(index, input_types)

    def supports_format_combination(self, pos: int, in_out: TensorDescs, num_inputs: int) -> bool:
        return self._formats(pos, in_out, num_inputs)

    def serialize(self) -> bytes:
        return _packed(self.layer)


class _V3(_Whole, IPluginV3, IPluginV3OneCore, IPluginV3OneBuild, IPluginV3OneRuntime):
    named_by = "plugin_name"

    def get_output_data_types(self, input_types: Sequence[DataType]) -> Sequence[DataType]:
        return [self.layer.output_type(i, input_types) for i in range(self.num_outputs)]

    def get_output_shapes(
        self, inputs: SymbolicShapes, shape_inputs: SymbolicShapes, expr_builder: IExprBuilder
    ) -> SymbolicShapes:
        return self._shapes(inputs)

    def supports_format_combination(
        self, pos: int, in_out: DynamicTensorDescs, num_inputs: int
    ) -> bool:
        return self._formats(pos, [d.desc for d in in_out], num_inputs)

    def attach_to_context(self, context: object) -> object:
        return self.clone()

    def get_fields_to_serialize(self) -> PluginFieldCollection:
        return self.layer.given.collection(self.layer.fields)


def _packed(layer: StandardLayer, **more: object) -> bytes:
    return json.dumps({"fields": layer.given.pack(), **more}).encode()


_CLASSES: dict[str, Any] = {
    "V2": _V2,
    "V2Ext": _V2Ext,
    "IOExt": _IOExt,
    "Dyn": _Dynamic,
    "V3": _V3,
}


def _declared(kind: type[StandardLayer]) -> PluginFieldCollection:
    return PluginFieldCollection(PluginField(f.name, None, f.type) for f in kind.fields)


def _read(kind: type[StandardLayer], collection: PluginFieldCollection, where: str) -> Given:
    for field in collection:
        if field.raw and field.name in kind.refused:
            raise ModelError(f"field {field.name!r}: {kind.refused[field.name]}", where=where)
    return Given.read(kind.fields, collection, where)


class _StandardCreator:
    headrace_label = property(lambda self: f"{self.kind.name}Creator")

    def __init__(self, kind: type[StandardLayer]) -> None:
        super().__init__()
        self.kind = kind
        self.name, self.plugin_version = kind.name, kind.version
        self.plugin_namespace = ""
        self.field_names = _declared(kind)

    def _plugin(self, values: Given, name: str) -> Any:
        plugin = _CLASSES[self.kind.interface](self.kind(values, name))
        plugin.plugin_namespace = self.plugin_namespace
        return plugin

    def _made(self, name: str, collection: PluginFieldCollection) -> Any:
        where = name or self.name
        return self._plugin(_read(self.kind, collection, where), where)


class _Creator(_StandardCreator, IPluginCreator):
    @none_in_scripts
    def create_plugin(self, name: str, field_collection: PluginFieldCollection) -> Any:
        return self._made(name, field_collection)

    @none_in_scripts
    def deserialize_plugin(self, name: str, serialized_plugin: bytes) -> Any:
        where = name or self.name
        try:
            saved = json.loads(bytes(serialized_plugin))
            plugin = self._plugin(Given.unpack(self.kind.fields, saved["fields"], where), where)
            if isinstance(plugin, _WithoutBatch):
                plugin.restore(saved["tensors"])
        except (ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
            raise ModelError(
                f"what is saved of {self.name} version {self.plugin_version} cannot be read",
                where=where,
                fix="build the engine again",
            ) from error
        return plugin


class _CreatorV3(_StandardCreator, IPluginCreatorV3One):
    @none_in_scripts
    def create_plugin(
        self, name: str, field_collection: PluginFieldCollection, phase: TensorRTPhase
    ) -> object:
        return self._made(name, field_collection)


def creator_of(kind: type[StandardLayer]) -> Any:
    """A creator of the plugins that `kind` describes."""
    return (_CreatorV3 if kind.interface == "V3" else _Creator)(kind)
