"""One small plugin of each class, each with its creator: y = x * factor (float32).

`Fault` makes one method of the next objects fail: raise, or return a wrong thing.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from headrace.plugins import (
    DataType,
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
    PluginField,
    PluginFieldCollection,
    PluginFieldType,
    TensorFormat,
    array_at,
)

FACTOR = PluginFieldCollection([PluginField("factor", None, PluginFieldType.FLOAT32)])


@dataclass
class Fault:
    """`method` raises (`value` is an exception) or returns `value`, from call number `after` on."""

    method: str
    value: Any
    after: int = 0
    calls: int = 0


class Watched:
    """Counts objects and the calls that must balance."""

    made: ClassVar[int] = 0
    destroyed: ClassVar[int] = 0
    initialized: ClassVar[int] = 0
    terminated: ClassVar[int] = 0
    attached: ClassVar[int] = 0
    detached: ClassVar[int] = 0
    twice: ClassVar[int] = 0
    fault: ClassVar[Fault | None] = None
    _gone = False

    @classmethod
    def reset(cls, fault: Fault | None = None) -> None:
        for name in ("made", "destroyed", "initialized", "terminated"):
            setattr(Watched, name, 0)
        Watched.attached = Watched.detached = Watched.twice = 0
        Watched.fault = fault

    def __getattribute__(self, name: str) -> Any:
        value = super().__getattribute__(name)
        fault = Watched.fault
        if fault is None or fault.method != name:
            return value
        fault.calls += 1
        if fault.calls <= fault.after:
            return value
        if not callable(value):
            if isinstance(fault.value, Exception):
                raise fault.value
            return fault.value

        def broken(*arguments: Any) -> Any:
            if isinstance(fault.value, Exception):
                raise fault.value
            return fault.value(*arguments) if callable(fault.value) else fault.value

        return broken

    def initialize(self) -> int:
        Watched.initialized += 1
        return 0

    def terminate(self) -> None:
        Watched.terminated += 1

    def destroy(self) -> None:
        Watched.destroyed += 1
        Watched.twice += self._gone
        self._gone = True

    def detach_from_context(self) -> None:
        Watched.detached += 1

    def _mine(self, factor: float) -> None:
        Watched.made += 1
        self.factor = factor
        self.num_outputs = 1

    def _scale(self, source: int, target: int, shape: Any, dtype: Any) -> None:
        x = array_at(source, shape, dtype)
        array_at(target, shape, dtype, writable=True)[...] = x * np.asarray(self.factor, x.dtype)


class _Second(Watched):
    KIND = ""

    def __init__(self, factor: float = 2.0) -> None:
        super().__init__()
        self.plugin_type, self.plugin_version, self.plugin_namespace = self.KIND, "1", ""
        self._mine(factor)

    def clone(self) -> Any:
        return type(self)(self.factor)

    def serialize(self) -> bytes:
        return struct.pack("<f", self.factor)


class ScaleV2(_Second, IPluginV2):
    KIND = "ScaleV2"

    def get_output_shape(self, index: int, input_shapes: Any) -> Any:
        return input_shapes[0]

    def configure_with_format(self, ins: Any, outs: Any, dtype: Any, form: Any, most: int) -> None:
        self.item = tuple(ins[0])

    def get_workspace_size(self, max_batch_size: int) -> int:
        return 4 * max_batch_size

    def clone(self) -> Any:
        made = super().clone()
        if hasattr(self, "item"):
            made.item = self.item
        return made

    def serialize(self) -> bytes:
        return struct.pack(f"<f{len(self.item)}i", self.factor, *self.item)

    def execute_async(self, batch: int, inputs: Any, outputs: Any, ws: int, stream: int) -> int:
        self._scale(inputs[0], outputs[0], (batch, *self.item), np.float32)
        return 0


class ScaleV2Ext(ScaleV2, IPluginV2Ext):
    KIND = "ScaleV2Ext"

    def configure_plugin(self, ins: Any, *rest: Any) -> None:
        self.item = tuple(ins[0])

    def attach_to_context(self, cudnn: Any, cublas: Any, allocator: Any) -> None:
        Watched.attached += 1


class ScaleV2IOExt(ScaleV2Ext, IPluginV2IOExt):
    KIND = "ScaleV2IOExt"

    def supports_format_combination(self, pos: int, in_out: Any, num_inputs: int) -> bool:
        return in_out[pos].type == DataType.FLOAT and in_out[pos].format == TensorFormat.LINEAR

    def configure_plugin(self, ins: Any, *rest: Any) -> None:
        self.item = tuple(ins[0].dims)


class ScaleDynamic(_Second, IPluginV2DynamicExt):
    KIND = "ScaleDynamic"

    def get_output_dimensions(self, output_index: int, inputs: Any, expr_builder: Any) -> Any:
        return inputs[0]

    def supports_format_combination(self, pos: int, in_out: Any, num_inputs: int) -> bool:
        return in_out[pos].type == DataType.FLOAT and in_out[pos].format == TensorFormat.LINEAR

    def get_workspace_size(self, inputs: Any, outputs: Any) -> int:
        return 4 * inputs[0].dims.numel()

    def get_serialization_size(self) -> int:
        return 4

    def attach_to_context(self, cudnn: Any, cublas: Any, allocator: Any) -> None:
        Watched.attached += 1

    def enqueue(self, ins: Any, outs: Any, inputs: Any, outputs: Any, ws: int, s: int) -> None:
        array_at(ws, ins[0].dims, np.float32, writable=True)[...] = 0
        self._scale(inputs[0], outputs[0], ins[0].dims, ins[0].type)


class ScaleV3(Watched, IPluginV3, IPluginV3OneCore, IPluginV3OneBuild, IPluginV3OneRuntime):
    KIND = "ScaleV3"
    TACTICS: ClassVar[list[int]] = []

    def __init__(self, factor: float = 2.0) -> None:
        IPluginV3.__init__(self)
        self.plugin_name, self.plugin_version, self.plugin_namespace = self.KIND, "1", ""
        self.tactic = 0
        self._mine(factor)

    def clone(self) -> Any:
        made = type(self)(self.factor)
        made.tactic = self.tactic
        return made

    def get_output_data_types(self, input_types: Any) -> Any:
        return [input_types[0]]

    def get_output_shapes(self, inputs: Any, shape_inputs: Any, expr_builder: Any) -> Any:
        return [inputs[0]]

    def supports_format_combination(self, pos: int, in_out: Any, num_inputs: int) -> bool:
        desc = in_out[pos].desc
        return desc.type == DataType.FLOAT and desc.format == TensorFormat.LINEAR

    def get_valid_tactics(self) -> Any:
        return self.TACTICS

    def set_tactic(self, tactic: int) -> None:
        self.tactic = tactic

    def attach_to_context(self, resource_context: Any) -> Any:
        return self.clone()

    def get_fields_to_serialize(self) -> Any:
        data = np.array([self.factor], np.float32)
        return PluginFieldCollection([PluginField("factor", data, PluginFieldType.FLOAT32)])

    def enqueue(self, ins: Any, outs: Any, inputs: Any, outputs: Any, ws: int, s: int) -> None:
        self._scale(inputs[0], outputs[0], ins[0].dims, ins[0].type)


class SecondCreator(IPluginCreator):
    def __init__(self, plugin: Any) -> None:
        super().__init__()
        self.plugin = plugin
        self.name, self.plugin_version, self.field_names = plugin.KIND, "1", FACTOR

    def create_plugin(self, name: str, field_collection: Any) -> Any:
        field = field_collection.get("factor")
        return self.plugin(2.0 if field is None else float(field.data[0]))

    def deserialize_plugin(self, name: str, serialized_plugin: bytes) -> Any:
        made = self.plugin(struct.unpack_from("<f", serialized_plugin)[0])
        if len(serialized_plugin) > 4:
            made.item = struct.unpack_from(
                f"<{len(serialized_plugin) // 4 - 1}i", serialized_plugin, 4
            )
        return made


class ThirdCreator(IPluginCreatorV3One):
    def __init__(self, plugin: Any) -> None:
        super().__init__()
        self.plugin = plugin
        self.name, self.plugin_version, self.field_names = plugin.KIND, "1", FACTOR

    def create_plugin(self, name: str, field_collection: Any, phase: Any) -> Any:
        field = field_collection.get("factor")
        return self.plugin(2.0 if field is None else float(field.data[0]))


PLUGINS: dict[str, Any] = {
    "V2": ScaleV2,
    "V2Ext": ScaleV2Ext,
    "V2IOExt": ScaleV2IOExt,
    "V2DynamicExt": ScaleDynamic,
    "V3": ScaleV3,
}


def creator_for(plugin: Any) -> Any:
    """The creator of a class of this file, or derived from one."""
    return ThirdCreator(plugin) if issubclass(plugin, ScaleV3) else SecondCreator(plugin)
