"""Plugins of version 3: one object with three capabilities.

Usually one class inherits `IPluginV3` and the three interfaces, and its
`get_capability_interface` returns itself:

    class Scale(IPluginV3, IPluginV3OneCore, IPluginV3OneBuild, IPluginV3OneRuntime):
        def __init__(self):
            IPluginV3.__init__(self)
            IPluginV3OneCore.__init__(self)
            IPluginV3OneBuild.__init__(self)
            IPluginV3OneRuntime.__init__(self)
            self.plugin_name, self.plugin_version, self.plugin_namespace = "Scale", "1", ""
            self.num_outputs = 1

Source: tensorrt-plugins spec 2.5.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from noria.plugins.base import missing
from noria.plugins.expressions import DimsExprs, IExprBuilder
from noria.plugins.field_data import PluginFieldCollection
from noria.plugins.types import (
    APILanguage,
    DataType,
    DynamicPluginTensorDesc,
    PluginCapabilityType,
    PluginTensorDesc,
)


@dataclass(frozen=True, slots=True)
class InterfaceInfo:
    """Kind and version of an interface."""

    kind: str
    major: int
    minor: int


class IPluginV3:
    """A plugin of version 3."""

    api_language = APILanguage.PYTHON

    def __init__(self) -> None:
        """Subclasses call it first, as in the original."""

    def get_capability_interface(self, type: PluginCapabilityType) -> Any:
        """The object that has the methods of that capability; by default the plugin itself."""
        return self

    def clone(self) -> Any:
        """A new object with the same parameters, fully initialised."""
        raise missing(self, "clone")

    def destroy(self) -> None:
        """The object is not used any more."""


class IPluginCapability:
    """Base of the three capabilities."""

    _info = InterfaceInfo("PLUGIN_V3ONE", 1, 0)

    @property
    def interface_info(self) -> InterfaceInfo:
        """Kind and version of this capability."""
        return self._info


class IPluginV3OneCore(IPluginCapability):
    """Who the plugin is.

    Attributes:
        plugin_name, plugin_version, plugin_namespace: what its creator is found by.
    """

    _info = InterfaceInfo("PLUGIN_V3ONE_CORE", 1, 0)
    plugin_name: str
    plugin_version: str
    plugin_namespace: str = ""

    def __init__(self) -> None:
        """Subclasses call it, as in the original."""


class IPluginV3OneBuild(IPluginCapability):
    """The methods for building a network.

    Attributes:
        num_outputs: number of outputs, > 0.
        format_combination_limit: most accepted combinations of types and formats.
        metadata_string: shown by inspectors.
        timing_cache_id: measurements of equal layers are shared under it; None: never.
    """

    _info = InterfaceInfo("PLUGIN_V3ONE_BUILD", 1, 0)
    DEFAULT_FORMAT_COMBINATION_LIMIT = 100
    num_outputs: int
    format_combination_limit: int = 100
    metadata_string: str = ""
    timing_cache_id: str | None = None

    def __init__(self) -> None:
        """Subclasses call it, as in the original."""

    def get_output_data_types(self, input_types: Sequence[DataType]) -> Sequence[DataType]:
        """Types of all outputs."""
        raise missing(self, "get_output_data_types")

    def get_output_shapes(
        self,
        inputs: Sequence[DimsExprs],
        shape_inputs: Sequence[DimsExprs],
        expr_builder: IExprBuilder,
    ) -> Sequence[DimsExprs]:
        """Shapes of all outputs; of a shape input the "axes" are the values in it."""
        raise missing(self, "get_output_shapes")

    def supports_format_combination(
        self, pos: int, in_out: Sequence[DynamicPluginTensorDesc], num_inputs: int
    ) -> bool:
        """Whether tensor `pos` may have the type of `in_out[pos].desc`, given those before it."""
        raise missing(self, "supports_format_combination")

    def configure_plugin(
        self,
        inp: Sequence[DynamicPluginTensorDesc],
        out: Sequence[DynamicPluginTensorDesc],
    ) -> None:
        """Take the chosen types and shapes; only while building."""

    def get_workspace_size(
        self,
        inp: Sequence[DynamicPluginTensorDesc],
        out: Sequence[DynamicPluginTensorDesc],
    ) -> int:
        """Bytes of scratch memory for the greatest shapes."""
        return 0

    def get_valid_tactics(self) -> Sequence[int]:
        """Ways to compute, to be timed; unique positive numbers. Empty: one, called 0."""
        return []


class IPluginV3OneBuildV2(IPluginV3OneBuild):
    """`IPluginV3OneBuild` with outputs that may share an input's memory."""

    _info = InterfaceInfo("PLUGIN_V3ONE_BUILD", 2, 0)

    def get_aliased_input(self, output_index: int) -> int:
        """The input that shares its memory with output `output_index`; -1 for none."""
        return -1


class IPluginV3OneRuntime(IPluginCapability):
    """The methods for running."""

    _info = InterfaceInfo("PLUGIN_V3ONE_RUNTIME", 1, 0)

    def __init__(self) -> None:
        """Subclasses call it, as in the original."""

    def set_tactic(self, tactic: int) -> Any:
        """Compute this way from now on."""
        return 0

    def on_shape_change(
        self, inp: Sequence[PluginTensorDesc], out: Sequence[PluginTensorDesc]
    ) -> Any:
        """Shapes of the following `enqueue` calls; before the first one, and after each change."""
        return 0

    def enqueue(
        self,
        input_desc: Sequence[PluginTensorDesc],
        output_desc: Sequence[PluginTensorDesc],
        inputs: Sequence[int],
        outputs: Sequence[int],
        workspace: int,
        stream: int,
    ) -> Any:
        """Compute. Raise on failure."""
        raise missing(self, "enqueue")

    def attach_to_context(self, resource_context: IPluginResourceContext) -> Any:
        """A new plugin bound to that context, normally a clone."""
        raise missing(self, "attach_to_context")

    def get_fields_to_serialize(self) -> PluginFieldCollection:
        """Collect the fields for the engine; the creator makes the plugin from them again."""
        raise missing(self, "get_fields_to_serialize")


class IPluginResource:
    """Something that plugins of one registry share, by key."""

    def __init__(self) -> None:
        """Subclasses call it, as in the original."""

    def clone(self) -> Any:
        """Make the copy that the registry keeps when the resource is first acquired."""
        raise missing(self, "clone")

    def release(self) -> None:
        """Release the copy after its last use."""


class IPluginResourceContext:
    """The argument of `attach_to_context`.

    Attributes:
        error_recorder, gpu_allocator: those of the execution context; None here.
    """

    def __init__(self, error_recorder: Any = None, gpu_allocator: Any = None) -> None:
        self.error_recorder = error_recorder
        self.gpu_allocator = gpu_allocator
