"""Finding, checking, building and keeping the plan that a config asks for."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from noria.config.enums import TensorOrder
from noria.config.model_files import ModelKind, model_kind, unused_model_keys
from noria.engine.backends import DEFAULT_BACKEND, get_backend, installed_backends
from noria.engine.builder import BuildOptions, build
from noria.engine.fingerprint import what_changed
from noria.engine.image_input import Dims, complete_infer_dims, network_dims
from noria.engine.machine import Machine, this_machine, usable_cores
from noria.engine.model_source import ModelSource, model_source
from noria.engine.plan import Plan, is_plan_file
from noria.engine.plan_header import Precision, TuningRecord
from noria.engine.precision.rules import MODES, Decided, decide, why_wrong_here
from noria.engine.sample_inputs import picture_range
from noria.engine.store import locked
from noria.engine.tactic import Tactic
from noria.engine.tune import Progress, TuneOptions
from noria.errors import EngineError
from noria.network.tensor_spec import TensorSpec
from noria.notices import Notice

if TYPE_CHECKING:
    from noria.config.model_config import ModelConfig

__all__ = ["engine_path", "load_or_build"]

_NAMES: dict[ModelKind, str] = {
    "onnx": "onnx-file",
    "caffe": "model-file with proto-file (Caffe)",
    "darknet": "model-file with custom-network-config (Darknet)",
    "uff": "uff-file",
}


def engine_path(model: Path, batch: int, gpu_id: int, precision: str) -> Path:
    """The name under which a built engine is kept, beside its model. Source: config facts 5.2."""
    return model.with_name(f"{model.name}_b{batch}_gpu{gpu_id}_{precision}.engine")


def _beside(model: Path, batch: int, precision: str) -> Path:
    """The name to use when a foreign file, such as a TensorRT engine, has the usual one."""
    return model.with_name(f"{model.name}_b{batch}_cpu_{precision}.engine")


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What a plan must be to serve a config."""

    source: ModelSource | None
    batch: int
    decided: Callable[[str], Decided]  # by runtime: what is built
    infer_dims: Dims | None
    order: TensorOrder
    runtime: str | None = None  # whatever an engine was built for
    tactic: Tactic | None = None  # the same
    tuning: TuneOptions | None = None

    @property
    def precision(self) -> Precision:
        """What a new plan is built in."""
        return self.decided(self.runtime or DEFAULT_BACKEND)[0]

    @property
    def model(self) -> Path | None:
        """The file that engines are named after."""
        return None if self.source is None else self.source.model

    demanded: bool = False  # the precision; else an engine that the config names may have any

    def why_not(self, plan: Plan, *, named: bool = False) -> str | None:
        """The first reason why `plan` does not serve; None if it does. Source: spec D.7.

        Args:
            named: `model-engine-file` names it: another precision is the user's choice.
        """
        header = plan.header
        if self.runtime not in (None, header.runtime.name):
            return f"built for {header.runtime.name}, not {self.runtime}"
        try:
            version = get_backend(header.runtime.name).version()
        except EngineError as error:
            return f"built for {header.runtime.name}: {error.found}"
        if self.tactic is not None and (plan.tactic is None or plan.tactic.tactic != self.tactic):
            return f"runs as {plan.tactic.tactic if plan.tactic else 'it likes'}, not {self.tactic}"
        if self.tuning is not None and (untuned := self._why_untuned(header.tuning)):
            return untuned
        precision, rules, _ = self.decided(header.runtime.name)
        if named and not self.demanded and header.asked != precision:
            told = why_wrong_here(header.rules, header.runtime.name)
        else:
            told = rules.why_not(header.rules, header.asked, precision, header.runtime.name)
        if told:
            return told
        if not header.batched:
            return "its first axis is no batch"
        if header.max_batch < self.batch:
            return f"batch {header.max_batch} ≠ {self.batch}"
        if self.infer_dims is not None and (have := self._dims(plan)) != self.infer_dims:
            return f"infer-dims {_text(have)} ≠ {_text(self.infer_dims)}"
        if self.source is not None and self.source.model.exists():
            source = self.source
            if told := source.told_otherwise(header.model.recipe):
                return told
            if changed := what_changed(header.model, source.model, source.companions):
                return changed
            if header.runtime.version != version:
                return f"{header.runtime.name} {header.runtime.version} ≠ {version}"
        return None

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
        axes = plan.inputs[0].shape[1:]
        if len(axes) == 3 and self.order is TensorOrder.NHWC:
            return (axes[2], axes[0], axes[1])
        return axes


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
    progress: Progress | None = None,
) -> Plan:
    """The plan for a config: loaded where a valid one is found, else built and saved.

    Looked for at `model-engine-file`, then under the automatic name beside the model. Everything
    decided on the way is in `Plan.decisions`.

    Args:
        cfg: the config; its `infer-dims`, colour format and offsets must fit the model.
        threads: default of `Plan.open_session`.
        streams: how many runs at once the session of a new plan is made ready for.
        backend: the runtime to use; None takes a saved plan of any, and builds for the default.
        rebuild: build even if a valid plan exists.
        tactic: the way to run it; a saved plan must be run that way.
        tuning: a saved plan must be tuned for this objective on this machine; a new one is.
        precision: what is to be in the graph; None: what `network-mode` allows and is faster.
        progress: told how tuning goes.

    Raises:
        ModelError: the model's files cannot be read, see the importer of their format.
        EngineError: no usable model or engine is given; the model cannot be run.
        ConfigError: the config does not fit the model, see `network_dims`.
    """
    if tactic is not None:
        if backend not in (None, tactic.runtime):
            raise EngineError(f"tactic {tactic} is not one of {backend}")
        if tuning is not None:
            raise EngineError(f"tactic {tactic} is given: there is nothing to tune")
        backend = tactic.runtime
    if backend is not None:
        get_backend(backend)  # unknown, or not installed: told before anything else
    among = None
    if tuning is not None and backend is None:
        among = tuple(tuning.runtimes or installed_backends())

    @cache
    def decided(runtime: str) -> Decided:
        tuned = tuning is not None
        return decide(cfg, among or [runtime], demanded=precision, tuned=tuned)

    decided(backend or DEFAULT_BACKEND)  # bad keys: told before anything long begins
    notes: list[Notice] = []
    if cfg.enable_dla:
        dla = Notice("warning", "enable-dla: there is no DLA here, the CPU computes")
        notes.append(_at_key(cfg, dla, "enable_dla"))
    source = model_source(cfg)
    _note_unused_models(cfg, notes)
    wanted = _Wanted(
        source=source,
        batch=cfg.batch_size,
        decided=decided,
        infer_dims=complete_infer_dims(cfg.infer_dims),
        order=cfg.network_input_order,
        runtime=backend,
        tactic=tactic,
        tuning=tuning,
        demanded=precision is not None,
    )
    plan = None if rebuild else _find(cfg, wanted, notes)
    if plan is None:
        plan = _build_and_keep(
            cfg,
            wanted,
            notes,
            BuildOptions(threads=threads, streams=streams, progress=progress),
            rebuild=rebuild,
        )
    else:
        _check_picture(plan.inputs[0], cfg)
    plan.threads = threads
    plan.decisions = [*_on_precision(cfg, plan, wanted), *notes, *plan.decisions]
    _note_missing_outputs(cfg, plan)
    return plan


