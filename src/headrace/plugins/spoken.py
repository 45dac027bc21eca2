"""Names of methods as the author of a plugin knows them: C++'s for compiled plugins."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from headrace._core import _native

CPP_NAMES: dict[str, str] = {
    "get_output_datatype": "getOutputDataType", "get_output_data_type": "getOutputDataType",
    "get_output_data_types": "getOutputDataTypes", "get_output_shape": "getOutputDimensions",
    "get_output_dimensions": "getOutputDimensions", "get_output_shapes": "getOutputShapes",
    "num_outputs": "getNbOutputs", "plugin_type": "getPluginType", "plugin_name": "getPluginName",
    "plugin_version": "getPluginVersion", "plugin_namespace": "getPluginNamespace",
    "supports_format": "supportsFormat",
    "supports_format_combination": "supportsFormatCombination",
    "configure_plugin": "configurePlugin", "configure_with_format": "configureWithFormat",
    "get_workspace_size": "getWorkspaceSize", "get_serialization_size": "getSerializationSize",
    "serialization_size": "getSerializationSize", "attach_to_context": "attachToContext",
    "detach_from_context": "detachFromContext", "execute_async": "enqueue",
    "is_output_broadcast_across_batch": "isOutputBroadcastAcrossBatch",
    "can_broadcast_input_across_batch": "canBroadcastInputAcrossBatch",
    "get_capability_interface": "getCapabilityInterface", "set_tactic": "setTactic",
    "get_valid_tactics": "getValidTactics", "timing_cache_id": "getTimingCacheID",
    "format_combination_limit": "getFormatCombinationLimit",
    "metadata_string": "getMetadataString", "get_aliased_input": "getAliasedInput",
    "on_shape_change": "onShapeChange", "get_fields_to_serialize": "getFieldsToSerialize",
    "create_plugin": "createPlugin", "deserialize_plugin": "deserializePlugin",
    "field_names": "getFieldNames",
}  # fmt: skip
"""Method or attribute of the Python classes -> the method of the C++ ones."""


METHOD, FUNCTION = "plugin method ", "function "
"""How a call begins in the report of a process that died in it."""


def origin_of(target: object) -> str:
    """Name the file and release of a compiled object of TensorRT's own headers; empty for others.

    `libmine.so for TensorRT 8.6.1, class Mine: `, to stand before other words.
    """
    if (image := _image(target)) and (release := _release(image)):
        file = Path(str(getattr(target, "library", ""))).name
        return f"{file} for {release}, class {type(target).__name__}: "
    return ""


def called(target: object, method: str) -> str:
    """Name a call for the report of a death: `plugin method Mine::enqueue of TensorRT 8.6.1`."""
    return _called(type(target).__name__, method, _image(target))


@lru_cache(maxsize=1024)
def _called(cls: str, method: str, image: int) -> str:
    release = _release(image) if image else ""
    text = f"{METHOD}{cls}::{CPP_NAMES.get(method, method)}"
    return f"{text} of {release}" if release else text


def _image(target: object) -> int:
    return int(getattr(getattr(target, "native", None), "image", 0))


def _release(image: int) -> str:
    line, release = _native.foreign_origin(image)
    return _native.foreign_release_text(line, release) if line else ""


def spoken(target: object, method: str) -> str:
    """The name of a method of a plugin or creator in its own language."""
    return CPP_NAMES.get(method, method) if hasattr(target, "native") else method
