"""Pipelines and reports as text for a console, as HTML for a notebook."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from noria.pipeline.stage import is_stage, is_tracker

if TYPE_CHECKING:
    from noria.pipeline.pipeline import Pipeline
    from noria.pipeline.report import RunReport


def _name(stage: Any) -> str:
    if is_stage(stage) or is_tracker(stage):
        return str(getattr(stage, "name", None) or type(stage).__name__)
    return str(getattr(stage, "__name__", None) or type(stage).__name__)


def pipeline_line(pipeline: Pipeline) -> str:
    """Sources, stages and sinks in one line."""
    stages = ", ".join(map(_name, pipeline.stages)) or "no stages"
    sinks = len(pipeline.sinks)
    return f"{pipeline.report.source}: {stages}; {sinks} sink{'s' * (sinks != 1)}"


def pipeline_html(pipeline: Pipeline) -> str:
    """Parts and decisions of a pipeline."""
    from noria._core.html import facts, notice_list, paragraph

    parts = facts(
        (
            ("sources", ", ".join(s.name for s in pipeline.sources)),
            ("stages", ", ".join(map(_name, pipeline.stages))),
            ("outputs", ", ".join(str(s.path) for s in pipeline.sinks)),
            ("state", pipeline.state),
        )
    )
    return paragraph(repr(pipeline)) + parts + notice_list(pipeline.notices)


def report_html(report: RunReport) -> str:
    """Summary of a run."""
    from noria._core.html import facts, notice_list, paragraph, table

    sources = table(
        ("source", "frames", "dropped", "state", "error"),
        ((s.name, s.frames, s.dropped or "", s.state, s.error or "") for s in report.sources),
    )
    models = table(
        ("model", "inferred", "failed", "infer s"),
        (
            (m.name, m.inferred, m.failed or "", f"{m.seconds.get('infer', 0.0):.2f}")
            for m in report.models
        ),
    )
    objects = facts(
        (
            ("found", ", ".join(f"{n} {name}" for name, n in report.objects.most_common(12))),
            ("written", ", ".join(report.outputs)),
        )
    )
    return paragraph(repr(report)) + sources + models + objects + notice_list(report.notices)
