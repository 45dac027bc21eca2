"""From a network to a plan."""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import noria
from noria.config.enums import TensorOrder
from noria.engine.backends import (
    DEFAULT_BACKEND,
    Backend,
    CompilingBackend,
    Runner,
    RunOptions,
    get_backend,
    installed_backends,
)
from noria.engine.fingerprint import fingerprint_files
from noria.engine.free_session import FreeSession
from noria.engine.image_input import Dims, complete_infer_dims, resolve_shape
from noria.engine.plan import COMPILED_BLOB, MODEL_BLOB, Plan, blob_record
from noria.engine.plan_header import (
    MAX_BATCH,
    DecisionRecord,
    ModelRecord,
    PlanHeader,
    Precision,
    RuntimeRecord,
    TacticRecord,
    TensorRecord,
)
from noria.engine.plan_session import PlanSession
from noria.engine.plugin_layers import PluginLayers, Profiles, build_plugins
from noria.engine.plugin_timing import PluginTiming
from noria.engine.precision.chain import choose
from noria.engine.precision.inspect import graph_precision
from noria.engine.precision.lower import Lowered, in_fp32, lower_or_fp32
from noria.engine.precision.rules import PrecisionRules
from noria.engine.sample_inputs import sample_inputs
from noria.engine.tactic import Tactic
from noria.engine.tune import Progress, TuneOptions
from noria.engine.tune_precisions import tune_precisions
from noria.errors import EngineError, ModelError, PluginError
from noria.network.network import Network
from noria.network.tensor_spec import TensorSpec
from noria.network.versions import stamp_older
from noria.notices import Notice
from noria.plugins.known import known_plugins
from noria.plugins.lookup import unknown_error
from noria.plugins.nodes import has_plugins
from noria.plugins.registry import PluginRegistry

__all__ = ["BuildOptions", "build", "model_bytes"]


@dataclass(frozen=True, slots=True)
class BuildOptions:
    """What a plan is built for.

    Attributes:
        batched: axis 0 of every input and output is the batch, and the first input a picture.
            Otherwise the plan takes whatever the model takes: any number of inputs of any shape,
            free axes included; nothing below about batches and pictures applies.
        max_batch: most items of one run, 1 to 1024.
        precision: what may be computed in, as TensorRT's flags: FP16 is built where it is faster.
        exact: `precision` is to be in the graph, whether it is faster or not.
        rules: scales for INT8, layers of other precisions, types of outputs.
        dynamic_batch: free the batch of a model that fixes it at 1, if that turns out right.
        infer_dims: channels, height, width for a model that leaves them free.
        input_order: order of the axes of the picture input.
        runtime: name of the backend; None is the default one, or with `tuning` all that are there.
        threads, streams: for the session that the build opens; `Plan.open_session` hands it out.
        tactic: the way to run it, pinned; goes before `runtime`.
        tuning: find the best tactic, see `noria.engine.tune`; not with `tactic`.
        picture_range: least and greatest value of the pictures that tuning runs on.
        progress: told how tuning goes.
        profiles: of a network without a batch that has plugins: per optimisation profile, shapes
            (min, opt, max) by input.
        registry: where the creators of its plugins are; None: those of this process.
    """

    batched: bool = True
    max_batch: int = 1
    precision: Precision = "fp32"
    exact: bool = False
    rules: PrecisionRules = field(default_factory=PrecisionRules)
    dynamic_batch: bool = False
    infer_dims: Dims | None = None
    input_order: TensorOrder = TensorOrder.NCHW
    runtime: str | None = None
    threads: int | None = None
    streams: int | None = None
    tactic: Tactic | None = None
    tuning: TuneOptions | None = None
    picture_range: tuple[float, float] = (0.0, 1.0)
    progress: Progress | None = None
    profiles: Profiles = ()
    registry: PluginRegistry | None = None


