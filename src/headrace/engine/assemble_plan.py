"""Plans assembled from a build, or from an engine that the user's own function built.

Source: custom-library spec 2.3 (6), 3.3: the engine that a creator returns is the one that runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import headrace
from headrace._core.errors import EngineError
from headrace._core.files import sha256_of
from headrace._core.findings import Finding
from headrace.engine.backends import Backend, Runner, RunnerOptions
from headrace.engine.fingerprint import fingerprint_files
from headrace.engine.input_shapes import complete_infer_dims, resolve_shape, sample_inputs
from headrace.engine.plan import MODEL_BLOB, Blob, Plan, blob_record
from headrace.engine.plan_header import (
    ModelRecord,
    PlanHeader,
    Precision,
    PrecisionRecord,
    RuntimeRecord,
    TacticRecord,
    TensorRecord,
    TuningRecord,
)
from headrace.engine.plugin_graph.plugin_record import PluginRecord
from headrace.engine.session import FreeSession, Session
from headrace.engine.tactic import Tactic
from headrace.network.network import Network
from headrace.network.tensor_spec import TensorSpec

if TYPE_CHECKING:
    from headrace.engine.builder import BuildOptions


@dataclass(slots=True)
class BuildResult:
    """Parts of a plan that was built.

    `runner` is None if the runtime can build here but not run, `rules` is None if there is nothing
    but FP32, and `tuning` if the plan is not tuned.
    """

    backend: Backend
    tactic: Tactic
    precision: Precision
    runner: Runner | None
    run_options: RunnerOptions
    load_s: float
    blobs: Mapping[str, Blob]
    outputs: Sequence[TensorSpec]
    rules: PrecisionRecord | None = None
    tuning: TuningRecord | None = None
    tries: tuple[TacticRecord, ...] = ()
    plugins: Sequence[PluginRecord] = field(default=())


def session_options(tactic: Tactic, options: BuildOptions, precision: Precision) -> RunnerOptions:
    """Choose the options of the session that a build opens."""
    run_options = tactic.run_options(options.max_batch, precision)
    run_options = replace(run_options, batched=options.batched)
    if options.threads is None and options.streams is None:
        return run_options
    return replace(
        run_options, threads=options.threads, streams=options.streams or 1, spinning=False
    )


def assemble_plan(
    built: BuildResult,
    network: Network,
    options: BuildOptions,
    *,
    inputs: Sequence[TensorSpec],
    fixed_batch: int | None,
    decisions: list[Finding],
    where: str,
) -> Plan:
    """Assemble the plan, its session ready to be handed out.

    Raises:
        EngineError: the model has names or shapes that a plan cannot hold.
    """
    backend = built.backend
    if built.runner is None:
        cannot = f"built, but {backend.name} cannot run here: {backend.why_not()}"
        decisions.append(Finding("backend-cannot-run", "warning", cannot))
    chosen = TacticRecord.of(
        built.tactic,
        version=backend.version(),
        precision=built.precision,
        load_s=round(built.load_s, 4),
        chosen=True,
    )
    header = _plan_header(
        headrace=headrace.__version__,
        runtime=RuntimeRecord(name=backend.name, version=backend.version()),
        precision=built.precision,
        batched=options.batched,
        rules=built.rules,
        max_batch=options.max_batch,
        fixed_batch=fixed_batch,
        infer_dims=complete_infer_dims(options.infer_dims),
        model=model_record(network, built.blobs[MODEL_BLOB]),
        inputs=inputs,
        outputs=built.outputs,
        tactics=built.tries or (chosen,),
        tuning=built.tuning,
        plugins=tuple(built.plugins),
        decisions=tuple(decisions),
        blobs=tuple(blob_record(name, blob) for name, blob in built.blobs.items()),
    )
    plan = Plan(header, built.blobs)
    plan.threads = options.threads
    if built.runner is not None:
        kind = Session if options.batched else FreeSession
        session = kind(built.runner, header, where=where, options=built.run_options)
        if options.batched and getattr(built.runner, "plans_kernels", False):
            with suppress(EngineError):  # the first run meets it, and says so
                session.run(sample_inputs(plan.inputs, fixed_batch or options.max_batch))
        plan.keep_ready(session)
    return plan


def model_record(network: Network, model: Blob) -> ModelRecord:
    """Record the files that a network was made from, as a plan keeps them."""
    if network.path is None:
        return ModelRecord.of_code(len(model), sha256_of(model))
    return fingerprint_files(
        network.path,
        network.external_locations,
        companions=network.made_from,
        recipe=network.recipe,
        sha256=network.sha256,
    )


def _plan_header(
    *, inputs: Sequence[TensorSpec], outputs: Sequence[TensorSpec], **values: Any
) -> PlanHeader:
    try:
        return PlanHeader(
            inputs=tuple(TensorRecord.of(s) for s in inputs),
            outputs=tuple(TensorRecord.of(s) for s in outputs),
            **values,
        ).checked()
    except ValueError as error:
        raise EngineError(f"the model cannot be described in a plan: {error}") from error


def prebuilt_plan(network: Network, options: BuildOptions) -> Plan | None:
    """Take the plan that a network was built into already; None if another one is asked for.

    Its precision is what the function chose; a notice says so where the config asks for another.

    Args:
        network: its `built` is the plan.
        options: a batch that the engine does not take, a runtime, a tactic, tuning, precisions of
            single layers, or types of outputs need a build of their own.

    Raises:
        EngineError: the image's shape contradicts `infer_dims`.
    """
    plan: Plan | None = network.built
    if plan is None or options.tuning is not None or options.tactic is not None:
        return None
    header = plan.header
    other = options.runtime not in (None, header.runtime.name)
    if other or options.dynamic_batch or options.rules.pins or options.rules.outputs:
        return None
    if not (options.batched and header.batched) or header.max_batch < options.max_batch:
        return None
    where = str(network.path or "engine")
    resolve_shape(plan.inputs[0], options.infer_dims, options.input_order, where=where)
    decisions = [replace(n, where=n.where or where) for n in header.decisions]
    if header.precision != "fp32" and header.precision != options.precision:
        text = f"the function chose {header.precision}; {options.precision} is asked for"
        decisions.append(Finding("precision-chosen", "info", text, where))
    new_header = header.changed(
        headrace=headrace.__version__,
        rules=options.rules.record(options.precision),
        infer_dims=complete_infer_dims(options.infer_dims),
        model=model_record(network, plan.blobs[MODEL_BLOB]),
        decisions=tuple(decisions),
    )
    taken = Plan(new_header, plan.blobs)
    taken.threads = options.threads
    return taken
