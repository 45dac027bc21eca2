"""Requirements on a plan that serves a config, and mismatches of plans with them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from headrace._core.errors import EngineError
from headrace._core.plain_record import PlainRecord
from headrace.engine.backends import DEFAULT_BACKEND, GPU_RUNTIMES, get_backend, gpu_runtime
from headrace.engine.fingerprint import what_changed
from headrace.engine.input_shapes import AxisOrder, Dims, complete_infer_dims
from headrace.engine.machine import Machine, this_machine
from headrace.engine.plan import COMPILED_BLOB, Plan
from headrace.engine.plan_header import (
    PlanHeader,
    Precision,
    PrecisionRecord,
    TuningRecord,
)
from headrace.engine.plugin_graph.plugin_record import changed_plugins
from headrace.engine.precision.rules import wrong_here
from headrace.infer.model.image_input import axis_order
from headrace.infer.model.precision import ConfigPrecision, PrecisionDecision
from headrace.infer.model.source import ModelSource

if TYPE_CHECKING:
    from headrace.config.model_config import ModelConfig
    from headrace.engine.tactic import Tactic
    from headrace.engine.tuning.tune import TuneOptions
    from headrace.infer.model.plugin_factories import CppFactories

# mismatches that begin so: another config has another value of the key


class Mismatch(PlainRecord, frozen=True):
    """The reason why a plan does not meet a requirement.

    Attributes:
        kind: `stale`: the plan serves no config any more; `content`: it serves a config that asks
            for something else of the same model; `choice`: it runs another way than asked for.
        text: the reason in words.
    """

    kind: Literal["stale", "content", "choice"]
    text: str

    def __str__(self) -> str:
        return self.text


class RunChoice(PlainRecord, frozen=True):
    """The way of running that a caller of `load_or_build` asks for.

    Attributes:
        runtime: name of the backend; None accepts any.
        tactic: the plan must be run this way; None accepts any.
        tuning: the plan must be tuned for this objective on this machine; None accepts any.
        precision: precision in the graph; None follows `network-mode`.
        dynamic_batch: a plan with a fixed batch must have been tried with a free one.
        device: where it runs: `cuda`, `cpu`, or None for any.
    """

    runtime: str | None = None
    tactic: Tactic | None = None
    tuning: TuneOptions | None = None
    precision: Precision | None = None
    dynamic_batch: bool = False
    device: str | None = None

    @property
    def built_for(self) -> str:
        """Name of the backend that a new plan is for, unless tuning finds another one."""
        return self.runtime or (gpu_runtime() if self.device == "cuda" else DEFAULT_BACKEND)

    def refuses(self, runtime: str) -> str | None:
        """Why a plan for a runtime does not serve; None if it does."""
        if self.runtime not in (None, runtime):
            return f"built for {runtime}, not {self.runtime}"
        if self.device is not None and (runtime in GPU_RUNTIMES) != (self.device == "cuda"):
            return f"built for {runtime}, which does not run on {self.device}"
        return None

    @property
    def is_specific(self) -> bool:
        """True if the caller asks for a way of running; False if any plan will do."""
        asked = (self.runtime, self.tactic, self.tuning, self.device)
        return self.dynamic_batch or any(value is not None for value in asked)


_NO_CHOICE = RunChoice()


def plan_content(header: PlanHeader) -> tuple[str, ...]:
    """Values of a config that went into a plan, beside those in its file's name."""
    return _content(header.infer_dims, header.model.recipe, header.rules)


def _content(dims: Dims | None, recipe: str, rules: PrecisionRecord | None) -> tuple[str, ...]:
    layers, outputs, table = (rules.layers, rules.outputs, rules.table) if rules else ("", "", None)
    named = (table.name,) if table else ()  # with other contents it takes the old one's place
    return (_text(dims or ()), recipe, layers, outputs, *named)


