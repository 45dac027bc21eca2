"""Finding, checking, building and keeping the plan that a config asks for."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from noria._core.errors import EngineError, NoriaError
from noria._core.notices import Notice, told_by_errors
from noria.config.model_files import ModelKind, missing_file, model_kind, unused_model_keys
from noria.config.wrong_file import ENCODED_MODEL
from noria.engine.backends import DEFAULT_BACKEND, get_backend, installed_backends
from noria.engine.builder import BuildOptions, build
from noria.engine.image_input import complete_infer_dims, network_dims
from noria.engine.machine import this_machine, usable_cores
from noria.engine.plan import NewerPlan, Plan, is_plan_file, read_header
from noria.engine.plan_header import Precision, TuningRecord
from noria.engine.plugin_graph.plugin_files import load_custom_plugins
from noria.engine.precision.rules import MODES, Decided, decide
from noria.engine.sample_inputs import picture_range
from noria.engine.store import locked
from noria.engine.tensorrt_files import is_tensorrt_file, plan_from_tensorrt
from noria.engine.tuning.tactic import Tactic
from noria.engine.tuning.tune import Progress, TuneOptions
from noria.model import engine_files
from noria.model.requirement import Wanted, WhyNot
from noria.model.source import Factories, ModelSource, model_source
from noria.network.tensor_spec import TensorSpec
from noria.plugins.library import PYTHON_SUFFIXES
from noria.plugins.lookup import UnknownOperators
from noria.plugins.registry import get_plugin_registry

if TYPE_CHECKING:
    from noria.config.model_config import ModelConfig

_log = logging.getLogger("noria.engine")

_NAMES: dict[ModelKind, str] = {
    "onnx": "onnx-file",
    "caffe": "model-file with proto-file (Caffe)",
    "darknet": "model-file with custom-network-config (Darknet)",
    "uff": "uff-file",
}


def _beside(model: Path, batch: int, precision: str) -> Path:
    """The name to use when a foreign file, such as a TensorRT engine, has the usual one."""
    return model.with_name(f"{model.name}_b{batch}_cpu_{precision}.engine")


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
        dynamic_batch: free the batch of a model that fixes it at 1, if that turns out right.
        progress: told how tuning goes.

    Raises:
        ModelError: the model's files cannot be read, see the importer of their format.
        EngineError: no usable model or engine is given; the model cannot be run.
        ConfigError: the config does not fit the model, see `network_dims`.
        CustomLibraryError: plugins of `custom-lib-path` cannot be loaded.
        Each with the notices of the config and what was decided so far.
    """
    notes: list[Notice] = []
    with told_by_errors(cfg.notices, notes):
        return _load_or_build(
            cfg,
            notes,
            BuildOptions(threads=threads, streams=streams, progress=progress),
            rebuild=rebuild,
            backend=backend,
            tactic=tactic,
            tuning=tuning,
            precision=precision,
            dynamic_batch=dynamic_batch,
        )


