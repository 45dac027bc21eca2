"""C++ plugins as the Python classes that the drivers know: the V2 line and the third generation.

A method that only passes its arguments on is one line: `_asks` names the method of the native
object, `_has` does so for an attribute.
Source: tensorrt-plugins spec 2.1 to 2.5.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from headrace._core import _native
from headrace._core.errors import PluginError
from headrace._core.gpu.cuda import why_no_gpu
from headrace.binary.gpu_code import look_at, works_on_device
from headrace.plugins.base import (
    IPluginResourceContext,
    IPluginV2,
    IPluginV2DynamicExt,
    IPluginV2Ext,
    IPluginV2IOExt,
    IPluginV3,
    IPluginV3OneBuild,
    IPluginV3OneBuildV2,
    IPluginV3OneCore,
    IPluginV3OneRuntime,
)
from headrace.plugins.expressions import DimsExprs
from headrace.plugins.field_data import PluginFieldCollection
from headrace.plugins.types import (
    APILanguage,
    DataType,
    Dims,
    PluginCapabilityType,
    PluginTensorDesc,
    TensorFormat,
)
from headrace.trt.host.forwarding import Forwarding, fields_from


def _as_it_is(answer: object) -> object:
    return answer


def _text(answer: str | None) -> str:
    return answer or ""


def _asks(native_method: str, convert: Callable[[Any], object] = _as_it_is) -> Any:
    """Make a method that passes its arguments on, and converts the answer."""

    def method(self: Forwarding, *arguments: object) -> object:
        return convert(getattr(self.native, native_method)(*arguments))

    return method


def _has(native_method: str, convert: Callable[[Any], object] = _as_it_is) -> property:
    """Make a property that asks anew each time it is read."""
    return property(_asks(native_method, convert))


def _require_success(method: str, status: int, why: str | None = None) -> None:
    if status:
        text = f"{method} returned {status}" + (f": {why}" if why else "")
        raise PluginError(text, expected="0", data={"status": status})


class _CppPlugin(Forwarding):
    """Calls that plugins of both lines forward."""

    plugin_version = _has("version", _text)
    num_outputs = _has("output_count")
    destroy = _asks("destroy")

    @property
    def on_device(self) -> bool:
        """True if `enqueue` takes addresses of the GPU's memory."""
        return works_on_device(self.native.image, self.library)

    @cached_property
    def why_not_computed(self) -> str | None:
        """Why its kernels cannot be launched on this machine; None if it has none, or they can."""
        evidence, reason = look_at(self.native.image, self.library), why_no_gpu()
        return f"{evidence}, and {reason}" if evidence and reason else None

    @cached_property
    def _refusal(self) -> PluginError | None:
        """Why a plugin of a library for TensorRT does not compute here; None if it may."""
        line, release = _native.foreign_origin(self.native.image)
        if not line or self.why_not_computed is None:
            return None
        reason = why_no_gpu()
        named, file = _native.foreign_release_text(line, release), Path(self.library).name
        return PluginError(
            f"enqueue of {type(self).__name__} runs on a GPU: it is code of {file}, compiled for "
            f"{named}, and {reason}",
            code="plugin-for-gpu",
            expected="a machine with an NVIDIA GPU for plugins with code for one",
            fix=[
                f"let a file of the same plugins stand for it: --plugins {file}=FILE",
                "or let headrace read the model's ONNX or Darknet file, without a function of the "
                "library that makes its network",
            ],
        )

    def _require_gpu(self) -> None:
        if self._refusal is not None:
            raise self._refusal

    def _require_computed(self, status: int) -> None:
        if status:
            _require_success("enqueue", status, self.why_not_computed)

    def clone(self) -> object:
        return self._wrapped(self.native.clone())

    def _wrapped(self, native: object) -> object:
        if native is self.native:
            return self
        return None if native is None else type(self)(native)


class _V2Plugin(_CppPlugin):
    """Calls that all plugins of the V2 line forward."""

    plugin_type = _has("type", _text)
    initialize = _asks("initialize")
    terminate = _asks("terminate")
    serialize = _asks("serialize")

    @staticmethod
    def _kind(native: Any) -> str:
        return str(native.type())


def _attach(self: Forwarding, *_: object) -> None:
    self.native.attach()


class _CppV2(_V2Plugin, IPluginV2):
    get_output_shape = _asks("output_dims", Dims)
    get_workspace_size = _asks("workspace")
    serialization_size = _has("serialization_size")

    def supports_format(self, dtype: DataType, format: TensorFormat) -> bool:
        return bool(self.native.supports_format(int(dtype), int(format)))

    def configure_with_format(
        self, ins: object, outs: object, dtype: DataType, format: TensorFormat, max_batch_size: int
    ) -> None:
        self.native.configure_with_format(ins, outs, int(dtype), int(format), max_batch_size)

    def execute_async(self, *arguments: object) -> int:
        self._require_gpu()
        return int(self.native.enqueue(*arguments))