class PlanRequirement(PlainRecord, frozen=True):
    """The properties of a plan that serves a config.

    Attributes:
        source: the model; None if there is only an engine.
        batch: most items of one run.
        precisions: decides the precision for each runtime.
        infer_dims: channels, height, width; None if the model gives them.
        order: order of the axes of the image input.
        choice: the way of running that the caller asks for.
        factories: of the custom library; asked before an engine is read from a file.
    """

    source: ModelSource | None
    batch: int
    precisions: ConfigPrecision
    infer_dims: Dims | None
    order: AxisOrder
    choice: RunChoice = _NO_CHOICE
    factories: CppFactories | None = None

    @classmethod
    def of(
        cls,
        cfg: ModelConfig,
        source: ModelSource | None,
        precisions: ConfigPrecision,
        choice: RunChoice = _NO_CHOICE,
        factories: CppFactories | None = None,
    ) -> PlanRequirement:
        """Take the requirement of a config; see the attributes."""
        dims = complete_infer_dims(cfg.infer_dims)
        return cls(source, cfg.batch_size, precisions, dims, axis_order(cfg), choice, factories)

    @property
    def decision(self) -> PrecisionDecision:
        """The decision for a new plan."""
        return self.precisions.decide(self.choice.built_for)

    @property
    def precision(self) -> Precision:
        """The precision of a new plan."""
        return self.decision.precision

    @property
    def precision_required(self) -> bool:
        """True rejects a plan of another precision even if the config names it."""
        return self.choice.precision is not None

    @property
    def model(self) -> Path | None:
        """The file that engines are named after."""
        return None if self.source is None else self.source.model

    @property
    def content(self) -> tuple[str, ...]:
        """The `plan_content` of a new plan."""
        decision = self.decision
        recipe = self.source.recipe if self.source else ""
        return _content(self.infer_dims, recipe, decision.rules.record(decision.precision))

    def mismatch(
        self, plan: Plan, *, named: bool = False, by_tensorrt: bool = False
    ) -> Mismatch | None:
        """Return the first reason why `plan` does not serve; None if it does. Source: spec D.7.

        Args:
            plan: the plan; its blobs are not looked at.
            named: True if `model-engine-file` names it: another precision is the user's choice.
            by_tensorrt: True if TensorRT built it, so that the model it was built from is unknown.
        """
        header = plan.header
        source = None if by_tensorrt or (named and header.model.by_code) else self.source
        if source is not None and not source.model.exists():
            source = None
        return (
            self._other_model(plan, source)
            or self._other_way(plan, by_tensorrt=by_tensorrt)
            or self._other_precision(header, named=named)
            or self._other_batch(header)
            or (self._outdated(plan, source) if source is not None else None)
        )

    def _other_model(self, plan: Plan, source: ModelSource | None) -> Mismatch | None:
        if self.infer_dims is not None and (have := self._dims(plan)) != self.infer_dims:
            return Mismatch("content", f"infer-dims {_text(have)} ≠ {_text(self.infer_dims)}")
        if source is not None and (text := source.recipe_difference(plan.header.model.recipe)):
            return Mismatch("content", text)
        return None

    def _other_way(self, plan: Plan, *, by_tensorrt: bool) -> Mismatch | None:
        """Compare the way of running with the choice; a runtime must be installed."""
        header, choice = plan.header, self.choice
        runtime = header.runtime.name
        if (text := choice.refuses(runtime)) is not None:
            return Mismatch("choice", text)
        try:
            reason = get_backend(runtime).why_not()
        except EngineError as error:
            return Mismatch("choice", f"built for {runtime}: {error:brief}")
        if reason is not None and choice.runtime is None and choice.tactic is None:
            return Mismatch("choice", f"built for {runtime}, which cannot run here: {reason}")
        if choice.tactic is not None and (
            plan.tactic is None or plan.tactic.tactic != choice.tactic
        ):
            likes = plan.tactic.tactic if plan.tactic else "it likes"
            return Mismatch("choice", f"runs as {likes}, not {choice.tactic}")
        if choice.tuning is not None and (text := _why_untuned(choice.tuning, header.tuning)):
            return Mismatch("choice", text)
        one_by_one = self.batch > 1 and header.fixed_batch == 1 and not by_tensorrt
        tried = any(d.code == "batch-fixed" for d in header.decisions)
        if choice.dynamic_batch and one_by_one and not tried:
            return Mismatch("choice", "its batch is fixed at 1")
        return None

    def _other_precision(self, header: PlanHeader, *, named: bool) -> Mismatch | None:
        runtime = header.runtime.name
        decision = self.precisions.decide(runtime)
        if named and not self.precision_required and header.asked != decision.precision:
            deviation = wrong_here(header.rules, runtime)
        else:
            deviation = decision.rules.difference(
                header.rules, header.asked, decision.precision, runtime
            )
        if deviation is None:
            return None
        return Mismatch("content" if deviation.of_content else "stale", deviation.text)

    def _other_batch(self, header: PlanHeader) -> Mismatch | None:
        if not header.batched:
            return Mismatch("content", "its first axis is no batch")
        if header.max_batch < self.batch:
            return Mismatch("stale", f"batch {header.max_batch} ≠ {self.batch}")
        return None

    def _outdated(self, plan: Plan, source: ModelSource) -> Mismatch | None:
        """Compare the files, plugins and runtime with those that the plan was built from."""
        header = plan.header
        if changed := what_changed(header.model, source.model, source.companions):
            return Mismatch("stale", changed)
        if changed := changed_plugins(header.plugins):
            return Mismatch("stale", changed)
        version = get_backend(header.runtime.name).version()
        if header.runtime.version != version and not _independent(plan):
            return Mismatch(
                "stale",
                f"{header.runtime.name} {header.runtime.version} ≠ {version}, "
                "which may refuse or run otherwise what the other version built",
            )
        return None

    def _dims(self, plan: Plan) -> tuple[object, ...]:
        axes = plan.inputs[0].shape[1:] if plan.inputs else ()
        if len(axes) == 3 and self.order == "NHWC":
            return (axes[2], axes[0], axes[1])
        return axes


def _why_untuned(tuning: TuneOptions, record: TuningRecord | None) -> str | None:
    if record is None:
        return "not tuned"
    if record.objective != tuning.objective:
        return f"tuned for {record.objective}, not {tuning.objective}"
    here = this_machine()
    if (record.machine, record.cores) != (here.cpu, here.cores):
        return f"tuned on {Machine(record.machine, record.cores)}"
    return None


def _independent(plan: Plan) -> bool:
    """True if a plan is worth keeping for another version of its runtime.

    It was tuned, which took time, and holds the model alone, no product of the runtime.
    """
    return plan.header.tuning is not None and COMPILED_BLOB not in (
        record.name for record in plan.header.blobs
    )


def _text(dims: tuple[object, ...]) -> str:
    return ";".join(map(str, dims))