def _load_or_build(
    cfg: ModelConfig,
    notes: list[Notice],
    options: BuildOptions,
    *,
    rebuild: bool,
    backend: str | None,
    tactic: Tactic | None,
    tuning: TuneOptions | None,
    precision: Precision | None,
    dynamic_batch: bool,
) -> Plan:
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
    if cfg.custom_lib_path is not None and cfg.custom_lib_path.suffix.lower() in PYTHON_SUFFIXES:
        notes += load_custom_plugins(cfg.custom_lib_path)  # a compiled one is opened by `source_of`
        if cfg.custom_lib_guard == "always" and get_plugin_registry().come_from(
            cfg.custom_lib_path
        ):
            text = "plugins in Python are not guarded: they run in this process"
            notes.append(Notice("warning", text, str(cfg.custom_lib_path)))
    if cfg.enable_dla:
        dla = Notice("warning", "enable-dla: there is no DLA here, the CPU computes")
        notes.append(_at_key(cfg, dla, "enable_dla"))
    source, factories = source_of(cfg, notes)
    wanted = Wanted(
        source=source,
        batch=cfg.batch_size,
        decided=decided,
        infer_dims=complete_infer_dims(cfg.infer_dims),
        order=cfg.network_input_order,
        runtime=backend,
        tactic=tactic,
        tuning=tuning,
        demanded=precision is not None,
        dynamic_batch=dynamic_batch,
        factories=factories,
    )
    plan = None if rebuild else _find(cfg, wanted, notes)
    if plan is None:
        plan = _build_and_keep(cfg, wanted, notes, options, rebuild=rebuild)
    else:
        _check_picture(plan.inputs[0], cfg)
    plan.threads = options.threads
    on_precision = _on_precision(cfg, plan, wanted)
    # what a function asked its builder for is told of the config already, if it is the same
    said = tuple(n.message.partition(": ")[2] for n in on_precision)
    own = [n for n in plan.decisions if n.message not in said]
    plan.decisions = [*on_precision, *notes, *own]
    _note_missing_outputs(cfg, plan)
    return plan


def source_of(cfg: ModelConfig, notes: list[Notice]) -> tuple[ModelSource | None, Factories | None]:
    """What the network comes from: a function of the custom library goes before all files. Also
    the library's plugin factories.

    The library is open afterwards: its plugins are registered before an engine is read.
    Source: custom-library spec 2.1, 3.1.
    """
    factories = None
    if cfg.custom_lib_path is not None:
        # user code lives in a later room, which knows what it may do with a config
        from noria.model.engine_source import engine_source
        from noria.model.plugin_factories import plugin_factories

        made = engine_source(cfg, notes)
        factories = plugin_factories(cfg, notes)
        if made:
            return made, factories
    _note_unused_models(cfg, notes)
    return model_source(cfg, factories), factories


def saved_engine(cfg: ModelConfig, source: ModelSource, notes: list[Notice]) -> Path | None:
    """The engine that `load_or_build` would load instead of building from `source`.

    Args:
        notes: told which it is, or why others do not serve.

    Raises:
        ConfigError, EngineError: as `load_or_build` before it looks for one.
    """
    wanted = Wanted(
        source=source,
        batch=cfg.batch_size,
        decided=cache(lambda runtime: decide(cfg, [runtime])),
        infer_dims=complete_infer_dims(cfg.infer_dims),
        order=cfg.network_input_order,
    )
    plan = _find(cfg, wanted, notes)
    return None if plan is None else plan.path


def _find(cfg: ModelConfig, wanted: Wanted, notes: list[Notice]) -> Plan | None:
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
    told: list[Notice] = []
    for path in _candidates(cfg, wanted):
        if path == named or not is_plan_file(path):
            continue
        plan, reason = _try(path, wanted)
        if plan is None:
            told.append(Notice("info", f"engine not used: {reason}", str(path)))
        if plan is None and reason.kind != "stale":
            plan = _among_siblings(path, wanted, named, told, because=reason)
        if plan is not None:
            _note_found(plan, wanted, notes)
            return plan
    notes += told
    return None


def _among_siblings(
    usual: Path, wanted: Wanted, named: Path | None, told: list[Notice], *, because: WhyNot
) -> Plan | None:
    """An engine beside `usual`, which is one for another config or is run another way. What is
    chosen now, and was built before, comes to the place where it is found first."""
    home = usual if because.kind == "choice" else engine_files.keyed(usual, wanted.content)
    paths = sorted(engine_files.siblings(usual), key=lambda path: (path != home, path.name))
    for path in paths:
        if path == named:
            continue
        plan, reason = _try(path, wanted)
        if plan is None:
            if path == home:
                told.append(Notice("info", f"engine not used: {reason}", str(path)))
            continue
        if wanted.chooses and path != home:
            with locked(home) as held:
                if held and path.exists():
                    plan.path = engine_files.exchange(path, home)
        return plan
    return None


