"""Counts of a running pipeline in the text format of Prometheus (0.0.4)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from headrace.custom.guard.process import deaths

if TYPE_CHECKING:
    from headrace.pipeline import Pipeline, RunReport

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
Sample = tuple[Mapping[str, str], float]


def metrics_text(pipeline: Pipeline) -> str:
    """All metrics of a pipeline."""
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
        *_messages(report),
        *_histograms(pipeline),
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


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
    name = "headrace_stage_duration_seconds"
    text = "seconds that decoding took for a frame (of live sources with the waiting for it), "
    text += "and each stage for a batch"
    lines = [f"# HELP {name} {text}", f"# TYPE {name} histogram"]
    for stage, histogram in pipeline.durations.items():
        buckets, sum_s = histogram.read()
        label = f'stage="{_escaped(stage)}"'
        for bound, number in buckets:
            end = "+Inf" if bound == float("inf") else f"{bound:g}"
            lines.append(f'{name}_bucket{{{label},le="{end}"}} {number}')
        lines.append(f"{name}_sum{{{label}}} {_number(sum_s)}")
        lines.append(f"{name}_count{{{label}}} {buckets[-1][1]}")
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