class _CppV2Ext(_CppV2, IPluginV2Ext):
    get_output_data_type = _asks("output_type", DataType)
    is_output_broadcast_across_batch = _asks("output_broadcast")
    can_broadcast_input_across_batch = _asks("input_broadcast")
    attach_to_context: Any = _attach
    detach_from_context = _asks("detach")

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


class _CppV2IOExt(_CppV2Ext, IPluginV2IOExt):
    supports_format_combination = _asks("supports_combination")
    configure_plugin = _asks("configure")


class _CppV2DynamicExt(_V2Plugin, IPluginV2DynamicExt):
    get_output_dimensions = _asks("output_exprs", DimsExprs)
    get_output_datatype = _asks("output_type", DataType)
    supports_format_combination = _asks("supports_combination")
    configure_plugin = _asks("configure")
    get_workspace_size = _asks("dynamic_workspace")
    get_serialization_size = _asks("serialization_size")
    attach_to_context: Any = _attach
    detach_from_context = _asks("detach")

    def enqueue(self, *arguments: object) -> None:
        self._require_gpu()
        self._require_computed(self.native.dynamic_enqueue(*arguments))


class _CppV3(_CppPlugin, IPluginV3, IPluginV3OneCore, IPluginV3OneBuild, IPluginV3OneRuntime):
    api_language = APILanguage.CPP
    plugin_name = _has("name", _text)
    format_combination_limit = _has("format_limit")
    metadata_string = _has("metadata", _text)
    timing_cache_id = _has("timing_cache_id")
    supports_format_combination = _asks("supports_combination")
    get_workspace_size = _asks("workspace")
    set_tactic = _asks("set_tactic")

    def get_capability_interface(self, type: PluginCapabilityType) -> object:
        if type == PluginCapabilityType.BUILD and not self.native.has_build():
            return None
        if type == PluginCapabilityType.RUNTIME and not self.native.has_runtime():
            return None
        return self

    def get_output_data_types(self, input_types: Sequence[DataType]) -> list[DataType]:
        status, types = self.native.output_types(input_types, self.native.output_count())
        _require_success("getOutputDataTypes", status)
        return [DataType(t) for t in types]

    def get_output_shapes(self, *arguments: object) -> list[DimsExprs]:
        status, shapes = self.native.output_exprs(*arguments, self.native.output_count())
        _require_success("getOutputShapes", status)
        return [DimsExprs(axes) for axes in shapes]

    def configure_plugin(self, *descs: object) -> None:
        _require_success("configurePlugin", self.native.configure(*descs))

    def get_valid_tactics(self) -> list[int]:
        status, tactics = self.native.tactics()
        _require_success("getValidTactics", status)
        return list(tactics)

    def on_shape_change(self, *descs: object) -> int:
        return int(self.native.on_shape_change(*descs))

    def enqueue(self, *arguments: object) -> None:
        self._require_gpu()
        self._require_computed(self.native.enqueue(*arguments))

    def get_fields_to_serialize(self) -> PluginFieldCollection:
        try:
            return fields_from(self.native.fields_to_serialize())
        except ValueError as error:
            raise PluginError(
                f"{error}",
                expected="for each field a name, data, and the number of its elements: what is not "
                "there is lost when the engine is loaded",
            ) from None

    def attach_to_context(self, resource_context: IPluginResourceContext) -> Any:
        return self._wrapped(self.native.attach(resource_context))


class _CppV3Aliasing(_CppV3, IPluginV3OneBuildV2):
    get_aliased_input = _asks("aliased_input")


_V2_CLASSES: dict[int, type[_V2Plugin]] = {
    0: _CppV2, 1: _CppV2Ext, 2: _CppV2IOExt, 3: _CppV2DynamicExt,
}  # fmt: skip


def plugin_v2(native: Any) -> Any:
    """Wrap a native plugin of the V2 line.

    Raises:
        TypeError: it is of no class that exists.
    """
    base = _V2_CLASSES.get(native.generation)
    if base is None:
        raise TypeError(f"getTensorRTVersion of {native.type()} names class {native.generation}")
    return base.of(native)


def plugin_v3(native: Any) -> Any:
    """Wrap a native plugin of the third generation."""
    aliases = native.has_build() and native.aliased_input(0) != -2
    return (_CppV3Aliasing if aliases else _CppV3).of(native)
