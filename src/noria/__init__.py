"""Run an unmodified nvinfer config, model and custom parser anywhere."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from noria._native_check import check_native

if TYPE_CHECKING:
    from noria import config, draw, media, meta, pipeline, track
    from noria.config import (
        ModelConfig,
        ModelSpec,
        PipelineSpec,
        SinkSpec,
        SourceSpec,
        TrackerSpec,
        load_pipeline,
    )
    from noria.draw import Painter, Tiler, show
    from noria.errors import NoriaError
    from noria.infer.batch import Batch
    from noria.infer.inferencer import Inferencer, RawOutput
    from noria.infer.update import ModelUpdater
    from noria.media import (
        ArraySource,
        ColorSpace,
        Frame,
        PixelFormat,
        Sink,
        Source,
        open_sink,
        open_source,
    )
    from noria.meta import (
        Classification,
        ClassifierMeta,
        DetectionParams,
        Detections,
        FrameMeta,
        InputTensor,
        LabelInfo,
        Layer,
        NetworkInfo,
        ObjectMeta,
        Objects,
        Roi,
        Segmentation,
        SegmentationMeta,
        Space,
        TensorOutput,
        table,
    )
    from noria.notices import NoriaWarning, Notice
    from noria.pipeline.opening import open_pipeline
    from noria.pipeline.outlet import Route
    from noria.pipeline.pipeline import Pipeline
    from noria.pipeline.report import RunReport
    from noria.track import Tracker, open_tracker

__version__ = "0.1.0"

check_native()

# Public name -> module; resolved on first use so that `import noria` stays light.
_LAZY = {
    "ArraySource": "noria.media",
    "Batch": "noria.infer.batch",
    "Classification": "noria.meta",
    "ClassifierMeta": "noria.meta",
    "ColorSpace": "noria.media",
    "DetectionParams": "noria.meta",
    "Detections": "noria.meta",
    "Frame": "noria.media",
    "FrameMeta": "noria.meta",
    "Inferencer": "noria.infer.inferencer",
    "InputTensor": "noria.meta",
    "LabelInfo": "noria.meta",
    "Layer": "noria.meta",
    "ModelConfig": "noria.config",
    "ModelSpec": "noria.config",
    "ModelUpdater": "noria.infer.update",
    "NetworkInfo": "noria.meta",
    "NoriaError": "noria.errors",
    "NoriaWarning": "noria.notices",
    "Notice": "noria.notices",
    "ObjectMeta": "noria.meta",
    "Objects": "noria.meta",
    "Painter": "noria.draw",
    "Pipeline": "noria.pipeline.pipeline",
    "PipelineSpec": "noria.config",
    "PixelFormat": "noria.media",
    "RawOutput": "noria.infer.inferencer",
    "Roi": "noria.meta",
    "Route": "noria.pipeline.outlet",
    "RunReport": "noria.pipeline.report",
    "Segmentation": "noria.meta",
    "SegmentationMeta": "noria.meta",
    "Sink": "noria.media",
    "SinkSpec": "noria.config",
    "Source": "noria.media",
    "SourceSpec": "noria.config",
    "Space": "noria.meta",
    "TensorOutput": "noria.meta",
    "Tiler": "noria.draw",
    "Tracker": "noria.track",
    "TrackerSpec": "noria.config",
    "load_pipeline": "noria.config",
    "open_pipeline": "noria.pipeline.opening",
    "open_sink": "noria.media",
    "open_source": "noria.media",
    "open_tracker": "noria.track",
    "show": "noria.draw",
}
# Public name -> module that is the value.
_MODULES = {
    "config": "noria.config",
    "draw": "noria.draw",
    "media": "noria.media",
    "meta": "noria.meta",
    "pipeline": "noria.pipeline",
    "track": "noria.track",
    "table": "noria.meta.table",
}

__all__ = [
    "ArraySource",
    "Batch",
    "Classification",
    "ClassifierMeta",
    "ColorSpace",
    "DetectionParams",
    "Detections",
    "Frame",
    "FrameMeta",
    "Inferencer",
    "InputTensor",
    "LabelInfo",
    "Layer",
    "ModelConfig",
    "ModelSpec",
    "ModelUpdater",
    "NetworkInfo",
    "NoriaError",
    "NoriaWarning",
    "Notice",
    "ObjectMeta",
    "Objects",
    "Painter",
    "Pipeline",
    "PipelineSpec",
    "PixelFormat",
    "RawOutput",
    "Roi",
    "Route",
    "RunReport",
    "Segmentation",
    "SegmentationMeta",
    "Sink",
    "SinkSpec",
    "Source",
    "SourceSpec",
    "Space",
    "TensorOutput",
    "Tiler",
    "Tracker",
    "TrackerSpec",
    "config",
    "draw",
    "load_pipeline",
    "media",
    "meta",
    "open_pipeline",
    "open_sink",
    "open_source",
    "open_tracker",
    "pipeline",
    "show",
    "table",
    "track",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(_MODULES[name])
    if name in _LAZY:
        value = getattr(importlib.import_module(_LAZY[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'noria' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