def _find(cfg: ModelConfig, wanted: _Wanted, notes: list[Notice]) -> Plan | None:
    """The first plan that serves. Notes say why others do not.

    Raises:
        EngineError: there is no model to build from instead.
    """
    named = cfg.model_engine_file
    if named is not None:
        plan, reason = _try(named, wanted, named=True)
        if plan is not None:
            _note_found(plan, wanted, notes)
            return plan
        if wanted.model is None:
            raise _nothing_else(cfg, named, reason)
        there = named.exists()
        notes.append(
            Notice("warning" if there else "info", f"engine not used: {reason}", str(named))
        )
    if wanted.model is None:
        return None
    for path in _candidates(cfg, wanted):
        if path == named or not is_plan_file(path):
            continue
        plan, reason = _try(path, wanted)
        if plan is not None:
            _note_found(plan, wanted, notes)
            return plan
        notes.append(Notice("info", f"engine not used: {reason}", str(path)))
    return None


def _try(path: Path, wanted: _Wanted, *, named: bool = False) -> tuple[Plan | None, str]:
    if not path.exists():
        return None, "there is no such file"
    try:
        plan = Plan.load(path)
    except EngineError as error:
        return None, error.found
    reason = wanted.why_not(plan, named=named)
    return (plan, "") if reason is None else (None, reason)


