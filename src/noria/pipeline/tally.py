"""Sums over a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import fields

import numpy as np

from noria._core.notices import Notice
from noria.media import Source
from noria.meta import FrameMeta, Objects
from noria.pipeline.mux import Muxer
from noria.pipeline.outlet import Outlet
from noria.pipeline.report import ModelReport, RunReport
from noria.pipeline.stage import Stage, Step

# Kinds of work that every report has, in the order frames meet them; others come in between.
_FIRST = ("decode", "select", "preprocess", "infer", "parse", "cluster", "attach")
_LAST = ("draw", "write")


class Meter:
    """Counts of a model from now on: one that ran before has counted already."""

    def __init__(self, model: Stage) -> None:
        self.model = model
        self._before = self._read()
        self._results = dict(getattr(model, "results", {}))

    def _read(self) -> tuple[int, int, dict[str, float]]:
        times = self.model.times
        names = [f.name for f in fields(times) if f.name.endswith("_s")]
        seconds = {name.removesuffix("_s"): float(getattr(times, name)) for name in names}
        return self.model.inferred_items, self.model.failed_items, seconds

    def report(self) -> ModelReport:
        """Counts since this meter was made."""
        inferred, failed, seconds = self._read()
        before = self._before
        return ModelReport(
            self.model.name,
            getattr(self.model.config, "component_id", None),
            inferred - before[0],
            failed - before[1],
            {kind: value - before[2].get(kind, 0.0) for kind, value in seconds.items()},
            {k: n - self._results.get(k, 0) for k, n in getattr(self.model, "results", {}).items()},
        )


def count_objects(meta: FrameMeta, counts: Counter[str]) -> None:
    """Count a frame's objects by label.

    An object of class -1 is the whole frame, as a classifier saw it: it counts by its text.
    """
    objects = meta.objects
    if not len(objects):
        return
    components = sorted(set(objects.component_ids.tolist()))
    for component in components:
        ids = objects.class_ids
        if len(components) > 1:
            ids = ids[objects.component_ids == component]
        values, numbers = np.unique(ids, return_counts=True)
        names = objects.labels.get(component, ())
        for class_id, number in zip(values.tolist(), numbers.tolist(), strict=True):
            if class_id >= 0:
                name = names[class_id] if class_id < len(names) else f"class {class_id}"
                counts[name] += number
            else:
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
    report.frames = sum(s.frames for s in report.sources)
    report.dropped_frames = sum(s.dropped for s in report.sources)
    report.models = [m.report() for m in meters]
    report.failed_frames = report.models[0].failed if report.models else 0
    report.stages = _seconds(report, mux, steps, outlet)
    report.outputs = [
        # a video without frames is not written
        str(sink.path)
        for sink in outlet.sinks
        if getattr(sink, "kind", "") != "video" or sink.frames
    ]
    report.notices = [n for m in meters for n in m.model.notices]
    report.notices += [n for step in steps for n in step.notices]
    report.notices += [n for source in sources for n in source.notices]
    report.notices += outlet.notices
    for source in report.sources:
        if source.dropped:
            text = f"{source.dropped} frames of the live source were dropped: "
            text += "they came faster than they could be processed"
            report.notices.append(Notice("warning", text, where=source.name))
        if source.error and len(report.sources) > 1:
            what = source.error.removeprefix(f"{source.name}: ")
            text = f"failed after {source.frames} frames: {what}"
            report.notices.append(Notice("warning", text, where=source.name))


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
