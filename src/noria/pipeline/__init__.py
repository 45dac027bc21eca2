"""Stages, bounded queues, threads, back-pressure."""

from noria.infer.batch import Batch
from noria.pipeline.outlet import Route
from noria.pipeline.pipeline import Pipeline
from noria.pipeline.report import ModelReport, RunReport, SourceReport
from noria.pipeline.stage import Probe, Stage

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
