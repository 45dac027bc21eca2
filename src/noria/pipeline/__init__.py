"""Stages, bounded queues, threads, back-pressure. Names resolve on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from noria._core.lazy import lazy

if TYPE_CHECKING:
    from noria.infer.batch import Batch
    from noria.pipeline.outlet import Route
    from noria.pipeline.pipeline import Pipeline
    from noria.pipeline.report import ModelReport, RunReport, SourceReport
    from noria.pipeline.stage import Probe, Stage
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
