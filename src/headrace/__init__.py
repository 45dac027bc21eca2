"""Run an unmodified nvinfer config, model and custom parser anywhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace._core.lazy import lazy
from headrace._core.native_check import check_native

if TYPE_CHECKING:
    from headrace import _wiring as _wiring
    from headrace import (
        config,
        custom,
        engine,
        errors,
        infer,
        media,
        meta,
        network,
        pipeline,
        plugins,
        trt,
    )
    from headrace._core.errors import HeadraceError
    from headrace._core.findings import Finding
    from headrace._core.notices import HeadraceWarning
    from headrace.batches import BatchReport, batch, ray
    from headrace.config import (
        ModelConfig,
        ModelSpec,
        PipelineSpec,
        SinkSpec,
        SourceSpec,
        TrackerSpec,
        load_pipeline,
    )
    from headrace.diagnose.compare import compare
    from headrace.diagnose.evaluate import EvaluationReport, evaluate, load_dataset
    from headrace.diagnose.explain import explain
    from headrace.diagnose.recordings import record
    from headrace.diagnose.repair import repair
    from headrace.infer import model
    from headrace.infer.batch import Batch
    from headrace.infer.engine_runs import RawOutput
    from headrace.infer.inferencer import Inferencer
    from headrace.infer.recordings import (
        Recording,
        assert_same_objects,
        load_recording,
        replay_recording,
    )
    from headrace.infer.update import ModelUpdater
    from headrace.media import (
        ArraySource,
        ColorSpace,
        Frame,
        PixelFormat,
        Sink,
        Source,
        draw,
        open_sink,
        open_source,
    )
    from headrace.media.draw import Painter, Tiler, show
    from headrace.meta import (
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
    from headrace.pipeline import track
    from headrace.pipeline.opening import open_pipeline
    from headrace.pipeline.outlet import Route
    from headrace.pipeline.pipeline import Pipeline
    from headrace.pipeline.report import RunReport
    from headrace.pipeline.track import Tracker, open_tracker
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
            ".diagnose.explain": "explain",
            ".diagnose.recordings": "record",
            ".diagnose.repair": "repair",
            ".media.draw": "Painter Tiler show",
            "._core.errors": "HeadraceError",
            ".infer.batch": "Batch",
            ".infer.inferencer": "Inferencer RawOutput",
            ".infer.recordings": "Recording assert_same_objects load_recording replay_recording",
            ".infer.update": "ModelUpdater",
            ".media": "ArraySource ColorSpace Frame PixelFormat Sink Source open_sink open_source",
            ".meta": (
                "Classification ClassifierMeta DetectionParams Detections FrameMeta InputTensor "
                "LabelInfo Layer NetworkInfo ObjectMeta Objects Roi Segmentation "
                "SegmentationMeta Space TensorOutput"
            ),
            "._core.findings": "Finding",
            "._core.notices": "HeadraceWarning",
            ".pipeline.opening": "open_pipeline",
            ".pipeline.outlet": "Route",
            ".pipeline.pipeline": "Pipeline",
            ".pipeline.report": "RunReport",
            ".pipeline.track": "Tracker open_tracker",
        },
        modules=(
            "._wiring",
            ".batches.ray",
            ".config",
            ".custom",
            ".media.draw",
            ".engine",
            ".errors",
            ".infer",
            ".media",
            ".meta",
            ".meta.table",
            ".infer.model",
            ".network",
            ".pipeline",
            ".plugins",
            ".pipeline.track",
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
    "Finding",
    "Frame",
    "FrameMeta",
    "HeadraceError",
    "HeadraceWarning",
    "Inferencer",
    "InputTensor",
    "LabelInfo",
    "Layer",
    "ModelConfig",
    "ModelSpec",
    "ModelUpdater",
    "NetworkInfo",
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
    "repair",
    "replay_recording",
    "show",
    "table",
    "track",
    "trt",
]
