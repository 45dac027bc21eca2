"""Stages, bounded queues, threads, back-pressure. Names resolve on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace._core.lazy import lazy

if TYPE_CHECKING:
    from headrace.infer.batch import Batch
    from headrace.pipeline.outlet import Route
    from headrace.pipeline.pipeline import Pipeline
    from headrace.pipeline.report import ModelReport, RunReport, SourceReport
    from headrace.pipeline.stage import Probe, Stage
else:
    __getattr__, __dir__ = lazy(
        __name__,
        {
            "..infer.batch": "Batch",
            ".outlet": "Route",
            ".pipeline": "Pipeline",
            ".report": "ModelReport RunReport SourceReport",
            ".stage": "Probe Stage",
        },
    )

__all__ = [
    "Batch",
    "ModelReport",
    "Pipeline",
    "Probe",
    "Route",
    "RunReport",
    "SourceReport",
    "Stage",
]