def _note_found(plan: Plan, wanted: _Wanted, notes: list[Notice]) -> None:
    where = str(plan.path)
    tuning = plan.header.tuning
    if tuning is not None and not plan.decides_sharing:
        text = f"tuned on {tuning.cores} cores, here are {usable_cores()}: its threads are not used"
        notes.append(Notice("info", text, where))
    if wanted.model is not None and not wanted.model.exists():
        text = f"loaded; {wanted.model.name} is not there to compare it with"
        notes.append(Notice("info", text, where))
        return
    notes.append(Notice("info", "loaded", where))


def _nothing_else(cfg: ModelConfig, path: Path, reason: str) -> EngineError:
    return EngineError(
        reason,
        where=str(path),
        expected=f"an engine that noria built for batch-size={cfg.batch_size}",
        fix=f"give onnx-file=<the ONNX model> in {cfg.path}: noria builds its own engine from it "
        "and leaves other files alone",
    )


def _targets(
    cfg: ModelConfig, wanted: _Wanted, precision: Precision | None = None
) -> tuple[Path, Path]:
    assert wanted.model is not None
    word = precision or wanted.precision
    return (
        engine_path(wanted.model, wanted.batch, cfg.gpu_id, word),
        _beside(wanted.model, wanted.batch, word),
    )


def _candidates(cfg: ModelConfig, wanted: _Wanted) -> list[Path]:
    """Where a plan may be: another runtime than the default may compute what this one does not."""
    paths = list(_targets(cfg, wanted))
    asked = MODES[cfg.network_mode]
    if wanted.runtime is None and not wanted.demanded and asked != wanted.precision:
        paths += _targets(cfg, wanted, asked)
    return paths


def _on_precision(cfg: ModelConfig, plan: Plan, wanted: _Wanted) -> list[Notice]:
    """What to tell about the precision of the plan that is used."""
    precision, _, notices = wanted.decided(plan.header.runtime.name)
    if plan.header.asked == precision:
        return notices
    text = f"network-mode={int(cfg.network_mode)}, but the engine was built for {plan.header.asked}"
    return [_at_key(cfg, Notice("info", f"{text}: it is used as it is"), "model_engine_file")]


def _build_and_keep(
    cfg: ModelConfig,
    wanted: _Wanted,
    notes: list[Notice],
    options: BuildOptions,
    *,
    rebuild: bool,
) -> Plan:
    if wanted.source is None or wanted.model is None:
        raise _no_model(cfg)
    target = _free_target(cfg, wanted, notes)
    with locked(target) if target else nullcontext(False) as held:
        if held and not rebuild:
            # another process may have built it while this one waited
            plan, _ = _try(target, wanted) if target and target.exists() else (None, "")
            if plan is not None:
                _check_picture(plan.inputs[0], cfg)
                _note_found(plan, wanted, notes)
                return plan
        network = wanted.source.network()
        _check_picture(network.inputs[0], cfg)
        options = replace(
            options,
            max_batch=wanted.batch,
            precision=wanted.precision,
            exact=True,
            rules=wanted.decided(wanted.runtime or DEFAULT_BACKEND)[1],
            infer_dims=wanted.infer_dims,
            input_order=wanted.order,
            runtime=wanted.runtime,
            tactic=wanted.tactic,
            tuning=wanted.tuning,
            picture_range=picture_range(cfg),
        )
        plan = build(network, options)
        if target is None:
            notes.append(Notice("info", "built, kept in memory", str(wanted.model)))
            return plan
        try:
            plan.write(target)
        except EngineError as error:
            text = f"{error.found}; built at each start and kept in memory"
            notes.append(Notice("warning", text, str(target)))
        else:
            notes.append(Notice("info", f"built from {wanted.model.name}", str(target)))
    return plan


