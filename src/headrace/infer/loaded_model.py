"""A config's engine with everything around it, ready to run. One `Inferencer` may change models."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace._core.errors import EngineError
from headrace._core.findings import Finding
from headrace._core.gpu.cuda import gpu_decodes
from headrace._core.notices import notices_on_errors
from headrace._core.text import printable
from headrace._core.threads import Countdown
from headrace._core.types import Array
from headrace.config.enums import ProcessMode
from headrace.config.profile import with_profile
from headrace.engine.device import CPU, LANES, Device
from headrace.engine.machine import usable_cores
from headrace.infer.attributes import ClassifierPostprocessor
from headrace.infer.decoding import parser_and_labels, postprocessor_of
from headrace.infer.model import load_or_build
from headrace.infer.model.image_input import network_dims
from headrace.infer.parser_choice import (
    Choice,
    library_for_inputs,
    skipped_files,
)
from headrace.infer.parser_fit import check_outputs
from headrace.infer.parsers.labels import Labels
from headrace.infer.postprocess import DetectorPostprocessor, Postprocessor
from headrace.infer.preprocess import Preprocessor
from headrace.infer.record import Record
from headrace.infer.run_options import RunOptions
from headrace.infer.runners import GpuRunner, HostRunner
from headrace.infer.selection import Selector
from headrace.infer.watch import Watch
from headrace.meta import NetworkInfo

if TYPE_CHECKING:
    from headrace.config import ModelConfig
    from headrace.engine.plan import Plan
    from headrace.engine.session import Session
    from headrace.infer.gpu.hits import HitFinder
    from headrace.infer.gpu.scaler import GpuScaler

_log = logging.getLogger("headrace.engine")
_SLOW_S = 60.0  # after which a service's log should say what it waits for

MAX_STREAMS = 4  # each holds the engine's memory for one batch

_MAX_LABELS = 12  # in a notebook


@dataclass(slots=True, weakref_slot=True)
class Model:
    """Engine, scaler, parser and labels of one config.

    Attributes:
        input_name: the image input.
        preprocessor: None where the caller prepares the tensors.
        postprocessor: None for network-type 100.
        parser: where the parser comes from, if there is one.
        selector: which objects are inferred on (secondary mode), else None.
        extra_inputs: constants for the inputs beside the first, where the caller gives no tensor.
        notices: what was decided while loading.
        engine_path: the saved engine; None if it could not be saved.
        watch: the plausibility watch; None where nothing is scaled here.
        gpu_scaler: does the preprocessor's work where the engine is on a GPU; else None.
        device: where the engine runs.
        runner: how its engine runs.
    """

    config: ModelConfig
    session: Session
    network: NetworkInfo
    preprocessor: Preprocessor | None
    postprocessor: Postprocessor | None
    parser: Choice | None
    labels: Labels
    selector: Selector | None
    extra_inputs: dict[str, Array] = field(default_factory=dict)
    notices: list[Finding] = field(default_factory=list)
    engine_path: Path | None = None
    watch: Watch | None = None
    gpu_scaler: GpuScaler | None = None
    device: Device = CPU
    runner: HostRunner = field(init=False)

    @property
    def input_name(self) -> str:
        """Name of the image input."""
        return self.session.inputs[0].name

    @property
    def asynchronous(self) -> ClassifierPostprocessor | None:
        """Postprocessor of an asynchronous classifier: results go to the history only; or None.

        Source: spec D.4.
        """
        post = self.postprocessor
        if not self.config.classifier_async_mode or self.selector is None:
            return None
        return post if isinstance(post, ClassifierPostprocessor) else None

    @classmethod
    def load(
        cls, cfg: ModelConfig, options: RunOptions, record: Record, device: Device = CPU
    ) -> Model:
        """Check, load or build the engine, and get everything ready. Source: spec D.7.

        Args:
            cfg: of the model.
            options: how it runs, on `device`; what the config decides is None.
            record: gets what is counted.
            device: where the engine runs.

        Raises:
            ConfigError, ModelError, EngineError, CustomLibraryError, ParserError: whatever is
                wrong, before the first frame; with the notices so far.
        """
        cfg = with_profile(cfg)
        notices = [*device.notices, *cfg.notices]
        of_parser: list[Finding] = []
        with device.entered(), notices_on_errors(notices, of_parser):
            choice, labels = _checked(cfg, options, notices)
            of_parser += [] if choice is None else choice.all_notices()
            with _told_when_slow(cfg):
                session, plan = _open(cfg, options, device)
            notices += plan.decisions
            return cls._ready(
                cfg, session, choice, labels, notices, options, record, device, plan.path
            )

    @classmethod
    def around(
        cls,
        cfg: ModelConfig,
        session: Session,
        options: RunOptions,
        record: Record,
        device: Device = CPU,
    ) -> Model:
        """`load` with an engine that is open already; it is closed if anything is wrong.

        Raises:
            ConfigError, CustomLibraryError, ParserError: as `load`.
        """
        cfg = with_profile(cfg)
        notices = [*device.notices, *cfg.notices]
        with device.entered(), notices_on_errors(notices):
            try:
                choice, labels = _checked(cfg, options, notices)
            except BaseException:
                session.close()
                raise
            return cls._ready(cfg, session, choice, labels, notices, options, record, device, None)

    @classmethod
    def _ready(
        cls,
        cfg: ModelConfig,
        session: Session,
        choice: Choice | None,
        labels: Labels,
        notices: list[Finding],
        options: RunOptions,
        record: Record,
        device: Device,
        engine_path: Path | None,
    ) -> Model:
        try:
            network = _network(cfg, session)
            preprocessor = None
            if not cfg.input_tensor_from_meta:
                preprocessor = Preprocessor.from_config(
                    cfg, network.width, network.height, network.channels
                )
                notices += preprocessor.notices
            gpu_scaler = None if preprocessor is None else _gpu_scaler(preprocessor, session)
            check_outputs(cfg, choice, session.outputs, network, labels, notices)
            selector = None
            if cfg.process_mode is ProcessMode.SECONDARY and not cfg.input_tensor_from_meta:
                selector = Selector(cfg, generation=options.rules, tally=record.tally.objects)
            model = cls(
                cfg,
                session,
                network,
                preprocessor,
                postprocessor_of(cfg, network, choice, labels, selector, options, record),
                choice,
                labels,
                selector,
                notices=notices,
                engine_path=engine_path,
                gpu_scaler=gpu_scaler,
                device=device,
            )
            if gpu_scaler is None:
                model.runner = HostRunner(model, record)
            else:
                post, finder = model.postprocessor, _hit_finder(model)
                ahead = post if isinstance(post, DetectorPostprocessor) else None
                model.runner = GpuRunner(model, record, gpu_scaler, finder, ahead)
            if len(session.inputs) > 1:
                library = library_for_inputs(cfg, choice, abi=options.abi, guard=options.guard)
                from headrace.infer.model.extra_inputs import initialize_extra_inputs

                model.extra_inputs = initialize_extra_inputs(
                    cfg, session, network, library, notices
                )
            if choice is not None and choice.library is not None:
                session.output_memory = choice.library.output_memory
            if preprocessor is not None and model.asynchronous is None:
                model.watch = Watch(model, record, options)
            if cfg.warmup_engine and not session.options.graph:  # its first run is for its graph
                model._warm_up()
        except BaseException:
            session.close()
            raise
        return model

    def close(self) -> None:
        """Release the engine, and end the library's worker process if it has one."""
        if self.watch is not None:
            self.watch.close()
        with self.device.entered():
            self.session.close()
            if self.parser is not None:
                self.parser.close()

    def all_notices(self) -> list[Finding]:
        """Decisions so far, those of the custom library and its parser included."""
        notices = [*self.notices, *([] if self.parser is None else self.parser.all_notices())]
        if self.selector is not None:
            notices += self.selector.notices
        return [*notices, *self.session.notices]

    def feeds(self, tensor: Any) -> dict[str, Any]:
        """The inputs of one run: the images, and as many rows of each constant input."""
        return self.filled({self.input_name: tensor}, int(tensor.shape[0]))

    def filled(self, arrays: dict[str, Any], rows: int) -> dict[str, Any]:
        """The inputs of a run of `rows` items: the given ones, and constants for the others."""
        feeds = dict(arrays)
        for name, constant in self.extra_inputs.items():
            if name not in feeds:
                feeds[name] = constant[:rows] if name in self.session.batched_inputs else constant
        return feeds

    def facts(self) -> list[tuple[str, object]]:
        """List inputs, outputs, parser and decisions, as (name, value), for notebooks."""
        config, names = self.config, self.labels.detector
        more = f" and {len(names) - _MAX_LABELS} more" if len(names) > _MAX_LABELS else ""
        return [
            ("config", config.path),
            ("kind", f"{config.network_type.name.lower()}, {config.process_mode.name.lower()}"),
            ("component", config.component_id),
            ("profile", config.profile),
            ("inputs", ", ".join(map(str, self.session.inputs))),
            ("outputs", ", ".join(map(str, self.session.outputs))),
            ("batch-size", config.batch_size),
            ("parser", "" if self.parser is None else self.parser.source),
            ("labels", ", ".join(names[:_MAX_LABELS]) + more),
            ("engine", self.engine_path or "not saved"),
        ]

    def _warm_up(self) -> None:
        """Run once for each batch size, on zeros; a failure is a notice. Source: spec D.7."""
        spec = self.session.inputs[0]
        item = [d for d in spec.shape[1:] if isinstance(d, int)]
        for size in range(1, min(self.session.max_batch, self.config.batch_size) + 1):
            try:
                self.session.run(self.feeds(np.zeros((size, *item), spec.dtype)))
            except EngineError as error:
                text = f"warm-up with a batch of {size} failed: {error:brief}"
                where = str(self.config.path)
                self.notices.append(Finding("warm-up-failed", "warning", text, where))
                return