def _try(path: Path, wanted: Wanted, *, named: bool = False) -> tuple[Plan | None, WhyNot]:
    if not path.exists():
        return None, WhyNot("there is no such file")
    try:
        reason = wanted.why_not(Plan(read_header(path), {}), named=named)
        if reason is None:
            held, refusal = wanted.factories.engine() if wanted.factories else (None, None)
            if refusal is not None:
                return None, WhyNot(refusal)
            plan = Plan.load(path)
            plan.held = held
            return plan, WhyNot("")
    except NewerPlan as error:
        return None, WhyNot(error.found, "content")
    except EngineError as error:
        if named and is_tensorrt_file(path):
            return _try_tensorrt(path, wanted)
        return None, WhyNot(error.found)
    return None, reason


def _try_tensorrt(path: Path, wanted: Wanted) -> tuple[Plan | None, WhyNot]:
    try:
        plan = plan_from_tensorrt(path)
    except EngineError as error:
        return None, WhyNot(error.found)
    reason = wanted.why_not(plan, named=True, foreign=True)
    return (plan, WhyNot("")) if reason is None else (None, reason)


def _note_found(plan: Plan, wanted: Wanted, notes: list[Notice]) -> None:
    where = str(plan.path)
    header = plan.header
    tuning = header.tuning
    if tuning is not None:
        notes += [Notice("info", text, where) for text in _doubts(plan, tuning)]
    if wanted.model is not None and not wanted.model.exists():
        text = f"loaded; {wanted.model.name} is not there to compare it with"
        notes.append(Notice("info", text, where))
        return
    text = "loaded"
    if wanted.model is not None and header.model.by_code:
        text += f"; its network was built by code: it is not compared with {wanted.model.name}"
    notes.append(Notice("info", text, where))


def _doubts(plan: Plan, tuning: TuningRecord) -> list[str]:
    """Why what was the fastest way need not be it here and now."""
    again = "noria build --tune measures anew"
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


def _nothing_else(cfg: ModelConfig, path: Path, reason: str) -> EngineError:
    return EngineError(
        reason,
        where=str(path),
        expected=f"an engine that noria built for batch-size={cfg.batch_size}",
        fix=f"give onnx-file=<the ONNX model> in {cfg.path}: noria builds its own engine from it "
        "and leaves other files alone",
    )


def _targets(
    cfg: ModelConfig, wanted: Wanted, precision: Precision | None = None
) -> tuple[Path, Path]:
    assert wanted.source is not None
    word = precision or wanted.precision
    return (
        engine_files.engine_path(wanted.source.base, wanted.batch, cfg.gpu_id, word),
        _beside(wanted.source.base, wanted.batch, word),
    )


def _candidates(cfg: ModelConfig, wanted: Wanted) -> list[Path]:
    """Where a plan may be: another runtime than the default may compute what this one does not."""
    paths = list(_targets(cfg, wanted))
    asked = MODES[cfg.network_mode]
    if wanted.runtime is None and not wanted.demanded and asked != wanted.precision:
        paths += _targets(cfg, wanted, asked)
    return paths


def _on_precision(cfg: ModelConfig, plan: Plan, wanted: Wanted) -> list[Notice]:
    """What to tell about the precision of the plan that is used."""
    precision, _, notices = wanted.decided(plan.header.runtime.name)
    if plan.header.asked == precision:
        return notices
    text = f"network-mode={int(cfg.network_mode)}, but the engine was built for {plan.header.asked}"
    return [_at_key(cfg, Notice("info", f"{text}: it is used as it is"), "model_engine_file")]


