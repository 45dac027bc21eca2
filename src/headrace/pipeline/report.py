"""Report of a run: counts, times, decisions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, fields
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from msgspec import field

from headrace._core import _native
from headrace._core.errors import EngineError, HeadraceError, ParserError, PluginError
from headrace._core.findings import Finding
from headrace._core.plain_record import PlainRecord
from headrace._core.text import counted
from headrace.infer.losses import Counts
from headrace.infer.parsers.labels import class_name
from headrace.media import Source
from headrace.media.sinks.base import Delivery
from headrace.meta import FrameMeta, Objects

if TYPE_CHECKING:
    from headrace.pipeline.mux import Muxer
    from headrace.pipeline.outlet import Outlet
    from headrace.pipeline.stage import Stage, Step

SourceState = Literal["ended", "failed", "stopped", "removed"]


_NAMED = ("messages", "publish")  # outputs that are no files


class SourceReport(PlainRecord):
    """The outcome of one source.

    Attributes:
        source_id: number of the source in the pipeline, as its frames carry it.
        name: what the user gave, without credentials.
        frames: frames read, those dropped later included.
        dropped: frames of a live source that came too fast.
        state: `ended` by itself; `removed` on request; `failed` with `error`; `stopped` before its
            end, by `limit`, `stop`, or because another part of the pipeline failed.
        error: what it failed with, or None.
        reconnects: how many times a live source was opened again.
        decoder: `cpu` or `cuda`, where its images were decoded; empty for what is no video.
        latency_s: of a live source, from the arrival of a frame's packet to its metadata, see
            `Durations.to_dict`; else None.
    """

    source_id: int
    name: str
    frames: int = 0
    dropped: int = 0
    state: SourceState = "stopped"
    error: str | None = None
    reconnects: int = 0
    decoder: str = ""
    latency_s: dict[str, Any] | None = None


class ModelReport(PlainRecord):
    """Counts and times of one model.

    Attributes:
        name: name of the stage.
        component_id: its `gie-unique-id`, or None.
        profile: whose rules it ran by, `nvinfer` or `modern`; None of a stage without a config.
        inferred: items that went through the engine: frames, objects or regions.
        failed: items whose outputs could not be parsed.
        seconds: time spent, by kind of work (`preprocess`, `infer`, `parse`, …).
        results: what came out of each step: boxes `parsed`, left after thresholds and clustering
            (`clustered`) and after filters (`attached`); boxes `edge_dropped` and `edge_shifted`
            by the rules of `nvinfer` because they reach beyond the frame; items `labelled`;
            `class_maps`. Items whose batch was lost: `crashed` (a plugin ended its worker process),
            `no_memory`.
        skipped: objects that a secondary model left out: key -> class name -> number.
        dropped: boxes, or a classifier's items, that were left out: filter -> class name -> number.
        reasons: why nothing came out, or less than half; a line each, cause and key first.
        device: where its engine ran, `cpu` or `cuda:N`; empty of a stage without an engine.
    """

    name: str
    component_id: int | None = None
    inferred: int = 0
    failed: int = 0
    seconds: dict[str, float] = field(default_factory=dict)
    results: dict[str, int] = field(default_factory=dict)
    profile: str | None = None
    skipped: Counts = field(default_factory=dict)
    dropped: Counts = field(default_factory=dict)
    reasons: list[str] = field(default_factory=list)
    device: str = ""

    def __str__(self) -> str:
        parts = [f"{self.inferred} inferred"]
        if lost := self.results.get("crashed", 0) + self.results.get("no_memory", 0):
            parts.append(f"{lost} lost")
        if (parsed := self.results.get("parsed")) is not None:
            parts.append(f"{parsed} boxes parsed")
            parts.append(f"{self.results['clustered']} left by thresholds and clustering")
            parts.append(f"{self.results['attached']} by filters")
        if (labelled := self.results.get("labelled")) is not None:
            parts.append(f"{labelled} labelled")
        if (maps := self.results.get("class_maps")) is not None:
            parts.append(f"{maps} class maps")
        return f"{self.name}: {', '.join(parts)}"

    def to_dict(self) -> dict[str, Any]:
        """The same as JSON has it."""
        return {
            "name": self.name,
            "component_id": self.component_id,
            "profile": self.profile,
            "device": self.device,
            "inferred": self.inferred,
            "failed": self.failed,
            "results": dict(self.results),
            "skipped": self.skipped,
            "dropped": self.dropped,
            "reasons": self.reasons,
            "seconds": _rounded(self.seconds),
        }


class RunReport(PlainRecord):
    """The outcome of one pipeline run.

    Attributes:
        source: name of the source; of several, how many there are.
        frames: frames read, of all sources; `inferred` of them went through a model
            (`interval` skips some).
        failed_frames: items of the first model whose outputs could not be parsed.
        dropped_frames: frames of live sources that came too fast.
        objects: objects found, per label; of frames that were classified as a whole, the frames.
        seconds: wall-clock time from the first frame asked for to the last sink closed.
        first_result_s: wall-clock time until the first frame's metadata was ready.
        stages: seconds spent per kind of work, over all sources and models; stages run at the same
            time, so they may add to more. `models` has them for each model.
        crossed: crossings of lines, source id -> line -> number; see `headrace.pipeline.analytics`.
        sources: one entry per source, in their order.
        models: one entry per model, in their order.
        outputs: where results were written.
        messages: what became of the messages of each output that sends some.
        interrupted: the run was stopped, by `stop` or by leaving the loop over it.
    """

    source: str
    frames: int = 0
    inferred: int = 0
    failed_frames: int = 0
    dropped_frames: int = 0
    objects: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0
    first_result_s: float | None = None
    stages: dict[str, float] = field(default_factory=dict)
    crossed: dict[int, dict[str, int]] = field(default_factory=dict)
    sources: list[SourceReport] = field(default_factory=list)
    models: list[ModelReport] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    messages: list[Delivery] = field(default_factory=list)
    notices: list[Finding] = field(default_factory=list)
    interrupted: bool = False

    @property
    def fps(self) -> float:
        """Frames per second, of all sources together; without those that a live source dropped."""
        used = self.frames - self.dropped_frames
        return used / self.seconds if self.seconds > 0 else 0.0

    @property
    def profile(self) -> str:
        """The profiles of the models, `nvinfer` or `modern` or both in words; "" of no model."""
        return " and ".join(dict.fromkeys(m.profile for m in self.models if m.profile))

    def to_dict(self) -> dict[str, Any]:
        """The report as plain data, the `--json` form of `headrace run`; see docs/formats.md."""
        return {
            "source": self.source,
            "profile": self.profile,
            "frames": self.frames,
            "inferred": self.inferred,
            "failed_frames": self.failed_frames,
            "dropped_frames": self.dropped_frames,
            "objects": dict(self.objects.most_common()),
            "seconds": round(self.seconds, 3),
            "fps": round(self.fps, 2),
            "first_result_s": None
            if self.first_result_s is None
            else round(self.first_result_s, 3),
            "stages_s": _rounded(self.stages),
            "crossed": {str(source): counts for source, counts in self.crossed.items()},
            "sources": [asdict(s) for s in self.sources],
            "models": [m.to_dict() for m in self.models],
            "outputs": self.outputs,
            "messages": [asdict(delivery) for delivery in self.messages],
            "notices": [n.to_json() for n in self.notices],
            "interrupted": self.interrupted,
        }

    def __repr__(self) -> str:
        parts = [f"{counted(self.frames, 'frame')} of {self.source}", f"{self.fps:.1f} fps"]
        parts += [f"{sum(self.objects.values())} objects"] if self.objects else []
        failed = sum(s.state == "failed" for s in self.sources)
        parts += [f"{failed} sources failed"] if failed else []
        parts += [f"profile {self.profile}"] if self.profile else []
        parts += ["interrupted"] if self.interrupted else []
        return f"RunReport({', '.join(parts)})"

    def _repr_html_(self) -> str:
        """Sources, models, objects and notices, for notebooks."""
        from headrace._core.html import facts, notice_list, paragraph, table

        sources = table(
            ("source", "frames", "dropped", "state", "error"),
            ((s.name, s.frames, s.dropped or "", s.state, s.error or "") for s in self.sources),
        )
        models = table(
            ("model", "profile", "inferred", "failed", "infer s"),
            (
                (
                    m.name,
                    m.profile or "",
                    m.inferred,
                    m.failed or "",
                    f"{m.seconds.get('infer', 0.0):.2f}",
                )
                for m in self.models
            ),
        )
        why = facts((m.name, reason) for m in self.models for reason in m.reasons)
        objects = facts(
            (
                ("found", ", ".join(f"{n} {name}" for name, n in self.objects.most_common(12))),
                ("written", ", ".join(self.outputs)),
            )
        )
        return paragraph(repr(self)) + sources + models + why + objects + notice_list(self.notices)


def _rounded(seconds: dict[str, float]) -> dict[str, float]:
    return {name: round(value, 3) for name, value in seconds.items()}


# Kinds of work that every report has, in the order frames meet them; others come in between.
_FIRST = ("decode", "select", "preprocess", "infer", "parse", "cluster", "attach")
_LAST = ("draw", "write")


class Meter:
    """Counts of a model from now on: one that ran before has counted already."""

    def __init__(self, model: Stage) -> None:
        self.model = model
        self._before = self._read()
        self._results = dict(model.results)

    def _read(self) -> tuple[int, int, dict[str, float]]:
        times = self.model.times
        names = [f.name for f in fields(times) if f.name.endswith("_s")]
        seconds = {name.removesuffix("_s"): float(getattr(times, name)) for name in names}
        return self.model.inferred_items, self.model.failed_items, seconds

    def report(self) -> ModelReport:
        """Counts since this meter was made."""
        inferred, failed, seconds = self._read()
        before = self._before
        losses = self.model.losses
        return ModelReport(
            self.model.name,
            self.model.config.component_id,
            inferred - before[0],
            failed - before[1],
            {kind: value - before[2].get(kind, 0.0) for kind, value in seconds.items()},
            {k: n - self._results.get(k, 0) for k, n in self.model.results.items()},
            self.model.config.profile,
            losses.skipped,
            losses.dropped,
            losses.reasons,
            self.model.session.device,
        )


def count_objects(metas: Iterable[FrameMeta], counts: Counter[str]) -> None:
    """Count the objects of frames by label.

    An object of class -1 is the whole frame, as a classifier saw it: it counts by its text.
    """
    filled = (meta.objects for meta in metas if len(meta.objects))
    for labels, group in groupby(filled, key=attrgetter("labels")):
        some = list(group)
        components, class_ids = (
            np.concatenate([getattr(objects, column) for objects in some]).astype(np.int32)
            for column in ("component_ids", "class_ids")
        )
        for component, class_id, number in _native.count_pairs(components, class_ids):
            if class_id >= 0:
                counts[class_name(labels.get(component, ()), class_id)] += number
                continue
            for objects in some:
                _count_texts(objects, component, class_id, counts)


def _count_texts(objects: Objects, component: int, class_id: int, counts: Counter[str]) -> None:
    chosen = (objects.component_ids == component) & (objects.class_ids == class_id)
    for i in np.flatnonzero(chosen).tolist():
        if text := objects.display_text(i).strip():
            counts[text] += 1


def fill_report(
    report: RunReport,
    sources: Sequence[Source],
    mux: Muxer,
    meters: Sequence[Meter],
    steps: Sequence[Step],
    outlet: Outlet,
) -> None:
    """Complete a report with the counts and notices of every part of the pipeline."""
    report.sources = mux.reports
    report.frames, report.dropped_frames = mux.frames
    report.models = [m.report() for m in meters]
    report.failed_frames = report.models[0].failed if report.models else 0
    crossings = (item for step in steps for item in step.crossings.items())
    report.crossed = {source: dict(counts) for source, counts in crossings}
    report.stages = _seconds(report, mux, steps, outlet)
    report.outputs = [
        # a video without frames is not written
        sink.name if sink.kind in _NAMED else str(sink.path)
        for sink in outlet.sinks
        if sink.kind != "view" and (sink.kind != "video" or sink.frames)
    ]
    report.messages = outlet.deliveries
    report.notices = [n for m in meters for n in m.model.notices]
    report.notices += [n for model in report.models if (n := _edge_notice(model))]
    report.notices += [n for step in steps for n in step.notices]
    report.notices += [n for source in sources for n in source.notices]
    report.notices += outlet.notices
    for source in report.sources:
        if (notice := drop_notice(source)) is not None:
            report.notices.append(notice)
        if source.error and len(report.sources) > 1:
            what = source.error.removeprefix(f"{source.name}: ")
            text = f"failed after {counted(source.frames, 'frame')}: {what}"
            report.notices.append(Finding("source-failed", "warning", text, source.name))


def drop_notice(source: SourceReport) -> Finding | None:
    """The notice about frames of a live source that came too fast; None where none were dropped."""
    if not source.dropped:
        return None
    text = f"frames of the live source that were dropped: {source.dropped}; "
    text += "they came faster than they could be processed"
    return Finding("frames-dropped", "warning", text, source.name)


def _edge_notice(model: ModelReport) -> Finding | None:
    """The effects of the rules of `nvinfer` on boxes at the frame's edges."""
    counts = (("dropped", "edge_dropped"), ("moved", "edge_shifted"))
    done = [f"{n} {verb}" for verb, key in counts if (n := model.results.get(key, 0))]
    if not done or model.profile != "nvinfer":
        return None
    text = f"boxes that reach beyond the frame: {' and '.join(done)}, as the original does;"
    return Finding(
        "boxes-at-edge", "info", f"{text} profile=modern cuts them at its edges", model.name
    )


