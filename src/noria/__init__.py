"""Run an unmodified nvinfer config, model and custom parser anywhere."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from noria.config import ModelConfig
    from noria.errors import NoriaError
    from noria.infer.batch import Batch
    from noria.infer.inferencer import Inferencer
    from noria.media import ArraySource, ColorSpace, Frame, PixelFormat, open_sink, open_source
    from noria.meta import (
        Classification,
        DetectionParams,
        Detections,
        FrameMeta,
        Layer,
        NetworkInfo,
        ObjectMeta,
        Segmentation,
        Space,
    )
    from noria.notices import Notice
    from noria.pipeline.outlet import Route
    from noria.pipeline.pipeline import Pipeline
    from noria.pipeline.report import RunReport

__version__ = "0.1.0"

# Public name -> module; resolved on first use so that `import noria` stays light.
_LAZY = {
    "ArraySource": "noria.media",
    "Batch": "noria.infer.batch",
    "Classification": "noria.meta",
    "ColorSpace": "noria.media",
    "DetectionParams": "noria.meta",
    "Detections": "noria.meta",
    "Frame": "noria.media",
    "FrameMeta": "noria.meta",
    "Inferencer": "noria.infer.inferencer",
    "Layer": "noria.meta",
    "ModelConfig": "noria.config",
    "NetworkInfo": "noria.meta",
    "NoriaError": "noria.errors",
    "Notice": "noria.notices",
    "ObjectMeta": "noria.meta",
    "Pipeline": "noria.pipeline.pipeline",
    "PixelFormat": "noria.media",
    "Route": "noria.pipeline.outlet",
    "RunReport": "noria.pipeline.report",
    "Segmentation": "noria.meta",
    "Space": "noria.meta",
    "open_sink": "noria.media",
    "open_source": "noria.media",
}

__all__ = [
    "ArraySource",
    "Batch",
    "Classification",
    "ColorSpace",
    "DetectionParams",
    "Detections",
    "Frame",
    "FrameMeta",
    "Inferencer",
    "Layer",
    "ModelConfig",
    "NetworkInfo",
    "NoriaError",
    "Notice",
    "ObjectMeta",
    "Pipeline",
    "PixelFormat",
    "Route",
    "RunReport",
    "Segmentation",
    "Space",
    "open_sink",
    "open_source",
]


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        value = getattr(importlib.import_module(_LAZY[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'noria' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})
