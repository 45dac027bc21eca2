"""Stages, bounded queues, threads, back-pressure."""

from noria.pipeline.pipeline import Pipeline
from noria.pipeline.report import RunReport

__all__ = ["Pipeline", "RunReport"]
