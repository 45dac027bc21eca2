"""Report of a run: counts, times, decisions."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Literal

from noria._core.notices import Notice

SourceState = Literal["ended", "failed", "stopped"]


@dataclass(slots=True)
class SourceReport:
    """The outcome of one source.

    Attributes:
        source_id: number of the source in the pipeline, as its frames carry it.
        name: what the user gave, without credentials.
        frames: frames read, those dropped later included.
        dropped: frames of a live source that came too fast.
        state: `ended` by itself; `failed` with `error`; `stopped` before its end, by `limit`,
            `stop`, or because another part of the pipeline failed.
        error: what it failed with, or None.
        reconnects: how many times a live source was opened again.
    """

    source_id: int
    name: str
    frames: int = 0
    dropped: int = 0
    state: SourceState = "stopped"
    error: str | None = None
    reconnects: int = 0

    def to_dict(self) -> dict[str, Any]:
        """The same as JSON has it."""
        return {
            "source_id": self.source_id,
            "name": self.name,
            "frames": self.frames,
            "dropped": self.dropped,
            "state": self.state,
            "error": self.error,
            "reconnects": self.reconnects,
        }


@dataclass(slots=True)
class ModelReport:
    """Counts and times of one model.

    Attributes:
        name: name of the stage.
        component_id: its `gie-unique-id`, or None.
        inferred: items that went through the engine: frames, objects or regions.
        failed: items whose outputs could not be parsed.
        seconds: time spent, by kind of work (`preprocess`, `infer`, `parse`, …).
        results: what came out of each step: boxes `parsed`, left after thresholds and clustering
            (`clustered`) and after filters (`attached`); items `labelled`; `class_maps`. Items
            whose batch was lost: `crashed` (a plugin ended its worker process), `no_memory`.
    """

    name: str
    component_id: int | None = None
    inferred: int = 0
    failed: int = 0
    seconds: dict[str, float] = field(default_factory=dict)
    results: dict[str, int] = field(default_factory=dict)

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
            "inferred": self.inferred,
            "failed": self.failed,
            "results": dict(self.results),
            "seconds": _rounded(self.seconds),
        }


@dataclass(slots=True, repr=False)
class RunReport:
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
        sources: one entry per source, in their order.
        models: one entry per model, in their order.
        outputs: where results were written.
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
    sources: list[SourceReport] = field(default_factory=list)
    models: list[ModelReport] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    notices: list[Notice] = field(default_factory=list)
    interrupted: bool = False

    @property
    def fps(self) -> float:
        """Frames per second, of all sources together."""
        return self.frames / self.seconds if self.seconds > 0 else 0.0

    def to_dict(self) -> dict[str, Any]:
        """The report as plain data, the `--json` form of `noria run`; see docs/formats.md."""
        return {
            "source": self.source,
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
            "sources": [s.to_dict() for s in self.sources],
            "models": [m.to_dict() for m in self.models],
            "outputs": self.outputs,
            "notices": [
                {"level": n.level, "message": n.message, "where": n.where} for n in self.notices
            ],
            "interrupted": self.interrupted,
        }

    def __repr__(self) -> str:
        parts = [f"{self.frames} frames of {self.source}", f"{self.fps:.1f} fps"]
        parts += [f"{sum(self.objects.values())} objects"] if self.objects else []
        failed = sum(s.state == "failed" for s in self.sources)
        parts += [f"{failed} sources failed"] if failed else []
        parts += ["interrupted"] if self.interrupted else []
        return f"RunReport({', '.join(parts)})"

    def _repr_html_(self) -> str:
        """Sources, models, objects and notices, for notebooks."""
        from noria.pipeline.notebook import report_html

        return report_html(self)


def _rounded(seconds: dict[str, float]) -> dict[str, float]:
    return {name: round(value, 3) for name, value in seconds.items()}
