"""Counts of a running pipeline in the text format of Prometheus (0.0.4)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from time import time
from typing import TYPE_CHECKING

from headrace.custom.guard.process import deaths
from headrace.live.state import connection_away

if TYPE_CHECKING:
    from headrace.media.sinks.base import OutputState
    from headrace.pipeline import Pipeline, RunReport
    from headrace.pipeline.durations import Durations
    from headrace.pipeline.health import Health

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
Sample = tuple[Mapping[str, str], float]


def metrics_text(pipeline: Pipeline, health: Health | None = None) -> str:
    """All metrics of a pipeline; `health` is that of a service."""
    report = pipeline.snapshot()
    names = [({"source": s.name, "id": str(s.source_id)}, s) for s in report.sources]
    runs = pipeline.state == "running"
    over = ("ended", "failed", "removed")
    lines = [
        *_metric("headrace_up", "gauge", "1 while the pipeline runs", [({}, float(runs))]),
        *_metric(
            "headrace_frames_total", "counter", "frames read", ((n, s.frames) for n, s in names)
        ),
        *_metric(
            "headrace_dropped_frames_total", "counter", "frames of live sources that came too fast",
            ((n, s.dropped) for n, s in names),
        ),
        *_metric(
            "headrace_reconnects_total", "counter", "connections that were lost and came back",
            ((n, s.reconnects) for n, s in names),
        ),
        *_metric(
            "headrace_source_up", "gauge", "1 for a source that is not over",
            ((n, s.state not in over) for n, s in names),
        ),
        *_metric(
            "headrace_objects_total", "counter", "objects found in frames, by label",
            (({"label": label}, count) for label, count in report.objects.items()),
        ),
        *_metric(
            "headrace_inferred_total", "counter", "items that a model ran on",
            (({"model": m.name}, m.inferred) for m in report.models),
        ),
        *_metric(
            "headrace_failed_total", "counter", "items whose outputs could not be parsed",
            (({"model": m.name}, m.failed) for m in report.models),
        ),
        *_metric(
            "headrace_stage_seconds_total", "counter", "seconds spent in each kind of work",
            (({"stage": kind}, seconds) for kind, seconds in report.stages.items()),
        ),
        *_metric(
            "headrace_crossings_total", "counter", "objects that crossed a line",
            (
                ({"id": str(source), "line": line}, number)
                for source, counts in report.crossed.items()
                for line, number in counts.items()
            ),
        ),
        *_metric(
            "headrace_worker_deaths_total", "counter", "workers of guarded libraries that died",
            (({"library": name}, number) for name, number in deaths().items()),
        ),
        *_sources(pipeline, report),
        *_models(pipeline, health),
        *_outputs(pipeline),
        *_messages(report),
        *_histograms(pipeline),
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def _sources(pipeline: Pipeline, report: RunReport) -> list[str]:
    """Connections, ages and drops of the sources that are not over."""
    names = {s.source_id: {"source": s.name, "id": str(s.source_id)} for s in report.sources}
    ages = pipeline.frame_ages()
    now = time()
    open_ids = [number for number in ages if number in names]
    away = {s.source_id for s in pipeline.sources if connection_away(s)}
    drops = [(names[s.source_id] | {"cause": "too-fast"}, s.dropped) for s in report.sources]
    drops += [
        (names[s.source_id] | {"cause": "damaged"}, getattr(s, "skipped", 0))
        for s in pipeline.sources
        if s.source_id in names
    ]
    return [
        *_metric(
            "headrace_source_connected", "gauge", "0 while a source is away",
            ((names[i], i not in away and ages[i] is not None) for i in open_ids),
        ),
        *_metric(
            "headrace_source_last_frame_timestamp_seconds", "gauge",
            "when the latest frame of a source came, in seconds since 1970",
            ((names[i], round(now - age, 3)) for i in open_ids if (age := ages[i]) is not None),
        ),
        *_metric(
            "headrace_frames_lost_total", "counter", "frames that no model saw, by cause", drops
        ),
    ]  # fmt: skip


def _models(pipeline: Pipeline, health: Health | None) -> list[str]:
    """Readiness of the models, and their counts by version."""
    versions: list[tuple[dict[str, str], tuple[int, int]]] = []
    running: list[Sample] = []
    updates: list[Sample] = []
    for model in pipeline.models:
        history = getattr(model, "history", None)
        if history is None:
            continue
        label = {"model": str(model.name)}
        for number, counts in history.counts(model.record).items():
            versions.append((label | {"version": str(number)}, counts))
        current = history.current
        more = {"version": str(current.number), "file": current.path.name, "sha256": current.sha256}
        running.append((label | more, 1))
        updates.append((label | {"result": "done"}, history.changes))
        updates.append((label | {"result": "refused"}, history.refusals))
    lines = [
        *_metric(
            "headrace_model_inferred_total", "counter", "items that a version of a model ran on",
            ((label, counts[0]) for label, counts in versions),
        ),
        *_metric(
            "headrace_model_failed_total", "counter",
            "items of a version of a model whose outputs could not be parsed",
            ((label, counts[1]) for label, counts in versions),
        ),
        *_metric("headrace_model_info", "gauge", "the version of a model that runs", running),
        *_metric(
            "headrace_model_updates_total", "counter",
            "changes of a model to another version, and those that were refused", updates,
        ),
    ]  # fmt: skip
    if health is None:
        return lines
    states = [({"model": m.name}, m) for m in health.models]
    return [
        *lines,
        *_metric("headrace_ready", "gauge", "1 while /readyz says 200", [({}, not health.reasons)]),
        *_metric(
            "headrace_model_ready", "gauge", "0 for a model that gives no results",
            ((label, m.state != "not-ready") for label, m in states),
        ),
        *_metric(
            "headrace_model_unanswered_seconds", "gauge",
            "how long items have waited for an answer of a model",
            ((label, round(m.unanswered_s or 0.0, 3)) for label, m in states),
        ),
        *_metric(
            "headrace_model_passed_frames_total", "counter",
            "frames that went on without the results of a model",
            ((label, m.passed) for label, m in states),
        ),
        *_metric(
            "headrace_model_failures_total", "counter", "batches that failed in a model",
            ((label, m.failures) for label, m in states),
        ),
        *_metric(
            "headrace_model_restarts_total", "counter", "times that a model was opened anew",
            ((label, m.restarts) for label, m in states),
        ),
    ]  # fmt: skip


def _outputs(pipeline: Pipeline) -> list[str]:
    """States and losses of the outputs."""
    states: list[tuple[dict[str, str], OutputState]] = [
        ({"output": state.output}, state) for state in pipeline.outputs
    ]
    return [
        *_metric(
            "headrace_output_up", "gauge", "0 while an output is not written",
            ((label, s.up) for label, s in states),
        ),
        *_metric(
            "headrace_output_frames_total", "counter", "frames that an output took",
            ((label, s.frames) for label, s in states),
        ),
        *_metric(
            "headrace_output_failures_total", "counter", "times that writing an output failed",
            ((label, s.failures) for label, s in states),
        ),
        *_metric(
            "headrace_output_dropped_frames_total", "counter", "frames that an output did not take",
            ((label, s.dropped) for label, s in states),
        ),
    ]  # fmt: skip


def _messages(report: RunReport) -> list[str]:
    """Counts of messages, where an output sends some."""
    names = [({"output": d.output}, d) for d in report.messages]
    if not names:
        return []
    counts = (
        ("sent_total", "counter", "messages that the broker acknowledged", "sent"),
        ("waiting", "gauge", "messages that wait in the spool", "waiting"),
        ("refused_total", "counter", "messages that the broker refuses for their content",
         "refused"),
        ("lost_total", "counter", "messages that no broker will get", "lost"),
        ("failures_total", "counter", "attempts to send that failed", "failures"),
        ("away", "gauge", "1 while the latest attempt failed", "away"),
    )  # fmt: skip
    lines = [
        line
        for name, kind, text, field in counts
        for line in _metric(
            f"headrace_messages_{name}", kind, text,
            ((label, float(getattr(d, field))) for label, d in names),
        )
    ]  # fmt: skip
    errors = [({**label, "error": d.last_error}, 1.0) for label, d in names if d.last_error]
    text = "the reason of the latest failure to send"
    return lines + _metric("headrace_messages_last_error", "gauge", text, errors)


def _histograms(pipeline: Pipeline) -> list[str]:
    text = "seconds that decoding took for a frame (of live sources with the waiting for it), "
    text += "and each stage for a batch"
    stages = {f'stage="{_escaped(stage)}"': d for stage, d in pipeline.durations.items()}
    latency = "seconds from the reading of the oldest frame of a batch to the end of its writing"
    names = {s.source_id: s.name for s in pipeline.sources}
    sources = {
        f'source="{_escaped(names[number])}",id="{number}"': durations
        for number, durations in pipeline.source_latencies.items()
        if number in names
    }
    one = "seconds from the arrival of a frame's packet to its metadata, of each live source"
    return [
        *_histogram("headrace_stage_duration_seconds", text, stages),
        *_histogram("headrace_latency_seconds", latency, {"": pipeline.latency}),
        *_histogram("headrace_source_latency_seconds", one, sources),
    ]


def _histogram(name: str, text: str, rows: Mapping[str, Durations]) -> list[str]:
    lines = [f"# HELP {name} {text}", f"# TYPE {name} histogram"]
    for label, histogram in rows.items():
        buckets, sum_s = histogram.read()
        for bound, number in buckets:
            end = "+Inf" if bound == float("inf") else f"{bound:g}"
            inner = f'{label},le="{end}"' if label else f'le="{end}"'
            lines.append(f"{name}_bucket{{{inner}}} {number}")
        braces = f"{{{label}}}" if label else ""
        lines.append(f"{name}_sum{braces} {_number(sum_s)}")
        lines.append(f"{name}_count{braces} {buckets[-1][1]}")
    return lines


def _metric(name: str, kind: str, text: str, samples: Iterable[Sample]) -> list[str]:
    lines = [f"# HELP {name} {text}", f"# TYPE {name} {kind}"]
    for labels, value in samples:
        inner = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
        lines.append(f"{name}{{{inner}}} {_number(value)}" if inner else f"{name} {_number(value)}")
    return lines


def _number(value: float) -> str:
    """A value in full: rounded counts would stand still, and then jump."""
    return repr(int(value) if value == int(value) else float(value))


def _escaped(text: str) -> str:
    """A label's value: backslash, quote and line feed are written with a backslash."""
    text = text.encode(errors="replace").decode()
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
