"""The search for a saved engine that serves a config."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from headrace._core import formats
from headrace._core.errors import EngineError
from headrace._core.files import locked
from headrace._core.findings import Finding
from headrace.engine.backends import get_backend
from headrace.engine.machine import this_machine, usable_cores
from headrace.engine.plan import Plan, is_plan_file, read_header
from headrace.engine.plan_header import TuningRecord
from headrace.engine.plan_prefix import NewerPlanError
from headrace.infer.model import engine_files
from headrace.infer.model.precision import MODES, ConfigPrecision
from headrace.infer.model.requirement import Mismatch, PlanRequirement
from headrace.infer.model.source import ModelSource

if TYPE_CHECKING:
    from headrace.config.model_config import ModelConfig


class EngineSearch:
    """The files that may hold the engine of a config, and the first one that meets a requirement.

    Notices are appended: which engine serves, or why others do not.
    """

    def __init__(
        self, cfg: ModelConfig, requirement: PlanRequirement, notices: list[Finding]
    ) -> None:
        self.cfg = cfg
        self.requirement = requirement
        self.notices = notices

    def find(self) -> Plan | None:
        """Load the first engine that serves: `model-engine-file`, then those beside the model.

        Raises:
            EngineError: none serves, and there is no model to build from instead.
        """
        named = self.cfg.model_engine_file
        if named is not None:
            candidate = self.try_file(named, named=True)
            if isinstance(candidate, Plan):
                self.note_found(candidate)
                return candidate
            if self.requirement.model is None:
                raise self._nothing_else(named, candidate)
            text = f"engine not used: {candidate}"
            level: Literal["info", "warning"] = "warning" if named.exists() else "info"
            self.notices.append(Finding("engine-not-used", level, text, str(named)))
        if self.requirement.model is None:
            return None
        unused: list[Finding] = []
        for path in self._candidates():
            if path == named or not is_plan_file(path):
                continue
            plan: Plan | Mismatch | None = self.try_file(path)
            if isinstance(plan, Mismatch):
                unused.append(_not_used(path, plan))
                plan = None if plan.kind == "stale" else self._sibling(path, plan, unused)
            if plan is not None:
                self.note_found(plan)
                return plan
        self.notices += unused
        return None

    def try_file(self, path: Path, *, named: bool = False) -> Plan | Mismatch:
        """Load an engine, unless it does not serve. A `named` one may be TensorRT's."""
        if not path.exists():
            return Mismatch("stale", "there is no such file")
        requirement = self.requirement
        try:
            mismatch = requirement.mismatch(Plan(read_header(path), {}), named=named)
            if mismatch is not None:
                return mismatch
            factories = requirement.factories
            held, refusal = factories.engine() if factories else (None, None)
            if refusal is not None:
                return Mismatch("stale", refusal)
            plan = Plan.load(path)
        except NewerPlanError as error:
            return Mismatch("content", f"{error:brief}")
        except EngineError as error:
            from headrace._core.formats.tensorrt import is_tensorrt_file

            if named and is_tensorrt_file(path):
                return self._try_tensorrt(path)
            return Mismatch("stale", f"{error:brief}")
        plan.held = held
        return plan

    def _try_tensorrt(self, path: Path) -> Plan | Mismatch:
        from headrace.engine.tensorrt_plan import plan_from_tensorrt

        try:
            plan = plan_from_tensorrt(path)
        except EngineError as error:
            return Mismatch("stale", f"{error:brief}")
        return self.requirement.mismatch(plan, named=True, by_tensorrt=True) or plan

    def _candidates(self) -> list[Path]:
        """Paths where an engine may be.

        Another runtime than the default may compute a precision that the default does not.
        """
        requirement = self.requirement
        paths = list(self.targets(requirement.decision.kind))
        asked = MODES[self.cfg.network_mode]
        open_runtime = requirement.choice.runtime is None
        if open_runtime and not requirement.precision_required and asked != requirement.precision:
            paths += self.targets(asked)
        return paths

    def targets(self, precision: str) -> tuple[Path, Path]:
        """Paths where an engine is saved: the usual one, and the one if a foreign file is there."""
        assert self.requirement.source is not None
        base, batch = self.requirement.source.base, self.requirement.batch
        return (
            engine_files.engine_path(base, batch, self.cfg.gpu_id, precision),
            engine_files.path_beside_foreign(base, batch, precision),
        )

    def _sibling(self, usual: Path, because: Mismatch, unused: list[Finding]) -> Plan | None:
        """Load an engine beside `usual`, which is another config's, or is run another way.

        What is asked for now, and was built before, moves to the place where it is found first.
        """
        home = usual
        if because.kind != "choice":
            home = engine_files.keyed(usual, self.requirement.content)
        paths = sorted(engine_files.siblings(usual), key=lambda path: (path != home, path.name))
        for path in paths:
            if path == self.cfg.model_engine_file:
                continue
            plan = self.try_file(path)
            if isinstance(plan, Mismatch):
                if path == home:
                    unused.append(_not_used(path, plan))
                continue
            if self.requirement.choice.is_specific and path != home:
                with locked(home) as held:
                    if held and path.exists():
                        plan.path = engine_files.exchange(path, home)
            return plan
        return None

    def note_found(self, plan: Plan) -> None:
        """Append the notices about an engine that is used."""
        where = str(plan.path)
        header, model = plan.header, self.requirement.model
        if header.tuning is not None:
            self.notices += [
                Finding("engine-doubt", "info", text, where)
                for text in _doubts(plan, header.tuning)
            ]
        text = "loaded"
        if model is not None and not model.exists():
            text = f"loaded; {model.name} is not there to compare it with"
        elif model is not None and header.model.by_code:
            text += f"; its network was built by code: it is not compared with {model.name}"
        self.notices.append(Finding("engine-loaded", "info", text, where))

    def _nothing_else(self, path: Path, reason: Mismatch) -> EngineError:
        foreign = formats.foreign_model(path, "an engine, or onnx-file with an ONNX model")
        if foreign is not None and foreign.data["format"] not in ("tensorrt", "headrace-plan"):
            return EngineError(foreign.finding)
        return EngineError(
            reason.text,
            where=str(path),
            expected=f"an engine that headrace built for batch-size={self.cfg.batch_size}",
            fix=f"give onnx-file=<the ONNX model> in {self.cfg.path}: headrace builds its own "
            "engine from it and leaves other files alone",
            code="engine-not-used",
        )