def build(network: Network, options: BuildOptions | None = None) -> Plan:
    """Build a plan: fix the shapes, check the operators, let the runtime load it once.

    Raises:
        ModelError: external data changed since the model was read.
        EngineError: shapes that stay free or contradict `infer_dims`; operators
            that the runtime does not know; anything else the runtime refuses.
    """
    options = options or BuildOptions()
    where = str(network.path) if network.path else repr(network)
    if not 1 <= options.max_batch <= MAX_BATCH:
        raise EngineError(
            f"max_batch={options.max_batch}", where=where, expected=f"1 to {MAX_BATCH}"
        )
    decisions: list[Notice] = []
    shape = _picture_shape(network, options, where)
    tactic = options.tactic or Tactic(options.runtime or DEFAULT_BACKEND)
    asked = options.precision
    tuned = options.tuning is not None and options.tactic is None
    if not options.exact:
        missing = None if options.rules.scales else "there are none"
        runtimes = [tactic.runtime] if options.runtime or not tuned else installed_backends()
        asked, notice = choose(asked, runtimes, no_table=missing, tuned=tuned)
        decisions += [notice] if notice else []
    if options.dynamic_batch and shape and shape[0] == 1 < options.max_batch:
        network, shape = _with_free_batch(network, shape, options, decisions, where)
    fixed_batch = shape[0] if shape else None
    if fixed_batch is not None and fixed_batch > MAX_BATCH:
        raise EngineError(
            f"the model fixes its batch at {fixed_batch}",
            where=where,
            expected=f"at most {MAX_BATCH}: every run would be padded to it",
        )
    if fixed_batch is not None and fixed_batch != options.max_batch:
        decisions.append(_batch_notice(fixed_batch, options.max_batch, network))
    get_backend(tactic.runtime)  # not installed: told before anything long begins
    inputs = list(network.inputs)
    if options.batched:
        picture = inputs[0]
        inputs = [
            TensorSpec(picture.name, picture.dtype, shape),
            *_extra_inputs(network, shape, where),
        ]
    if network.is_large:
        from noria.engine.large import build_large

        return build_large(network, options, inputs, shape, decisions, where)
    bake = partial(model_bytes, shape=shape, where=where, decisions=decisions)
    plugins = partial(
        build_plugins,
        network,
        inputs=inputs,
        max_batch=fixed_batch or options.max_batch,
        batched=options.batched,
        profiles=options.profiles,
        registry=options.registry,
        where=where,
    )
    tuning = None
    tries: tuple[TacticRecord, ...] = ()
    lowered: Lowered | None = None
    if tuned and options.tuning is not None:
        items = fixed_batch or options.max_batch
        low, high = options.picture_range
        timing = None
        if has_plugins(network):
            feeds = sample_inputs(inputs, items, low=low, high=high)
            timing = PluginTiming(network, bake, plugins, feeds)
        found = tune_precisions(
            network,
            bake if timing is None else timing.bake,
            inputs if timing is None else timing.inputs,
            asked,
            options.rules,
            items=items,
            picture_range=options.picture_range,
            feeds=None if timing is None else timing.feeds,
            options=options.tuning
            if options.runtime is None
            else replace(options.tuning, runtimes=[options.runtime]),
            progress=options.progress,
        )
        decisions += found.notices
        if found.tactic is not None:
            tactic, lowered = found.tactic, found.lowered
            tuning, tries = found.tuning, found.tries
    if lowered is None:
        lowered = lower_or_fp32(network, asked, options.rules, [tactic.runtime])
    backend = get_backend(tactic.runtime)
    started = time.perf_counter()
    model = bake(lowered.network)
    layers = plugins(model)
    model = model if layers is None else layers.model
    precision = graph_precision(lowered.network)
    run_options = tactic.run_options(options.max_batch, precision)
    run_options = replace(run_options, batched=options.batched)
    if options.threads is not None or options.streams is not None:
        run_options = replace(
            run_options, threads=options.threads, streams=options.streams or 1, spinning=False
        )
    try:
        runner, blobs = _open(backend, model, run_options, network, where, layers)
    except PluginError:
        raise
    except EngineError as error:
        if layers is not None:
            layers.close()
        if lowered.precision == "fp32" and not options.rules.pins:
            raise
        lowered = in_fp32(network, lowered.precision, options.rules, [tactic.runtime], error)
        run_options, tries, tuning = replace(run_options, half=None), (), None
        precision = graph_precision(lowered.network)
        model = bake(lowered.network)
        layers = plugins(model)
        model = model if layers is None else layers.model
        runner, blobs = _open(backend, model, run_options, network, where, layers)
    decisions += [*lowered.notices, *(() if layers is None else layers.notices)]
    if runner is None:
        cannot = f"built, but {backend.name} cannot run here: {backend.why_not()}"
        decisions.append(Notice("warning", cannot))
    if not tries:
        chosen = TacticRecord(
            runtime=backend.name,
            version=backend.version(),
            precision=precision,
            threads=tactic.threads,
            streams=tactic.streams,
            optimization=tactic.optimization,
            spinning=tactic.spinning,
            load_s=round(time.perf_counter() - started, 4),
            chosen=True,
        )
        tries = (chosen,)
    header = plan_header(
        noria=noria.__version__,
        runtime=RuntimeRecord(name=backend.name, version=backend.version()),
        precision=precision,
        batched=options.batched,
        rules=options.rules.record(asked, lowered.weight_bits),
        max_batch=options.max_batch,
        fixed_batch=fixed_batch,
        infer_dims=complete_infer_dims(options.infer_dims),
        model=model_record(network, model),
        inputs=inputs,
        outputs=list(lowered.network.outputs if runner is None else runner.outputs),
        tactics=tries,
        tuning=tuning,
        plugins=() if layers is None else layers.records,
        decisions=tuple(DecisionRecord.of(n) for n in decisions),
        blobs=tuple(blob_record(name, blob) for name, blob in blobs.items()),
    )
    plan = Plan(header, blobs)
    plan.threads = options.threads
    if runner is not None:
        kind = PlanSession if options.batched else FreeSession
        plan.keep_ready(kind(runner, header, where=where, options=run_options))
    return plan


