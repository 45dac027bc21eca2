"""The state of a running pipeline as the page shows it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headrace.live.view import LiveView
    from headrace.media import Source
    from headrace.pipeline import Pipeline
    from headrace.pipeline.health import Health

_MAX_NOTICES = 50


def source_states(pipeline: Pipeline) -> list[dict[str, object]]:
    """List the sources that are not over, for programs: the state and counts of each."""
    ages, reports = pipeline.frame_ages(), {r.source_id: r for r in pipeline.snapshot().sources}
    rows: list[dict[str, object]] = []
    for source in pipeline.sources:
        report, age = reports.get(source.source_id), ages.get(source.source_id)
        away = connection_away(source)
        rows.append(
            {
                "id": source.source_id,
                "name": source.name,
                "uri": getattr(source, "uri", source.name),
                "state": "connecting" if age is None else "reconnecting" if away else "running",
                "live": bool(source.live),
                "last_frame_age_s": None if age is None else round(age, 3),
                "frames": 0 if report is None else report.frames,
                "dropped": 0 if report is None else report.dropped,
                "damaged": getattr(source, "skipped", 0),
                "reconnects": getattr(source, "reconnects", 0),
                "error": away or (report.error if report is not None else None),
            }
        )
    return rows


def model_states(pipeline: Pipeline, health: Health) -> list[dict[str, object]]:
    """List the models, for programs: the state, version and counts of each."""
    counts = {report.name: report for report in pipeline.snapshot().models}
    rows: list[dict[str, object]] = []
    for state, model in zip(health.models, pipeline.models, strict=True):
        history = getattr(model, "history", None)
        report = counts.get(state.name)
        row: dict[str, object] = {
            "index": state.index,
            "name": state.name,
            "state": state.state,
            "reason": state.reason or None,
            "error": state.error or None,
            "unanswered_s": None if state.unanswered_s is None else round(state.unanswered_s, 3),
            "empty_s": None if state.empty_s is None else round(state.empty_s, 3),
            "inferred": 0 if report is None else report.inferred,
            "failed": 0 if report is None else report.failed,
            "passed": state.passed,
            "failures": state.failures,
            "restarts": state.restarts,
        }
        if history is not None:
            row["version"] = history.current.number
            row["file"] = history.shown(history.current.path)
            row["history"] = [
                {
                    "version": run.number,
                    "file": history.shown(run.path),
                    "sha256": run.sha256,
                    "since": round(run.since, 3),
                    "how": run.how,
                }
                for run in list(history.runs)
            ]
            row["refused"] = list(history.refused)
        rows.append(row)
    return rows


def pipeline_state(pipeline: Pipeline, view: LiveView) -> dict[str, object]:
    """Sources with their rates and counts, models, stages and notices so far."""
    report = pipeline.snapshot()
    rates, counts = view.rates(), view.counts()
    lost = {source.source_id: connection_away(source) for source in pipeline.sources}
    running = pipeline.state == "running"
    sources = []
    for source in report.sources:
        if source.state == "removed":
            continue
        number, reason = source.source_id, source.error or ""
        state: str = source.state
        if running and state == "stopped":
            state = "running"
            if why := lost.get(number):
                state, reason = "reconnecting" if source.frames else "connecting", why
        sources.append(
            {
                "id": number,
                "name": source.name,
                "state": state,
                "reason": reason,
                "fps": round(rates.get(number, 0.0), 1) if state == "running" else 0,
                "frames": source.frames,
                "dropped": source.dropped,
                "reconnects": getattr(source, "reconnects", 0),
                "counts": counts.get(number, {}),
                "crossed": report.crossed.get(number, {}),
            }
        )
    frames = max(1, report.frames)
    return {
        "state": pipeline.state,
        "seconds": round(report.seconds, 1),
        "frames": report.frames,
        "sources": sources,
        "models": [
            {"name": m.name, "inferred": m.inferred, "failed": m.failed} for m in report.models
        ],
        # milliseconds of each kind of work for one frame
        "stages": {kind: round(1000 * s / frames, 2) for kind, s in report.stages.items() if s},
        "notices": [n.to_json() for n in report.notices[-_MAX_NOTICES:]],
    }


def connection_away(source: Source) -> str:
    """The notice of a connection that is away now; empty if none is."""
    away = [
        f"{n:brief}" for n in list(getattr(source, "notices", ())) if n.code == "connection-away"
    ]
    return away[-1] if away else ""