def saved_engine(cfg: ModelConfig, source: ModelSource, notices: list[Finding]) -> Path | None:
    """Find the engine that `load_or_build` would load instead of building from `source`.

    Notices are appended: which engine serves, or why others do not.

    Raises:
        ConfigError, EngineError: as `load_or_build` before it looks for one.
    """
    plan = serving_plan(cfg, source, notices)
    return None if plan is None else plan.path


def serving_plan(
    cfg: ModelConfig, source: ModelSource | None, notices: list[Finding]
) -> Plan | None:
    """Load the engine that `load_or_build` would load; None if it would build one.

    Notices are appended, as by `saved_engine`.

    Raises:
        ConfigError, EngineError: as `load_or_build` before it looks for one.
    """
    return EngineSearch(cfg, PlanRequirement.of(cfg, source, ConfigPrecision(cfg)), notices).find()


def _not_used(path: Path, reason: Mismatch) -> Finding:
    return Finding("engine-not-used", "info", f"engine not used: {reason}", str(path))


def _doubts(plan: Plan, tuning: TuningRecord) -> list[str]:
    """Reasons why the fastest way of running may be another one here and now."""
    again = "headrace build --tune measures anew"
    doubts = []
    here = this_machine()
    if not plan.decides_sharing:
        text = f"tuned on {tuning.cores} cores, here are {usable_cores()}: its threads are not used"
        doubts.append(f"{text}; {again}")
    elif tuning.machine != here.cpu:
        doubts.append(
            f"tuned on {tuning.machine}, here is {here.cpu}: run in the way that was the fastest "
            f"there; {again}"
        )
    runtime = plan.header.runtime
    version = get_backend(runtime.name).version()
    if runtime.version != version:
        doubts.append(
            f"tuned with {runtime.name} {runtime.version}, here is {version}: run in the way that "
            f"was the fastest then; {again}"
        )
    return doubts