@contextmanager
def _told_when_slow(cfg: ModelConfig) -> Iterator[None]:
    """Log that a runtime takes long: a model can ask for endless work in a call without stop."""

    def tell() -> None:
        _log.warning(
            "%s: the engine is not ready after %g s: the runtime still loads or compiles the "
            "model; Ctrl-C or SIGTERM ends the command",
            printable(str(cfg.path)),
            _SLOW_S,
        )

    countdown = Countdown(_SLOW_S, tell, "headrace-slow")
    try:
        yield
    finally:
        countdown.stop()


def _checked(
    cfg: ModelConfig, options: RunOptions, notices: list[Finding]
) -> tuple[Choice | None, Labels]:
    """Parser and labels, which need no engine; adds to `notices`."""
    cfg.check_files(skip=skipped_files(cfg))
    return parser_and_labels(cfg, options, notices)


def _network(cfg: ModelConfig, session: Session) -> NetworkInfo:
    spec = session.inputs[0]
    if not cfg.input_tensor_from_meta or len(spec.shape) == 4:
        channels, height, width = network_dims(spec, cfg)
        return NetworkInfo(width, height, channels)
    # the caller's tensors may have any axes; parsers get the last three
    dims: Sequence[int] = [d if isinstance(d, int) else 1 for d in spec.shape[1:]]
    channels, height, width = (1, 1, 1, *dims)[-3:]
    return NetworkInfo(width, height, channels)


