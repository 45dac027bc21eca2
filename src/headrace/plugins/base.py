"""The classes to be subclassed: plugins of both lines, and creators.

Methods are called in the order of the life cycle (see docs/plugins.md). Pointers are integers:
addresses of host memory, which `headrace.plugins.array_at` views as arrays. A method that fails
raises; of statuses only that of `execute_async` is looked at, as in TensorRT.

The classes differ in the batch and types of their arguments:

- `IPluginV2`, `IPluginV2Ext`, `IPluginV2IOExt` see shapes without the batch, which comes apart;
- `IPluginV2DynamicExt` sees whole shapes, symbolic ones while the network is described;
- `IPluginV3` sees them too, and is one object with three capabilities. Usually one class inherits
  it and the three interfaces, and its `get_capability_interface` returns itself:

    class Scale(IPluginV3, IPluginV3OneCore, IPluginV3OneBuild, IPluginV3OneRuntime):
        def __init__(self):
            IPluginV3.__init__(self)
            IPluginV3OneCore.__init__(self)
            IPluginV3OneBuild.__init__(self)
            IPluginV3OneRuntime.__init__(self)
            self.plugin_name, self.plugin_version, self.plugin_namespace = "Scale", "1", ""
            self.num_outputs = 1

Source: tensorrt-plugins spec 1, 2.1 to 2.5, 8.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from headrace.plugins.expressions import DimsExprs, IExprBuilder, SymbolicShapes
from headrace.plugins.field_data import PluginFieldCollection
from headrace.plugins.types import (
    APILanguage,
    DataType,
    Dims,
    DynamicTensorDescs,
    PluginCapabilityType,
    TensorDescs,
    TensorFormat,
    TensorRTPhase,
)

TENSORRT_VERSION = 8601


def missing(plugin: object, method: str) -> NotImplementedError:
    """The error for a method that a subclass must have."""
    return NotImplementedError(f"class {type(plugin).__name__} has no method {method}")


class _Plugin:
    """The part that all plugins of the version-2 line share.

    Attributes:
        num_outputs: number of outputs, > 0.
        plugin_type, plugin_version, plugin_namespace: what its creator is found by. Strings of less
            than 1024 bytes.
    """

    GENERATION = 0
    num_outputs: int
    plugin_type: str
    plugin_version: str
    plugin_namespace: str = ""

    def __init__(self) -> None:
        """Subclasses call it first, as in the original."""

    @property
    def tensorrt_version(self) -> int:
        """Generation of the interface in the top byte, version of TensorRT below."""
        return self.GENERATION << 24 | TENSORRT_VERSION

    def clone(self) -> object:
        """A new object with the same parameters and namespace, usable as it is."""
        raise missing(self, "clone")

    def initialize(self) -> int | None:
        """Acquire resources for running; once for each instance of an engine."""
        return 0

    def terminate(self) -> None:
        """Release the resources of `initialize`."""

    def destroy(self) -> None:
        """The object is not used any more."""

    def serialize(self) -> bytes:
        """Write the bytes from which `deserialize_plugin` of the creator makes the plugin."""
        raise missing(self, "serialize")


class _Attachable:
    """The part of plugins of the version-2 line that know their context."""

    def attach_to_context(self, cudnn: object, cublas: object, allocator: object) -> None:
        """This clone now belongs to an execution context. Handles are None here."""

    def detach_from_context(self) -> None:
        """The context is about to destroy this clone."""


class IPluginV2(_Plugin):
    """One type and format for all inputs and outputs; networks with implicit batch only."""

    def get_output_shape(self, index: int, input_shapes: Sequence[Dims]) -> Sequence[int]:
        """Shape of output `index`, without the batch."""
        raise missing(self, "get_output_shape")

    def supports_format(self, dtype: DataType, format: TensorFormat) -> bool:
        """Whether all tensors may be `dtype` in `format`; true at least for FLOAT and LINEAR."""
        return dtype == DataType.FLOAT and format == TensorFormat.LINEAR

    def configure_with_format(
        self,
        input_shapes: Sequence[Dims],
        output_shapes: Sequence[Dims],
        dtype: DataType,
        format: TensorFormat,
        max_batch_size: int,
    ) -> None:
        """Take the chosen shapes, type and format; comes before `initialize`."""

    def get_workspace_size(self, max_batch_size: int) -> int:
        """Bytes of scratch memory for `max_batch_size` items."""
        return 0

    def execute_async(
        self,
        batch_size: int,
        inputs: Sequence[int],
        outputs: Sequence[int],
        workspace: int,
        stream_handle: int,
    ) -> int | None:
        """Compute `batch_size` items; 0 or None is success."""
        raise missing(self, "execute_async")

    @property
    def serialization_size(self) -> int:
        """Bytes that `serialize` gives."""
        serialized: Any = self.serialize()
        return len(serialized.encode() if isinstance(serialized, str) else serialized)


class IPluginV2Ext(IPluginV2, _Attachable):
    """A type of its own for each output; networks with explicit batch too."""

    GENERATION = 1

    def get_output_data_type(self, index: int, input_types: Sequence[DataType]) -> DataType:
        """Type of output `index`."""
        return input_types[0] if input_types else DataType.FLOAT

    def is_output_broadcast_across_batch(
        self, output_index: int, input_is_broadcasted: Sequence[bool]
    ) -> bool:
        """Whether one copy of the output serves the whole batch (implicit batch only)."""
        return False

    def can_broadcast_input_across_batch(self, input_index: int) -> bool:
        """Whether one copy of the input may serve the whole batch (implicit batch only)."""
        return False

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
        """Take the chosen shapes, types and format; replaces `configure_with_format`."""


class IPluginV2IOExt(IPluginV2Ext):
    """Any mix of types and formats."""

    GENERATION = 2

    def supports_format_combination(self, pos: int, in_out: TensorDescs, num_inputs: int) -> bool:
        """Whether tensor `pos` may have the type and format of `in_out[pos]`, given those before.

        Args:
            pos: index of the tensor, inputs first.
            in_out: all tensors; those after `pos` are not chosen yet and must not be read.
            num_inputs: how many of them are inputs.
        """
        raise missing(self, "supports_format_combination")

    def configure_plugin(  # type: ignore[override]
        self, inputs: TensorDescs, outputs: TensorDescs
    ) -> None:
        """Take the chosen types, formats, and shapes without the batch."""


class IPluginV2DynamicExt(_Plugin, _Attachable):
    """Whole shapes, known only at run time, in any mix of types and formats."""

    GENERATION = 3
    FORMAT_COMBINATION_LIMIT = 100

    def get_output_dimensions(
        self, output_index: int, inputs: SymbolicShapes, expr_builder: IExprBuilder
    ) -> DimsExprs:
        """Shape of output `output_index`, batch included, in terms of the inputs' axes."""
        raise missing(self, "get_output_dimensions")

    def get_output_datatype(self, index: int, input_types: Sequence[DataType]) -> DataType:
        """Type of output `index`; every floating or INT8 input is presented as FLOAT."""
        return input_types[0] if input_types else DataType.FLOAT

    def supports_format_combination(self, pos: int, in_out: TensorDescs, num_inputs: int) -> bool:
        """As `IPluginV2IOExt.supports_format_combination`."""
        raise missing(self, "supports_format_combination")

    def configure_plugin(self, inputs: DynamicTensorDescs, outputs: DynamicTensorDescs) -> None:
        """While building, once per profile (free axes are -1); while running, with real shapes."""

    def get_workspace_size(self, inputs: TensorDescs, outputs: TensorDescs) -> int:
        """Bytes of scratch memory for these shapes."""
        return 0

    def enqueue(
        self,
        input_desc: TensorDescs,
        output_desc: TensorDescs,
        inputs: Sequence[int],
        outputs: Sequence[int],
        workspace: int,
        stream: int,
    ) -> object:
        """Compute. Raise on failure; the result is ignored."""
        raise missing(self, "enqueue")

    def get_serialization_size(self) -> int:
        """Bytes that `serialize` gives."""
        return len(self.serialize())


