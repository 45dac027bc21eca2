"""Two models to compare: configs, bare models or engine files, opened with their options."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from headrace._core.errors import ConfigError, EngineError
from headrace._core.findings import Finding
from headrace._core.formats.tensorrt import is_tensorrt_file
from headrace._core.notices import notices_on_errors
from headrace.config import ModelConfig
from headrace.config.enums import ProcessMode
from headrace.config.overrides import Overrides
from headrace.config.profile import with_profile
from headrace.engine.device import CPU, Device, choose_device
from headrace.engine.plan import Plan
from headrace.engine.plan_header import Precision
from headrace.engine.tensorrt_plan import plan_from_tensorrt
from headrace.infer.loaded_model import Model
from headrace.infer.model import load_or_build
from headrace.infer.record import Record
from headrace.infer.run_options import RunOptions

if TYPE_CHECKING:
    from headrace.engine.session import Session

ENGINES = (".engine", ".plan", ".trt")
"""Suffixes of files that hold an engine."""


@dataclass(frozen=True, slots=True)
class SideSpec:
    """A model to compare.

    Attributes:
        path: a config, a bare model, or an engine, which runs with the config of the other side.
        overrides: keys set over the config.
        precision: precision in the graph; None: as `headrace run` takes it.
        backend: name of the runtime; None: as `headrace run` takes it.
    """

    path: Path
    overrides: Overrides = field(default_factory=Overrides)
    precision: Precision | None = None
    backend: str | None = None

    @property
    def is_engine(self) -> bool:
        """True if the file holds an engine."""
        return self.path.suffix.lower() in ENGINES


@dataclass(slots=True)
class Side:
    """A model that is open.

    Attributes:
        letter: `A` or `B`.
        title: file name with the options that are set.
        plan: its engine.
        model: the engine with scaler, parser and labels.
        record: counts of its runs.
        notices: decisions of loading it.
    """

    letter: str
    title: str
    plan: Plan
    model: Model
    record: Record
    notices: list[Finding]

    @property
    def runtime(self) -> str:
        """Name of the runtime."""
        return self.plan.header.runtime.name

    @property
    def precision(self) -> str:
        """Lowest precision in the graph."""
        return self.plan.header.precision

    def close(self) -> None:
        """Release the engine."""
        self.model.close()


def open_sides(
    first: SideSpec | ModelConfig, second: SideSpec | ModelConfig, run: RunOptions
) -> tuple[Side, Side]:
    """Open both models; engines of given precision or runtime are built in memory.

    Args:
        first, second: what A and B are.
        run: how they run.

    Raises:
        ConfigError, ModelError, EngineError, CustomLibraryError: one cannot be used; both are
            engines, or they work on tensors of the caller.
    """
    configs = [_config(first), _config(second)]
    known = next((cfg for cfg in configs if cfg is not None), None)
    if known is None:
        raise ConfigError(
            "both are engines, which say nothing about scaling, parser and thresholds",
            where=f"{_name(first)}, {_name(second)}",
            expected="a config on one side at least: the engine runs with it",
            fix="headrace compare CONFIG ENGINE SOURCE",
        )
    a = _open("A", first, configs[0] or known, run)
    try:
        b = _open("B", second, configs[1] or known, run)
    except BaseException:
        a.close()
        raise
    return a, b


def _config(spec: SideSpec | ModelConfig) -> ModelConfig | None:
    if isinstance(spec, ModelConfig):
        return spec
    if not spec.is_engine:
        return ModelConfig.load(spec.path, spec.overrides)
    if spec.overrides.lines or spec.overrides.conf is not None:
        raise ConfigError("an engine has no keys to set", where=str(spec.path))
    if spec.precision or spec.backend:
        raise ConfigError("an engine has its precision and runtime already", where=str(spec.path))
    return None


def _name(spec: SideSpec | ModelConfig) -> str:
    return spec.path.name


def _open(letter: str, spec: SideSpec | ModelConfig, cfg: ModelConfig, run: RunOptions) -> Side:
    notices = list(cfg.notices)
    where = str(cfg.path)
    if cfg.input_tensor_from_meta:
        raise ConfigError(
            "input-tensor-from-meta=1: it takes tensors of the caller, and no images", where=where
        )
    if cfg.process_mode is ProcessMode.SECONDARY:
        cfg = cfg.with_overrides(process_mode=ProcessMode.PRIMARY)
        text = "a model of objects (process-mode=2): each whole image is taken as one object"
        notices.append(Finding("whole-frames", "info", text, where))
    cfg = run.over(cfg.with_overrides(interval=0, stabilize_buffer_count=0))
    cfg = with_profile(cfg)
    fixed = isinstance(spec, SideSpec) and (spec.is_engine or spec.backend)
    device = CPU if fixed else choose_device(run.device, cfg.gpu_id)
    plan = _plan(spec, cfg, run, device)
    notices += plan.decisions
    if isinstance(spec, SideSpec):
        _check_precision(spec, plan, notices)
    record = Record()
    with device.entered():
        session: Session = plan.open_session(threads=run.threads)
    model = Model.around(cfg, session, run, record, device)
    # those of a config that takes images whole are of no interest
    notices += [notice for notice in model.notices if notice not in cfg.notices]
    return Side(letter, _title(spec, plan), plan, model, record, notices)


def _plan(spec: SideSpec | ModelConfig, cfg: ModelConfig, run: RunOptions, device: Device) -> Plan:
    if isinstance(spec, ModelConfig):
        return load_or_build(cfg, threads=run.threads, device=device.kind)
    if spec.is_engine:
        path = spec.path
        return plan_from_tensorrt(path) if is_tensorrt_file(path) else Plan.load(path)
    forced = spec.precision is not None or spec.backend is not None
    return load_or_build(
        cfg,
        threads=run.threads,
        device=device.kind,
        precision=spec.precision,
        backend=spec.backend,
        save=not forced,
    )


def _check_precision(spec: SideSpec, plan: Plan, notices: list[Finding]) -> None:
    """Refuse another precision than the one to compare; a run falls back with a warning."""
    built = plan.header.precision
    if spec.precision in (None, "best", built):
        return
    with notices_on_errors(notices):
        raise EngineError(
            f"{spec.precision} is to be compared, and {built} is built",
            where=str(spec.path),
            expected=f"an engine in {spec.precision}: the warnings have the reason",
            fix="INT8 takes the scales that headrace calibrate finds"
            if spec.precision == "int8"
            else (),
        )


def _title(spec: SideSpec | ModelConfig, plan: Plan) -> str:
    parts = [_name(spec)]
    if isinstance(spec, SideSpec):
        parts += [f"{line.key}={line.text}" for line in spec.overrides.lines]
        if spec.overrides.conf is not None:
            parts.append(f"conf={spec.overrides.conf:g}")
    return f"{' '.join(parts)} ({plan.header.precision}, {plan.header.runtime.name})"
