"""The state of a running pipeline as the page shows it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headrace.live.view import LiveView
    from headrace.pipeline import Pipeline

_MAX_NOTICES = 50


def pipeline_state(pipeline: Pipeline, view: LiveView) -> dict[str, object]:
    """Sources with their rates and counts, models, stages and notices so far."""
    report = pipeline.snapshot()
    rates, counts = view.rates(), view.counts()
    lost = {source.source_id: _lost(source.notices) for source in pipeline.sources}
    running = pipeline.state == "running"
    sources = []
    for source in report.sources:
        number, reason = source.source_id, source.error or ""
        state: str = source.state
        if running and state == "stopped":
            state = "running"
            if why := lost.get(number):
                state, reason = "reconnecting", why
        sources.append(
            {
                "id": number,
                "name": source.name,
                "state": state,
                "reason": reason,
                "fps": round(rates.get(number, 0.0), 1) if state == "running" else 0,
                "frames": source.frames,
                "dropped": source.dropped,
                "reconnects": source.reconnects,
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


def _lost(notices: Any) -> str:
    """The notice of a connection that is away now; empty if none is."""
    away = [f"{n:brief}" for n in list(notices) if n.code == "connection-away"]
    return away[-1] if away else ""
