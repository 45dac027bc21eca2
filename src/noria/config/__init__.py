"""Reading nvinfer configuration files: `ModelConfig.load(path)`.

Enums and `ClassAttrs` cost nothing to import; `ModelConfig` brings pydantic and is resolved on
first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from noria.config.class_attrs import ClassAttrs, Rgba
from noria.config.enums import (
    ClusterMode,
    ColorFormat,
    NetworkMode,
    NetworkType,
    ProcessMode,
    ScalingComputeHw,
    ScalingFilter,
    TensorOrder,
    UffInputOrder,
)

if TYPE_CHECKING:
    from noria.config.model_config import ModelConfig

__all__ = [
    "ClassAttrs",
    "ClusterMode",
    "ColorFormat",
    "ModelConfig",
    "NetworkMode",
    "NetworkType",
    "ProcessMode",
    "Rgba",
    "ScalingComputeHw",
    "ScalingFilter",
    "TensorOrder",
    "UffInputOrder",
]


def __getattr__(name: str) -> Any:
    if name == "ModelConfig":
        from noria.config.model_config import ModelConfig

        return ModelConfig
    raise AttributeError(f"module 'noria.config' has no attribute {name!r}")