@dataclass(frozen=True, slots=True)
class InterfaceInfo:
    """Kind and version of an interface."""

    kind: str
    major: int
    minor: int


class IVersionedInterface:
    """An object that knows the kind and version of its interface."""

    _info: InterfaceInfo
    api_language = APILanguage.PYTHON

    def __init__(self) -> None:
        """Subclasses call it first, as in the original."""

    @property
    def interface_info(self) -> InterfaceInfo:
        """Kind and version of this interface."""
        return self._info


class IPluginV3(IVersionedInterface):
    """A plugin of version 3."""

    _info = InterfaceInfo("PLUGIN", 1, 0)

    def get_capability_interface(self, type: PluginCapabilityType) -> object:
        """The object that has the methods of that capability; by default the plugin itself."""
        return self

    def clone(self) -> object:
        """A new object with the same parameters, fully initialised."""
        raise missing(self, "clone")

    def destroy(self) -> None:
        """The object is not used any more."""


def methods_left_out(plugin: object) -> list[str]:
    """Methods and attributes that TensorRT asks a Python V3 plugin for and that are defaults here.

    Its build fails without them, where this one goes on; none for plugins of Headrace's own.
    """
    cls = type(plugin)
    if not isinstance(plugin, IPluginV3) or hasattr(plugin, "native"):
        return []
    if cls.__module__.startswith("headrace."):
        return []
    names = ("get_capability_interface", "configure_plugin", "set_tactic", "on_shape_change")
    own = [IPluginV3, IPluginV3OneBuild, IPluginV3OneRuntime]
    missing = [
        name for name in names if any(getattr(cls, name, 0) is vars(base).get(name) for base in own)
    ]
    if "plugin_namespace" not in vars(plugin) and "plugin_namespace" in vars(IPluginV3OneCore):
        face = getattr(cls, "plugin_namespace", "")
        missing += ["plugin_namespace"] * (face == IPluginV3OneCore.plugin_namespace)
    return missing


class IPluginCapability(IVersionedInterface):
    """Base of the three capabilities."""

    _info = InterfaceInfo("PLUGIN_V3ONE", 1, 0)


