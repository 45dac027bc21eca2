"""C++ plugins of the third generation as the Python class that the driver knows.

Source: tensorrt-plugins spec 2.5.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from noria.host.forwarding import ForwardingPlugin, fields_from
from noria.plugins.base import (
    IPluginResourceContext,
    IPluginV3,
    IPluginV3OneBuild,
    IPluginV3OneBuildV2,
    IPluginV3OneCore,
    IPluginV3OneRuntime,
)
from noria.plugins.expressions import DimsExprs, IExprBuilder
from noria.plugins.field_data import PluginFieldCollection
from noria.plugins.types import (
    APILanguage,
    DataType,
    DynamicPluginTensorDesc,
    PluginCapabilityType,
    PluginTensorDesc,
)


class _CppV3(  # type: ignore[override]
    ForwardingPlugin, IPluginV3, IPluginV3OneCore, IPluginV3OneBuild, IPluginV3OneRuntime
):
    api_language = APILanguage.CPP

    def get_capability_interface(self, type: PluginCapabilityType) -> Any:
        if type == PluginCapabilityType.BUILD and not self.native.has_build():
            return None
        return self

    @property
    def plugin_name(self) -> str:  # type: ignore[override]
        return str(self.native.name() or "")

    @property
    def plugin_namespace(self) -> str:  # type: ignore[override]
        return str(self.native.get_namespace() or "")

    @property
    def num_outputs(self) -> int:  # type: ignore[override]
        return int(self.native.output_count())

    @property
    def format_combination_limit(self) -> int:  # type: ignore[override]
        return int(self.native.format_limit())

    @property
    def metadata_string(self) -> str:  # type: ignore[override]
        return str(self.native.metadata() or "")

    @property
    def timing_cache_id(self) -> str | None:  # type: ignore[override]
        text = self.native.timing_cache_id()
        return None if text is None else str(text)

    def get_output_data_types(self, input_types: Sequence[DataType]) -> list[DataType]:
        status, types = self.native.output_types(input_types, self.native.output_count())
        _require("getOutputDataTypes", status)
        return [DataType(t) for t in types]

    def get_output_shapes(
        self,
        inputs: Sequence[DimsExprs],
        shape_inputs: Sequence[DimsExprs],
        expr_builder: IExprBuilder,
    ) -> list[DimsExprs]:
        status, shapes = self.native.output_exprs(
            inputs, shape_inputs, expr_builder, self.native.output_count()
        )
        _require("getOutputShapes", status)
        return [DimsExprs(axes) for axes in shapes]

    def supports_format_combination(
        self, pos: int, in_out: Sequence[DynamicPluginTensorDesc], num_inputs: int
    ) -> bool:
        return bool(self.native.supports_combination(pos, in_out, num_inputs))

    def configure_plugin(
        self,
        inp: Sequence[DynamicPluginTensorDesc],
        out: Sequence[DynamicPluginTensorDesc],
    ) -> None:
        _require("configurePlugin", self.native.configure(inp, out))

    def get_workspace_size(
        self,
        inp: Sequence[DynamicPluginTensorDesc],
        out: Sequence[DynamicPluginTensorDesc],
    ) -> int:
        return int(self.native.workspace(inp, out))

    def get_valid_tactics(self) -> list[int]:
        status, tactics = self.native.tactics()
        _require("getValidTactics", status)
        return list(tactics)

    def set_tactic(self, tactic: int) -> int:
        return int(self.native.set_tactic(tactic))

    def on_shape_change(
        self, inp: Sequence[PluginTensorDesc], out: Sequence[PluginTensorDesc]
    ) -> int:
        return int(self.native.on_shape_change(inp, out))

    def enqueue(
        self,
        input_desc: Sequence[PluginTensorDesc],
        output_desc: Sequence[PluginTensorDesc],
        inputs: Sequence[int],
        outputs: Sequence[int],
        workspace: int,
        stream: int,
    ) -> None:
        status = self.native.enqueue(input_desc, output_desc, inputs, outputs, workspace, stream)
        _require("enqueue", status)

    def attach_to_context(self, resource_context: IPluginResourceContext) -> Any:
        return self._wrapped(self.native.attach(resource_context))

    def get_fields_to_serialize(self) -> PluginFieldCollection:
        return fields_from(self.native.fields_to_serialize())


class _CppV3Aliasing(_CppV3, IPluginV3OneBuildV2):  # type: ignore[override]
    def get_aliased_input(self, output_index: int) -> int:
        return int(self.native.aliased_input(output_index))


def plugin_v3(native: Any) -> Any:
    """Wrap a native plugin."""
    aliases = native.has_build() and native.aliased_input(0) != -2
    return (_CppV3Aliasing if aliases else _CppV3).of(native)


def _require(method: str, status: int) -> None:
    if status:
        raise RuntimeError(f"{method} returned {status}, not 0")
