"""Reading configuration files: `ModelConfig.load(path)` of one model, `load_pipeline(path)`.

Enums and `ClassAttrs` cost nothing to import; `ModelConfig` and the parts of a pipeline are
resolved on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace._core.lazy import lazy
from headrace.config.class_attrs import ClassAttrs, Rgba
from headrace.config.enums import (
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
    from headrace.config.file_kinds import is_pipeline_file
    from headrace.config.model_config import ModelConfig
    from headrace.config.pipeline_files import load_pipeline
    from headrace.config.pipeline_spec import (
        ModelSpec,
        OsdSpec,
        PipelineSpec,
        SinkSpec,
        SourceSpec,
        TilerSpec,
        TrackerSpec,
    )
else:
    __getattr__, __dir__ = lazy(
        __name__,
        {
            ".model_config": "ModelConfig",
            ".file_kinds": "is_pipeline_file",
            ".pipeline_files": "load_pipeline",
            ".pipeline_spec": (
                "ModelSpec OsdSpec PipelineSpec SinkSpec SourceSpec TilerSpec TrackerSpec"
            ),
        },
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
