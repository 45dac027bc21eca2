"""Building a plan from a network."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from headrace._core.errors import EngineError, PluginError
from headrace._core.findings import Finding
from headrace._core.types import Array
from headrace.engine.assemble_plan import BuildResult, assemble_plan, prebuilt_plan, session_options
from headrace.engine.backends import (
    DEFAULT_BACKEND,
    GPU_RUNTIMES,
    Backend,
    TypedRunner,
    get_backend,
    installed_backends,
)
from headrace.engine.dynamic_batch import with_free_batch
from headrace.engine.input_shapes import AxisOrder, Dims, extra_inputs, resolve_shape, sample_inputs
from headrace.engine.onnx_message import model_bytes
from headrace.engine.open_blobs import open_blobs
from headrace.engine.plan import MODEL_BLOB, Blob, Plan
from headrace.engine.plan_header import MAX_BATCH, Precision, TacticRecord, TuningRecord
from headrace.engine.plugin_graph.plugin_layers import PluginLayers, Profiles, build_plugins
from headrace.engine.plugin_graph.plugin_timing import Bake, PluginTiming
from headrace.engine.precision.capability import choose
from headrace.engine.precision.lower import PrecisionGraph, graph_precision, in_fp32, lower_or_fp32
from headrace.engine.precision.rules import OWN_SCALES, PrecisionRules, has_own_scales
from headrace.engine.tactic import Tactic
from headrace.engine.tuning.int8_speed import time_int8
from headrace.engine.tuning.precisions import tune_precisions
from headrace.engine.tuning.tune import Progress, TuneOptions
from headrace.engine.whole_model import (
    check_runtime,
    maps_weights,
    open_whole,
    split_blobs,
    why_whole,
)
from headrace.network.network import Network
from headrace.network.tensor_spec import TensorSpec
from headrace.plugins.nodes import has_plugins
from headrace.plugins.registry import PluginRegistry, known_plugins


@dataclass(frozen=True, slots=True)
class BuildOptions:
    """Options of a build.

    Attributes:
        batched: True: axis 0 of every input and output is the batch, and the first input an image.
            False: the plan takes any number of inputs of any shape, free axes included; nothing
            below about batches and images applies.
        max_batch: most items of one run, 1 to 1024.
        precision: what may be computed in, as TensorRT's flags: FP16 is built where it is faster.
        exact: True puts `precision` into the graph, whether it is faster or not.
        rules: scales for INT8, layers of other precisions, types of outputs.
        dynamic_batch: True frees the batch of a model that fixes it at 1, if that turns out right.
        infer_dims: channels, height, width for a model that leaves them free.
        input_order: order of the axes of the image input.
        runtime: name of the backend; None is the default one, or with `tuning` all that are there.
            Runtimes that `tuning` names go before it: it is the one if none of them can be timed.
        threads, streams: for the session that the build opens; `Plan.open_session` hands it out.
        tactic: the way to run it, pinned; goes before `runtime`.
        tuning: finds the best tactic, see `headrace.engine.tuning.tune`; not with `tactic`.
        time_int8: True times INT8 beside FP32 before it is built, chooses among the CPU's runtimes
            where `runtime` leaves them open, and reports the ratio; not with `tactic` or `tuning`.
        image_range: least and greatest value of the images that tuning runs on.
        progress: called as tuning goes on.
        profiles: of a network that has plugins: per optimisation profile, shapes (min, opt, max) by
            input; without any, plugins are built for 1 to `max_batch` items.
        registry: where the creators of its plugins are; None: those of this process.
    """

    batched: bool = True
    max_batch: int = 1
    precision: Precision = "fp32"
    exact: bool = False
    rules: PrecisionRules = field(default_factory=PrecisionRules)
    dynamic_batch: bool = False
    infer_dims: Dims | None = None
    input_order: AxisOrder = "NCHW"
    runtime: str | None = None
    threads: int | None = None
    streams: int | None = None
    tactic: Tactic | None = None
    tuning: TuneOptions | None = None
    time_int8: bool = False
    image_range: tuple[float, float] = (0.0, 1.0)
    progress: Progress | None = None
    profiles: Profiles = ()
    registry: PluginRegistry | None = None


def build(network: Network, options: BuildOptions | None = None) -> Plan:
    """Build a plan: fix the shapes, check the operators, let the runtime load it once.

    Args:
        network: the network; it is not changed.
        options: None takes the defaults.

    Raises:
        ModelError: external data changed since the model was read.
        EngineError: shapes that stay free or contradict `infer_dims`; operators
            that the runtime does not know; anything else the runtime refuses.
    """
    options = options or BuildOptions()
    if not 1 <= options.max_batch <= MAX_BATCH:
        raise EngineError(
            f"max_batch={options.max_batch}",
            where=str(network.path) if network.path else repr(network),
            expected=f"1 to {MAX_BATCH}",
        )
    if network.built is not None and (taken := prebuilt_plan(network, options)) is not None:
        return taken
    return _Build(network, options).run()


def _types_notice(runner: TypedRunner, runtime: str, where: str) -> list[Finding]:
    """Count the layers that the runtime itself computes in FP16."""
    types = runner.layer_types()
    halves, singles = types.get("f16", 0), types.get("f32", 0)
    if not halves + singles:
        return []
    text = f"{runtime} computes {halves} of its {halves + singles} floating-point layers in FP16"
    return [Finding("layers-precision", "info", text, Path(where).name)]


class _Build:
    """One build, and its decisions so far.

    Attributes:
        tunes: True if the fastest tactic is looked for.
        shape: of the first input, its batch None if free; empty for a plan without a batch.
    """

    def __init__(self, network: Network, options: BuildOptions) -> None:
        self.network, self.options = network, options
        self.where = str(network.path) if network.path else repr(network)
        self.decisions: list[Finding] = []
        self.shape = self._first_shape()
        self.tactic = options.tactic or Tactic(
            options.runtime or network.only_runtime or DEFAULT_BACKEND
        )
        check_runtime(network, self.tactic.runtime, self.where)
        self.tunes = options.tuning is not None and options.tactic is None
        self.tuning: TuningRecord | None = None
        self.asked: Precision = options.precision
        self.tries: tuple[TacticRecord, ...] = ()

    def run(self) -> Plan:
        options = self.options
        asked = self.asked = self._precision()
        self._settle_batch()
        get_backend(self.tactic.runtime)  # not installed: refused before anything long begins
        inputs = self.inputs = list(self.network.inputs)
        if options.batched:
            image = TensorSpec(inputs[0].name, inputs[0].dtype, self.shape)
            self.inputs = [image, *extra_inputs(self.network, self.shape, self.where)]
        if why_whole(self.network) is not None:
            whole, notices = open_whole(self.network, options, self.tactic, self.shape, self.where)
            self.decisions += notices
            return self._assembled(whole)
        lowered = self._tuned(asked) or self._timed(asked)
        if lowered is None:
            lowered = lower_or_fp32(self.network, asked, options.rules, [self.tactic.runtime])
        built, lowered = self._opened(lowered)
        built.rules = options.rules.record(asked, lowered.weight_bits)
        built.tuning, built.tries = self.tuning, self.tries
        return self._assembled(built)

    def _assembled(self, built: BuildResult) -> Plan:
        return assemble_plan(
            built,
            self.network,
            self.options,
            inputs=self.inputs,
            fixed_batch=self._fixed_batch,
            decisions=self.decisions,
            where=self.where,
        )

    @property
    def _fixed_batch(self) -> int | None:
        return self.shape[0] if self.shape else None

    def _first_shape(self) -> tuple[int | None, ...]:
        """Complete the first input's shape, its batch None if free; empty without a batch."""
        network, options = self.network, self.options
        if options.batched:
            if not network.inputs:
                raise EngineError(
                    "the graph has no inputs", where=self.where, expected="a batch of images"
                )
            return resolve_shape(
                network.inputs[0], options.infer_dims, options.input_order, where=self.where
            )
        if options.tuning is not None and any(
            not isinstance(d, int) for spec in network.inputs for d in spec.shape
        ):
            raise EngineError(
                "inputs leave axes free: " + ", ".join(map(str, network.inputs)),
                where=self.where,
                expected="fixed shapes to tune for",
            )
        return ()

    def _precision(self) -> Precision:
        """Choose the precision for the runtimes that take part."""
        options = self.options
        if options.exact:
            return options.precision
        if options.precision in ("int8", "best") and has_own_scales(self.network):
            self.decisions.append(OWN_SCALES)
            return "fp32"
        missing = None if options.rules.scales else "there are none"
        among = options.tuning.runtimes if self.tunes and options.tuning else None
        one = options.runtime or not self.tunes
        runtimes = among or ([self.tactic.runtime] if one else installed_backends())
        asked, notice = choose(options.precision, runtimes, no_table=missing, tuned=self.tunes)
        self.decisions += [notice] if notice else []
        return asked

    def _settle_batch(self) -> None:
        """Free the batch if that was asked for; note the effect of a fixed one."""
        options = self.options
        if options.dynamic_batch and self.shape and self.shape[0] == 1 < options.max_batch:
            self._free_batch()
        fixed = self._fixed_batch
        if fixed is not None and fixed > MAX_BATCH:
            raise EngineError(
                f"the model fixes its batch at {fixed}",
                where=self.where,
                expected=f"at most {MAX_BATCH}: every run would be padded to it",
            )
        if fixed is not None and fixed != options.max_batch:
            self.decisions.append(
                _batch_notice(fixed, options.max_batch, self.network, asked=options.dynamic_batch)
            )

    def _free_batch(self) -> None:
        network, shape = self.network, self.shape
        why = why_whole(network) or ("it has plugins" if has_plugins(network) else None)
        if why is not None:
            self.decisions.append(
                Finding("batch-fixed", "warning", f"the batch stays fixed at 1: {why}")
            )
            return
        image = network.inputs[0]
        extra = extra_inputs(network, shape, self.where)
        inputs = [TensorSpec(image.name, image.dtype, shape), *extra]
        self.network, notice = with_free_batch(
            network, inputs, shape, self.options.image_range, self.where
        )
        self.decisions.append(notice)
        if self.network is not network:
            self.shape = (None, *shape[1:])

    def _bake(self, network: Network) -> bytes:
        return model_bytes(network, shape=self.shape, where=self.where, decisions=self.decisions)

    def _bake_offer(self, network: Network) -> bytes:
        """`_bake` of a graph that is not built: it decides nothing."""
        return model_bytes(network, shape=self.shape, where=self.where, decisions=[])

    def _baked(
        self, backend: Backend, network: Network
    ) -> tuple[dict[str, Blob], PluginLayers | None]:
        """The model as the runtime gets it, and its plugins."""
        apart = self.options.batched and maps_weights(network, backend)
        if apart and not has_plugins(self.network):
            blobs = split_blobs(
                network, shape=self.shape, where=self.where, decisions=self.decisions
            )
            return blobs, None
        model = self._bake(network)
        layers = self._plugins(model)
        return {MODEL_BLOB: model if layers is None else layers.model}, layers

    def _plugins(self, model: bytes) -> PluginLayers | None:
        return build_plugins(
            self.network,
            model,
            inputs=self.inputs,
            max_batch=self._fixed_batch or self.options.max_batch,
            batched=self.options.batched,
            profiles=self.options.profiles,
            scales=self.options.rules.scales if self.asked in ("int8", "best") else None,
            registry=self.options.registry,
            where=self.where,
        )

    def _tuned(self, asked: Precision) -> PrecisionGraph | None:
        """The graph of the best tactic, which becomes `tactic`; None if there is none."""
        options = self.options
        if not self.tunes or options.tuning is None:
            return None
        items = self._fixed_batch or options.max_batch
        bake, inputs, feeds = self._timed_share(items)
        tuning = options.tuning
        if options.runtime is not None and not tuning.runtimes:
            tuning = replace(tuning, runtimes=[options.runtime])
        outcome, lowered, notices = tune_precisions(
            self.network,
            bake,
            inputs,
            asked,
            options.rules,
            items=items,
            image_range=options.image_range,
            feeds=feeds,
            offer=self._bake_offer if feeds is None else None,
            options=tuning,
            progress=options.progress,
        )
        self.decisions += notices
        if outcome.tactic is None:
            return None
        self.tactic, self.tries = outcome.tactic, outcome.records
        self.tuning = outcome.summary(tuning.objective, tuning.budget_s, items)
        return lowered

    def _timed_share(
        self, items: int
    ) -> tuple[Bake, Sequence[TensorSpec], Mapping[str, Array] | None]:
        """Return the part that tactics are timed on: its `bake`, inputs and feeds.

        Of a network with plugins that is the runtime's share, whose feeds plugins give.
        """
        if not has_plugins(self.network):
            return self._bake, self.inputs, None
        low, high = self.options.image_range
        feeds = sample_inputs(self.inputs, items, low=low, high=high)
        timing = PluginTiming(self.network, self._bake, self._plugins, feeds)
        return timing.bake, timing.inputs, timing.feeds

    def _timed(self, asked: Precision) -> PrecisionGraph | None:
        """The graph of the fastest INT8, its way of running now `tactic`; None if not timed."""
        options = self.options
        if not options.time_int8 or asked not in ("int8", "best") or not options.rules.scales:
            return None
        if self.tunes or options.tactic is not None or self.tactic.runtime in GPU_RUNTIMES:
            return None
        one = options.runtime or self.network.only_runtime
        items = self._fixed_batch or options.max_batch
        bake, inputs, feeds = self._timed_share(items)
        timed = time_int8(
            self.network,
            bake,
            inputs,
            asked,
            options.rules,
            items=items,
            image_range=options.image_range,
            runtimes=[one] if one else [r for r in installed_backends() if r not in GPU_RUNTIMES],
            feeds=feeds,
            progress=options.progress,
        )
        if timed is None:
            return None
        self.decisions.append(timed.notice)
        self.tactic, self.tries = timed.tactic, timed.records
        return timed.graph

    def _opened(self, lowered: PrecisionGraph) -> tuple[BuildResult, PrecisionGraph]:
        """The runner, in FP32 if the runtime refuses another precision."""
        options = self.options
        try:
            return self._open(lowered), lowered
        except PluginError:
            raise
        except EngineError as error:
            if lowered.precision == "fp32" and not options.rules.pins:
                raise
            runtimes = [self.tactic.runtime]
            lowered = in_fp32(self.network, lowered.precision, options.rules, runtimes, error)
            self.tries, self.tuning = (), None
            return self._open(lowered, half=False), lowered

    def _open(self, lowered: PrecisionGraph, *, half: bool = True) -> BuildResult:
        backend = get_backend(self.tactic.runtime)
        started = time.perf_counter()
        blobs, layers = self._baked(backend, lowered.network)
        precision = graph_precision(lowered.network)
        run_options = session_options(self.tactic, self.options, precision)
        if not half:
            run_options = replace(run_options, half=None)
        try:
            registry = self.options.registry or known_plugins()
            runner, blobs = open_blobs(
                backend, blobs, run_options, self.network, self.where, layers, registry
            )
        except EngineError:
            if layers is not None:
                layers.close()
            raise
        self.decisions += [*lowered.notices, *(() if layers is None else layers.notices)]
        if run_options.half == "fp16" and isinstance(runner, TypedRunner):
            self.decisions += _types_notice(runner, backend.name, self.where)
        return BuildResult(
            backend=backend,
            tactic=self.tactic,
            precision=precision,
            runner=runner,
            run_options=run_options,
            load_s=time.perf_counter() - started,
            blobs=blobs,
            outputs=list(lowered.network.outputs if runner is None else runner.outputs),
            plugins=() if layers is None else layers.records,
        )


def _batch_notice(fixed: int, requested: int, network: Network, *, asked: bool) -> Finding:
    if fixed > requested:
        text = f"the model fixes its batch at {fixed}: batches of {requested} are padded to it"
    else:
        runs = -(-requested // fixed)
        text = f"the model fixes its batch at {fixed}: "
        text += f"batch {requested} runs as {runs} runs of {fixed}"
        stays = asked or has_plugins(network) or network.only_runtime is not None
        if fixed == 1 and stays:
            text += "; an export with a free batch runs it at once"
        elif fixed == 1:
            text += (
                "; headrace build --dynamic-batch, or an export with a free batch, runs it at once"
            )
    # the name alone: the notice is kept in the plan, and the model may be moved
    return Finding("batch-split", "info", text, network.path.name if network.path else None)
