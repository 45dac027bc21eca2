"""A whole calibration: the scales of a model, and the layers that INT8 costs too much."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from headrace._core.errors import HeadraceError
from headrace._core.findings import Finding
from headrace.diagnose.calibrate.scales import CalibrationReport, calibrate
from headrace.diagnose.compare.int8_choice import ChosenInt8, choose_int8
from headrace.diagnose.compare.sensitivity import SensitivityReport, sensitivity
from headrace.engine.precision.cache import DEFAULT_HEADER, CalibrationTable
from headrace.engine.precision.choice import choice_path

if TYPE_CHECKING:
    from headrace.config import ModelConfig
    from headrace.engine.precision.histogram import Method

Goal = Literal["scales", "choice", "sensitivity"]
"""The table alone; with the layers that stay FP32; or with a ranking of all layers."""


@dataclass(slots=True)
class Calibrated:
    """Outcome of a calibration.

    Attributes:
        table: the scales.
        report: of the search for them; None where the table was there.
        choice: the layers that stay FP32, and the agreement; None where they were not chosen.
        ranking: of the layers; None where it was not asked for.
        notices: decisions of all three.
    """

    table: CalibrationTable
    report: CalibrationReport | None = None
    choice: ChosenInt8 | None = None
    ranking: SensitivityReport | None = None
    notices: list[Finding] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class Calibrating:
    """Finds the scales of a model, then does the work of its `goal`.

    Attributes:
        cfg: the model, its parser, and how images are shown to it.
        sources: images and videos to learn from, and to judge by.
        path: of the table.
        goal: a table that is there serves `sensitivity`, unless `overwrite`.
        frames: how many to use, spread evenly.
        method, percentile, header, overwrite, restart: see `calibrate`.
        truth, max_loss, backend: see `sensitivity`.
        threads: CPU threads of the engine.
        on_stage: called with the work that begins, and its number of steps.
        on_step: called after each step.
    """

    cfg: ModelConfig
    sources: Sequence[str]
    path: Path
    goal: Goal = "choice"
    frames: int = 200
    method: Method = "entropy"
    percentile: float = 99.99
    header: str = DEFAULT_HEADER
    overwrite: bool = False
    restart: bool = False
    truth: Path | None = None
    max_loss: float | None = None
    backend: str | None = None
    threads: int | None = None
    on_stage: Callable[[str, int | None], None] | None = None
    on_step: Callable[[], None] | None = None

    def run(self) -> Calibrated:
        """Do the work; the table is written once it is whole.

        Raises:
            HeadraceError: see `calibrate` and `sensitivity`. Layers that cannot be chosen are a
                warning: the table is of use without.
        """
        if self.goal == "sensitivity" and self.path.exists() and not self.overwrite:
            done = Calibrated(CalibrationTable.load(self.path))
        else:
            done = self._find_scales()
        if self.goal == "choice":
            self._choose(done)
        elif self.goal == "sensitivity":
            self._rank(done)
        return done

    def _find_scales(self) -> Calibrated:
        report = calibrate(
            self.cfg,
            self.sources,
            frames=self.frames,
            method=self.method,
            percentile=self.percentile,
            cache=self.path,
            header=self.header,
            overwrite=self.overwrite,
            restart=self.restart,
            threads=self.threads,
            on_stage=self.on_stage,
            on_frame=self.on_step,
        )
        choice_path(self.path).unlink(missing_ok=True)  # of the table that was there
        return Calibrated(report.table, report, notices=list(report.notices))

    def _choose(self, done: Calibrated) -> None:
        """Choose the layers that stay FP32, and save them beside the table."""
        try:
            done.choice = choose_int8(
                self.cfg,
                self.sources,
                done.table,
                frames=self.frames,
                threads=self.threads,
                on_stage=self.on_stage,
                on_step=self.on_step,
            )
            done.choice.choice.save(self.path)
            done.notices += done.choice.notices
        except HeadraceError as error:
            text = f"the agreement of INT8 with FP32 is not measured: {error:brief}"
            where = error.where or str(self.cfg.path)
            done.notices.append(Finding("int8-agreement", "warning", text, where))

    def _rank(self, done: Calibrated) -> None:
        """Rank the layers, worst first."""
        done.ranking = sensitivity(
            self.cfg,
            self.sources,
            done.table.calibrated,
            frames=self.frames,
            truth=self.truth,
            max_loss=self.max_loss,
            threads=self.threads,
            backend=self.backend,
            on_stage=self.on_stage,
            on_step=self.on_step,
        )
        done.notices += done.ranking.notices
