"""Building plans of models over 2 GiB, which no single ONNX message holds."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

import noria
from noria.engine.backends import DEFAULT_BACKEND, SplitBackend, get_backend
from noria.engine.image_input import complete_infer_dims
from noria.engine.plan import MODEL_BLOB, WEIGHTS_BLOB, Plan, blob_record
from noria.engine.plan_header import DecisionRecord, RuntimeRecord, TacticRecord
from noria.engine.tactic import Tactic
from noria.errors import EngineError
from noria.network.network import Network
from noria.network.split import split_proto
from noria.network.tensor_spec import TensorSpec
from noria.notices import Notice

if TYPE_CHECKING:
    from noria.engine.builder import BuildOptions

__all__ = ["build_large"]


def build_large(
    network: Network,
    options: BuildOptions,
    inputs: list[TensorSpec],
    shape: tuple[int | None, ...],
    decisions: list[Notice],
    where: str,
) -> Plan:
    """`build` for a network that `is_large`: as the graph is, neither tuned nor in another
    precision. The plan holds the weights in a blob of their own, mapped from the file when loaded.

    Raises:
        ModelError: external data changed since the model was read.
        EngineError: the runtime refuses the model, or takes none of this size.
    """
    from noria.engine.builder import fix_axes, model_record, plan_header, serialized
    from noria.engine.free_session import FreeSession
    from noria.engine.plan_session import PlanSession

    tactic = options.tactic or Tactic(options.runtime or DEFAULT_BACKEND)
    backend = get_backend(tactic.runtime)
    if not isinstance(backend, SplitBackend):
        raise EngineError(
            f"{backend.name} takes no models over 2 GiB",
            where=where,
            fix="build for onnxruntime or openvino",
        )
    if options.precision != "fp32" or options.rules.pins or options.rules.outputs:
        text = "the model is over 2 GiB: its precision is left as it is"
        decisions.append(Notice("warning", text))
    if options.tuning is not None:
        decisions.append(Notice("warning", "not tuned: the model is over 2 GiB"))
    started = time.perf_counter()
    proto, weights = split_proto(network)
    if shape:
        fix_axes(proto.graph, shape)
    graph = serialized(proto, where)
    del proto
    run_options = replace(tactic.run_options(options.max_batch, "fp32"), batched=options.batched)
    if options.threads is not None or options.streams is not None:
        run_options = replace(
            run_options, threads=options.threads, streams=options.streams or 1, spinning=False
        )
    try:
        runner = backend.open_split(graph, weights, run_options)
    except EngineError as error:
        raise EngineError(
            f"{error.where}: {error.found}" if error.where else error.found,
            where=where,
            expected=error.expected,
            fix=error.fix,
        ) from error
    blobs = {MODEL_BLOB: graph, WEIGHTS_BLOB: weights}
    header = plan_header(
        noria=noria.__version__,
        runtime=RuntimeRecord(name=backend.name, version=backend.version()),
        precision="fp32",
        batched=options.batched,
        rules=options.rules.record(options.precision),
        max_batch=options.max_batch,
        fixed_batch=shape[0] if shape else None,
        infer_dims=complete_infer_dims(options.infer_dims),
        model=model_record(network, graph),
        inputs=inputs,
        outputs=list(runner.outputs),
        tactics=(
            TacticRecord(
                runtime=backend.name,
                version=backend.version(),
                precision="fp32",
                threads=tactic.threads,
                streams=tactic.streams,
                optimization=tactic.optimization,
                spinning=tactic.spinning,
                load_s=round(time.perf_counter() - started, 4),
                chosen=True,
            ),
        ),
        decisions=tuple(DecisionRecord.of(n) for n in decisions),
        blobs=tuple(blob_record(name, blob) for name, blob in blobs.items()),
    )
    plan = Plan(header, blobs)
    plan.threads = options.threads
    kind = PlanSession if options.batched else FreeSession
    plan.keep_ready(kind(runner, header, where=where, options=run_options))
    return plan