def _picture_shape(network: Network, options: BuildOptions, where: str) -> tuple[int | None, ...]:
    """Axes of the first input of a batched plan, the batch None if it is free; else nothing."""
    if options.batched:
        if not network.inputs:
            raise EngineError(
                "the graph has no inputs", where=where, expected="a batch of pictures"
            )
        return resolve_shape(
            network.inputs[0], options.infer_dims, options.input_order, where=where
        )
    if options.tuning is not None and any(
        not isinstance(d, int) for spec in network.inputs for d in spec.shape
    ):
        raise EngineError(
            "inputs leave axes free: " + ", ".join(map(str, network.inputs)),
            where=where,
            expected="fixed shapes to tune for",
        )
    return ()


def _with_free_batch(
    network: Network,
    shape: tuple[int | None, ...],
    options: BuildOptions,
    decisions: list[Notice],
    where: str,
) -> tuple[Network, tuple[int | None, ...]]:
    from noria.engine.dynamic_batch import NOT_FREE, with_free_batch

    if network.is_large or has_plugins(network):
        why = "it is over 2 GiB" if network.is_large else "it has plugins"
        decisions.append(Notice("warning", f"{NOT_FREE}: {why}"))
        return network, shape
    picture = network.inputs[0]
    inputs = [TensorSpec(picture.name, picture.dtype, shape), *_extra_inputs(network, shape, where)]
    free, notice = with_free_batch(network, inputs, shape, options.picture_range, where)
    decisions.append(notice)
    return free, shape if free is network else (None, *shape[1:])


def _extra_inputs(network: Network, image: tuple[int | None, ...], where: str) -> list[TensorSpec]:
    """Inputs beside the picture: a free first axis is the batch, all others must be fixed."""
    named = dict(zip(network.inputs[0].shape, image, strict=True))  # free axes that got a number
    specs = []
    for spec in network.inputs[1:]:
        axes = [d if isinstance(d, int) else named.get(d) for d in spec.shape]
        if any(d is None for d in axes[1:]):
            raise EngineError(
                f"input {spec} leaves an axis free other than the batch",
                where=where,
                fix="export the model with fixed axes for its further inputs",
            )
        specs.append(TensorSpec(spec.name, spec.dtype, tuple(axes)))
    return specs


