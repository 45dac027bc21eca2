"""`load_or_build`: the plan of a config, loaded where a valid one is saved, else built."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from msgspec import field

from headrace._core.errors import EngineError
from headrace._core.findings import Finding
from headrace._core.formats.sniff import is_openvino
from headrace._core.notices import notices_on_errors
from headrace._core.plain_record import PlainRecord
from headrace.engine.backends import GPU_RUNTIMES, get_backend, installed_backends
from headrace.engine.plan import Plan
from headrace.engine.plan_header import Precision
from headrace.infer.model.engine_search import EngineSearch
from headrace.infer.model.image_input import network_dims
from headrace.infer.model.network_source import network_source
from headrace.infer.model.precision import ConfigPrecision
from headrace.infer.model.requirement import PlanRequirement, RunChoice
from headrace.plugins.loading import PYTHON_SUFFIXES, serving

if TYPE_CHECKING:
    from headrace.config.model_config import ModelConfig
    from headrace.engine.tactic import Tactic
    from headrace.engine.tuning.tune import Progress, TuneOptions


def load_or_build(
    cfg: ModelConfig,
    *,
    threads: int | None = None,
    streams: int | None = None,
    rebuild: bool = False,
    backend: str | None = None,
    tactic: Tactic | None = None,
    tuning: TuneOptions | None = None,
    precision: Precision | None = None,
    dynamic_batch: bool = False,
    save: bool = True,
    progress: Progress | None = None,
    device: str | None = None,
) -> Plan:
    """Load the plan of a config where a valid one is saved, else build and save it.

    It is looked for at `model-engine-file`, then under the automatic name beside the model.
    `Plan.decisions` has every decision on the way.

    Args:
        cfg: the config; its `infer-dims`, colour format and offsets must fit the model.
        threads: default of `Plan.open_session`.
        streams: how many runs at once the session of a new plan is made ready for.
        rebuild: build even if a valid plan exists.
        backend: the runtime to use; None takes a saved plan of any, and builds for the default.
        tactic: the way to run it; a saved plan must be run that way.
        tuning: a saved plan must be tuned for this objective on this machine; a new one is, among
            the runtimes of `device`, unless it names its own.
        precision: the precision in the graph; None: what `network-mode` allows and is faster.
        dynamic_batch: free the batch of a model that fixes it at 1, if that turns out right. For a
            GPU, which idles with one item at a time, it is done whenever `batch-size` is larger.
        save: False keeps a new plan in memory.
        progress: called as tuning goes on.
        device: `cuda` or `cpu`, where the plan must run; None takes a saved plan of any.

    Raises:
        ModelError: the model's files cannot be read, see the importer of their format.
        EngineError: no usable model or engine is given; the model cannot be run.
        ConfigError: the config does not fit the model, see `network_dims`.
        CustomLibraryError: plugins of `custom-lib-path` cannot be loaded.
        Each with the notices of the config and what was decided so far.
    """
    choice = RunChoice(backend, tactic, tuning, precision, dynamic_batch, device)
    planning = _Planning(cfg, choice, threads, streams, progress, save)
    with notices_on_errors(cfg.notices, planning.notices), serving(cfg.custom_lib_path):
        return planning.run(rebuild=rebuild)


class _Planning(PlainRecord):
    """One call of `load_or_build`, and the notices of its steps so far."""

    cfg: ModelConfig
    choice: RunChoice
    threads: int | None
    streams: int | None
    progress: Progress | None
    save: bool = True
    notices: list[Finding] = field(default_factory=list)

    def run(self, *, rebuild: bool) -> Plan:
        self._settle_runtime()
        precisions = self._precisions()
        self._load_python_plugins()
        if self.cfg.enable_dla:
            text = "enable-dla: there is no DLA here, the CPU computes"
            self.notices.append(Finding("dla", "warning", text, self.cfg.where("enable_dla")))
        source, factories = network_source(self.cfg, self.notices)
        requirement = PlanRequirement.of(self.cfg, source, precisions, self.choice, factories)
        search = EngineSearch(self.cfg, requirement, self.notices)
        plan = None if rebuild else search.find()
        if plan is None:
            plan = self._build(search, rebuild=rebuild)
        elif not self.cfg.input_tensor_from_meta:
            network_dims(plan.inputs[0], self.cfg)
        plan.threads = self.threads
        self._note_decisions(plan, precisions)
        self._note_missing_outputs(plan)
        return plan

    def _build(self, search: EngineSearch, *, rebuild: bool) -> Plan:
        """Build and save. A saved engine needs none of these imports."""
        from headrace.engine.builder import BuildOptions
        from headrace.infer.model.engine_building import EngineBuilding

        options = BuildOptions(threads=self.threads, streams=self.streams, progress=self.progress)
        return EngineBuilding(search, options, save=self.save).build_and_save(rebuild=rebuild)

    def _settle_runtime(self) -> None:
        """Let a tactic choose its runtime; refuse one that is unknown or not installed early."""
        choice = self.choice = self._own_runtime()
        if choice.tactic is not None:
            if choice.runtime not in (None, choice.tactic.runtime):
                raise EngineError(f"tactic {choice.tactic} is not one of {choice.runtime}")
            if choice.tuning is not None:
                raise EngineError(f"tactic {choice.tactic} is given: there is nothing to tune")
            self.choice = choice = replace(choice, runtime=choice.tactic.runtime)
        if choice.runtime is not None:
            get_backend(choice.runtime)
        if choice.tuning is not None and choice.device is not None and not choice.tuning.runtimes:
            on_gpu = choice.device == "cuda"
            names = [n for n in installed_backends() if (n in GPU_RUNTIMES) == on_gpu]
            choice = replace(choice, tuning=replace(choice.tuning, runtimes=names))
        if choice.built_for in GPU_RUNTIMES and self.cfg.batch_size > 1:
            choice = replace(choice, dynamic_batch=True)
        self.choice = choice

    def _own_runtime(self) -> RunChoice:
        """Take openvino for its own models, which no other runtime and no GPU runs here."""
        choice, model = self.choice, self.cfg.onnx_file
        if model is None or not is_openvino(model):
            return choice
        if choice.tactic is None and choice.runtime is None:
            if choice.device == "cuda":
                text = "the CPU computes: models of OpenVINO run on openvino alone; an ONNX model "
                text += "runs on the GPU"
                self.notices.append(Finding("gpu-unused", "warning", text, str(model)))
            choice = replace(choice, runtime="openvino", device=None)
        return choice

    def _precisions(self) -> ConfigPrecision:
        """Decide the precision; bad keys are refused before anything long begins."""
        choice = self.choice
        among = None
        if choice.tuning is not None and choice.runtime is None:
            among = tuple(choice.tuning.runtimes or installed_backends())
        precisions = ConfigPrecision(
            self.cfg,
            required=choice.precision,
            tuned_among=among,
            tuned=choice.tuning is not None,
        )
        precisions.decide(choice.built_for)
        return precisions

    def _load_python_plugins(self) -> None:
        """Load plugins of a Python library; `network_source` opens a compiled one."""
        path = self.cfg.custom_lib_path
        if path is None or path.suffix.lower() not in PYTHON_SUFFIXES:
            return
        from headrace.plugins.custom_files import load_custom_plugins

        self.notices += load_custom_plugins(path)
        if self.cfg.custom_lib_guard != "always":
            return
        from headrace.plugins.registry import get_plugin_registry

        if get_plugin_registry().come_from(path):
            from headrace.custom.library import unguarded

            text = "plugins in Python are not guarded: they run in this process"
            self.notices.append(unguarded(text, path, "always"))

    def _note_decisions(self, plan: Plan, precisions: ConfigPrecision) -> None:
        """Put the notices about precision, and those of this call, before the plan's own."""
        decision = precisions.decide(plan.header.runtime.name)
        first = decision.notices
        if plan.header.asked != decision.precision:
            mode = int(self.cfg.network_mode)
            text = f"network-mode={mode}, but the engine was built for {plan.header.asked}"
            where = self.cfg.where("model_engine_file")
            text += ": it is used as it is"
            first = [Finding("engine-of-other-precision", "info", text, where)]
        # a function that built the engine may have repeated the config's decision
        repeated = [(n.code, n.data) for n in first if n.data]
        own = [n for n in plan.decisions if (n.code, n.data) not in repeated]
        plan.decisions = [*first, *self.notices, *own]

    def _note_missing_outputs(self, plan: Plan) -> None:
        have = [spec.name for spec in plan.outputs]
        missing = [name for name in self.cfg.output_blob_names if name not in have]
        if missing:
            text = f"the model has no output {', '.join(missing)}; it has {', '.join(have)}"
            text = f"output-blob-names: {text}; all outputs are used"
            where = self.cfg.where("output_blob_names")
            plan.decisions.append(Finding("output-names", "warning", text, where))