def _open(cfg: ModelConfig, options: RunOptions, device: Device) -> tuple[Session, Plan]:
    if options.guard is not None:
        cfg = cfg.with_overrides(custom_lib_guard=options.guard)
    threads, streams = options.threads, options.streams
    free = threads is None and streams is None
    if streams is None and device.is_gpu:
        streams = LANES
    elif streams is None:
        total = threads or usable_cores()
        streams = min(total, MAX_STREAMS)
        threads = max(1, total // streams)
    plan = load_or_build(
        cfg,
        threads=threads,
        streams=streams,
        rebuild=options.rebuild,
        device=device.kind,
    )
    if free and plan.decides_sharing:
        plan.threads, threads, streams = None, None, None
    if plan.tactic is not None and plan.tactic.graph:
        reason = None
        if streams not in (None, 1):
            reason = f": {streams} runs at the same time are asked for"
        elif gpu_decodes():
            reason = " as long as videos are decoded on the GPU: it was opened beside them"
        if reason:
            text = f"its CUDA graph is not used{reason}"
            plan.decisions.append(Finding("cuda-graph-unused", "info", text, str(cfg.path)))
    return plan.open_session(threads=threads, streams=streams), plan


def _gpu_scaler(preprocessor: Preprocessor, session: Session) -> GpuScaler | None:
    """The scaler of an engine on a GPU; None elsewhere, or where the input is of another type."""
    dtype = session.inputs[0].dtype
    if not session.device.startswith("cuda") or dtype not in (np.float32, np.float16):
        return None
    from headrace.infer.gpu.scaler import GpuScaler

    return GpuScaler(preprocessor, half=dtype == np.float16)


def _hit_finder(model: Model) -> HitFinder | None:
    """The finder of a model's candidates on the GPU; None where its outputs are read otherwise."""
    post, outputs = model.postprocessor, model.session.outputs
    if not isinstance(post, DetectorPostprocessor) or not post.reads_tables:
        return None
    if any(o.dtype not in (np.float32, np.float16) or len(o.shape) < 2 for o in outputs):
        return None
    from headrace.infer.gpu.hits import HitFinder

    return HitFinder()
