"""What a run did: counts, times, decisions."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from noria.notices import Notice

__all__ = ["RunReport"]


@dataclass(slots=True)
class RunReport:
    """The outcome of one pipeline run.

    Attributes:
        frames: frames read; `inferred` of them went through the model (`interval` skips some).
        failed_frames: frames whose outputs the parser could not read.
        dropped_frames: frames of a live source that came too fast.
        objects: objects found, per label.
        seconds: wall-clock time from the first frame asked for to the last sink closed.
        first_result_s: wall-clock time until the first frame's metadata was ready.
        stages: seconds spent per stage; stages run at the same time, so they may add to more.
        outputs: where results were written.
        interrupted: the run was stopped before the source ended.
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
    outputs: list[str] = field(default_factory=list)
    notices: list[Notice] = field(default_factory=list)
    interrupted: bool = False

    @property
    def fps(self) -> float:
        return self.frames / self.seconds if self.seconds > 0 else 0.0

    def to_dict(self) -> dict[str, Any]:
        """The report as plain data, the `--json` form of `noria run`."""
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
            "stages_s": {k: round(v, 3) for k, v in self.stages.items()},
            "outputs": self.outputs,
            "notices": [
                {"level": n.level, "message": n.message, "where": n.where} for n in self.notices
            ],
            "interrupted": self.interrupted,
        }