def _build_and_keep(
    cfg: ModelConfig,
    wanted: Wanted,
    notes: list[Notice],
    options: BuildOptions,
    *,
    rebuild: bool,
) -> Plan:
    if wanted.source is None or wanted.model is None:
        raise no_model(cfg)
    with _target_held(cfg, wanted, notes) as (target, held):
        if held and not rebuild:
            # another process may have built it while this one waited
            plan, _ = _try(target, wanted) if target and target.exists() else (None, "")
            if plan is not None:
                _check_picture(plan.inputs[0], cfg)
                _note_found(plan, wanted, notes)
                return plan
        network = wanted.source.network()
        notes += wanted.source.told
        _check_picture(network.inputs[0], cfg)
        options = replace(
            options,
            max_batch=wanted.batch,
            precision=wanted.precision,
            exact=True,
            rules=wanted.decided(wanted.runtime or DEFAULT_BACKEND)[1],
            dynamic_batch=wanted.dynamic_batch,
            infer_dims=wanted.infer_dims,
            input_order=wanted.order,
            runtime=wanted.runtime,
            tactic=wanted.tactic,
            tuning=wanted.tuning,
            picture_range=picture_range(cfg),
        )
        try:
            plan = build(network, options)
        except UnknownOperators as error:
            from noria.custom.plugin_hints import plugin_hints

            raise error.told_with(plugin_hints(cfg.custom_lib_path)) from error.__cause__
        if target is None:
            notes.append(Notice("info", "built, kept in memory", str(wanted.model)))
            return plan
        _make_room(target, wanted, notes)
        try:
            plan.write(target)
        except EngineError as error:
            text = f"{error.found}; built at each start and kept in memory"
            notes.append(Notice("warning", text, str(target)))
        else:
            notes.append(Notice("info", f"built from {wanted.model.name}", str(target)))
    return plan


@contextmanager
def _target_held(
    cfg: ModelConfig, wanted: Wanted, notes: list[Notice]
) -> Iterator[tuple[Path | None, bool]]:
    """`_free_target`, and whether its lock is held; another one if what was free is taken by the
    time the lock is held."""
    target = _free_target(cfg, wanted, notes)
    while True:

        def on_wait(target: Path | None = target) -> None:
            text = "waited for another process that was building it"
            notes.append(Notice("info", text, str(target)))
            _log.warning("%s: another process is building this engine: waiting for it", target)

        with locked(target, on_wait=on_wait) if target else nullcontext(False) as held:
            still = _free_target(cfg, wanted, []) if held else target
            if still == target:
                yield target, held
                return
        target = still


def _free_target(cfg: ModelConfig, wanted: Wanted, notes: list[Notice]) -> Path | None:
    """Where to save: never over a file that noria did not write, nor over one that serves another
    config."""
    usual, beside = _targets(cfg, wanted)
    for target, instead in ((usual, f"saved as {beside.name}"), (beside, "kept in memory")):
        if not (target.exists() or target.is_symlink()):
            return target
        if is_plan_file(target):
            _, reason = _try(target, wanted)
            return (
                engine_files.keyed(target, wanted.content) if reason.kind == "content" else target
            )
        try:
            Plan.load(target)
        except EngineError as error:
            text = f"{error.found}: not overwritten, noria's engine is {instead}"
            notes.append(Notice("warning", text, str(target)))
    return None


def _make_room(target: Path, wanted: Wanted, notes: list[Notice]) -> None:
    """Keep an engine at `target` that is as good, only run another way."""
    if not is_plan_file(target):
        return
    _, reason = _try(target, wanted)
    if reason.kind == "choice" and (kept := engine_files.set_aside(target)):
        notes.append(Notice("info", f"{reason}; kept as {kept.name}", str(target)))


def no_model(cfg: ModelConfig) -> NoriaError:
    """The error for a config whose model is needed, and of which `source_of` finds none."""
    library = cfg.custom_lib_path
    if library is not None and not library.is_file():  # it may have made the model
        return missing_file(cfg, "custom-lib-path", library)
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
        fix = [ENCODED_MODEL]
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