def _seconds(
    report: RunReport, mux: Muxer, steps: Sequence[Step], outlet: Outlet
) -> dict[str, float]:
    spent = dict.fromkeys(_FIRST, 0.0)
    spent["decode"] = mux.decode_s
    for model in report.models:
        for kind, seconds in model.seconds.items():
            spent[kind] = spent.get(kind, 0.0) + seconds
    for step in steps:
        spent[step.kind] = spent.get(step.kind, 0.0) + step.seconds
    if outlet.tile_s:
        spent["tile"] = outlet.tile_s
    spent |= {"draw": outlet.draw_s, "write": outlet.write_s}
    return spent


def without_results(report: RunReport) -> HeadraceError | None:
    """The error of a run in which a model had no results at all.

    Either none of its outputs could be parsed, or every batch was lost.
    """
    for model in report.models:
        if model.inferred and model.failed == model.inferred:
            one = model.inferred == 1
            what = "the only output" if one else f"none of the {model.inferred} outputs"
            return ParserError(
                f"{what} of {model.name} could {'not ' * one}be parsed",
                fix="the warning above says why; headrace show CONFIG lists what the model outputs",
            )
        crashed, starved = (model.results.get(k, 0) for k in ("crashed", "no_memory"))
        if crashed + starved and not model.inferred:
            kind, why = (
                (PluginError, "a plugin failed in each batch")
                if crashed
                else (EngineError, "there was no memory for the outputs of any batch")
            )
            return kind(
                f"none of the {crashed + starved} item(s) of {model.name} was inferred: {why}",
                fix="the warning above says more",
            )
    return None
