"""Layers that a runtime does not know: classes to write them, the registry, their life cycle.

Names resolve on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace._core.lazy import lazy

if TYPE_CHECKING:
    from headrace.plugins.base import (
        IPluginCreator,
        IPluginCreatorInterface,
        IPluginCreatorV3One,
        IPluginResource,
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
    from headrace.plugins.expressions import DimsExprs, IDimensionExpr, IExprBuilder
    from headrace.plugins.field_data import PluginField, PluginFieldCollection, PluginFieldType
    from headrace.plugins.memory import address_of, array_at
    from headrace.plugins.registry import PluginRegistry, get_plugin_registry
    from headrace.plugins.trace import Tracer
    from headrace.plugins.types import (
        DataType,
        DimensionOperation,
        Dims,
        DynamicPluginTensorDesc,
        PluginCapabilityType,
        PluginTensorDesc,
        TensorFormat,
        TensorRTPhase,
    )
else:
    __getattr__, __dir__ = lazy(
        __name__,
        {
            ".base": (
                "IPluginCreator IPluginCreatorInterface IPluginCreatorV3One IPluginResource "
                "IPluginResourceContext IPluginV2 IPluginV2DynamicExt IPluginV2Ext IPluginV2IOExt "
                "IPluginV3 IPluginV3OneBuild IPluginV3OneBuildV2 IPluginV3OneCore "
                "IPluginV3OneRuntime"
            ),
            ".expressions": "DimsExprs IDimensionExpr IExprBuilder",
            ".field_data": "PluginField PluginFieldCollection PluginFieldType",
            ".memory": "address_of array_at",
            ".registry": "PluginRegistry get_plugin_registry",
            ".trace": "Tracer",
            ".types": (
                "DataType DimensionOperation Dims DynamicPluginTensorDesc "
                "PluginCapabilityType PluginTensorDesc TensorFormat TensorRTPhase"
            ),
        },
    )

__all__ = [
    "DataType",
    "DimensionOperation",
    "Dims",
    "DimsExprs",
    "DynamicPluginTensorDesc",
    "IDimensionExpr",
    "IExprBuilder",
    "IPluginCreator",
    "IPluginCreatorInterface",
    "IPluginCreatorV3One",
    "IPluginResource",
    "IPluginResourceContext",
    "IPluginV2",
    "IPluginV2DynamicExt",
    "IPluginV2Ext",
    "IPluginV2IOExt",
    "IPluginV3",
    "IPluginV3OneBuild",
    "IPluginV3OneBuildV2",
    "IPluginV3OneCore",
    "IPluginV3OneRuntime",
    "PluginCapabilityType",
    "PluginField",
    "PluginFieldCollection",
    "PluginFieldType",
    "PluginRegistry",
    "PluginTensorDesc",
    "TensorFormat",
    "TensorRTPhase",
    "Tracer",
    "address_of",
    "array_at",
    "get_plugin_registry",
]
