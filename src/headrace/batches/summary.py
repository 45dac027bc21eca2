"""The results of a batch in figures: totals, classes over time, slow and failed inputs."""

from __future__ import annotations

import heapq
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from headrace._core.lazy import import_extra
from headrace.batches.bucket import results_place
from headrace.batches.identity import read_run
from headrace.batches.ledger import UnitRecord
from headrace.batches.manifest import unit_records

_BINS = 60
_MOST = 20
_MOST_CLASSES = 200
_MOST_TIMES = 6  # classes over time: a chart's colours


@dataclass(slots=True)
class ClassOverTime:
    """Objects of one class over the time of the videos.

    Attributes:
        label: name of the class.
        counts: (60,) int64, objects in each sixtieth of the longest video, of all videos together.
    """

    label: str
    counts: npt.NDArray[np.int64]


@dataclass(slots=True)
class BatchSummary:
    """A batch as it stands.

    Attributes:
        path: its folder, or the URL of its bucket.
        root, system: where tables are: a path, and the file system it belongs to; None is this
            machine's.
        run: id of the run.
        parts: name -> hash or value of everything that made the results.
        units: outcome -> number of units.
        inputs: number of inputs.
        frames, objects: of the units done.
        work_s: seconds of all units together, which ran side by side.
        size_bytes: of the inputs done.
        classes: objects by label, the most frequent first; at most 200.
        over_time: of the most frequent classes.
        longest_s: time of the last object of all videos, in seconds.
        slowest: done, those that took most time for each frame first.
        failed: with their errors.
        warned: done, with warnings.
        richest: done, those with most objects for each frame first.
    """

    path: Path | str
    root: str
    system: Any
    run: str
    parts: dict[str, str]
    units: Counter[str] = field(default_factory=Counter)
    inputs: int = 0
    frames: int = 0
    objects: int = 0
    work_s: float = 0.0
    size_bytes: int = 0
    classes: list[tuple[str, int]] = field(default_factory=list)
    over_time: list[ClassOverTime] = field(default_factory=list)
    longest_s: float = 0.0
    slowest: list[UnitRecord] = field(default_factory=list)
    failed: list[UnitRecord] = field(default_factory=list)
    warned: list[UnitRecord] = field(default_factory=list)
    richest: list[UnitRecord] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """The figures as plain data."""
        return {
            "folder": str(self.path),
            "run": self.run,
            "units": dict(self.units),
            "inputs": self.inputs,
            "frames": self.frames,
            "objects": self.objects,
            "work_s": round(self.work_s, 3),
            "size_bytes": self.size_bytes,
            "classes": dict(self.classes),
            "slowest": [
                {"input": r.input, "seconds": r.seconds, "frames": r.frames} for r in self.slowest
            ],
            "failed": [{"input": r.input, "error": r.error} for r in self.failed],
        }


def summarised(out: str | Path) -> BatchSummary:
    """Read ledger and tables of a batch; it may still be running.

    Args:
        out: its folder, or the URL of its bucket.

    Raises:
        HeadraceError: there is no batch in the folder, or its ledger is damaged.
        MissingExtraError: pyarrow is not installed.
    """
    with results_place(out) as (folder, bucket):
        run = read_run(folder, out)
        summary = BatchSummary(folder, str(folder), None, run["run"], run["parts"])
        if bucket is not None:
            summary.path, summary.root, summary.system = bucket.url, bucket.path, bucket.system
        _count_units(summary, folder)
    _count_classes(summary)
    return summary


def _count_units(summary: BatchSummary, folder: Path) -> None:
    names: set[int] = set()
    done: list[UnitRecord] = []
    for record in unit_records(folder):
        summary.units[record.outcome] += 1
        if record.first is None or hash(record.input) not in names:
            summary.size_bytes += record.size_bytes
        names.add(hash(record.input))
        if record.outcome == "failed" and len(summary.failed) < _MOST:
            summary.failed.append(record)
        if record.outcome != "done":
            continue
        done.append(record)
        summary.frames += record.frames
        summary.objects += record.objects
        summary.work_s += record.seconds
        if record.warnings and len(summary.warned) < _MOST:
            summary.warned.append(record)
    summary.inputs = len(names)
    timed = [r for r in done if r.frames]
    summary.slowest = heapq.nlargest(_MOST, timed, key=lambda r: r.seconds / r.frames)
    summary.richest = heapq.nlargest(_MOST, timed, key=lambda r: r.objects / r.frames)


def _count_classes(summary: BatchSummary) -> None:
    """Count labels in two passes over the tables: the first finds the classes worth a line."""
    ds, pc = import_extra("pyarrow.dataset", "arrow"), import_extra("pyarrow.compute", "arrow")
    if not summary.objects:
        return
    tables = ds.dataset(
        f"{summary.root}/objects", format="parquet", partitioning="hive", filesystem=summary.system
    )
    counts: Counter[str] = Counter()
    latest = 0
    if "label" not in tables.schema.names:
        return
    for batch in tables.to_batches(columns=["label", "pts_ns"]):
        if not batch.num_rows:
            continue
        latest = max(latest, pc.max(batch["pts_ns"]).as_py())
        for item in pc.value_counts(batch["label"]).to_pylist():
            counts[item["values"]] += item["counts"]
    summary.classes = counts.most_common(_MOST_CLASSES)
    summary.longest_s = latest / 1e9
    shown = [label for label, _ in summary.classes[:_MOST_TIMES]]
    if not shown or latest <= 0:
        return
    bins = {label: np.zeros(_BINS, np.int64) for label in shown}
    for batch in tables.to_batches(columns=["label", "pts_ns"]):
        for label in shown:
            times = batch["pts_ns"].filter(pc.equal(batch["label"], label)).to_numpy()
            indices = np.minimum(times * _BINS // (latest + 1), _BINS - 1).clip(0)
            bins[label] += np.bincount(indices, minlength=_BINS)
    summary.over_time = [ClassOverTime(label, bins[label]) for label in shown]