def _free_target(cfg: ModelConfig, wanted: _Wanted, notes: list[Notice]) -> Path | None:
    """Where to save: never over a file that noria did not write."""
    usual, beside = _targets(cfg, wanted)
    for target, instead in ((usual, f"saved as {beside.name}"), (beside, "kept in memory")):
        if not (target.exists() or target.is_symlink()) or is_plan_file(target):
            return target
        try:
            Plan.load(target)
        except EngineError as error:
            text = f"{error.found}: not overwritten, noria's engine is {instead}"
            notes.append(Notice("warning", text, str(target)))
    return None


def _no_model(cfg: ModelConfig) -> EngineError:
    others = {
        "tlt-encoded-model": cfg.tlt_encoded_model,
        "model-file": cfg.model_file,
        "proto-file": cfg.proto_file,
        "custom-network-config": cfg.custom_network_config,
        "engine-create-func-name": cfg.engine_create_func_name,
    }
    given = [f"{key}={value}" for key, value in others.items() if value]
    found = "neither a model nor a usable model-engine-file is given"
    fix = []
    if given:
        found += f"; {', '.join(given)} cannot be built from"
        fix = [
            "Caffe needs model-file and proto-file, Darknet model-file and custom-network-config"
        ]
    if cfg.tlt_encoded_model:
        fix = [
            "an encoded TLT or TAO model (.etlt, .tlt) is encrypted and read by NVIDIA's library "
            "alone: export it to ONNX with TAO (5.0 and later do), or decode it with TAO's tools"
        ]
    return EngineError(
        found,
        where=str(cfg.path),
        expected="onnx-file=<model.onnx>, or the keys of a Caffe, UFF or Darknet model",
        fix=fix,
    )


def _note_unused_models(cfg: ModelConfig, notes: list[Notice]) -> None:
    kind = model_kind(cfg)
    for key in unused_model_keys(cfg) if kind else ():
        level: Literal["warning", "info"] = "warning" if key == "tlt-encoded-model" else "info"
        text = f"{key} is not used: the model is {_NAMES[kind]}" if kind else ""
        notes.append(_at_key(cfg, Notice(level, text), key.replace("-", "_")))


def _check_picture(spec: TensorSpec, cfg: ModelConfig) -> None:
    if not cfg.input_tensor_from_meta:
        network_dims(spec, cfg)


def _note_missing_outputs(cfg: ModelConfig, plan: Plan) -> None:
    have = [spec.name for spec in plan.outputs]
    missing = [name for name in cfg.output_blob_names if name not in have]
    if missing:
        text = f"the model has no output {', '.join(missing)}; it has {', '.join(have)}"
        notice = Notice("warning", f"output-blob-names: {text}; all outputs are used")
        plan.decisions.append(_at_key(cfg, notice, "output_blob_names"))


def _at_key(cfg: ModelConfig, notice: Notice, field: str) -> Notice:
    origin = cfg.origin(field)
    where = str(origin) if origin.kind == "file" else str(cfg.path)
    return Notice(notice.level, notice.message, where)


def _text(dims: tuple[object, ...]) -> str:
    return ";".join(map(str, dims))
