"""Checks of a pipeline: its models together, its sources, tracker and outputs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from headrace._core.errors import HeadraceError
from headrace._core.findings import Finding
from headrace.config.enums import ProcessMode
from headrace.config.paths import missing_hints
from headrace.pipeline.assembly import tracker_of
from headrace.pipeline.stage_order import numbered
from headrace.pipeline.turns import never_inferred

if TYPE_CHECKING:
    from headrace.config import ModelConfig
    from headrace.config.pipeline_spec import PipelineSpec


def pipeline_checks(
    spec: PipelineSpec, configs: Sequence[ModelConfig], problems: list[HeadraceError]
) -> Iterator[Finding]:
    """Check a pipeline file; refusals join `problems`."""
    yield from spec.notices
    made = any(model.preprocess for model in spec.models)
    for notice in together_checks(configs, str(spec.path)):
        if not (made and notice.code == "tensors-from-nowhere"):
            yield notice
    yield from _tracking(spec, configs)
    primary = [cfg.interval for cfg in configs if cfg.process_mode is not ProcessMode.SECONDARY]
    live = any(source.is_stream for source in spec.opened_sources)
    for notice in never_inferred(len(spec.opened_sources), spec.batch_size, primary, live=live):
        yield notice.changed(where=spec.origin("batch_size").where or str(spec.path))
    for source in spec.opened_sources:
        path = Path(source.uri)
        if source.is_stream or path.exists() or any(c in source.uri for c in "*?[%"):
            continue
        hints = missing_hints(path)
        text = f"there is no source {source.uri}" + (f"; {hints[0]}" if hints else "")
        yield Finding(
            "source-missing", "warning", text, source.origin("uri").where or str(spec.path)
        )
    try:
        tracker = tracker_of(spec)
    except HeadraceError as error:
        problems.append(error)
        return
    if tracker is not None:
        yield from getattr(tracker, "notices", ())


def together_checks(configs: Sequence[ModelConfig], where: str | None) -> list[Finding]:
    """Check models together; where an id is absent, the findings of each config say it already."""
    return [n for n in numbered(configs, where)[1] if n.code != "unique-id-absent"]


def _tracking(spec: PipelineSpec, configs: Sequence[ModelConfig]) -> Iterator[Finding]:
    if spec.tracker is not None:
        return
    for cfg in configs:
        secondary = cfg.process_mode is ProcessMode.SECONDARY
        if cfg.classifier_async_mode and secondary:
            text = "classifier-async-mode=1 without a tracker: objects without a tracking id are "
            text += "left out, so nothing is classified"
            where = cfg.where("classifier_async_mode")
            yield Finding("async-without-tracker", "warning", text, where)
        if cfg.interval and not secondary:
            text = f"interval={cfg.interval} without a tracker: the frames between have no objects"
            yield Finding("interval-without-tracker", "info", text, cfg.where("interval"))
        if secondary and cfg.is_set("secondary_reinfer_interval"):
            text = "secondary-reinfer-interval has no effect without a tracker"
            where = cfg.where("secondary_reinfer_interval")
            yield Finding("reinfer-without-tracker", "info", text, where)
