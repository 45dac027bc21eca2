"""C++ plugins of the V2 line as the Python classes that the drivers know.

Source: tensorrt-plugins spec 2.1 to 2.4.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from noria.host.forwarding import ForwardingPlugin
from noria.plugins.base import IPluginV2, IPluginV2DynamicExt, IPluginV2Ext, IPluginV2IOExt
from noria.plugins.expressions import DimsExprs, IExprBuilder
from noria.plugins.types import (
    DataType,
    Dims,
    DynamicPluginTensorDesc,
    PluginTensorDesc,
    TensorFormat,
)


class _V2Plugin(ForwardingPlugin):
    """Calls that all plugins of the V2 line forward."""

    @property
    def num_outputs(self) -> int:
        return int(self.native.output_count())

    @property
    def plugin_type(self) -> str:
        return str(self.native.type() or "")

    @property
    def plugin_namespace(self) -> str:
        return str(self.native.get_namespace() or "")

    @plugin_namespace.setter
    def plugin_namespace(self, value: str) -> None:
        self.native.set_namespace(value)

    def initialize(self) -> int:
        return int(self.native.initialize())

    def terminate(self) -> None:
        self.native.terminate()

    def serialize(self) -> bytes:
        return bytes(self.native.serialize())


class _CppV2(_V2Plugin, IPluginV2):  # type: ignore[override]
    def get_output_shape(self, index: int, input_shapes: Sequence[Dims]) -> Dims:
        return Dims(self.native.output_dims(index, input_shapes))

    def supports_format(self, dtype: DataType, format: TensorFormat) -> bool:
        return bool(self.native.supports_format(int(dtype), int(format)))

    def configure_with_format(
        self,
        input_shapes: Sequence[Dims],
        output_shapes: Sequence[Dims],
        dtype: DataType,
        format: TensorFormat,
        max_batch_size: int,
    ) -> None:
        self.native.configure_with_format(
            input_shapes, output_shapes, int(dtype), int(format), max_batch_size
        )

    def get_workspace_size(self, max_batch_size: int) -> int:
        return int(self.native.workspace(max_batch_size))

    def execute_async(
        self,
        batch_size: int,
        inputs: Sequence[int],
        outputs: Sequence[int],
        workspace: int,
        stream_handle: int,
    ) -> int:
        return int(self.native.enqueue(batch_size, inputs, outputs, workspace, stream_handle))

    @property
    def serialization_size(self) -> int:
        return int(self.native.serialization_size())


class _CppV2Ext(_CppV2, IPluginV2Ext):  # type: ignore[override]
    def get_output_data_type(self, index: int, input_types: Sequence[DataType]) -> DataType:
        return DataType(self.native.output_type(index, input_types))

    def is_output_broadcast_across_batch(
        self, output_index: int, input_is_broadcasted: Sequence[bool]
    ) -> bool:
        return bool(self.native.output_broadcast(output_index, input_is_broadcasted))

    def can_broadcast_input_across_batch(self, input_index: int) -> bool:
        return bool(self.native.input_broadcast(input_index))

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
        inputs = [PluginTensorDesc(d, t) for d, t in zip(input_shapes, input_types, strict=True)]
        outputs = [PluginTensorDesc(d, t) for d, t in zip(output_shapes, output_types, strict=True)]
        self.native.configure_ext(
            inputs, outputs, input_is_broadcasted, output_is_broadcasted, int(format),
            max_batch_size,
        )  # fmt: skip

    def attach_to_context(self, cudnn: Any, cublas: Any, allocator: Any) -> None:
        self.native.attach()

    def detach_from_context(self) -> None:
        self.native.detach()


class _CppV2IOExt(_CppV2Ext, IPluginV2IOExt):  # type: ignore[override]
    def supports_format_combination(
        self, pos: int, in_out: Sequence[PluginTensorDesc], num_inputs: int
    ) -> bool:
        return bool(self.native.supports_combination(pos, in_out, num_inputs))

    def configure_plugin(  # type: ignore[override]
        self, inputs: Sequence[PluginTensorDesc], outputs: Sequence[PluginTensorDesc]
    ) -> None:
        self.native.configure(inputs, outputs)


class _CppV2DynamicExt(_V2Plugin, IPluginV2DynamicExt):  # type: ignore[override]
    def get_output_dimensions(
        self, output_index: int, inputs: Sequence[DimsExprs], expr_builder: IExprBuilder
    ) -> DimsExprs:
        return DimsExprs(self.native.output_exprs(output_index, inputs, expr_builder))

    def get_output_datatype(self, index: int, input_types: Sequence[DataType]) -> DataType:
        return DataType(self.native.output_type(index, input_types))

    def supports_format_combination(
        self, pos: int, in_out: Sequence[PluginTensorDesc], num_inputs: int
    ) -> bool:
        return bool(self.native.supports_combination(pos, in_out, num_inputs))

    def configure_plugin(
        self,
        inputs: Sequence[DynamicPluginTensorDesc],
        outputs: Sequence[DynamicPluginTensorDesc],
    ) -> None:
        self.native.configure(inputs, outputs)

    def get_workspace_size(
        self, inputs: Sequence[PluginTensorDesc], outputs: Sequence[PluginTensorDesc]
    ) -> int:
        return int(self.native.dynamic_workspace(inputs, outputs))

    def enqueue(
        self,
        input_desc: Sequence[PluginTensorDesc],
        output_desc: Sequence[PluginTensorDesc],
        inputs: Sequence[int],
        outputs: Sequence[int],
        workspace: int,
        stream: int,
    ) -> None:
        status = self.native.dynamic_enqueue(
            input_desc, output_desc, inputs, outputs, workspace, stream
        )
        if status:
            raise RuntimeError(f"enqueue returned {status}, not 0")

    def get_serialization_size(self) -> int:
        return int(self.native.serialization_size())

    def attach_to_context(self, cudnn: Any, cublas: Any, allocator: Any) -> None:
        self.native.attach()

    def detach_from_context(self) -> None:
        self.native.detach()


_BASES: dict[int, type[_V2Plugin]] = {0: _CppV2, 1: _CppV2Ext, 2: _CppV2IOExt, 3: _CppV2DynamicExt}


def plugin_v2(native: Any) -> Any:
    """Wrap a native plugin.

    Raises:
        TypeError: it is of no class that exists.
    """
    base = _BASES.get(native.generation)
    if base is None:
        raise TypeError(f"getTensorRTVersion of {native.type()} names class {native.generation}")
    return base.of(native)