def _batch_notice(fixed: int, wanted: int, network: Network) -> Notice:
    if fixed > wanted:
        text = f"the model fixes its batch at {fixed}: batches of {wanted} are padded to it"
    else:
        runs = -(-wanted // fixed)
        text = (
            f"the model fixes its batch at {fixed}: batch {wanted} runs as {runs} runs of {fixed}"
        )
        if fixed == 1:
            text += "; noria build --dynamic-batch, or an export with a free batch, runs it at once"
    # the name alone: the notice is kept in the plan, and the model may be moved
    return Notice("info", text, network.path.name if network.path else None)


def model_bytes(
    network: Network, *, shape: tuple[int | None, ...], where: str, decisions: list[Notice]
) -> bytes:
    """The ONNX message, weights inside, the first input's axes fixed as `shape` says.

    Args:
        decisions: told if the model is marked with a newer version than it needs.

    Raises:
        ModelError: it is over 2 GiB.
    """
    proto = network.to_proto()
    if versions := stamp_older(proto):
        text = f"the model is marked {versions[0]}; nothing in it is newer than {versions[1]}"
        notice = Notice("info", f"{text}, and so it is run")
        if notice not in decisions:
            decisions.append(notice)
    if shape:
        fix_axes(proto.graph, shape)
    return serialized(proto, where)


def fix_axes(graph: Any, shape: tuple[int | None, ...]) -> None:
    """Fix the axes of the first input of a GraphProto as `shape` says; its batch stays."""
    replaced: dict[str, int] = {}
    ambiguous: set[str] = set()  # Paddle's exporter calls every free axis "?"
    axes = graph.input[0].type.tensor_type.shape.dim
    batch_name = axes[0].dim_param
    for axis, value in zip(list(axes)[1:], shape[1:], strict=True):
        name = axis.dim_param
        if name and name != batch_name and value and replaced.setdefault(name, value) != value:
            ambiguous.add(name)
        axis.dim_value = value or 0
    # the same name means the same number, wherever it stands
    for info in [*graph.output, *graph.value_info]:
        for axis in info.type.tensor_type.shape.dim:
            if axis.dim_param in replaced and axis.dim_param not in ambiguous:
                axis.dim_value = replaced[axis.dim_param]


def serialized(proto: Any, where: str) -> bytes:
    from google.protobuf.message import Error as ProtobufError  # type: ignore[import-untyped]

    try:
        return bytes(proto.SerializeToString(deterministic=True))
    except (ProtobufError, ValueError) as error:
        raise ModelError(f"the model cannot be written as one message: {error}",
                         where=where) from error  # fmt: skip


def _open(
    backend: Backend,
    model: bytes,
    options: RunOptions,
    network: Network,
    where: str,
    layers: PluginLayers | None,
) -> tuple[Runner | None, dict[str, bytes]]:
    """The runner, unless the runtime can build here but not run; and what the plan keeps."""
    blobs = {MODEL_BLOB: model}
    try:
        if layers is not None and layers.records:
            blobs |= layers.blobs
            return None if backend.why_not() else layers.open(backend, options), blobs
        if not isinstance(backend, CompilingBackend):
            return backend.open(model, options), blobs
        blobs[COMPILED_BLOB] = backend.compile(model, options)
        if backend.why_not():
            return None, blobs
        return backend.open(model, options, blobs[COMPILED_BLOB]), blobs
    except EngineError as error:
        if isinstance(error, PluginError):
            raise
        registry = known_plugins()
        unknown = unknown_error(network, backend.name, registry, where, error.found)
        if unknown is not None:
            raise unknown from error
        raise EngineError(
            f"{error.where}: {error.found}" if error.where else error.found,
            where=where,
            expected=error.expected,
            fix=error.fix,
        ) from error


def model_record(network: Network, model: bytes) -> ModelRecord:
    if network.path is None:
        digest = hashlib.sha256(model).hexdigest()
        return ModelRecord(name="network", size_bytes=len(model), sha256=digest)
    return fingerprint_files(
        network.path,
        network.external_locations,
        companions=network.made_from,
        recipe=network.recipe,
        sha256=network.sha256,
    )


def plan_header(
    *, inputs: list[TensorSpec], outputs: list[TensorSpec], **values: Any
) -> PlanHeader:
    from pydantic import ValidationError

    try:
        return PlanHeader(
            inputs=tuple(TensorRecord.of(s) for s in inputs),
            outputs=tuple(TensorRecord.of(s) for s in outputs),
            **values,
        )
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        at = ".".join(map(str, first["loc"]))
        raise EngineError(
            f"the model cannot be described in a plan: {at}: {first['msg']}"
        ) from error
