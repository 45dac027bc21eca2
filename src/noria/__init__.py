"""Run an unmodified nvinfer config, model and custom parser anywhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from noria._core.lazy import lazy
from noria._core.native_check import check_native

if TYPE_CHECKING:
    from noria import _wiring as _wiring
    from noria import (
        config,
        custom,
        draw,
        engine,
        errors,
        infer,
        media,
        meta,
        model,
        network,
        pipeline,
        plugins,
        track,
        trt,
    )
    from noria._core.errors import NoriaError
    from noria._core.notices import NoriaWarning, Notice
    from noria.batches import BatchReport, batch, ray
    from noria.config import (
        ModelConfig,
        ModelSpec,
        PipelineSpec,
        SinkSpec,
        SourceSpec,
        TrackerSpec,
        load_pipeline,
    )
    from noria.diagnose.compare import compare
    from noria.diagnose.evaluate import EvaluationReport, evaluate, load_dataset
    from noria.diagnose.explanation import explain
    from noria.diagnose.recording import record
    from noria.draw import Painter, Tiler, show
    from noria.infer.batch import Batch
    from noria.infer.engine_runs import RawOutput
    from noria.infer.inferencer import Inferencer
    from noria.infer.recording import (
        Recording,
        assert_same_objects,
        load_recording,
        replay_recording,
    )
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
    from noria.pipeline.opening import open_pipeline
    from noria.pipeline.outlet import Route
    from noria.pipeline.pipeline import Pipeline
    from noria.pipeline.report import RunReport
    from noria.track import Tracker, open_tracker
else:
    __getattr__, __dir__ = lazy(
        __name__,
        {
            ".batches": "BatchReport batch",
            ".config": (
                "ModelConfig ModelSpec PipelineSpec SinkSpec SourceSpec TrackerSpec load_pipeline"
            ),
            ".diagnose.compare": "compare",
            ".diagnose.evaluate": "EvaluationReport evaluate load_dataset",
            ".diagnose.explanation": "explain",
            ".diagnose.recording": "record",
            ".draw": "Painter Tiler show",
            "._core.errors": "NoriaError",
            ".infer.batch": "Batch",
            ".infer.inferencer": "Inferencer RawOutput",
            ".infer.recording": "Recording assert_same_objects load_recording replay_recording",
            ".infer.update": "ModelUpdater",
            ".media": "ArraySource ColorSpace Frame PixelFormat Sink Source open_sink open_source",
            ".meta": (
                "Classification ClassifierMeta DetectionParams Detections FrameMeta InputTensor "
                "LabelInfo Layer NetworkInfo ObjectMeta Objects Roi Segmentation "
                "SegmentationMeta Space TensorOutput"
            ),
            "._core.notices": "NoriaWarning Notice",
            ".pipeline.opening": "open_pipeline",
            ".pipeline.outlet": "Route",
            ".pipeline.pipeline": "Pipeline",
            ".pipeline.report": "RunReport",
            ".track": "Tracker open_tracker",
        },
        modules=(
            "._wiring",
            ".batches.ray",
            ".config",
            ".custom",
            ".draw",
            ".engine",
            ".errors",
            ".infer",
            ".media",
            ".meta",
            ".meta.table",
            ".model",
            ".network",
            ".pipeline",
            ".plugins",
            ".track",
            ".trt",
        ),
    )

__version__ = "0.1.0"

check_native()

__all__ = [
    "ArraySource",
    "Batch",
    "BatchReport",
    "Classification",
    "ClassifierMeta",
    "ColorSpace",
    "DetectionParams",
    "Detections",
    "EvaluationReport",
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
    "Recording",
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
    "assert_same_objects",
    "batch",
    "compare",
    "config",
    "custom",
    "draw",
    "engine",
    "errors",
    "evaluate",
    "explain",
    "infer",
    "load_dataset",
    "load_pipeline",
    "load_recording",
    "media",
    "meta",
    "model",
    "network",
    "open_pipeline",
    "open_sink",
    "open_source",
    "open_tracker",
    "pipeline",
    "plugins",
    "ray",
    "record",
    "replay_recording",
    "show",
    "table",
    "track",
    "trt",
]
