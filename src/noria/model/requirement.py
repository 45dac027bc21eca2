"""What a plan must be to serve a config, and why another one does not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from noria._core.errors import EngineError
from noria.config.enums import TensorOrder
from noria.engine.backends import DEFAULT_BACKEND, get_backend
from noria.engine.dynamic_batch import NOT_FREE
from noria.engine.fingerprint import what_changed
from noria.engine.image_input import Dims
from noria.engine.machine import Machine, this_machine
from noria.engine.plan import COMPILED_BLOB, Plan
from noria.engine.plan_header import PlanHeader, Precision, PrecisionRecord, TuningRecord
from noria.engine.plugin_graph.plugin_files import changed_plugins
from noria.engine.precision.rules import Decided, why_wrong_here
from noria.engine.tuning.tactic import Tactic
from noria.engine.tuning.tune import TuneOptions
from noria.model.source import Factories, ModelSource

# how a reason begins that another config has another value of the key
_KEYS = ("layer-device-precision=", "output-io-formats=", "int8-calib-file=")


class WhyNot(str):
    """A reason why a plan does not serve.

    Attributes:
        kind: `stale`: it serves nobody any more; `content`: it serves a config that wants something
            else of the same model; `choice`: it is run another way than asked for now.
    """

    kind: str

    def __new__(cls, text: str, kind: str = "stale") -> WhyNot:
        reason = super().__new__(cls, text)
        reason.kind = kind
        return reason


def content_of(header: PlanHeader) -> tuple[str, ...]:
    """What of a config went into a plan, beside what its file's name says."""
    rules = header.rules
    return _content(header.infer_dims, header.model.recipe, rules)


def _content(dims: Dims | None, recipe: str, rules: PrecisionRecord | None) -> tuple[str, ...]:
    layers, outputs, table = (rules.layers, rules.outputs, rules.table) if rules else ("", "", None)
    named = (table.name,) if table else ()  # with other contents it takes the old one's place
    return (_text(dims or ()), recipe, layers, outputs, *named)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a plan must be to serve a config.

    Attributes:
        source: the model; None if there is only an engine.
        decided: runtime -> what is built for it.
        runtime, tactic, tuning: None takes a plan whatever it has.
        demanded: the precision is; otherwise an engine that the config names may have any.
        dynamic_batch: a plan with a fixed batch must have tried to be without.
        factories: of the custom library; asked before an engine is read from a file.
    """

    source: ModelSource | None
    batch: int
    decided: Callable[[str], Decided]
    infer_dims: Dims | None
    order: TensorOrder
    runtime: str | None = None
    tactic: Tactic | None = None
    tuning: TuneOptions | None = None
    demanded: bool = False
    dynamic_batch: bool = False
    factories: Factories | None = None

    @property
    def precision(self) -> Precision:
        """What a new plan is built in."""
        return self.decided(self.runtime or DEFAULT_BACKEND)[0]

    @property
    def model(self) -> Path | None:
        """The file that engines are named after."""
        return None if self.source is None else self.source.model

    @property
    def chooses(self) -> bool:
        """The way of running is asked for, not only taken as found."""
        return not (
            self.runtime is None
            and self.tactic is None
            and self.tuning is None
            and not self.dynamic_batch
        )

    @property
    def content(self) -> tuple[str, ...]:
        """As `content_of` the plan that would be built."""
        precision, rules, _ = self.decided(self.runtime or DEFAULT_BACKEND)
        recipe = self.source.recipe if self.source else ""
        return _content(self.infer_dims, recipe, rules.record(precision))

    def why_not(self, plan: Plan, *, named: bool = False, foreign: bool = False) -> WhyNot | None:
        """The first reason why `plan` does not serve; None if it does. Source: spec D.7.

        Args:
            named: `model-engine-file` names it: another precision is the user's choice.
            foreign: it was not built here: nothing tells which model it is of.
        """
        header = plan.header
        if self.infer_dims is not None and (have := self._dims(plan)) != self.infer_dims:
            return WhyNot(f"infer-dims {_text(have)} ≠ {_text(self.infer_dims)}", "content")
        source = None if foreign or (named and header.model.by_code) else self.source
        if source is not None and not source.model.exists():
            source = None
        if source is not None and (told := source.told_otherwise(header.model.recipe)):
            return WhyNot(told, "content")
        if self.runtime not in (None, header.runtime.name):
            return WhyNot(f"built for {header.runtime.name}, not {self.runtime}", "choice")
        try:
            version = get_backend(header.runtime.name).version()
        except EngineError as error:
            return WhyNot(f"built for {header.runtime.name}: {error.found}", "choice")
        if self.tactic is not None and (plan.tactic is None or plan.tactic.tactic != self.tactic):
            likes = plan.tactic.tactic if plan.tactic else "it likes"
            return WhyNot(f"runs as {likes}, not {self.tactic}", "choice")
        if self.tuning is not None and (untuned := self._why_untuned(header.tuning)):
            return WhyNot(untuned, "choice")
        one_by_one = self.batch > 1 and header.fixed_batch == 1 and not foreign
        tried = any(d.message.startswith(NOT_FREE) for d in header.decisions)
        if self.dynamic_batch and one_by_one and not tried:
            return WhyNot("its batch is fixed at 1", "choice")
        if told := self._why_other_precision(header, named=named):
            return told
        if not header.batched:
            return WhyNot("its first axis is no batch", "content")
        if header.max_batch < self.batch:
            return WhyNot(f"batch {header.max_batch} ≠ {self.batch}")
        if source is not None:
            if changed := what_changed(header.model, source.model, source.companions):
                return WhyNot(changed)
            if stale := changed_plugins(header.plugins):
                return WhyNot(stale)
            if header.runtime.version != version and not _independent(plan):
                return WhyNot(
                    f"{header.runtime.name} {header.runtime.version} ≠ {version}, "
                    "which may refuse or run otherwise what the other version built"
                )
        return None

    def _why_other_precision(self, header: PlanHeader, *, named: bool) -> WhyNot | None:
        runtime = header.runtime.name
        precision, rules, _ = self.decided(runtime)
        if named and not self.demanded and header.asked != precision:
            told = why_wrong_here(header.rules, runtime)
        else:
            told = rules.why_not(header.rules, header.asked, precision, runtime)
        if told is None:
            return None
        of_config = told.startswith(_KEYS)
        return WhyNot(told, "content" if of_config else "stale")

    def _why_untuned(self, tuning: TuningRecord | None) -> str | None:
        if tuning is None:
            return "not tuned"
        if self.tuning is not None and tuning.objective != self.tuning.objective:
            return f"tuned for {tuning.objective}, not {self.tuning.objective}"
        here = this_machine()
        if (tuning.machine, tuning.cores) != (here.cpu, here.cores):
            return f"tuned on {Machine(tuning.machine, tuning.cores)}"
        return None

    def _dims(self, plan: Plan) -> tuple[object, ...]:
        axes = plan.inputs[0].shape[1:] if plan.inputs else ()
        if len(axes) == 3 and self.order is TensorOrder.NHWC:
            return (axes[2], axes[0], axes[1])
        return axes


def _independent(plan: Plan) -> bool:
    """Worth keeping for another version of its runtime: it was tuned, which took time, and holds
    the model alone, nothing that the runtime made of it."""
    return plan.header.tuning is not None and COMPILED_BLOB not in (
        record.name for record in plan.header.blobs
    )


def _text(dims: tuple[object, ...]) -> str:
    return ";".join(map(str, dims))