class IPluginV3OneCore(IPluginCapability):
    """Who the plugin is.

    Attributes:
        plugin_name, plugin_version, plugin_namespace: what its creator is found by.
    """

    _info = InterfaceInfo("PLUGIN_V3ONE_CORE", 1, 0)
    plugin_name: str
    plugin_version: str
    plugin_namespace: str = ""


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

    def get_output_data_types(self, input_types: Sequence[DataType]) -> Sequence[DataType]:
        """Types of all outputs."""
        raise missing(self, "get_output_data_types")

    def get_output_shapes(
        self, inputs: SymbolicShapes, shape_inputs: SymbolicShapes, expr_builder: IExprBuilder
    ) -> SymbolicShapes:
        """Shapes of all outputs; of a shape input the "axes" are the values in it."""
        raise missing(self, "get_output_shapes")

    def supports_format_combination(
        self, pos: int, in_out: DynamicTensorDescs, num_inputs: int
    ) -> bool:
        """Whether tensor `pos` may have the type of `in_out[pos].desc`, given those before it."""
        raise missing(self, "supports_format_combination")

    def configure_plugin(self, inp: DynamicTensorDescs, out: DynamicTensorDescs) -> None:
        """Take the chosen types and shapes; only while building."""

    def get_workspace_size(self, inp: DynamicTensorDescs, out: DynamicTensorDescs) -> int:
        """Bytes of scratch memory for the greatest shapes."""
        return 0

    def get_valid_tactics(self) -> Sequence[int]:
        """Ways to compute, to be timed; unique numbers but 0. Empty: one, called 0."""
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

    def set_tactic(self, tactic: int) -> object:
        """Compute this way from now on."""
        return 0

    def on_shape_change(self, inp: TensorDescs, out: TensorDescs) -> object:
        """Shapes of the following `enqueue` calls; before the first one, and after each change."""
        return 0

    def enqueue(
        self,
        input_desc: TensorDescs,
        output_desc: TensorDescs,
        inputs: Sequence[int],
        outputs: Sequence[int],
        workspace: int,
        stream: int,
    ) -> object:
        """Compute. Raise on failure."""
        raise missing(self, "enqueue")

    def attach_to_context(self, resource_context: IPluginResourceContext) -> object:
        """A new plugin bound to that context, normally a clone."""
        raise missing(self, "attach_to_context")

    def get_fields_to_serialize(self) -> PluginFieldCollection:
        """Collect the fields for the engine; the creator makes the plugin from them again."""
        raise missing(self, "get_fields_to_serialize")


class IPluginResource:
    """Something that plugins of one registry share, by key."""

    def __init__(self) -> None:
        """Subclasses call it, as in the original."""

    def clone(self) -> object:
        """Make the copy that the registry keeps when the resource is first acquired."""
        raise missing(self, "clone")

    def release(self) -> None:
        """Release the copy after its last use."""


class IPluginResourceContext:
    """The argument of `attach_to_context`.

    Attributes:
        error_recorder, gpu_allocator: those of the execution context; None here.
    """

    error_recorder: object
    gpu_allocator: object

    def __init__(self, error_recorder: object = None, gpu_allocator: object = None) -> None:
        self.error_recorder = error_recorder
        self.gpu_allocator = gpu_allocator


class IPluginCreatorInterface(IVersionedInterface):
    """Base of all creators.

    Attributes:
        name, plugin_version, plugin_namespace: what the creator is found by; the registry sets the
            namespace.
        field_names: the fields it takes. Only names and types mean something.
    """

    api_language = APILanguage.PYTHON
    _info = InterfaceInfo("PLUGIN CREATOR", 1, 0)
    name: str
    plugin_version: str
    plugin_namespace: str = ""
    field_names: PluginFieldCollection


class IPluginCreator(IPluginCreatorInterface):
    """Creator of plugins of the version-2 line."""

    _info = InterfaceInfo("PLUGIN CREATOR_V1", 1, 0)

    def create_plugin(self, name: str, field_collection: PluginFieldCollection) -> object:
        """A plugin for the layer `name`; None is a failure."""
        raise missing(self, "create_plugin")

    def deserialize_plugin(self, name: str, serialized_plugin: bytes) -> object:
        """Make a plugin from the bytes of `serialize`; None is a failure."""
        raise missing(self, "deserialize_plugin")


class IPluginCreatorV3One(IPluginCreatorInterface):
    """Creator of plugins of version 3."""

    _info = InterfaceInfo("PLUGIN CREATOR_V3ONE", 1, 0)

    def create_plugin(
        self, name: str, field_collection: PluginFieldCollection, phase: TensorRTPhase
    ) -> object:
        """A plugin for the layer `name`.

        Args:
            name: of the layer.
            field_collection: BUILD: what the network says; RUNTIME: what
                `get_fields_to_serialize` gave.
            phase: what the plugin is for.
        """
        raise missing(self, "create_plugin")


AnyCreator: TypeAlias = IPluginCreator | IPluginCreatorV3One
"""A creator of either line."""
