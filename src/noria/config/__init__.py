"""Reading configuration files: `ModelConfig.load(path)` of one model, `load_pipeline(path)`.

Enums and `ClassAttrs` cost nothing to import; `ModelConfig` and the parts of a pipeline bring
pydantic and are resolved on first use.
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
    from noria.config.pipeline_files import is_pipeline_file, load_pipeline
    from noria.config.pipeline_spec import (
        ModelSpec,
        OsdSpec,
        PipelineSpec,
        SinkSpec,
        SourceSpec,
        TilerSpec,
        TrackerSpec,
    )

__all__ = [
    "ClassAttrs",
    "ClusterMode",
    "ColorFormat",
    "ModelConfig",
    "ModelSpec",
    "NetworkMode",
    "NetworkType",
    "OsdSpec",
    "PipelineSpec",
    "ProcessMode",
    "Rgba",
    "ScalingComputeHw",
    "ScalingFilter",
    "SinkSpec",
    "SourceSpec",
    "TensorOrder",
    "TilerSpec",
    "TrackerSpec",
    "UffInputOrder",
    "is_pipeline_file",
    "load_pipeline",
]


_LATE = {
    "ModelConfig": "model_config",
    "is_pipeline_file": "pipeline_files",
    "load_pipeline": "pipeline_files",
    **dict.fromkeys(
        (
            "ModelSpec",
            "OsdSpec",
            "PipelineSpec",
            "SinkSpec",
            "SourceSpec",
            "TilerSpec",
            "TrackerSpec",
        ),
        "pipeline_spec",
    ),
}


def __getattr__(name: str) -> Any:
    if name in _LATE:
        from importlib import import_module

        return getattr(import_module(f"noria.config.{_LATE[name]}"), name)
    raise AttributeError(f"module 'noria.config' has no attribute {name!r}")
